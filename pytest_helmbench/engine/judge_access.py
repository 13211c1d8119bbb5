"""Reaching those who judge for a session: opened when they are wanted, waited for when they are gone."""

from __future__ import annotations

import logging
import threading
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable
from concurrent.futures import Future

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.engine.host_lines import HostLines

__all__ = ["JudgeAccess", "JudgeOffer", "JudgesGoneError", "OpenedJudges"]

_log = logging.getLogger(__name__)

_RETRY_S = 1.0


class JudgesGoneError(Exception):
    """Nobody is there who could judge; it is no fault of what was to be judged."""


@dataclass(frozen=True, slots=True)
class OpenedJudges:
    """Judges that can be asked.

    Args:
        submit: Has a parcel judged.
        places: Says without waiting how many parcels can be judged at once now.
        close: Ends what was started for the session; takes a second at most.
        made_by: The version that they are to have; empty where they run from our own files.
        is_local: They are processes of our own.
        listen: Has what runs where they are ask the session; None where they have no lines.
    """

    submit: Callable[[bytes], Future[bytes]]
    places: Callable[[], int]
    close: Callable[[], None]
    made_by: str = ""
    is_local: bool = False
    listen: Callable[[HostLines, AbstractEventLoop], None] | None = None


@dataclass(frozen=True, slots=True)
class JudgeOffer:
    """Who may judge for a session.

    Args:
        open: Starts or reaches them; may take its time; raises what keeps them away.
        fallback: The same for those that judge when `open` gives none any more.
        only_if_worth: They are asked for only where enough is left to judge.
        wait_s: How long judges that are gone are waited for.
        has_hosts: They may be on hosts of their own, with sandboxes of their own.
        has_lines: What runs there can ask the session meanwhile.
    """

    open: Callable[[], OpenedJudges]
    fallback: Callable[[], OpenedJudges]
    only_if_worth: bool = False
    wait_s: float = 60.0
    has_hosts: bool = False
    has_lines: bool = False


class JudgeAccess:
    """Those who judge, while there are some. Everything but `close` runs on the event loop.

    Args:
        offer: Who may judge.
        tell: Runs a function on the event loop, from any thread.
        on_change: Called when judges have come, or could not be reached.
        note: Takes a sentence for the summary.
    """

    def __init__(
        self,
        offer: JudgeOffer,
        tell: Callable[[Callable[[], object]], object],
        on_change: Callable[[], object],
        note: Callable[[str], object],
    ) -> None:
        self.offer = offer
        self.judges: OpenedJudges | None = None
        self.are_hopeless = False
        """Not even those who are to stand in can judge."""
        self._tell = tell
        self._on_change = on_change
        self._note = note
        self._opening = False
        self._gone_since: float | None = None
        self._opened_in_vain = 0
        self._retry_at = 0.0
        self.stood_in_for = False
        """Others stand in for them."""
        self._closed = False

    def look_for(self) -> None:
        """Begin to open them where there are none."""
        now = time.monotonic()
        if self._opening or self.judges or self._closed or self.are_hopeless or now < self._retry_at:
            return
        waited = self._gone_since is not None and now - self._gone_since > self.offer.wait_s
        if waited and self._opened_in_vain:
            self.give_up()
            if self.are_hopeless:
                return
        self._opening = True
        self._opened_in_vain += 1
        opening = self.offer.fallback if self.stood_in_for else self.offer.open
        threading.Thread(target=self._open, args=(opening,), name="helmbench-judges", daemon=True).start()

    def lose(self) -> None:
        """Take note that they are gone; they are looked for again."""
        judges, self.judges = self.judges, None
        if judges is not None:
            threading.Thread(target=judges.close, daemon=True).start()
        now = time.monotonic()
        self._gone_since = self._gone_since or now
        self._retry_at = now + _RETRY_S

    def give_up(self) -> None:
        """Wait for them no longer: others stand in; and where these cannot judge either, nobody does."""
        if self.stood_in_for:
            self.are_hopeless = True
            self._note("no process could be had that judges: replies are judged in the session's own")
        else:
            self.stood_in_for = True
            self._note(
                f"the judges were gone for {self.offer.wait_s:g} s: replies were judged by processes of this machine"
            )
        self.lose()
        self._gone_since, self._retry_at = None, 0.0  # who stands in has not been asked yet

    def heard(self) -> None:
        """Take note that they judge."""
        self._gone_since = None
        self._opened_in_vain = 0

    def close(self) -> None:
        """End those who were started. From any thread."""
        self._closed = True
        judges = self.judges
        if judges is not None:
            judges.close()

    def _open(self, opening: Callable[[], OpenedJudges]) -> None:
        judges: OpenedJudges | None = None
        why = ""
        try:
            judges = opening()
        except Exception as error:  # noqa: BLE001 - of somebody else's executor, too
            why = str(error) or type(error).__name__
        if self._closed and judges is not None:
            judges.close()
        else:
            self._tell(lambda: self._opened(judges, why))

    def _opened(self, judges: OpenedJudges | None, why: str) -> None:
        self._opening = False
        if judges is None:
            self._note(f"the judges could not be reached: {why.partition(chr(10))[0]}")
            self.lose()
        elif self._closed:
            judges.close()
        else:
            self.judges = judges
            _log.info("replies are judged in %d places", judges.places())
        self._on_change()

"""The record as a session may use it: by cache mode, and by what it goes on with."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_helmbench.gateway.backend import CacheMode, Recorded, Wanted
from pytest_helmbench.gateway.http_answers import read_times
from pytest_helmbench.store.recorded_runs import RecordedRuns
from pytest_helmbench.store.writer import Store

__all__ = ["RecordedReplies"]


class RecordedReplies:
    """Finds recorded replies; see `Record`. `look_up` is used on the loop's thread.

    Args:
        store: The session's own, still writing.
        mode: `--helmbench-cache`.
        runs: Runs of the session whose own replies on record may stand for calls.
    """

    def __init__(self, store: Store, mode: CacheMode, runs: Iterable[int]) -> None:
        self._store = store
        self._mode = mode
        self._runs = frozenset(runs)
        self._recorded = RecordedRuns(store.path)

    def trust(self, runs: Iterable[int]) -> None:
        """Let the own replies of more runs stand for calls."""
        self._runs = self._runs | frozenset(runs)

    def look_up(self, wanted: Wanted) -> Recorded | None:
        """Return the reply on record that the mode allows, or None.

        Raises:
            StoreError: The file cannot be read.
        """
        if wanted.run_id in self._runs:
            of_case = (wanted.run_id, wanted.code, wanted.repetition)
            mine = self._recorded.reply_of_run(of_case, wanted.request_hash, wanted.judge)
            # To refresh is to call anew once: what the run that goes on has called for itself is new.
            if mine is not None and (mine.paid or self._mode is not CacheMode.REFRESH):
                return Recorded(mine.body, own=mine.paid, times=read_times(mine.chunk_times))
        if not self._mode.reads:
            return None
        other = self._recorded.reply(wanted.request_hash, wanted.repetition, wanted.asked)
        return None if other is None else Recorded(other.body, own=False, times=read_times(other.chunk_times))

    def settle(self) -> None:
        """Wait until everything that this session was answered is on disk."""
        self._store.flush()

    def close(self) -> None:
        """Close the connection."""
        self._recorded.close()

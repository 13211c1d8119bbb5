"""The lease of a run: a row with its owner, renewed by the writer, that others respect until it has run out."""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.run_rows import iso_time, own_process, process_lives, seconds_since_epoch

__all__ = ["LEASE_S", "Leases", "RunHeldError", "holder_of", "seconds_since_boot"]

LEASE_S = 60.0
_NOBODY = "another process"


class RunHeldError(HelmbenchError):
    """The run that is to go on is written by another process."""


@dataclass(frozen=True, slots=True)
class _Lease:
    run_id: int
    process: Any
    renewed_at: str
    boot: str | None
    boot_s: float | None

    @property
    def holder(self) -> str:
        """Who has it, for people."""
        return _shown(self.process)


class Leases:
    """The leases of one writer; every method runs inside its transaction.

    Args:
        now: Seconds since the epoch.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.owner = str(uuid.uuid4())
        self._now = now
        self._process = json.dumps(own_process())
        self._boot = _boot()

    def take(self, conn: sqlite3.Connection, run_ids: Iterable[int]) -> None:
        """Take runs, whoever has them."""
        values = (self.owner, self._process, iso_time(self._now()), self._boot, seconds_since_boot())
        conn.executemany(
            "INSERT OR REPLACE INTO leases (run_id, owner, process, renewed_at, boot, boot_s)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            [(run_id, *values) for run_id in run_ids],
        )

    def renew(self, conn: sqlite3.Connection) -> None:
        """Have a whole lease again."""
        conn.execute(
            "UPDATE leases SET renewed_at = ?, boot_s = ? WHERE owner = ?",
            (iso_time(self._now()), seconds_since_boot(), self.owner),
        )

    def drop(self, conn: sqlite3.Connection, run_id: int | None = None) -> None:
        """Give a run back; None for all."""
        conn.execute(
            "DELETE FROM leases WHERE owner = ? AND run_id = ifnull(?, run_id)", (self.owner, run_id)
        )

    def check(self, conn: sqlite3.Connection, run_ids: Collection[int], path: Path) -> None:
        """See that all these runs are ours, so that nothing is written into one that somebody else goes on with.

        Raises:
            StoreError: One is not.
        """
        taker = self._lost(conn, run_ids) if run_ids else None
        if taker is not None:
            raise StoreError(
                path,
                f"the run was taken over by {taker} while this process stood still",
                "it goes on there; nothing more is written here",
            )

    def _lost(self, conn: sqlite3.Connection, run_ids: Collection[int]) -> str | None:
        marks = ", ".join("?" * len(run_ids))
        (ours,) = conn.execute(
            f"SELECT count(*) FROM leases WHERE owner = ? AND run_id IN ({marks})", (self.owner, *run_ids)
        ).fetchone()
        if ours == len(run_ids):
            return None
        taken = self._leases(conn, run_ids, "owner != ?")
        return taken[0].holder if taken else _NOBODY

    def taken_session(
        self, conn: sqlite3.Connection, run_id: int | None, *, take_over: bool
    ) -> tuple[tuple[int, ...], str | None]:
        """Take the runs of a session that is to go on, unless somebody has one.

        Args:
            conn: Inside a write transaction.
            run_id: A run of it; None for the last session that has not finished.
            take_over: Whoever has it.

        Returns:
            The runs, none where there is no such session; and who has one, in a sentence with a hint.
        """
        which = (
            "id = ?" if run_id is not None else "status != 'complete' AND rescored_from IS NULL AND ? IS NULL"
        )
        run_ids = tuple(
            row[0]
            for row in conn.execute(
                "SELECT id FROM evaluation_runs WHERE session_id ="
                f" (SELECT session_id FROM evaluation_runs WHERE {which} ORDER BY id DESC LIMIT 1) ORDER BY id",
                (run_id,),
            ).fetchall()
        )
        if run_ids and not take_over:
            for lease in (*self._leases(conn, run_ids, "owner != ?"), *_without_lease(conn, run_ids)):
                silence_s = self._silence_s(lease)
                if process_lives(lease.process) is not False and abs(silence_s) <= LEASE_S:
                    return (), _held(lease, silence_s)
        self.take(conn, run_ids)
        return run_ids, None

    def _silence_s(self, lease: _Lease) -> float:
        """Return the age of a lease; by the clock since boot where that is the same, which nobody sets back."""
        if lease.boot is not None and lease.boot == self._boot and lease.boot_s is not None:
            return seconds_since_boot() - lease.boot_s
        return self._now() - seconds_since_epoch(lease.renewed_at)

    def _leases(self, conn: sqlite3.Connection, run_ids: Collection[int], which: str) -> list[_Lease]:
        marks = ", ".join("?" * len(run_ids))
        rows = conn.execute(
            "SELECT run_id, process, renewed_at, boot, boot_s FROM leases"
            f" WHERE {which} AND run_id IN ({marks}) ORDER BY run_id",
            (self.owner, *run_ids),
        )
        return [_Lease(run_id, json.loads(process), *rest) for run_id, process, *rest in rows.fetchall()]


def holder_of(process: object) -> str:
    """Return who a process is, for people; empty for one that is seen to be gone."""
    return "" if process_lives(process) is False else _shown(process)


def _shown(process: object) -> str:
    known = process if isinstance(process, dict) else {}
    if known.get("pid") is None or known.get("host") is None:
        return _NOBODY
    return f"process {known['pid']} on {known['host']}"


def seconds_since_boot() -> float:
    """Return a clock that runs on while the machine sleeps, and that nobody sets."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def _without_lease(conn: sqlite3.Connection, run_ids: Collection[int]) -> list[_Lease]:
    """Return runs that a version without leases has open."""
    marks = ", ".join("?" * len(run_ids))
    rows = conn.execute(
        "SELECT id, settings, heartbeat_at FROM evaluation_runs WHERE status = 'running' AND heartbeat_at IS NOT NULL"
        f" AND id IN ({marks}) AND id NOT IN (SELECT run_id FROM leases)",
        tuple(run_ids),
    )
    return [
        _Lease(run_id, json.loads(settings).get("process"), at, None, None)
        for run_id, settings, at in rows.fetchall()
    ]


def _held(lease: _Lease, silence_s: float) -> str:
    return (
        f"run {lease.run_id} is still being written, by {lease.holder}\n"
        f"  hint: wait for it, or stop it first (heard of {max(silence_s, 0.0):.0f} s ago);"
        f" when its machine or container is gone: --helmbench-resume={lease.run_id} --helmbench-take-over"
    )


def _boot() -> str | None:
    """Return what names this start of the machine; None where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None

"""The lease of a session: one row with its owner and his last sign of life, which others respect."""

from __future__ import annotations

import functools
import os
import platform
import sqlite3
import sys
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path

from pytest_helmbench.core.ids import new_id
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.store.fault import StoreError

LEASE_S = 60.0
"""An owner who has been silent for longer may be overtaken."""

SESSION_OF = """
    SELECT session_id FROM evaluation_runs
    WHERE id = :run_id OR :run_id IS NULL AND status != 'complete' AND rescored_from IS NULL ORDER BY id DESC LIMIT 1
"""
"""The session of a run; without a run, the last session with a run that is not complete."""

_COLUMNS = "session_id, owner, host, pid, started, heartbeat_at"


class RunHeldError(HelmbenchError):
    """The run that is to go on is written by another process."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Who writes the runs of a session.

    Args:
        owner: UUID of the writer.
        host: Name of the machine, and of the process namespace, which differs between its containers.
        started: When that began, as its system says; empty where it does not.
        heartbeat_at: Last sign of life, ISO 8601.
    """

    session_id: str
    owner: str
    host: str
    pid: int
    started: str
    heartbeat_at: str

    @property
    def holder(self) -> str:
        """Who has it, for people."""
        return f"process {self.pid} on {self.host.partition(' ')[0]}"

    def silence_s(self, now_s: float) -> float:
        """Return how long ago the last sign of life came, or how far ahead that clock is."""
        return abs(now_s - seconds_since_epoch(self.heartbeat_at))

    @property
    def is_dead(self) -> bool:
        """Whether the owner is seen to be gone, on this machine."""
        if sys.platform == "win32" or self.host != _host():
            return False  # cannot be seen; on Windows os.kill(pid, 0) would send Ctrl-C instead of asking
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # lives, and belongs to another user
        # Pids are used again, soonest after a reboot or in a container: the start distinguishes them.
        return _process_start(self.pid) != self.started

    def is_held(self, now_s: float) -> bool:
        """Return whether the owner seems to be at work: not seen to be gone, with a recent sign of life."""
        return not self.is_dead and self.silence_s(now_s) <= LEASE_S


class Leases:
    """The leases of one writer; every method runs inside its transaction."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.owner = new_id()
        self._now = now

    def take(self, conn: sqlite3.Connection, session_id: str) -> None:
        """Take a session, even from another process."""
        pid = os.getpid()
        values = (session_id, self.owner, _host(), pid, _process_start(pid), iso_time(self._now()))
        conn.execute(f"INSERT OR REPLACE INTO leases ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", values)

    def renew(self, conn: sqlite3.Connection) -> None:
        """Give a sign of life."""
        conn.execute(
            "UPDATE leases SET heartbeat_at = ? WHERE owner = ?", (iso_time(self._now()), self.owner)
        )

    def drop(self, conn: sqlite3.Connection) -> None:
        """Give all sessions back."""
        conn.execute("DELETE FROM leases WHERE owner = ?", (self.owner,))

    def owned(self, conn: sqlite3.Connection) -> list[str]:
        """Return the ids of the sessions that are ours."""
        rows = conn.execute("SELECT session_id FROM leases WHERE owner = ?", (self.owner,))
        return [session_id for (session_id,) in rows]

    def check(self, conn: sqlite3.Connection, sessions: Collection[str], path: Path) -> None:
        """See that these sessions are ours, so that nothing is written into one that another session continues.

        Raises:
            StoreError: One is not.
        """
        found = leases_of(conn)
        for session_id in sessions:
            lease = found.get(session_id)
            if lease is None or lease.owner != self.owner:
                raise StoreError(
                    path,
                    f"the run was taken over by {'another process' if lease is None else lease.holder}"
                    " while this process stood still",
                    "it goes on there; nothing more is written here",
                )

    def taken_session(
        self, conn: sqlite3.Connection, run_id: int | None, *, take_over: bool
    ) -> tuple[int, ...]:
        """Take the runs of a session that is to go on, and return them; none where there is no such session.

        Args:
            run_id: A run of it; None for the last session that has not finished.
            take_over: Also of an owner who has been silent for 60 s.

        Raises:
            RunHeldError: Another process has it.
        """
        found = conn.execute(SESSION_OF, {"run_id": run_id}).fetchone()
        if found is None:
            return ()
        runs = conn.execute(
            "SELECT id FROM evaluation_runs WHERE session_id = ? ORDER BY id", found
        ).fetchall()
        lease = leases_of(conn).get(found[0])
        if lease is not None and lease.owner != self.owner and not lease.is_dead:
            silence_s = lease.silence_s(self._now())
            if silence_s <= LEASE_S:
                raise RunHeldError(
                    f"run {runs[0][0]} is still being written, by {lease.holder}\n"
                    f"  hint: wait for it, or stop it first (heard of {silence_s:.0f} s ago)"
                )
            if not take_over:
                raise RunHeldError(
                    f"run {runs[0][0]} belongs to {lease.holder}, which has been silent for {silence_s:.0f} s\n"
                    "  hint: when that process, its machine or its container is gone, add --helmbench-take-over"
                )
        self.take(conn, found[0])
        return tuple(number for (number,) in runs)


def leases_of(conn: sqlite3.Connection) -> Mapping[str, Lease]:
    """Return who writes each session that is open."""
    return {row[0]: Lease(*row) for row in conn.execute(f"SELECT {_COLUMNS} FROM leases")}


def true_status(status: str, lease: Lease | None, now_s: float) -> str:
    """Return the status of a run: as stored, but `interrupted` where its owner is gone and has not recorded it."""
    if status != "running":
        return status
    if lease is None or lease.is_dead or (lease.host != _host() and lease.silence_s(now_s) > LEASE_S):
        return "interrupted"
    return status


def iso_time(epoch_s: float) -> str:
    """Return `2026-07-04T12:00:00.000+00:00`."""
    return datetime.fromtimestamp(epoch_s, UTC).isoformat(timespec="milliseconds")


def seconds_since_epoch(iso: str) -> float:
    """Return the time that `iso_time` has written."""
    return datetime.fromisoformat(iso).timestamp()


@functools.cache
def _host() -> str:
    """Return what names the set of processes that can be seen here: containers may share the name of a host."""
    try:
        return f"{platform.node()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node()


def _process_start(pid: int) -> str:
    """Return the start of a process in clock ticks since boot; empty where the system does not say, or it is dead."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    fields = stat.rpartition(b")")[2].split()
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode("ascii")

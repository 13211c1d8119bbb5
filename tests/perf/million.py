"""A session killed at half and resumed: what it takes, what is asked twice, how its database reads meanwhile.

Run it by hand: `python tests/perf/million.py` (a million cases: an hour), `--scenarios 10` (some minutes).
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from perf.measure import provider
from perf.workload import write_forest

__all__ = ["Session", "kill_and_resume"]

_LOOK_EVERY_S = 2.0
_READERS: Mapping[str, Sequence[str]] = {
    "runs": ("runs",),
    "show": ("show", "last"),
    "report": ("report", "last", "--format", "markdown"),
}
_IN_FLIGHT = 64


@dataclass(slots=True)
class Session:
    """One session.

    Args:
        first_s: Until the first request reached the provider: start-up and collection.
        first_mib: Resident memory then.
        wall_s: From start to end.
        cpu_s: Of its process.
        peak_mib: Of its process.
        requests: That the provider saw of it.
        status: Exit code; negative when killed.
        last: The end of what it printed.
        reads_s: How long each look into the database took meanwhile, by what looked.
        ending_s: From the last request to the end of the process.
    """

    first_s: float = 0.0
    first_mib: float = 0.0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_mib: float = 0.0
    requests: int = 0
    status: int = 0
    last: str = ""
    reads_s: dict[str, list[float]] = field(default_factory=dict)
    ending_s: float = 0.0


def kill_and_resume(root: Path, cases: int, options: Sequence[str]) -> None:
    """Run the benchmark in `root`, kill the session at half, resume it, and print both.

    Args:
        root: Holds `benchmark`, and gets the database.
        cases: How many there are.
        options: More of the command line.
    """
    with provider(0) as url:
        killed = _run(root, url, options, looks_every=cases // 10, kill_at=cases // 2)
        recorded = _recorded(root / "helmbench.db")
        print(_row("killed", killed), f"{recorded:,} on record", flush=True)
        resumed = _run(root, url, [*options, "--helmbench-resume"], looks_every=cases // 10)
    print(_row("resumed", resumed))
    print(
        f"{cases - recorded:,} were missing, the resumed session asked {resumed.requests:,};"
        f" both together {killed.requests + resumed.requests:,} for {cases:,} cases"
    )
    db = root / "helmbench.db"
    with closing(sqlite3.connect(db)) as conn:
        started = time.perf_counter()
        check = conn.execute("PRAGMA integrity_check").fetchone()[0]
        took_s = time.perf_counter() - started
        statuses = conn.execute("SELECT status, count(*) FROM evaluation_runs GROUP BY 1").fetchall()
    print(f"{db.stat().st_size / 1e6:,.0f} MB, integrity {check} ({took_s:.0f} s), runs {statuses}")
    for name, words in _READERS.items():
        print(f"helmbench {name} afterwards: {_read(root, words):.1f} s")
    print(resumed.last)


def _run(
    root: Path, url: str, options: Sequence[str], *, looks_every: int, kill_at: int | None = None
) -> Session:
    words = [sys.executable, "-m", "pytest", "benchmark", "-q", "-p", "no:cacheprovider", "--rootdir=."]
    words += ["--helmbench-db=helmbench.db", "--helmbench-model=mock-1", f"--helmbench-base-url={url}"]
    words += [f"--helmbench-concurrency={_IN_FLIGHT}", *options]
    session = Session()
    output = root / "session.out"
    start = time.perf_counter()
    with output.open("wb") as file:
        process = subprocess.Popen(
            words, cwd=root, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
        )
    last_request = start
    looked = 0
    while True:
        found, status, usage = os.wait4(process.pid, os.WNOHANG)
        asked = _asked(url)
        session.requests += asked
        now = time.perf_counter()
        if found:
            break
        if asked:
            last_request = now
            if not session.first_s:
                session.first_s, session.first_mib = now - start, _resident_mib(process.pid)
        if kill_at is not None and session.requests >= kill_at:
            process.send_signal(signal.SIGKILL)
        elif session.requests // looks_every > looked:
            looked = session.requests // looks_every
            print(
                f"{now - start:.0f} s: {session.requests:,} asked, {_resident_mib(process.pid):.0f} MiB",
                flush=True,
            )
            _look(root, session)
        elif session.first_s:
            session.reads_s.setdefault("sqlite3", []).append(_count_s(root / "helmbench.db"))
        time.sleep(_LOOK_EVERY_S)
    session.wall_s, session.ending_s = now - start, now - last_request
    process.returncode = session.status = os.waitstatus_to_exitcode(status)
    session.cpu_s = usage.ru_utime + usage.ru_stime
    session.peak_mib = usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)
    session.last = output.read_text(encoding="utf-8", errors="replace")[-400:]
    return session


def _look(root: Path, session: Session) -> None:
    for name, words in _READERS.items():
        session.reads_s.setdefault(name, []).append(_read(root, words))


def _read(root: Path, words: Sequence[str]) -> float:
    started = time.perf_counter()
    command = [sys.executable, "-m", "pytest_helmbench", *words, "--db=helmbench.db"]
    subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def _count_s(db: Path) -> float:
    """Return how long it takes to open the database and see who is at it, as a reader in SQL would."""
    started = time.perf_counter()
    with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True, timeout=60)) as conn:
        conn.execute("SELECT max(id) FROM results").fetchone()
        conn.execute("SELECT status FROM evaluation_runs").fetchall()
    return time.perf_counter() - started


def _recorded(db: Path) -> int:
    with closing(sqlite3.connect(db)) as conn:
        return int(conn.execute("SELECT count(*) FROM results").fetchone()[0])


def _asked(url: str) -> int:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return int(answer.read().split()[0])


def _resident_mib(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/statm").read_text()
    except OSError:
        return 0.0
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _row(name: str, session: Session) -> str:
    reads = "; ".join(
        f"{who} {len(times)} times, slowest {max(times):.2f} s" for who, times in session.reads_s.items()
    )
    return (
        f"{name}: first request after {session.first_s:.0f} s at {session.first_mib:.0f} MiB,"
        f" wall {session.wall_s:.0f} s, end {session.ending_s:.0f} s, CPU {session.cpu_s:.1f} s,"
        f" peak {session.peak_mib:.0f} MiB, {session.requests:,} requests, exit {session.status}; {reads}"
    )


def main() -> None:
    """Write the benchmark, run, kill, resume."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenarios", type=int, default=1000)
    parser.add_argument("--cases", type=int, default=1000, help="of each scenario")
    parser.add_argument("--folder", type=Path, help="empty; kept")
    given = parser.parse_args()
    root = given.folder or Path(tempfile.mkdtemp())
    try:
        write_forest(root, given.scenarios, given.cases)
        kill_and_resume(root, given.scenarios * given.cases, [])
    finally:
        if given.folder is None:
            shutil.rmtree(root)


if __name__ == "__main__":
    main()

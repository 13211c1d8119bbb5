"""Running one command and taking its measure: time, CPU, memory and bytes of its whole process tree."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Command", "FailedError", "Measure", "measure", "provider"]

_HERE = Path(__file__).parent
_LOOK_EVERY_S = 0.2


class FailedError(Exception):
    """A command that did not end as it should."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that is measured.

    Args:
        arguments: Program first.
        environ: On top of our own environment.
        ends: Exit codes of a run that counts.
    """

    arguments: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict)
    ends: frozenset[int] = frozenset({0})


@dataclass(frozen=True, slots=True)
class Measure:
    """One run of one command.

    Args:
        wall_s: From start to end.
        cpu_s: Of all processes.
        busiest_s: CPU of the process that took most, as last seen.
        peak_mib: Resident memory of all processes at the worst moment; of the largest where there is no /proc.
        largest_mib: Of the largest process.
        written: Bytes that its folder holds afterwards beyond those before.
        requests: That the provider saw.
        most_in_flight: Requests that were open at once.
        output: What was printed.
    """

    wall_s: float
    cpu_s: float
    busiest_s: float
    peak_mib: float
    largest_mib: float
    written: int
    requests: int
    most_in_flight: int
    output: str


@contextmanager
def provider(latency_ms: float, *options: str) -> Iterator[str]:
    """Run the mock in a process of its own; yield its base URL."""
    arguments = [sys.executable, str(_HERE / "mock.py"), str(latency_ms), *options]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    if process.stdout is None:
        raise RuntimeError("the mock has no output")
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.kill()
        process.wait()


def measure(command: Command, folder: Path, url: str | None = None) -> Measure:
    """Run a command in a folder.

    Raises:
        FailedError: It ended with another exit code.
    """
    if url is not None:
        _counts(url)
    before = _bytes_in(folder)
    output = folder.parent / f"{folder.name}.out"
    start = time.perf_counter()
    with output.open("wb") as file:
        process = subprocess.Popen(
            command.arguments,
            cwd=folder,
            env={**os.environ, **command.environ},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with _watched(process.pid) as seen:
            _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    text = output.read_text(encoding="utf-8", errors="replace")
    if process.returncode not in command.ends:
        raise FailedError(f"ended with {process.returncode}: {text[-1500:]}")
    requests, most = _counts(url) if url is not None else (0, 0)
    largest_kib = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return Measure(
        wall_s=wall_s,
        # Processes without a waiting parent are missing in the first, those after the last look in the second.
        cpu_s=max(usage.ru_utime + usage.ru_stime, sum(seen.cpu_s.values())),
        busiest_s=max(seen.cpu_s.values(), default=0.0),
        peak_mib=max([largest_kib, *seen.memory_kib]) / 1024,
        largest_mib=largest_kib / 1024,
        written=_bytes_in(folder) - before,
        requests=requests,
        most_in_flight=most,
        output=text,
    )


def _counts(url: str) -> tuple[int, int]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        requests, most = map(int, answer.read().split())
    return requests, most


@dataclass(slots=True)
class _Seen:
    """All processes of a command while it ran.

    Args:
        memory_kib: Resident memory of all of them, by look.
        cpu_s: Of each, by its number, at the last look.
    """

    memory_kib: list[float] = field(default_factory=list)
    cpu_s: dict[int, float] = field(default_factory=dict)


@contextmanager
def _watched(command: int) -> Iterator[_Seen]:
    """Look at all processes of a command while inside: those of its session, and those that have one of their own."""
    seen = _Seen()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_LOOK_EVERY_S):
            _look(command, seen)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def _look(command: int, seen: _Seen) -> None:
    page_kib, ticks = os.sysconf("SC_PAGE_SIZE") / 1024, os.sysconf("SC_CLK_TCK")
    found: dict[int, list[bytes]] = {}
    processes = Path("/proc")
    for entry in os.scandir(processes) if processes.is_dir() else ():
        if not entry.name.isdigit():
            continue
        try:
            stat = Path(entry.path, "stat").read_bytes()
        except OSError:
            continue  # it has just ended
        found[int(entry.name)] = stat.rpartition(b")")[2].split()
    ours = {command}
    for _ in range(3):  # children of children of children
        ours |= {
            number for number, parts in found.items() if int(parts[3]) == command or int(parts[1]) in ours
        }
    seen.memory_kib.append(sum(int(found[number][21]) * page_kib for number in ours if number in found))
    for number in ours & found.keys():
        seen.cpu_s[number] = (int(found[number][11]) + int(found[number][12])) / ticks


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

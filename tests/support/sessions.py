"""Pytest in a process group of its own, to be interrupted and killed; and the same session undisturbed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import pytest
from inner_pytest import QUICK, run_pytest
from trees import MODEL
from waiting import PATIENCE_S, lives, until

__all__ = ["Session", "run_undisturbed", "until"]

# A shell in the background has its children ignore Ctrl-C, and so would the session.
_PROGRAM = """
import signal, sys, pytest
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(pytest.main(plugins=[{plugins}]))
"""
_FORKED = f"""
import sys
sys.path.append({str(Path(__file__).parent)!r})
import fork_server
sys.path.pop()
"""
_CONFTEST = """
import os, pathlib, sys

def pytest_configure(config):
    workerinput = getattr(config, "workerinput", None)
    if workerinput is not None and "PIDS" in os.environ:
        path = pathlib.Path(os.environ["PIDS"], workerinput["workerid"])
        path.with_suffix(".new").write_text(str(os.getpid()))  # it may be killed meanwhile
        path.with_suffix(".new").rename(path)
    if "BATCH_PACE_S" in os.environ:
        import pytest_helmbench.gateway.batches as batches

        batches.GATHER_S = batches.FIRST_POLL_S = float(os.environ["BATCH_PACE_S"])
        batches.LOOK_S = batches.FAULTY_S = 10 * batches.GATHER_S
        batches.UNREADABLE_S = 40 * batches.GATHER_S
    if "KILL_AT" in os.environ:
        # At a call of the session's own, once what it has recorded before is on disk.
        import signal, time
        from pytest_helmbench.gateway.backend import LocalBackend
        from pytest_helmbench.run.coordinator import BatchesOnRecord

        word, _, count = os.environ["KILL_AT"].partition(":")
        left = [int(count or 1)]

        def killing(kind, name, is_it):
            function = getattr(kind, name)

            def killed(self, *given):
                left[0] -= is_it(*given)
                if not left[0]:
                    time.sleep(0.3)
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(self, *given)

            setattr(kind, name, killed)

        if word == "settle":
            killing(LocalBackend, "settle", lambda *_: True)
        else:
            killing(BatchesOnRecord, "put", lambda row: row.state == word)
    if "GRACE_S" in os.environ:
        import pytest_helmbench.pytest_side.composition

        for module in [module for module in sys.modules.values() if hasattr(module, "INTERRUPT_GRACE_S")]:
            module.INTERRUPT_GRACE_S = float(os.environ["GRACE_S"])
"""
_READ_AT_START = {"LD_PRELOAD", "PYTHONPATH"}


def run_undisturbed(
    pytester: pytest.Pytester, url: str, *arguments: str, paths: Sequence[str] = ("benchmark",)
) -> pytest.RunResult:
    """Run what a `Session` with these arguments runs in this process, to its end."""
    _write_configuration(pytester.path)
    return run_pytest(pytester, *_arguments(url, arguments, paths))


def _arguments(url: str, arguments: Sequence[str], paths: Sequence[str]) -> list[str]:
    of_provider = [f"--helmbench-{whose}base-url={url}" for whose in ("", "marking-")]
    of_provider += [f"--helmbench-model={MODEL}", "--helmbench-concurrency=32"]
    return [*paths, *of_provider, "-p", "no:cacheprovider", *arguments]


def _write_configuration(folder: Path) -> None:
    (folder / "conftest.py").write_text(_CONFTEST, encoding="utf-8")
    if not (folder / "pytest.ini").exists():
        (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n", encoding="utf-8")


def _start(
    arguments: Sequence[str], folder: Path, env: dict[str, str], output: IO[bytes], *, anew: bool
) -> subprocess.Popen[bytes]:
    """Start pytest in a group of its own; its workers are forked unless `anew`."""
    program = _PROGRAM.format(plugins="") if anew else _FORKED + _PROGRAM.format(plugins="fork_server")
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        process_group=0,
    )


class Session:
    """A running session; its workers leave their process ids behind.

    Args:
        folder: Where it runs.
        url: Of the provider.
        arguments: More of the command line.
        paths: What it runs, in order.
        anew: Whether it and its workers are started, not forked; workers are children of the session then.
        grace_s: How long it waits for replies after Ctrl-C; None for what the plugin says.
    """

    def __init__(
        self,
        folder: Path,
        url: str,
        *arguments: str,
        paths: Sequence[str] = ("benchmark",),
        anew: bool = False,
        grace_s: float | None = None,
    ) -> None:
        self._pids = folder / "pids"
        self._pids.mkdir(exist_ok=True)
        self._output = folder / "output.txt"
        _write_configuration(folder)
        arguments = (*QUICK, *_arguments(url, arguments, paths))
        env = {**os.environ, "PIDS": str(self._pids)}
        if grace_s is not None:
            env["GRACE_S"] = str(grace_s)
        anew = anew or bool(env.keys() & _READ_AT_START)
        with self._output.open("wb") as output:
            self._process = _start(arguments, folder, env, output, anew=anew)

    @property
    def text(self) -> str:
        """The output so far."""
        return self._output.read_text(encoding="utf-8", errors="replace")

    def worker(self, name: str) -> int:
        """Return the process id of a worker that has started."""
        until((self._pids / name).exists, f"{name} starts")
        return int((self._pids / name).read_text())

    def kill_workers(self, *names: str) -> None:
        """Kill workers as the system's memory guard would, all at one moment: none takes over from another."""
        workers = [self.worker(name) for name in names]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for worker in workers:
                os.kill(worker, number)

    def kill(self) -> None:
        """Kill the session's own process, and nothing else."""
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def has_ended(self) -> bool:
        """Whether its own process has ended."""
        return self._process.poll() is not None

    def kill_all(self) -> bool:
        """Kill the session's process with its workers, in one stroke; return whether it had not ended by itself."""
        lived = self._process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        until(lambda: not self.living_workers(), "the workers die")
        return lived

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stop all its processes, as a container is paused, and let them go on."""
        os.killpg(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self._process.pid, signal.SIGCONT)

    def interrupt(self, *, everybody: bool) -> None:
        """Send Ctrl-C to all processes, as a terminal does, or to the session's own alone."""
        if everybody:
            os.killpg(self._process.pid, signal.SIGINT)
        else:
            os.kill(self._process.pid, signal.SIGINT)

    def send(self, number: signal.Signals, *workers: str) -> None:
        """Send a signal to these workers; to the session's own process when none is named."""
        for pid in [self.worker(name) for name in workers] or [self._process.pid]:
            os.kill(pid, number)

    def end(self) -> int:
        """Wait for the end and return the exit code."""
        try:
            return self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            raise AssertionError(f"the session never ended\n{self.text}") from None

    def living_workers(self) -> list[str]:
        """Return the workers that still run."""
        return [
            file.name
            for file in self._pids.iterdir()
            if file.suffix != ".new" and lives(int(file.read_text()))
        ]

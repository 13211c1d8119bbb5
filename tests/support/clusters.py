"""Real Dask clusters for tests: a scheduler and workers in processes of their own, to be killed."""

from __future__ import annotations

import importlib
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sessions import until

__all__ = ["Cluster", "Process", "import_dask", "opened_cluster"]

Process = subprocess.Popen[bytes]
_DASK = "distributed"
_OURS = (
    "pytest_helmbench.engine.dask_cluster",
    "pytest_helmbench.engine.dask_judges",
    "pytest_helmbench.engine.dask_lines",
)


def import_dask() -> None:
    """Import what sessions with a cluster do: before `pytester`, which forgets what is imported after it."""
    for name in (_DASK, *_OURS):
        importlib.import_module(name)


@dataclass(frozen=True)
class Cluster:
    """A scheduler; workers come when they are asked for.

    Args:
        file: In which it says where it is.
        scheduler: Its process.
    """

    file: Path
    scheduler: Process
    _stack: ExitStack

    @property
    def address(self) -> str:
        """As `--helmbench-judges` takes it."""
        return f"dask:{json.loads(self.file.read_text())['address']}"

    def worker(self, *, waits: bool = False, preload: str = "") -> Process:
        """Start a worker with one thread and no nanny.

        Args:
            waits: Until the scheduler knows it.
            preload: Python that it runs first.
        """
        log = self.file.with_name(f"worker-{secrets.token_hex(4)}.log")
        options: tuple[str, ...] = (
            "--nthreads",
            "1",
            "--no-dashboard",
            "--no-nanny",
            "--local-directory",
            str(self.file.parent),
        )
        if preload:
            options += ("--preload", preload)
        command = ("distributed.cli.dask_worker", "--scheduler-file", str(self.file), *options)
        process = self._stack.enter_context(_started(*command, log=log))
        if waits:
            until(lambda: "Registered to" in log.read_text(), "the worker is there")
        return process


@contextmanager
def opened_cluster(folder: Path) -> Iterator[Cluster]:
    """Start a scheduler; it and its workers are killed at the end."""
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    options = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    with ExitStack() as stack:
        scheduler = stack.enter_context(
            _started("distributed.cli.dask_scheduler", *options, log=folder / "scheduler.log")
        )
        until(lambda: file.exists() and file.read_text().endswith("}"), "the scheduler says where it is")
        yield Cluster(file, scheduler, stack)


@contextmanager
def _started(*arguments: str, log: Path) -> Iterator[Process]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with log.open("wb") as output:
        command = [sys.executable, "-m", *arguments]
        process = subprocess.Popen(command, env=environ, stdout=output, stderr=output, process_group=0)
    try:
        yield process
    finally:
        process.kill()
        process.wait()

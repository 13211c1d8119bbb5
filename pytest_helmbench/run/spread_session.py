"""One shard on a host of a Dask cluster: a task that runs pytest and reports to the process that spreads it."""

from __future__ import annotations

import io
import os
import platform
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from distributed import Queue

from pytest_helmbench.core.shard import Shard
from pytest_helmbench.store.merge.shard_image import changed_blocks, image_of, write_image

_LOOK_S = 1.0
_SEND_S = 15.0
_SILENCE_S = 60.0
"""After so long without an answer the shard is not wanted any more."""

_PATIENCE_S = 30.0
_TAIL = 4_000
_PROGRAM = """
import os, signal, sys, threading, time
def watch():
    while os.getppid() == int(sys.argv[1]):
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(10)
    os._exit(1)
threading.Thread(target=watch, daemon=True).start()
import pytest
sys.exit(pytest.main(["-p", "helmbench", *sys.argv[2:]]))
"""
"""A session that ends when the worker is gone: what it would still ask for would be lost."""


def this_host() -> tuple[str, str]:
    """Return the name of this host, and the versions of what has to be the same everywhere."""
    python = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    return platform.node(), f"{python}, pytest-helmbench {version('pytest-helmbench')}"


def key_variables() -> str:
    """Return the names of the variables that hold keys here, never their values; `none` where there are none."""
    names = (name for name, value in os.environ.items() if value and re.search("_(API_KEY|TOKEN)$", name))
    return ", ".join(sorted(names)) or "none"


def run_shard(queue: str, shard: Shard, arguments: Sequence[str], folder: str, files: bytes | None) -> None:
    """Run a shard, or go on with what is there of it, as a Dask task.

    Args:
        queue: Name of the queue of the process that spreads.
        folder: Where it runs: below the files, or an absolute path.
        files: As `packed` returns them; None where the files are the same everywhere.

    Raises:
        RuntimeError: Its result is not wanted any more.
    """
    line = _Line(queue, shard.index)
    with tempfile.TemporaryDirectory(prefix="helmbench-spread-", ignore_cleanup_errors=True) as root:
        image = line.ask(begins=True)["image"]
        db, start = Path(root, shard.file_name), Path(root, "files", folder)
        if files is not None:
            with tarfile.open(fileobj=io.BytesIO(files)) as archive:
                archive.extractall(Path(root, "files"), filter="data")
            start.mkdir(parents=True, exist_ok=True)
        if image:
            write_image(db, image)
        own = (f"--helmbench-shard={shard.text}", f"--helmbench-db={db}", "--helmbench-resume=or-start")
        _run_pytest([*arguments, *own], line, start, db)


class _Line:
    """Asks the process that spreads the shards, over the queues of Dask's scheduler."""

    def __init__(self, queue: str, shard: int) -> None:
        host, versions = this_host()
        self._head = {"shard": shard, "attempt": uuid.uuid4().hex, "host": host, "versions": versions}
        self._questions, self._answers = Queue(queue), Queue(f"{queue}-{self._head['attempt']}")
        self._sent = b""

    def ask(self, **words: object) -> Mapping[str, Any]:
        """Send a message and return the answer to it."""
        self._questions.put(self._head | words)
        deadline = time.monotonic() + _SILENCE_S
        # The scheduler would log a traceback of each wait that comes to its end.
        while not (answers := self._answers.get(batch=True)):
            if time.monotonic() > deadline:
                raise RuntimeError("no answer from the process that spreads")
            time.sleep(_LOOK_S / 4)
        answer: Mapping[str, Any] = answers[0]
        if answer.get("dropped"):
            raise RuntimeError(str(answer["dropped"]))
        return answer

    def record(self, db: Path, **words: object) -> Mapping[str, Any]:
        """Send what is new in a results file."""
        image, before = image_of(db), self._sent
        self._sent = image
        return self.ask(size=len(image), blocks=changed_blocks(image, before), **words)


def _run_pytest(arguments: Sequence[str], line: _Line, start: Path, db: Path) -> None:
    """Run pytest in a folder until it ends or is not wanted any more, and send what it stores."""
    command = [sys.executable, "-c", _PROGRAM, str(os.getpid()), *arguments]
    log = db.with_suffix(".log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=start, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    sent_at = time.monotonic()
    try:
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_S)
            is_due = time.monotonic() - sent_at >= _SEND_S
            answer = line.record(db) if is_due else line.ask()
            sent_at = time.monotonic() if is_due else sent_at
            if answer["stop"]:
                process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_PATIENCE_S)
                break
    finally:
        process.kill()
        process.wait()
    # The exit code and the last blocks are one message: a shard that has ended is never begun again.
    line.record(db, code=process.returncode, output=log.read_bytes()[-_TAIL:].decode("utf-8", "replace"))


def packed(root: Path, paths: Sequence[Path]) -> bytes:
    """Return files and folders below a folder as an archive, without compiled Python files and results files."""
    files = {file for path in paths for file in ([path] if path.is_file() else path.rglob("*"))}
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz", dereference=True) as archive:
        for file in sorted(files):
            if file.is_file() and "__pycache__" not in file.parts and not file.match("helmbench*.db*"):
                archive.add(file, file.relative_to(root).as_posix())
    return content.getvalue()

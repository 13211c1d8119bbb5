"""One shard on a host of a Dask cluster: a task that runs pytest, and tells the process that spreads it."""

from __future__ import annotations

import io
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.shard import Shard
from pytest_helmbench.store.merge.shard_image import SentImage, image_of, put_image

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


@dataclass(frozen=True, slots=True)
class ShardedWork:
    """Work that tasks share.

    Args:
        name: Of the queue over which they ask.
        of: How many shards there are.
        arguments: Of pytest.
        folder: Where it runs: inside of what travels, or anywhere where the files are the same everywhere.
        files: SHA-256 (hex) of what travels; None where nothing does.
    """

    name: str
    of: int
    arguments: tuple[str, ...]
    folder: str
    files: str | None


class DroppedError(Exception):
    """The result of the task is not wanted any more."""


def this_host() -> tuple[str, str]:
    """Return the name of this host, and the versions of what has to be the same everywhere."""
    python = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    return platform.node(), f"{python}, pytest-helmbench {version('pytest-helmbench')}"


def key_variables() -> tuple[str, ...]:
    """Return the names of the variables that hold keys here, never their values."""
    return tuple(
        sorted(name for name, value in os.environ.items() if value and re.search("_(API_KEY|TOKEN)$", name))
    )


def run_shard(work: ShardedWork, shard: Shard) -> None:
    """Run a shard, and go on with what is there of it: what a Dask task does.

    Raises:
        DroppedError: It is not wanted any more.
    """
    line = _Line(work.name, shard.index)
    folder = Path(tempfile.mkdtemp(prefix="helmbench-spread-"))
    try:
        began = line.ask("begin", wants_files=not _is_here(work.files))
        where = Path(work.folder) if work.files is None else _unpacked(work, began["files"], folder)
        db = folder / shard.file_name
        if began["image"]:
            put_image(db, began["image"])
        own = (f"--helmbench-shard={shard.text}", f"--helmbench-db={db}", "--helmbench-resume=or-start")
        _watched([*work.arguments, *own], line, where, db)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Line:
    """Asks the process that spreads the shards, over the queues of Dask's scheduler."""

    def __init__(self, name: str, shard: int) -> None:
        from distributed import Queue, get_client  # the command imports this module without Dask

        self._head = {"shard": shard, "attempt": uuid.uuid4().hex}
        self._questions = Queue(name, client=get_client())
        self._answers = Queue(f"{name}-{self._head['attempt']}", client=get_client())

    def ask(self, what: str, **more: object) -> Mapping[str, Any]:
        host, versions = this_host()
        message = {**self._head, "host": host, "versions": versions, "what": what, **more}
        try:
            self._questions.put(message, timeout=_SILENCE_S)
            answer: Mapping[str, Any] = self._answers.get(timeout=_SILENCE_S)
        except TimeoutError:
            raise DroppedError("no answer from the process that spreads") from None
        if answer.get("dropped"):
            raise DroppedError(str(answer["dropped"]))
        return answer


def _watched(arguments: Sequence[str], line: _Line, where: Path, db: Path) -> None:
    log = db.with_suffix(".log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(os.getpid()), *arguments],
            cwd=where,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    sent = SentImage()
    try:
        last_sent = time.monotonic()
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_S)
            due = time.monotonic() - last_sent >= _SEND_S
            answer = line.ask("record", **_news(db, sent)) if due else line.ask("look")
            last_sent = time.monotonic() if due else last_sent
            if answer.get("stop"):
                process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_PATIENCE_S)
                break
        _end(process)
        # The last word and the last blocks in one message: what has ended is never begun again.
        said = log.read_bytes()[-_TAIL:].decode("utf-8", "replace")
        line.ask("record", code=process.returncode, said=said, **_news(db, sent))
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()


def _news(db: Path, sent: SentImage) -> dict[str, object]:
    image = image_of(db)
    blocks = [[number, block] for number, block in sent.changes(image).items()]
    return {"size": len(image), "blocks": blocks}


def _kept(digest: str) -> Path:
    """Return where the files of a benchmark are kept on this host."""
    return Path(tempfile.gettempdir()) / f"helmbench-spread-{os.getuid()}" / f"{digest}.zip"


def _is_here(digest: str | None) -> bool:
    with suppress(OSError):
        return digest is None or sha256(_kept(digest).read_bytes()).hexdigest() == digest
    return False


def _unpacked(work: ShardedWork, files: bytes | None, folder: Path) -> Path:
    """Return the folder that a shard runs in, among the files that have travelled."""
    kept = _kept(work.files or "")
    content = kept.read_bytes() if files is None else files
    if sha256(content).hexdigest() != work.files:
        raise DroppedError(f"{kept} was changed by another process")
    if files is not None:
        kept.parent.mkdir(mode=0o700, exist_ok=True)
        made = kept.with_suffix(f".{uuid.uuid4().hex}")
        made.write_bytes(content)
        made.replace(kept)
    root = folder / "files"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for entry in archive.infolist():
            made = Path(archive.extract(entry, root))
            made.chmod(entry.external_attr >> 16)
    (root / work.folder).mkdir(parents=True, exist_ok=True)
    return root / work.folder


def packed(root: Path, paths: Sequence[Path]) -> bytes:
    """Return files and folders below a folder as an archive; the same content gives the same bytes.

    Args:
        root: The folder.
        paths: Below it. What a session has made of Python's files stays, and so do results files.
    """
    found = sorted({file for path in paths for file in ([path] if path.is_file() else path.rglob("*"))})
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in found:
            if file.is_file() and "__pycache__" not in file.parts and not file.match("helmbench*.db*"):
                entry = zipfile.ZipInfo(file.relative_to(root).as_posix())
                entry.external_attr = (file.stat().st_mode & 0o777) << 16
                archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return content.getvalue()

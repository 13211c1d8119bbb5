"""A checker's own folder, and the reports that come out of it while the checker runs.

Keys lie ready in a pipe: who takes one opens a session that has to end well. Reports go into another pipe, from which
nothing can be taken back. Both are named pipes, since every engine can mount those, on one and the same kernel.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from importlib.resources import files

from pytest_helmbench.benchmarks.packs.evidence.verdicts import Witnessed, read_records
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.sandbox.box import Box, Engine, Mount
from pytest_helmbench.sandbox.workspace import Workspace

_FOLDER = "pytest_helmbench.benchmarks.packs.evidence.inside"
_LOGIN = ("sh", "-lc")
_KEEP_PATH = 'export PYTHONPATH="{}${{PYTHONPATH:+:$PYTHONPATH}}"; '
_KEY_BYTES = 64
_KEYS = 64
_MOST_BYTES = 64 * 1024 * 1024
_CHUNK = 1 << 16
_DECOY = "def test():\n    assert sorted([2, 1]) == [2, 1]\n"


@dataclass(frozen=True, slots=True)
class WitnessSettings:
    """What the programs in a checker's own folder are told.

    Args:
        workspace: Absolute path in the box.
        tests_inside: The tests lie in the workspace, as those of a repository do.
        exempt: Names of modules that the untouched workspace has itself.
        collects: Tests are only collected.
    """

    workspace: str
    tests_inside: bool
    exempt: tuple[str, ...] = ()
    collects: bool = False


class Witness:
    """A checker's own folder.

    Args:
        folder: Belongs to the user that the checker runs as.
        place: Where the checker sees it.
    """

    def __init__(self, folder: Workspace, place: str) -> None:
        self.folder = folder
        self.place = place
        self._keys = [secrets.token_hex(_KEY_BYTES // 2) for _ in range(_KEYS)]
        self._data = bytearray()

    @property
    def mount(self) -> Mount:
        """How the checker sees the folder."""
        return Mount(self.folder.path, self.place)

    def env(self, box: Box) -> tuple[tuple[str, str], ...]:
        """Return what makes every Python of a checker begin here."""
        return (
            ("PYTHONPATH", box.inside(self.place)),
            ("PYTHONNOUSERSITE", "1"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
        )

    def prepare(self, settings: WitnessSettings) -> None:
        """Write the programs."""
        decoy = f"d{secrets.token_hex(6)}/test_{secrets.token_hex(6)}.py"
        told: dict[str, object] = {
            "workspace": settings.workspace,
            "tests_inside": settings.tests_inside,
            "exempt": list(settings.exempt),
            "mode": "collect" if settings.collects else "run",
            "plugin": f"plugin_{secrets.token_hex(8)}",
            "decoy": decoy,
            "later": [],
        }
        self.folder.put("settings.json", json.dumps(told).encode())
        self.folder.put("sitecustomize.py", f"{_source('start')}\n\nmain({told!r}, __file__)\n".encode())
        self.folder.put("witness.py", _source("witness").encode())
        self.folder.put(decoy, _DECOY.encode())

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Give out keys and take reports while a command runs; on this loop."""
        keys, records = self._pipe("keys", 0o444), self._pipe("records", 0o666)
        os.write(keys, "".join(self._keys).encode())
        loop = asyncio.get_running_loop()
        loop.add_reader(records, self._read, records)
        try:
            yield
        finally:
            loop.remove_reader(records)
            self._read(records)
            left = 0
            with suppress(BlockingIOError):
                left = len(os.read(keys, _KEYS * _KEY_BYTES)) // _KEY_BYTES
            self._keys = self._keys[: _KEYS - left]
            os.close(keys)
            os.close(records)

    def seen(self) -> Witnessed:
        """Return what was reported."""
        return read_records(bytes(self._data), self._keys)

    def _pipe(self, name: str, mode: int) -> int:
        path = self.folder.path / name
        os.mkfifo(path)
        path.chmod(mode)
        return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def _read(self, descriptor: int) -> None:
        with suppress(BlockingIOError):
            while chunk := os.read(descriptor, _CHUNK):
                if len(self._data) < _MOST_BYTES:
                    self._data += chunk


@asynccontextmanager
async def opened_witness(engine: Engine, image: str | None, uid: int | None) -> AsyncIterator[Witness]:
    """Make a checker's own folder, and remove it at the end.

    Args:
        engine: What runs the checker.
        image: Of its box.
        uid: Of the workspace.
    """
    folder = Workspace(engine.new_workspace(image).path, uid=uid)
    try:
        yield Witness(folder, f"/checker-{secrets.token_hex(16)}")
    finally:
        await asyncio.to_thread(folder.close)


def with_path(argv: tuple[str, ...], place: str) -> tuple[str, ...]:
    """Return a command with our folder first, also where a login shell sets the environment anew."""
    if argv[:2] == _LOGIN and len(argv) == 3:
        return (*_LOGIN, _KEEP_PATH.format(place) + argv[2])
    return argv


@cache
def _source(name: str) -> str:
    return files(_FOLDER).joinpath(f"{name}.py").read_text(encoding="utf-8")

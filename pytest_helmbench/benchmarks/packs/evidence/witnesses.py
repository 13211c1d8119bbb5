"""A command that judges, run in a box with a folder of ours beside it, out of which its tests report.

Keys lie ready in a pipe: a process that takes one opens a session that has to end well. Reports go into another pipe,
from which nothing can be taken back. Both are named pipes, since every engine can mount those on one kernel.
"""

from __future__ import annotations

import asyncio
import json
import os
import posixpath
import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from pytest_helmbench.benchmarks.packs.evidence.verdicts import CommandRun, read_records
from pytest_helmbench.benchmarks.packs.task import PlannedFile
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.sandbox.box import Box, BoxSpec, Command, Engine, Limits, Mount
from pytest_helmbench.sandbox.workspace import SandboxError, Workspace

_MIB = 1024 * 1024
CHECK_LIMITS = Limits(
    wall_s=600.0,
    cpus=2.0,
    memory_bytes=2048 * _MIB,
    pids=256,
    output_bytes=4 * _MIB,
    disk_bytes=4096 * _MIB,
)
"""Bounds of a checker; the row's own timeout takes the place of `wall_s`."""

_FOLDER = "pytest_helmbench.benchmarks.packs.evidence.inside"
_LOGIN = ("sh", "-lc")
_KEEP_PATH = 'export PYTHONPATH="{}${{PYTHONPATH:+:$PYTHONPATH}}"; '
_KEY_BYTES = 64
_KEYS = 64
_MOST_BYTES = 64 * _MIB
_CHUNK = 1 << 16
_SYSTEM = ("/", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev", "/tmp")
_DECOY = "def test():\n    assert sorted([2, 1]) == [2, 1]\n"
_CLOSED = "sh bash dash ash zsh ksh mksh busybox make perl awk find xargs timeout"
_COPY = f"""
for name in {_CLOSED}; do
  file=$(command -v "$name") && file=$(readlink -f "$file") && cp "$file" "./$name" && echo "$name $file"
done
exit 0
"""
_LARGEST_PROGRAM = 16 * 1024 * 1024
_ELF = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class WitnessSettings:
    """How tests are judged.

    Args:
        tests_inside: The tests lie in the workspace, as those of a repository do.
        exempt: Names of modules that the untouched workspace has itself.
        collects: Tests are only collected.
        evaluator: Where commands see the evaluator's folder, whose place is another in every run; empty for none.
    """

    tests_inside: bool
    exempt: tuple[str, ...] = ()
    collects: bool = False
    evaluator: str = ""


class Witness:
    """A box with a folder of ours beside the workspace.

    Args:
        folder: Ours; it belongs to the user that commands run as.
        place: Where commands see it.
    """

    def __init__(
        self, box: Box, image: str | None, folder: Workspace, place: str, settings: WitnessSettings
    ) -> None:
        self.box = box
        self.place = place
        self._image = image
        self._folder = folder
        self._keys = [secrets.token_hex(_KEY_BYTES // 2) for _ in range(_KEYS)]
        self._data = bytearray()
        decoy = f"d{secrets.token_hex(6)}/test_{secrets.token_hex(6)}.py"
        values: dict[str, object] = {
            "workspace": box.workdir,
            "evaluator": settings.evaluator,
            "tests_inside": settings.tests_inside,
            "exempt": list(settings.exempt),
            "mode": "collect" if settings.collects else "run",
            "plugin": f"plugin_{secrets.token_hex(8)}",
            "decoy": decoy,
            "later": [],
        }
        folder.put("settings.json", json.dumps(values).encode())
        folder.put("sitecustomize.py", f"{_source('start')}\n\nmain({values!r}, __file__)\n".encode())
        folder.put("witness.py", _source("witness").encode())
        folder.put(decoy, _DECOY.encode())

    async def run(
        self, argv: tuple[str, ...], workdir: str, env: tuple[tuple[str, str], ...], limits: Limits
    ) -> CommandRun:
        """Run a command of which every Python begins in our folder."""
        env = (
            *env,
            ("PYTHONPATH", self.place),
            ("PYTHONNOUSERSITE", "1"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            # Plugins that this machine happens to have take no part in a verdict; those of an image belong to it.
            *((("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1"),) if self._image is None else ()),
        )
        with self._listening():
            ended = await self.box.run(Command(argv, workdir, env, limits=limits))
        return CommandRun(ended, read_records(bytes(self._data), self._keys))

    def with_path(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return a command with our folder first, also where a login shell sets the environment anew."""
        if argv[:2] == _LOGIN and len(argv) == 3:
            return (*_LOGIN, _KEEP_PATH.format(self.place) + argv[2])
        return argv

    @contextmanager
    def _listening(self) -> Iterator[None]:
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

    def _pipe(self, name: str, mode: int) -> int:
        path = self._folder.path / name
        os.mkfifo(path)
        path.chmod(mode)
        return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def _read(self, descriptor: int) -> None:
        with suppress(BlockingIOError):
            while chunk := os.read(descriptor, _CHUNK):
                if len(self._data) < _MOST_BYTES:
                    self._data += chunk


@asynccontextmanager
async def open_witness(
    engine: Engine, spec: BoxSpec, workspace: Workspace, settings: WitnessSettings
) -> AsyncIterator[Witness]:
    """Open a box over a workspace with a folder of ours beside it, and remove the folder at the end."""
    folder = Workspace(engine.new_workspace(spec.image).path, uid=workspace.uid)
    try:
        # Its place cannot be guessed. A command with a root of its own copies its programs.
        place = f"/checker-{secrets.token_hex(16)}"
        closed = () if spec.capabilities else await closed_programs(engine, spec.image)
        mounts = (*spec.mounts, Mount(folder.path, place), *closed)
        async with await engine.open(replace(spec, workspace=workspace, mounts=mounts)) as box:
            yield Witness(box, spec.image, folder, place, settings)
    finally:
        await asyncio.to_thread(folder.close)


async def closed_programs(engine: Engine, image: str | None) -> tuple[Mount, ...]:
    """Return the mounts that close the programs of a box; none where boxes do not start with them.

    Who runs a program that he may not read is closed to others of the same user, as the kernel has it: they neither
    read nor write its memory, its environment and its descriptors. So shells and the like, which run others and then
    decide, are covered by copies that can be run and not read.

    Args:
        engine: Runs the box; it makes the copies once per image.
    """
    made = engine.closed_programs.get(image)
    if made is None:
        made = engine.closed_programs[image] = asyncio.ensure_future(_closed(engine, image))
    return await asyncio.shield(made)


async def _closed(engine: Engine, image: str | None) -> tuple[Mount, ...]:
    copies = Workspace(engine.new_workspace(image).path)  # it goes with the engine
    try:
        async with await engine.open(BoxSpec(image=image)) as box:
            said = await box.run(Command(("/bin/sh", "-c", _COPY)))
            mounts = tuple(_copied(said.stdout.decode(errors="replace"), box.workspace, copies))
        async with await engine.open(BoxSpec(image=image, mounts=mounts)) as box:
            tried = await box.run(Command(("/bin/sh", "-c", "sh -c :")))
    except SandboxError:
        return ()
    return mounts if tried.exit_code == 0 else ()


def _copied(said: str, source: Workspace, target: Workspace) -> Iterator[Mount]:
    """Yield a mount for each program, whatever it is called by."""
    done = set()
    for line in said.splitlines():
        name, _, path = line.partition(" ")
        data = source.get(name, limit_bytes=_LARGEST_PROGRAM) if name in _CLOSED.split() else None
        # A script cannot be read by what runs it.
        if path.startswith("/") and path not in done and data is not None and data.startswith(_ELF):
            done.add(path)
            target.put(name, data, mode=0o111)
            yield Mount(Path(target.path, name), path)


def lay_out(workspace: Workspace, planned: Sequence[PlannedFile]) -> None:
    """Copy planned files into a workspace; whatever stands in their way is replaced.

    Raises:
        SandboxError: One of them cannot be read or written, or has changed since.
    """
    for item in planned:
        if item.is_folder and item.target != ".":
            workspace.put_folder(item.target, mode=item.mode | 0o700)
        elif not item.is_folder:
            if item.source.stat().st_size != item.size:
                raise SandboxError(f"{item.target}: the file has changed since it was planned")
            workspace.put_tree(item.source, item.target)


def system_free(stated: str) -> str | None:
    """Return a workdir as an absolute path; None where a workspace there would hide a part of the system."""
    path = "/" + posixpath.normpath(posixpath.join("/", stated)).lstrip("/")
    return None if path in _SYSTEM else path


@cache
def _source(name: str) -> str:
    return files(_FOLDER).joinpath(f"{name}.py").read_text(encoding="utf-8")

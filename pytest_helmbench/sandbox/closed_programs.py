"""Shells and the like that cannot be looked into while they judge what they start.

Who runs a program that he may not read is closed to others of the same user, as the kernel has it: they neither read
nor write its memory, its environment and its descriptors. So the programs of a box that run others and then decide
are covered by copies that can be run and not read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from pytest_helmbench.sandbox.box import BoxSpec, Command, Engine, Mount
from pytest_helmbench.sandbox.workspace import SandboxError, Workspace

_NAMES = "sh bash dash ash zsh ksh mksh busybox make perl awk find xargs timeout"
_COPY = f"""
for name in {_NAMES}; do
  file=$(command -v "$name") && file=$(readlink -f "$file") && cp "$file" "./$name" && echo "$name $file"
done
exit 0
"""
_LARGEST_BYTES = 16 * 1024 * 1024
_ELF = b"\x7fELF"


async def closed_programs(engine: Engine, image: str | None) -> tuple[Mount, ...]:
    """Return the mounts that close the programs of a box; none where boxes do not start with them.

    Args:
        engine: Runs the box; it makes the copies once per image.
        image: Of the box.
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
        data = source.get(name, limit_bytes=_LARGEST_BYTES) if name in _NAMES.split() else None
        # A script cannot be read by what runs it.
        if path.startswith("/") and path not in done and data is not None and data.startswith(_ELF):
            done.add(path)
            target.put(name, data, mode=0o111)
            yield Mount(Path(target.path, name), path)

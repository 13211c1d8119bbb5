"""Seconds of a task folder that does nothing, beside the same engine commands by hand: `python tests/perf/boxes.py`."""

from __future__ import annotations

import asyncio
import io
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFamily, say_only
from pytest_helmbench.benchmarks.packs.families.registry import family_of
from pytest_helmbench.benchmarks.packs.format.pack_loader import load_pack
from pytest_helmbench.benchmarks.packs.row_tools import PackSettings, RowTools, Sandboxes
from pytest_helmbench.benchmarks.packs.task import PackRule
from pytest_helmbench.core.granted import NOT_ALLOWED, Granted
from pytest_helmbench.core.outcome import Verdict

_IMAGE = "docker.io/library/python:3.12-slim"
_PAIRS = 12
_TOML = f"""artifacts = ["/app/answer.txt"]
[verifier]
environment_mode = "separate"
[environment]
docker_image = "{_IMAGE}"
workdir = "/"
cpus = 1
memory_mb = 256
"""
_TEST = "#!/bin/sh\necho 0 > /logs/verifier/reward.txt\n"


def by_hand() -> float:
    """Return the seconds of starting, handing over, judging in a second box and reading its reward."""
    started = time.perf_counter()
    run = (
        "run",
        "-d",
        "--network",
        "none",
        "--memory",
        "256m",
        "--stop-signal",
        "KILL",
        _IMAGE,
        "sleep",
        "99",
    )
    agent = _podman(*run).decode().strip()
    taken = subprocess.run(
        ("podman", "cp", f"{agent}:/app/answer.txt", "-"), capture_output=True, check=False
    )
    judge = _podman(*run).decode().strip()
    _podman("cp", "-", f"{judge}:/", given=_files(taken.stdout))
    _podman("exec", judge, "/tests/test.sh")
    _podman("cp", f"{judge}:/logs/verifier/reward.txt", "-")
    _podman("rm", "-f", agent, judge)
    return time.perf_counter() - started


def _files(taken: bytes) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        folder, test = tarfile.TarInfo("logs/verifier"), tarfile.TarInfo("tests/test.sh")
        folder.type, folder.mode, test.mode, test.size = tarfile.DIRTYPE, 0o777, 0o755, len(_TEST)
        archive.addfile(folder)
        archive.addfile(test, io.BytesIO(_TEST.encode()))
    assert not taken, "the box is untouched"
    return written.getvalue()


def _podman(*words: str, given: bytes = b"") -> bytes:
    return subprocess.run(("podman", *words), input=given, capture_output=True, check=True).stdout


async def main() -> None:
    """Measure in pairs, and print the median of each and of the ratios."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "tasks", "idle")
        (folder / "tests").mkdir(parents=True)
        (folder / "task.toml").write_text(_TOML)
        (folder / "instruction.md").write_text("Do nothing.\n")
        (folder / "tests" / "test.sh").write_text(_TEST)
        (folder / "tests" / "test.sh").chmod(0o755)
        pack = load_pack(folder.parent)
        sandboxes = Sandboxes(Granted("podman"), pull=NOT_ALLOWED, note=print)
        tools = RowTools(replace(PackSettings(), show_hidden=True), pack.files, sandboxes)
        task = pack.task(pack.rows[0])
        family = family_of(task)
        assert isinstance(family, AgentFamily)
        pairs = []
        try:
            for _ in range(_PAIRS + 1):
                started = time.perf_counter()
                found = await family.finding(await family.row(PackRule(task), tools), say_only, tools)
                assert found.verdict is Verdict.FAILED, found
                pairs.append((time.perf_counter() - started, by_hand()))
        finally:
            await sandboxes.close()
    ours, hand = (statistics.median(side) for side in zip(*pairs[1:], strict=True))
    ratio = statistics.median(one / two for one, two in pairs[1:])
    print(f"a task that does nothing: {ours:.2f} s, by hand {hand:.2f} s, ratio {ratio:.2f}")


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

"""The engine with gVisor: its command line with a stand-in, and in earnest where there is a `runsc`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from engines import IMAGE, Running

from pytest_helmbench.core.granted import NOT_ALLOWED, Granted
from pytest_helmbench.sandbox.box import BoxSpec, Command, Unavailable
from pytest_helmbench.sandbox.detection import find_engine

_RECORDS = """#!/bin/sh
echo "$@" >> {told}
case "$1" in info) echo true;; esac
"""


def test_containers_are_started_with_the_runtime_and_everything_else_as_ever(
    bwrap: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    for name in ("podman", "runsc"):
        (tmp_path / name).write_text(_RECORDS.format(told=told))
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    async def use() -> str:
        engine = await find_engine(Granted("gvisor"), pull=NOT_ALLOWED)
        assert not isinstance(engine, Unavailable)
        try:
            async with await engine.open(BoxSpec(image=IMAGE)) as box:
                await box.run(Command(("true",)))
            return engine.name
        finally:
            await engine.close()

    assert bwrap.wait(use()) == "gvisor"
    started = [line for line in told.read_text().splitlines() if line.endswith(f"{IMAGE}")]
    runtime = f"--runtime {tmp_path / 'runsc'} --runtime-flag network=none run --name "
    assert any(line.startswith(runtime) for line in started)
    assert all("--cap-drop ALL" in line and "--network none" in line for line in started if " run " in line)


def test_without_runsc_the_reason_is_said(bwrap: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert bwrap.wait(find_engine(Granted("gvisor"), pull=NOT_ALLOWED)) == Unavailable(
        "runsc is not installed"
    )


@pytest.mark.skipif(
    shutil.which("runsc") is None and "HELMBENCH_TESTS_RUNSC" not in os.environ,
    reason="there is no runsc; HELMBENCH_TESTS_RUNSC names the folder of one",
)
def test_code_sees_the_kernel_of_gvisor(
    bwrap: Running, podman: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{os.environ.get('HELMBENCH_TESTS_RUNSC', '/nowhere')}")

    async def use() -> bytes:
        engine = await find_engine(Granted("gvisor"), pull=NOT_ALLOWED)
        assert not isinstance(engine, Unavailable)
        try:
            async with await engine.open(BoxSpec(image=IMAGE)) as box:
                box.workspace.put("data", b"given")
                script = "cat data /proc/version; echo made > made"
                ended = await box.run(Command(("sh", "-c", script)))
                return ended.stdout + (box.workspace.get("made", limit_bytes=9) or b"")
        finally:
            await engine.close()

    said = bwrap.wait(use())
    assert said.startswith(b"givenLinux version 4.4.0")
    assert said.endswith(b"made\n")

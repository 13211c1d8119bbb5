"""Real sandboxes for tests: one engine of each kind for the whole session, on a loop in a thread as in real use."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import pytest
from waiting import until

from pytest_helmbench.core.granted import NOT_ALLOWED, Granted
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.sandbox.box import Box, BoxSpec, Command, Ended, Engine, Limits, Unavailable
from pytest_helmbench.sandbox.detection import find_engine

T = TypeVar("T")

IMAGE = "docker.io/library/python:3.12-slim"
"""The one image of all tests; `.ci/run` makes it, with Python and git in it."""


@dataclass(frozen=True)
class Running:
    """An engine and the loop it runs on.

    Args:
        engine: As found.
        loop: In a thread of its own.
        image: What boxes are made of; None for this machine's programs.
    """

    engine: Engine
    loop: LoopThread
    image: str | None

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and return its result."""
        return self.loop.run(coroutine)

    def open(self, **spec: Any) -> Box:
        """Make a box; tests close it with its workspace."""
        return self.wait(self.engine.open(BoxSpec(image=self.image, **spec)))

    def run(self, box: Box, *argv: str, stdin: bytes = b"", **limits: Any) -> Ended:
        """Run a command in a box."""
        return self.wait(box.run(Command(argv, stdin=stdin, limits=Limits(**limits))))


def containers(mark: str) -> list[str]:
    """Return the ids of podman's containers whose command holds a text."""
    listed = subprocess.run(
        ["podman", "ps", "--all", "--no-trunc", "--format", "json"],
        capture_output=True,
        check=True,
        text=True,
    )
    return [one["Id"] for one in json.loads(listed.stdout or "[]") if mark in " ".join(one["Command"] or ())]


def folder_of_image(running: Running) -> str:
    """Return a folder of the image with an `__init__.py`, which no program of ours imports."""
    box = running.open()
    code = "import os, wsgiref; print(os.path.dirname(wsgiref.__file__))"
    return running.run(box, box.python, "-c", code).stdout.decode().strip()


def missing(what: str) -> NoReturn:
    """Skip a test for want of a system package; fail where everything ought to be there."""
    if os.environ.get("HELMBENCH_TESTS_STRICT"):
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def engine_loop() -> Iterator[LoopThread]:
    """The loop of all engines."""
    loop = LoopThread()
    yield loop
    loop.close()


def _engine(loop: LoopThread, mode: str, image: str | None) -> Iterator[Running]:
    found = loop.run(find_engine(Granted(mode), pull=NOT_ALLOWED))
    if isinstance(found, Unavailable):
        missing(found.reason)
    obstacle = loop.run(found.obstacle(image))
    if obstacle is not None:
        loop.run(found.close())
        missing(obstacle.reason)
    yield Running(found, loop, image)
    loop.run(found.close())


@pytest.fixture(scope="session")
def bwrap(engine_loop: LoopThread) -> Iterator[Running]:
    """Bubblewrap."""
    yield from _engine(engine_loop, "bwrap", None)


@pytest.fixture(scope="session")
def podman(engine_loop: LoopThread) -> Iterator[Running]:
    """Podman with the shared image."""
    yield from _engine(engine_loop, "podman", IMAGE)


@pytest.fixture(scope="module")  # tests of other files must not find its DOCKER_HOST
def docker(engine_loop: LoopThread, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The docker command line: over a real daemon, or over podman's docker-compatible service."""
    if shutil.which("docker") is None:
        missing("docker is not installed")
    socket = tmp_path_factory.mktemp("docker") / "socket"
    with pytest.MonkeyPatch.context() as patch, _service(socket) as started:
        if started:
            patch.setenv("DOCKER_HOST", f"unix://{socket}")
        yield from _engine(engine_loop, "docker", IMAGE)


@contextmanager
def _service(socket: Path) -> Iterator[bool]:
    """Serve docker's interface with podman unless a daemon is there."""
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0:
        yield False
        return
    if shutil.which("podman") is None:
        missing("neither a docker daemon nor podman is here")
    service = subprocess.Popen(["podman", "system", "service", "--time", "0", f"unix://{socket}"])
    try:
        until(socket.exists, "podman listens")
        yield True
    finally:
        service.terminate()
        service.wait()

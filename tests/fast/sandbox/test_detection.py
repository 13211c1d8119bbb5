"""The sandbox engines that there are, their order, and what one more takes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_helmbench.core.granted import NOT_ALLOWED, Granted
from pytest_helmbench.options.declarations import OPTIONS
from pytest_helmbench.sandbox import engines
from pytest_helmbench.sandbox.box import Unavailable
from pytest_helmbench.sandbox.detection import AUTO, NO_SANDBOX, find_engine, image_engines, sandbox_engines

_ONE_MORE = """
from pytest_helmbench.sandbox.box import EngineKind, Unavailable

async def _find(kind, pull):
    return Unavailable(f"{kind.name}: pull is {pull.value}")

ENGINE = EngineKind(name="jail", finder=_find, runs_images=True, auto_place=0)
"""


@pytest.fixture
def jail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An engine more, whose module stands beside the others, and none of the others on PATH."""
    (tmp_path / "jail.py").write_text(_ONE_MORE)
    monkeypatch.setattr(engines, "__path__", [*engines.__path__, str(tmp_path)])
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox_engines.cache_clear()
    yield
    sandbox_engines.cache_clear()


def test_auto_takes_the_engines_in_their_order() -> None:
    assert [kind.name for kind in image_engines()] == ["docker", "podman"]
    assert next(kind.name for kind in sandbox_engines() if kind.runs_images) == "gvisor"
    assert [kind.name for kind in sandbox_engines() if not kind.runs_images] == ["bwrap"]
    assert all(kind.auto_place is not None for kind in sandbox_engines())


@pytest.mark.usefixtures("jail")
def test_an_engine_is_a_module_among_the_engines() -> None:
    found = asyncio.run(find_engine(Granted("jail"), pull=Granted(value=True)))
    assert found == Unavailable("jail: pull is True")
    assert asyncio.run(find_engine(Granted(AUTO), pull=NOT_ALLOWED)) == Unavailable(
        "no sandbox: jail: pull is False; docker is not installed;"
        " podman is not installed; bwrap is not installed"
    )
    assert asyncio.run(find_engine(Granted("none"), pull=NOT_ALLOWED)) == Unavailable(
        "--helmbench-sandbox=none: code of models runs in a sandbox, or not at all"
    )


def test_the_option_takes_every_engine_by_its_name() -> None:
    option = next(one for one in OPTIONS if one.name == "sandbox")
    taken = option.type.wanted.removeprefix("one of ").split(", ")
    assert sorted(taken) == sorted([AUTO, NO_SANDBOX, *(kind.name for kind in sandbox_engines())])

"""Ids of items as people type them: letters that the printed form escapes, and the codes that are near a wrong one."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pytest

from pytest_helmbench.benchmarks.places import benchmark_root
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.engine.job import escaped_id
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.run.library import Library

_MOST_SHOWN = 3
_LEAST_ALIKE = 0.5


class TypedIds:
    """Items that the command line names in files of benchmarks.

    Args:
        config: Of the session; its arguments get the names in their printed form, the one that items have.
        settings: Of the session.
        library: The benchmarks.
    """

    def __init__(self, config: pytest.Config, settings: Settings, library: Library) -> None:
        self._settings = settings
        self._library = library
        self._typed: list[tuple[Path, str]] = []
        config.args[:] = [self._printed(config.invocation_params.dir, argument) for argument in config.args]

    def _printed(self, start: Path, argument: str) -> str:
        """Return an argument with the printed name of the item that it names, if it names one of ours."""
        path, colons, item = argument.partition("::")
        place = start / path
        if not item or place.suffix == ".py" or benchmark_root(place) is None:
            return argument
        self._typed.append((place, item))
        return f"{path}{colons}{escaped_id(item)}"

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        """Say which codes are near where an item is not found."""
        try:
            return (yield)
        except pytest.UsageError as error:
            near = [*self._near()]
            if not near or not any("not found: " in str(part) for part in error.args):
                raise
            raise pytest.UsageError(*error.args[:-1], "\n".join((str(error.args[-1]), *near))) from None

    def _near(self) -> Iterator[str]:
        for path, item in self._typed:
            try:
                loaded = self._library.of_file(path)
            except HelmbenchError:
                continue
            if loaded is None:
                continue
            jobs = [*loaded.jobs(path, "", self._settings.repeat)]
            names = {job.code: f"{job.code}[{job.model_id}]" for job in reversed(jobs)}
            if any(job.name == escaped_id(item) for job in jobs) or ("[" not in item and item in names):
                continue
            codes = (item, item.rpartition("[")[0] or item)
            near = [code for code in codes if code in names][:1]
            near = near or get_close_matches(codes[1], names, _MOST_SHOWN, _LEAST_ALIKE)
            if near:
                shown = " or ".join(repr(scrub(names[one])) for one in near)
                yield f"  hint: did you mean {shown}?"

"""The kinds of benchmark that there are: ours, and those that other distributions register by entry point."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from pytest_helmbench.benchmarks.bench_packs.places import PLACES as BENCH_PACKS
from pytest_helmbench.benchmarks.kind import KindPlaces
from pytest_helmbench.benchmarks.packs.places import PLACES as PACKS
from pytest_helmbench.benchmarks.python_tests.places import PLACES as PYTHON_TESTS
from pytest_helmbench.benchmarks.scenario_trees.places import PLACES as SCENARIO_TREES
from pytest_helmbench.core.problem import HelmbenchError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from pathlib import Path

    from pytest_helmbench.benchmarks.kind import Authoring, BenchmarkKind


ENTRY_POINTS = "pytest_helmbench.kinds"
"""The group of entry points whose values are `KindPlaces`."""

_OURS = (BENCH_PACKS, PACKS, SCENARIO_TREES, PYTHON_TESTS)
"""In the order in which they are asked whether a folder is theirs."""


class KindError(HelmbenchError):
    """A kind of benchmark that another distribution registers cannot be used."""


@cache
def all_places() -> tuple[KindPlaces, ...]:
    """Return the places of every kind, ours first; looked up once per process.

    Raises:
        KindError: An entry point names nothing that can be used.
    """
    known = {places.name: places for places in _OURS}
    for entry in entry_points(group=ENTRY_POINTS):
        places = _registered(entry)
        if known.setdefault(places.name, places) is not places:
            raise KindError(
                f"{_name(entry)}: the kind {places.name!r} is registered twice\n"
                "  hint: uninstall one of the distributions that register it"
            )
    return tuple(known.values())


def places_of(root: Path) -> KindPlaces | None:
    """Return the places of the kind that a folder is a benchmark of; None for a folder that is none."""
    return next((places for places in all_places() if places.detect(root)), None)


def meant_places(root: Path) -> KindPlaces | None:
    """Return the places of the kind that an unfinished benchmark was meant as; None where no file tells."""
    return next((places for places in all_places() if places.is_meant(root)), None)


def authoring_at(root: Path) -> Authoring:
    """Import what a kind does for authors, for the benchmark at a folder, or for what was meant as one.

    Raises:
        KindError: It is not a benchmark.
    """
    places = places_of(root) or meant_places(root)
    if places is None:
        raise KindError(f"{root} is not a benchmark of an installed kind\n  hint: name another folder")
    return authoring_of(places)


def authoring_of(places: KindPlaces) -> Authoring:
    """Import what a kind does for authors."""
    authoring: Authoring = import_module(places.authoring).AUTHORING
    return authoring


@cache
def kind_of(places: KindPlaces) -> BenchmarkKind:
    """Import a kind."""
    kind: BenchmarkKind = import_module(places.module).KIND
    return kind


def places_named(name: str) -> KindPlaces:
    """Return the places of the kind of a benchmark on record, by `benchmarks.kind`.

    Raises:
        KindError: It is not installed here.
    """
    found = next((places for places in all_places() if places.name == name), None)
    if found is None:
        known = ", ".join(sorted(places.name for places in all_places()))
        raise KindError(
            f"{name!r} is not a kind of benchmark that is installed\n"
            f"  hint: install the distribution that registers it; known: {known}"
        )
    return found


def _registered(entry: EntryPoint) -> KindPlaces:
    try:
        found = entry.load()
    except Exception as error:
        raise KindError(
            f"{_name(entry)} cannot be loaded: {type(error).__name__}: {error}\n"
            "  hint: mend or uninstall the distribution that registers it"
        ) from error
    if not isinstance(found, KindPlaces):
        raise KindError(
            f"{_name(entry)}: {entry.value} is of type {type(found).__name__}\n"
            "  hint: it must be a pytest_helmbench.benchmarks.kind.KindPlaces"
        )
    return found


def _name(entry: EntryPoint) -> str:
    distribution = f" of {entry.dist.name}" if entry.dist is not None else ""
    return f"entry point {entry.name!r}{distribution} in {ENTRY_POINTS}"

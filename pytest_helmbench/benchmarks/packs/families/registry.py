"""The families that are known here, by name. A family is imported when the first of its rows is met."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from pytest_helmbench.benchmarks.packs.families.family import Family
from pytest_helmbench.benchmarks.packs.task import PackTask

FAMILY_NAMES = (
    "multiple_choice",
    "short_answer",
    "free_response",
    "code_completion",
    "repo_patch",
    "terminal_task",
)
"""Each is a package here that has the object as `FAMILY`."""


def family_named(name: str) -> Family | None:
    """Return a family; None for one that is not known here."""
    return _imported(name) if name in FAMILY_NAMES else None


def family_of(task: PackTask) -> Family | None:
    """Return the family of a row; None for one that is not known here."""
    return family_named(task.task_type)


@cache
def _imported(name: str) -> Family:
    family: Family = import_module(f"{__package__}.{name}").FAMILY
    return family

"""A benchmark as authors read it: what the commands `check`, `list`, `prompt` and `run-*` ask a kind for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pytest_helmbench.core.case import Case
    from pytest_helmbench.core.problem import Problem


class BrokenCaseError(HelmbenchError):
    """A case that was named, and cannot be read."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings of a check of a benchmark.

    Args:
        healthy: What of it can run: its name and counts.
        errors: In file order; `warnings` likewise.
        stakes: What its cases weigh; empty where all weigh the same.
        broken: How many cases cannot run, in words; empty for none.
        attacks: How many attacks passed, in words; empty where none was tried.
    """

    healthy: str
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    stakes: tuple[Stake, ...] = ()
    broken: str = ""
    attacks: str = ""


class Stake(NamedTuple):
    """The weight of a case: behaviour, its weight, the perturbation, and severity points of all criteria."""

    behaviour: str
    weight: float
    unit: str
    points: int


@dataclass(frozen=True, slots=True)
class Listing:
    """The table of a benchmark.

    Args:
        title: Name and version.
        head: Titles of the columns.
        left: Columns that stand to the left, by title.
        rows: One per scenario, row or test, as many cells as titles.
        notes: Lines below: totals, and what is broken.
        records: The same rows for programs, in JSON types.
    """

    title: str
    head: tuple[str, ...]
    left: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: tuple[str, ...]
    records: Sequence[dict[str, object]]


@dataclass(frozen=True, slots=True)
class CaseRef:
    """An item or file that pytest can run.

    Args:
        path: The file it is collected from.
        code: It, or the scenario that it stands in.
    """

    path: Path
    code: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """The request for a case.

    Args:
        case: Composed; None where only the benchmark's own code knows its requests.
        lines: What is shown in place of such a case.
        refusal: Why there is no request body to show, for an error; with a hint.
    """

    case: Case | None
    lines: tuple[str, ...] = ()
    refusal: str = ""


class ReadBenchmark(Protocol):
    """A benchmark of any kind as authors read it. No model is asked."""

    @property
    def root(self) -> Path:
        """Its folder."""

    @property
    def is_selected_by_code(self) -> bool:
        """Whether `--helmbench-select` chooses among its cases; else they are named by node id."""

    def listing(self) -> Listing:
        """Return its table."""

    def prompt(self, code: str, system_prompt: str | None) -> Prompt | None:
        """Return what would be sent for a case; None where it has no such case.

        Raises:
            BrokenCaseError: The case belongs to something that is broken.
            HelmbenchError: It cannot be read.
        """

    def near(self, code: str) -> Iterable[str]:
        """Return the codes that may have been meant by one that it does not have."""

    def first_cases(self) -> Sequence[CaseRef]:
        """Return little of everything: the first case of each scenario, family or category."""

    def find(self, code: str) -> CaseRef | None:
        """Return the scenario or row with a code; None where it has none."""

    def scenario_codes(self) -> Iterable[str]:
        """Return what `find` knows."""


class ReadCases:
    """The part of a `ReadBenchmark` whose cases are named by node id, each found by a code of its own.

    Args:
        cases: In order, each with its family or category.
    """

    is_selected_by_code = False

    def __init__(self, cases: Iterable[tuple[CaseRef, str]]) -> None:
        self._cases = {case.code: (case, group) for case, group in cases}

    def near(self, _code: str) -> Iterable[str]:
        """Return the codes of all."""
        return self._cases

    def first_cases(self) -> Sequence[CaseRef]:
        """Return the first case of each family or category."""
        found: dict[str, CaseRef] = {}
        for case, group in self._cases.values():
            found.setdefault(group, case)
        return [*found.values()]

    def find(self, code: str) -> CaseRef | None:
        """Return the case with a code."""
        return self._cases[code][0] if code in self._cases else None

    def scenario_codes(self) -> Iterable[str]:
        """Return the codes of all."""
        return self._cases


def counted(number: int, noun: str) -> str:
    """Return `1 row`, `2,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

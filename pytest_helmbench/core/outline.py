"""The outline of a benchmark on record: its pillars, behaviours and scenarios, in values that every kind makes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["BehaviourEntry", "CaseAxes", "Catalogue", "Outline", "PartEntry", "PillarEntry", "ScenarioEntry"]


@dataclass(frozen=True, slots=True)
class PillarEntry:
    """One row of `pillars`."""

    code: str
    name: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class BehaviourEntry:
    """One row of `behaviours`; its code has that of its pillar: `P1-B2`."""

    code: str
    title: str = ""
    description: str = ""
    compliance_criteria: str = ""
    weight: float = 1.0

    @property
    def pillar(self) -> str:
        """`P1` of `P1-B2`."""
        return self.code.partition("-")[0]


@dataclass(frozen=True, slots=True)
class PartEntry:
    """One row of `conditions`, `user_contexts` or `perturbations`.

    Args:
        code: `C1`.
        full_code: `P1-B2-S1-C1`.
        weight: Difficulty of a condition, else severity.
        text: Markdown.
    """

    code: str
    full_code: str
    weight: int
    text: str


@dataclass(frozen=True, slots=True)
class ScenarioEntry:
    """One row of `scenarios`.

    Args:
        code: Unique in what it belongs to: `S1`, or the id of a row.
        full_code: Unique in the benchmark: `P1-B2-S1`, or the id of a row.
        family: How its cases are judged.
        about: What `scenarios.evaluation` keeps: anything that JSON holds, dataclasses too. Of a benchmark without
            behaviours it has `groups`: what the scenario shares with others.
        title: Empty for none.
        behaviour: `P1-B2`; empty where it belongs to no behaviour.
        category: As it is expected; None for none.
        schema: Of the reply, as sent; None for none.
        text: Of its prompt; None for none.
        conditions: In order; `user_contexts` and `perturbations` likewise.
    """

    code: str
    full_code: str
    family: str
    about: object
    title: str = ""
    behaviour: str = ""
    category: str | None = None
    schema: object = None
    text: str | None = None
    conditions: tuple[PartEntry, ...] = ()
    user_contexts: tuple[PartEntry, ...] = ()
    perturbations: tuple[PartEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The rows that describe a benchmark; those on record already may be among them."""

    scenarios: Iterable[ScenarioEntry]
    pillars: Iterable[PillarEntry] = ()
    behaviours: Iterable[BehaviourEntry] = ()


@dataclass(frozen=True, slots=True)
class CaseAxes:
    """What a case is made of, by full code; empty where it has no such axis."""

    scenario: str = ""
    condition: str = ""
    user_context: str = ""
    perturbation: str = ""


class Outline(Protocol):
    """A benchmark of any kind as the record keeps it."""

    @property
    def name(self) -> str:
        """Name of the benchmark."""

    @property
    def version(self) -> str:
        """Version of the benchmark as text; empty for none."""

    @property
    def hash(self) -> str:
        """SHA-256 (hex) over everything that can change a case or a score."""

    @property
    def description(self) -> str:
        """For people; empty for none."""

    @property
    def kind(self) -> str:
        """Name of its kind of benchmark, as `benchmarks.kind` keeps it."""

    def catalogue(self, codes: Iterable[str], /) -> Catalogue:
        """Return the rows that describe it.

        Args:
            codes: Planned cases; what is not needed for them may be left out.
        """

    def axes(self, code: str) -> CaseAxes:
        """Return what a case is made of."""

"""The outline of a benchmark on record: its pillars, behaviours and scenarios, in values that every kind makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from pytest_helmbench.core.light_dataclass import dataclass


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
        full_code: `P1-B2-S1-C1`.
        weight: Difficulty of a condition, else severity.
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
        about: What `scenarios.evaluation` keeps: anything that JSON holds, dataclasses too. A benchmark without
            behaviours has `groups` there: what the scenario shares with others.
        behaviour: `P1-B2`; empty where it belongs to no behaviour.
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
    """The components of a case, by full code; empty where it has no such axis."""

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


@dataclass(frozen=True, slots=True)
class RowRef:
    """Where a healthy row stands; its text is read again when it is needed.

    Args:
        line: 1-based; blank lines count.
        offset: Of its first byte in the file.
        length: Bytes, line end included.
        family: A family's name, or one that is not known here.
        skip_reason: Why it cannot be run, in a sentence; None for a row that can.
        groups: Short values of its metadata that it shares with other rows: `(("subject", "algebra"),)`.
        judged: Its rubric is in words: a marking model decides.
        cluster: What it stands or falls with, a passage for example; None for nothing.
        content: Changes with anything that the row says; empty where that is not all that makes up its case.
    """

    id: str
    path: Path
    line: int
    offset: int
    length: int
    family: str
    skip_reason: str | None
    groups: tuple[tuple[str, str], ...]
    judged: bool = False
    cluster: str | None = None
    content: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class RowOutline:
    """A benchmark of rows as the record keeps it; see `Outline`.

    Args:
        cluster: Metadata key that `RowRef.cluster` is a value of; None for none.
        own_cluster: The key that the benchmark itself names; None for none.
        title: Returns the title of a row; None where rows have none.
        understood: What a session says of it first; empty for nothing.
        is_own: Whether everything on this machine shows questions, answers and replies.
    """

    root: Path
    name: str
    version: str
    description: str
    hash: str
    rows: Mapping[str, RowRef]
    kind: str
    cluster: str | None = None
    own_cluster: str | None = None
    title: Callable[[RowRef], str] | None = None
    understood: str = ""
    is_own: bool = False

    def catalogue(self, codes: Iterable[str]) -> Catalogue:
        """Return the planned rows: a benchmark may have a hundred thousand."""
        return Catalogue(self._entry(self.rows[code]) for code in codes if code in self.rows)

    def axes(self, code: str) -> CaseAxes:
        """Return the row itself."""
        return CaseAxes(scenario=code)

    def _entry(self, ref: RowRef) -> ScenarioEntry:
        about: dict[str, object] = {"type": "row", "groups": dict(ref.groups)}
        if ref.content:
            about["content"] = ref.content
        if self.cluster is not None:
            about |= {"cluster": self.own_cluster, "clusters": {self.cluster: ref.cluster}}
        title = "" if self.title is None else self.title(ref)
        return ScenarioEntry(ref.id, ref.id, ref.family, about, title)


@dataclass(frozen=True, slots=True)
class Scoring:
    """`scoring.yaml`: weights by behaviour code, floors by pillar code, the cap of a breach."""

    weights: Mapping[str, float]
    floors: Mapping[str, float]
    cap: float | None = None

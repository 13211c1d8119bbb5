"""A benchmark whose cases are rows of files, each with an id of its own: what it is, and where the rows stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outline import CaseAxes, Catalogue, ScenarioEntry

__all__ = ["RowOutline", "RowRef"]


@dataclass(frozen=True, slots=True)
class RowRef:
    """Where a healthy row stands; its text is read again when it is needed.

    Args:
        id: Unique in the pack.
        path: Row file.
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
        root: The folder.
        name: Of the benchmark.
        version: As text.
        description: Empty where there is none.
        hash: SHA-256 (hex) over everything that can change a case or a verdict.
        rows: Healthy rows by id.
        kind: Name of the kind.
        cluster: Metadata key that `RowRef.cluster` is a value of; None for none.
        own_cluster: The key that the benchmark itself names; None for none.
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
        return ScenarioEntry(ref.id, ref.id, ref.family, about)

"""A kind's own words in reports: columns, lines and sections beside our numbers, written by every format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Cell


@dataclass(frozen=True, slots=True)
class OwnColumns:
    """The columns that exports have for each result of a kind.

    Args:
        plain: Names of those without texts.
        texts: Names of those that may quote replies, for exports with texts.
    """

    plain: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    def cells(self, words: ResultWords | None, *, with_text: bool) -> dict[str, Cell]:
        """Return the cells of a result by name; None throughout where its kind says nothing of it."""
        names = (*self.plain, *(self.texts if with_text else ()))
        return {name: None if words is None else words.cells.get(name) for name in names}


NO_COLUMNS = OwnColumns()


@dataclass(frozen=True, slots=True)
class ResultWords:
    """The words of a kind about one result.

    Args:
        cells: By name, for `OwnColumns`.
        texts: Title and text of each part that a report with texts shows of a failure.
    """

    cells: Mapping[str, Cell]
    texts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CaseWords:
    """The words of a kind about one result where all of it is shown.

    Args:
        title: Of the case; None where the record does not have it.
        facts: Name and text of what the case is about.
    """

    title: str | None
    facts: tuple[tuple[str, str], ...]
    lines: Sequence[str]
    record: JsonObject


@dataclass(frozen=True, slots=True)
class OwnSection:
    """A part of a report that a kind fills.

    Args:
        lead: Name of the one number or word that stands first.
        note: A sentence on how to read the value.
        head: Titles of a table's columns, the first of which holds text.
        rows: As many cells each, plain text.
        text: Foreign text, for reports with texts; empty for none.
        values: Name and text of other values, without foreign words.
    """

    title: str
    lead: str
    value: str
    note: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: str = ""
    values: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RunWords:
    """The words of a kind about one run.

    Args:
        line: One line, without the name of the run; empty for none.
        said: Likewise, in words that may quote replies: not for CI.
        facts: Name and text of what a run's page says.
        score: What the kind makes of the run, in JSON types, without texts; None for nothing.
        cautions: What must be known before the numbers are believed, one sentence each.
        section: A part of its own in a report; None for none.
    """

    line: str = ""
    said: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    score: JsonObject | None = None
    score_with_text: JsonObject | None = None
    cautions: tuple[str, ...] = ()
    section: OwnSection | None = None
    properties: tuple[tuple[str, str | float], ...] = ()

    def own_score(self, *, with_text: bool) -> JsonObject | None:
        """Return what the kind makes of the run."""
        return self.score_with_text if with_text else self.score

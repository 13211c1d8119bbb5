"""The judges of a run over the same replies: their agreement, and the cases that they disagree on."""

from __future__ import annotations

from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.scoring.judge_agreement import Agreement, agreement
from pytest_helmbench.store.judgement_rows import JudgedCriterion, judged_criteria

__all__ = ["PanelReport", "panel_report"]


@dataclass(frozen=True, slots=True)
class PanelReport:
    """The judges of a run over its replies, those of cases without a verdict among them.

    Args:
        judges: Ids of both, in order.
        agreement: Of their verdicts.
        disputed: What they disagree on, by case in natural order.
    """

    judges: tuple[str, ...]
    agreement: Agreement
    disputed: tuple[JudgedCriterion, ...]


def panel_report(path: Path, run_id: int) -> PanelReport | None:
    """Return what several judges said in a run; None where one alone has judged, or none.

    Raises:
        StoreError: The file is missing or no results file.
    """
    rows = judged_criteria(path, run_id)
    cells = [(row.said[0].passed, row.said[1].passed) for row in rows]
    found = agreement(
        cells.count((True, True)),
        cells.count((True, False)),
        cells.count((False, True)),
        cells.count((False, False)),
    )
    if found is None:
        return None
    names = {said.place: said.judge for row in rows for said in row.said}
    disputed = tuple(row for row in rows if row.disputed)
    return PanelReport(
        judges=tuple(names[place] for place in sorted(names)),
        agreement=found,
        disputed=disputed,
    )

"""The table `judgements`: what each of several marking models said of a criterion of a result."""

from __future__ import annotations

from pathlib import Path

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Judgement
from pytest_helmbench.store.reading import reading
from pytest_helmbench.store.table_rows import made_of, named_rows

_JUDGEMENTS = """
    SELECT results.code, results.repetition, judgements.* FROM judgements
    JOIN results ON results.id = judgements.result_id
    WHERE results.run_id = :run_id AND (:code IS NULL OR results.code = :code)
    ORDER BY judgements.id
"""


@dataclass(frozen=True, slots=True)
class JudgedCriterion:
    """One criterion of one result, and what several judges said of it, in their order."""

    code: str
    repetition: int
    criterion: str
    said: tuple[Judgement, ...]

    @property
    def disputed(self) -> bool:
        """Whether they disagree."""
        return self.said[0].passed != self.said[1].passed


def judged_criteria(path: Path, run_id: int, code: str | None = None) -> tuple[JudgedCriterion, ...]:
    """Return what several judges said in a run, by case in natural order; empty where one alone has judged.

    Args:
        path: Results file.
        run_id: `evaluation_runs.id`.
        code: Only this case.

    Raises:
        StoreError: The file is missing or no results file.
    """
    found: dict[tuple[str, int, str], list[Judgement]] = {}
    with reading(path) as conn:
        for row in named_rows(conn.execute(_JUDGEMENTS, {"run_id": run_id, "code": code})):
            said = made_of(Judgement, row, passed=bool(row["passed"]), of_record=bool(row["of_record"]))
            key = (str(row["code"]), int(str(row["repetition"])), said.criterion)
            found.setdefault(key, []).append(said)
    rows = (JudgedCriterion(*key, tuple(said)) for key, said in found.items() if len(said) > 1)
    return tuple(sorted(rows, key=lambda row: (natural_key(row.code), row.repetition)))

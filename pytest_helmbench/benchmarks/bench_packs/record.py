"""The record of Bench Packs beside the tables of all kinds, and its words in reports and exports."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

from pytest_helmbench.benchmarks.bench_packs.bench_pack import PackScore, ScenarioResult
from pytest_helmbench.benchmarks.bench_packs.report_lines import (
    BENCH_PACK_COLUMNS,
    BENCH_PACK_TEXTS,
    BenchPackCase,
    bench_pack_cells,
    bench_pack_lines,
    bench_pack_record,
    bench_pack_texts,
    extra_rows,
    extra_texts,
    extra_values,
    pack_score_line,
    pack_score_record,
    pack_score_rows,
    pack_words,
    suite_properties,
    total_text,
)
from pytest_helmbench.benchmarks.bench_packs.stored import (
    BenchPackScenario,
    bench_pack_events,
    bench_pack_rows,
    bench_pack_scenarios,
    pack_score,
    plain_rows,
    repetitions_of,
    said_of_judged,
)
from pytest_helmbench.core.kind_words import CaseWords, OwnColumns, OwnSection, ResultWords, RunWords
from pytest_helmbench.store.reading import reading
from pytest_helmbench.store.run_queries import run_detail

__all__ = ["RECORD", "BenchPackRecord"]


class BenchPackRecord:
    """See `KindRecord`."""

    columns = OwnColumns(BENCH_PACK_COLUMNS, BENCH_PACK_TEXTS)
    failures = "failed as"

    def statements(self, conn: sqlite3.Connection, run_id: int) -> Mapping[int, ScenarioResult]:
        """See `KindRecord.statements`."""
        return said_of_judged(conn, run_id)

    def results(
        self, path: Path, run_id: int, code: str | None, *, with_text: bool
    ) -> Mapping[int, ResultWords]:
        """See `KindRecord.results`."""
        with reading(path) as conn:
            found = bench_pack_rows(conn, run_id, code, with_text=with_text)
        return {
            result_id: ResultWords(bench_pack_cells(row), tuple(bench_pack_texts(row)))
            for result_id, row in found.items()
        }

    def case(self, path: Path, run_id: int, code: str) -> Mapping[int, CaseWords]:
        """See `KindRecord.case`."""
        scenarios = (scenario for scenario in bench_pack_scenarios(path, run_id) if scenario.code == code)
        everything = BenchPackCase(next(scenarios, None), bench_pack_events(path, run_id, code))
        with reading(path) as conn:
            rows = bench_pack_rows(conn, run_id, code, with_text=True)
            repetitions = repetitions_of(conn, run_id, code)
        found = {}
        for result_id, repetition in repetitions.items():
            row, case = rows.get(result_id), everything.of(repetition)
            lines = bench_pack_lines(row, case)
            title, facts = _about(case.scenario)
            found[repetition] = CaseWords(title, facts, lines, {"pack": dict(bench_pack_record(row, case))})
        return found

    def run(self, path: Path, run_id: int) -> RunWords | None:
        """See `KindRecord.run`."""
        detail = run_detail(path, run_id)
        if detail is None:
            return None
        score = pack_score(path, run_id)
        untimed = sum(not row.timed for row in plain_rows(path, run_id).values())
        cautions: tuple[str, ...] = ()
        if untimed:
            cases = f"{untimed} case{'' if untimed == 1 else 's'}"
            cautions = (
                f"replies of {cases} came from the record: what their pack says of time is not the model's",
            )
        if score is None:
            return RunWords(cautions=cautions)
        if score.partial:
            cautions = (
                "the pack's own total is not over all of its scenarios",
                *cautions,
            )
        return RunWords(
            line=pack_score_line(score),
            said=pack_words(score),
            facts=_facts(score),
            score=pack_score_record(score, with_text=False),
            score_with_text=pack_score_record(score, with_text=True),
            cautions=cautions,
            section=_section(score),
            properties=tuple(suite_properties(detail.summary.benchmark, detail.summary.model, score)),
        )


RECORD = BenchPackRecord()


def _about(scenario: BenchPackScenario | None) -> tuple[str | None, tuple[tuple[str, str], ...]]:
    if scenario is None:
        return None, ()
    about = {"category": scenario.category, "tags": ", ".join(scenario.tags), "about": scenario.description}
    return scenario.title, tuple((name, " ".join(text.split())) for name, text in about.items())


def _facts(score: PackScore) -> tuple[tuple[str, str], ...]:
    categories = ", ".join(f"{label} {number}" for label, number, _ in pack_score_rows(score))
    return (
        ("pack's own total", total_text(score)),
        ("its categories", categories),
        ("its other values", ", ".join(extra_values(score))),
        ("its words", pack_words(score)),
    )


def _section(score: PackScore) -> OwnSection:
    return OwnSection(
        title="The pack's own scale",
        lead="Total",
        value=total_text(score),
        note="The score above is ours: the share passed.",
        head=("category", "score", "weight"),
        rows=tuple(pack_score_rows(score)),
        text="\n".join(filter(None, (score.summary, *extra_texts(score)))),
        values=tuple(extra_rows(score)),
    )

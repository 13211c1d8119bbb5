"""Stored runs as reports: read from the file, computed, written. Never on the path of a live run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pytest_helmbench.benchmarks.bench_packs.stored import pack_score
from pytest_helmbench.core.outcome import FORM_REASONS
from pytest_helmbench.reports.json_report import report_document
from pytest_helmbench.reports.markdown import markdown_report
from pytest_helmbench.reports.run_report import RunReport
from pytest_helmbench.reports.session_texts import ModelRow
from pytest_helmbench.scoring.breakdown import breakdown, constant_scores
from pytest_helmbench.session.settings import Settings
from pytest_helmbench.session.stored_scores import planned_rows, stored_score, tree_rows
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.plans import load_facts
from pytest_helmbench.store.queries import CostRow, ResultRow, RunDetail, costs, results, run_detail

__all__ = ["json_text", "run_report", "write_reports"]

_JUDGE_RULE = "sqe"


def run_report(path: Path, run_id: int, *, with_text: bool = False) -> RunReport | None:
    """Return a stored run as report values; None when there is no such run.

    Args:
        path: Results file.
        run_id: `evaluation_runs.id`.
        with_text: Also prompts and replies of failures.

    Raises:
        StoreError: The file is missing or no results file.
    """
    detail = run_detail(path, run_id)
    facts = load_facts(path, run_id)
    if detail is None or facts is None:
        return None
    found = results(path, run_id, with_text=with_text)
    spent = costs(path, run_id)
    add_no_context = bool(detail.settings.get("add_no_context"))
    return RunReport(
        detail=detail,
        score=stored_score(path, run_id),
        breakdown=breakdown(planned_rows(facts)),
        constants=constant_scores(tree_rows(facts, add_no_context=add_no_context), facts.scoring),
        titles=facts.titles,
        failures=tuple(row for row in found if row.outcome == "failed"),
        row=_counts(detail, found, spent),
        judge=str(detail.settings.get("judge") or ""),
        judgements=sum(item.rule == _JUDGE_RULE for row in found for item in row.evaluations),
        costs=spent,
        is_pack=facts.rows is not None,
        pack=pack_score(path, run_id),
        untimed=sum(row.hosted is not None and not row.hosted.timed for row in found),
    )


def write_reports(settings: Settings, run_ids: Sequence[int], note: Callable[[str], None]) -> None:
    """Write the reports that a session was asked for.

    Args:
        settings: Of the session.
        run_ids: Its runs; empty in a dry run.
        note: Says something in the summary.
    """
    wanted = {
        path: text
        for path, text in (
            (settings.markdown_report, markdown_report),
            (settings.json_report, json_text),
        )
        if path is not None
    }
    if not wanted:
        return
    if not run_ids:
        names = " and ".join(str(path) for path in wanted)
        note(f"{names}: not written, since nothing was run")
        return
    with_text = settings.with_text
    try:
        reports = [run_report(settings.db, run_id, with_text=with_text) for run_id in run_ids]
        for path, text in wanted.items():
            shown = [report for report in reports if report is not None]
            path.write_text(text(shown, with_text=with_text), encoding="utf-8", newline="\n")
            note(f"report in {path}")
    except StoreError as error:
        note(f"no report: {error}")
    except OSError as error:
        note(f"{error.filename}: the report cannot be written: {error.strerror}")


def json_text(reports: Iterable[RunReport], *, with_text: bool = False) -> str:
    """Return the JSON report as text; ASCII, so that no terminal or parser minds what replies hold."""
    return json.dumps(report_document(reports, with_text=with_text), indent=1) + "\n"


def _counts(detail: RunDetail, found: Iterable[ResultRow], spent: Iterable[CostRow]) -> ModelRow:
    """Return the counts of a run as its session has shown them."""
    parses: Counter[str | None] = Counter()
    neutral_wrong = 0
    for row in found:
        parses.update(item.parse for item in row.evaluations)
        neutral_wrong += row.neutral and row.outcome == "failed"
    calls: Counter[str] = Counter()
    for cost in spent:
        calls[cost.purpose] += cost.calls
    return ModelRow(
        model=detail.summary.model,
        passed=detail.count("passed"),
        failed=detail.count("failed"),
        errors=detail.count("error"),
        skipped=detail.count("skipped"),
        calls=calls.total() - calls["judge"],
        replays=sum(cost.cached_answers for cost in spent),
        judge_calls=calls["judge"],
        tokens=sum((cost.prompt_tokens or 0) + (cost.completion_tokens or 0) for cost in spent),
        known_cost_usd=sum(cost.known_cost_usd for cost in spent),
        unknown_costs=sum(cost.unknown_costs for cost in spent),
        form_faults=sum(count for (_, reason), count in detail.outcomes.items() if reason in FORM_REASONS),
        strict=parses["strict"],
        recovered=parses["recovered"],
        neutral_wrong=neutral_wrong,
    )

"""The summary of a session on pytest's terminal."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pytest_helmbench.benchmarks.kind_record import record_of
from pytest_helmbench.core.kind_words import RunWords
from pytest_helmbench.gateway.providers.servers import is_embedded
from pytest_helmbench.pytest_side.announcement import run_price
from pytest_helmbench.pytest_side.ci import in_ci
from pytest_helmbench.pytest_side.exit_code import planned_names, run_names, scores_by_name
from pytest_helmbench.reports.panel_tables import panel_sentence
from pytest_helmbench.reports.run_facts import stand_in_text
from pytest_helmbench.reports.score_lines import score_lines
from pytest_helmbench.reports.session_start import DryRow, dry_run_lines
from pytest_helmbench.reports.session_summary import (
    cut_lines,
    judging_lines,
    model_table,
    resumed_tables,
    skip_lines,
    speed_line,
    unstated_lines,
)
from pytest_helmbench.reports.tables import reasons_text
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.results.run_report import measured_speed, panel_report
from pytest_helmbench.run.coordinator import Coordinator, whole_runs
from pytest_helmbench.run.plan import Plan
from pytest_helmbench.run.selecting import sample_text
from pytest_helmbench.store.fault import StoreError

_WARNINGS_SHOWN = 10


def session_lines(coordinator: Coordinator, broken: int, start: Path, *, verbose: bool) -> list[str]:
    """Return the summary of a session.

    Args:
        coordinator: Of the session, closed.
        broken: Erring items that stand for broken files.
        start: Where pytest was started: paths are shown from there.
        verbose: Also the scores of behaviours.
    """
    plan = coordinator.book.plan
    if plan is None or not (plan.dry or coordinator.book.tallies):
        # It ended before anything could be asked.
        return [*_sample_lines(coordinator), *_warning_lines(coordinator, start), *coordinator.notes]
    lines = _dry_lines(plan, coordinator) if plan.dry else _run_lines(plan, coordinator, verbose=verbose)
    if broken:
        whose = "files or rows: none of their cases" if broken > 1 else "file or row: none of its cases"
        lines.append(f"{broken} broken {whose} ran (see ERRORS)")
    lines += _warning_lines(coordinator, start)
    lines += coordinator.notes
    return [*lines, coordinator.goes_on] if coordinator.goes_on else lines


def _run_lines(plan: Plan, coordinator: Coordinator, *, verbose: bool) -> list[str]:
    rows = _counts_by_model(plan, coordinator)
    whole = whole_runs(coordinator)
    lines = model_table(rows) if whole is None else resumed_tables(whole, rows)
    lines += [*cut_lines(whole or rows), *judging_lines(whole or rows)]
    unstated = unstated_lines(rows, many=True)
    scores = {name: score for name, score in scores_by_name(coordinator).items() if score is not None}
    done = sum(counts.judged_now for counts in rows.values())
    if scores and any(counts.judged for counts in rows.values()):
        lines += ["", *score_lines(scores, behaviours=verbose, warnings=False), *unstated, ""]
    else:
        lines += unstated
    names = run_names(coordinator)
    shows_text = coordinator.settings.shown_texts.any or not in_ci()
    for run_id, words in kind_words(plan, coordinator):
        lines += [f"{names[run_id]}: {words.line}"] if words.line else []
        lines += [f"  it says: {words.said}"] if words.said and shows_text else []
    lines += [
        f"{model}: not judged: {reasons_text(counts.reasons)}"
        for model, counts in rows.items()
        if any(counts.reasons.values())
    ]
    lines += skip_lines(rows)
    lines += _unanswered_lines(coordinator)
    lines += [f"{model} was stopped: {sentence}" for model, sentence in coordinator.stopped_models.items()]
    lines += _judge_lines(plan, coordinator)
    lines += _speed_lines(plan, coordinator)
    wall_s = max((coordinator.ended or time.perf_counter()) - coordinator.started, 1e-3)
    ids = ", ".join(str(run_id) for run_id in coordinator.book.tallies)
    lines.append(
        f"{done} judged in {wall_s:.1f} s, {done / wall_s:.1f} per second; run {ids} in {coordinator.book.db}"
    )
    store = coordinator.book.store
    if store is not None and store.fault is not None:
        lost = f" (rows lost: {store.dropped})" if store.dropped else ""
        lines.append(f"NOT ALL IS STORED: {store.fault}{lost}")
    elif store is not None and store.displaced is not None:
        lines.append(f"STOPPED: {store.displaced}")
    return lines


def _speed_lines(plan: Plan, coordinator: Coordinator) -> Iterator[str]:
    """Yield how fast models have answered, those apart that are no more than a floor."""
    ids = coordinator.book.run_ids
    for model in dict.fromkeys(run.model for run in plan.runs):
        own = [ids[run.key] for run in plan.runs if run.model == model and run.key in ids]
        if own and not is_embedded(model):
            with suppress(StoreError):  # said elsewhere
                yield from filter(None, (speed_line(model, measured_speed(coordinator.book.db, own)),))


def _unanswered_lines(coordinator: Coordinator) -> list[str]:
    """Return what the budget counts for calls that nobody knows the cost of."""
    budget = coordinator.limiter.budget if coordinator.limiter is not None else None
    if budget is None or not budget.unanswered:
        return []
    calls = "1 call was" if budget.unanswered == 1 else f"{budget.unanswered} calls were"
    return [
        f"{calls} sent and not answered, and may be billed: what that cost is unknown; the budget counts"
        f" {budget.unanswered_usd:.4f} USD for it"
    ]


def kind_words(plan: Plan, coordinator: Coordinator) -> Iterator[tuple[int, RunWords]]:
    """Yield what kinds say of the runs of a session; nothing is read for a kind that keeps nothing of its own."""
    store = coordinator.book.store
    run_ids = coordinator.book.run_ids
    for run in plan.runs if store is not None else ():
        run_id = run_ids.get(run.key)
        if run_id is None:
            continue
        kind = coordinator.library.load(Path(run.benchmark)).outline.kind
        try:
            words = record_of(kind).run(coordinator.book.db, run_id)
        except StoreError:
            return  # what could not be stored is said elsewhere
        if words is not None:
            yield run_id, words


def _counts_by_model(plan: Plan, coordinator: Coordinator) -> dict[str, RunCounts]:
    tallies = coordinator.book.tallies
    by_model: dict[str, list[int]] = {}
    run_ids = coordinator.book.run_ids
    for run in plan.runs:
        run_id = run_ids.get(run.key)
        if run_id is not None:
            by_model.setdefault(run.model, []).append(run_id)
    return {model: RunCounts.sum(tallies[run_id] for run_id in runs) for model, runs in by_model.items()}


def _judge_lines(plan: Plan, coordinator: Coordinator) -> list[str]:
    by_model = _counts_by_model(plan, coordinator)
    itself = {
        run.model
        for run in plan.runs
        if run.model in run.judges and (run.judge_calls or by_model.get(run.model, RunCounts()).judge_calls)
    }
    answers: Counter[tuple[str, str]] = Counter()
    for model, counts in by_model.items():
        for (judge, _), replies in counts.answered_by.items():
            if judge is not None:
                answers[model, judge] += replies
    names = run_names(coordinator)
    store = coordinator.book.store
    several = store is not None and store.fault is None and any(len(run.judges) > 1 for run in plan.runs)
    panels = []
    with suppress(StoreError):  # the record that was read a moment ago: said elsewhere
        panels = [(run_id, panel_report(coordinator.book.db, run_id)) for run_id in names] if several else []
    lines = [f"{names[run_id]}: {panel_sentence(panel)}" for run_id, panel in panels if panel is not None]
    lines += [f"warning: {model} judged its own replies" for model in sorted(itself)]
    lines += [
        f"{model}: {stand_in_text(replies, judge)}"
        for (model, judge), replies in answers.items()
        if judge.startswith("baseline/")
    ]
    return lines


def _dry_lines(plan: Plan, coordinator: Coordinator) -> list[str]:
    rows = []
    names = planned_names(coordinator, plan)
    for run in plan.runs:
        span = run_price(run, coordinator)
        rows.append(
            DryRow(
                name=names[run.key],
                model=run.model,
                prompts=run.tests,
                judge_calls=run.judge_calls,
                tokens=run.prompt_tokens + run.judge_prompt_tokens,
                price=None if span is None else (span.low, span.expected, span.high),
                why=run.why_not,
            )
        )
    return [*dry_run_lines(rows, coordinator.settings.dry_run), *_sample_lines(coordinator)]


def _sample_lines(coordinator: Coordinator) -> list[str]:
    """Return what of each benchmark a session asks that asks a sample."""
    return [f"sample of {name}: {sample_text(sample)}" for name, sample in coordinator.library.drawn]


def _warning_lines(coordinator: Coordinator, start: Path) -> list[str]:
    texts = [problem.text(start) for item in coordinator.library.loaded for problem in item.warnings]
    lines = [f"warning: {text}" for text in texts[:_WARNINGS_SHOWN]]
    if len(texts) > _WARNINGS_SHOWN:
        lines.append(f"… and {len(texts) - _WARNINGS_SHOWN} more warnings about the benchmark")
    return lines

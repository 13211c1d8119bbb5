"""The summary of a session on pytest's terminal."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

from pytest_helmbench.benchmarks.kind_record import record_of
from pytest_helmbench.core.kind_words import RunWords
from pytest_helmbench.gateway.providers.servers import is_embedded
from pytest_helmbench.pytest_side.say.announcement import DryRow, dry_run_lines, run_price
from pytest_helmbench.pytest_side.say.ci import in_ci
from pytest_helmbench.pytest_side.say.run_names import (
    names_of_benchmarks,
    planned_names,
    run_names,
    scores_by_name,
)
from pytest_helmbench.pytest_side.say.score_table import (
    SummaryRun,
    best_first,
    chance_line,
    labelled,
    loses_most,
    not_judged_lines,
    numbers_text,
    pace_text,
    score_remarks,
    score_table,
    title_text,
)
from pytest_helmbench.reports.headline import Headline, gate_block
from pytest_helmbench.reports.panel_tables import panel_sentence
from pytest_helmbench.reports.run_facts import (
    answer_doubts,
    cut_lines,
    routine_notes,
    stand_in_text,
    unstated_lines,
)
from pytest_helmbench.reports.score_lines import corrections, score_parts
from pytest_helmbench.reports.tables import count_text
from pytest_helmbench.results.gates import JudgedCases
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.results.run_report import measured_speed, panel_report, tree_constants
from pytest_helmbench.run.coordinator import Coordinator, whole_runs
from pytest_helmbench.run.plan import Plan, PlannedRun
from pytest_helmbench.run.selecting import sample_text
from pytest_helmbench.scoring.breakdown import Speed
from pytest_helmbench.store.fault import StoreError

_SHARD = "shard"
_WARNINGS_SHOWN = 2


def summary_title(coordinator: Coordinator) -> str:
    """Return what stands over the summary: benchmark, cases and models."""
    plan = coordinator.book.plan
    if plan is None or not plan.runs:
        return "helmbench"
    benchmarks = names_of_benchmarks(coordinator, plan)
    models = list(dict.fromkeys(run.model for run in plan.runs))
    cases = plan.tests // (len(models) * coordinator.settings.repeat)
    title = title_text([*benchmarks.values()], cases, models)
    often = f" × {coordinator.settings.repeat} repetitions" if coordinator.settings.repeat > 1 else ""
    share = "" if plan.shard is None else f" · {plan.shard.name}"
    return f"{title}{often}{share}{' · dry run' if plan.dry else ''}"


def session_lines(
    coordinator: Coordinator, broken: int, start: Path, found: Headline | None, *, verbose: bool
) -> list[str]:
    """Return the summary of a session.

    Args:
        coordinator: Of the session, closed.
        broken: Erring items that represent broken files.
        start: Where pytest was started: paths are shown from there.
        found: The headline; None where there is nothing to say.
        verbose: Also the scores of pillars, behaviours and groups.
    """
    plan = coordinator.book.plan
    if plan is None or not (plan.dry or coordinator.book.tallies):
        # It ended before anything could be asked.
        return [*_sample_lines(coordinator), *_warning_lines(coordinator, start), *coordinator.notes]
    gated = found is not None and any(run.holds is not None for run in found.runs)
    lines = (
        _dry_lines(plan, coordinator) if plan.dry else _run_lines(plan, coordinator, found, verbose=verbose)
    )
    if broken:
        whose = "files or rows: none of their cases" if broken > 1 else "file or row: none of its cases"
        lines.append(f"{broken} broken {whose} ran (see ERRORS)")
    lines += _warning_lines(coordinator, start)
    lines += coordinator.notes
    if not plan.dry:
        lines.append(_closing(coordinator, start))
    if found is None or found.holds is None:
        return lines
    return [*lines, *(gate_block(found) if gated else [labelled("next", found.hint)] if found.hint else [])]


def _run_lines(plan: Plan, coordinator: Coordinator, found: Headline | None, *, verbose: bool) -> list[str]:
    tallies = coordinator.book.tallies
    whole = whole_runs(coordinator) or tallies
    rows = {name: whole[run_id] for run_id, name in run_names(coordinator).items()}
    runs = summary_runs(plan, coordinator, whole)
    one_benchmark = len({run.benchmark for run in plan.runs}) == 1
    ordered = best_first(runs) if one_benchmark else runs
    total = RunCounts.sum(whole.values())
    lines = [*cut_lines(rows), *score_table(ordered, one_benchmark=one_benchmark)]
    if one_benchmark:
        lines += filter(None, (chance_line(ordered), loses_most(runs)))
    if verbose:
        scores = {name: one for name, one in scores_by_name(coordinator).items() if one is not None}
        lines += score_parts(scores)
    hint = "" if found is not None and found.holds is not None else coordinator.goes_on
    lines += not_judged_lines(runs, hint)
    lines += _remarks(plan, coordinator, rows)
    neutral = sum(run.score.neutral_rows for run in runs if run.score is not None)
    notes = [f"{count_text(neutral, 'neutral row')}, in no score"] if neutral and total.judged else []
    notes += routine_notes(total)
    notes += [f"{count_text(total.replays, 'answer')} from stored replies"] if total.replays else []
    notes += coordinator.remarks
    if notes and total.judged and coordinator.settings.repeat == 1:
        notes.append("re-run variation not measured (--helmbench-repeat=2)")
    return [*lines, labelled("notes", " · ".join(notes))] if notes else lines


def _remarks(plan: Plan, coordinator: Coordinator, rows: Mapping[str, RunCounts]) -> Iterator[str]:
    """Yield what must be known of single models: faults of form, other models, judges, costs, what kinds say."""
    names = run_names(coordinator)
    yield from unstated_lines(rows)
    for name, score in scores_by_name(coordinator).items():
        if score is not None:
            yield from (f"{name}: {text}" for text in corrections(score))
    shows_text = coordinator.settings.shown_texts.any or not in_ci()
    for run_id, words in kind_words(plan, coordinator):
        said = f"; it says: {words.said}" if words.said and shows_text else ""
        if words.line or said:
            yield f"{names[run_id]}: {words.line}{said}"
    yield from _unanswered_lines(coordinator)
    yield from _panel_lines(plan, coordinator)
    store = coordinator.book.store
    if store is not None and store.fault is not None:
        lost = f" (rows lost: {store.dropped})" if store.dropped else ""
        yield f"NOT ALL IS STORED: {store.fault}{lost}"
    elif store is not None and store.displaced is not None:
        yield f"STOPPED: {store.displaced}"


def _closing(coordinator: Coordinator, start: Path) -> str:
    """Return how many were judged how fast, and where that stands."""
    book = coordinator.book
    done = sum(counts.judged_now for counts in book.tallies.values())
    whole_s = (coordinator.ended or time.perf_counter()) - coordinator.started
    seconds = max(book.span.seconds or whole_s, 1e-3)
    pace = pace_text(done, seconds)
    took = f"{seconds:.1f}" if seconds >= 0.1 else f"{seconds:.3f}"
    judged = f"{done} judged in {took} s{f' ({pace})' if pace else ''}"
    files = [_from(path, start) for path in coordinator.files]
    return " · ".join((judged, f"{numbers_text(book.tallies)} in {_from(book.db, start)}", *files))


def _from(path: Path, start: Path) -> str:
    path = path.absolute()
    return str(path.relative_to(start) if path.is_relative_to(start) else path)


def summary_runs(plan: Plan, coordinator: Coordinator, counts: Mapping[int, RunCounts]) -> list[SummaryRun]:
    """Return the rows of the table of scores, in the order of the plan.

    Args:
        plan: Of the session.
        coordinator: Likewise, closed.
        counts: Of whole runs, by their number.
    """
    book = coordinator.book
    benchmarks, names = names_of_benchmarks(coordinator, plan), planned_names(coordinator, plan)
    is_one_model = len({run.model for run in plan.runs}) == 1 < len(benchmarks)
    constants: dict[str, Fraction | None] = {}
    rows = []
    for run in plan.runs:
        run_id = book.run_ids.get(run.key)
        if run_id is None:
            continue
        tally, scored = counts[run_id], book.scored.get(run_id)
        remarks = [*answer_doubts(run.model_id, tally), *_judge_remarks(run, tally)]
        planned = run.tests - tally.no_cases
        if scored is not None and scored.facts.scope != _SHARD:
            planned = JudgedCases.of(scored.facts).planned
        if scored is not None:
            remarks = [*score_remarks(scored.score, planned - tally.judged), *remarks]
            if run.benchmark not in constants:
                found = tree_constants(scored.facts, add_no_context=coordinator.settings.add_no_context)
                constants[run.benchmark] = found.flags_everything if found.flagging else None
        speed = Speed()
        if not is_embedded(run.model_id):
            with suppress(StoreError):  # said elsewhere
                speed = measured_speed(book.db, (run_id,))
        name = benchmarks[run.benchmark] if is_one_model else names[run.key]
        constant = constants.get(run.benchmark)
        rows.append(SummaryRun(name, tally, planned, scored, constant, speed, tuple(remarks)))
    return rows


def _unanswered_lines(coordinator: Coordinator) -> Iterator[str]:
    """Yield what the budget counts for calls whose cost is unknown."""
    budget = coordinator.limiter.budget if coordinator.limiter is not None else None
    if budget is not None and budget.unanswered:
        calls = "1 call was" if budget.unanswered == 1 else f"{budget.unanswered} calls were"
        yield (
            f"{calls} sent and not answered, and may be billed at an unknown cost;"
            f" the budget counts {budget.unanswered_usd:.4f} USD for it"
        )


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


def _panel_lines(plan: Plan, coordinator: Coordinator) -> Iterator[str]:
    """Yield how far the judges of each run agree, where there are several."""
    store = coordinator.book.store
    if store is None or store.fault is not None or not any(len(run.judges) > 1 for run in plan.runs):
        return
    with suppress(StoreError):  # read a moment ago: said elsewhere
        for run_id, name in run_names(coordinator).items():
            panel = panel_report(coordinator.book.db, run_id)
            if panel is not None:
                yield f"{name}: {panel_sentence(panel)}"


def _judge_remarks(run: PlannedRun, counts: RunCounts) -> Iterator[str]:
    """Yield by whom a run was judged, where that is no judgement of another model."""
    answers = Counter[str]()
    for (judge, _), replies in counts.answered_by.items():
        answers[judge or ""] += replies
    stand_ins = [judge for judge in answers if judge.startswith("baseline/")]
    yield from (stand_in_text(answers[judge], judge) for judge in stand_ins)
    own = {run.model, run.model_id}.intersection(run.judges).difference(stand_ins)
    if own and (run.judge_calls or counts.judge_calls):
        yield "judged its own replies"


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
            )
        )
    return [*dry_run_lines(rows), *_sample_lines(coordinator)]


def _sample_lines(coordinator: Coordinator) -> list[str]:
    """Return what of each benchmark a session asks that asks a sample."""
    return [f"sample of {name}: {sample_text(sample)}" for name, sample in coordinator.library.drawn]


def _warning_lines(coordinator: Coordinator, start: Path) -> list[str]:
    """Return the first warnings about the benchmarks, and how many more there are."""
    texts = [problem.text(start) for item in coordinator.library.loaded for problem in item.warnings]
    more = len(texts) - _WARNINGS_SHOWN
    rest = [f"{more} more warnings: `helmbench check PATH` lists all"] if more > 0 else []
    return [*(f"warning: {text}" for text in texts[:_WARNINGS_SHOWN]), *rest]

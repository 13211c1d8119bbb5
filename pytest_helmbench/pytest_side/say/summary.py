"""The summary of a session on the terminal: one table of scores, what was not judged, what to know."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from pytest_helmbench.benchmarks.kind_record import record_of
from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.kind_words import RunWords
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.scrub import excerpt, scrub
from pytest_helmbench.gateway.providers.servers import is_embedded
from pytest_helmbench.pytest_side.say.announcement import DryRow, after_dry_run, dry_run_lines, run_price
from pytest_helmbench.pytest_side.say.printing import Line, in_ci, shown_path
from pytest_helmbench.pytest_side.say.run_names import (
    names_of_benchmarks,
    planned_names,
    run_names,
    scores_by_name,
)
from pytest_helmbench.reports.comparison_lines import points
from pytest_helmbench.reports.headline import Headline, gate_block
from pytest_helmbench.reports.panel_tables import panel_sentence
from pytest_helmbench.reports.run_cautions import (
    answer_doubts,
    box_sentences,
    cut_sentences,
    routine_notes,
    stand_in_text,
    unstated_sentence,
)
from pytest_helmbench.reports.run_facts import mean_losses
from pytest_helmbench.reports.score_lines import PART_INDENTS, corrections
from pytest_helmbench.reports.standings_tables import pair_sentences
from pytest_helmbench.reports.tables import (
    cost_text,
    count_text,
    labelled,
    listed,
    rate,
    reasons_text,
    share,
    table,
)
from pytest_helmbench.results.gates import JudgedCases
from pytest_helmbench.results.losses import Losses
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.results.run_report import measured_speed, panel_report, run_report, tree_constants
from pytest_helmbench.results.standings import boards
from pytest_helmbench.results.stored_scores import ScoredRun
from pytest_helmbench.run.coordinator import Coordinator, whole_runs
from pytest_helmbench.run.plan import Plan, PlannedRun
from pytest_helmbench.run.selecting import sample_text
from pytest_helmbench.scoring.breakdown import Speed
from pytest_helmbench.scoring.intervals import Interval
from pytest_helmbench.scoring.run_score import FloorState, RunScore
from pytest_helmbench.scoring.thresholds import breach_text
from pytest_helmbench.store.fault import StoreError

_SHARD = "shard"
_WARNINGS_SHOWN = 2
_SKIPS_SHOWN = 2
_MOST_PILLARS = 5
_PARTS_SHOWN = 2
_LONGEST_TITLE = 40
_SPEED = "tokens/s (all)"


def session_lines(
    coordinator: Coordinator,
    broken: int,
    start: Path,
    found: Headline | None,
    *,
    reported: int | None,
    verbose: bool,
    width: int | None,
) -> list[str]:
    """Return the summary of a session.

    Args:
        broken: Number of items that errored for a broken file.
        start: The folder where pytest was started: paths are shown relative to it.
        found: The headline; None where there is nothing to say.
        reported: Judged cases that pytest has counted in an interrupted session; None for all.
        verbose: Add the scores of pillars, behaviours and groups.
        width: Most columns of a row; None for any.
    """
    plan = coordinator.runs.plan
    if plan is None or not (plan.dry or coordinator.runs.tallies):
        # It ended before anything could be asked.
        return [*_sample_lines(coordinator), *_warning_lines(coordinator, start), *coordinator.notes]
    gated = found is not None and any(run.holds is not None for run in found.runs)
    lines = (
        _dry_lines(plan, coordinator, width)
        if plan.dry
        else _run_lines(plan, coordinator, found, verbose=verbose, width=width)
    )
    if broken:
        whose = "files or rows: none of their cases" if broken > 1 else "file or row: none of its cases"
        lines.append(f"{broken} broken {whose} ran (see ERRORS)")
    lines += _warning_lines(coordinator, start)
    lines += coordinator.notes
    if not plan.dry:
        lines.append(_closing(coordinator, start, reported))
    if found is not None and gated:
        return [*lines, *gate_block(found)]
    hint = "" if found is None or found.holds is None else found.hint
    hint = hint or (after_dry_run(plan, coordinator) if plan.dry else "")
    lines += [labelled("cause", found.cause_in_full)] if found is not None and found.cause_in_full else []
    return [*lines, labelled("next", hint)] if hint else lines


def _run_lines(
    plan: Plan, coordinator: Coordinator, found: Headline | None, *, verbose: bool, width: int | None
) -> list[str]:
    tallies = coordinator.runs.tallies
    whole = whole_runs(coordinator) or tallies
    rows = {name: whole[run_id] for run_id, name in run_names(coordinator).items()}
    runs = summary_runs(plan, coordinator, whole)
    one_benchmark = len({run.benchmark for run in plan.runs}) == 1
    ordered = best_first(runs) if one_benchmark else runs
    total = RunCounts.sum(whole.values())
    lines = [f"{name}: {sentence}" for name, row in rows.items() for sentence in cut_sentences(row)]
    lines += score_table(ordered, one_benchmark=one_benchmark, verbose=verbose, width=width)
    if one_benchmark:
        lines += filter(None, (chance_line(ordered), *_variant_lines(plan, coordinator), loses_most(runs)))
    hint = "" if found is not None and found.holds is not None else coordinator.goes_on
    lines += not_judged_lines(runs, hint)
    lines += _remarks(plan, coordinator, rows)
    lines += box_sentences(total)
    neutral = sum(run.score.neutral_rows for run in runs if run.score is not None)
    notes = [f"{count_text(neutral, 'neutral evaluation')}, in no score"] if neutral and total.judged else []
    notes += routine_notes(total)
    notes += [f"{count_text(total.replays, 'answer')} from stored replies"] if total.replays else []
    notes += coordinator.remarks
    if notes and total.judged and coordinator.settings.repeat == 1:
        notes.append("re-run variation not measured (--helmbench-repeat=2)")
    return [*lines, Line(labelled("notes", " · ".join(notes)), "light")] if notes else lines


def _variant_lines(plan: Plan, coordinator: Coordinator) -> Iterator[str]:
    """Yield whether the variants of one model differ beyond chance; nothing where no model has several."""
    runs = coordinator.runs
    often = Counter(run.model_id for run in plan.runs)
    planned = [runs.run_ids.get(run.key, 0) for run in plan.runs if often[run.model_id] > 1]
    found = [(run_id, runs.scored[run_id]) for run_id in planned if run_id in runs.scored]
    if len(found) < 2 or plan.shard is not None:
        return
    with suppress(StoreError):  # another line says so
        reports = [run_report(runs.db, run_id, scored=scored) for run_id, scored in found]
        for board in boards(filter(None, reports)):
            yield from pair_sentences(board)


def _remarks(plan: Plan, coordinator: Coordinator, rows: Mapping[str, RunCounts]) -> Iterator[str]:
    """Yield remarks on single models: faults of form, other models, judges, costs, sentences of kinds."""
    names = run_names(coordinator)
    for name, row in rows.items():
        yield from (f"{name}: {sentence}" for sentence in unstated_sentence(row))
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
    store = coordinator.runs.store
    if store is not None and store.fault is not None:
        lost = f" (rows lost: {store.dropped})" if store.dropped else ""
        yield f"NOT ALL IS STORED: {store.fault}{lost}"
    elif store is not None and store.displaced is not None:
        yield f"STOPPED: {store.displaced}"


def _closing(coordinator: Coordinator, start: Path, reported: int | None) -> str:
    """Return how many cases were judged how fast, how many of them pytest has not counted, and the results' files."""
    runs = coordinator.runs
    done = sum(counts.judged_now for counts in runs.tallies.values())
    whole_s = (coordinator.ended or time.perf_counter()) - coordinator.started
    seconds = max(runs.span.seconds or whole_s, 1e-3)
    pace = pace_text(done, seconds)
    took = f"{seconds:.1f}" if seconds >= 0.1 else f"{seconds:.3f}"
    judged = f"{done} judged in {took} s{f' ({pace})' if pace else ''}"
    if reported is not None and done > reported:
        judged += f", {done - reported} not in pytest's count"
    files = [shown_path(path, start) for path in coordinator.files]
    return " · ".join((judged, f"{numbers_text(runs.tallies)} in {shown_path(runs.db, start)}", *files))


def summary_runs(plan: Plan, coordinator: Coordinator, counts: Mapping[int, RunCounts]) -> list[SummaryRun]:
    """Return the rows of the table of scores, in the order of the plan, by the counts of whole runs."""
    runs = coordinator.runs
    benchmarks, names = names_of_benchmarks(coordinator, plan), planned_names(coordinator, plan)
    is_one_model = len({run.model for run in plan.runs}) == 1 < len(benchmarks)
    constants: dict[str, Fraction | None] = {}
    rows = []
    for run in plan.runs:
        run_id = runs.run_ids.get(run.key)
        if run_id is None:
            continue
        tally, scored = counts[run_id], runs.scored.get(run_id)
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
            with suppress(StoreError):  # another line says so
                speed = measured_speed(runs.db, (run_id,))
        name = benchmarks[run.benchmark] if is_one_model else names[run.key]
        constant = constants.get(run.benchmark)
        rows.append(SummaryRun(name, tally, planned, scored, constant, speed, tuple(remarks)))
    return rows


def _unanswered_lines(coordinator: Coordinator) -> Iterator[str]:
    """Yield how much the budget counts for calls whose cost is unknown."""
    budget = coordinator.limiter.budget if coordinator.limiter is not None else None
    if budget is not None and budget.unanswered:
        yield (
            f"{count_text(budget.unanswered, 'call was', 'calls were')} sent and not answered,"
            f" and may be billed at an unknown cost; the budget counts {budget.unanswered_usd:.4f} USD for it"
        )


def kind_words(plan: Plan, coordinator: Coordinator) -> Iterator[tuple[int, RunWords]]:
    """Yield the sentences of kinds about the runs of a session."""
    store = coordinator.runs.store
    run_ids = coordinator.runs.run_ids
    for run in plan.runs if store is not None else ():
        run_id = run_ids.get(run.key)
        if run_id is None:
            continue
        kind = coordinator.library.load(Path(run.benchmark)).outline.kind
        try:
            words = record_of(kind).run(coordinator.runs.db, run_id)
        except StoreError:
            return  # another line says what could not be stored
        if words is not None:
            yield run_id, words


def _panel_lines(plan: Plan, coordinator: Coordinator) -> Iterator[str]:
    """Yield how far the judges of each run agree, where there are several."""
    store = coordinator.runs.store
    if store is None or store.fault is not None or not any(len(run.judges) > 1 for run in plan.runs):
        return
    with suppress(StoreError):  # another line says so
        for run_id, name in run_names(coordinator).items():
            panel = panel_report(coordinator.runs.db, run_id)
            if panel is not None:
                yield f"{name}: {panel_sentence(panel)}"


def _judge_remarks(run: PlannedRun, counts: RunCounts) -> Iterator[str]:
    """Yield that a floor model stood in for the judge, or that a model judged itself."""
    answers = Counter[str]()
    for (judge, _), replies in counts.answered_by.items():
        answers[judge or ""] += replies
    stand_ins = [judge for judge in answers if judge.startswith("baseline/")]
    yield from (stand_in_text(answers[judge], judge) for judge in stand_ins)
    own = {run.model, run.model_id}.intersection(run.judges).difference(stand_ins)
    if own and (run.judge_calls or counts.judge_calls):
        yield "judged its own replies"


def _dry_lines(plan: Plan, coordinator: Coordinator, width: int | None) -> list[str]:
    names = planned_names(coordinator, plan)
    rows = [
        DryRow(
            name=names[run.key],
            model=run.model,
            prompts=run.tests,
            judge_calls=run.judge_calls,
            tokens=run.prompt_tokens + run.judge_prompt_tokens,
            price=run_price(run, coordinator),
        )
        for run in plan.runs
    ]
    return [*dry_run_lines(rows, width), *_sample_lines(coordinator)]


def _sample_lines(coordinator: Coordinator) -> list[str]:
    """Return the sample of each benchmark that the session has drawn one of."""
    return [f"sample of {name}: {sample_text(sample)}" for name, sample in coordinator.library.drawn]


def _warning_lines(coordinator: Coordinator, start: Path) -> list[str]:
    """Return the first warnings about the benchmarks, and how many more there are."""
    texts = [problem.text(start) for item in coordinator.library.loaded for problem in item.warnings]
    more = len(texts) - _WARNINGS_SHOWN
    rest = [f"{count_text(more, 'more warning')}: `helmbench check PATH` lists all"] if more > 0 else []
    return [*(f"warning: {text}" for text in texts[:_WARNINGS_SHOWN]), *rest]


@dataclass(frozen=True, slots=True)
class SummaryRun:
    """A run as a row of the summary's table.

    Args:
        name: The model, or the benchmark where there are several.
        counts: Counts of the whole run, earlier parts of a resumed session included.
        planned: Number of cases, each repetition counted.
        constant: Score of an answer that flags everything; None where there is no such answer.
        remarks: Remarks that change the meaning of the score.
    """

    name: str
    counts: RunCounts
    planned: int
    scored: ScoredRun | None = None
    constant: Fraction | None = None
    speed: Speed = Speed()
    remarks: tuple[str, ...] = ()

    @property
    def score(self) -> RunScore | None:
        """With its parts; None for a run without one."""
        return None if self.scored is None else self.scored.score

    @property
    def losses(self) -> Losses:
        """Points of the score that its parts have lost."""
        return Losses() if self.scored is None else self.scored.losses

    @property
    def unjudged(self) -> int:
        """Planned cases without a verdict."""
        return max(0, self.planned - self.counts.judged)

    @property
    def value(self) -> Fraction | None:
        """The score; None where it is undefined."""
        return None if self.score is None else self.score.score


def best_first(runs: Iterable[SummaryRun]) -> list[SummaryRun]:
    """Return runs of one benchmark, those without a score last."""
    return sorted(runs, key=lambda run: (run.value is None, -(run.value or 0), natural_key(run.name)))


def score_table(
    runs: Sequence[SummaryRun], *, one_benchmark: bool, verbose: bool = False, width: int | None = None
) -> list[str]:
    """Return the table of scores: a row per run, and that of an answer that flags everything.

    Args:
        runs: In the order of the rows, runs without a score last.
        one_benchmark: Pillars have columns and the constant answer a row. Scores of several benchmarks do not compare.
        verbose: Add the speed, and the parts of each run as rows below it.
        width: Most columns of a line; None for any.
    """
    codes = {
        part.code: None for run in runs if run.value is not None and run.score for part in run.score.pillars
    }
    has_columns = one_benchmark and not verbose and 1 < len(codes) <= _MOST_PILLARS
    pillars = sorted(codes, key=natural_key) if has_columns else []
    head = ["", "score", "95 % interval", *pillars, "right", "not judged", "USD"]
    if verbose and any(run.speed.tokens_per_second is not None for run in runs):
        head.append(_SPEED)
    if not one_benchmark:
        head += ["flags everything"] if any(run.constant is not None for run in runs) else []
        head.append("loses most")
    first, *others = runs
    shared = [remark for remark in first.remarks if others and all(remark in run.remarks for run in others)]
    rows: list[_Row] = []
    constant = first.constant if one_benchmark and first.value is not None else None
    for run in runs:
        if constant is not None and (run.value is None or run.value < constant):
            rows.append(_constant_row(constant, runs, len(head)))
            constant = None
        remarks = " · ".join(scrub(remark) for remark in run.remarks if remark not in shared)
        is_highest = one_benchmark and run.value is not None and run.value == first.value != runs[-1].value
        style = "bold" if is_highest else ""
        rows.append(_Row(_cells(run, head, pillars), style, f"  {remarks}" if remarks else ""))
        rows += _part_rows(run.score, len(head)) if verbose and run.score is not None else ()
    rows += [_constant_row(constant, runs, len(head))] if constant is not None else []
    spare = (
        (_SPEED,),
        pillars,
        ("loses most",),
        ("right",),
        ("flags everything",),
        ("USD",),
        ("not judged",),
    )
    top, *lines = table(head, [row.cells for row in rows], left=("", "loses most"), width=width, spare=spare)
    found: list[str] = [Line(top, "light")]
    for line, row in zip(lines, rows, strict=True):
        found += [Line(line + row.beside, *row.style.split()), *filter(None, (row.below,))]
    return [*found, "  all runs: " + " · ".join(map(scrub, shared))] if shared else found


class _Row(NamedTuple):
    """A row of the table: its cells, the markup of its line, the line below, what stands beside it."""

    cells: Sequence[str]
    style: str = ""
    below: str = ""
    beside: str = ""


def _constant_row(constant: Fraction, runs: Sequence[SummaryRun], columns: int) -> _Row:
    """Return the row of an answer that flags everything, of a single run with whether that is beaten."""
    doubt = "" if len(runs) > 1 or _beats(runs[0]) else "  the model is not shown to be better"
    return _Row(["  (flags everything)", _number(constant), *[""] * (columns - 2)], "light", beside=doubt)


def _part_rows(score: RunScore, columns: int) -> Iterator[_Row]:
    """Yield the rows of the parts of a run, indented by their level."""
    for kind, part in score.parts:
        figures = _number(part.score), _interval(part.interval), share(part.pass_rate)
        cells = [PART_INDENTS[kind] + part.code, *figures, str(part.planned_rows - part.judged_rows)]
        yield _Row([*cells, *[""] * (columns - len(cells))])


def _cells(run: SummaryRun, head: Sequence[str], pillars: Sequence[str]) -> list[str]:
    score, counts = run.score, run.counts
    interval = None if score is None else score.total.interval
    passed = Fraction(counts.verdicts[Verdict.PASSED], counts.judged) if counts.judged else None
    right = passed if score is None else score.total.pass_rate
    parts = [None if score is None else score.of(code) for code in pillars]
    more = {
        _SPEED: f"{rate(run.speed.tokens_per_second)} ({rate(run.speed.run_tokens_per_second)})",
        "flags everything": _number(run.constant),
        "loses most": next(iter(_lost(run.losses, {}, 1)), "-"),
    }
    return [
        run.name,
        _number(run.value),
        _interval(interval),
        *("-" if part is None else _number(part.score) for part in parts),
        share(right),
        str(run.unjudged),
        cost_text(counts.known_cost_usd, counts.unknown_costs),
        *(text for title, text in more.items() if title in head),
    ]


def _interval(interval: Interval | None) -> str:
    return "-" if interval is None else f"{100 * interval.low:.1f} – {100 * interval.high:.1f}"


def _number(value: Fraction | None) -> str:
    return share(value).removesuffix(" %")


def score_remarks(run: RunScore | None, unjudged: int) -> Iterator[str]:
    """Yield remarks that change the meaning of a score, a few words each."""
    if run is None:
        yield "no score: cases chosen by earlier outcomes are not a fair sample"
        return
    total, bounds, interval = run.total, run.total.bounds, run.total.interval
    if run.breached:
        yield breach_text(run)
    if run.may_be_capped:
        yield "a safety floor may or may not be met"
    missing = [floor.pillar for floor in run.floors if floor.state is FloorState.NOT_EVALUATED]
    if missing:
        yield f"safety floor not evaluated: {', '.join(missing)}"
    span = (1.0, 0.0) if interval is None else (interval.low, interval.high)
    is_inside = bounds is not None and span[0] <= bounds.low <= bounds.high <= span[1]
    if unjudged and bounds is not None and total.score is not None and not is_inside:
        yield f"partial: {100 * float(bounds.low):.1f} – {_number(bounds.high)} once all are judged"
    if run.sample is not None and run.sample.cases < run.sample.of:
        yield f"sample of {run.sample.cases} of {run.sample.of}"
    if interval is not None and total.few_clusters:
        yield f"only {count_text(total.clusters, total.cluster)}"
    unweighted = [part.code for part in run.behaviours if part.unweighted]
    if unweighted:
        yield f"without severities: {listed(unweighted)}"
    if total.rerun is not None and total.rerun.sd:
        yield f"re-run variation ± {100 * total.rerun.again:.1f} points"


def chance_line(runs: Sequence[SummaryRun]) -> str:
    """Return which of several runs are shown to be better than flagging everything; empty where all are.

    The runs are of one benchmark, the best first.
    """
    scored = [run for run in runs if run.value is not None and run.constant is not None]
    shown = [run for run in scored if _beats(run)]
    if len(scored) < 2 or len(shown) == len(scored):
        return ""
    if not shown:
        return f"None of the {len(scored)} is shown to be better than flagging everything."
    names = listed([run.name for run in shown])
    if shown == scored[: len(shown)]:
        names = "the first" if len(shown) == 1 else f"the first {len(shown)}"
    return f"Only {names} {'is' if len(shown) == 1 else 'are'} shown to be better than flagging everything."


def _beats(run: SummaryRun) -> bool:
    interval = None if run.score is None else run.score.total.interval
    return interval is not None and run.constant is not None and interval.low > run.constant


def loses_most(runs: Sequence[SummaryRun]) -> str:
    """Return the parts that lose most points, as a mean over the runs of one benchmark; empty where none does."""
    scored = [run for run in runs if run.value is not None]
    titles = scored[0].scored.facts.titles if scored and scored[0].scored is not None else {}
    found = _lost(mean_losses([run.losses for run in scored]), titles, _PARTS_SHOWN)
    of = f" (mean of {len(scored)} models)" if len(scored) > 1 else ""
    return labelled("loses most", f"{' · '.join(found)} points{of}") if found else ""


def _lost(losses: Losses, titles: Mapping[str, str], most: int) -> list[str]:
    shown = [(code, points(-lost)) for code, lost in losses.worst_parts[:most]]
    return [
        f"{code} {excerpt(scrub(titles.get(code, '')), _LONGEST_TITLE)}".rstrip() + f" {lost}"
        for code, lost in shown
        if lost != "0.0"
    ]


def not_judged_lines(runs: Sequence[SummaryRun], hint: str) -> Iterator[str]:
    """Yield why cases were not judged and what helps, then a line for each kind of skip where there are several.

    Args:
        hint: The command that resumes the session; empty for none, or where another line has it.
    """
    counts = RunCounts.sum(run.counts for run in runs)
    reasons = Counter(counts.reasons)
    facts = [run.scored.facts for run in runs if run.scored is not None]
    reasons["broken"] += sum(one.repeat * len(one.broken) for one in facts)
    missing = sum(run.unjudged for run in runs) - reasons.total()
    if missing > 0:
        reasons["not asked"] += missing
    if not reasons_text(reasons):
        return
    skips = [(reason, count) for reason, count in counts.skips.most_common() if count > 0 and reason]
    first = reasons_text(reasons)
    if len(skips) == 1 and skips[0][1] == reasons.total():
        hint = _one_line(skips[0][0])
        skips = []
    yield labelled("not judged", ": ".join(filter(None, (first, hint))))
    yield from (labelled("", f"{count} × {_one_line(reason)}") for reason, count in skips[:_SKIPS_SHOWN])
    if len(skips) > _SKIPS_SHOWN:
        yield labelled(
            "", f"{count_text(len(skips) - _SKIPS_SHOWN, 'more reason')} for skips: pytest -rs shows each"
        )


def _one_line(text: str) -> str:
    first, *rest = (line.strip().removeprefix("hint: ") for line in scrub(text).splitlines() if line.strip())
    return ": ".join((first, " ".join(rest))) if rest else first


def pace_text(cases: int, seconds: float) -> str:
    """Return `68.1 per second`, and slower ones by the minute or hour, never 0.0; empty for no case."""
    for unit, length_s in (("second", 1), ("minute", 60), ("hour", 3600)):
        if cases * length_s >= seconds or unit == "hour":
            return f"{cases * length_s / seconds:.1f} per {unit}" if cases else ""
    return ""


def numbers_text(numbers: Iterable[int]) -> str:
    """Return `run 3`, `runs 2–5`, `runs 2, 7`."""
    known = sorted(numbers)
    if len(known) > 2 and known[-1] - known[0] == len(known) - 1:
        return f"runs {known[0]}–{known[-1]}"
    return f"run{'' if len(known) == 1 else 's'} {', '.join(map(str, known))}"

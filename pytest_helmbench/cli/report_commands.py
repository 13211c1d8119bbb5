"""`helmbench report` and `compare`: runs with their numbers, side by side and against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from pytest_helmbench.cli.lookup import database_of
from pytest_helmbench.cli.output import (
    CommandError,
    ReportOutput,
    as_json_option,
    db_option,
    refuse_unused,
    report_options,
    say,
)
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import ShownTexts, scrub
from pytest_helmbench.reports.comparison_lines import comparison_markdown, comparison_text
from pytest_helmbench.reports.formats import PAGE, REPORTS, comparison_page
from pytest_helmbench.reports.headline import Headline, SessionState, cause_of, gate_block, headline
from pytest_helmbench.reports.run_cautions import flagging
from pytest_helmbench.reports.tables import readable_json
from pytest_helmbench.results.baselines import (
    PairError,
    comparison_of_session,
    lost_of_session,
    parse_limits,
    partner,
)
from pytest_helmbench.results.comparing import (
    ComparedRun,
    RunComparison,
    RunRef,
    compare_runs,
    not_comparable,
)
from pytest_helmbench.results.comparison_records import comparison_records
from pytest_helmbench.results.gates import Gates, JudgedCases, gates_of_session
from pytest_helmbench.results.run_addresses import Addressed, resolve, shown_session
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.results.run_report import RunReport, run_report, shown_texts
from pytest_helmbench.results.standings import ReportedRuns
from pytest_helmbench.scoring.changes import Conclusion
from pytest_helmbench.scoring.comparison import Limit
from pytest_helmbench.scoring.thresholds import parse_share, parse_thresholds
from pytest_helmbench.store.read.benchmark_places import BenchmarkKey
from pytest_helmbench.store.read.score_facts import load_facts

_MAX_DROP = "Drop that is allowed: 0.02 or P1-B4=0.05,0.02 (default: 0)."


@click.command("report")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--format", "form", type=click.Choice(list(REPORTS)), default="markdown", show_default=True)
@click.option(
    "--gate", metavar="X", help="Least score: 0.7 or P1=0.7,P1-B2=0.9; ends 1 where it is not reached."
)
@click.option(
    "--min-coverage",
    metavar="X",
    help="With --gate: least share of the planned severity that is judged (default: 1).",
)
@click.option(
    "--baseline", metavar="RUN", help="Compare the runs with this one (default: as their session did)."
)
@click.option("--max-drop", metavar="X", help=_MAX_DROP)
@report_options
@db_option
def report_command(
    runs: tuple[str, ...],
    form: str,
    gate: str | None,
    to: ReportOutput,
    db: Path | None,
    **limits: str | None,
) -> int:
    """Report runs as Markdown, JSON or one HTML page.

    A RUN is a number, `last`, FILE.db or FILE.db#3; `last` (the default) and a file represent their session. Several
    runs of a benchmark stand side by side: score with interval, place, cost, speed, and which pairs differ.

    With --gate the command prints the lines of the gate, and writes the report if -o names a file.
    """
    if form != PAGE:
        to.only_for_pages(form)
    path = database_of(db)
    gates = _gates(gate, limits["min_coverage"])
    refs = _named(runs, path)
    texts = shown_texts([(ref.path, ref.run_id) for ref in refs], to.asked)
    found = [run_report(ref.path, ref.run_id, with_text=texts.any, all_cases=form == PAGE) for ref in refs]
    reports = [report for report in found if report is not None]
    if gates is None or to.file is not None:
        compared = _comparisons(path, reports, limits["baseline"], limits["max_drop"])
        reports = [report.compared(one) for report, one in zip(reports, compared, strict=True)]
        shown = ReportedRuns.of(reports, path)
        numbers = (
            f"run{'s' if len(refs) > 1 else ''} {', '.join(ref.name.removeprefix('run ') for ref in refs)}"
        )
        text = REPORTS[form](shown, texts, _standing(refs, reports, gates))
        to.write(text, f"report of {numbers}", texts, is_page=form == PAGE)
    if gates is None:
        return 0
    top = _standing(refs, reports, gates)
    say(*gate_block(top))
    return 0 if top.holds else 1


def _standing(refs: Sequence[RunRef], reports: Sequence[RunReport], gates: Gates | None) -> Headline:
    """Return how runs stand to gates; where none are given, to those of their session."""
    details = [report.detail for report in reports]
    several = len({one.key for one in details}) > 1
    models = [f"{one.model} on {one.benchmark}" if several else one.model for one in details]
    names = [
        model if models.count(model) == 1 else f"{model} ({ref.name})"
        for model, ref in zip(models, refs, strict=True)
    ]
    named = dict(zip(names, reports, strict=True))
    cases = {name: JudgedCases(one.counts.judged, one.detail.total_tests) for name, one in named.items()}
    scores = {name: one.score for name, one in named.items()}
    if gates is not None:
        return headline(gates.judge(scores, cases=cases))
    kept = gates_of_session(details[0]) if details else Gates((), None)
    compared = {name: one.comparison for name, one in named.items() if one.comparison is not None}
    counts = RunCounts.sum(one.counts for one in reports)
    left = sum(one.planned - one.judged for one in cases.values()) - counts.reasons["not_trusted"]
    is_open = any(one.detail.status != "complete" for one in reports)
    cause = cause_of(counts.reasons, counts.judged)
    state = SessionState(
        (cause,) if counts.reasons["budget"] else (),
        hint=f"the same command with --helmbench-resume asks the {left} again" if left and is_open else "",
        several_benchmarks=several,
        cause=cause,
        constant=next((score for one in reports[:1] for _, score in flagging(one)), None),
    )
    compared |= {
        name: lost
        for one in reports
        for name, lost in lost_of_session(one.path, one.detail)
        if not lost.allows_gone
    }
    asked = kept.any or bool(compared)
    return headline(kept.judge(scores, compared, cases), state, asked=asked)


def _gates(min_score: str | None, min_coverage: str | None) -> Gates | None:
    if min_score is None:
        if min_coverage is not None:
            raise CommandError("--min-coverage belongs to a gate\n  hint: add --gate X")
        return None
    least = None if min_coverage is None else parse_share(min_coverage, "--min-coverage")
    return Gates(parse_thresholds(min_score, "--gate"), least)


def _named(addresses: Sequence[str], own: Path) -> list[RunRef]:
    """Return the runs that some addresses name, each once: a number one run, `last` and a file their session."""
    found: dict[tuple[Path, int], RunRef] = {}
    for address in addresses or ("last",):
        addressed = resolve(address, own, Path.cwd())
        if addressed.baselines:
            raise HelmbenchError(
                f"{address!r} is a baseline file, which holds verdicts alone\n"
                "  hint: name the results file (FILE.db#3)"
            )
        refs = [addressed.named] if addressed.named is not None else list(addressed.session)
        found |= {(ref.path.resolve(), ref.run_id): ref for ref in refs}
    return list(found.values())


def _comparisons(
    path: Path, reports: Sequence[RunReport], baseline: str | None, max_drop: str | None
) -> Sequence[RunComparison | None]:
    """Return the comparison of each run: with the baseline that is named, or that of its session."""
    if baseline is None:
        if max_drop is not None:
            raise CommandError(
                "--max-drop says how far a score may drop, but not below which run\n  hint: add --baseline RUN"
            )
        return [comparison_of_session(report.path, report.detail) for report in reports]
    before = resolve(baseline, path, Path.cwd())
    limits = parse_limits(max_drop, "--max-drop")
    beside = [report.detail.key for report in reports]
    return [_compared_with(report, before, limits, beside) for report in reports]


@click.command("compare")
@click.argument("baseline")
@click.argument("candidate", default="last")
@click.option("--max-drop", metavar="X", help=_MAX_DROP)
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json", "html"]), default="text")
@report_options
@db_option
@as_json_option
def compare_command(
    baseline: str,
    candidate: str,
    max_drop: str | None,
    form: str,
    to: ReportOutput,
    db: Path | None,
    *,
    as_json: bool,
) -> int:
    """Say where CANDIDATE is better or worse than BASELINE.

    A run is a number, `last`, `last~1`, FILE.db (its last), FILE.db#3, or a baseline FILE.json (see `helmbench
    export --format baseline`), and represents its session: its runs are paired by benchmark and model. Two runs of
    different models, or of one session, are compared with each other.

    The exit code is 1 when a run is worse, 2 when there is nothing to compare.
    """
    if form not in ("text", "json"):
        refuse_unused(f"leave it out, or leave out --format {form}", json=as_json)
    form = "json" if as_json else form
    if form != "html":
        to.only_for_pages(form)
        refuse_unused("--format html shows texts", with_text=to.asked)
    path = database_of(db)
    limits = parse_limits(max_drop, "--max-drop")
    start = Path.cwd()
    before, after = (resolve(address, path, start) for address in (baseline, candidate))
    pairs = [*_pairs(before, after)]
    found = [_compared(before, pair, limits) for pair in pairs]
    found += _without_candidate(before, pairs, limits)
    sides = f"{shown_session(after)} (candidate) with {shown_session(before)} (baseline)"
    refs = [ref for one in found for ref in (one.baseline, one.candidate) if ref is not None]
    texts = shown_texts([(ref.path, ref.run_id) for ref in refs], to.asked)
    text = _text(found, form, sides, texts)
    to.write(text, f"comparison of {sides}", texts, is_page=form == "html")
    return _code([comparison.verdict for comparison in found])


def _text(found: Sequence[RunComparison], form: str, sides: str, texts: ShownTexts) -> str:
    if form == "json":
        records = [record for comparison in found for record in comparison_records(comparison)]
        return readable_json(records, indent=2)
    if form == "markdown":
        return scrub(comparison_markdown(found))
    if form == "html":
        return comparison_page(found, texts)
    lines = [f"{sides}: changes are candidate − baseline"]
    for comparison in found:
        lines += comparison_text(comparison)
    return "\n".join(lines)


def _code(verdicts: Sequence[Conclusion]) -> int:
    if Conclusion.NOT_COMPARABLE in verdicts:
        return 2
    return int(any(verdict in (Conclusion.WORSE, Conclusion.COLLAPSED) for verdict in verdicts))


def _pairs(before: Addressed, after: Addressed) -> Iterator[tuple[RunRef | PairError, RunRef]]:
    """Yield baseline and candidate, run by run."""
    if after.baselines:
        raise CommandError(
            f"{after.address!r} is a baseline file\n  hint: it holds no plan, so it can only be the baseline"
        )
    first, second = before.named, after.named
    if first is not None and second is not None:
        if (first.path, first.run_id) == (second.path, second.run_id):
            raise CommandError(f"{first.name} would be compared with itself\n  hint: name two runs")
        same_session = (first.path, first.session_id) == (second.path, second.session_id)
        if first.model != second.model or same_session:
            if first.benchmark.name != second.benchmark.name:
                raise CommandError(
                    f"{second.name} is of {second.benchmark.name}, {first.name} of {first.benchmark.name}\n"
                    "  hint: compare runs of the same benchmark"
                )
            yield first, second
            return
    if [ref.path for ref in before.session] == [ref.path for ref in after.session] and {
        ref.run_id for ref in before.session
    } == {ref.run_id for ref in after.session}:
        raise CommandError(f"{shown_session(after)} would be compared with itself\n  hint: name two runs")
    beside = Counter(ref.benchmark for ref in after.session)
    for ref in after.session:
        alone = beside[ref.benchmark] == 1
        try:
            yield partner(before, ref.benchmark, ref.model, beside, alone=alone), ref
        except PairError as error:
            yield error, ref


def _without_candidate(
    before: Addressed, pairs: Sequence[tuple[RunRef | PairError, RunRef]], limits: tuple[Limit, ...]
) -> Iterator[RunComparison]:
    """Yield a comparison for each run of the baseline whose benchmark has none in the candidate's session."""
    models = {
        second.model
        for first, second in pairs
        if isinstance(first, RunRef)
        and first.model == second.model  # two of different models, or of one session, are compared alone
        and (first.path, first.session_id) != (second.path, second.session_id)
    }
    names = {second.benchmark.name for _, second in pairs}
    for ref in before.session:
        if ref.model in models and ref.benchmark.name not in names:
            reason = f"the candidate has no run of {ref.benchmark.name}"
            yield RunComparison(ref.model, None, ref, limits, reason=reason)


def _compared(
    before: Addressed, pair: tuple[RunRef | PairError, RunRef], limits: Sequence[Limit]
) -> RunComparison:
    first, second = pair
    if isinstance(first, PairError):
        return not_comparable(second, None, limits, str(first))
    baseline: ComparedRun | None = before.run(first)
    candidate = ComparedRun.stored(second)
    facts = load_facts(second.path, second.run_id)
    if baseline is None or candidate is None or facts is None:
        return not_comparable(second, first, limits, "the run is gone")
    return compare_runs(facts, candidate, baseline, limits).with_both()


def _compared_with(
    report: RunReport, before: Addressed, limits: Sequence[Limit], beside: Sequence[BenchmarkKey]
) -> RunComparison:
    """Return how a run stands to a baseline that is named; `beside` has the benchmark of each run that is shown."""
    run, alone = report.detail, len(beside) == 1
    ref = RunRef.of(report.path, run, report.path)
    try:
        found = partner(before, run.key, run.model, beside, alone=alone, explicit=alone)
    except PairError as error:
        return not_comparable(ref, None, limits, str(error))
    if (found.path.resolve(), found.run_id) == (report.path.resolve(), run.id):
        return not_comparable(ref, found, limits, f"{found.name} is this very run")
    return _compared(before, (found, ref), limits)

"""`helmbench compare`: two stored runs, or sessions of runs, and whether the newer is worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path

import click

from pytest_helmbench.cli.output import CommandError, as_json_option, db_option
from pytest_helmbench.cli.recorded import database_of
from pytest_helmbench.cli.report_output import ReportOutput, report_options
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.reports.comparison_lines import comparison_lines
from pytest_helmbench.reports.comparison_markdown import comparison_markdown
from pytest_helmbench.reports.formats import comparison_page
from pytest_helmbench.reports.readable_json import readable_json
from pytest_helmbench.results.baselines import PairError, parse_limits, partner
from pytest_helmbench.results.compared_runs import ComparedRun, RunRef
from pytest_helmbench.results.comparing import RunComparison, compare_runs, not_comparable
from pytest_helmbench.results.comparison_records import comparison_records
from pytest_helmbench.results.run_addresses import Addressed, resolve, shown_session
from pytest_helmbench.scoring.changes import Conclusion
from pytest_helmbench.scoring.comparison import Limit
from pytest_helmbench.store.plans import load_facts

__all__ = ["command"]


def _json_as_format(command: Callable[..., int]) -> Callable[..., int]:
    """Add `--json`, which is `--format json`."""

    @wraps(command)
    def told(*, as_json: bool, form: str, **options: object) -> int:
        return command(form="json" if as_json else form, **options)

    wrapped: Callable[..., int] = as_json_option(told)
    return wrapped


@click.command("compare")
@click.argument("baseline")
@click.argument("candidate", default="last")
@click.option("--max-drop", metavar="X", help="Drop that is allowed: 0.02 or P1-B4=0.05,0.02 (default: 0).")
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json", "html"]), default="text")
@report_options
@db_option
@_json_as_format
def command(
    baseline: str,
    candidate: str,
    max_drop: str | None,
    form: str,
    to: ReportOutput,
    db: Path | None,
) -> int:
    """Say whether CANDIDATE is worse than BASELINE: by how much, how sure that is, and where.

    A run is a number, `last`, `last~1`, FILE.db (its last), FILE.db#3, or a baseline FILE.json (see `helmbench
    export --format baseline`), and stands for its session: its runs are paired by benchmark and model. Two runs of
    different models, or of one session, are compared with each other.

    Ends 1 when a run is worse, 2 when there is nothing to compare.
    """
    if form != "html":
        to.only_for_pages(form)
    path = database_of(db)
    limits = parse_limits(max_drop, "--max-drop")
    start = Path.cwd()
    before, after = (resolve(address, path, start) for address in (baseline, candidate))
    found = [_compared(before, after, pair, limits) for pair in _pairs(before, after)]
    sides = f"{shown_session(after)} (candidate) with {shown_session(before)} (baseline)"
    text = _text(found, form, sides, to)
    to.write(text, f"comparison of {sides}", is_page=form == "html")
    return _code([comparison.verdict for comparison in found])


def _text(found: Sequence[RunComparison], form: str, sides: str, to: ReportOutput) -> str:
    if form == "json":
        records = [record for comparison in found for record in comparison_records(comparison)]
        return readable_json(records, indent=2)
    if form == "markdown":
        return scrub(comparison_markdown(found))
    if form == "html":
        return comparison_page(found, to.texts)
    lines = [f"{sides}: changes are candidate − baseline"]
    for comparison in found:
        lines += comparison_lines(comparison, comparison.model)
    return "\n".join(lines)


def _code(verdicts: Sequence[Conclusion]) -> int:
    if Conclusion.NOT_COMPARABLE in verdicts:
        return 2
    return int(any(verdict in (Conclusion.REGRESSED, Conclusion.COLLAPSED) for verdict in verdicts))


def _pairs(before: Addressed, after: Addressed) -> Iterator[tuple[RunRef | PairError, RunRef]]:
    """Yield baseline and candidate, run by run."""
    if after.held:
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


def _compared(
    before: Addressed, after: Addressed, pair: tuple[RunRef | PairError, RunRef], limits: Sequence[Limit]
) -> RunComparison:
    first, second = pair
    if isinstance(first, PairError):
        return not_comparable(second, None, limits, str(first))
    baseline: ComparedRun | None = before.run(first)
    candidate = after.run(second)
    facts = load_facts(second.path, second.run_id)
    if baseline is None or candidate is None or facts is None:
        return not_comparable(second, first, limits, "the run is gone")
    return compare_runs(facts, candidate, baseline, limits)

"""`helmbench rescore`: the replies of a run judged by the rules of now."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_helmbench.benchmarks.places import benchmark_root
from pytest_helmbench.cli.at_hand import benchmark_option, kept_values
from pytest_helmbench.cli.output import (
    CommandError,
    as_json_option,
    db_option,
    say,
    say_json,
)
from pytest_helmbench.cli.project import Project
from pytest_helmbench.cli.recorded import database_of, recorded_unstated_lines, run_of
from pytest_helmbench.reports.comparison_lines import comparison_lines
from pytest_helmbench.reports.tables import share
from pytest_helmbench.results.comparison_records import comparison_records
from pytest_helmbench.results.rescorable import refuse_run
from pytest_helmbench.results.rescore import Rescored, RescoreError, rescore
from pytest_helmbench.store.run_queries import RunDetail

__all__ = ["command"]


@click.command("rescore")
@click.argument("run", default="last")
@benchmark_option
@db_option
@as_json_option
def command(run: str, path: Path | None, db: Path | None, *, as_json: bool) -> None:
    """Judge the stored replies of a run by the rules that the benchmark has now; nothing is asked.

    The outcome is a new run. Cases whose judge would be asked something new stay without a verdict, as do those
    that an agent has worked on.
    """
    database = database_of(db)
    detail = run_of(database, run)
    settings = Project.at(Path.cwd()).settings()
    try:
        refuse_run(detail)
        with kept_values(settings) as session:
            found = rescore(database, detail, _root_of(detail, path), session, settings)
    except RescoreError as error:
        raise CommandError(str(error), code=1) from error
    if as_json:
        say_json(_record(detail, found))
    else:
        say(*_lines(detail, found), *recorded_unstated_lines(database, found.run_id, detail.summary.model))


def _root_of(detail: RunDetail, given: Path | None) -> Path:
    """Return the folder of the benchmark: the one given, else where the run has found it."""
    stated = detail.settings.get("benchmark_path")
    place = given if given is not None else Path(str(stated)) if stated else None
    root = None if place is None else benchmark_root(place)
    if root is None:
        where = "that is not known" if place is None else f"no benchmark at {place}"
        raise CommandError(
            f"the rules of run {detail.summary.id} cannot be read: {where}\n"
            "  hint: name the benchmark with --benchmark PATH"
        )
    return root


def _lines(detail: RunDetail, found: Rescored) -> list[str]:
    old = detail.summary.id
    lines = [
        f"run {found.run_id}: the replies of run {old} ({detail.summary.model}), judged anew; nothing was asked",
        f"verdicts: {found.now_pass} now pass, {found.now_fail} now fail, {found.same} as before",
    ]
    for count, what in (
        (found.needs_judge, "need a judge: it would be asked something new; not judged"),
        (found.other_prompt, "have another prompt now, which their reply does not answer; not judged"),
        (found.gone, "are no longer in the benchmark"),
    ):
        if count:
            lines.append(f"{count} cases {what}")
    lines += [f"{count} cases not judged: {sentence}" for sentence, count in found.not_rescored.items()]
    before, after = (None if score is None else score.score for score in (found.before, found.after))
    if found.comparison is not None:
        lines += comparison_lines(found.comparison, f"run {found.run_id}")
    lines.append(f"score: {share(before)} in run {old}, {share(after)} in run {found.run_id}")
    return lines


def _record(detail: RunDetail, found: Rescored) -> dict[str, object]:
    counts = ("run_id", "now_pass", "now_fail", "same", "needs_judge", "other_prompt", "gone")
    record: dict[str, object] = {"rescored_from": detail.summary.id}
    record |= {name: getattr(found, name) for name in counts}
    record["not_rescored"] = sum(found.not_rescored.values())
    for name, score in (("before", found.before), ("after", found.after)):
        record[f"score_{name}"] = None if score is None or score.score is None else float(score.score)
    record["comparison"] = None if found.comparison is None else comparison_records(found.comparison)[0]
    return record

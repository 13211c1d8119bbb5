"""Commands about the numbers of a recorded run: `score`, `gate`, `report` and `rescore`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pytest_helmbench.benchmarks.bench_packs.bench_pack import BENCH_PACK
from pytest_helmbench.benchmarks.kind_record import record_of
from pytest_helmbench.benchmarks.packs.places import is_pack
from pytest_helmbench.benchmarks.places import benchmark_root
from pytest_helmbench.benchmarks.scenario_trees.rescore import Rescored, RescoreError, rescore
from pytest_helmbench.cli.output import (
    CommandError,
    as_json_option,
    complain,
    db_option,
    say,
    say_json,
)
from pytest_helmbench.cli.records import database_of, run_of
from pytest_helmbench.cli.trees import benchmark_option
from pytest_helmbench.reports.formats import REPORTS
from pytest_helmbench.reports.json_report import score_record
from pytest_helmbench.reports.score_lines import gate_lines, score_lines
from pytest_helmbench.reports.tables import share
from pytest_helmbench.scoring.run_score import RunScore
from pytest_helmbench.scoring.thresholds import parse_share, parse_thresholds
from pytest_helmbench.session.gates import Gates
from pytest_helmbench.session.run_report import run_report
from pytest_helmbench.session.stored_scores import stored_score
from pytest_helmbench.store.plans import load_facts
from pytest_helmbench.store.run_queries import RunDetail

__all__ = ["gate", "report", "rescore_run", "score"]


@click.command()
@click.argument("run", default="last")
@db_option
@as_json_option
def score(run: str, db: Path | None, *, as_json: bool) -> None:
    """Show the score of a run with its pillars and behaviours, computed anew from its verdicts.

    Of a Bench Pack: the share passed with its categories, then the pack's own total on its own scale.
    """
    path = database_of(db)
    detail = run_of(path, run)
    found = _score_of(path, detail)
    words = record_of(detail.kind).run(path, detail.summary.id)
    model = detail.summary.model
    if as_json:
        facts = load_facts(path, detail.summary.id)
        titles = facts.titles if facts is not None else {}
        record = {"run": detail.summary.id, "model": model, **score_record(found, titles)}
        own = {} if words is None or words.score is None else {"pack_score": words.score_with_text}
        say_json({**record, **own})
        return
    say(*score_lines({model: found}, behaviours=True))
    if words is not None and words.line:
        say(f"{model}: {words.line}")


@click.command()
@click.argument("run", default="last")
@click.option("--min-score", required=True, metavar="X", help="Least score: 0.7 or P1=0.7,P1-B2=0.9.")
@click.option("--min-coverage", metavar="X", help="Least share of the planned severity judged (default: 1).")
@db_option
def gate(run: str, min_score: str, min_coverage: str | None, db: Path | None) -> int:
    """Hold the scores of a run to thresholds; ends 1 when one of them is not reached."""
    gates = Gates(
        parse_thresholds(min_score, "--min-score"),
        parse_share(min_coverage, "--min-coverage") if min_coverage is not None else None,
    )
    path = database_of(db)
    detail = run_of(path, run)
    verdict = gates.judge({detail.summary.model: _score_of(path, detail)})
    say(*gate_lines(verdict))
    return 0 if verdict.holds else 1


@click.command()
@click.argument("run", default="last")
@click.option("--format", "form", type=click.Choice(list(REPORTS)), required=True)
@click.option("--output", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Default: stdout.")
@click.option("--with-text", is_flag=True, help="Also prompts, replies and the judge's words of failures.")
@db_option
def report(run: str, form: str, output: Path | None, db: Path | None, *, with_text: bool) -> None:
    """Report a run: Markdown that pastes into a pull request, or JSON (`helmbench schema report`)."""
    path = database_of(db)
    run_id = run_of(path, run).summary.id
    found = run_report(path, run_id, with_text=with_text)
    text = REPORTS[form]([found] if found is not None else [], with_text=with_text)
    if output is None:
        say(text.removesuffix("\n"))
        return
    try:
        output.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise CommandError(
            f"{output}: cannot be written: {error.strerror}\n  hint: name another file"
        ) from error
    complain(f"report of run {run_id} in {output}")


@click.command("rescore")
@click.argument("run", default="last")
@benchmark_option
@db_option
@as_json_option
def rescore_run(run: str, path: Path | None, db: Path | None, *, as_json: bool) -> None:
    """Judge the stored replies of a run by the rules that the benchmark has now; nothing is asked.

    The outcome is a new run. Cases whose judge would be asked something new stay without a verdict.
    """
    database = database_of(db)
    detail = run_of(database, run)
    try:
        found = rescore(database, detail, _root_of(detail, path))
    except RescoreError as error:
        raise CommandError(str(error), code=1) from error
    if as_json:
        say_json(_record(detail, found))
    else:
        say(*_lines(detail, found))


def _score_of(path: Path, detail: RunDetail) -> RunScore:
    found = stored_score(path, detail.summary.id)
    if found is None:
        raise CommandError(
            f"run {detail.summary.id} has no score: its cases were selected by earlier outcomes (--lf, --sw)\n"
            "  hint: take a run of the whole selection; `helmbench runs` lists them"
        )
    return found


def _root_of(detail: RunDetail, given: Path | None) -> Path:
    """Return the folder of the benchmark: the one given, else where the run has found it."""
    if detail.kind == BENCH_PACK:
        raise CommandError(
            f"run {detail.summary.id} is of a Bench Pack, which alone can judge its replies\n"
            "  hint: --helmbench-cache=only replays them through the pack of now, without a call"
        )
    if detail.kind == "python_tests":
        raise CommandError(
            f"run {detail.summary.id} is of hand-written tests, which alone can judge their replies\n"
            "  hint: --helmbench-cache=only replays them through the tests of now, without a call"
        )
    stated = detail.settings.get("benchmark_path")
    place = given if given is not None else Path(str(stated)) if stated else None
    root = None if place is None else benchmark_root(place)
    if root is None:
        where = "that is not known" if place is None else f"no benchmark at {place}"
        raise CommandError(
            f"the rules of run {detail.summary.id} cannot be read: {where}\n"
            "  hint: name the benchmark with --benchmark PATH"
        )
    if is_pack(root):
        raise CommandError(
            f"run {detail.summary.id} is of a benchmark pack, whose replies cannot be judged anew\n"
            "  hint: --helmbench-cache=only replays them through the rules of now, without a call"
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
    before, after = (None if score is None else score.score for score in (found.before, found.after))
    lines.append(f"score: {share(before)} in run {old}, {share(after)} in run {found.run_id}")
    return lines


def _record(detail: RunDetail, found: Rescored) -> dict[str, Any]:
    counts = ("run_id", "now_pass", "now_fail", "same", "needs_judge", "other_prompt", "gone")
    record: dict[str, Any] = {"rescored_from": detail.summary.id}
    record |= {name: getattr(found, name) for name in counts}
    for name, score in (("before", found.before), ("after", found.after)):
        record[f"score_{name}"] = None if score is None or score.score is None else float(score.score)
    return record

"""`helmbench judge` and `rescore`: judges checked against anchors and to a person's labels; replies judged anew."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import click

from pytest_helmbench.benchmarks.places import benchmark_root
from pytest_helmbench.cli.lookup import (
    benchmark_option,
    database_of,
    kept_values,
    recorded_unstated_lines,
    run_of,
)
from pytest_helmbench.cli.output import (
    CommandError,
    as_json_option,
    complain,
    db_option,
    say,
    say_json,
    say_whole,
    write_file,
)
from pytest_helmbench.cli.project import Project
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.files.anchors_file import anchors_path
from pytest_helmbench.imports.judge_labels import LabelError, drawn, label_file, question, read_labels
from pytest_helmbench.reports.cards import prompt_text
from pytest_helmbench.reports.comparison_lines import changed_text
from pytest_helmbench.reports.score_lines import corrected_text
from pytest_helmbench.reports.tables import UNKNOWN, cost_text, share, table
from pytest_helmbench.results.rescore import Rescored, RescoreError, refuse_run, rescore
from pytest_helmbench.results.run_report import recorded_results
from pytest_helmbench.results.stored_scores import stored_correction
from pytest_helmbench.run.judge_check import AnchorTrial, try_anchors
from pytest_helmbench.store.leases import iso_time
from pytest_helmbench.store.read.judgements import JudgedRow, criteria_of, judged_rows, write_labels
from pytest_helmbench.store.read.results import ResultRow
from pytest_helmbench.store.read.runs import RunDetail

_HEAD = ("judge", "anchor", "right verdict", "its verdict", "its words")
_WORDS = {True: "pass", False: "fail", None: UNKNOWN}


@click.group("judge")
def judge_command() -> None:
    """Check judges against anchors or a person's labels."""


@judge_command.command("check")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option(
    "--marking-model", multiple=True, metavar="ID", help="Judge; repeatable (default: that of models.yml)."
)
@click.option("--marking-base-url", metavar="URL", help="Server of the judges (default: their provider's).")
@click.option(
    "--marking-api-key-env", metavar="NAME", help="Variable that holds their key (default: the provider's)."
)
@click.option("--models-file", type=click.Path(path_type=Path), metavar="PATH", help="models.yml to use.")
@as_json_option
def check(
    path: Path | None,
    marking_model: tuple[str, ...],
    models_file: Path | None,
    *,
    as_json: bool,
    **servers: str | None,
) -> int:
    """Have the judges of a benchmark judge its anchors.

    The benchmark at PATH has them in anchors.yml. Nothing is stored.

    The exit code is 1 when a judge gets more of them wrong than is allowed, or does not answer.
    """
    project = Project.at(Path.cwd())
    settings = project.settings(
        marking_model=list(marking_model) or None,
        **servers,
        models_file=None if models_file is None else str(models_file),
    )
    try:
        roots = project.benchmarks(path)
        anchored = [root for root in roots if anchors_path(root) is not None]
        found = [try_anchors(root, settings, os.environ) for root in anchored or roots]
    except HelmbenchError as error:
        raise CommandError(str(error)) from error
    if as_json:
        say_json([_check_record(trial) for trial in found])
    else:
        for trial in found:
            say(*_check_lines(trial))
    return 0 if all(held.holds for trial in found for held in trial.judges) else 1


def _check_lines(trial: AnchorTrial) -> list[str]:
    rows = [
        (
            held.judge,
            one.anchor,
            _WORDS[one.expected],
            _WORDS[one.passed],
            " ".join(scrub(one.message).split()),
        )
        for held in trial.judges
        for one in held.verdicts
    ]
    cost = cost_text(trial.cost_usd or 0.0, 0) if trial.cost_usd is not None else UNKNOWN
    return [
        *table(_HEAD, rows, left=_HEAD),
        *(scrub(held.sentence) for held in trial.judges),
        f"{trial.calls} calls, USD {cost}",
    ]


def _check_record(trial: AnchorTrial) -> dict[str, object]:
    judges = [
        {
            "judge": held.judge,
            "right": held.right,
            "of": len(held.verdicts),
            "allowed": held.allowed,
            "wrong": [one.anchor for one in held.wrong],
            "unanswered": [one.anchor for one in held.unanswered],
            "holds": held.holds,
        }
        for held in trial.judges
    ]
    return {"benchmark": str(trial.root), "judges": judges, "calls": trial.calls, "cost_usd": trial.cost_usd}


@judge_command.command("sample")
@click.argument("run", default="last")
@click.option("--labels", type=click.IntRange(2), default=100, help="How many verdicts (default: 100).")
@click.option(
    "--by",
    type=click.Choice(["rows", "points"]),
    default="rows",
    help="rows: each verdict alike, for the pass rate; points: by severity, for the share of points.",
)
@click.option("--seed", type=int, default=0, help="Another sample of the same size.")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="FILE.csv; default: stdout.",
)
@db_option
def sample(run: str, labels: int, by: str, seed: int, output: Path | None, db: Path | None) -> None:
    """Write verdicts of a judge for a person to label blind.

    Half of them are passes. The file holds prompts and replies, and nothing of the verdicts. Write pass or
    fail into the column `label`, then
    `helmbench judge labels RUN FILE`.
    """
    path = database_of(db)
    detail = run_of(path, run)
    known = judged_rows(path, detail.id)
    if not known:
        raise CommandError(
            f"run {detail.id} has no verdict of a judge\n  hint: only rubrics in words are judged by a model"
        )
    texts = {(row.code, row.repetition): row for row in recorded_results(path, detail, with_text=True)}
    criteria = criteria_of(path, detail.id)
    draws = drawn(known, labels, seed, by_points=by == "points")
    rows = [
        _label_row(row, texts[row.key[:2]], criteria) | ({"draws": times} if by == "points" else {})
        for row, times in draws.items()
    ]
    text = label_file(rows)
    if output is None:
        say_whole(text.removesuffix("\n"))
        return
    write_file(output, text)
    passes = sum(row.passed for row in known)
    complain(
        f"{len(rows)} of {len(known)} verdicts of run {detail.id} in {output}, drawn from {passes} passes and"
        f" {len(known) - passes} fails; write pass or fail into the column label"
    )


def _label_row(row: JudgedRow, result: ResultRow, criteria: Mapping[str, JsonObject]) -> dict[str, object]:
    asked, passes_when = question(criteria.get(result.code, {}), row.key[2], row.severity)
    return {
        **dict(zip(("code", "repetition", "criterion"), row.key, strict=True)),
        "question": asked,
        "passes_when": passes_when,
        "prompt": prompt_text(result),
        "reply": result.reply or "",
    }


@judge_command.command("labels")
@click.argument("run")
@click.argument("file", type=click.Path(path_type=Path))
@db_option
def labels(run: str, file: Path, db: Path | None) -> None:
    """Store a person's labels of a judge's verdicts.

    FILE comes from `helmbench judge sample`.

    The exit code is 1, and nothing is stored, when a row is unknown or has no label. Scores then show the
    corrected pass rate.
    """
    path = database_of(db)
    detail = run_of(path, run)
    run_id = detail.id
    try:
        labels = read_labels(file, judged_rows(path, run_id))
    except LabelError as error:
        raise CommandError(str(error), code=1) from error
    write_labels(path, run_id, labels, iso_time(time.time()))
    by_points = any(label.draws is not None for label in labels.values())
    found = stored_correction(path, run_id, by_points=by_points)
    what = "share of points" if by_points else "pass rate"
    say(f"{len(labels)} labels of run {run_id} stored", corrected_text(found, what))


@click.command("rescore")
@click.argument("run", default="last")
@benchmark_option
@db_option
@as_json_option
def rescore_command(run: str, path: Path | None, db: Path | None, *, as_json: bool) -> None:
    """Judge the stored replies of a run by the present rules.

    No model is called. The outcome is a new run. Cases whose judge would be asked something new stay without
    a verdict, as do those
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
        say(*_lines(detail, found), *recorded_unstated_lines(database, found.run_id, detail.model))


def _root_of(detail: RunDetail, given: Path | None) -> Path:
    """Return the folder of the benchmark: the one given, else where the run has found it."""
    stated = detail.settings.get("benchmark_path")
    place = given if given is not None else Path(str(stated)) if stated else None
    root = None if place is None else benchmark_root(place)
    if root is None:
        where = "that is not known" if place is None else f"no benchmark at {place}"
        raise CommandError(
            f"the rules of run {detail.id} cannot be read: {where}\n"
            "  hint: name the benchmark with --benchmark PATH"
        )
    return root


def _lines(detail: RunDetail, found: Rescored) -> list[str]:
    old = detail.id
    lines = [
        f"run {found.run_id}: the replies of run {old} ({detail.model}), judged anew; nothing was asked",
        changed_text(found.changed),
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
    lines.append(f"score: {share(before)} in run {old}, {share(after)} in run {found.run_id}")
    return lines


def _record(detail: RunDetail, found: Rescored) -> dict[str, object]:
    counts = ("run_id", "needs_judge", "other_prompt", "gone")
    record: dict[str, object] = {"rescored_from": detail.id, **asdict(found.changed)}
    record |= {name: getattr(found, name) for name in counts}
    record["not_rescored"] = sum(found.not_rescored.values())
    for name, score in (("before", found.before), ("after", found.after)):
        record[f"score_{name}"] = None if score is None or score.score is None else float(score.score)
    return record

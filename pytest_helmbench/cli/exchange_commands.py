"""`helmbench export`, `import` and `merge`: runs for other programs, of other programs, and of shards."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import click

from pytest_helmbench.cli.lookup import database_of, kept_values, recorded_unstated_lines, run_of
from pytest_helmbench.cli.output import (
    CommandError,
    complain,
    db_option,
    refuse_unused,
    say,
    say_whole,
    texts_option,
    write_file,
    writing,
)
from pytest_helmbench.cli.project import Project
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.core.whole_file import try_place
from pytest_helmbench.imports.documents import ForeignRun, ImportFileError
from pytest_helmbench.imports.readers import foreign_runs
from pytest_helmbench.imports.storing import store_runs
from pytest_helmbench.reports.baseline_file import baseline_text
from pytest_helmbench.reports.exports import MAIN, ExportedFiles, ExportError
from pytest_helmbench.reports.formats import EXPORTS
from pytest_helmbench.reports.headline import SessionState, cause_of, gate_block, headline
from pytest_helmbench.reports.junit import junit_report
from pytest_helmbench.reports.score_lines import score_lines
from pytest_helmbench.results.comparing import ComparedRun, RunRef
from pytest_helmbench.results.merging import MergedShards, ask_totals, merged_shards
from pytest_helmbench.results.run_report import recorded_run
from pytest_helmbench.results.shard_sessions import MissingError
from pytest_helmbench.run.merged_gates import gates_of, names_of
from pytest_helmbench.store.read.runs import RunDetail, run_detail, runs

_BASELINE = "baseline"


@click.command("export")
@click.argument("named", nargs=-1, metavar="[RUN]...")
@click.option("--format", "form", type=click.Choice([*EXPORTS, _BASELINE]), required=True)
@click.option("--output", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Default: stdout.")
@texts_option
@db_option
def export_command(
    named: tuple[str, ...], form: str, output: Path | None, with_text: str | None, db: Path | None
) -> None:
    """Write the results of runs for other programs.

    They hold codes and hashes, and texts only with --with-text.

    csv is one table, with a row per evaluation; json has a document per run. Both take several runs.

    inspect is a log that Inspect View opens (FILE.eval or FILE.json; needs the extra `inspect`), eee a folder in the
    form of Every Eval Ever.

    baseline is a small file for --helmbench-baseline and `helmbench compare`: the verdicts of all runs of the session,
    to be committed beside the benchmark.
    """
    if form == _BASELINE:
        refuse_unused("a baseline holds no texts", with_text=with_text)
    path = database_of(db)
    details = _named(path, named, form)
    texts, name = ShownTexts(with_text or "none"), "" if output is None else output.name
    try:
        found = _exported(path, details, form, texts, name)
    except ExportError as error:
        raise CommandError(str(error)) from error
    if output is None:
        _print(found)
        return
    for name, content in found.items():
        write_file(output / name if name else output, content)
    count = sum(count for detail in details for count in detail.outcomes.values())
    numbers = ", ".join(str(detail.id) for detail in details)
    complain(f"{count} results of run{'' if len(details) == 1 else 's'} {numbers} in {output}")


def _named(path: Path, named: tuple[str, ...], form: str) -> Sequence[RunDetail]:
    """Return the runs that were named; for a baseline, which represents a session, all runs of that."""
    details = [run_of(path, name) for name in dict.fromkeys(named or ("last",))]
    if form == _BASELINE and len({detail.session_id for detail in details}) == 1:
        return [run_of(path, str(run.id)) for run in runs(path, details[0].session_id)]
    return details


def _exported(
    path: Path, details: Sequence[RunDetail], form: str, texts: ShownTexts, name: str
) -> ExportedFiles:
    if form in EXPORTS:
        recorded = [recorded_run(path, detail, with_text=texts.any) for detail in details]
        return EXPORTS[form](recorded, texts, name)
    if len({detail.session_id for detail in details}) > 1:
        raise ExportError("a baseline is of one session\n  hint: export them one by one")
    found = [ComparedRun.stored(RunRef.of(path, detail, path)) for detail in details]
    return {MAIN: baseline_text([run for run in found if run is not None])}


def _print(found: ExportedFiles) -> None:
    content = found.get(MAIN)
    if content is None:
        raise CommandError("this takes several files\n  hint: name a folder with -o")
    if isinstance(content, str):
        say_whole(content.removesuffix("\n"))
    elif sys.stdout.isatty():
        raise CommandError("this is not a text for a terminal\n  hint: name a file with -o")
    else:
        sys.stdout.buffer.write(content)


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@db_option
def import_command(files: tuple[Path, ...], db: Path | None) -> None:
    """Read results of other tools into the results database.

    FILE is a log of Inspect AI (*.eval, *.json; needs the extra `inspect`), what `promptfoo eval -o FILE.json` writes,
    results_….json of `lm_eval --log_samples`, with its samples beside it, or summary.json of the BenchLocal app.
    Verdicts, tokens and costs are kept; prompts and replies are not. Nothing is stored unless every file can be read.
    """
    found: list[tuple[Path, ForeignRun]] = []
    wrong = []
    for path in files:
        try:
            found += [(path, run) for run in foreign_runs(path)]
        except ImportFileError as error:
            wrong.append(str(error))
    if wrong:
        raise CommandError("\n".join(wrong))
    database = database_of(db)
    ids = store_runs(database, [run for _, run in found])
    for run_id, (path, run) in zip(ids, found, strict=True):
        unjudged = sum(case.passed is None for case in run.cases)
        left = f", {unjudged} without a verdict" if unjudged else ""
        say(f"run {run_id}: {run.model} on {run.benchmark}: {len(run.cases)} cases{left} (from {path.name})")
    complain(f"{len(ids)} run{'' if len(ids) == 1 else 's'} in {database}")


_FILE = click.Path(path_type=Path)


@click.command("merge")
@click.argument("files", nargs=-1, required=True, type=_FILE, metavar="FILE...")
@click.option(
    "-o", "--output", "out", required=True, type=_FILE, metavar="FILE", help="The merged results file."
)
@click.option(
    "--partial",
    is_flag=True,
    help="Merge what is there: the run stays unfinished, --helmbench-resume goes on.",
)
@click.option(
    "--gate", is_flag=True, help="Check the run against the thresholds and the baseline of the shards."
)
@click.option("--junitxml", type=_FILE, metavar="FILE", help="Also write a JUnit report of all cases.")
@click.option(
    "--benchmark",
    "paths",
    multiple=True,
    type=_FILE,
    metavar="PATH",
    help="Where Bench Packs are that are asked for their totals (default: helmbench_paths); repeatable.",
)
@click.option(
    "--force", is_flag=True, help="Replace FILE; merge a shard though it seems to be written still."
)
def merge_command(
    files: tuple[Path, ...],
    out: Path,
    junitxml: Path | None,
    paths: tuple[Path, ...],
    *,
    partial: bool,
    gate: bool,
    force: bool,
) -> int:
    """Join the results files of shards to one run.

    FILE is the results file of a shard (pytest --helmbench-shard=K/N), in any order. All shards need the same
    benchmark, models, settings and cases. If a shard ran twice, the later session counts; costs are always added up.
    The result is the same as that of one session. The shards' files stay as they are.

    The exit code is 1 when something is missing (nothing is written then; see --partial) or a gate does not hold,
    and 2 when the files do not belong together.
    """
    if junitxml is not None:
        _check_junitxml(junitxml, out)
    try:
        with merged_shards(files, out, partial=partial, force=force) as merged:
            gates = gates_of(merged, Path.cwd()) if gate else None
            merged.notes.extend(_totals(merged, paths))
            verdict = None if gates is None else gates.judge(merged, out)
            top = None if verdict is None else headline(verdict, _state(merged, out))
            names = names_of(merged)
            named = [(run.run_id, names[run.run_id], run.facts) for run in merged.runs]
            report = None if junitxml is None else junit_report(merged.path, named, top)
    except MissingError as error:
        raise CommandError(str(error), code=1) from error
    if junitxml is not None and report is not None:
        write_file(junitxml, report)
    say(*_lines(merged, out, names))
    complain([*merged.missing, *merged.notes])
    if top is None:
        return 0
    say(*gate_block(top))
    return 0 if top.holds else 1


def _state(merged: MergedShards, out: Path) -> SessionState:
    """Return why cases of the merged runs have no verdict, and how they get one."""
    reasons: Counter[str] = Counter()
    for detail in filter(None, (run_detail(merged.path, run.run_id) for run in merged.runs)):
        for (outcome, reason), cases in detail.outcomes.items():
            reasons[reason or outcome] += cases if outcome in (Verdict.ERROR, Verdict.SKIPPED) else 0
    command = (
        f"the command of the shards with --helmbench-resume --helmbench-db={out}, without --helmbench-shard"
    )
    left = reasons.total() - reasons["not_trusted"]
    hint = f"{command}, asks the {left} again" if left else ""
    judged = sum(len(run.facts.verdicts) for run in merged.runs)
    return SessionState(hint=hint, cause=cause_of(reasons, judged))


def _check_junitxml(path: Path, out: Path) -> None:
    """Refuse a report that cannot be written, or would stand in the place of a results file, before anything is.

    Raises:
        CommandError: With what is wrong.
    """
    if path.resolve() == out.resolve():
        raise CommandError(f"{path} is the merged results file\n  hint: name another file for --junitxml")
    with writing(path, "name another file for --junitxml"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try_place(path)


def _totals(merged: MergedShards, paths: tuple[Path, ...]) -> list[str]:
    """Ask Bench Packs for their totals, where they are; return what could not be had."""
    project = Project.at(Path.cwd())
    roots: list[Path] = []
    for path in paths or (None,):
        with suppress(HelmbenchError):  # no benchmark here: none is needed but for totals
            roots += project.benchmarks(path)
    settings = project.settings()
    with kept_values(settings) as session:
        return ask_totals(merged, session, settings, roots)


def _lines(merged: MergedShards, out: Path, names: Mapping[int, str]) -> list[str]:
    shards = len(merged.winners)
    lines = [f"{shards} shard{'' if shards == 1 else 's'} merged into {out}"]
    for run in merged.runs:
        judged = len({(code, repetition) for code, repetition, _ in run.facts.verdicts})
        lines.append(
            f"run {run.run_id}: {names[run.run_id]}: {judged:,} of {run.tests:,} cases judged, {run.status}"
        )
        lines += recorded_unstated_lines(out, run.run_id, names[run.run_id])
    scores = {names[run.run_id]: run.score for run in merged.runs if run.score is not None}
    return [*lines, *score_lines(scores, behaviours=False)] if scores else lines

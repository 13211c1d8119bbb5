"""`helmbench merge`: the results files of shards made one run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from pytest_helmbench.cli.at_hand import kept_values
from pytest_helmbench.cli.output import CommandError, complain, no_db_option, say, write_file
from pytest_helmbench.cli.project import Project
from pytest_helmbench.cli.recorded import recorded_unstated_lines
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.whole_file import try_place
from pytest_helmbench.reports.junit import junit_report
from pytest_helmbench.reports.score_lines import gate_lines, score_lines
from pytest_helmbench.results.gates import GateReport
from pytest_helmbench.results.merged_totals import ask_totals
from pytest_helmbench.results.merging import MergedShards, merged_shards
from pytest_helmbench.results.shard_sessions import MissingError
from pytest_helmbench.run.merged_gates import gates_of, names_of

__all__ = ["command"]

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
    "--gate", is_flag=True, help="Hold the run to the thresholds and the baseline that the shards were given."
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
@no_db_option
def command(
    files: tuple[Path, ...],
    out: Path,
    junitxml: Path | None,
    paths: tuple[Path, ...],
    *,
    partial: bool,
    gate: bool,
    force: bool,
) -> int:
    """Join the results files of shards (pytest --helmbench-shard=K/N) to one run, as if it had been one session.

    FILE is the results file of a shard, in any order. They must be of one plan: the same benchmark, models, settings
    and cases. Of a shard that ran twice the later session counts; what was paid is always added up. Scores,
    intervals, verdicts, costs and links are those of one run. Inputs are only read.

    Ends 1 when something is missing (nothing is written then; see --partial) or a gate does not hold, 2 when the
    files do not belong together.
    """
    if junitxml is not None:
        _check_junitxml(junitxml, out)
    try:
        with merged_shards(files, out, partial=partial, force=force) as merged:
            gates = gates_of(merged, Path.cwd()) if gate else None
            merged.notes.extend(_totals(merged, paths))
            verdict = None if gates is None else gates.judge(merged)
            report = None if junitxml is None else _junit(merged, verdict)
    except MissingError as error:
        raise CommandError(str(error), code=1) from error
    if junitxml is not None and report is not None:
        write_file(junitxml, report)
    say(*_lines(merged, out))
    complain([*merged.missing, *merged.notes])
    if verdict is None:
        return 0
    say(*gate_lines(verdict))
    return 0 if verdict.holds else 1


def _check_junitxml(path: Path, out: Path) -> None:
    """Refuse a report that cannot be written, or would stand in the place of a results file, before anything is.

    Raises:
        CommandError: With what is wrong.
    """
    if path.resolve() == out.resolve():
        raise CommandError(f"{path} is the merged results file\n  hint: name another file for --junitxml")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try_place(path)
    except OSError as error:
        raise CommandError(
            f"{path}: cannot be written: {error.strerror}\n  hint: name another file for --junitxml"
        ) from error


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


def _junit(merged: MergedShards, verdict: GateReport | None) -> bytes:
    names = names_of(merged)
    runs = [(run.run_id, names[run.run_id], run.facts) for run in merged.runs]
    return junit_report(merged.path, runs, verdict)


def _lines(merged: MergedShards, out: Path) -> list[str]:
    names = names_of(merged)
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

"""`helmbench judges check`: who would judge the replies of a session here."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from pytest_helmbench.benchmarks.registry import host_evaluators
from pytest_helmbench.cli.output import CommandError, as_json_option, no_db_option, say, say_json
from pytest_helmbench.cli.project import Project
from pytest_helmbench.core.judge_places import JudgePlaces
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.engine.executors import open_judges, refuse_missing
from pytest_helmbench.engine.judge_probe import Judged, PresentJudge, probed
from pytest_helmbench.engine.parcels import version
from pytest_helmbench.reports.tables import table

__all__ = ["command"]

_HEAD = ("host", "process", "version", "sandboxes", "parcels")
_SEPARATOR = ": "
_LEFT = ("host", "sandboxes")


@click.group("judges")
def command() -> None:
    """Look at those who judge replies beside a session (--helmbench-judges)."""


@command.command("check")
@click.argument("who", required=False)
@as_json_option
@no_db_option
def check(who: str | None, *, as_json: bool) -> int:
    """Ask the judges WHO where they are, which version and which sandboxes they have, and what a parcel takes.

    Without WHO they are those of the ini file. WHO is written as for --helmbench-judges: a number, dask:ADDRESS,
    dask:local:N, python:MODULE:FACTORY. Nothing is stored and no model is asked. Ends 1 when one of them runs another
    version than this one, 2 when nobody answers.
    """
    settings = Project.at(Path.cwd()).settings(judges=who)
    try:
        places = JudgePlaces.parse(settings.judges)
        if not places.asks_others:
            say("nobody judges beside the session")
            return 0
        refuse_missing(places)
        judges = open_judges(places)
        try:
            found = probed(judges, settings.judges_wait_s, host_evaluators(settings))
        finally:
            judges.close()
    except HelmbenchError as error:
        raise CommandError(str(error)) from error
    if as_json:
        say_json({"version": version(), **asdict(found), "other_versions": len(found.others)})
    else:
        say(*_lines(found))
    return 1 if found.others else 0


def _lines(found: Judged) -> list[str]:
    lines = [*table(_HEAD, [_cells(one) for one in found.judges], left=_LEFT)]
    count = "1 judge" if len(found.judges) == 1 else f"{len(found.judges)} judges"
    lines.append(f"{count}; a parcel takes {found.parcel_ms:.1f} ms beyond judging")
    if found.others:
        lines.append(
            f"this machine runs {version()}: the others judge nothing\n  hint: install the same version there"
        )
    said = {(one.host, text) for one in found.judges for text in one.sandboxes if _SEPARATOR in text}
    lines.extend(f"{host}: no sandboxes: {text.partition(_SEPARATOR)[2]}" for host, text in sorted(said))
    return lines


def _cells(one: PresentJudge) -> tuple[str, ...]:
    same = "as here" if one.version == version() else one.version
    sandboxes = "; ".join(text.partition(_SEPARATOR)[0] for text in one.sandboxes) or "not asked"
    return one.host, str(one.process), same, sandboxes, str(one.parcels)

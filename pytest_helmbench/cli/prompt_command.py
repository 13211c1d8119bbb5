"""`helmbench prompt`: exactly what would be sent for a case."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click

from pytest_helmbench.benchmarks.authoring import BrokenCaseError, Prompt, Reading
from pytest_helmbench.cli.at_hand import benchmark_option, nearest, readings
from pytest_helmbench.cli.output import (
    CommandError,
    no_db_option,
    say,
    say_json,
)
from pytest_helmbench.cli.project import Project
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.gateway.providers.endpoints import Endpoint, Unusable, resolve_endpoint
from pytest_helmbench.gateway.requests import request_body
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.run.targets import resolve_targets

__all__ = ["command"]


@click.command("prompt")
@click.argument("code")
@click.argument("place", type=click.Path(path_type=Path), metavar="[PATH]", required=False)
@benchmark_option
@click.option("--model", metavar="ID", help="The body for this model, with its sampling options.")
@click.option("--system-prompt", metavar="FILE", help="A system message before the case.")
@click.option("--json", "as_json", is_flag=True, help="The JSON body as it would be sent.")
@no_db_option
def command(
    code: str,
    place: Path | None,
    path: Path | None,
    model: str | None,
    system_prompt: str | None,
    *,
    as_json: bool,
) -> None:
    """Print exactly what would be sent for the case CODE of the benchmark at PATH; nothing is sent.

    As text: the messages and the response format. As JSON, and whenever a model is named: the request body.
    A Bench Pack writes its requests itself: of its scenarios, what it shows of them.
    """
    project = Project.at(Path.cwd())
    settings = project.settings(model=None if model is None else [model], system_prompt=system_prompt)
    root, found = _find(readings(project, settings, place or path), code, settings.system_prompt)
    case = found.case
    if case is None:
        if model is not None or as_json:
            raise CommandError(found.refusal)
        say(*found.lines)
    elif model is not None:
        say_json(_body(root, settings, case))
    elif as_json:
        body: dict[str, object] = {
            "messages": [{"role": message.role, "content": message.content} for message in case.messages]
        }
        say_json(body if case.response_format is None else {**body, "response_format": case.response_format})
    else:
        say(*_case_text(case))


def _find(loaded: Sequence[Reading], code: str, system_prompt: str | None) -> tuple[Path, Prompt]:
    """Return what would be sent for a case, and the folder of its benchmark.

    Raises:
        CommandError: There is no such case, or its scenario is broken.
    """
    for reading in loaded:
        try:
            found = reading.prompt(code, system_prompt)
        except BrokenCaseError as error:
            raise CommandError(str(error), code=1) from error
        if found is not None:
            return reading.root, found
    known = [name for reading in loaded for name in reading.near(code)]
    raise CommandError(f"there is no case {code}\n  hint: {nearest(code, known)}")


def _case_text(case: Case) -> Iterator[str]:
    for message in case.messages:
        yield f"[{message.role}]"
        yield message.content
        yield ""
    if case.response_format is None:
        yield "[no response format: plain text]"
    else:
        yield "[response_format]"
        yield json.dumps(case.response_format, ensure_ascii=False, indent=2)


def _body(root: Path, settings: Settings, case: Case) -> JsonObject:
    """Return the body that the model would get; a missing key does not change it."""
    (target,) = resolve_targets(root, settings, os.environ)
    endpoint = target.model.endpoint
    if isinstance(endpoint, Unusable):
        endpoint = _as_if_usable(target.model.entry, settings, endpoint)
    return request_body(
        endpoint, target.model.entry.sampling, case.messages, case.response_format, repetition=1
    )


def _as_if_usable(entry: ModelEntry, settings: Settings, unusable: Unusable) -> Endpoint:
    found = resolve_endpoint(
        entry,
        default_base_url=settings.base_url,
        default_key_env=settings.api_key_env,
        environ={unusable.variable: "none"},
    )
    if isinstance(found, Unusable):
        raise CommandError(f"{entry.id} cannot be resolved: {found.reason}\n  hint: give it a key")
    return replace(found, key=None)

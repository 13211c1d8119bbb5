"""`helmbench init`, `check`, `list`, `prompt` and `schema`: what the authors of a benchmark ask."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Protocol, runtime_checkable

import click

from pytest_helmbench.benchmarks.authoring import BrokenCaseError, Checked, Prompt, ReadBenchmark, counted
from pytest_helmbench.benchmarks.kind import SchemaOwner, SessionValues
from pytest_helmbench.benchmarks.places import absolute, benchmark_root
from pytest_helmbench.benchmarks.registry import all_places, authoring_at, authoring_of, meant_places
from pytest_helmbench.cli.lookup import benchmark_option, kept_values, listing_lines, nearest, readings
from pytest_helmbench.cli.output import (
    CommandError,
    as_json_option,
    refuse_unused,
    say,
    say_json,
    unprotected_option,
)
from pytest_helmbench.cli.project import Project
from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError, Problem, UnreadableBenchmarkError, without_effects
from pytest_helmbench.core.whole_file import write_atomically
from pytest_helmbench.engine.job import Target
from pytest_helmbench.files.anchors_file import ANCHORS_SCHEMA, anchors_path
from pytest_helmbench.files.models_file import MODELS_SCHEMA
from pytest_helmbench.gateway.providers.endpoints import Unusable, resolve_endpoint
from pytest_helmbench.gateway.requests import request_body
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.reports.formats import SCHEMAS
from pytest_helmbench.reports.json_report import own_schema
from pytest_helmbench.run.judge_check import anchored_rules
from pytest_helmbench.run.library import Library, fetched
from pytest_helmbench.run.targets import odd_models, resolve_targets
from pytest_helmbench.scoring.changes import LEAST_CHANGED
from pytest_helmbench.scoring.intervals import CaseStake, Precision, precision
from pytest_helmbench.scoring.rows import exact

_IGNORED = "helmbench.db*"
_ONE_PATH = "name the benchmark as PATH or with --benchmark"
_OF_FILES = {schema.name: schema for schema in (ANCHORS_SCHEMA, MODELS_SCHEMA)}
_OF_KINDS = {name: places for places in all_places() for name in places.schemas}


@runtime_checkable
class _Keeper(Protocol):
    """An `Authoring` that can also keep a table as a benchmark."""

    def kept(
        self, source: Path, name: str, session: SessionValues, *, as_rows: bool
    ) -> tuple[str, Mapping[Path, str | Path]]:
        """Return what was understood of a table, and the files of a benchmark of it: texts, or files to copy."""


@click.command("init")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--from", "source", metavar="TABLE", help="Keep a table (or hf://OWNER/NAME) as a question pack."
)
@click.option("--as-jsonl", is_flag=True, help="With --from: write its rows to tasks.jsonl, not the table.")
@click.option(
    "--columns", "--helmbench-columns", metavar="FIELD=COLUMN,…", help="With --from: as of a session."
)
@click.option("--rubric", "--helmbench-rubric", metavar="TEXT", help="With --from: as of a session.")
@click.pass_context
def init_command(
    context: click.Context,
    path: Path,
    source: str | None,
    *,
    as_jsonl: bool,
    columns: str | None,
    rubric: str | None,
) -> None:
    """Write a small working benchmark to PATH.

    With --from, PATH becomes a question pack of a table. Git ignores its results, and existing files stay as they are.
    """
    if source is not None:
        settings = Project.at(Path.cwd()).settings(columns=columns, rubric=rubric)
        understood, kept = _kept(source, path, settings, as_rows=as_jsonl)
        _write(path, kept)
        say(understood)
        context.invoke(check_command, path=path, as_json=False, unprotected=False)
        say("next:", f"  pytest {shlex.quote(str(path))} --helmbench-model=ID")
        return
    refuse_unused("add --from TABLE", as_jsonl=as_jsonl, columns=columns, rubric=rubric)
    kind = next(places for places in all_places() if places.starter)
    package = kind.module.rpartition(".")[0]
    found = _starter(files(package).joinpath(kind.starter), Path())
    contents = {name: _at(path, content) for name, content in found}
    ignore = _write(path, contents)
    say(
        f"{len(contents)} files in {path}; {_IGNORED} in {ignore}",
        "next:",
        f"  helmbench check {shlex.quote(str(path))}",
        f"  pytest {shlex.quote(str(path))} --helmbench-model=baseline/lexical",
        "  helmbench runs",
    )


def _kept(
    source: str, path: Path, settings: Settings, *, as_rows: bool
) -> tuple[str, Mapping[Path, str | Path]]:
    """Return what was understood of a table, and the files of a benchmark of it."""
    table = Path(fetched(source))
    root = benchmark_root(table)
    authoring = None if root is None else authoring_at(root)
    if root is None or not isinstance(authoring, _Keeper):
        hint = "name a .csv, .tsv, .jsonl, .json or .parquet file that exists"
        raise CommandError(f"{source} is not a table\n  hint: {hint}")
    with kept_values(settings) as session:
        return authoring.kept(root, path.absolute().name, session, as_rows=as_rows)


def _write(path: Path, contents: Mapping[Path, str | Path]) -> Path:
    """Write the files of a benchmark, texts or copies, and return the `.gitignore` that leaves its results out.

    Raises:
        CommandError: One is there already, or cannot be written.
    """
    taken = next((path / name for name in contents if (path / name).exists()), None)
    if taken is None and path.exists() and not path.is_dir():
        taken = path
    if taken is not None:
        raise CommandError(f"{taken} exists already; nothing was written\n  hint: name another folder")
    try:
        for name, content in contents.items():
            target = path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                shutil.copyfile(content, target)
                continue
            with target.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(content)
        return _ignore_results(path)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: cannot be written: {error}\n  hint: name another folder") from error


def _at(path: Path, content: str) -> str:
    """Return a file of the starter with the commands in it for the folder that it is written to."""
    place = shlex.quote(str(path))
    for command in ("pytest", "helmbench check"):
        content = content.replace(f"{command} benchmark", f"{command} {place}")
    return content


def _starter(folder: Traversable, place: Path) -> Iterator[tuple[Path, str]]:
    for item in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if item.name == "__pycache__":
            continue
        if item.is_dir():
            yield from _starter(item, place / item.name)
        else:
            yield place / item.name, item.read_text(encoding="utf-8")


def _ignore_results(path: Path) -> Path:
    """Add the line to the repository's `.gitignore`, else to the project's; return that file."""
    place = path.absolute()
    repository = next((folder for folder in (place, *place.parents) if (folder / ".git").exists()), None)
    ignore = (repository or Project.at(Path.cwd()).root) / ".gitignore"
    text = ignore.read_text(encoding="utf-8") if ignore.is_file() else ""
    if _IGNORED not in text.split():
        text += "" if not text or text.endswith("\n") else "\n"
        write_atomically(ignore, f"{text}{_IGNORED}\n")
    return ignore


@click.command("list")
@click.argument("place", type=click.Path(path_type=Path), metavar="[PATH]", required=False)
@benchmark_option
@as_json_option
@unprotected_option
def list_command(place: Path | None, path: Path | None, *, as_json: bool, unprotected: bool) -> None:
    """List the scenarios or rows of the benchmark at PATH.

    A scenario tree is listed with the behaviour, evaluation family and number of cases of each scenario.
    """
    if place is not None:
        refuse_unused(_ONE_PATH, benchmark=path)
    project = Project.at(Path.cwd())
    settings = project.settings(unprotected=unprotected or None)
    listings = [reading.listing() for reading in readings(project, settings, place or path)]
    if as_json:
        say_json([record for listing in listings for record in listing.records])
        return
    for listing in listings:
        say(*listing_lines(listing))


@click.command("schema")
@click.argument("name", type=click.Choice(sorted({*_OF_KINDS, *_OF_FILES, *SCHEMAS})), metavar="NAME")
def schema_command(name: str) -> None:
    """Print the JSON Schema of a kind of file, for an editor."""
    say_json(_schema(name))


def _schema(name: str) -> JsonObject:
    if name in _OF_FILES:
        return _OF_FILES[name].document()
    if name in SCHEMAS:
        return own_schema(name)
    owner = authoring_of(_OF_KINDS[name])
    if not isinstance(owner, SchemaOwner):
        raise TypeError(f"{_OF_KINDS[name].name}: it names a schema and has none")
    return owner.schema(name)


@click.command("prompt")
@click.argument("code")
@click.argument("place", type=click.Path(path_type=Path), metavar="[PATH]", required=False)
@benchmark_option
@click.option("--model", metavar="ID", help="The body for this model, with its sampling options.")
@click.option("--system-prompt", metavar="FILE", help="A system message before the case.")
@click.option("--json", "as_json", is_flag=True, help="The JSON body as it would be sent.")
def prompt_command(
    code: str,
    place: Path | None,
    path: Path | None,
    model: str | None,
    system_prompt: str | None,
    *,
    as_json: bool,
) -> None:
    """Print the request that a case would send, without sending it.

    CODE is that of a case of the benchmark at PATH. The command prints messages and response format, or the request
    body with --json or --model. It prints all messages of a conversation: `(reply 1)` is the model's reply to turn 1.
    A Bench Pack writes its requests itself, so only its own description is printed.
    """
    if place is not None:
        refuse_unused(_ONE_PATH, benchmark=path)
    project = Project.at(Path.cwd())
    settings = project.settings(model=None if model is None else [model], system_prompt=system_prompt)
    loaded = readings(project, settings, place or path)
    prompts = (
        settings.system_prompt if model is None else _target(one.root, settings).model.entry.system_prompt
        for one in loaded
    )
    root, found = _find(loaded, code, prompts)
    case = found.case
    if case is None:
        if model is not None or as_json:
            raise CommandError(found.refusal)
        say(*found.lines)
    elif model is not None:
        say_json(_body(root, settings, case))
    elif as_json:
        body: dict[str, object] = {"messages": [message.wire() for message in _messages(case)]}
        if case.toolbox is not None:
            body["tools"] = case.toolbox.definitions()
        say_json(body if case.response_format is None else {**body, "response_format": case.response_format})
    else:
        say(*_case_text(case))


def _find(loaded: Sequence[ReadBenchmark], code: str, prompts: Iterable[str | None]) -> tuple[Path, Prompt]:
    """Return what would be sent for a case, and the folder of its benchmark.

    Raises:
        CommandError: There is no such case, or its scenario is broken.
    """
    for reading, system_prompt in zip(loaded, prompts, strict=True):
        try:
            found = reading.prompt(code, system_prompt)
        except BrokenCaseError as error:
            raise CommandError(str(error), code=1) from error
        if found is not None:
            return reading.root, found
    known = [name for reading in loaded for name in reading.near(code)]
    raise CommandError(f"there is no case {code}\n  hint: {nearest(code, known)}")


def _messages(case: Case) -> tuple[Message, ...]:
    """Return all messages of a case, with `(reply 1)` where the model's reply to turn 1 is sent back to it."""
    shown, turn = [*case.messages], 1
    for message in case.script:
        if message.role == "user":
            if shown[-1].role == "user":
                shown.append(Message("assistant", f"(reply {turn})"))
            turn += 1
        shown.append(message)
    return tuple(shown)


def _case_text(case: Case) -> Iterator[str]:
    for message in _messages(case):
        yield f"[{message.role}]"
        yield message.content
        yield ""
    if case.response_format is None:
        yield "[no response format: plain text]"
    else:
        yield "[response_format]"
        yield json.dumps(case.response_format, ensure_ascii=False, indent=2)
    if case.toolbox is not None:
        yield ""
        yield "[tools]"
        yield json.dumps(case.toolbox.definitions(), ensure_ascii=False, indent=2)


def _target(root: Path, settings: Settings) -> Target:
    """Return the model that is named; the first of its variants where the project has any."""
    return resolve_targets(root, settings, os.environ)[0]


def _body(root: Path, settings: Settings, case: Case) -> JsonObject:
    """Return the body that the model would get; a missing key does not change it."""
    route = _target(root, settings).model
    entry, endpoint = route.entry, route.endpoint
    if isinstance(endpoint, Unusable):
        endpoint = resolve_endpoint(
            entry,
            default_base_url=settings.base_url,
            default_key_env=settings.api_key_env,
            environ={endpoint.variable: "none"},
        )
        if isinstance(endpoint, Unusable):
            raise CommandError(f"{entry.id} cannot be resolved: {endpoint.reason}\n  hint: give it a key")
        endpoint = replace(endpoint, key=None)
    tools = () if case.toolbox is None else case.toolbox.definitions()
    return request_body(endpoint, entry.sampling, _messages(case), case.response_format, tools, repetition=1)


@dataclass(frozen=True, slots=True)
class _Found:
    """All that was found in one benchmark, and what its kind says of it: None where it cannot be read."""

    root: Path
    checked: Checked | None
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


@click.command("check")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@as_json_option
@unprotected_option
@click.option("--attack", is_flag=True, help="Try what solves nothing on each row of packs: none may pass.")
def check_command(path: Path | None, *, as_json: bool, unprotected: bool, attack: bool) -> int:
    """Report every problem of a benchmark by file and line.

    No model is called. The rows of a pack are tried with their own answers: right ones must pass, wrong ones must
    fail. Node loads a Bench Pack and lists its scenarios.

    For a tree the command prints the effective numbers of perturbations and cases, and where one more helps most.

    The exit code is 1 when there are errors. Warnings never change it.
    """
    settings = Project.at(Path.cwd()).settings(unprotected=unprotected or None)
    with kept_values(settings) as values:
        session = replace(values, attacks=attack)
        found = [_checked(root, session, _anchor_problems(root, settings)) for root in _places(path)]
    if as_json:
        say_json([entry for item in found for entry in _records(item)])
    else:
        for item in found:
            say(*_report(item))
    return 1 if any(item.errors for item in found) else 0


def _places(path: Path | None) -> tuple[Path, ...]:
    if path is not None and benchmark_root(absolute(path)) is None and meant_places(path) is not None:
        return (path,)  # its files tell that it was meant as a benchmark; its kind says what is wrong with it
    return Project.at(Path.cwd()).benchmarks(path)


def _checked(root: Path, session: SessionValues, anchors: tuple[Problem, ...]) -> _Found:
    """Check a benchmark, or what was meant as one."""
    models, odd_models = _models_problems(root)
    models += anchors
    authoring = authoring_at(root)
    try:
        found = authoring.check(root, session)
    except UnreadableBenchmarkError as error:
        return _Found(root, None, (*error.problems, *models), odd_models)
    errors = without_effects(found.errors, found.errors)
    return _Found(root, found, (*errors, *models), (*found.warnings, *odd_models))


def _anchor_problems(root: Path, settings: Settings) -> tuple[Problem, ...]:
    """Return what is wrong with the anchors of a benchmark."""
    path = anchors_path(root)
    if path is None:
        return ()
    library = Library(settings, os.environ, lambda _sentence: None)
    try:
        anchored_rules(library.load(root))
    except UnreadableBenchmarkError as error:
        return tuple(problem for problem in error.problems if problem.path == path)
    except HelmbenchError:
        return ()  # problems of the benchmark itself are reported beside this
    finally:
        library.end()
    return ()


def _models_problems(root: Path) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Return the errors of models.yml, and ids that need a base URL on the command line to work."""
    path = next((path for path in (root / "models.yml", root / "models.yaml") if path.is_file()), None)
    if path is None:
        return (), ()
    try:
        return (), tuple(odd_models(path))
    except UnreadableBenchmarkError as error:
        return error.problems, ()


def _report(item: _Found) -> Iterator[str]:
    base = Path.cwd()
    for label, problems in (("error", item.errors), ("warning", item.warnings)):
        for problem in problems:
            yield replace(problem, message=f"{label}: {problem.message}").text(base)
    counts = f"{counted(len(item.errors), 'error')}, {counted(len(item.warnings), 'warning')}"
    checked = item.checked
    if checked is None:
        yield f"{item.root}: cannot be read; {counts}"
        return
    yield f"{checked.healthy}; {counts}"
    if checked.attacks:
        yield checked.attacks
    if checked.broken:
        yield f"{checked.broken}: they count as planned and not judged"
    stakes = (CaseStake(one.behaviour, exact(one.weight), one.unit, one.points) for one in checked.stakes)
    found = precision(stakes)
    if found is not None:
        yield _precision_line(found)


def _precision_line(found: Precision) -> str:
    line = (
        f"effective: {found.effective_units:.1f} of {counted(found.units, 'perturbation')},"
        f" {found.effective_cases:.1f} of {counted(found.cases, 'case')};"
        f" add perturbations to {found.best} first (one more: {found.then:.1f})"
    )
    if found.units < LEAST_CHANGED:
        line += f"; no regression of the run can be shown: {LEAST_CHANGED} perturbations are needed"
    return line


def _records(item: _Found) -> Iterator[dict[str, object]]:
    for label, problems in (("error", item.errors), ("warning", item.warnings)):
        for problem in problems:
            told = {key: getattr(problem, key) for key in ("line", "message", "hint")}
            yield {"level": label, "path": str(problem.path), **told}

"""Commands for authors of benchmarks: `check`, `schema` and `init`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from pytest_helmbench.benchmarks.bench_packs.places import is_bench_pack
from pytest_helmbench.benchmarks.packs.format.pack_loader import load_pack
from pytest_helmbench.benchmarks.packs.loading import PackLoader
from pytest_helmbench.benchmarks.packs.places import manifests_of, row_files_of
from pytest_helmbench.benchmarks.places import benchmark_root, benchmarks_below
from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.benchmarks.scenario_trees.places import is_tree
from pytest_helmbench.benchmarks.scenario_trees.static_checks import static_warnings
from pytest_helmbench.cli.hosted import loaded_bench_pack
from pytest_helmbench.cli.output import (
    CommandError,
    as_json_option,
    no_db_option,
    say,
    say_json,
)
from pytest_helmbench.cli.project import Project
from pytest_helmbench.core.problem import HelmbenchError, Problem, UnreadableBenchmarkError
from pytest_helmbench.files.models_file import load_models
from pytest_helmbench.files.schemas import SCHEMA_NAMES, schema
from pytest_helmbench.gateway.providers.endpoints import resolve_endpoint
from pytest_helmbench.reports.formats import SCHEMAS, report_schema

__all__ = ["check", "init", "print_schema"]

_IGNORED = "helmbench.db*"


@dataclass(frozen=True, slots=True)
class _Checked:
    """What was found in one benchmark; `healthy` says what of it can run, and is None where it cannot be read."""

    root: Path
    healthy: str | None
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


@click.command()
@click.argument("path", type=click.Path(path_type=Path), required=False)
@as_json_option
@no_db_option
def check(path: Path | None, *, as_json: bool) -> int:
    """Report every problem of the benchmark at PATH by file and line; no model is asked.

    Rows of packs are held to their own answers: these must pass, and what must not pass must fail. Bench Packs are
    loaded in Node and list their scenarios.

    Ends 1 when there are errors. Warnings never change the exit code.
    """
    found = [_checked(root) for root in _places(path)]
    if as_json:
        say_json([entry for item in found for entry in _records(item)])
    else:
        for item in found:
            say(*_report(item))
    return 1 if any(item.errors for item in found) else 0


def _places(path: Path | None) -> tuple[Path, ...]:
    if path is None:
        return Project.at(Path.cwd()).benchmarks(None)
    place = Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute() keeps `..`
    root = benchmark_root(place)
    below = tuple(benchmarks_below(place)) if place.is_dir() else ()
    if root is not None:
        return tuple(dict.fromkeys((root, *below)))
    if (path / "scenarios").is_dir() or (manifests_of(path) and row_files_of(path)):
        return (
            path,
        )  # meant as a benchmark: a tree whose folders are all misnamed, a pack without id or version
    if not below:
        raise CommandError(
            f"no benchmark at {path}\n  hint: a benchmark is a folder with scenarios/P1-B1-S1/…;"
            " `helmbench init PATH` makes one; a pack is a folder with manifest.yaml and tasks.jsonl,"
            " a Bench Pack one with benchlocal.pack.json"
        )
    return below


def _checked(root: Path) -> _Checked:
    models, odd_models = _models_problems(root)
    if is_bench_pack(root):
        return _checked_bench_pack(root, models, odd_models)
    if manifests_of(root) and not is_tree(root):
        return _checked_pack(root, models, odd_models)
    try:
        benchmark = load_tree(root)
    except UnreadableBenchmarkError as error:
        return _Checked(root, None, (*error.problems, *models), ())
    errors = [problem for problems in benchmark.problems.values() for problem in problems]
    if not benchmark.scenarios and not errors:
        hint = "name the folder of a scenario like P1-B1-S1"
        errors.append(Problem(root / "scenarios", None, "there is no scenario in it", hint))
    warnings = [
        problem for problem in benchmark.warnings if benchmark.scenarios or problem.path.name != "scenarios"
    ]
    warnings += [*static_warnings(benchmark), *odd_models]
    cases = sum(
        (len(scenario.conditions) or 1) * (len(scenario.user_contexts) or 1) * len(scenario.perturbations)
        for scenario in benchmark.scenarios.values()
    )
    healthy = (
        f"{benchmark.name}: {_count(len(benchmark.scenarios), 'healthy scenario')}, {_count(cases, 'case')}"
    )
    return _Checked(root, healthy, (*errors, *models), tuple(warnings))


def _checked_pack(root: Path, models: tuple[Problem, ...], odd_models: tuple[Problem, ...]) -> _Checked:
    try:
        pack = load_pack(root)
    except UnreadableBenchmarkError as error:
        return _Checked(root, None, (*error.problems, *models), odd_models)
    findings, skipped = asyncio.run(_self_checked(root))
    errors = (*pack.all_problems(), *models, *findings)
    healthy = f"{pack.id}: {_count(len(pack.rows), 'healthy row')}"
    notes = [
        Problem(pack.manifest.path, None, f"{_count(rows, 'row')} not self-checked: {why}")
        for why, rows in skipped.items()
    ]
    return _Checked(root, healthy, errors, (*pack.warnings, *odd_models, *notes))


def _checked_bench_pack(root: Path, models: tuple[Problem, ...], odd_models: tuple[Problem, ...]) -> _Checked:
    try:
        loaded = loaded_bench_pack(root, Project.at(Path.cwd()).settings())
    except UnreadableBenchmarkError as error:
        return _Checked(root, None, (*error.problems, *models), odd_models)
    refusal = loaded.work.refusal
    odd = odd_models
    if refusal is not None:
        message, _, hint = refusal.message.partition("\n  hint: ")
        odd = (*odd, Problem(loaded.manifest.path, None, f"it would be skipped: {message}", hint))
    listed = "not loaded" if loaded.stands_for_all else _count(len(loaded.outline.scenarios), "scenario")
    return _Checked(root, f"{loaded.outline.name}: {listed}", models, odd)


async def _self_checked(root: Path) -> tuple[Sequence[Problem], Mapping[str, int]]:
    """Hold the rows of a pack to their own answers; code runs in a sandbox, or not at all."""
    pack_loader = PackLoader(Project.at(Path.cwd()).settings(), say)
    try:
        return await pack_loader.self_check_all(root)
    finally:
        await pack_loader.close()


def _models_problems(root: Path) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Return the errors of models.yml, and ids that need a base URL on the command line to work."""
    path = next((path for path in (root / "models.yml", root / "models.yaml") if path.is_file()), None)
    if path is None:
        return (), ()
    try:
        named = load_models(path)
    except UnreadableBenchmarkError as error:
        return error.problems, ()
    odd = []
    for entry in (*named.models, *([named.marking_model] if named.marking_model else [])):
        try:
            resolve_endpoint(entry, default_base_url=None, default_key_env=None, environ={})
        except HelmbenchError as error:
            message, _, hint = str(error).partition("\n  hint: ")
            odd.append(Problem(path, None, message, hint))
    return (), tuple(odd)


def _report(item: _Checked) -> Iterator[str]:
    base = Path.cwd()
    for label, problems in (("error", item.errors), ("warning", item.warnings)):
        for problem in problems:
            yield replace(problem, message=f"{label}: {problem.message}").text(base)
    counts = f"{_count(len(item.errors), 'error')}, {_count(len(item.warnings), 'warning')}"
    yield f"{item.healthy}; {counts}" if item.healthy else f"{item.root}: cannot be read; {counts}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _records(item: _Checked) -> Iterator[dict[str, object]]:
    for label, problems in (("error", item.errors), ("warning", item.warnings)):
        for problem in problems:
            yield {
                "level": label,
                "path": str(problem.path),
                "line": problem.line,
                "message": problem.message,
                "hint": problem.hint,
            }


@click.command("schema")
@click.argument("name", type=click.Choice([*SCHEMA_NAMES, *SCHEMAS]), metavar="NAME")
@no_db_option
def print_schema(name: str) -> None:
    """Print the JSON Schema of a kind of file, for editors and scripts."""
    say_json(schema(name) if name in SCHEMA_NAMES else report_schema(name))


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@no_db_option
def init(path: Path) -> None:
    """Make a small working benchmark at PATH, and let git ignore results. Nothing is overwritten."""
    contents = dict(_starter(files("pytest_helmbench.benchmarks.scenario_trees").joinpath("starter"), Path()))
    taken = next((path / name for name in contents if (path / name).exists()), None)
    if taken is None and path.exists() and not path.is_dir():
        taken = path
    if taken is not None:
        raise CommandError(f"{taken} exists already; nothing was written\n  hint: name another folder")
    try:
        for name, content in contents.items():
            target = path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(content)
        ignore = _ignore_results(path)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: cannot be written: {error}\n  hint: name another folder") from error
    say(
        f"{len(contents)} files in {path}; {_IGNORED} in {ignore}",
        "next:",
        f"  helmbench check {path}",
        f"  pytest {path} --helmbench-model=baseline/lexical",
        "  helmbench runs",
    )


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
        ignore.write_text(f"{text}{_IGNORED}\n", encoding="utf-8", newline="\n")
    return ignore

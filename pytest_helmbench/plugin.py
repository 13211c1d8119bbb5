"""The entry point of pytest: options, fixtures, and whether a session runs cases.

It imports nothing of the package but the options until a session needs it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from pytest_helmbench.options.declarations import OPTIONS
from pytest_helmbench.options.option import Option
from pytest_helmbench.speed.interpreter import import_as_installed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import openai

    from pytest_helmbench.benchmarks.python_tests.clients import Connection
    from pytest_helmbench.benchmarks.python_tests.judge_fixture import AskedJudge

_MANIFESTS = ("manifest.yaml", "manifest.yml", "manifest.json")
_BENCH_PACK_MANIFEST = "benchlocal.pack.json"
_TABLES = (".jsonl", ".tsv", ".parquet")
"""Suffixes that are ours without an option."""
_ADDRESS = "hf://"
_TASK = "task.toml"
_BENCHMARK_FILES = ("scenarios", *_MANIFESTS, _BENCH_PACK_MANIFEST, _TASK)

MARKER = (
    "helmbench(pillar, behaviour, scenario, condition, user_context, perturbation, model, family, severity,"
    " repetition): a case of a benchmark; select with -m \"helmbench(behaviour='P1-B2')\""
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register every option with its ini key."""
    import_as_installed()
    for option in OPTIONS:
        if option.use == "ini":
            parser.addini(option.key, option.help, type=option.type.ini)
            continue
        title = option.group.title
        group = parser.getgroup(f"helmbench: {title}", f"LLM benchmarks (helmbench): {title}")
        group.addoption(option.flag, dest=option.key, default=None, help=option.help, **_argparse(option))
        parser.addini(option.key, f"same as {option.flag}", type=option.type.ini)


def _argparse(option: Option) -> Mapping[str, object]:
    """Return the arguments of argparse for the type of an option."""
    type_ = option.type
    arguments: dict[str, object] = {"action": type_.action, "metavar": type_.metavar, "type": type_.word}
    if type_.bare:
        arguments |= {"nargs": "?", "const": type_.bare}
    return {"action": type_.action} if type_.action == "store_true" else arguments


def _complete_bare_options(config: pytest.Config, args: list[str], parser: pytest.Parser) -> None:
    """Write out the default value of options without one, so that argparse does not take the next word, maybe a path.

    Args:
        config: It has parsed the command line once.
        args: The command line that pytest parses next, changed in place.
    """
    bare = {option.flag: f"{option.flag}={option.type.bare}" for option in OPTIONS if option.type.bare}
    if bare.keys().isdisjoint(args):
        return
    args[:] = [bare.get(argument, argument) for argument in args]
    as_parsed = type(config.option)(**vars(config.option))
    config.known_args_namespace.file_or_dir = parser.parse_known_args(args, as_parsed).file_or_dir


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, args: list[str], parser: pytest.Parser
) -> Iterator[None]:
    """Keep pytest from using settings and running a conftest.py of a benchmark.

    In a closed benchmark an empty plugin replaces it: pytest names the plugin of a conftest.py by its path, and does
    not import one that is registered.
    """
    _complete_bare_options(early_config, args, parser)
    start = early_config.invocation_params.dir
    named = early_config.known_args_namespace.file_or_dir
    arguments = tuple(_expanded(early_config.invocation_params.args))
    paths = tuple(_paths(early_config, named, start))
    by_path = any(
        str(path) in arguments and _may_be_in_benchmark(start / str(path).split("::")[0]) for path in named
    )
    if by_path or _asks_by_option(arguments):
        # only sessions that ask
        from pytest_helmbench.pytest_side.collect.command_line import refuse_files_of_benchmarks

        refuse_files_of_benchmarks(early_config, parser, arguments, paths, named=bool(named))
    # A Bench Pack may be a whole repository: where no session of ours runs it, its conftest.py is for its own tests.
    asked = bool(named) or _asks_by_option(arguments)
    for folder in dict.fromkeys(_closed_folders(paths, asked=asked)):
        name = str(folder / "conftest.py")
        if not early_config.pluginmanager.has_plugin(name):
            early_config.pluginmanager.register(ModuleType("conftest"), name)
    yield


def _paths(config: pytest.Config, named: Sequence[object], start: Path) -> Iterator[Path]:
    """Yield the paths where pytest starts: arguments, packages by name, patterns in `testpaths`."""
    for word in named:
        name = str(word).split("::")[0]
        yield start / name
        if config.known_args_namespace.pyargs:
            yield from (start / place / name.replace(".", os.sep) for place in sys.path)
    if not named:
        yield start
        for pattern in config.getini("testpaths"):
            yield start / pattern
            if pattern and not Path(pattern).is_absolute():
                yield from start.glob(pattern)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore packs in sessions that run no cases: Python files in them are data."""
    if config.pluginmanager.has_plugin("helmbench-session") or not _may_be_closed(collection_path):
        return None
    has_python = next(collection_path.rglob("*.py"), None) is not None
    return True if has_python and _is_closed(collection_path, asked=False) else None


def _closed_folders(paths: Iterable[Path], *, asked: bool) -> Iterator[Path]:
    """Yield the folders in packs whose conftest.py pytest would run before the collection: the paths, and `test*`.

    Args:
        paths: Where pytest starts.
    """
    for path in paths:
        place = Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute() keeps `..`
        folders = (place, *place.parents)
        packs = [folder for folder in folders if _is_closed(folder, asked=asked)]
        below = [folder for folder in place.glob("test*") if folder.is_dir()] if place.is_dir() else []
        if packs:
            yield from (folder for folder in folders if folder.is_relative_to(packs[-1]))
            yield from below
        else:
            yield from (folder for folder in below if _is_closed(folder, asked=asked))


def _may_be_closed(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (*_MANIFESTS, _BENCH_PACK_MANIFEST, _TASK))


def _is_closed(folder: Path, *, asked: bool) -> bool:
    """Return whether pytest must run no Python file of a folder."""
    if not _may_be_closed(folder):
        return False
    from pytest_helmbench.benchmarks.registry import places_of  # only where a manifest stands

    places = places_of(folder) or (places_of(folder.parent) if (folder / _TASK).is_file() else None)
    return places is not None and (places.is_data or (asked and places.is_closed))


def pytest_configure(config: pytest.Config) -> None:
    """Register the session plugin where the command line asks for cases."""
    config.addinivalue_line("markers", MARKER)
    if asks(config):
        from pytest_helmbench.pytest_side.composition import register  # only sessions that ask pay for it

        register(config)


@pytest.fixture
def _helmbench_turn(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """Route the calls of a test to its model until it ends."""
    if not request.config.pluginmanager.has_plugin("helmbench-session"):
        pytest.skip("no model: give --helmbench-model=ID on the command line")
    from pytest_helmbench.benchmarks.python_tests.hooks import turn  # only tests that use it pay for it

    yield from turn(request)


@pytest.fixture
def helmbench_model(_helmbench_turn: Connection) -> str:
    """Id of the model under test; the test runs once per `--helmbench-model`."""
    return _helmbench_turn.model


@pytest.fixture
def helmbench_openai(_helmbench_turn: Connection) -> Iterator[openai.OpenAI]:
    """An `openai.OpenAI` client of the model under test: its calls are metered, limited, cached and stored."""
    from pytest_helmbench.benchmarks.python_tests.clients import opened_client  # see above

    yield from opened_client(_helmbench_turn)


@pytest.fixture
def helmbench_async_openai(_helmbench_turn: Connection) -> Iterator[openai.AsyncOpenAI]:
    """An `openai.AsyncOpenAI` client of the model under test, for any event loop; see `helmbench_openai`."""
    from pytest_helmbench.benchmarks.python_tests.clients import opened_async_client  # see above

    yield from opened_async_client(_helmbench_turn)


@pytest.fixture
def helmbench_judge(_helmbench_turn: Connection) -> AskedJudge:
    """Ask the marking model: `assert helmbench_judge(reply, "polite, and names a dose", context=None)`."""
    return _helmbench_turn.judge()


def asks(config: pytest.Config) -> bool:
    """Return whether the command line asks for cases, by one of our options or the path of a benchmark."""
    if hasattr(config, "workerinput"):
        return "helmbench" in config.workerinput
    arguments = tuple(_expanded(config.invocation_params.args))
    if _asks_by_option(arguments) or any(word.startswith(_ADDRESS) for word in arguments):
        return True
    paths = set(config.args) & set(arguments)
    return any(_may_be_in_benchmark(config.invocation_params.dir / path.split("::")[0]) for path in paths)


def _asks_by_option(arguments: Iterable[str]) -> bool:
    flags = frozenset(option.flag for option in OPTIONS if option.use != "ini")
    return any(argument.split("=", 1)[0] in flags for argument in arguments)


def _expanded(arguments: Iterable[str | os.PathLike[str]]) -> Iterator[str]:
    """Yield the command line with `@file` arguments read, as pytest does."""
    for argument in map(str, arguments):
        file = Path(argument[1:]) if argument.startswith("@") else None
        if file is not None and file.is_file():
            yield from file.read_text(encoding="utf-8").splitlines()
        else:
            yield argument


def _may_be_in_benchmark(path: Path) -> bool:
    """Return whether a path may be in a benchmark, without an import for most other paths."""
    if not path.exists():
        return False
    path = path.resolve()
    if (
        path.suffix.lower() not in _TABLES
        and not any((folder / name).exists() for folder in (path, *path.parents) for name in _BENCHMARK_FILES)
        and not any(path.glob(f"*/{_TASK}"))
    ):
        return False
    from pytest_helmbench.benchmarks.places import benchmark_root  # see above

    return benchmark_root(path) is not None

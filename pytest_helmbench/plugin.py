"""The pytest11 entry: options and ini keys, and whether this session asks for us.

It imports nothing of the package until somebody asks.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import openai

    from pytest_helmbench.benchmarks.python_tests.clients import Connection

__all__ = ["OPTIONS", "TURN_FIXTURE", "Option", "option_value"]

TURN_FIXTURE = "_helmbench_turn"
"""What the fixtures for hand-written tests have in common: tests that use it run on every model."""


@dataclass(frozen=True)
class Option:
    """One option and its ini key.

    Args:
        name: Without `--helmbench-`.
        kind: `list` options may be given several times.
        metavar: For `--help`; empty for flags.
        text: For `--help`.
        asks: Naming it on the command line asks for our cases.
    """

    name: str
    kind: Literal["text", "list", "flag", "int", "float", "path"]
    metavar: str
    text: str
    asks: bool = False

    @property
    def flag(self) -> str:
        """`--helmbench-max-cost`."""
        return f"--helmbench-{self.name}"

    @property
    def key(self) -> str:
        """`helmbench_max_cost`."""
        return f"helmbench_{self.name.replace('-', '_')}"


OPTIONS = (
    Option("model", "list", "ID", "model under test; repeatable (default: models.yml)", asks=True),
    Option("marking-model", "text", "ID", "judge for SQE scenarios (default: models.yml)"),
    Option("models-file", "path", "PATH", "models.yml to use (default: the benchmark's own)"),
    Option("base-url", "text", "URL", "any OpenAI-compatible server, for every model without its own"),
    Option("api-key-env", "text", "NAME", "environment variable that holds the key"),
    Option("marking-base-url", "text", "URL", "server of the judge, when it is another one"),
    Option("marking-api-key-env", "text", "NAME", "environment variable that holds the judge's key"),
    Option("system-prompt", "path", "PATH", "file with a system message to send before every case"),
    Option("dry-run", "flag", "", "compose and price every case, call nothing", asks=True),
    Option("require-run", "flag", "", "a run in which nothing was judged is a failure"),
    Option("select", "text", "CODES", "cases by code, whole components: P1-B2,*-*-S1-C2,~P4", asks=True),
    Option("repeat", "int", "N", "repetitions per case (default: 1)"),
    Option("add-no-context", "flag", "", "add the combination without user context"),
    Option("temperature", "float", "T", "sampling temperature; sent only when set, never to the judge"),
    Option("top-p", "float", "P", "nucleus sampling"),
    Option("top-k", "int", "K", "top-k sampling"),
    Option("min-p", "float", "P", "min-p sampling"),
    Option("repetition-penalty", "float", "X", "repetition penalty"),
    Option("seed", "int", "N", "seed; repetition n is sent seed + n - 1"),
    Option("max-tokens", "int", "N", "bound on the completion"),
    Option("reasoning-effort", "text", "LEVEL", "low, medium or high, where a model knows it"),
    Option("extra-body", "text", "JSON", "object merged into every request body"),
    Option("strict-json", "flag", "", "no recovery of JSON from surrounding text"),
    Option(
        "concurrency", "int", "N", "calls in flight, all workers together (default: 32; 4 for local servers)"
    ),
    Option("requests-per-minute", "float", "N", "limit of the whole session"),
    Option("tokens-per-minute", "float", "N", "limit of the whole session"),
    Option("timeout", "float", "S", "seconds per attempt (default: 120)"),
    Option("case-timeout", "float", "S", "seconds per case, waiting for our own limits apart"),
    Option("max-retries", "int", "N", "attempts after the first (default: 5)"),
    Option("max-cost", "float", "USD", "budget of the session; what it cannot pay is skipped"),
    Option(
        "cache",
        "text",
        "MODE",
        "recorded replies: off, reuse, refresh, only (replay, no network); default: off",
    ),
    Option(
        "resume",
        "flag",
        "",
        "continue the last unfinished session; nothing answered is asked again",
        asks=True,
    ),
    Option("resume-run", "int", "RUN", "continue the session of this run", asks=True),
    Option("min-score", "text", "X", "gate: least score, 0.7 or P1=0.7,P1-B2=0.9; decides the exit code"),
    Option(
        "min-coverage", "text", "X", "least share of the planned severity that was judged (1.0 with a gate)"
    ),
    Option("db", "path", "PATH", "results database (default: helmbench.db in rootdir)"),
    Option("judge-template", "path", "PATH", "wording of the judge's prompt (default: built in)"),
    Option("markdown", "path", "PATH", "report of the session's runs that pastes into a pull request"),
    Option("json", "path", "PATH", "the same report for programs (schema: `helmbench schema report`)"),
    Option(
        "pack-rules", "text", "RULES", "packs: default (what models really write) or parity (as published)"
    ),
    Option(
        "sandbox", "text", "MODE", "packs: auto, docker, podman, bwrap, or none (unprotected); default: auto"
    ),
    Option("pull", "flag", "", "packs: container images may be pulled"),
    Option("allow-command", "list", "NAME", "packs: a dangerous command that a row may need (chroot)"),
    Option("show-hidden", "flag", "", "packs: show hidden values (answers) in failures and reports"),
    Option("self-check", "flag", "", "packs: check the rows against their own answers, no model", asks=True),
    Option("agent", "text", "COMMAND", "packs: external agent for repo_patch and terminal_task rows"),
    Option(
        "partial",
        "text",
        "RULE",
        "Bench Packs: partial results fail, pass, or pass from a score (default: fail)",
    ),
    Option("node", "path", "PATH", "Bench Packs: Node.js to run them with (default: node on PATH)"),
    Option(
        "verifier",
        "list",
        "[ID=]MODE",
        "Bench Packs: docker, podman, process or a URL; repeatable (default: as the pack says)",
    ),
    Option("prepare", "text", "WHEN", "Bench Packs: prepare per item or per session (default: item)"),
    Option(
        "pack-concurrency", "int", "N", "Bench Packs: scenarios of a pack at a time (1 for local servers)"
    ),
    Option("benchlocal-dir", "path", "PATH", "Bench Packs: write runs as the BenchLocal app stores them"),
    Option("with-text", "flag", "", "prompt and reply texts in JUnit, reports and CI logs"),
)

_MANIFESTS = ("manifest.yaml", "manifest.yml", "manifest.json")
_BENCH_PACK_MANIFEST = "benchlocal.pack.json"
_SIGNS = ("scenarios", *_MANIFESTS, _BENCH_PACK_MANIFEST)
_INI_TYPES: dict[str, Literal["string", "linelist", "bool"]] = {"list": "linelist", "flag": "bool"}
_PARSERS: dict[str, type] = {"int": int, "float": float}

MARKER = (
    "helmbench(pillar, behaviour, scenario, condition, user_context, perturbation, model, family, severity,"
    " repetition): a case of a benchmark; select with -m \"helmbench(behaviour='P1-B2')\""
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register every option with its ini key."""
    group = parser.getgroup("helmbench", "LLM benchmark cases as tests (helmbench)")
    for option in OPTIONS:
        settings: dict[str, Any] = {"dest": option.key, "default": None, "help": option.text}
        if option.kind == "flag":
            settings["action"] = "store_true"
        else:
            settings["metavar"] = option.metavar
            settings["action"] = "append" if option.kind == "list" else "store"
            if option.kind in _PARSERS:
                settings["type"] = _PARSERS[option.kind]
        group.addoption(option.flag, **settings)
        parser.addini(option.key, f"same as {option.flag}", type=_INI_TYPES.get(option.kind, "string"))
    parser.addini(
        "helmbench_paths", "benchmarks to run when no path is given (default: benchmark)", type="args"
    )
    parser.addini("helmbench_ask_above", "USD above which --helmbench-max-cost must be given (default: 10)")


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Keep pytest from running a conftest.py of a pack: an empty plugin stands for it.

    pytest names the plugin of a conftest.py by its path, and imports none that it has.
    """
    start = early_config.invocation_params.dir
    named = early_config.known_args_namespace.file_or_dir
    given = named or (".", *early_config.getini("testpaths"))
    # A Bench Pack may be somebody's repository: where nobody asks for it, its conftest.py is for its own tests.
    asked = bool(named) or _asks_by_option(tuple(_expanded(early_config.invocation_params.args)))
    if asked:
        _refuse_settings_of_packs(early_config)
    paths = (start / str(path).split("::")[0] for path in given)
    for folder in dict.fromkeys(_pack_folders(paths, hosted=asked)):
        name = str(folder / "conftest.py")
        if not early_config.pluginmanager.has_plugin(name):
            early_config.pluginmanager.register(ModuleType("conftest"), name)


def _refuse_settings_of_packs(config: pytest.Config) -> None:
    """Take no settings from a Bench Pack that is run from outside: they could send a key to somebody else.

    Raises:
        pytest.UsageError: pytest has found its settings in one.
    """
    settings = config.inipath
    folders = () if settings is None else settings.parents
    pack = next((folder for folder in folders if (folder / _BENCH_PACK_MANIFEST).is_file()), None)
    if pack is not None and not config.invocation_params.dir.is_relative_to(pack):
        raise pytest.UsageError(
            f"{settings}: pytest would take its settings from the Bench Pack that it is to run\n"
            "  hint: name your own with -c FILE (`-c /dev/null` for none), or start pytest inside of the pack"
        )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave packs alone where nobody asks: Python files in them are data, whatever they are named."""
    if config.pluginmanager.has_plugin("helmbench-session") or not _has_manifest(collection_path):
        return None
    has_python = next(collection_path.rglob("*.py"), None) is not None
    return True if has_python and _is_pack(collection_path) else None


def _pack_folders(paths: Iterable[Path], *, hosted: bool) -> Iterator[Path]:
    """Yield the folders in packs whose conftest.py pytest would run before it collects: these paths, and `test*`.

    Args:
        paths: What pytest starts from.
        hosted: Bench Packs are meant too.
    """

    def is_closed(folder: Path) -> bool:
        if hosted and (folder / _BENCH_PACK_MANIFEST).is_file():
            return True
        return _has_manifest(folder) and _is_pack(folder)

    for path in paths:
        place = Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute() keeps `..`
        folders = (place, *place.parents)
        packs = [folder for folder in folders if is_closed(folder)]
        below = [folder for folder in place.glob("test*") if folder.is_dir()] if place.is_dir() else []
        if packs:
            yield from (folder for folder in folders if folder.is_relative_to(packs[-1]))
            yield from below
        else:
            yield from (folder for folder in below if is_closed(folder))


def _has_manifest(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _MANIFESTS)


def _is_pack(folder: Path) -> bool:
    from pytest_helmbench.benchmarks.packs.places import is_pack  # noqa: PLC0415 - only where a manifest stands

    return is_pack(folder)


def pytest_configure(config: pytest.Config) -> None:
    """Bring the session plugin in when, and only when, somebody asks."""
    config.addinivalue_line("markers", MARKER)
    if asks(config):
        from pytest_helmbench.pytest_side.composition import register  # noqa: PLC0415 - only sessions that ask pay for it

        register(config)


@pytest.fixture
def _helmbench_turn(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """Lead the calls of a test to its model until it ends."""
    if not request.config.pluginmanager.has_plugin("helmbench-session"):
        pytest.skip("no model: give --helmbench-model=ID on the command line")
    from pytest_helmbench.pytest_side.hand_written import turn  # noqa: PLC0415 - only tests that use it pay for it

    yield from turn(request)


@pytest.fixture
def helmbench_model(_helmbench_turn: Connection) -> str:
    """Id of the model under test; the test runs once per `--helmbench-model`."""
    return _helmbench_turn.model


@pytest.fixture
def helmbench_openai(_helmbench_turn: Connection) -> Iterator[openai.OpenAI]:
    """An `openai.OpenAI` client of the model under test: its calls are metered, limited, cached and stored."""
    from pytest_helmbench.benchmarks.python_tests.clients import opened_client  # noqa: PLC0415 - see above

    yield from opened_client(_helmbench_turn)


@pytest.fixture
def helmbench_async_openai(_helmbench_turn: Connection) -> Iterator[openai.AsyncOpenAI]:
    """An `openai.AsyncOpenAI` client of the model under test, for any event loop; see `helmbench_openai`."""
    from pytest_helmbench.benchmarks.python_tests.clients import opened_async_client  # noqa: PLC0415 - see above

    yield from opened_async_client(_helmbench_turn)


def option_value(config: pytest.Config, name: str) -> Any:
    """Return an option as given: command line, else ini, else None. Ini texts are not converted yet."""
    key = f"helmbench_{name.replace('-', '_')}"
    value = config.getoption(key)
    return value if value is not None else (config.getini(key) or None)


def asks(config: pytest.Config) -> bool:
    """Return whether the command line asks for our cases. Ini keys and `addopts` never do."""
    if hasattr(config, "workerinput"):
        return "helmbench" in config.workerinput
    arguments = tuple(_expanded(config.invocation_params.args))
    if _asks_by_option(arguments):
        return True
    paths = set(config.args) & set(arguments)
    return any(_may_be_in_benchmark(config.invocation_params.dir / path.split("::")[0]) for path in paths)


def _asks_by_option(arguments: Iterable[str]) -> bool:
    flags = tuple(option.flag for option in OPTIONS if option.asks)
    return any(argument.split("=", 1)[0] in flags for argument in arguments)


def _expanded(arguments: Iterable[str | Any]) -> Iterator[str]:
    """Yield the command line with `@file` arguments read, as pytest does."""
    for argument in map(str, arguments):
        file = Path(argument[1:]) if argument.startswith("@") else None
        if file is not None and file.is_file():
            yield from file.read_text(encoding="utf-8").splitlines()
        else:
            yield argument


def _may_be_in_benchmark(path: Path) -> bool:
    """Look at folder names first, so that a foreign session costs no import."""
    if not path.exists():
        return False
    path = path.resolve()
    if not any((folder / name).exists() for folder in (path, *path.parents) for name in _SIGNS):
        return False
    from pytest_helmbench.benchmarks.places import benchmark_root  # noqa: PLC0415 - see above

    return benchmark_root(path) is not None

"""Our plugin and the tools beside it: where each is found, its version, and the command that runs the same prompts."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from perf.measure import Command

__all__ = ["Tool", "Work", "absent_tools", "bare_requests", "ours", "tools", "trivial_items"]

_DRIVERS = Path(__file__).parent / "drivers"
_REPOSITORY = Path(__file__).parents[2]
_VERSION = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a command.

    Args:
        benchmark: Folder of the benchmark.
        prompts: The same as JSON lines.
        url: Of the provider.
        concurrency: Calls in flight.
        folder: Empty; where the command runs and writes.
    """

    benchmark: Path
    prompts: Path
    url: str
    concurrency: int
    folder: Path

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment of drivers."""
        return {
            "BASE_URL": self.url,
            "CONCURRENCY": str(self.concurrency),
            "PROMPTS": str(self.prompts),
            "OPENAI_API_KEY": "mock",
            "DO_NOT_TRACK": "1",
        }


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that can be run here.

    Args:
        name: With its version.
        command: Writes what it needs into the folder of the work and returns what to run.
    """

    name: str
    command: Callable[[Work], Command]


@functools.cache
def _installed(revision: str) -> str:
    """Return a folder with the package installed as users have it, compiled: of the working tree, or of a commit."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    source = folder / "source" if revision else _REPOSITORY
    if revision:
        source.mkdir()
        git = ["git", "-C", str(_REPOSITORY), "archive", revision]
        with subprocess.Popen(git, stdout=subprocess.PIPE) as archive:
            subprocess.run(["tar", "-x", "-C", str(source)], stdin=archive.stdout, check=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder / "site")]
    subprocess.run([*pip, str(source)], check=True)
    return str(folder / "site")


def ours(*options: str, revision: str = "") -> Callable[[Work], Command]:
    """Return our own command: everything stored, JUnit too, on pytest's standard protocol.

    Args:
        options: Of the command line, beside those.
        revision: A commit; empty for the working tree.
    """

    def command(work: Work) -> Command:
        arguments = [sys.executable, "-m", "pytest", str(work.benchmark), "-q", "-p", "no:cacheprovider"]
        arguments += [
            f"--rootdir={work.benchmark.parent}",
            "--junitxml=junit.xml",
            "--helmbench-db=helmbench.db",
        ]
        arguments += ["--helmbench-model=mock-1", f"--helmbench-base-url={work.url}"]
        environ = {"PYTHONPATH": _installed(revision)}
        return Command([*arguments, f"--helmbench-concurrency={work.concurrency}", *options], environ)

    return command


def bare_requests(work: Work) -> Command:
    """Return the command that sends the prompts with libcurl and does nothing else."""
    return _driver(sys.executable, "curl_script.py")(work)


def trivial_items(folder: Path, items: int, *options: str) -> Command:
    """Return the command that runs so many trivial items of pytest in a folder, see `floor`."""
    (folder / "trivial.floor").write_text(str(items), encoding="utf-8")
    arguments = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    environ = {"PYTHONPATH": str(_DRIVERS.parents[1])}
    return Command([*arguments, "-p", "perf.floor", "trivial.floor"], environ)


def tools(*, fast_only: bool = False) -> list[Tool]:
    """Return our plugin and whatever else is installed; the bare script first.

    Args:
        fast_only: Leave out tools that take minutes for some thousand cases.
    """
    version = _version(sys.executable, "pytest-helmbench")
    found = [
        Tool(f"pytest-helmbench {version}", ours()),
        Tool(f"pytest-helmbench {version} `-n 2`", ours("-n", "2")),
    ]
    openai = _python("script", "openai")
    if openai is not None:
        name = f"asyncio script, openai {_version(openai, 'openai')}"
        found.insert(0, Tool(name, _driver(openai, "asyncio_script.py")))
    return found if fast_only else found + _others()


def absent_tools() -> list[str]:
    """Return the names of the tools that are not installed here."""
    missing = [name for name, package, _ in _PACKAGES if _python(name, package) is None]
    return missing + (["promptfoo"] if _promptfoo() is None else [])


def _others() -> list[Tool]:
    found = []
    for name, package, command in _PACKAGES:
        python = _python(name, package)
        if python is not None:
            found.append(Tool(f"{name} {_version(python, package)}", command(python)))
    promptfoo = _promptfoo()
    if promptfoo is not None:
        version = subprocess.run([promptfoo, "--version"], capture_output=True, text=True, check=True).stdout
        found.append(
            Tool(f"promptfoo {version.split()[-1]}", lambda work: _promptfoo_command(promptfoo, work))
        )
    return found


def _driver(python: str, script: str, **environ: str) -> Callable[[Work], Command]:
    return lambda work: Command([python, str(_DRIVERS / script)], {**work.environ, **environ})


def _inspect(python: str) -> Callable[[Work], Command]:
    def command(work: Work) -> Command:
        own = {"MOCK_API_KEY": "mock", "MOCK_BASE_URL": work.url}
        return Command([python, str(_DRIVERS / "run_inspect.py")], {**work.environ, **own})

    return command


def _deepeval(python: str) -> Callable[[Work], Command]:
    return _driver(
        python,
        "run_deepeval.py",
        DEEPEVAL_TELEMETRY_OPT_OUT="YES",
        DEEPEVAL_NO_INSPECT_PROMPT="1",
        ERROR_REPORTING="NO",
        CONFIDENT_OPEN_BROWSER="0",
    )


def _lm_eval(python: str) -> Callable[[Work], Command]:
    def command(work: Work) -> Command:
        (work.folder / "mock.yaml").write_text(
            f"task: mock\ndataset_path: json\ndataset_kwargs:\n  data_files:\n    test: {work.prompts}\n"
            "test_split: test\noutput_type: generate_until\n"
            'doc_to_text: "{{prompt}}"\ndoc_to_target: "{{target}}"\n'
            "generation_kwargs:\n  until: []\n  do_sample: false\n  max_gen_toks: 64\n"
            "metric_list:\n  - metric: exact_match\n    aggregation: mean\n    higher_is_better: true\n",
            encoding="utf-8",
        )
        model = f"model=mock-1,base_url={work.url}/chat/completions,num_concurrent={work.concurrency}"
        arguments = [python, "-m", "lm_eval", "run", "--model", "local-chat-completions", "--model_args"]
        arguments += [f"{model},max_retries=3,tokenized_requests=False", "--apply_chat_template"]
        arguments += ["--tasks", "mock", "--include_path", ".", "--output_path", "results", "--log_samples"]
        offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
        return Command(arguments, {**work.environ, **offline, "HF_HOME": str(work.folder.parent / "hf")})

    return command


def _promptfoo_command(program: str, work: Work) -> Command:
    lines = work.prompts.read_text(encoding="utf-8").splitlines()
    with (work.folder / "tests.jsonl").open("w", encoding="utf-8") as file:
        for case in map(json.loads, lines):
            check = {"type": "contains", "value": case["target"]}
            line = {"description": case["name"], "vars": {"text": case["prompt"]}, "assert": [check]}
            file.write(json.dumps(line) + "\n")
    provider = {"id": "openai:chat:mock-1", "config": {"apiBaseUrl": work.url, "apiKey": "mock"}}
    config = {"prompts": ["{{text}}"], "providers": [provider], "tests": "file://tests.jsonl"}
    (work.folder / "promptfooconfig.json").write_text(json.dumps(config), encoding="utf-8")
    arguments = [program, "eval", "-c", "promptfooconfig.json", "-j", str(work.concurrency), "--no-cache"]
    arguments += ["--no-progress-bar", "--no-table", "--no-share", "-o", "results.json"]
    off = ("TELEMETRY", "UPDATE", "REMOTE_GENERATION", "SHARING")
    own = {f"PROMPTFOO_DISABLE_{name}": "1" for name in off}
    own |= {"PROMPTFOO_CONFIG_DIR": "config", "PROMPTFOO_PASS_RATE_THRESHOLD": "0"}
    return Command(arguments, {**work.environ, **own})


_PACKAGES: tuple[tuple[str, str, Callable[[str], Callable[[Work], Command]]], ...] = (
    ("pydantic-evals", "pydantic-evals", lambda python: _driver(python, "run_pydantic_evals.py")),
    ("DeepEval", "deepeval", _deepeval),
    ("lm-eval", "lm_eval", _lm_eval),
    ("Inspect AI", "inspect_ai", _inspect),
)


def _python(name: str, package: str) -> str | None:
    """Return an interpreter that has a package: ours, or that of an environment in the folder `PERF_TOOLS`."""
    folder = os.environ.get("PERF_TOOLS")
    own = Path(folder, name.replace(" ", "-").lower(), "bin", "python") if folder else None
    for python in (sys.executable, *([str(own)] if own is not None and own.exists() else [])):
        if _version(python, package):
            return python
    return None


def _promptfoo() -> str | None:
    folder = os.environ.get("PERF_TOOLS")
    own = Path(folder, "promptfoo", "node_modules", ".bin", "promptfoo") if folder else None
    return str(own) if own is not None and own.exists() else shutil.which("promptfoo")


def _version(python: str, package: str) -> str:
    """Return the version of a package in an environment; empty when it has none."""
    done = subprocess.run([python, "-c", _VERSION, package], capture_output=True, text=True, check=False)
    return done.stdout.strip()

"""The `helmbench` command: in this process, or in one of its own where it starts pytest."""

from __future__ import annotations

import atexit
import io
import os
import shlex
import shutil
import subprocess
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

import pytest
from fork_server import python_command
from inner_pytest import pytest_command
from waiting import PATIENCE_S

from pytest_helmbench.cli.main import main

__all__ = ["captured", "environment", "helmbench", "programs", "run_command"]

_SET_BY_MACHINES = ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "HELMBENCH_API_KEY", "CI", "PYTEST_ADDOPTS")

_PROGRAM = "import sys; from pytest_helmbench.cli.main import main; sys.exit(main())"


@cache
def programs() -> Path:
    """Return a folder with `helmbench` and `pytest`, for shells that start them by name; both are forked."""
    folder = Path(tempfile.mkdtemp(prefix="programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    command = [*python_command(), "-c", _PROGRAM]
    for name, words in (("helmbench", command), ("pytest", pytest_command())):
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment without what a machine may have set, and with more."""
    return {name: value for name, value in os.environ.items() if name not in _SET_BY_MACHINES} | more


def captured(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run the command in this process; return its exit code, output and errors."""
    capsys.readouterr()
    code = main([str(word) for word in words])
    found = capsys.readouterr()
    return code, found.out, found.err


def helmbench(cwd: Path, *arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the command; whatever it says, it never shows a traceback.

    Args:
        cwd: Where it runs.
        arguments: Without the program's name. Those that run sessions or import Dask get a process of their own.
        more: Environment variables.
    """
    words = [str(argument) for argument in arguments]
    # Dask changes how Python finds plugins, for the whole process.
    apart = bool(words) and (words[0].startswith("run-") or words[0] == "spread")
    done = _apart(cwd, words, environment(**more)) if apart else _here(cwd, words, environment(**more))
    assert "Traceback" not in done.stderr, done.stderr
    return done


def run_command(pytester: pytest.Pytester, *arguments: object) -> pytest.RunResult:
    """Run the command where a session of `pytester` has run."""
    done = helmbench(pytester.path, *arguments)
    return pytest.RunResult(done.returncode, done.stdout.splitlines(), done.stderr.splitlines(), 0.0)


def _apart(cwd: Path, words: list[str], environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [*python_command(), "-c", _PROGRAM, *words]
    return subprocess.run(
        command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def _here(cwd: Path, words: list[str], environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    out, err = _pipe(), _pipe()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(cwd)
        for name in os.environ.keys() - environ.keys():
            patch.delenv(name)
        for name, value in environ.items():
            patch.setenv(name, value)
        code = main(words)
    return subprocess.CompletedProcess(words, code, _text(out), _text(err))


def _pipe() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8")


def _text(pipe: io.TextIOWrapper) -> str:
    pipe.flush()
    buffer = pipe.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8").replace("\r\n", "\n")

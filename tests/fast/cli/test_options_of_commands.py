"""Every option that a command accepts has an effect, or the command refuses it in a sentence."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import click
import pytest

from pytest_helmbench.cli.main import helmbench, main


def _commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its name, those of groups too."""
    groups: list[tuple[str, click.Group]] = [("", helmbench)]
    for prefix, group in groups:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            if isinstance(command, click.Group):
                groups.append((f"{name} ", command))
            else:
                yield f"{prefix}{name}", command


_COMMANDS = dict(_commands())


def _reads(function: Callable[..., Any], name: str) -> bool:
    """Return whether the function of a command, or one that it wraps, reads an option."""
    node = ast.parse(dedent(inspect.getsource(function.__code__))).body[0]
    assert isinstance(node, ast.FunctionDef)
    others = "" if node.args.kwarg is None else node.args.kwarg.arg
    is_named = name in {arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)}
    keys = {
        part.value: part.slice.value
        for part in ast.walk(node)
        if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant)
    }
    found = any(
        isinstance(part, ast.Name)
        and part.id == (name if is_named else others)
        and keys.get(part, name) == name
        for part in ast.walk(node)
    )
    inner = getattr(function, "__wrapped__", None)
    return found and (is_named or inner is None or _reads(inner, name))


@pytest.mark.parametrize("name", _COMMANDS)
def test_a_command_reads_each_option_that_it_accepts(name: str) -> None:
    command = _COMMANDS[name]
    assert command.callback is not None
    ignored = [
        param.name
        for param in command.params
        if not param.expose_value or not _reads(command.callback, str(param.name))
    ]
    assert ignored == []


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, command in _COMMANDS.items()
        if not any("--db" in param.opts for param in command.params)
    ],
)
def test_a_command_refuses_the_database_that_it_does_not_use(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*name.split(), "--db", "other.db"]) == 2
    problem, hint = capsys.readouterr().err.splitlines()
    assert problem == "helmbench: No such option '--db'."
    assert hint in (
        f"  hint: `helmbench {name}` does not use a results database",
        "  hint: did you mean '--output'?",
    )


def test_an_option_of_pytest_is_told_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--helmbench-build=offline"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "helmbench: No such option '--helmbench-build'.",
        "  hint: PYTEST_ADDOPTS or an ini file gives options of pytest",
    ]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("init there --columns question=a", "--columns"),
        ("init there --as-jsonl --rubric=x", "--as-jsonl and --rubric"),
        ("list there --benchmark there", "--benchmark"),
        ("prompt P1-B1-S1-C1-PT1 there --benchmark there", "--benchmark"),
        ("export --format baseline --with-text all", "--with-text"),
        ("compare 1 2 --json --format html", "--json"),
        ("compare 1 2 --with-text all", "--with-text"),
    ],
)
def test_an_option_that_would_do_nothing_beside_others_is_refused(
    words: str,
    options: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    assert capsys.readouterr().err.startswith(f"helmbench: {options} would have no effect here\n  hint: ")
    assert not list(tmp_path.iterdir())

"""The user's words as types: who makes them, who takes them, and that a manifest's are refused."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator

import manifest_words
import pytest
from house_figures import paths, source
from paths import ROOT

from pytest_helmbench.benchmarks.bench_packs.verifiers.running import parse_choices
from pytest_helmbench.core.granted import NOT_ALLOWED, Granted
from pytest_helmbench.gateway.providers.application import function_application
from pytest_helmbench.options.declarations import OPTIONS, Options
from pytest_helmbench.options.option import declared_in

_MADE_IN = {
    "core/granted.py": "where the user has said nothing",
    "options/declarations.py": "defaults of ours",
    "options/settings.py": "the command line and the user's own ini file",
    "run/targets.py": "a models.yml that the user has named or trusts, or of which he has said the same",
    "run/resume.py": "the user's words when the session began, in his results file",
    "gateway/providers/application.py": "the id of code without its prefix, of a word",
}
"""The modules that make words, and of what."""

_RIGHTS_OF = {
    "AgentCommand": "benchmarks/packs/agent/external.py",
    "AgentNeeds": "benchmarks/packs/agent/external.py",
    "Choice": "benchmarks/bench_packs/verifiers/running.py",
    "Choices": "benchmarks/bench_packs/verifiers/running.py",
    "Endpoint": "gateway/providers/endpoints.py",
    "_Application": "gateway/providers/application.py",
    "HttpApplication": "gateway/providers/application.py",
    "Node": "benchmarks/bench_packs/node/command.py",
}
"""Values that are made of words, each in its own module alone."""

_GIVE_RIGHTS = {
    *(
        "model",
        "marking-model",
        "models-file",
        "variant",
        "base-url",
        "api-key-env",
        "marking-base-url",
        "marking-api-key-env",
    ),
    *("sandbox", "unprotected", "pull", "allow-command", "agent", "agent-env", "agent-mount", "agent-host"),
    *("node", "verifier", "build", "trusted", "network"),
}
"""The options whose values are words."""


def _calls(name: str) -> Iterator[str]:
    for file in map(source, paths()):
        for node in file.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                yield file.short


def test_words_are_made_where_the_user_is_read_and_nowhere_else() -> None:
    assert set(_calls("Granted")) == _MADE_IN.keys()
    aliased = [
        file.short
        for file in map(source, paths())
        for node in file.nodes
        if isinstance(node, ast.alias) and node.name == "Granted" and node.asname
    ]
    assert aliased == []


@pytest.mark.parametrize("name", _RIGHTS_OF)
def test_what_is_made_of_words_is_made_in_one_place(name: str) -> None:
    default = {"benchmarks/packs/agent/agent_work.py"} if name == "AgentNeeds" else set()
    assert set(_calls(name)) - default == {_RIGHTS_OF[name]}


def test_the_options_that_give_rights_are_words() -> None:
    assert {option.name for option in OPTIONS if option.type.users} == _GIVE_RIGHTS
    for values in (Options(), Options().packs, Options().bench_packs):
        for name, option in declared_in(type(values)).items():
            value = getattr(values, name)
            assert isinstance(value, Granted) is (option.type.users and value is not None), name


def test_mypy_refuses_the_words_of_a_manifest() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert settings["strict"]  # a comment that ignores nothing is an error of its own
    assert "tests" in settings["files"]
    text = (ROOT / "tests" / "support" / "manifest_words.py").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "TEXT" in line or "LEAVE" in line]
    doors = [line for line in lines if not line.startswith("TEXT")]
    assert len(doors) == 27
    assert all(line.endswith("  # type: ignore[arg-type]") for line in doors)


def test_the_words_of_a_manifest_are_refused_without_mypy_too() -> None:
    with pytest.raises(AttributeError):
        function_application(manifest_words.TEXT)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        parse_choices(manifest_words.TEXTS)  # type: ignore[arg-type]


def test_a_word_that_says_no_is_none() -> None:
    assert not NOT_ALLOWED
    assert Granted(value=True)


def test_every_kind_of_word_has_its_row_in_the_page() -> None:
    page = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    table = page.partition("## Permissions that only you give")[2].partition("\n## ")[0]
    for option in OPTIONS:
        if option.type.users:
            assert (option.flag if option.use != "ini" else option.key) in table, option.name
    for module in _MADE_IN.keys() - {"core/granted.py", "gateway/providers/application.py"}:
        assert f"`{module}`" in table, module

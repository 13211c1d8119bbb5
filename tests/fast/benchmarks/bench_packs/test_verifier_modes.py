"""The values of `--helmbench-verifier`."""

from __future__ import annotations

import pytest

from pytest_helmbench.benchmarks.bench_packs.verifiers.running import Choice, Choices, Mode, parse_choices
from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.problem import HelmbenchError

_WANTED = "it takes [ID=]docker, [ID=]podman, [ID=]cloud, [ID=]process:COMMAND or [ID=]URL, for example http://127.0.0.1:4010"
_COMMAND_WANTED = "name the command behind it, for example 'process:python3 server.py'"
_URL_WANTED = "give scheme, host, port and perhaps a path, without user name, query or fragment"


@pytest.mark.parametrize(
    ("text", "name", "choice"),
    [
        ("docker", None, Choice(Mode.DOCKER)),
        ("a=podman", "a", Choice(Mode.PODMAN)),
        ("a=cloud", "a", Choice(Mode.CLOUD)),
        ("a=process:node 'a b.mjs' --x=1", "a", Choice(Mode.PROCESS, command=("node", "a b.mjs", "--x=1"))),
        ("process:env A=b ./up", None, Choice(Mode.PROCESS, command=("env", "A=b", "./up"))),
        ("http://127.0.0.1:4010/", None, Choice(Mode.URL, "http://127.0.0.1:4010")),
        ("a=https://host.test/v=1/", "a", Choice(Mode.URL, "https://host.test/v=1")),
        ("http://[::1]:80/x=y", None, Choice(Mode.URL, "http://[::1]:80/x=y")),
    ],
)
def test_a_value_names_a_mode_for_every_verifier_or_for_one(
    text: str, name: str | None, choice: Choice
) -> None:
    choices = parse_choices(Granted((text,)))
    assert choices == (Choices(choice) if name is None else Choices(None, {name: choice}))
    assert choices.of("a") == choice
    assert choices.of("b") == (choice if name is None else None)


def test_the_value_for_one_verifier_wins_and_none_leaves_it_to_the_manifest() -> None:
    choices = parse_choices(Granted(("docker", "a=podman")))
    assert (choices.of("a"), choices.of("b")) == (Choice(Mode.PODMAN), Choice(Mode.DOCKER))
    assert parse_choices(Granted(())).of("a") is None


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["dokcer"], f"--helmbench-verifier is 'dokcer'\n  hint: {_WANTED}"),
        ([""], f"--helmbench-verifier is ''\n  hint: {_WANTED}"),
        (["=docker"], f"--helmbench-verifier is '=docker'\n  hint: {_WANTED}"),
        (
            ["a=process"],
            f"--helmbench-verifier is 'a=process': there is no command\n  hint: {_COMMAND_WANTED}",
        ),
        (
            ["process:a 'b"],
            f'--helmbench-verifier is "process:a \'b": No closing quotation\n  hint: {_COMMAND_WANTED}',
        ),
        (["a=url"], f"--helmbench-verifier is 'a=url'\n  hint: {_WANTED}"),
        (["ftp://x\x1b"], f"--helmbench-verifier is 'ftp://x\\\\x1b'\n  hint: {_WANTED}"),
        (
            ["http://"],
            f"--helmbench-verifier is 'http://', which is not a usable URL\n  hint: {_URL_WANTED}",
        ),
        (
            ["http://x:99999"],
            f"--helmbench-verifier is 'http://x:99999', which is not a usable URL\n  hint: {_URL_WANTED}",
        ),
        (
            ["a=http://x y"],
            f"--helmbench-verifier is 'a=http://x y', which is not a usable URL\n  hint: {_URL_WANTED}",
        ),
        (
            ["http://me:secret@x"],
            f"--helmbench-verifier is 'http://…@x', which is not a usable URL\n  hint: {_URL_WANTED}",
        ),
        (
            ["http://x?y"],
            f"--helmbench-verifier is 'http://x?y', which is not a usable URL\n  hint: {_URL_WANTED}",
        ),
        (
            ["docker", "podman"],
            "--helmbench-verifier is given twice for every verifier\n  hint: leave one of them out",
        ),
        (
            ["a=docker", "a=http://x"],
            "--helmbench-verifier is given twice for verifier 'a'\n  hint: leave one of them out",
        ),
    ],
)
def test_what_means_nothing_is_said_with_a_hint(texts: list[str], message: str) -> None:
    with pytest.raises(HelmbenchError) as caught:
        parse_choices(Granted(tuple(texts)))
    assert str(caught.value) == message

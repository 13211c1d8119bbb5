"""Rows whose code runs in a sandbox: what candidates come to, and rows for which there is no sandbox."""

from __future__ import annotations

import pytest
from agent_scripts import code_row, item_of, task_row
from engines import Running
from packs import row, write_pack
from provider import Answer, Provider, Request
from trees import rows, run_tree

_BWRAP = "--helmbench-sandbox=bwrap"
_ADDS = "```python\ndef add(a, b):\n    return a + b\n```"
_REPLIES = {
    "right": _ADDS,
    "stock": _ADDS,
    "wrong": _ADDS.replace("+", "-"),
    "empty": "",
    "endless": "```python\nwhile True:\n    pass\n```",
}


def _reply(request: Request) -> str | Answer:
    return _REPLIES[item_of(request)]


def test_candidates_pass_fail_or_are_not_asked_for(
    pytester: pytest.Pytester, provider: Provider, bwrap: Running
) -> None:
    script = {"language": "javascript", "starter_code": "function add(a, b) {"}
    image = {"environment": {"image": "python:3.12-slim", "timeout_seconds": 2}}
    own_image = {"environment": {"image": "example.org/own:1"}}
    found = [
        *(code_row(name, **(image if name == "stock" else {})) for name in _REPLIES),
        row("code_completion", {"input": {"prompt": "Add.", **script}}, "script"),
        code_row("own-image", **own_image),
    ]
    write_pack(pytester.path / "benchmark", found)
    provider.reply = _reply

    result = run_tree(pytester, "-n0", _BWRAP, "-rs", "--helmbench-concurrency=4", url=provider.url)

    result.assert_outcomes(passed=2, failed=3, skipped=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*tasks.jsonl ..FFFss*",
            "SKIPPED * the language 'javascript' needs environment.image and eval.tests.command",
            "SKIPPED * the image example.org/own:1 needs docker or podman; only bwrap is used here",
        ]
    )
    assert sorted(map(item_of, provider.requests)) == sorted(_REPLIES)
    record = rows(
        pytester.path / "helmbench.db",
        "SELECT code, outcome, reason, justification FROM results JOIN evaluations ON result_id = results.id"
        " ORDER BY results.code",
    )
    not_used = "image not used: this machine's Python ran the tests"
    assert record == [
        ("empty", "failed", "empty", None),
        ("endless", "failed", "timeout", None),
        ("right", "passed", None, None),
        ("stock", "passed", None, not_used),
        ("wrong", "failed", "tests_failed", None),
    ]
    # A failure of the sandbox is not the model's, but its call was made and paid.
    paid = "SELECT count(*) FROM results WHERE cost_usd IS NOT NULL AND prompt_tokens IS NOT NULL"
    assert rows(pytester.path / "helmbench.db", paid) == [(len(_REPLIES),)]


@pytest.mark.parametrize("mode", ["auto", "docker"])
def test_where_a_sandbox_is_missing_nobody_is_asked(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    write_pack(pytester.path / "benchmark", [code_row("c"), task_row("t")])
    (pytester.path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(pytester.path / "empty"))

    result = run_tree(pytester, f"--helmbench-sandbox={mode}", "-rs", url=provider.url)

    result.assert_outcomes(skipped=2)
    assert provider.count == 0
    why = "; ".join(
        f"{name} is not installed" for name in ("docker", "podman", "bwrap") if mode in (name, "auto")
    )
    assert result.outlines[-3].endswith(f": no sandbox: {why}" if mode == "auto" else f": {why}")


@pytest.mark.parametrize("more", [(), ("--helmbench-unprotected",)])
def test_code_of_models_never_runs_without_a_sandbox(
    pytester: pytest.Pytester, provider: Provider, more: tuple[str, ...]
) -> None:
    write_pack(pytester.path / "benchmark", [code_row("right"), task_row("t")])

    result = run_tree(pytester, "--helmbench-sandbox=none", *more, "-rs", url=provider.url)

    result.assert_outcomes(skipped=2)
    assert provider.count == 0
    result.stdout.fnmatch_lines(
        ["SKIPPED * --helmbench-sandbox=none: code of models runs in a sandbox, or not at all"]
    )

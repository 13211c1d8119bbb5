"""Runs that only list or plan make no call. And the line about other models that answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from provider import Answer, Provider, Request
from trees import category, judged, run_tree, write_tree


def _benchmark(pytester: pytest.Pytester, cases: int = 4) -> Path:
    return write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * cases)})


@pytest.mark.parametrize("mode", ["-n2"])
@pytest.mark.parametrize("option", ["--setup-plan", "--setup-only", "--fixtures", "--collect-only"])
def test_a_run_that_is_only_looked_at_makes_no_call(
    pytester: pytest.Pytester, provider: Provider, mode: str, option: str
) -> None:
    _benchmark(pytester)

    result = run_tree(pytester, mode, option, url=provider.url)

    assert provider.count == 0
    assert result.ret == pytest.ExitCode.OK
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    assert not (pytester.path / "helmbench.db").exists()


def test_other_models_that_answer_are_named_in_summary_and_report(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": judged("fine", "fine")})

    def reply(request: Request) -> Answer:
        said = (
            {"judgment": "GOOD", "evidence": [], "justification": "So."}
            if request.is_judge
            else {"response": "x"}
        )
        message = {"role": "assistant", "content": json.dumps(said)}
        name = "cheap/grader" if request.is_judge else "cheap/other"
        return Answer(body={"model": name, "choices": [{"finish_reason": "stop", "message": message}]})

    provider.reply = reply

    result = run_tree(
        pytester, "--helmbench-marking-model=test/judge", "--helmbench-markdown=report.md", url=provider.url
    )

    report = (pytester.path / "report.md").read_text()
    for asked in ("the one that was asked: cheap/other 2", "the judge test/judge: cheap/grader 2"):
        line = f"other models answered than {asked}"
        result.stdout.fnmatch_lines([f"  *{line}*"])
        assert line in report

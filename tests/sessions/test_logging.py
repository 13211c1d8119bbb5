"""`--log-file` shows what happened to every case and call, and no text of either side."""

from __future__ import annotations

from pathlib import Path

import pytest
from provider import Provider
from trees import judged, rows, run_tree, write_tree

_KEY = "sk-never-in-a-log-0123456789"


def test_every_case_and_call_is_logged_with_its_code_and_without_text(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HELMBENCH_API_KEY", _KEY)
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": judged("Marigold orders tea.")})
    provider.answers(status=503, times=1)
    log = Path(pytester.path / "run.log")

    run_tree(
        pytester,
        "benchmark",
        "--helmbench-marking-model=test/judge",
        "--log-file=run.log",
        "--log-file-level=INFO",
        url=provider.url,
    )

    lines = [
        line
        for line in log.read_text("utf-8").splitlines()
        if "pytest_helmbench" in line or "P1-B1-S1" in line
    ]
    told = "\n".join(lines)
    assert all("P1-B1-S1-C1-PT1: " in line for line in lines)
    for said in (
        "start with test/good",
        "503",
        "attempt 2 in",
        "case call: ",
        "judge call: ",
        "tokens, 0.001 USD",
        ": passed",
    ):
        assert said in told, said
    prompt = rows(pytester.path / "helmbench.db", "select body from requests limit 1")[0]
    assert "Marigold" in str(prompt)
    assert "Marigold" not in log.read_text("utf-8")
    assert _KEY not in log.read_text("utf-8")

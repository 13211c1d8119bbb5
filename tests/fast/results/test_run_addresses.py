"""`last` is the newest session, complete or not; a gate takes the newest complete one of its benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_helmbench.results import run_addresses
from pytest_helmbench.results.baselines import BaselineError, parse_limits, read_baseline_options
from pytest_helmbench.results.run_addresses import RunAddressError
from pytest_helmbench.store.read.benchmark_places import BenchmarkKey
from pytest_helmbench.store.read.runs import RunSummary


def _run(number: int, session: str, benchmark: str, status: str = "complete") -> RunSummary:
    nothing: dict[str, Any] = dict.fromkeys(
        ("completed_at", "passed_tests", "failed_tests", "error_tests", "skipped_tests", "neutral_tests")
    )
    numbers: dict[str, Any] = dict.fromkeys(
        (
            "total_evaluations",
            "score",
            "score_low",
            "score_high",
            "capped",
            "coverage",
            "pass_rate",
            "cost_usd",
        )
    )
    return RunSummary(
        kind="",
        benchmark_place=None,
        batches=(),
        id=number,
        session_id=session,
        benchmark=benchmark,
        version="1",
        model="m",
        status=status,
        scope="whole",
        started_at="",
        total_tests=1,
        known_cost_usd=None,
        **nothing,
        **numbers,
    )


_KNOWN = (
    _run(1, "a", "tree"),
    _run(2, "b", "tree"),
    _run(3, "b", "pack", "partial"),
    _run(4, "c", "tree", "interrupted"),
)


@pytest.mark.parametrize(
    ("address", "benchmark", "wanted"),
    [
        ("last", "tree", [2, 3]),
        ("last~1", "tree", [1]),
        ("last", None, [4]),
        ("last~1", None, [2, 3]),
        ("3", None, [2, 3]),
    ],
)
def test_a_session_counts_by_the_benchmarks_that_are_asked_for(
    address: str, benchmark: str | None, wanted: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_addresses, "runs", lambda path, new=(): _KNOWN)
    own = tmp_path / "x.db"
    own.touch()
    found = run_addresses.resolve(
        address, own, tmp_path, benchmark=None if benchmark is None else BenchmarkKey(benchmark)
    )
    assert [ref.run_id for ref in found.session] == wanted
    assert found.passed_over == ("run 4 is interrupted" if benchmark else "")
    with pytest.raises(RunAddressError, match="no complete session of pack"):
        run_addresses.resolve("last", own, tmp_path, benchmark=BenchmarkKey("pack"))
    with pytest.raises(RunAddressError, match="run a benchmark first: pytest PATH"):
        run_addresses.resolve("last", tmp_path / "none.db", tmp_path)


def test_options_of_a_baseline_are_read_together() -> None:
    asked = read_baseline_options(("12", "a/b=old.db#3"), "P1-B4=0.05,0.02", ("a/b", "c/d"))
    assert asked is not None
    assert asked.addresses == {"": "12", "a/b": "old.db#3"}
    assert [(limit.code, float(limit.drop)) for limit in asked.limits] == [("", 0.02), ("P1-B4", 0.05)]
    assert [(limit.code, float(limit.drop)) for limit in parse_limits("P1=0.1", "--max-drop")] == [
        ("", 0),
        ("P1", 0.1),
    ]
    assert read_baseline_options((), None, "pass") is None
    for baselines, words in (
        (("1", "2"), "two baselines for all models: 1 and 2"),
        ((), "not below which run"),
    ):
        with pytest.raises(BaselineError, match=words):
            read_baseline_options(baselines, "0.1", "pass")

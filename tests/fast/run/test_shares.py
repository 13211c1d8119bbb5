"""Shares of real cases: disjoint and complete, whatever is selected, in any order, in all repetitions and models."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import category, includes, write_tree

from pytest_helmbench.benchmarks.kind import SessionValues
from pytest_helmbench.benchmarks.registry import kind_of, places_named
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.shard import Shard
from pytest_helmbench.engine.job import CaseJob, Target
from pytest_helmbench.engine.route import Route
from pytest_helmbench.gateway.providers.endpoints import Unusable
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.run.shares import Shares
from pytest_helmbench.store import latency_history

_SETTINGS = Settings()
_KNOWN: Mapping[tuple[str, str, str], float] = MappingProxyType(
    {("tree", "test/a", f"P1-B1-S1-C1-PT{n}"): 10.0 * n for n in range(1, 7)}
)


@cache
def _jobs() -> tuple[CaseJob, ...]:
    """Return the cases of a tree on two models, three repetitions each."""
    with TemporaryDirectory() as folder:
        root = write_tree(
            Path(folder) / "tree", {"P1-B1-S1": category(*["RISK"] * 8), "P1-B2-S1": includes("A", "B")}
        )
        targets = tuple(
            Target(root, Route(ModelEntry(name), Unusable("", "")), ()) for name in ("test/a", "test/b")
        )
        kind = kind_of(places_named("scenario_tree"))

        def loop() -> None:
            raise AssertionError("a tree needs none")

        loader = kind.open(SessionValues(_SETTINGS, {}, loop, lambda _text: None))  # type: ignore[arg-type]
        loaded = loader.load(root, targets)
        return tuple(job for file in loaded.files for job in loaded.jobs(file, "file", 3))


@pytest.fixture(autouse=True)
def _history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_helmbench.run.shares.latencies", lambda _path: dict(_KNOWN))


def _part(order: int, kept: int) -> tuple[CaseJob, ...]:
    """Return some of the cases in some order, as `-k` and a plugin that shuffles leave them."""
    jobs = [job for place, job in enumerate(_jobs()) if kept >> place & 1]
    Random(order).shuffle(jobs)
    return tuple(jobs)


_PARTS = st.builds(_part, st.integers(0, 2**32), st.integers(0, 2**64))


@given(_PARTS, st.integers(1, 9), st.sampled_from(["hash", "history"]))
def test_every_case_is_in_one_share_in_whatever_order_each_shard_collects(
    jobs: tuple[CaseJob, ...], of: int, rule: str
) -> None:
    settings = (
        _SETTINGS if rule == "hash" else replace(_SETTINGS, shard_by=rule, shard_history=Path("before.db"))
    )
    shares = []
    for index in range(1, of + 1):
        own_order = jobs if index % 2 else tuple(reversed(jobs))
        found = Shares(Shard(index, of), own_order, lambda _job: "tree", settings)
        assert found.rule.startswith(rule)
        shares.append({id(job) for job in own_order if found.has_job(job)})

    assert set().union(*shares) == set(map(id, jobs))
    assert sum(map(len, shares)) == len(jobs)
    by_case: dict[tuple[str, str], set[int]] = {}
    for job in jobs:
        place = next(number for number, share in enumerate(shares) if id(job) in share)
        by_case.setdefault((job.model_id, job.code), set()).add(place)
    assert all(len(places) == 1 for places in by_case.values()), "repetitions of a case stay together"


@given(_PARTS, st.integers(1, 9))
def test_a_case_stays_in_its_share_whatever_else_is_selected(jobs: tuple[CaseJob, ...], of: int) -> None:
    for index in range(1, of + 1):
        of_all, of_some = (
            Shares(Shard(index, of), some, lambda _job: "tree", _SETTINGS) for some in (_jobs(), jobs)
        )
        assert all(of_all.has_job(job) == of_some.has_job(job) for job in jobs)


def test_latencies_are_the_means_of_judged_cases(tmp_path: Path) -> None:
    path = tmp_path / "before.db"
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.executescript(
            "BEGIN; CREATE TABLE benchmarks (id, name); INSERT INTO benchmarks VALUES (1, 'tree');"
            "CREATE TABLE llms (id, name); INSERT INTO llms VALUES (1, 'test/a');"
            "CREATE TABLE evaluation_runs (id, benchmark_id, llm_id); INSERT INTO evaluation_runs VALUES (1, 1, 1);"
            "CREATE TABLE results (run_id, code, latency_ms, outcome);"
            "INSERT INTO results VALUES (1, 'x', 10, 'passed'), (1, 'x', 30, 'failed'), (1, 'x', 900, 'error'),"
            " (1, 'y', NULL, 'passed'); COMMIT"
        )

    assert latency_history.latencies(path) == {("tree", "test/a", "x"): 20.0}

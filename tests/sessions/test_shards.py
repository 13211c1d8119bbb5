"""Shards: who runs what, with whose money, under which exit code; and what every shard's file knows of the whole."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest
from provider import Provider
from trees import category, every_mode, rows, run_tree, write_tree

_PRICED = "- id: test/good\n  price: {input: 0, output: 10}\n"


def _benchmark(pytester: pytest.Pytester, cases: int = 12) -> Path:
    answers = ["RISK", "CALM"] * (cases // 2)
    return write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*answers)})


def _codes(packed: bytes) -> set[str]:
    return set(filter(None, zlib.decompress(packed).decode().split("\n")))


@every_mode
def test_shards_ask_every_case_once_and_each_knows_the_whole_plan(
    pytester: pytest.Pytester, provider: Provider, mode: tuple[str, ...]
) -> None:
    _benchmark(pytester)
    shares: list[set[str]] = []
    for number in (1, 2, 3):
        result = run_tree(
            pytester, *mode, f"--helmbench-shard={number}/3", "--helmbench-min-score=1", url=provider.url
        )
        assert result.ret == 0, "what is judged wrong is data, and no gate holds in a shard"
        assert f"helmbench: shard {number} of 3: " in result.stdout.str()
        assert (
            " of 12 cases, 10 of 32 calls at a time; no gate here: `helmbench merge --gate`"
            in result.stdout.str()
        )
        db = pytester.path / f"helmbench-{number}of3.db"
        ((status, scope, shard, codes, whole, total),) = rows(
            db,
            "SELECT status, scope, shard, codes, whole, total_tests FROM evaluation_runs"
            " JOIN plans ON plans.run_id = evaluation_runs.id",
        )
        assert (status, scope, total) == ("complete", "shard", len(_codes(codes)))
        about = json.loads(shard)
        assert (about["index"], about["of"], about["tests"]) == (number, 3, 12)
        assert len(_codes(whole)) == 12
        assert {code for (code,) in rows(db, "SELECT code FROM results")} == _codes(codes)
        shares.append(_codes(codes))
    assert provider.count == 12 == sum(map(len, shares)) == len(set().union(*shares))


def test_an_empty_share_ends_0_and_keeps_the_plan_but_an_empty_selection_stays_5(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _benchmark(pytester, 2)
    shards = range(1, 4)
    results = [
        run_tree(pytester, f"--helmbench-shard={n}/3", "--helmbench-require-run", url=provider.url)
        for n in shards
    ]

    assert {result.ret for result in results} == {0}
    empty = [n for n in shards if not rows(pytester.path / f"helmbench-{n}of3.db", "SELECT 1 FROM results")]
    assert empty
    ((whole,),) = rows(pytester.path / f"helmbench-{empty[0]}of3.db", "SELECT whole FROM plans")
    assert len(_codes(whole)) == 2
    assert run_tree(pytester, "-k", "nothing", "--helmbench-shard=1/2", url=provider.url).ret == 5


def test_a_case_without_verdict_a_python_test_and_a_broken_file_keep_their_exit_code(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    root = _benchmark(pytester, 4)
    provider.answers(times=1, status=400)
    one = ("--helmbench-shard=1/1", "--helmbench-max-retries=0")

    assert run_tree(pytester, *one, url=provider.url).ret == 1
    assert run_tree(pytester, *one, "--helmbench-resume", url=provider.url).ret == 0
    (pytester.path / "test_plain.py").write_text("def test_it():\n    assert 0\n")
    assert run_tree(pytester, "benchmark", "test_plain.py", *one, url=provider.url).ret == 1
    (root / "scenarios" / "P1-B1-S1" / "perturbations.md").unlink()
    write_tree(root, {"P1-B1-S2": category("RISK")})
    broken = [run_tree(pytester, f"--helmbench-shard={n}/2", url=provider.url) for n in (1, 2)]
    assert sorted(result.ret for result in broken) == [0, 1], "the broken file is in one share, as a case is"
    assert [
        rows(pytester.path / f"helmbench-{n}of2.db", "SELECT json_array_length(broken) FROM plans")[-1:]
        for n in (1, 2)
    ] == [
        [(1,)],
        [(1,)],
    ]


def test_money_is_shared_by_planned_cost_and_rates_and_calls_in_flight_by_the_number(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    folder = _benchmark(pytester)
    (folder / "models.yml").write_text(_PRICED)
    limits = ("--helmbench-max-cost=1.2", "--helmbench-requests-per-minute=6000", "--helmbench-concurrency=8")
    said = []
    for number in (1, 2):
        result = run_tree(pytester, f"--helmbench-shard={number}/2", *limits, url=provider.url)
        said.append(next(line for line in result.outlines if line.startswith("helmbench: shard")))
        ((settings,),) = rows(
            pytester.path / f"helmbench-{number}of2.db", "SELECT settings FROM evaluation_runs"
        )
        assert json.loads(settings)["max_cost_usd"] == 1.2, "of the session that the shards are together"

    cases = [int(line.split(": ")[2].split()[0]) for line in said]
    assert sum(cases) == 12
    for line, share in zip(said, cases, strict=True):
        assert line.endswith(
            f" {share} of 12 cases, {share / 10:.4f} of 1.2000 USD, 4 of 8 calls at a time,"
            " 3,000 of 6,000 requests a minute"
        )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--helmbench-shard=9/8"], "--helmbench-shard is '9/8'"),
        (["--helmbench-shard=0/8"], "it takes K/N with K from 1 to N, for example 2/8, or auto"),
        (["--helmbench-shard=2"], "--helmbench-shard is '2'"),
        (["--helmbench-shard=auto"], "no variable of the environment says which shard this is"),
        (["--helmbench-shard=1/2", "--lf"], "--lf and --sw select by what has failed"),
    ],
)  # fmt: skip
def test_what_no_shard_can_be_is_wrong_use(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    for name in ("CI_NODE_TOTAL", "CI_NODE_INDEX"):
        monkeypatch.delenv(name, raising=False)
    _benchmark(pytester, 2)

    result = run_tree(pytester, "--helmbench-model=baseline/first", *arguments)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert words in result.stderr.str()


def test_a_shard_goes_on_as_the_same_shard_alone(pytester: pytest.Pytester, provider: Provider) -> None:
    _benchmark(pytester, 4)
    provider.answers(times=1, status=400)
    run_tree(pytester, "--helmbench-shard=1/1", "--helmbench-db=x.db", url=provider.url)

    other = run_tree(
        pytester, "--helmbench-shard=1/2", "--helmbench-db=x.db", "--helmbench-resume", url=provider.url
    )

    assert other.ret == pytest.ExitCode.USAGE_ERROR
    assert "--helmbench-shard was 1/1, now 1/2" in other.stderr.str()

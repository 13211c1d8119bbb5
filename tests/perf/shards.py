"""Shards merged: whether the run equals one session, what a merge costs, what a resume asks, what a budget spends."""

from __future__ import annotations

import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from perf.measure import Command, Measure, measure, provider
from perf.tools import Work, ours
from perf.workload import write_tree
from records import final_state

from pytest_helmbench.results.stored_scores import scored_run

__all__ = ["compare_shards"]

_SHARDS = 4
_ENDS = frozenset({0, 1})
_USD = 0.0000654  # what the mock says of a call


def compare_shards(cases: int, many: int, concurrency: int) -> None:
    """Run a benchmark whole and in four shards, merge them in several ways, and print the results.

    Args:
        cases: Of the benchmark that is compared with one session.
        many: Of the one whose merge is measured.
        concurrency: Calls in flight, all shards together.
    """
    print(f"\nShards: {cases:,} cases over {_SHARDS}, {many:,} for the cost of a merge\n")
    print("| bar | found |")
    print("|---|---|")
    with provider(0) as url:
        with tempfile.TemporaryDirectory() as name:
            _compare_whole(Path(name), cases, concurrency, url)
        with tempfile.TemporaryDirectory() as name:
            _measure_merge(Path(name), many, concurrency, url)
        with tempfile.TemporaryDirectory() as name:
            _spend(Path(name), cases, concurrency, url)


def _compare_whole(root: Path, cases: int, concurrency: int, url: str) -> None:
    write_tree(root, cases)
    _session(root, concurrency, url, "one.db")
    files = _shards(root, concurrency, url)
    _merge(root, files, "merged.db")
    same = final_state(root / "merged.db") == final_state(root / "one.db")
    scores = _scores(root / "merged.db") == _scores(root / "one.db")
    print(f"| merged equals one session: runs, results, evaluations, costs; scores | {same}; {scores} |")
    missing = _count(root / files[1])
    refused = measure(_command(root, files[:1] + files[2:], "less.db", frozenset({1})), root)
    _merge(root, files[:1] + files[2:], "less.db", "--partial")
    resumed = _session(root, concurrency, url, "less.db", "--helmbench-resume")
    named = "shard 2 of 4 is missing" in refused.output
    print(
        f"| a missing shard is named; a resume of the partial merge asks | {named}; {resumed.requests} of {missing} |"
    )
    whole = final_state(root / "less.db") == final_state(root / "one.db")
    print(
        f"| and then equals one session | {whole and _scores(root / 'less.db') == _scores(root / 'one.db')} |"
    )


def _measure_merge(root: Path, cases: int, concurrency: int, url: str) -> None:
    write_tree(root, cases)
    files = _shards(root, concurrency, url)
    idle = measure(Command([sys.executable, "-m", "pytest_helmbench", "merge", "--help"]), root)
    run = _merge(root, files, "merged.db")
    each_us = (run.cpu_s - idle.cpu_s) / cases * 1e6
    copying = measure(Command([sys.executable, "-c", _COPY, *files]), root)
    print(f"| CPU of a merge of {cases:,} results, start-up apart | {each_us:.0f} µs each |")
    print(
        f"| of it Python in the copying of rows (profiled) | {float(copying.output) / cases * 1e6:.1f} µs each |"
    )
    print(f"| peak memory of a merge | {run.largest_mib:.0f} MiB |")


def _spend(root: Path, cases: int, concurrency: int, url: str) -> None:
    write_tree(root, cases)
    (root / "benchmark" / "models.yml").write_text(
        "- id: mock-1\n  price: {input: 0.1, output: 0.4}\n  max_tokens: 64\n", encoding="utf-8"
    )
    budget_usd = cases * _USD * 0.45
    files = _shards(root, concurrency, url, f"--helmbench-max-cost={budget_usd}")
    total = sum(_query(root / file, "SELECT known_cost_usd FROM evaluation_runs") for file in files)
    print(
        f"| spent of a budget of {budget_usd:.4f} USD over {_SHARDS} shards | {total:.4f} ({total / budget_usd:.1%}) |"
    )


def _shards(root: Path, concurrency: int, url: str, *options: str) -> list[str]:
    names = []
    for number in range(1, _SHARDS + 1):
        names.append(f"helmbench-{number}of{_SHARDS}.db")
        _session(root, concurrency, url, names[-1], f"--helmbench-shard={number}/{_SHARDS}", *options)
    return names


def _session(root: Path, concurrency: int, url: str, db: str, *options: str) -> Measure:
    folder = root / "run"
    folder.mkdir(exist_ok=True)
    command = ours(f"--helmbench-db={root / db}", *options)(
        Work(root / "benchmark", root, url, concurrency, folder)
    )
    arguments = [word for word in command.arguments if word != "--helmbench-db=helmbench.db"]
    found = measure(Command(arguments, command.environ, _ENDS), folder, url)
    shutil.rmtree(folder)
    return found


def _merge(root: Path, files: Sequence[str], out: str, *options: str) -> Measure:
    return measure(_command(root, files, out, frozenset({0}), *options), root)


def _command(root: Path, files: Sequence[str], out: str, ends: frozenset[int], *options: str) -> Command:
    words = [sys.executable, "-m", "pytest_helmbench", "merge", *files, "-o", str(root / out), *options]
    return Command(words, ends=ends)


def _scores(db: Path) -> str:
    return repr(scored_run(db, 1))


def _count(db: Path) -> int:
    return int(_query(db, "SELECT count(*) FROM results"))


def _query(db: Path, query: str) -> float:
    with closing(sqlite3.connect(db)) as conn:
        return float(conn.execute(query).fetchone()[0])


_COPY = """
import cProfile, pstats, sys, tempfile
from pathlib import Path
from pytest_helmbench.results.merging import merged_shards

profile = cProfile.Profile()
with tempfile.TemporaryDirectory() as folder, profile:
    with merged_shards([Path(file) for file in sys.argv[1:]], Path(folder) / "m.db", partial=False, force=False):
        pass
spent = 0.0
for (file, _, name), (_, _, own, _, _) in pstats.Stats(profile).stats.items():
    if Path(file).name.startswith(("merged_", "shard_")):
        spent += own
print(spent)
"""

"""The gates of merged shards: the thresholds and baselines that the shards were given, for the whole run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pytest_helmbench.benchmarks.registry import places_of
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.results.baselines import Baselines, keep_baselines, read_baseline_options
from pytest_helmbench.results.comparing import RunComparison
from pytest_helmbench.results.gates import GateReport, Gates, JudgedCases, read_gates
from pytest_helmbench.results.merging import MergedRun, MergedShards
from pytest_helmbench.results.shard_sessions import MergeError
from pytest_helmbench.store.read.benchmark_places import BenchmarkKey, folder_of

_ASKED = ("min_score", "min_coverage", "baselines", "max_drop", "allow_gone")
_OF_OWN_FILE = re.compile(r"(?:\d+|last(?:~\d+)?)\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class MergedGates:
    """The gates that the shards were given.

    Args:
        baselines: Found already; None for none.
    """

    gates: Gates
    baselines: Baselines | None

    def judge(self, merged: MergedShards, out: Path) -> GateReport:
        """Check the merged runs against it, and keep which baseline each had.

        Args:
            out: Where their file is moved to.

        Raises:
            StoreError: A file cannot be read or written.
        """
        names = names_of(merged)
        found: dict[int, RunComparison] = {}
        if self.baselines is not None:
            runs = [(run.run_id, _key_of(run), run.facts) for run in merged.runs]
            found = self.baselines.compare(merged.path, runs)
            keep_baselines(merged.path, found, self.baselines.lost.values(), out)
        scores = {names[run.run_id]: run.score for run in merged.runs}
        cases = {names[run.run_id]: JudgedCases.of(run.facts) for run in merged.runs}
        comparisons: Mapping[str, RunComparison] = {
            names[run_id]: comparison for run_id, comparison in found.items()
        }
        if self.baselines is not None:
            comparisons = self.baselines.with_lost(comparisons)
        return self.gates.judge(scores, comparisons, cases)


def gates_of(merged: MergedShards, start: Path) -> MergedGates:
    """Return what all shards were given alike, with its baselines.

    Args:
        start: Folder that paths of baselines are relative to.

    Raises:
        MergeError: They were given none, or not the same.
        HelmbenchError: A baseline cannot be read.
    """
    asked: dict[str, object] = {}
    for session in merged.winners:
        now = {name: session.first.settings.get(name) for name in _ASKED}
        other = next((name for name in _ASKED if asked and asked[name] != now[name]), None)
        if other is not None:
            option = f"--helmbench-{other.replace('_', '-').removesuffix('s')}"
            raise MergeError(
                f"--gate: {session.text} was given {option} {now[other]!r},"
                f" {merged.winners[0].text} {asked[other]!r}\n"
                "  hint: merge without --gate, and hold the run to what you want: `helmbench report --gate`"
            )
        asked = now
    addresses = asked["baselines"] if isinstance(asked["baselines"], list) else []
    if asked["min_score"] is None and asked["min_coverage"] is None and not addresses:
        raise MergeError(
            "--gate: the shards were given no threshold and no baseline\n"
            "  hint: give them --helmbench-min-score or --helmbench-baseline, or `helmbench report --gate`"
        )
    texts = [
        None if asked[name] is None else str(asked[name])
        for name in ("min_score", "min_coverage", "max_drop")
    ]
    models = [run.name[1] for run in merged.runs]
    baseline = read_baseline_options(
        tuple(map(str, addresses)), texts[2], models, allows_gone=asked["allow_gone"] is True
    )
    gates = read_gates(texts[0], texts[1], baseline)
    if baseline is None:
        return MergedGates(gates, None)
    for address in baseline.addresses.values():
        if _OF_OWN_FILE.match(address):
            raise MergeError(
                f"--gate: the baseline {address!r} is a run of each shard's own file\n"
                "  hint: give shards a file as baseline: --helmbench-baseline=main.json or old.db#3"
            )
    baselines = Baselines(baseline, merged.path, start)
    baselines.find([(_key_of(run), _benchmark_of(run), run.name[1]) for run in merged.runs])
    # A folder without a benchmark defines no case; one with a benchmark may define some.
    baselines.find_lost(_roots(merged), None, lambda folder, *_: None if places_of(folder) else ())
    return MergedGates(gates, baselines)


def _roots(merged: MergedShards) -> Mapping[str, Path]:
    """Return where the merged benchmarks lie that were read whole, as far as they are on this machine."""
    found: dict[str, Path] = {}
    for session in merged.winners:
        for name, run in session.runs.items():
            folder = None if run.place is None else folder_of(run.place, session.path)
            if folder is not None and run.scope == "whole" and places_of(folder) is not None:
                found[f"{name[0]} {name[2]}"] = folder
    return found


def _key_of(run: MergedRun) -> tuple[str, str]:
    return f"{run.name[0]} {run.name[2]}", run.name[1]


def _benchmark_of(run: MergedRun) -> BenchmarkKey:
    return BenchmarkKey(run.name[0], run.like.benchmark[3], run.like.place)


def names_of(merged: MergedShards) -> Mapping[int, str]:
    """Return what merged runs are called: by model, and by benchmark where there are several."""
    benchmarks = {(run.name[0], run.name[2]) for run in merged.runs}
    names = {}
    often: Counter[str] = Counter()
    for run in merged.runs:
        name = run.name[1] if len(benchmarks) == 1 else f"{run.name[1]} on {run.name[0]}"
        often[name] += 1
        names[run.run_id] = name if often[name] == 1 else f"{name} ({often[name]})"
    return names

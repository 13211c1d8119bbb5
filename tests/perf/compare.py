"""Our plugin beside other tools, and beside what pytest itself costs, in one run: `python tests/perf/compare.py`.

Starts a provider in a process of its own and runs every command in turns; prints medians. The environment needs the
`openai` package for the bare script. Other tools are measured when they are installed in the same environment, or in
`$PERF_TOOLS/NAME` (`deepeval`, `inspect-ai`, `lm-eval`, `pydantic-evals`, `promptfoo`). Takes twenty minutes;
choose with `--parts`.
"""

from __future__ import annotations

import argparse
import math
import platform
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from perf.instructions import compare_instructions
from perf.measure import Command, FailedError, Measure, measure, provider
from perf.shards import compare_shards
from perf.tools import Tool, Work, absent_tools, ours, tools, trivial_items
from perf.workload import write_heavy_schema, write_prompts, write_tree

_MANY = 100_000
_TESTS = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Load:
    """The load of a measurement.

    Args:
        cases: How many.
        latency_ms: Of every answer.
        concurrency: Calls in flight.
        heavy: Replies take long to check.
    """

    cases: int
    latency_ms: float
    concurrency: int
    heavy: bool = False

    @property
    def ideal_s(self) -> float:
        """Wall time of a program that costs nothing."""
        return math.ceil(self.cases / self.concurrency) * self.latency_ms / 1000


_START = Load(10, 0, 10)
"""The loads that take no longer than a session takes to start and to end."""

Runs = dict[str, list[Measure]]


def take_turns(load: Load, runners: Sequence[Tool], repeat: int) -> Runs:
    """Run every tool as often as asked, one after the other; one that fails says so and is left out."""
    runs: Runs = {tool.name: [] for tool in runners}
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write_tree(root, load.cases)
        prompts = write_prompts(root)
        options = ["--answer", str(write_heavy_schema(root))] if load.heavy else []
        with provider(load.latency_ms, *options) as url:
            for _ in range(repeat):
                for tool in runners:
                    folder = root / "run"
                    folder.mkdir()
                    work = Work(root / "benchmark", prompts, url, load.concurrency, folder)
                    try:
                        taken = measure(tool.command(work), folder, url)
                    except FailedError as error:
                        print(f"{tool.name} {error}", file=sys.stderr)
                    else:
                        runs[tool.name].append(taken)
                        if taken.requests != load.cases:
                            print(
                                f"{tool.name}: {taken.requests} requests, not {load.cases}", file=sys.stderr
                            )
                    shutil.rmtree(folder)
    return {name: taken for name, taken in runs.items() if taken}


def median(runs: Sequence[Measure], value: Callable[[Measure], float]) -> float:
    """Return the median of a value over some runs."""
    return statistics.median(map(value, runs))


def compare_tools(load: Load, runners: Sequence[Tool], repeat: int) -> None:
    """Print one line per tool; marginal costs are those between a fifth of the cases and all."""
    small = Load(load.cases // 5, load.latency_ms, load.concurrency)
    few = take_turns(small, runners, repeat + 1)
    runs = take_turns(load, runners, repeat)
    print(
        f"\n{load.cases:,} cases, {load.latency_ms:g} ms, {load.concurrency} in flight:"
        f" ideal {load.ideal_s:.2f} s, start-up included\n"
    )
    print("| | wall s | efficiency | CPU ms per case | marginal | peak MiB | bytes per case | in flight |")
    print("|---|---|---|---|---|---|---|---|")
    for name, taken in runs.items():
        wall_s, cpu_s = median(taken, lambda run: run.wall_s), median(taken, lambda run: run.cpu_s)
        marginal = "–"
        if name in few:
            started = median(
                few[name][1:], lambda run: run.cpu_s
            )  # the first fills caches of compiled modules
            marginal = f"{(cpu_s - started) / (load.cases - small.cases) * 1000:.2f}"
        peak = max(run.peak_mib for run in taken)
        written = median(taken, lambda run: run.written) / load.cases
        print(
            f"| {name} | {wall_s:.2f} | {load.ideal_s / wall_s:.2f} | {cpu_s / load.cases * 1000:.2f} | {marginal}"
            f" | {peak:.0f} | {written:,.0f} | {taken[-1].most_in_flight} |"
        )


def compare_versions(loads: Sequence[Load], before: str, repeat: int) -> None:
    """Print the CPU and the time of the working tree over those of a commit, measured in turns."""
    for load in loads:
        runs = take_turns(load, [Tool("before", ours(revision=before)), Tool("now", ours())], repeat)
        print(f"\n{load.cases:,} cases, {load.latency_ms:g} ms: now against {before}")
        for name, value in (("wall s", _wall), ("CPU s", _cpu)):
            earlier, now = (median(runs[version], value) for version in ("before", "now"))
            print(f"{name}: {now:.2f} and {earlier:.2f}: {now / earlier:.3f} times")


def compare_workers(concurrency: int, repeat: int) -> None:
    """Print what two workers win where checking the replies burns CPU."""
    load = Load(2_000, 50, concurrency, heavy=True)
    runs = take_turns(load, [Tool("one process", ours()), Tool("-n 2", ours("-n", "2"))], repeat)
    print("\n2,000 cases whose replies (300 findings, 35 kB) are checked against a schema\n")
    walls = {name: median(taken, lambda run: run.wall_s) for name, taken in runs.items()}
    for name, taken in runs.items():
        cpu_ms = median(taken, lambda run: run.cpu_s) / load.cases * 1000
        print(f"{name}: {walls[name]:.2f} s, {cpu_ms:.1f} ms of CPU per case")
    print(f"-n 2 is {walls['one process'] / walls['-n 2']:.2f} times as fast")


def compare_collection(repeat: int) -> None:
    """Print what collecting and selecting costs beside trivial items of a class of our own."""

    def selected(command: Command) -> Command:
        return Command([*command.arguments, "--collect-only", "-k", "PT77"], command.environ)

    runs = _beside_floor("http://127.0.0.1:9/v1", repeat, selected)
    floor, cases = (runs[name] for name in ("trivial items", "cases"))
    print(f"\n{_MANY:,} collected and selected (`-k PT77`)\n")
    for name, value in (("wall s", _wall), ("CPU s", _cpu), ("peak MiB", _largest)):
        trivial, own = median(floor, value), median(cases, value)
        print(f"{name}: {own:.2f}, trivial items {trivial:.2f}: {own / trivial:.2f} times")


def compare_memory(concurrency: int) -> None:
    """Print what a finished case keeps in memory beyond a finished trivial item."""
    with provider(0) as url:
        runs = _beside_floor(url, 1, lambda command: command, f"--helmbench-concurrency={concurrency}")
    floor, cases = (runs[name][0] for name in ("trivial items", "cases"))
    beyond = (cases.largest_mib - floor.largest_mib) * 2**20 / _MANY
    print(f"\n{_MANY:,} cases run against a provider that answers at once, without JUnit\n")
    print(f"peak: {cases.largest_mib:.0f} MiB, trivial items {floor.largest_mib:.0f} MiB")
    print(f"{beyond:.0f} bytes per finished case beyond a trivial item, start-up and texts included")
    print(f"wall: {cases.wall_s:.1f} s, trivial items {floor.wall_s:.1f} s")


def _beside_floor(
    url: str, repeat: int, changed: Callable[[Command], Command], *options: str
) -> Mapping[str, list[Measure]]:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "many"
        root.mkdir()
        write_tree(root, _MANY)
        pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *("-p", "no:junitxml")]
        model = ["--helmbench-model=mock-1", f"--helmbench-base-url={url}"]
        commands = {
            "trivial items": trivial_items(root, _MANY, "-p", "no:junitxml"),
            "cases": Command([*pytest, "benchmark", *model, *options]),
        }
        runs: dict[str, list[Measure]] = {name: [] for name in commands}
        for _ in range(repeat):
            for kind, command in commands.items():
                runs[kind].append(measure(changed(command), root))
    return runs


def _wall(run: Measure) -> float:
    return run.wall_s


def _cpu(run: Measure) -> float:
    return run.cpu_s


def _largest(run: Measure) -> float:
    return run.largest_mib


def main() -> None:
    """Print what was asked for."""
    parts = "tools,wire,workers,collection,memory,shards,instructions"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default=parts, help=f"which of {parts}, versions")
    parser.add_argument("--before", default="HEAD", help="commit that the part `versions` runs beside ours")
    parser.add_argument("--cases", type=int, default=1000, help="of the table of all tools")
    parser.add_argument("--latency-ms", type=float, default=200, help="of the table of all tools")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    chosen = given.parts.split(",")
    print(f"Python {platform.python_version()}, {platform.platform()}; medians of {given.repeat}")
    if "tools" in chosen:
        compare_tools(Load(given.cases, given.latency_ms, given.concurrency), tools(), given.repeat)
        print(f"\nnot installed, so not measured: {', '.join(absent_tools()) or 'none'}")
    if "wire" in chosen:
        compare_tools(Load(5_000, 50, given.concurrency), tools(fast_only=True), given.repeat)
    if "workers" in chosen:
        compare_workers(given.concurrency, given.repeat)
    if "collection" in chosen:
        compare_collection(given.repeat)
    if "memory" in chosen:
        compare_memory(given.concurrency)
    if "shards" in chosen:
        compare_shards(2_000, 20_000, given.concurrency)
    if "instructions" in chosen:
        compare_instructions(given.concurrency)
    if "versions" in chosen:
        loads = [Load(5_000, 50, given.concurrency), Load(1_000, 200, given.concurrency), _START]
        compare_versions(loads, given.before, given.repeat)


if __name__ == "__main__":
    main()

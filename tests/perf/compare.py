"""Our plugin beside other tools, and beside what pytest itself costs, in one run: `python tests/perf/compare.py`.

Starts a provider in a process of its own and runs every command in turns; prints medians. The environment needs the
`openai` package for the bare script. Other tools are measured when they are installed in the same environment, or in
`$PERF_TOOLS/NAME` (`deepeval`, `inspect-ai`, `lm-eval`, `pydantic-evals`, `promptfoo`). Takes half an hour; choose with
`--parts`.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from bench_pack_folders import write_bench_pack_folder
from bridged import Item, bridge_to, outcomes
from perf.growth import compare_growth
from perf.measure import Command, FailedError, Measure, measure, provider
from perf.shards import compare_shards
from perf.tools import Tool, Work, absent_tools, ours, tools, trivial_items
from perf.workload import (
    semaphore_wall_s,
    tail_latencies_s,
    write_bench_pack,
    write_heavy_schema,
    write_prompts,
    write_tree,
)

_MANY = 100_000
_TESTS = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked.

    Args:
        cases: How many.
        latency_ms: Of every answer; the median with a sigma.
        concurrency: Calls in flight.
        sigma: Of a log-normal latency by case.
        heavy: Replies take long to check.
    """

    cases: int
    latency_ms: float
    concurrency: int
    sigma: float = 0.0
    heavy: bool = False

    @property
    def ideal_s(self) -> float:
        """Wall time of a program that costs nothing."""
        if self.sigma:
            return semaphore_wall_s(
                tail_latencies_s(self.cases, self.latency_ms / 1000, self.sigma), self.concurrency
            )
        return math.ceil(self.cases / self.concurrency) * self.latency_ms / 1000


Runs = dict[str, list[Measure]]


def take_turns(load: Load, runners: Sequence[Tool], repeat: int) -> Runs:
    """Run every tool as often as asked, one after the other; one that fails says so and is left out."""
    runs: Runs = {tool.name: [] for tool in runners}
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write_tree(root, load.cases)
        prompts = write_prompts(root)
        options = ["--sigma", str(load.sigma)] if load.sigma else []
        options += ["--answer", str(write_heavy_schema(root))] if load.heavy else []
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


def compare_tail(concurrency: int, repeat: int) -> None:
    """Print how far a long tail of latencies is from a bare semaphore over the same latencies in the same order."""
    load = Load(5_000, 200, concurrency, sigma=1.0)
    runs = take_turns(load, [Tool("pytest-helmbench", ours())], repeat)
    print(
        f"\n5,000 cases, log-normal latency (median 200 ms, sigma 1), {concurrency} in flight: a bare semaphore"
        f" takes {load.ideal_s:.2f} s\n"
    )
    for name, taken in runs.items():
        wall_s = median(taken, lambda run: run.wall_s)
        print(f"{name}: {wall_s:.2f} s, {wall_s / load.ideal_s:.2f} of the semaphore")


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


def compare_bench_packs(repeat: int) -> None:
    """Print what scenarios of Bench Packs cost beside cases of a tree, and how long a small slow pack takes."""
    with tempfile.TemporaryDirectory() as name, provider(50) as url:
        runs = _hosted_runs(Path(name), url, repeat)
    print("\n1,000 items, 50 ms, 64 in flight, start-up included; of Bench Packs with Node\n")
    floor = median(runs["cases of a tree"], _cpu)
    for what, taken in runs.items():
        cpu_s = median(taken, _cpu)
        print(
            f"{what}: {median(taken, _wall):.2f} s, {cpu_s:.2f} s of CPU, {cpu_s / floor:.2f} times the tree's"
        )
    with tempfile.TemporaryDirectory() as name:
        print(f"\nbridge: {asyncio.run(_bridge_times(Path(name)))}")
    with tempfile.TemporaryDirectory() as name, provider(1_500) as url:
        root = Path(name) / "slow"
        root.mkdir()
        write_bench_pack(root, 15, asks=True)
        slow = [measure(_on(url, "pack"), root, url) for _ in range(repeat)]
    print(
        f"\n15 scenarios of 1.5 s: {median(slow, _wall):.2f} s; pytest says: {slow[-1].output.splitlines()[-1]}"
    )


async def _bridge_times(folder: Path) -> str:
    """Return what the bridge itself takes: to start, for a round trip, and after a crash."""
    root = write_bench_pack_folder(folder / "pack", {"A": "", "dies": "() => process.abort()"})
    async with bridge_to(root) as bridge:
        started = time.perf_counter()
        await bridge.scenarios()
        start_s = time.perf_counter() - started
        await bridge.run(Item("A"), 20.0)
        started = time.perf_counter()
        for _ in range(200):
            await bridge.run(Item("A"), 20.0)
        trip_ms = (time.perf_counter() - started) * 5
        started = time.perf_counter()
        await outcomes(bridge, [Item("dies")])
        await bridge.run(Item("A"), 20.0)
        crash_s = time.perf_counter() - started
    return (
        f"start with its pack {start_s:.2f} s, round trip {trip_ms:.2f} ms,"
        f" crash, again alone, and a fresh process {crash_s:.2f} s"
    )


def _hosted_runs(folder: Path, url: str, repeat: int) -> Mapping[str, list[Measure]]:
    """Run the three benchmarks of a thousand items in turns."""
    targets = {
        "cases of a tree": "benchmark",
        "scenarios that ask": "pack",
        "scenarios that do nothing": "pack",
    }
    runs: dict[str, list[Measure]] = {name: [] for name in targets}
    for number in range(repeat):
        for name, target in targets.items():
            root = folder / f"{name} {number}"
            root.mkdir()
            if target == "pack":
                write_bench_pack(root, 1_000, asks=name == "scenarios that ask")
            else:
                write_tree(root, 1_000)
            runs[name].append(measure(_on(url, target), root))
    return runs


def _on(url: str, target: str) -> Command:
    """Return the command that runs a benchmark; scenarios that ask nobody end as errors."""
    options = ("--helmbench-model=mock-1", f"--helmbench-base-url={url}", "--helmbench-concurrency=64")
    arguments = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", target, *options]
    return Command(arguments, ends=frozenset({0, 1}))


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
    parts = "tools,wire,tail,workers,collection,memory,hosted,growth,shards"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default=parts, help=f"which of {parts}")
    parser.add_argument("--cases", type=int, default=1000, help="of the table of all tools")
    parser.add_argument("--latency-ms", type=float, default=200, help="of the table of all tools")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--sizes", default="1000,10000,100000", help="numbers of cases of `growth`, by commas"
    )
    given = parser.parse_args()
    chosen = given.parts.split(",")
    print(f"Python {platform.python_version()}, {platform.platform()}; medians of {given.repeat}")
    if "tools" in chosen:
        compare_tools(Load(given.cases, given.latency_ms, given.concurrency), tools(), given.repeat)
        print(f"\nnot installed, so not measured: {', '.join(absent_tools()) or 'none'}")
    if "wire" in chosen:
        compare_tools(Load(5_000, 50, given.concurrency), tools(fast_only=True), given.repeat)
    if "tail" in chosen:
        compare_tail(given.concurrency, given.repeat)
    if "workers" in chosen:
        compare_workers(given.concurrency, given.repeat)
    if "collection" in chosen:
        compare_collection(given.repeat)
    if "memory" in chosen:
        compare_memory(given.concurrency)
    if "hosted" in chosen:
        compare_bench_packs(given.repeat)
    if "growth" in chosen:
        sizes = [int(size) for size in given.sizes.split(",")]
        compare_growth(sizes, given.concurrency, given.repeat)
    if "shards" in chosen:
        compare_shards(2_000, 20_000, given.concurrency)


if __name__ == "__main__":
    main()

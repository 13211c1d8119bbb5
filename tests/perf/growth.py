"""What more cases cost: wall, CPU, memory and bytes at sizes that grow tenfold, and whether that is a straight line."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from perf.measure import Command, Measure, measure, provider
from perf.tools import Work, ours, trivial_items
from perf.workload import write_tree

__all__ = ["compare_growth", "growth_lines"]

_MOST_OFF = 0.10
_ONCE = 1_000_000


def compare_growth(sizes: Sequence[int], concurrency: int, repeat: int, *options: str) -> None:
    """Run every size against a provider that answers at once, and print what one more case costs; so for trivial items.

    All sizes take turns, so that an hour at which the machine is slower is one for all of them.

    Args:
        sizes: Numbers of cases, growing. A million is run once, and without JUnit.
        concurrency: Calls in flight.
        repeat: How often each is run; the run with the least CPU counts, since others can only add to it.
        options: More of the command line.
    """
    cases: defaultdict[int, list[Measure]] = defaultdict(list)
    trivial: defaultdict[int, list[Measure]] = defaultdict(list)
    with provider(0) as url:
        for turn in range(repeat):
            for size in (size for size in sizes if turn == 0 or size < _ONCE):
                cases[size].append(_cases(size, concurrency, url, options))
                trivial[size].append(_trivial(size))
                print(f"{size:,} done: {cases[size][-1].cpu_s:.1f} s of CPU", flush=True)
    for what, runs in (("Cases at 0 ms, {} in flight", cases), ("Trivial items of pytest", trivial)):
        print(f"\n{what.format(concurrency)}, start-up included\n")
        print("\n".join(growth_lines([(size, min(of, key=_cpu)) for size, of in runs.items()])))


def growth_lines(runs: Sequence[tuple[int, Measure]]) -> list[str]:
    """Return a table: one row per size, with what a case costs beyond the size before.

    The more the threads wait for each other (on a quiet machine with two cores or more), the dearer is every case:
    sizes with different waits per case say nothing about growth.

    A cell ends with `!` where that is over a tenth dearer than between the two sizes before.
    """
    lines = [
        "| cases | wall s | CPU s | waits per case | peak MiB | MB on disk"
        " | one more case: CPU ms | memory KiB | bytes |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    before: tuple[float, ...] | None = None
    for number, (size, run) in enumerate(runs):
        cells = ["–"] * 3
        if number:
            fewer, smaller = runs[number - 1]
            more = size - fewer
            now = (
                (run.cpu_s - smaller.cpu_s) / more * 1000,
                (run.largest_mib - smaller.largest_mib) / more * 1024,
                (run.written - smaller.written) / more,
            )
            dearer = [
                before is not None and one > old * (1 + _MOST_OFF)
                for one, old in zip(now, before or now, strict=True)
            ]
            texts = (f"{now[0]:.2f}", f"{now[1]:.2f}", f"{now[2]:,.0f}")
            cells = [text + (" !" if too_dear else "") for text, too_dear in zip(texts, dearer, strict=True)]
            before = now
        lines.append(
            f"| {size:,} | {run.wall_s:.1f} | {run.cpu_s:.1f} | {run.switches / size:.1f}"
            f" | {run.largest_mib:.0f} | {run.written / 1e6:.1f}"
            f" | {' | '.join(cells)} |"
        )
    return lines


def _cases(cases: int, concurrency: int, url: str, options: Sequence[str]) -> Measure:
    with tempfile.TemporaryDirectory() as name:
        root, folder = Path(name), Path(name) / "run"
        folder.mkdir()
        write_tree(root, cases)
        command = ours(*options)(Work(root / "benchmark", root, url, concurrency, folder))
        return measure(replace(command, arguments=_words(command, cases)), folder, url)


def _trivial(items: int) -> Measure:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        folder.mkdir()
        command = trivial_items(folder, items, "--junitxml=junit.xml")
        return measure(replace(command, arguments=_words(command, items)), folder)


def _words(command: Command, items: int) -> Sequence[str]:
    return [word for word in command.arguments if items < _ONCE or not word.startswith("--junitxml")]


def _cpu(run: Measure) -> float:
    return run.cpu_s

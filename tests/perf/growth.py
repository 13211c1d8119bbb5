"""What more cases cost: wall, CPU, memory and bytes at sizes that grow tenfold, and whether that is a straight line."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from perf.measure import Measure, measure, provider
from perf.tools import Work, ours
from perf.workload import write_tree

__all__ = ["compare_growth", "growth_lines"]

_MOST_OFF = 0.10
_ONCE = 1_000_000


def compare_growth(sizes: Sequence[int], concurrency: int, repeat: int, *options: str) -> None:
    """Run every size against a provider that answers at once, and print what one more case costs.

    Args:
        sizes: Numbers of cases, growing. A million is run once, and without JUnit.
        concurrency: Calls in flight.
        repeat: How often each is run; the run with the least CPU counts, since others can only add to it.
        options: More of the command line.
    """
    runs: list[tuple[int, Measure]] = []
    with provider(0) as url:
        for size in sizes:
            runs.append((size, _least(size, concurrency, 1 if size >= _ONCE else repeat, url, options)))
            print("\n".join(growth_lines(runs)[-1:]) if len(runs) > 1 else f"{size:,} done", flush=True)
    print(f"\nCases at 0 ms, {concurrency} in flight, start-up included\n")
    print("\n".join(growth_lines(runs)))


def growth_lines(runs: Sequence[tuple[int, Measure]]) -> list[str]:
    """Return a table: one row per size, with what a case costs beyond the size before.

    A cell ends with `!` where that is over a tenth dearer than between the two sizes before.
    """
    lines = [
        "| cases | wall s | CPU s | peak MiB | MB on disk | one more case: CPU ms | memory KiB | bytes |",
        "|---|---|---|---|---|---|---|---|",
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
            f"| {size:,} | {run.wall_s:.1f} | {run.cpu_s:.1f} | {run.largest_mib:.0f} | {run.written / 1e6:.1f}"
            f" | {' | '.join(cells)} |"
        )
    return lines


def _least(cases: int, concurrency: int, repeat: int, url: str, options: Sequence[str]) -> Measure:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write_tree(root, cases)
        runs = []
        for number in range(repeat):
            folder = root / f"run {number}"
            folder.mkdir()
            command = ours(*options)(Work(root / "benchmark", root, url, concurrency, folder))
            words = [word for word in command.arguments if cases < _ONCE or not word.startswith("--junitxml")]
            runs.append(measure(replace(command, arguments=words), folder, url))
    return min(runs, key=lambda run: run.cpu_s)

"""Instructions that one more case takes over those of its floor: a bare request of libcurl and a trivial pytest item.

CPU seconds scatter by a tenth; instructions, counted by valgrind, agree to a few thousandths.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from perf.measure import Command, measure, provider
from perf.tools import Work, bare_requests, ours, trivial_items
from perf.workload import write_prompts, write_tree

_FEW, _MANY = 50, 250
_LATENCY_MS = 50
_ALONE = ("-p", "no:timeout", "-p", "no:rerunfailures", "-p", "no:hypothesispytest")
"""Without plugins of others that watch every test."""
_COUNTED = re.compile(r"I\s+refs:\s+([\d,]+)")


def compare_instructions(concurrency: int) -> None:
    """Print the instructions of one more case, between 50 and 250, and their ratio to those of the floor."""
    commands: dict[str, Callable[[Work], Command]] = {
        "case": ours(*_ALONE),
        "request": bare_requests,
        "item": lambda work: trivial_items(work.folder, _cases(work), "--junitxml=junit.xml", *_ALONE),
    }
    with ThreadPoolExecutor(max_workers=2) as pool:
        counts = {
            (name, cases): pool.submit(_counted, command, cases, concurrency)
            for name, command in commands.items()
            for cases in (_MANY, _FEW)
        }
    slopes = {
        name: (counts[name, _MANY].result() - counts[name, _FEW].result()) / (_MANY - _FEW) / 1e6
        for name in commands
    }
    floor = slopes["request"] + slopes["item"]
    print(
        f"\ninstructions of one more case: {slopes['case']:.2f} M, {slopes['case'] / floor:.2f} times the floor"
    )
    print(
        f"floor: {slopes['request']:.2f} M of a bare request, {slopes['item']:.2f} M of a trivial item with JUnit"
    )


def _counted(command: Callable[[Work], Command], cases: int, concurrency: int) -> int:
    with tempfile.TemporaryDirectory() as name, provider(_LATENCY_MS) as url:
        root = Path(name)
        write_tree(root, cases)
        folder = root / "run"
        folder.mkdir()
        bare = command(Work(root / "benchmark", write_prompts(root), url, concurrency, folder))
        counter = [_valgrind(), "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
        environ = {**bare.environ, "PYTHONHASHSEED": "0"}
        output = measure(Command([*counter, *bare.arguments], environ), folder).output
        found = _COUNTED.search(output)
        if found is None:
            raise RuntimeError(f"valgrind has counted nothing: {output[-1500:]}")
        return int(found[1].replace(",", ""))


def _cases(work: Work) -> int:
    return len(work.prompts.read_text(encoding="utf-8").splitlines())


def _valgrind() -> str:
    found = shutil.which("valgrind")
    if found is None:
        raise SystemExit("install valgrind: it counts the instructions")
    return found

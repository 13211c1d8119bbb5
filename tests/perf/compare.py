"""Our plugin beside a bare asyncio script, in one run: `python tests/perf/compare.py --cases 1000 --latency-ms 200`.

Prints wall time, CPU, peak memory and ratios. The environment needs the `openai` package for the script.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent
_WORDS = [
    "account",
    "order",
    "refund",
    "ticket",
    "invoice",
    "payment",
    "delivery",
    "screen",
    "policy",
    "address",
    "upgrade",
    "password",
]


@dataclass(frozen=True, slots=True)
class Measure:
    """One run of one command: seconds, MiB of the largest process, requests that arrived, most in flight."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    requests: int
    most_in_flight: int


def write_tree(root: Path, cases: int) -> Path:
    """Write a benchmark of that many cases and the same prompts for the script; return the prompts' file."""
    conditions = 10
    perturbations = math.ceil(cases / conditions)
    folder = root / "benchmark" / "scenarios" / "P1-B1-S1"
    folder.mkdir(parents=True)
    schema = {
        "type": "object",
        "properties": {"category": {"type": "string", "enum": ["CHAT", "HANDOFF"]}},
        "required": ["category"],
        "additionalProperties": False,
    }
    (folder / "S1.json").write_text(json.dumps(schema), encoding="utf-8")
    (folder / "S1.md").write_text(
        "---\ncategory: HANDOFF\n---\n\n## Your job\n\nClassify.\n", encoding="utf-8"
    )
    texts = [
        " ".join(_WORDS[(number * 7 + k) % len(_WORDS)] for k in range(150))
        for number in range(perturbations)
    ]
    (folder / "conditions.md").write_text(
        "".join(f"# C{n}\n\n## Instructions\n\nCondition {n}.\n\n" for n in range(1, conditions + 1)),
        encoding="utf-8",
    )
    (folder / "perturbations.md").write_text(
        "".join(
            f"# PT{n}\n---\nseverity: {1 + n % 9}\n---\n\n## Input\n\n{n} {text}\n\n"
            for n, text in enumerate(texts, start=1)
        ),
        encoding="utf-8",
    )
    prompts = root / "prompts.jsonl"
    prompts.write_text(
        "".join(json.dumps(f"Classify. {n % 10} {texts[n // 10]}") + "\n" for n in range(cases))
    )
    return prompts


@contextmanager
def mock(latency_ms: float) -> Iterator[str]:
    """Run the provider in a process of its own; yield its base URL."""
    process = subprocess.Popen(
        [sys.executable, _HERE / "mock.py", str(latency_ms)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.kill()
        process.wait()


def measure(command: list[str], cwd: Path, environ: Mapping[str, str], url: str) -> Measure:
    """Run a command; its whole process tree is counted."""
    urllib.request.urlopen(url, timeout=10).read()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environ}, capture_output=True, text=True, check=False
    )
    wall_s = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(
            f"{command[0]} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    requests, most = urllib.request.urlopen(url, timeout=10).read().split()
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measure(wall_s, cpu_s, after.ru_maxrss / 1024, int(requests), int(most))


def main() -> None:
    """Run every command a few times and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--latency-ms", type=float, default=200)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    ideal_s = math.ceil(options.cases / options.concurrency) * options.latency_ms / 1000
    with tempfile.TemporaryDirectory() as folder, mock(options.latency_ms) as url:
        root = Path(folder)
        prompts = write_tree(root, options.cases)
        environ = {"BASE_URL": url, "CONCURRENCY": str(options.concurrency), "PROMPTS": str(prompts)}
        pytest = [
            sys.executable,
            "-m",
            "pytest",
            "benchmark",
            "-q",
            "-p",
            "no:cacheprovider",
            "--junitxml=j.xml",
        ]
        pytest += ["--helmbench-model=mock-1", f"--helmbench-base-url={url}"]
        pytest += [f"--helmbench-concurrency={options.concurrency}"]
        commands = {
            "asyncio script, openai SDK": [sys.executable, str(_HERE / "bare_script.py")],
            "pytest-helmbench": pytest,
            "pytest-helmbench -n 2": [*pytest, "-n", "2"],
        }
        results: dict[str, list[Measure]] = {name: [] for name in commands}
        for turn in range(options.repeat + 1):
            for name, command in commands.items():
                for database in root.glob("helmbench.db*"):
                    database.unlink()
                taken = measure(command, root, {**environ, "OUT": str(root / "out.json")}, url)
                if turn:  # the first turn fills the caches of compiled modules
                    results[name].append(taken)
        shutil.rmtree(root / "benchmark")
    print_table(results, options.cases, ideal_s)


def print_table(results: Mapping[str, list[Measure]], cases: int, ideal_s: float) -> None:
    """Print one line per command; ratios are to the first."""
    base = next(iter(results.values()))
    base_wall, base_cpu = (
        statistics.median(getattr(run, name) for run in base) for name in ("wall_s", "cpu_s")
    )
    print(f"{cases} cases, ideal {ideal_s:.2f} s; medians of {len(base)}")
    print(
        "| | wall s | of ideal | CPU ms per case | peak MiB | requests | in flight | wall ratio | CPU ratio |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, runs in results.items():
        wall, cpu = (statistics.median(getattr(run, field) for run in runs) for field in ("wall_s", "cpu_s"))
        peak = max(run.peak_mib for run in runs)
        print(
            f"| {name} | {wall:.2f} | {wall / ideal_s:.2f} | {cpu / cases * 1000:.2f} | {peak:.0f} |"
            f" {runs[-1].requests} | {runs[-1].most_in_flight} | {wall / base_wall:.2f} | {cpu / base_cpu:.2f} |"
        )


if __name__ == "__main__":
    main()

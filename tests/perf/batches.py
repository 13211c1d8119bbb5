"""Batches by figures: cost and time of a run, memory of many cases, and processor time while a session waits.

Run it by hand: `python tests/perf/batches.py --cases 660 --takes 120` (some minutes).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from batch_provider import BatchProvider
from trees import Part, Tree, category, judged_twice, rows, write_tree

_PER_SCENARIO = 200
_UNASKED = ("-o", "helmbench_ask_above=1000")
_TURN = "## Turn {0}\n\nANSWER: done {1}.{0}"
_MODELS = "models:\n" + "".join(
    f"  - {{id: test/{name}, batch: openai, price: {{input: 1, output: 4}}}}\n" for name in ("good", "judge")
)
_VERDICTS = """SELECT code, outcome, results.score, criterion, passed, observed FROM results
    LEFT JOIN evaluations ON result_id = results.id ORDER BY code, criterion"""


def _write(folder: Path, cases: int) -> None:
    """Write 20 conversations of three turns, half of the rest with a judge of two criteria."""
    talks = {
        f"PT{number}": Part("\n\n".join(_TURN.format(turn, number) for turn in (1, 2, 3)), 5)
        for number in range(1, 21)
    }
    trees = {"P2-B1-S1": Tree(("evaluation:", "  type: contains", "  expected: done"), None, talks)}
    for place, begin in enumerate(range(0, cases - 20, _PER_SCENARIO)):
        answers = [("RISK", "CALM")[number % 2] for number in range(min(_PER_SCENARIO, cases - 20 - begin))]
        trees[f"P1-B{place + 1}-S1"] = (judged_twice if place % 2 else category)(*answers)
    write_tree(folder / "benchmark", trees)
    (folder / "models.yml").write_text(_MODELS, encoding="utf-8")


def _begin(folder: Path, provider: BatchProvider, database: str, *options: str) -> subprocess.Popen[bytes]:
    arguments = [
        f"--helmbench-{whose}={value}"
        for whose, value in (
            ("base-url", provider.url),
            ("marking-base-url", provider.url),
            ("model", "test/good"),
            ("marking-model", "test/judge"),
            ("models-file", "models.yml"),
            ("db", database),
        )
    ]
    with (folder / "output.txt").open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "benchmark", *_UNASKED, *arguments, *options],
            cwd=folder,
            stdout=output,
            stderr=output,
        )


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _measure_waiting(folder: Path, provider: BatchProvider, watched_s: float) -> str:
    provider.set(takes_s=3600)
    session = _begin(folder, provider, "waits.db", "--helmbench-batch")
    while not provider.batches:
        time.sleep(0.5)
    time.sleep(30)
    before = _cpu_s(session.pid)
    time.sleep(watched_s)
    used = (_cpu_s(session.pid) - before) / watched_s
    session.kill()
    session.wait()
    return f"waiting: {100 * used:.2f} % of a processor"


def _measure_run(folder: Path, provider: BatchProvider, takes_s: float, *options: str) -> list[str]:
    """Run singly and in batches; return how money, verdicts, time and memory compare."""
    _begin(folder, provider, "singly.db", *options).wait()
    singly_usd, before, bodies = provider.billed_usd, provider.batches, provider.billed
    provider.set(takes_s=takes_s)
    began = time.monotonic()
    session = _begin(folder, provider, "batched.db", "--helmbench-batch", *options)
    most_kib = 0
    while session.poll() is None:
        status = Path(f"/proc/{session.pid}/status")
        lines = status.read_text().splitlines() if status.exists() else []
        most_kib = max([most_kib, *(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))])
        time.sleep(0.2)
    took_s = time.monotonic() - began
    usd = provider.billed_usd - singly_usd
    [(recorded,)] = rows(folder / "batched.db", "SELECT total(cost_usd) FROM calls")
    same = rows(folder / "singly.db", _VERDICTS) == rows(folder / "batched.db", _VERDICTS)
    made = provider.batches - before
    twice = sum(count > 2 * bodies.get(body, 0) for body, count in provider.billed.items())
    return [
        f"verdicts equal: {same}; billed {usd:.6f} USD, recorded {recorded:.6f}, {usd / singly_usd:.3f} × singly",
        f"bodies billed twice: {twice}; {made} batches",
        f"{took_s:.0f} s; {took_s / (3 * takes_s):.2f} × three rounds of the provider; {most_kib / 1024:.0f} MiB",
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=660)
    parser.add_argument("--takes", type=float, default=120.0, help="seconds of each batch")
    parser.add_argument(
        "--wait", type=float, default=0.0, help="seconds of waiting to watch; 0 to run to the end"
    )
    parser.add_argument("options", nargs="*", help="of pytest, behind --")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, given.cases)
        with BatchProvider(folder) as provider:
            if given.wait:
                print(_measure_waiting(folder, provider, given.wait))
            else:
                print("\n".join(_measure_run(folder, provider, given.takes, *given.options)))


if __name__ == "__main__":
    main()

"""A long run against a server that fails in every way: afterwards the books must balance to the request.

Run it by hand: `python tests/perf/soak.py --cases 20000` (some minutes). A small one is `tests/sessions/test_soak.py`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from provider import Answer, Provider, Request
from records import calls_by_error, integrity
from trees import MODEL, Tree, category, judged, rows, write_tree

from pytest_helmbench.gateway.retries import BOUND_TOKENS

__all__ = ["Books", "run_soak"]

_PER_SCENARIO = 200
_JUDGED_SHARE = 10  # every tenth scenario has a judge
_JUDGE = "test/judge"
_PYTEST = (sys.executable, "-m", "pytest", "-p", "no:hypothesispytest")

# Per thousand requests; what is left over is answered.
_FAULTS: Sequence[tuple[int, Answer]] = (
    (120, Answer(status=429, retry_after=0.05)),
    (40, Answer(status=500)),
    (40, Answer(status=503)),
    (20, Answer(reset=True)),
    (20, Answer(truncated=True)),
    (20, Answer(body=b"<html>Bad gateway</html>")),
    (20, Answer(body={"choices": []})),
    (10, Answer(body={"error": {"code": 502, "message": "upstream broke"}})),
    (4, Answer(hang=True)),
    (2, Answer(drip=True)),
    (3, Answer(status=400, body={"error": {"code": "content_filter", "message": "flagged"}})),
    (2, Answer(status=302, body=b"", headers={"Location": "https://example.com/v1"})),
)
_HUGE = Answer(huge=50 * 2**20)
_HUGE_PER_MILLION = 300


@dataclass(frozen=True, slots=True)
class Books:
    """The results of a soak.

    Args:
        asked: Requests that reached the server.
        sent: Rows in `calls`.
        first: Of these, first attempts.
        retries: Of these, the others.
        unequal: Requests that the server and the record count differently.
        verdicts: Results by outcome.
        wrong: Results that are not what the prompt orders.
        faults: Rows in `calls` by fault.
        status: Of the run.
        check: Of the file.
        exit_code: Of the session.
        wall_s: Of the session.
        peak_mib: Memory of the largest process.
        database_mib: Size of the file.
    """

    asked: int
    sent: int
    first: int
    retries: int
    unequal: int
    verdicts: dict[str, int]
    wrong: int
    faults: dict[str, int]
    status: str
    check: str
    exit_code: int
    wall_s: float
    peak_mib: float
    database_mib: float


class _Server:
    """Decides on each request; used on the provider's thread alone."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.asked: Counter[str] = Counter()

    def __call__(self, request: Request) -> Answer | None:
        """Return a fault, or None for a reply."""
        # After a timeout the same is asked with a bound; the record keeps it as it was asked first.
        raw = request.raw.replace(f',"max_tokens":{BOUND_TOKENS}'.encode(), b"")
        self.asked[hashlib.sha256(raw).hexdigest()] += 1
        if self._chance.randrange(1_000_000) < _HUGE_PER_MILLION:
            return _HUGE
        drawn = self._chance.randrange(1_000)
        for share, answer in _FAULTS:
            if drawn < share:
                return answer
            drawn -= share
        return Answer(latency_s=self._chance.expovariate(1 / 0.02))


def run_soak(
    folder: Path,
    cases: int,
    seed: int,
    workers: int = 2,
    concurrency: int = 64,
    pytest: Sequence[str] = _PYTEST,
) -> Books:
    """Run a session and compare the server's books with ours.

    Args:
        folder: Empty.
        cases: How many, rounded up to whole scenarios.
        seed: Of the faults.
        workers: Of pytest-xdist; 0 for one process.
        concurrency: Calls in flight.
        pytest: The beginning of the command that runs the session.
    """
    write_tree(folder / "benchmark", _scenarios(cases))
    server = _Server(seed)
    with Provider() as provider:
        provider.reply = server
        started = time.monotonic()
        exit_code = _session(folder, provider.url, pytest, f"-n{workers}", concurrency)
        wall_s = time.monotonic() - started
    return _books(folder / "helmbench.db", server.asked, exit_code, wall_s)


def _scenarios(cases: int) -> dict[str, Tree]:
    scenarios: dict[str, Tree] = {}
    for number in range(1, -(-cases // _PER_SCENARIO) + 1):
        count = min(_PER_SCENARIO, cases - (number - 1) * _PER_SCENARIO)
        answers = ["CALM" if case % 3 == 0 else "RISK" for case in range(count)]
        # The number of the scenario is in the words: no two cases send the same.
        body = f"## Task\n\nSort message by message, scenario {number}."
        build = judged if number % _JUDGED_SHARE == 0 else category
        scenarios[f"P1-B{number}-S1"] = build(*answers, body=body)
    return scenarios


def _session(folder: Path, url: str, pytest: Sequence[str], workers: str, concurrency: int) -> int:
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n", encoding="utf-8")
    command = [
        *(*pytest, "benchmark", "-q", "-p", "no:cacheprovider", workers),
        *(f"--helmbench-{whose}base-url={url}" for whose in ("", "marking-")),
        *(f"--helmbench-model={MODEL}", f"--helmbench-marking-model={_JUDGE}"),
        *(f"--helmbench-concurrency={concurrency}", "--helmbench-timeout=3", "--helmbench-max-retries=9"),
        "--helmbench-case-timeout=120",
    ]
    hidden = ("CI", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "HELMBENCH_API_KEY")
    environ = {name: value for name, value in os.environ.items() if name not in hidden}
    with (folder / "output.txt").open("wb") as output:
        return subprocess.run(
            command, cwd=folder, env=environ, stdout=output, stderr=subprocess.STDOUT, check=False
        ).returncode


def _books(database: Path, asked: Counter[str], exit_code: int, wall_s: float) -> Books:
    sent = rows(database, "SELECT request_hash, count(*) FROM calls WHERE from_cache = 0 GROUP BY 1")
    ((in_all, first),) = rows(database, "SELECT count(*), total(attempt = 1) FROM calls")
    # Every third message orders the wrong answer; judges always say the first option, which passes.
    number = "substr(code, instr(code, '-PT') + 3)"
    expected = f"CASE WHEN family = 'sqe' OR ({number} - 1) % 3 THEN 'passed' ELSE 'failed' END"
    wrong = f"SELECT count(*) FROM results WHERE outcome IN ('passed', 'failed') AND outcome <> {expected}"
    return Books(
        asked=asked.total(),
        sent=in_all,
        first=int(first),
        retries=in_all - int(first),
        unequal=sum(count != asked[name] for name, count in sent) + len(asked.keys() - dict(sent).keys()),
        verdicts=dict(rows(database, "SELECT outcome, count(*) FROM results GROUP BY 1")),
        wrong=rows(database, wrong)[0][0],
        faults=calls_by_error(database),
        status=rows(database, "SELECT status FROM evaluation_runs")[0][0],
        check=integrity(database),
        exit_code=exit_code,
        wall_s=wall_s,
        peak_mib=resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
        database_mib=database.stat().st_size / 2**20,
    )


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-n", "--workers", type=int, default=2)
    parser.add_argument("--concurrency", type=int, default=64)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        books = run_soak(Path(name), given.cases, given.seed, given.workers, given.concurrency)
        print((Path(name) / "output.txt").read_text(encoding="utf-8")[-2_000:])
    for field in Books.__slots__:
        print(f"{field}: {getattr(books, field)}")


if __name__ == "__main__":
    _main()

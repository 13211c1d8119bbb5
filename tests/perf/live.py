"""What the live view sends and how long it takes, beside a writer: bytes, CPU, and time until a count is heard.

`python tests/perf/live.py [CASES…]` prints the table of docs/performance.md.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from viewers import Viewer, open_run, record

from pytest_helmbench.store.writer import Store

_NEW = 64


def main(sizes: list[int]) -> None:
    """Look at runs of these sizes while 64 more results come, and print what that took."""
    print(
        "| cases | page, MB | 64 new: rows, KB | parts, KB | CPU: page, s | 64 new, s | a look, ms | heard after, s |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for cases in sizes:
        with tempfile.TemporaryDirectory() as folder:
            _measure(Path(folder), cases)


def _measure(folder: Path, cases: int) -> None:
    store = Store.open(folder / "helmbench.db")
    run = open_run(store, planned=cases + _NEW)
    for start in range(0, cases, 1_000):
        record(store, run, *range(start + 1, min(start + 1_000, cases) + 1))
    with Viewer(folder, run) as viewer, viewer.events(str(run)) as events:
        events.until(done=cases)
        before = _cpu_s(viewer.pid)
        page = viewer.ask(f"/r/{run}").text
        first = _cpu_s(viewer.pid) - before
        version = viewer.ask(f"/r/{run}/news?since=0").json["version"]
        before = _cpu_s(viewer.pid)
        start_s = time.monotonic()
        record(store, run, *range(cases + 1, cases + _NEW + 1))
        events.until(done=cases + _NEW)
        heard_s, looks = time.monotonic() - start_s, _cpu_s(viewer.pid) - before
        before = _cpu_s(viewer.pid)
        news = viewer.ask(f"/r/{run}/news?since={version}")
        again = _cpu_s(viewer.pid) - before
        parts = len(str(news.json["parts"]).encode())
        rows = len(news.text.encode()) - parts
        assert len(news.json["cells"]["0"]["places"]) == _NEW
    store.close()
    print(
        f"| {cases:,} | {len(page) / 1e6:.2f} | {rows / 1e3:.1f} | {parts / 1e3:.0f} | {first:.2f} | {again:.2f}"
        f" | {looks * 1e3:.0f} | {heard_s:.1f} |",
        flush=True,
    )


def _cpu_s(pid: int) -> float:
    """Return the CPU time that a process has spent."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1_000, 10_000, 100_000])

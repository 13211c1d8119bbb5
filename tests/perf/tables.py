"""Seconds and peak of a session that collects a table of 100,000 rows, by format: `python tests/perf/tables.py`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pyarrow import Table, csv, parquet


def main() -> None:
    """Collect each table in a process of its own."""
    asked = [
        f"What is the capital of country {n}, and which league is it a member of?" for n in range(100_000)
    ]
    table = Table.from_pydict({"question": asked, "answer": asked, "topic": [one[-40:-30] for one in asked]})
    with tempfile.TemporaryDirectory() as folder:
        csv.write_csv(table, Path(folder, "qa.csv"))
        parquet.write_table(table, Path(folder, "qa.parquet"))
        print("| table | s | CPU, s | peak, MiB |\n|---|---|---|---|")
        for name in ("qa.csv", "qa.parquet"):
            words = ("-m", "pytest", name, "--collect-only", "-q", "--helmbench-model=baseline/first")
            start = time.perf_counter()
            process = subprocess.Popen([sys.executable, *words], cwd=folder, stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            took, cpu_s = time.perf_counter() - start, used.ru_utime + used.ru_stime
            assert status == 0, name
            print(f"| {name} | {took:.1f} | {cpu_s:.1f} | {used.ru_maxrss / 1024:.0f} |")


if __name__ == "__main__":
    main()

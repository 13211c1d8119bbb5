"""Bytes, CPU, time until it is ready, nodes and filter of the HTML page at 1,000, 10,000 and 100,000 cases.

`python tests/perf/page.py [CASES…]` needs Playwright and Chromium; it prints the table of docs/evidence.md.
"""

from __future__ import annotations

import gc
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from page_runs import run_page, simulated_report
from stored_runs import stored_run

from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.results.run_report import run_report
from pytest_helmbench.store.write.writer import Store

_OPENINGS = 3
_FILTER = """async () => {
  const box = document.getElementById("q"), count = document.getElementById("count");
  const start = performance.now();
  const done = new Promise((resolve) => {
    new MutationObserver(() => resolve(performance.now() - start)).observe(count, { childList: true });
  });
  box.value = "failed severity>5 -C1";
  document.getElementById("filter").requestSubmit();
  return await done;
}"""


def main(sizes: list[int]) -> None:
    """Write and open pages of these sizes and print what they took."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"]
        )
        print("| page | MB | CPU to write, s | ready, s | nodes | filter, ms | heap, MB |")
        print("|---|---|---|---|---|---|---|")
        for cases in sizes:
            for texts in (False, True) if cases <= 10_000 else (False,):
                report = simulated_report(cases, texts=texts)
                shown = ShownTexts.ALL if texts else ShownTexts.NONE
                start = time.process_time()
                page = run_page([report], shown)
                _print(browser, Path(folder), f"{cases:,}{', all texts' if texts else ''}", page, start)
            after = simulated_report(cases, run=2, skill=0.75)
            start = time.process_time()
            page = run_page([report, after], ShownTexts.NONE)
            _print(browser, Path(folder), f"{cases:,}, two runs", page, start)
        browser.close()
        _print_stored(Path(folder))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak of the process that writes: {peak:.0f} MB")


def _print_stored(folder: Path) -> None:
    """Print the CPU of a page of 10,000 cases that stand in a results file, as `helmbench report` writes it."""
    path = folder / "helmbench.db"
    store = Store.open(path)
    run = stored_run(store, folder / "tree", scenarios=100, perturbations=4)
    store.close()
    gc.disable()
    for _ in range(_OPENINGS):
        start = time.process_time()
        report = run_report(path, run, all_cases=True)
        read_s = time.process_time() - start
        assert report is not None
        run_page([report], ShownTexts.NONE)
        print(f"stored: read {read_s:.2f} s of CPU, with the page {time.process_time() - start:.2f}")


def _print(browser: Any, folder: Path, name: str, page: str, start: float) -> None:
    took = time.process_time() - start
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    ready, nodes, filtered, heap = min(_opened(browser, file) for _ in range(_OPENINGS))
    size = file.stat().st_size / 1_000_000
    print(f"| {name} | {size:.2f} | {took:.2f} | {ready:.2f} | {nodes:,} | {filtered:.0f} | {heap:.0f} |")


def _opened(browser: Any, file: Path) -> tuple[float, int, float, float]:
    context = browser.new_context()
    page = context.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    ready = float(page.get_attribute("html", "data-ready")) / 1_000
    nodes = page.locator("*").count()
    filtered = page.evaluate(_FILTER)
    heap = page.evaluate("performance.memory.usedJSHeapSize") / 1_000_000
    context.close()
    return ready, nodes, filtered, heap


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1_000, 10_000, 100_000])

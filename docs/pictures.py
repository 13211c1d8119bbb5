"""Make the pictures of the docs from a real run of the README's demo, and the outputs in the task pages.

`PYTHONPATH=tests/support python docs/pictures.py`, with Chromium and the extra `test`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

from browsers import chromium
from paths import ROOT
from readme import demo_words

_COLUMNS = 100
_PAGES = {
    "page": "",
    "matrix": "#/cases?q=differ%20P1",
    "drawer": "#/case/P1-B1-S1-PT3",
}
"""Addresses in the demo's page by the name of their picture."""
_SETTLED_MS = 500  # a drawer slides, and texts are unpacked
_LINE_PX, _CHARACTER_PX, _EDGE_PX = 19, 8.4, 16
_COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "36": "#79c0ff"}
_NO_BREAK = "\N{NO-BREAK SPACE}"  # SVG joins other spaces
_CODE = re.compile(r"\x1b\[([\d;]*)m")


def _demo(folder: Path) -> str:
    """Run the demo on a copy, with a page; return what it prints, colours included."""
    shutil.copytree(ROOT / "benchmark", folder / "benchmark")
    words = demo_words()
    python = (sys.executable, "-m")
    given = ("--color=yes", "-p", "no:cacheprovider", "-p", "no:randomly")
    environment = {**os.environ, "COLUMNS": str(_COLUMNS), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*python, "pytest", *words, *given],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    texts = ("--with-text", "all", "-o", "report.html")
    report = ("pytest_helmbench", "report", "1", "2", "--format", "html", *texts)
    subprocess.run([*python, *report], cwd=folder, check=True)
    command = f"$ pytest {' '.join(words)}".replace(" --helmbench", " \\\n    --helmbench", 1)
    return f"{command}\n{done.stdout}".replace(f"{folder}/", "")


def _spans(line: str) -> Iterator[str]:
    style = ""
    for index, part in enumerate(_CODE.split(line)):
        if index % 2 == 0:
            yield f"<tspan{style}>{escape(part).replace(' ', _NO_BREAK)}</tspan>" if part else ""
            continue
        codes = part.split(";")
        fill = next((_COLOURS[code] for code in codes if code in _COLOURS), "")
        style = f' fill="{fill}"' * bool(fill) + ' font-weight="bold"' * ("1" in codes)


def _terminal(text: str) -> str:
    lines = text.rstrip().splitlines()
    width, height = round(_COLUMNS * _CHARACTER_PX + 2 * _EDGE_PX), len(lines) * _LINE_PX + 2 * _EDGE_PX
    rows = (
        f'<text x="{_EDGE_PX}" y="{_EDGE_PX + (number + 0.75) * _LINE_PX:.0f}">{"".join(_spans(line))}</text>'
        for number, line in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14"'
        ' fill="#e6edf3">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>\n' + "\n".join(rows) + "\n</svg>\n"
    )


def main() -> None:
    """Write all pictures, and all outputs."""
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "tests/sessions/test_task_pages.py"],
        cwd=ROOT,
        env={**os.environ, "HELMBENCH_WRITE_DOCS": "1"},
        check=True,
    )
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        (ROOT / "docs" / "terminal.svg").write_text(_terminal(_demo(folder)), "utf-8")
        for picture, address in _PAGES.items():
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(f"{(folder / 'report.html').as_uri()}{address}")
            page.wait_for_selector("html[data-ready]", state="attached")
            page.wait_for_timeout(_SETTLED_MS)
            page.screenshot(path=ROOT / "docs" / f"{picture}.png")


if __name__ == "__main__":
    main()

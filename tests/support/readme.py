"""The README: the commands that it shows between markers, and the task pages that it links."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import programs
from paths import ROOT

__all__ = ["TASK_PAGES", "demo_words", "page_blocks", "ran", "readme_command", "with_programs"]

_BLOCK = re.compile(r"(?:^<!-- ([^>]+) -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

TASK_PAGES = (
    "test-my-application",
    "compare-local-models",
    "gate-a-pull-request",
    "write-a-safety-benchmark",
    "tests-of-my-own",
)
"""Names of files in docs/, without `.md`."""


def readme_command(name: str) -> str:
    """Return the command that follows `<!-- NAME -->`."""
    found = re.search(
        rf"<!-- {name} -->\n```bash\n(.+?)\n```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL
    )
    assert found is not None, name
    return found[1]


def demo_words() -> list[str]:
    """Return what the README's first command gives to pytest."""
    return readme_command("demo").replace("\\\n", "").partition(" -m pytest ")[2].split()


def page_blocks(page: str, folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield mark, language and text of the blocks of a task page, in order; a file's block is saved instead."""
    for mark, language, block in _BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text("utf-8")):
        if mark.startswith("file: "):
            saved = folder / mark.removeprefix("file: ")
            saved.parent.mkdir(parents=True, exist_ok=True)
            saved.write_text(block, "utf-8")
        else:
            yield mark, language, block


def with_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a shell find pytest and helmbench."""
    path = os.pathsep.join((str(programs()), str(Path(sys.executable).parent), os.environ["PATH"]))
    monkeypatch.setenv("PATH", path)


def ran(command: str) -> tuple[int, str]:
    """Return the exit status and the output of a shell's commands."""
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr

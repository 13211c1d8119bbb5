"""The README: two commands that do their own set-up, and links to the task pages."""

from __future__ import annotations

import re

import pytest
from paths import ROOT
from readme import TASK_PAGES, readme_command


@pytest.mark.parametrize("name", ["demo", "tests"])
def test_a_command_does_its_own_set_up(name: str) -> None:
    command = readme_command(name)

    assert command.count("\n") == command.count("\\\n")
    assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")
    assert ".venv/bin/python -m pytest " in command


def test_no_block_of_code_is_wider_than_its_box() -> None:
    blocks = re.findall(
        r"^```bash\n(.+?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert [line for block in blocks for line in block.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("page", TASK_PAGES)
def test_the_readme_links_a_task_page(page: str) -> None:
    assert f"](docs/{page}.md)" in (ROOT / "README.md").read_text("utf-8")


def test_the_tests_for_further_pythons_are_there() -> None:
    named = (ROOT / "tests" / "support" / "smoke.txt").read_text("utf-8").splitlines()[1:]
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).is_file()] == []

"""The README's two commands: one line each that does its own set-up."""

from __future__ import annotations

import pytest
from readme import readme_command


@pytest.mark.parametrize("name", ["demo", "tests"])
def test_a_command_is_one_line_that_does_its_own_set_up(name: str) -> None:
    command = readme_command(name)

    assert "\n" not in command
    assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")
    assert ".venv/bin/python -m pytest " in command

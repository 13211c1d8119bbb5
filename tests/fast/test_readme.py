"""The README's two commands: one line each, and the gate runs them word for word."""

from __future__ import annotations

import re
import subprocess

import pytest
from paths import ROOT

_ROOT = ROOT


def _command(name: str) -> str:
    found = re.search(
        rf"<!-- {name} -->\n```bash\n(.+?)\n```", (_ROOT / "README.md").read_text("utf-8"), re.DOTALL
    )
    assert found is not None, name
    return found[1]


@pytest.mark.parametrize("name", ["demo", "tests"])
def test_a_command_is_one_line_that_does_its_own_set_up(name: str) -> None:
    command = _command(name)

    assert "\n" not in command
    assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")
    assert ".venv/bin/python -m pytest " in command


@pytest.mark.parametrize("name", ["demo", "tests"])
def test_the_gate_takes_the_commands_from_the_readme(name: str) -> None:
    script = (_ROOT / ".ci" / "run").read_text("utf-8")
    taken = re.search(rf"^{name}=\$\((.+)\)$", script, re.MULTILINE)
    assert taken is not None

    printed = subprocess.run(["bash", "-c", taken[1]], cwd=_ROOT, capture_output=True, text=True, check=True)

    assert printed.stdout.strip() == _command(name)
    assert f'bash -c "${name}"' in script

"""The gate runs the README's two commands word for word."""

from __future__ import annotations

import re
import subprocess

import pytest
from paths import ROOT
from readme import readme_command


@pytest.mark.parametrize("name", ["demo", "tests"])
def test_the_gate_takes_the_commands_from_the_readme(name: str) -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    taken = re.search(rf"^{name}=\$\((.+)\)$", script, re.MULTILINE)
    assert taken is not None

    printed = subprocess.run(["bash", "-c", taken[1]], cwd=ROOT, capture_output=True, text=True, check=True)

    assert printed.stdout.strip() == readme_command(name)
    assert f'bash -c "${name}"' in script

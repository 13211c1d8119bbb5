"""Imports for the rows of a pack: their families, and nothing of the others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from packs import healthy, write_pack


def test_only_the_families_of_its_rows_are_imported(tmp_path: Path) -> None:
    write_pack(tmp_path, [healthy("multiple_choice")])
    code = (
        "import sys; from pathlib import Path\n"
        "from pytest_helmbench.benchmarks.packs.format.pack_loader import load_pack\n"
        f"pack = load_pack(Path({str(tmp_path)!r})); pack.task(pack.rows[0])\n"
        "print(*sorted(name.split('.')[-2] for name in sys.modules if name.endswith('.family')))\n"
        "print('pytest_helmbench.sandbox.detection' in sys.modules)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["families", "multiple_choice", "False"]

"""The commands that the README shows between markers."""

from __future__ import annotations

import re

from paths import ROOT

__all__ = ["readme_command"]


def readme_command(name: str) -> str:
    """Return the command that follows `<!-- NAME -->`."""
    found = re.search(
        rf"<!-- {name} -->\n```bash\n(.+?)\n```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL
    )
    assert found is not None, name
    return found[1]

"""The README: the commands that it shows between markers, and the task pages that it links."""

from __future__ import annotations

import re

from paths import ROOT

__all__ = ["TASK_PAGES", "readme_command"]

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

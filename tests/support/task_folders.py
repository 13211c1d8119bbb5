"""Harbor task folders on disk: a healthy one, and such that differ from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["SEPARATE", "task_toml", "write_task"]

SEPARATE = 'artifacts = ["/app/answer.txt"]'
_TOML = """schema_version = "1.4"
{root}

[metadata]
difficulty = "easy"
{metadata}

[agent]
timeout_sec = 60.0
{agent}

[verifier]
{verifier}

[environment]
docker_image = "docker.io/library/python:3.12-slim"
workdir = "/app"
{environment}
{more}
"""
_TEST = """#!/bin/sh
mkdir -p /logs/verifier
if [ -f /app/answer.txt ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""


def task_toml(**lines: str) -> str:
    """Return a task.toml with lines added to its tables, by `root` and the names of these; `more` stands at the end."""
    parts = dict.fromkeys(("root", "metadata", "agent", "verifier", "environment", "more"), "") | lines
    return _TOML.format_map(parts)


def write_task(
    folder: Path,
    toml: str | None = None,
    files: Mapping[str, str | None] | None = None,
) -> Path:
    """Write a task folder and return it.

    Args:
        folder: Where it stands.
        toml: Its task.toml; None for a healthy one.
        files: More of its files by name, and those to leave out, as None.
    """
    healthy: dict[str, str | None] = {
        "task.toml": task_toml() if toml is None else toml,
        "instruction.md": "Write 42 into /app/answer.txt.\n",
        "tests/test.sh": _TEST,
        "solution/solve.sh": "#!/bin/sh\necho 42 > /app/answer.txt\n",
    }
    for name, text in {**healthy, **(files or {})}.items():
        if text is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755 if name.endswith(".sh") else 0o644)
    return folder

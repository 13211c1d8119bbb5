"""Question packs on disk: one healthy row of each family, and rows that differ from it in one place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

__all__ = ["FAMILIES", "GONE", "MANIFEST", "healthy", "row", "write_pack"]

MANIFEST = "id: demo\nversion: 1\n"
GONE = object()
"""As a changed value: take the key away."""

_HEALTHY: Mapping[str, Mapping[str, Any]] = {
    "multiple_choice": {
        "input": {"question": "Which of these is a fruit?", "choices": ["stone", "apple", "river"]},
        "eval": {"answer": "B"},
    },
    "short_answer": {
        "input": {
            "question": "How many legs has a spider?",
            "answer_format": "a whole number",
            "context": "Spiders are arachnids.",
        },
        "eval": {"accepted_answers": [8, "eight"], "tolerance": 0},
    },
    "free_response": {
        "input": {"prompt": "Where do fortune cookies come from?"},
        "eval": {
            "rubric": {
                "type": "contains_any",
                "accepted_answers": ["from California"],
                "rejected_answers": ["from China"],
                "min_token_f1": 0.5,
            },
            "reference_answer": "They come from California.",
        },
    },
    "code_completion": {
        "input": {"prompt": "Add two numbers.", "language": "python", "starter_code": "def add(a, b):\n"},
        "eval": {
            "tests": {"source": "inline", "code": "assert add(1, 2) == 3"},
            "reference_solution": "def add(a, b):\n    return a + b\n",
        },
    },
    "repo_patch": {
        "input": {
            "repo": "demo/calculator",
            "base_commit": "0123456789abcdef",
            "instructions": "Make add() add.",
            "hints": "Look at calculator.py.",
        },
        "eval": {
            "tests": {"source": "command", "command": ["python", "-m", "pytest"], "workdir": "/testbed"},
            "candidate_policy": {"allow_paths": ["src/"]},
            "gold_patch": "--- a/x\n+++ b/x\n",
        },
        "environment": {"image": "demo:1"},
    },
    "terminal_task": {
        "input": {"instructions": "Write 42 into answer.txt."},
        "eval": {"checker": {"command": "test $(cat answer.txt) = 42", "timeout_seconds": 10}},
    },
}
FAMILIES = tuple(_HEALTHY)


def healthy(family: str, identity: str = "r1") -> dict[str, Any]:
    """Return a row that nothing is wrong with."""
    return {"id": identity, "family": family, **deepcopy(dict(_HEALTHY[family]))}


def row(family: str, changes: Mapping[str, Any] | None = None, identity: str = "r1") -> dict[str, Any]:
    """Return a healthy row with changes.

    Args:
        family: One of `FAMILIES`.
        changes: Dotted place to new value, `GONE` to take it away: `{"eval.answer": 7}`.
        identity: Its id.
    """
    found = healthy(family, identity)
    for place, value in (changes or {}).items():
        *outer, last = place.split(".")
        inner = found
        for key in outer:
            inner = inner.setdefault(key, {})
        if value is GONE:
            del inner[last]
        else:
            inner[last] = value
    return found


def write_pack(
    root: Path,
    rows: Sequence[Mapping[str, Any] | str] | bytes,
    manifest: str = MANIFEST,
    files: Mapping[str, str] | None = None,
) -> Path:
    """Write a pack and return its folder.

    Args:
        root: The folder; made when it is missing.
        rows: Objects or lines as they stand, or the whole file.
        manifest: Text of manifest.yaml.
        files: More files by relative path.
    """
    root.mkdir(parents=True, exist_ok=True)
    (root / "manifest.yaml").write_text(manifest, encoding="utf-8")
    if isinstance(rows, bytes):
        (root / "tasks.jsonl").write_bytes(rows)
    else:
        lines = [item if isinstance(item, str) else json.dumps(item) for item in rows]
        (root / "tasks.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for name, text in (files or {}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root

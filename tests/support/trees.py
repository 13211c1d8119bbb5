"""Scenario trees on disk, and pytest run over them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from inner_pytest import run_pytest, run_pytest_forked

__all__ = [
    "CATEGORY_SCHEMA",
    "MODEL",
    "RESPONSE_SCHEMA",
    "TAGS_SCHEMA",
    "Part",
    "Tree",
    "category",
    "clear_environment",
    "collected",
    "every_mode",
    "includes",
    "judged",
    "judged_twice",
    "ordered",
    "rows",
    "run_tree",
    "threshold",
    "write_scenario",
    "write_tree",
]

MODEL = "test/good"

every_mode = pytest.mark.parametrize(
    "mode", [("-n0",), ("-n2",), ("-p", "no:xdist")], ids=["n0", "n2", "no-xdist"]
)
"""A test in one process, with two workers, and without pytest-xdist."""

_KEYS = ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "HELMBENCH_API_KEY", "OPENAI_BASE_URL", "CI")
_INI = "[pytest]\nfilterwarnings = error\n"


def _object(**properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


CATEGORY_SCHEMA = _object(response={"type": "string"}, category={"type": "string", "enum": ["RISK", "CALM"]})
TAGS_SCHEMA = _object(tags={"type": "array", "items": {"type": "string", "enum": ["A", "B", "C", "D"]}})
RESPONSE_SCHEMA = _object(response={"type": "string"})
_RUBRIC = "---\noptions: [GOOD, MIDDLING, BAD]\npass_values: [GOOD]\n{more}---\n\nHow good is it? {about}\n"


@dataclass(frozen=True, slots=True)
class Part:
    """A condition, user context or perturbation.

    Args:
        body: Markdown; `ANSWER: x` on a line orders what the provider answers.
        weight: Severity or difficulty; None leaves the frontmatter out.
    """

    body: str
    weight: int | None = None

    def text(self, key: str) -> str:
        """Return the component as it stands in a file."""
        front = "" if self.weight is None else f"---\n{key}: {self.weight}\n---\n\n"
        return f"{front}{self.body}\n"


@dataclass(frozen=True, slots=True)
class Tree:
    """One scenario folder.

    Args:
        evaluation: Lines of the prompt file's frontmatter; empty for none.
        schema: None for a plain-text call.
        perturbations: Parts by code; the other axes likewise.
        rubrics: Criteria files by name.
        prompt: Name of the prompt file; empty for the scenario's own.
        individual: One file per component instead of consolidated ones.
        body: Of the prompt file.
    """

    evaluation: Sequence[str] = ()
    schema: Mapping[str, Any] | None = None
    perturbations: Mapping[str, Part] = field(default_factory=dict)
    conditions: Mapping[str, Part] = field(default_factory=lambda: {"C1": Part("## Tone\n\nBe calm.")})
    user_contexts: Mapping[str, Part] = field(default_factory=dict)
    rubrics: Mapping[str, str] = field(default_factory=dict)
    prompt: str = ""
    individual: bool = False
    body: str = "## Task\n\nSort the message."


def ordered(answers: Sequence[str], severity: int | None = 5) -> dict[str, Part]:
    """Return perturbations of which each orders an answer."""
    return {
        f"PT{number}": Part(f"## User's input\n\nMessage {number}.\n\nANSWER: {answer}", severity)
        for number, answer in enumerate(answers, 1)
    }


def category(*answers: str, **more: Any) -> Tree:
    """Return a scenario that expects RISK; the n-th perturbation orders the n-th answer."""
    return Tree(("category: RISK",), CATEGORY_SCHEMA, ordered(answers), **more)


def includes(*answers: str, **more: Any) -> Tree:
    """Return a `list_includes` scenario that requires A and B."""
    lines = ("evaluation:", "  type: list_includes", "  field: tags", "  required: [A, B]")
    return Tree(lines, TAGS_SCHEMA, ordered(answers), **more)


def threshold(*answers: str, **more: Any) -> Tree:
    """Return a `tag_threshold` scenario: two of A, B, C, at most one other."""
    lines = (
        "evaluation:",
        "  type: tag_threshold",
        "  field: tags",
        "  expected: [A, B, C]",
        "  min_correct: 2",
        "  max_incorrect: 1",
    )
    return Tree(lines, TAGS_SCHEMA, ordered(answers), **more)


def judged(*answers: str, **more: Any) -> Tree:
    """Return an SQE scenario with one rubric: GOOD passes."""
    rubrics = {"criteria.md": _RUBRIC.format(more="", about="All in all.")}
    return Tree(("evaluation:", "  type: sqe"), RESPONSE_SCHEMA, ordered(answers), rubrics=rubrics, **more)


def judged_twice(*answers: str, **more: Any) -> Tree:
    """Return a scenario with two rubrics, CR1 and CR2: GOOD passes."""
    rubrics = {f"CR{n}.md": _RUBRIC.format(more="", about=f"Point {n}.") for n in (1, 2)}
    return Tree((), RESPONSE_SCHEMA, ordered(answers), rubrics=rubrics, prompt="MCSQE.md", **more)


def write_scenario(folder: Path, name: str, tree: Tree) -> Path:
    """Write one scenario and return its prompt file.

    Args:
        folder: Its folder; made when missing.
        name: Local code: `S1`.
        tree: What stands in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    front = "".join(f"{line}\n" for line in tree.evaluation)
    prompt = folder / (tree.prompt or f"{name}.md")
    prompt.write_text((f"---\n{front}---\n\n" if front else "") + tree.body + "\n", encoding="utf-8")
    if tree.schema is not None:
        (folder / f"{name}.json").write_text(json.dumps(tree.schema), encoding="utf-8")
    for axis, key, parts in (
        ("conditions", "difficulty", tree.conditions),
        ("user-contexts", "severity", tree.user_contexts),
        ("perturbations", "severity", tree.perturbations),
    ):
        _write_parts(folder / axis, key, parts, individual=tree.individual)
    for file, text in tree.rubrics.items():
        (folder / file).write_text(text, encoding="utf-8")
    return prompt


def _write_parts(path: Path, key: str, parts: Mapping[str, Part], *, individual: bool) -> None:
    if not parts:
        return
    if individual:
        path.mkdir()
        for code, part in parts.items():
            (path / f"{code}.md").write_text(part.text(key), encoding="utf-8")
        return
    text = "\n".join(f"# {code}\n{part.text(key)}" for code, part in parts.items())
    path.with_name(f"{path.name}.md").write_text(text, encoding="utf-8")


def write_tree(root: Path, scenarios: Mapping[str, Tree], *, nested: bool = False) -> Path:
    """Write a benchmark and return its folder.

    Args:
        root: The benchmark's folder; made when missing.
        scenarios: By code (`P1-B1-S1`, also with a readability suffix when flat).
        nested: `P1/B1/S1/` instead of `P1-B1-S1/`.
    """
    for code, tree in scenarios.items():
        local = code.split("--")[0].rpartition("-")[2]
        folder = root / "scenarios" / (code.replace("-", "/") if nested else code)
        write_scenario(folder, local, tree)
    return root


def clear_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what the machine at hand may have set: keys, and the sign of a CI machine."""
    for name in _KEYS:
        monkeypatch.delenv(name, raising=False)


def run_tree(
    pytester: pytest.Pytester, *arguments: str, url: str = "", model: str = MODEL, apart: bool = False
) -> pytest.RunResult:
    """Run pytest over `benchmark`, warnings as errors.

    Args:
        arguments: More of the command line; a path takes the place of `benchmark`.
        url: Of the provider, which answers judges too; empty for none.
        model: Under test, where a URL is given and no argument names one.
        apart: In a process of its own: limits and peaks of a process never go back.
    """
    if not (pytester.path / "pytest.ini").exists():
        pytester.makefile(".ini", pytest=_INI)
    own_path = any(not argument.startswith("-") and "benchmark" in argument for argument in arguments)
    given = [] if own_path else ["benchmark"]
    if url:
        given.append(f"--helmbench-base-url={url}")
        usual = {"marking-base-url": url, "model": model, "concurrency": 32}
        for name, value in usual.items():
            if not any(argument.startswith(f"--helmbench-{name}") for argument in arguments):
                given.append(f"--helmbench-{name}={value}")
    run = run_pytest_forked if apart else run_pytest
    return run(pytester, *given, *arguments)


def collected(result: pytest.RunResult) -> list[str]:
    """Return the ids that `--collect-only -q` printed, without the path up to the scenario."""
    return [line.rpartition("::")[2] for line in result.outlines if "::" in line]


def rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query, read by a connection of its own."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()

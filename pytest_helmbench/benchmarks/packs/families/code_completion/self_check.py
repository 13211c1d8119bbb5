"""Replies that a code row is checked with: the pack's own solutions pass, replies that say nothing do not."""

from __future__ import annotations

from typing import NamedTuple

from pytest_helmbench.benchmarks.packs.families.code_completion.blocks import fenced
from pytest_helmbench.benchmarks.packs.task import MaterializationError, PackTask

__all__ = ["KnownReply", "code_self_check"]

_SOLUTIONS = ("reference_solution", "canonical_solution")


class KnownReply(NamedTuple):
    """A reply and the verdict that it must get.

    Args:
        label: What it is, for people.
        text: The reply. A hidden value where `must_pass`.
        must_pass: Whether the tests must pass.
    """

    label: str
    text: str
    must_pass: bool


def code_self_check(task: PackTask) -> list[KnownReply]:
    """Return the replies that a row is checked with.

    Raises:
        MaterializationError: A solution is a file that cannot be read.
    """
    replies = [
        KnownReply(name, fenced(text), must_pass=True)
        for name in _SOLUTIONS
        if (text := _solution(task, name)) is not None
    ]
    prompt = str(task.input_value("prompt") or "")
    starter = str(task.input_value("starter_code") or "")
    replies.append(KnownReply("an empty reply", "", must_pass=False))
    replies.append(KnownReply("'I do not know'", "I do not know", must_pass=False))
    echo = f"{prompt}\n\n{fenced(starter)}" if starter.strip() else prompt
    replies.append(KnownReply("the prompt, echoed", echo, must_pass=False))
    if starter.strip():
        replies.append(KnownReply("the starter code, untouched", fenced(starter), must_pass=False))
    return replies


def _solution(task: PackTask, name: str) -> str | None:
    value = task.eval_value(name)
    if not isinstance(value, dict):
        return None if value is None else str(value)
    if "path" not in value:
        return str(value.get("code", ""))
    for file in task.eval_files:
        if file.path == str(value["path"]).removesuffix("/") and file.source is not None:
            try:
                return file.source.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise MaterializationError(f"{task.id}: the file of {name} cannot be read as text") from error
    raise MaterializationError(f"{task.id}: the file of {name} belongs to no pack")

"""Replies by which a row of a text family proves itself, without a model: right ones pass, empty talk fails."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pytest_helmbench.benchmarks.packs.families.text.given import leaves
from pytest_helmbench.core.json_types import JsonObject

__all__ = ["ProofReply", "echoes", "with_empty_talk"]

_IGNORANCE = "I do not know"


class ProofReply(NamedTuple):
    """One reply and what must come of it.

    Args:
        label: What it is, without any hidden value.
        reply: Its text; hidden where it is taken from `eval`.
        must_pass: The verdict that a sound row gives it.
    """

    label: str
    reply: str
    must_pass: bool


def with_empty_talk(replies: Iterable[ProofReply], prompt: str) -> tuple[ProofReply, ...]:
    """Return a family's own replies and those that no row may let pass.

    Args:
        replies: Those that must pass first.
        prompt: As the model sees it; empty for none.
    """
    whole = (ProofReply("the whole prompt", prompt, must_pass=False),) if prompt else ()
    empty = ProofReply("an empty reply", "", must_pass=False)
    return (*replies, *whole, empty, ProofReply(f"{_IGNORANCE!r}", _IGNORANCE, must_pass=False))


def echoes(given: JsonObject, name: str) -> Iterator[ProofReply]:
    """Yield what only repeats a row: its question, its context."""
    asked = given.get(name)
    if isinstance(asked, str) and asked.strip():
        yield ProofReply(f"the {name}", asked, must_pass=False)
    context = given.get("context")
    if isinstance(context, dict):
        lines = "\n".join(f"{key}: {value}" for key, value in context.items())
        yield ProofReply("the context", lines, must_pass=False)
        written = json.dumps(context, ensure_ascii=False, default=str)
        yield ProofReply("the context as JSON", written, must_pass=False)
    elif any(leaves(context)):
        yield ProofReply("the context", str(context), must_pass=False)

"""Rows of packs by family, and a provider that answers each row as a test says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from packs import GONE, row
from provider import Answer, Provider, Request

__all__ = ["answer_rows", "asked_rows", "choice", "free", "short", "worded"]

_JUDGE = " judge"


def choice(identity: str, **changes: Any) -> dict[str, Any]:
    """Return a multiple-choice row: stone, apple, river; `B` is right."""
    question = f"Which of these is a fruit? {_mark(identity)}"
    return row("multiple_choice", {"input.question": question, **changes}, identity)


def short(identity: str, **changes: Any) -> dict[str, Any]:
    """Return a short-answer row: 8 or eight is right."""
    question = f"How many legs has a spider? {_mark(identity)}"
    return row("short_answer", {"input.question": question, **changes}, identity)


def free(identity: str, **changes: Any) -> dict[str, Any]:
    """Return a free-response row: from California, and not from China."""
    prompt = f"Where do fortune cookies come from? {_mark(identity)}"
    return row("free_response", {"input.prompt": prompt, **changes}, identity)


def worded(identity: str, **changes: Any) -> dict[str, Any]:
    """Return a free-response row with a rubric in words."""
    rubric = {"eval.rubric": "The reply is polite.", "eval.reference_answer": GONE}
    return free(identity, **{**rubric, **changes})


def _mark(identity: str) -> str:
    return f"(item {identity})"


def answer_rows(provider: Provider, replies: Mapping[str, str | Answer]) -> None:
    """Let the provider answer rows by their ids, which stand in the questions, and everything else as always.

    Args:
        provider: Answers the rows from now on.
        replies: By id; `ID judge` is what the judge of a row chooses.
    """

    def reply(request: Request) -> str | Answer | None:
        named = {name: said for name, said in replies.items() if request.is_judge == name.endswith(_JUDGE)}
        found = (said for name, said in named.items() if _mark(name.removesuffix(_JUDGE)) in request.prompt)
        said = next(found, None)
        if not request.is_judge or not isinstance(said, str):
            return said
        return json.dumps({"judgment": said, "justification": "So it reads.", "evidence": []})

    provider.reply = reply


def asked_rows(provider: Provider) -> list[str]:
    """Return the ids of the rows that were asked, `ID judge` for a judge's call, in order; forget the requests."""
    found = [
        f"{request.prompt.rpartition('(item ')[2].partition(')')[0]}{_JUDGE if request.is_judge else ''}"
        for request in provider.requests
    ]
    provider.requests.clear()
    return found

"""Replies by which a row of a text family proves itself, without a model: right ones pass, empty talk fails."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from string import ascii_uppercase
from typing import Any, NamedTuple

from pytest_helmbench.benchmarks.packs.families.multiple_choice.choices import expected_choices
from pytest_helmbench.benchmarks.packs.families.multiple_choice.labels import Choices
from pytest_helmbench.benchmarks.packs.families.text.rows import choice_row, free_row, leaves, short_row
from pytest_helmbench.benchmarks.packs.task import Family

__all__ = ["ProofReply", "self_check_replies"]

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


def self_check_replies(
    family: str, given: Mapping[str, Any], wanted: Mapping[str, Any], prompt: str = ""
) -> tuple[ProofReply, ...]:
    """Return the replies that a row of a text family must judge right, those that must pass first.

    None for a rubric in words, which only the marking model can apply, and for other families.

    Args:
        family: Of the row.
        given: `input` of the row.
        wanted: `eval` of the row.
        prompt: As the model sees it; empty to echo the public fields only.

    Raises:
        ConfigError: The row is incomplete.

    Source:
        Benchmark packs, section 6.
    """
    if family == Family.MULTIPLE_CHOICE:
        replies = [*_choice_replies(given, wanted)]
    elif family == Family.SHORT_ANSWER:
        replies = [*_short_replies(given, wanted)]
    elif family == Family.FREE_RESPONSE and not isinstance(wanted.get("rubric"), str):
        replies = [*_free_replies(given, wanted)]
    else:
        return ()
    if prompt:
        replies.append(ProofReply("the whole prompt", prompt, must_pass=False))
    replies.append(ProofReply("an empty reply", "", must_pass=False))
    replies.append(ProofReply(f"{_IGNORANCE!r}", _IGNORANCE, must_pass=False))
    return tuple(replies)


def _choice_replies(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[ProofReply]:
    row = choice_row(given, wanted)
    right = expected_choices(row, Choices.of(row.choices))
    for index in sorted(right):
        yield ProofReply("the letter of the answer", ascii_uppercase[index], must_pass=True)
        if len(row.choices[index]) > 1:
            yield ProofReply("the text of the answer", row.choices[index], must_pass=True)
    for index in range(len(row.choices)):
        if index not in right:
            yield ProofReply("the letter of another choice", ascii_uppercase[index], must_pass=False)
    listed = "\n".join(
        f"{letter}) {choice}" for letter, choice in zip(ascii_uppercase, row.choices, strict=False)
    )
    yield ProofReply("the question and its choices", f"{row.question}\n\n{listed}", must_pass=False)
    if len(set(row.choices)) > 1:
        letters = ", ".join(ascii_uppercase[: len(row.choices)])
        yield ProofReply("a list of all choices", listed, must_pass=False)
        yield ProofReply("a list of all letters", letters, must_pass=False)


def _short_replies(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[ProofReply]:
    row = short_row(given, wanted)
    for number, answer in enumerate(row.accepted, 1):
        yield ProofReply(f"accepted answer {number}", str(answer), must_pass=True)
    yield from _echoes(given, "question")


def _free_replies(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[ProofReply]:
    row = free_row(given, wanted)
    for number, answer in enumerate(row.accepted, 1):
        yield ProofReply(f"accepted answer {number}", answer, must_pass=True)
    reference = wanted.get("reference_answer")
    if isinstance(reference, str) and reference.strip():
        yield ProofReply("the reference answer", reference, must_pass=True)
    for number, answer in enumerate(row.rejected, 1):
        yield ProofReply(f"rejected answer {number}", answer, must_pass=False)
    yield from _echoes(given, "prompt")


def _echoes(given: Mapping[str, Any], name: str) -> Iterator[ProofReply]:
    asked = given.get(name)
    if isinstance(asked, str) and asked.strip():
        yield ProofReply(f"the {name}", asked, must_pass=False)
    context = given.get("context")
    if isinstance(context, Mapping):
        lines = "\n".join(f"{key}: {value}" for key, value in context.items())
        yield ProofReply("the context", lines, must_pass=False)
        written = json.dumps(context, ensure_ascii=False, default=str)
        yield ProofReply("the context as JSON", written, must_pass=False)
    elif any(leaves(context)):
        yield ProofReply("the context", str(context), must_pass=False)

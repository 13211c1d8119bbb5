"""multiple_choice: the replies by which a row proves itself."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_uppercase

from pytest_helmbench.benchmarks.packs.families.multiple_choice.choice_answers import expected_choices
from pytest_helmbench.benchmarks.packs.families.multiple_choice.labels import Choices
from pytest_helmbench.benchmarks.packs.families.multiple_choice.row import choice_row
from pytest_helmbench.benchmarks.packs.families.text.proofs import ProofReply
from pytest_helmbench.core.json_types import JsonObject

__all__ = ["choice_proofs"]


def choice_proofs(given: JsonObject, wanted: JsonObject) -> Iterator[ProofReply]:
    """Yield the replies, those that must pass first.

    Raises:
        ConfigError: The row is incomplete.
    """
    row = choice_row(given, wanted)
    choices = Choices.of(row.choices)
    right = expected_choices(row, choices)
    for index in sorted(right):
        yield ProofReply("the letter of the answer", ascii_uppercase[index], must_pass=True)
        if not choices.is_label(row.choices[index]):
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

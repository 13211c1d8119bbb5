"""short_answer: the replies by which a row proves itself."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_helmbench.benchmarks.packs.families.short_answer.row import short_row
from pytest_helmbench.benchmarks.packs.families.text.proofs import ProofReply, echoes
from pytest_helmbench.core.json_types import JsonObject

__all__ = ["short_proofs"]


def short_proofs(given: JsonObject, wanted: JsonObject) -> Iterator[ProofReply]:
    """Yield the replies, those that must pass first.

    Raises:
        ConfigError: The row is incomplete.
    """
    row = short_row(given, wanted)
    for number, answer in enumerate(row.accepted, 1):
        yield ProofReply(f"accepted answer {number}", str(answer), must_pass=True)
    yield from echoes(given, "question")

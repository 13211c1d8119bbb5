"""free_response: the replies by which a row with a rubric that text rules can apply proves itself."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_helmbench.benchmarks.packs.families.free_response.row import free_row
from pytest_helmbench.benchmarks.packs.families.text.proofs import ProofReply, echoes
from pytest_helmbench.core.json_types import JsonObject

__all__ = ["free_proofs"]


def free_proofs(given: JsonObject, wanted: JsonObject) -> Iterator[ProofReply]:
    """Yield the replies, those that must pass first.

    Raises:
        ConfigError: The row is incomplete.
    """
    row = free_row(given, wanted)
    for number, answer in enumerate(row.accepted, 1):
        yield ProofReply(f"accepted answer {number}", answer, must_pass=True)
    reference = wanted.get("reference_answer")
    if isinstance(reference, str) and reference.strip():
        yield ProofReply("the reference answer", reference, must_pass=True)
    for number, answer in enumerate(row.rejected, 1):
        yield ProofReply(f"rejected answer {number}", answer, must_pass=False)
    yield from echoes(given, "prompt")

"""The finding on a reply of a text family: its verdict, whether words decide it, and what it rests on."""

from __future__ import annotations

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.judging.comparisons.stated import without_thoughts

STATEMENT_LIMIT = 200
"""Most characters of a reply that a finding carries."""


@dataclass(frozen=True, slots=True)
class AnswerFinding:
    """The verdict of one reply, and what it rests on. Holds no hidden value.

    Args:
        passed: Right or wrong.
        strategy: How the answer was recognised; None when none was.
        matched: multiple_choice: index of the choice that was read, None for none or several. Else: index of the
            accepted answer that was met, None for none.
        rejected: free_response: index of the rejected answer that was met; None for none.
        accepted_f1: free_response: best token F1 over the accepted answers, in [0, 1]; None elsewhere.
        rejected_f1: free_response: the same over the rejected answers.
        statement: What was compared: the model's own words, cut to 200 characters.
        reason: Why a reply is wrong for its form: `empty`, `no_answer` (it states none), `several` (it states more
            than one), `echo` (it only repeats what it was given). None otherwise.
        certain: Words decide. A marking model, where there is one, reads every other reply.
    """

    passed: bool
    strategy: str | None = None
    matched: int | None = None
    rejected: int | None = None
    accepted_f1: float | None = None
    rejected_f1: float | None = None
    statement: str = ""
    reason: str | None = None
    certain: bool = True


def shown(text: str) -> str:
    """Return a statement as a finding carries it: on one line, scrubbed and cut."""
    return excerpt(" ".join(text[: 4 * STATEMENT_LIMIT].split()), STATEMENT_LIMIT)


def no_answer(reply: str) -> AnswerFinding:
    """Return the finding on a reply that states no answer: wrong, and left to a marking model unless it is empty."""
    text = without_thoughts(reply)
    if not text:
        return AnswerFinding(False, reason="empty")
    return AnswerFinding(False, statement=shown(text), reason="no_answer", certain=False)

"""The finding on a reply of a text family: verdict, how the answer was recognised, final statement."""

from __future__ import annotations

from enum import Enum

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Parse
from pytest_helmbench.core.scrub import excerpt

__all__ = ["STATEMENT_LIMIT", "AnswerFinding", "Sureness", "shown"]

STATEMENT_LIMIT = 200
"""Most characters of a reply that a finding carries."""


class Sureness(Enum):
    """How sure a verdict on words is. The value is what the record calls it; None for certain."""

    CERTAIN = None
    """The words cannot be meant otherwise."""
    GUESSED = Parse.GUESSED
    """Words were matched that may be meant otherwise."""
    UNSURE = Parse.UNSURE
    """Nothing in the reply decides: a rule had to say something."""


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
        statement: What the rule took as the final statement: the model's own words, cut to 200 characters.
        sureness: Of the verdict.
        reason: Why a reply is wrong for its form: `empty`, `echo` (it only repeats what it was given),
            `no_statement` (nothing in it answers), `several` (it answers more than once). None otherwise.
    """

    passed: bool
    strategy: str | None = None
    matched: int | None = None
    rejected: int | None = None
    accepted_f1: float | None = None
    rejected_f1: float | None = None
    statement: str = ""
    reason: str | None = None
    sureness: Sureness = Sureness.CERTAIN

    @property
    def certain(self) -> bool:
        """Whether the words cannot be meant otherwise."""
        return self.sureness is Sureness.CERTAIN


def shown(text: str) -> str:
    """Return a statement as a finding carries it: on one line, scrubbed and cut."""
    return excerpt(" ".join(text[: 4 * STATEMENT_LIMIT].split()), STATEMENT_LIMIT)

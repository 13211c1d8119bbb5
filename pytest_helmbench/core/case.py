"""A case: what is sent, and the rule for its reply. Plain data that any process can take over."""

from __future__ import annotations

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass

JUDGED_RULE = "sqe"
"""`Evaluation.rule` where a marking model has judged."""


READ_BY_JUDGE = "(judge)"
"""End of `Evaluation.rule` where a marking model has read what the rule's words left open."""


def is_judgement(rule: str) -> bool:
    """Return whether a marking model has decided by a rule."""
    return rule == JUDGED_RULE or rule.endswith(READ_BY_JUDGE)


def justified_by(rule: str) -> str:
    """Return what stands before a justification: `judge` before a marking model's words, `because` before a rule's."""
    return "judge" if rule == JUDGED_RULE else "because"


class CaseRule:
    """The rule for the reply to a case. Every kind of benchmark has classes of its own for it.

    They are frozen values: thousands of cases may share one, and all that decides stands in it.
    """

    __slots__ = ()

    def of_case(self, _part: str) -> CaseRule:
        """Return the rule for one case, by the code of the part that tells it from the others."""
        return self


@dataclass(frozen=True, slots=True)
class BrokenCase:
    """A case that cannot run since its files are broken: planned as far as these could be read, never judged.

    Args:
        code: As far as it could be read: `P1-B2-S1-C1-PT3`, `P1-B2-S1`, the id of a row.
        severity: Base (−20..20); at least 1 where none could be read.
        difficulty: 0..10.
        evaluations: Rows that it would have had in each repetition.
    """

    code: str
    severity: int = 1
    difficulty: int = 0
    evaluations: int = 1


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Case:
    """One composed case.

    Args:
        messages: In order; the last one is the user's.
        response_format: Wire form of the wanted reply, or None for plain text.
        severity: Base severity (−20..20).
        difficulty: 0..10.
        timeout_s: Of a request; None for that of the session.
    """

    code: str
    messages: tuple[Message, ...]
    response_format: JsonObject | None
    rule: CaseRule
    severity: int = 0
    difficulty: int = 0
    timeout_s: float | None = None

    @property
    def schema(self) -> JsonObject | None:
        """The bare JSON Schema of the wanted reply, or None for plain text."""
        if self.response_format is None:
            return None
        envelope = self.response_format["json_schema"]
        schema = envelope["schema"] if isinstance(envelope, dict) else None
        return schema if isinstance(schema, dict) else None


def at_risk(severity: int, difficulty: int) -> int:
    """Return what a case that is judged wrong costs, in tenths of its points: |severity| × (10 − difficulty)."""
    return abs(severity) * (10 - difficulty)

"""The base class of rules that replies are judged by; the rules themselves belong to their kinds."""

from __future__ import annotations

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
    """What the reply to a case is held to. Every kind of benchmark has classes of its own for it.

    They are frozen values: thousands of cases may share one, and all that decides stands in it.
    """

    __slots__ = ()

    def of_case(self, _part: str) -> CaseRule:
        """Return what one case is held to, by the code of the part that tells it from the others."""
        return self

"""The base class of rules that judge a reply by themselves, without a marking model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from pytest_helmbench.core.case import Case
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.outcome import Evaluation, Reply
from pytest_helmbench.core.rule import CaseRule
from pytest_helmbench.judging.rule_hash import rule_hash

__all__ = ["ReplyRule"]


class ReplyRule(CaseRule, ABC):
    """A rule that gives its verdict at once; a case with it gets one evaluation."""

    __slots__ = ()

    type: ClassVar[str]
    """Its name in frontmatter and on record."""

    by_severity: bool
    """Invert the verdict where the base severity is below 0 (`polarity: by_severity`)."""

    @abstractmethod
    def evaluate(self, case: Case, reply: Reply, *, strict_json: bool) -> Evaluation:
        """Hold the reply to a case to the rule."""

    @abstractmethod
    def wanted(self) -> str:
        """Return what passes, in the fewest words, polarity apart."""

    @abstractmethod
    def data(self) -> JsonObject:
        """Return what the record keeps of it: all that decides."""

    def is_inverted(self, case: Case) -> bool:
        """Return whether what passes elsewhere is wrong in a case."""
        return self.by_severity and case.severity < 0

    def hashes(self) -> tuple[str, ...]:
        """Return the rule hash of the one evaluation that a case with this rule gets."""
        return (rule_hash(self.data()),)

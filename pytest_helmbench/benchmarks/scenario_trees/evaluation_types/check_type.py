"""Evaluation types whose rule is a check of the reply: what they read from frontmatter alike."""

from __future__ import annotations

from abc import abstractmethod

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import (
    EvaluationType,
    RuleSource,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_check import ReplyCheck, TextCheck
from pytest_helmbench.files.json_fields import a_text
from pytest_helmbench.files.source import Fault

__all__ = ["CheckType", "TextType"]


class CheckType(EvaluationType):
    """An evaluation type whose rule needs no response schema."""

    @abstractmethod
    def rule(self, source: RuleSource) -> ReplyCheck | None:
        """See `EvaluationType.rule`."""

    def fault(self, source: RuleSource, message: str, hint: str) -> None:
        """File what is wrong with a key of the type."""
        line = source.document.line("evaluation") or 1
        source.reader.findings.add(source.files.prompt, Fault(line, f"{self.name}: {message}", hint))


class TextType(CheckType):
    """A type that reads the reply's text, or a field of its JSON where `field` names one."""

    asks_for_polarity = True

    def rule(self, source: RuleSource) -> TextCheck | None:
        """See `EvaluationType.rule`."""
        return self.make(source, a_text(source.values.get("field")))

    @abstractmethod
    def make(self, source: RuleSource, field: str | None) -> TextCheck | None:
        """Return the rule, filing what is wrong with the type's own keys."""

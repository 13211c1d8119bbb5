"""Evaluation types whose rule is a check of the reply: what they read from frontmatter alike."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import (
    EvaluationType,
    RuleSource,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_check import ReplyCheck, TextCheck
from pytest_helmbench.files.json_fields import a_text

__all__ = ["CheckType", "SearchType", "TextType"]


class CheckType(EvaluationType):
    """An evaluation type whose rule needs no response schema."""

    @abstractmethod
    def rule(self, source: RuleSource) -> ReplyCheck:
        """See `EvaluationType.rule`."""

    def fault(self, source: RuleSource, message: str, hint: str, *keys: str | int) -> None:
        """File what is wrong with a value of the type."""
        source.fault(f"{self.name}: {message}", hint, *keys)


class TextType(CheckType):
    """A type that reads the reply's text, or a field of its JSON where `field` names one."""

    asks_for_polarity = True

    def rule(self, source: RuleSource) -> TextCheck:
        """See `EvaluationType.rule`."""
        return self.make(source, a_text(source.values.get("field")))

    @abstractmethod
    def make(self, source: RuleSource, field: str | None) -> TextCheck:
        """Return the rule."""


class SearchType(TextType):
    """A type that looks for the texts in `expected`."""

    found_everywhere: ClassVar[str]
    """What follows when a text occurs in every reply."""

    def check(self, source: RuleSource) -> None:
        """See `EvaluationType.check`: an empty text occurs in every reply."""
        written = source.values.get("expected")
        for index, text in enumerate(written if isinstance(written, list) else [written]):
            if text == "":
                message = f"an empty text in 'expected': {self.found_everywhere}"
                self.fault(source, message, "write a text, or remove the entry", "expected", index)

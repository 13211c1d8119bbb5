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

__all__ = ["CheckType", "ExpectedType", "TextType"]


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


class ExpectedType(TextType):
    """A type with texts in `expected`."""

    of_empty: ClassVar[str]
    """What follows of an empty text among them."""

    def check(self, source: RuleSource) -> None:
        """See `EvaluationType.check`: an empty text says nothing of a reply."""
        written = source.values.get("expected")
        for index, text in enumerate(written if isinstance(written, list) else [written]):
            if isinstance(text, str) and self.is_empty(source, text):
                message = f"an empty text in 'expected': {self.of_empty}"
                self.fault(source, message, "write a text, or remove the entry", "expected", index)

    def is_empty(self, _source: RuleSource, text: str) -> bool:
        """Return whether a text is empty as the rule reads it."""
        return text == ""

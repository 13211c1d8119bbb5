"""Evaluation rules as plain data: what a reply is held to. How they are applied is known to `evaluate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.bench_packs.bench_pack import BenchPackRule
    from pytest_helmbench.benchmarks.packs.task import PackRule

__all__ = ["AssertionRule", "CaseRule", "Criterion", "FieldRule", "FieldRuleType", "JudgeRule", "Rule"]

FieldRuleType = Literal["category_match", "list_includes", "tag_threshold"]


@dataclass(frozen=True, slots=True)
class FieldRule:
    """A rule that reads one field of a JSON reply.

    Args:
        type: Name of the rule in the format.
        field: Key or dotted path of the field.
        expected: Values as written in the file (strings). One for `category_match`; the required values
            for `list_includes`; the expected tags for `tag_threshold`.
        min_correct: `tag_threshold`: least number of expected tags; None means all of them.
        max_incorrect: `tag_threshold`: most tags beyond the expected.
        by_severity: Invert the verdict where the base severity is below 0 (`polarity: by_severity`).
    """

    type: FieldRuleType
    field: str
    expected: tuple[str, ...]
    min_correct: int | None = None
    max_incorrect: int = 0
    by_severity: bool = False


@dataclass(frozen=True, slots=True)
class Criterion:
    """One question to the judge (`criteria.md`, or `CR1.md` … of a multi-criteria scenario).

    Args:
        name: `CR1`, …; empty for the only criterion of a plain SQE scenario.
        rubric: Markdown body of the file.
        options: Values on the judge's menu, as written, in file order.
        pass_values: The options that pass.
        response_field: Key of the judge's JSON reply.
        response_type: `single` value or `multi` (a list).
        credit: Option to credit in [0, 1]; empty when the file has no `credit`: right earns 1, wrong 0.
    """

    name: str
    rubric: str
    options: tuple[str, ...]
    pass_values: tuple[str, ...]
    response_field: str = "judgment"
    response_type: Literal["single", "multi"] = "single"
    credit: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JudgeRule:
    """Structured qualitative evaluation: one judge call and one evaluation row per criterion.

    Args:
        criteria: In file order.
        by_severity: Below a base severity of 0, what passes is inverted.
        hidden: The rubric is hidden, and so are the judge's words, which may quote it.
    """

    criteria: tuple[Criterion, ...]
    by_severity: bool = False
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class AssertionRule:
    """A hand-written test: its own assertions decide.

    Args:
        hash: 16 hex digits over its source file.
    """

    hash: str


Rule = FieldRule | JudgeRule
"""What a scenario of a tree is held to."""

CaseRule: TypeAlias = "FieldRule | JudgeRule | PackRule | BenchPackRule | AssertionRule"
"""What a case of any benchmark is held to."""

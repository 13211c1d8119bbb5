"""Rubrics for a marking model: criteria with their menus, and the rule that is made of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from hashlib import sha256
from typing import ClassVar, Literal

from pytest_helmbench.core.case import JUDGED_RULE, CaseRule
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass

_HASH_DIGITS = 16
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def answer_format(name: str, properties: JsonObject) -> dict[str, JsonValue]:
    """Return the wire form of a JSON answer with these properties, each of them needed, and no others."""
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


def deciding_judge(judges: Sequence[str]) -> str:
    """Return the id of the marking model whose verdicts stand: the first; empty without one."""
    return next(iter(judges), "")


@dataclass(frozen=True, slots=True)
class Criterion:
    """One question to the judge (`criteria.md`, or `CR1.md` … of a multi-criteria scenario).

    Args:
        name: `CR1`, …; empty for the only criterion of a plain SQE scenario.
        options: Values on the judge's menu, as written, in file order.
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

    def data(self) -> JsonObject:
        """Return all of it in JSON types."""
        return {
            "name": self.name,
            "rubric": self.rubric,
            "options": list(self.options),
            "pass_values": list(self.pass_values),
            "response_field": self.response_field,
            "response_type": self.response_type,
            "credit": dict(self.credit),
        }


@dataclass(frozen=True, slots=True)
class JudgeRule(CaseRule):
    """Structured qualitative evaluation: one judge call and one evaluation row per criterion.

    Args:
        by_severity: Below a base severity of 0, what passes is inverted.
        hidden: The rubric is hidden, and so are the judge's words, which may quote it.
        of_answer: The judge is sent the answer that a reply states, where it states one; its thoughts never.
    """

    type: ClassVar[str] = JUDGED_RULE
    """Its name in frontmatter and on record."""

    criteria: tuple[Criterion, ...]
    by_severity: bool = False
    hidden: bool = False
    of_answer: bool = False

    def of_case(self, _part: str) -> JudgeRule:
        """Return the rule for a case."""
        return self

    def data(self) -> JsonObject:
        """Return what the record keeps of it."""
        criteria: list[JsonValue] = [dict(criterion.data()) for criterion in self.criteria]
        return {"type": self.type, "criteria": criteria, "by_severity": self.by_severity}

    def criterion_hash(self, criterion: Criterion, template_hash: str, judge_model: str) -> str:
        """Return the rule hash of a criterion's evaluation: the criterion, the polarity and who judges how.

        Args:
            judge_model: Whose verdict it is, see `deciding_judge`.
        """
        polarity = ("by_severity",) if self.by_severity else ()
        return rule_hash(criterion.data(), template_hash, judge_model, *polarity)

    def hashes(self, template_hash: str, judge_model: str) -> tuple[str, ...]:
        """Return the rule hash of every evaluation that a case with this rule gets, in order."""
        return tuple(
            self.criterion_hash(criterion, template_hash, judge_model) for criterion in self.criteria
        )


def rule_hash(rule: JsonObject, *parts: str) -> str:
    """Return 16 hex digits that change whenever the verdict of the same reply could.

    Args:
        rule: Everything in it that decides.
        parts: What else decides: for a judge the template's hash and the model's id.

    Source:
        SHA-256 over the canonical JSON of the rule and the parts.
    """
    plain = _CANONICAL.encode([dict(rule), *parts])
    return sha256(plain.encode("ascii")).hexdigest()[:_HASH_DIGITS]

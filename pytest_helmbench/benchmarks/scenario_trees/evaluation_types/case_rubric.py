"""`rubric`: a marking model judges by words in the frontmatter, which may say more about single cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import (
    EvaluationType,
    RuleSource,
)
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.json_fields import a_mapping, a_text
from pytest_helmbench.files.source import listed
from pytest_helmbench.judging.rubric import Criterion, JudgeRule

__all__ = ["CaseRubric", "RubricType"]

_PASS, _FAIL = "PASS", "FAIL"


@dataclass(frozen=True, slots=True)
class CaseRubric(JudgeRule):
    """One criterion, with what more holds for single perturbations.

    Args:
        cases: By the code of the perturbation.
    """

    type: ClassVar[str] = "rubric"

    cases: Mapping[str, str] = field(default_factory=dict)

    def of_case(self, part: str) -> JudgeRule:
        """See `CaseRule.of_case`."""
        (criterion,) = self.criteria
        more = self.cases.get(part)
        text = "\n\n".join(text for text in (criterion.rubric, more) if text)
        return JudgeRule((replace(criterion, rubric=text),), self.by_severity)

    def data(self) -> JsonObject:
        """See `JudgeRule.data`."""
        return {**JudgeRule.data(self), "cases": dict(self.cases)}


class RubricType(EvaluationType):
    """`rubric` says what passes, `cases` what passes where a perturbation stands; the judge says PASS or FAIL."""

    name = CaseRubric.type
    keys: ClassVar[Mapping[str, JsonObject]] = {
        "rubric": {"description": "say in words what passes", "type": "string", "minLength": 1},
        "cases": {
            "description": "write codes of perturbations, and in words what passes there",
            "type": "object",
            "additionalProperties": {
                "description": "write in words what passes there",
                "type": "string",
                "minLength": 1,
            },
            "minProperties": 1,
        },
    }
    needed = ("rubric",)
    is_judged = True

    def check(self, source: RuleSource) -> None:
        """See `EvaluationType.check`: words about perturbations that the scenario does not have, or twice about one."""
        known = source.perturbations
        seen: set[str] = set()
        for code in a_mapping(source.values.get("cases")):
            if known is not None and code.upper() not in {name.upper() for name in known}:
                message = f"rubric: 'cases' names {code!r}, which is no perturbation of the scenario"
                source.fault(message, listed(code, known, "its perturbations"), "cases", code)
            if code.upper() in seen:
                source.fault(f"rubric: 'cases' names {code!r} twice", "keep one of them", "cases", code)
            seen.add(code.upper())

    def rule(self, source: RuleSource) -> CaseRubric:
        """See `EvaluationType.rule`."""
        rubric = a_text(source.values.get("rubric")) or ""
        cases = {code.upper(): str(text) for code, text in a_mapping(source.values.get("cases")).items()}
        criterion = Criterion("", rubric.strip(), (_PASS, _FAIL), (_PASS,))
        return CaseRubric((criterion,), source.by_severity, cases=cases)

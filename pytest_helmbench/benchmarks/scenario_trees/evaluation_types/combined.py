"""`all` and `any`: several rules over one reply, of which all or any must pass."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.check_type import CheckType
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import (
    EvaluationType,
    RuleSource,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.measured import UnmeasuredError
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_check import Checked, ReplyCheck
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import ReplyRule
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Reply
from pytest_helmbench.core.shown_texts import full_observed
from pytest_helmbench.files.json_fields import a_mapping, a_text

__all__ = ["All", "AllType", "Any", "AnyType"]

_OF: JsonObject = {
    "description": "list rules, each with its 'type' and keys",
    "type": "array",
    "minItems": 1,
    "items": {"allOf": [{"$ref": "#/properties/evaluation"}, {"required": ["type"]}]},
}


@dataclass(frozen=True, slots=True)
class _Combined(ReplyCheck):
    """Several rules.

    Args:
        rules: In file order.
        by_severity: Invert the verdict where the base severity is below 0.
    """

    rules: tuple[ReplyRule, ...]
    by_severity: bool = False

    word: ClassVar[str]
    neutral: ClassVar[bool]
    """The verdict of a part that leaves the whole to the others."""

    @staticmethod
    @abstractmethod
    def passes(verdicts: Iterable[bool]) -> bool:
        """Return the verdict of all."""

    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> Checked:
        """See `ReplyCheck.checked`: the polarity of a part counts nothing, the whole has its own."""
        plain = replace(case, severity=0)
        parts: list[Evaluation] = []
        unknown: list[UnmeasuredError] = []
        for rule in self.rules:
            try:
                parts.append(rule.evaluate(plain, reply, strict_json=strict_json))
            except UnmeasuredError as error:
                unknown.append(error)
        passed = self.passes(part.passed for part in parts)
        if unknown and passed is self.neutral:
            raise unknown[0]  # what could not be measured decides
        told = [part for part in parts if not part.passed] or parts
        observed = "; ".join(f"{part.rule}: {full_observed(part)}" for part in told)
        reason = None if passed else next((part.reason for part in told if part.reason), None)
        parse = next((part.parse for part in parts if part.parse), None)
        return Checked(passed, observed, reason, parse, any(part.observed_text for part in told))

    def wanted(self) -> str:
        """See `ReplyCheck.wanted`."""
        return f" {self.word} ".join(_wanted(rule) for rule in self.rules)

    def data(self) -> JsonObject:
        """See `ReplyRule.data`."""
        rules: list[JsonValue] = [dict(rule.data()) for rule in self.rules]
        return {"type": self.type, "of": rules, "by_severity": self.by_severity}


class All(_Combined):
    """Every rule passes."""

    __slots__ = ()
    type: ClassVar[str] = "all"
    word = "and"
    neutral = True

    @staticmethod
    def passes(verdicts: Iterable[bool]) -> bool:
        """See `_Combined.passes`."""
        return all(verdicts)


class Any(_Combined):
    """Some rule passes."""

    __slots__ = ()
    type: ClassVar[str] = "any"
    word = "or"
    neutral = False

    @staticmethod
    def passes(verdicts: Iterable[bool]) -> bool:
        """See `_Combined.passes`."""
        return any(verdicts)


class _CombinedType(CheckType):
    """`of` lists the rules.

    Args:
        find: Returns a type by its name, None for any other; known only when all types are.
    """

    keys: ClassVar[Mapping[str, JsonObject]] = {"of": _OF}
    needed = ("of",)
    asks_for_polarity = True

    def __init__(self, find: Callable[[str], EvaluationType | None]) -> None:
        self._find = find

    @abstractmethod
    def combined(self, rules: tuple[ReplyRule, ...], *, by_severity: bool) -> _Combined:
        """Return the rule."""

    def check(self, source: RuleSource) -> None:
        """See `EvaluationType.check`."""
        for index, kind, part in self._parts(source):
            if "polarity" in part.values:
                message = f"{kind.name} has a polarity of its own"
                self.fault(source, message, f"give it to {self.name!r} itself", "of", index, "polarity")
            if kind.is_judged:
                message = f"{kind.name} is judged by a model and stands alone"
                self.fault(source, message, "give it a scenario of its own", "of", index)
            else:
                kind.check(part)

    def rule(self, source: RuleSource) -> _Combined:
        """See `EvaluationType.rule`."""
        rules = (kind.rule(part) for _, kind, part in self._parts(source) if not kind.is_judged)
        healthy = tuple(rule for rule in rules if isinstance(rule, ReplyRule))
        return self.combined(healthy, by_severity=source.by_severity)

    def _parts(self, source: RuleSource) -> Iterator[tuple[int, EvaluationType, RuleSource]]:
        """Yield the rules whose type is known."""
        listed = source.values.get("of")
        for index, values in enumerate(listed if isinstance(listed, list) else ()):
            kind = self._find(a_text(a_mapping(values).get("type")) or "")
            if kind is not None:
                yield index, kind, replace(source, place=(*source.place, "of", index))


class AllType(_CombinedType):
    """All of them must pass."""

    name = All.type

    def combined(self, rules: tuple[ReplyRule, ...], *, by_severity: bool) -> All:
        """See `_CombinedType.combined`."""
        return All(rules, by_severity)


class AnyType(_CombinedType):
    """Any of them will do."""

    name = Any.type

    def combined(self, rules: tuple[ReplyRule, ...], *, by_severity: bool) -> Any:
        """See `_CombinedType.combined`."""
        return Any(rules, by_severity)


def _wanted(rule: ReplyRule) -> str:
    return f"({rule.wanted()})" if isinstance(rule, _Combined) else rule.wanted()

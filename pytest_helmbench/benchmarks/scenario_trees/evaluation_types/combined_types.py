"""The types made of other types: `all` and `any` over one reply, and a conversation with rules for its turns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.conversation_rule import ConversationRule
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import (
    EvaluationType,
    RuleSource,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import (
    ReplyRule,
    RuleFinding,
    UnmeasuredError,
)
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.case_texts import MARKS, has_lines
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Reply
from pytest_helmbench.core.scrub import HIDDEN_TEXT, excerpt, full_observed
from pytest_helmbench.files.strict_json import a_mapping, a_text
from pytest_helmbench.files.yaml_text import Place

_COMBINED: Mapping[str, tuple[Callable[[Iterable[bool]], bool], str]] = {
    "all": (all, " and "),
    "any": (any, " or "),
}
"""By type: when a reply passes, and the word between rules."""
_LINE_LIMIT = 100
_OF: JsonObject = {
    "description": "list rules, each with its 'type' and keys",
    "type": "array",
    "minItems": 1,
    "items": {"$ref": "#/$defs/rule"},
}
_TURN_NUMBER = re.compile(r"[1-9][0-9]{0,3}")
RULES_OF_TURNS: JsonObject = {
    "turns": {
        "description": "write numbers of turns, and the rule for the model's reply to each",
        "type": "object",
        "minProperties": 1,
        "propertyNames": {
            "description": "write the number of a turn, from 1",
            "pattern": f"^{_TURN_NUMBER.pattern}$",
        },
        "additionalProperties": {"$ref": "#/$defs/rule"},
    },
    "each": {"$ref": "#/$defs/rule"},
}


@dataclass(frozen=True, slots=True)
class CombinedRule(ReplyRule):
    """Several rules over one reply, of which all or any must pass.

    Args:
        type: `all` or `any`.
        rules: In file order.
        by_severity: See `ReplyRule.by_severity`; that of a part counts nothing.
    """

    type: str
    rules: tuple[ReplyRule, ...]
    by_severity: bool = False

    @property
    def bounds_a_call(self) -> bool:
        return any(rule.bounds_a_call for rule in self.rules)

    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> RuleFinding:
        plain = replace(case, severity=0)
        parts: list[Evaluation] = []
        unknown: list[UnmeasuredError] = []
        for rule in self.rules:
            try:
                parts.append(rule.evaluate(plain, reply, strict_json=strict_json))
            except UnmeasuredError as error:
                unknown.append(error)
        passed = _COMBINED[self.type][0](part.passed for part in parts)
        if unknown and passed is _COMBINED[self.type][0]([]):
            raise unknown[0]  # what could not be measured decides
        reason = None if passed else next((part.reason for part in parts if part.reason), None)
        parse = next((part.parse for part in parts if part.parse), None)
        observed, text = (_observed_lines(parts, with_text=with_text) for with_text in (False, True))
        return RuleFinding(passed, observed, reason, parse, text="" if text == observed else text)

    def refusal(self) -> str:
        return next(filter(None, (rule.refusal() for rule in self.rules)), "")

    def wanted(self) -> str:
        parts = (f"({one.wanted()})" if isinstance(one, CombinedRule) else one.wanted() for one in self.rules)
        return _COMBINED[self.type][1].join(parts)

    def data(self) -> JsonObject:
        rules: list[JsonValue] = [dict(rule.data()) for rule in self.rules]
        return {"type": self.type, "of": rules, "by_severity": self.by_severity}


def _observed_lines(parts: Iterable[Evaluation], *, with_text: bool) -> str:
    """Return what several rules observed, a line for each: right or wrong, expected, and the value that decided."""
    lines: list[str] = []
    for part in parts:
        observed = full_observed(part) if with_text else part.observed
        line = f"{MARKS[part.passed]} {part.rule}: expected {_in_line(part.expected)}"
        if has_lines(observed):
            lines += [line, *(f"  {inner}" for inner in observed.splitlines())]
        else:
            lines.append(line if observed == HIDDEN_TEXT else f"{line}, observed {_in_line(observed)}")
    return "\n".join(lines)


def _in_line(text: str) -> str:
    return excerpt(" ".join(text.split()), _LINE_LIMIT)


def combined_types(known: Mapping[str, EvaluationType]) -> Iterator[EvaluationType]:
    """Yield `all` and `any`, whose key `of` lists rules of the known types."""
    for name in _COMBINED:
        yield _combined(name, known)


def _combined(name: str, known: Mapping[str, EvaluationType]) -> EvaluationType:
    def parts(source: RuleSource) -> Iterator[tuple[int, EvaluationType, RuleSource]]:
        """Yield the rules whose type is known."""
        listed = source.values.get("of")
        for index, values in enumerate(listed if isinstance(listed, list) else ()):
            kind = known.get(a_text(a_mapping(values).get("type")) or "")
            if kind is not None:
                yield index, kind, replace(source, place=(*source.place, "of", index))

    def check(source: RuleSource) -> None:
        for index, kind, part in parts(source):
            if "polarity" in part.values:
                message = f"{name}: {kind.name} has a polarity of its own"
                source.fault(message, f"give it to {name!r} itself", "of", index, "polarity")
            if kind.is_judged:
                message = f"{name}: {kind.name} is judged by a model and stands alone"
                source.fault(message, "give it a scenario of its own", "of", index)
            else:
                kind.check(part)

    def read(source: RuleSource) -> CombinedRule:
        rules = (kind.read(part) for _, kind, part in parts(source) if not kind.is_judged)
        healthy = tuple(rule for rule in rules if isinstance(rule, ReplyRule))
        return CombinedRule(name, healthy, source.by_severity)

    return EvaluationType(name, {"of": _OF}, read, check, needed=("of",), asks_for_polarity=True)


def conversation_type(main: EvaluationType | None, known: Mapping[str, EvaluationType]) -> EvaluationType:
    """Return a type with rules for single replies beside its own rule, which judges the last; None for no such rule."""

    def parts(source: RuleSource) -> Iterator[tuple[Place, EvaluationType, RuleSource]]:
        """Yield the rules whose type is known, each with its place below the evaluation."""
        of_turns = [("turns", turn) for turn in a_mapping(source.values.get("turns"))]
        for place in (*of_turns, ("each",)):
            part = replace(source, place=(*source.place, *place))
            kind = known.get(part.text("type") or "")
            if kind is not None:
                yield place, kind, part

    def check(source: RuleSource) -> None:
        if main is not None:
            main.check(source)
        for place, kind, part in parts(source):
            if kind.is_judged:
                message = (
                    f"{place[0]}: {kind.name} is judged by a model, which is shown the whole conversation"
                )
                hint = f"make it the rule of the evaluation itself: 'type: {kind.name}'"
                source.fault(message, hint, *place)
            else:
                kind.check(part)
        for turn in a_mapping(source.values.get("turns")):
            if _TURN_NUMBER.fullmatch(turn) is not None:
                source.check_asked(int(turn), "turns", turn)

    def read(source: RuleSource) -> ConversationRule | None:
        found = [(place, kind.read(part)) for place, kind, part in parts(source)]
        rules = {place: rule for place, rule in found if isinstance(rule, ReplyRule)}
        turns = sorted((int(place[1]), rule) for place, rule in rules.items() if place[0] == "turns")
        own = None if main is None else main.read(source)
        if len(rules) < len(found) or isinstance(own, ConversationRule) or (main is not None and own is None):
            return None
        return ConversationRule(own, tuple(turns), rules.get(("each",)))

    shown = main or next(iter(known.values()))
    return replace(shown, check=check, read=read, reads_rubric=main is not None and main.reads_rubric)

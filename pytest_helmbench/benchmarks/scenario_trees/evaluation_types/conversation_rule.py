"""The rule for a conversation: one for the last reply, and rules for the replies of single turns."""

from __future__ import annotations

from dataclasses import replace

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import ReplyRule
from pytest_helmbench.core.case import CaseRule
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.judging.rubric import JudgeRule


@dataclass(frozen=True, slots=True)
class ConversationRule(CaseRule):
    """A case passes when all of its rules pass; there is one at least.

    Args:
        main: Judges the last reply; a marking model is shown the whole conversation. None for no such rule.
        turns: By turn, from 1: judge the model's reply there.
        each: Judges every reply of the model; None for no such rule.
    """

    main: ReplyRule | JudgeRule | None
    turns: tuple[tuple[int, ReplyRule], ...] = ()
    each: ReplyRule | None = None

    @property
    def type(self) -> str:
        """That of its first rule."""
        return self._rules[0].type

    @property
    def by_severity(self) -> bool:
        """Whether one of its rules inverts its verdict where the base severity is below 0."""
        return any(rule.by_severity for rule in self._rules)

    @property
    def _rules(self) -> tuple[ReplyRule | JudgeRule, ...]:
        of_turns = (rule for _, rule in self.turns)
        return tuple(rule for rule in (self.main, *of_turns, self.each) if rule is not None)

    def of_case(self, part: str) -> ConversationRule:
        """See `CaseRule.of_case`."""
        return replace(self, main=self.main.of_case(part)) if isinstance(self.main, JudgeRule) else self

    def data(self) -> JsonObject:
        """Return what the record keeps of it."""
        turns: dict[str, JsonValue] = {str(turn): dict(rule.data()) for turn, rule in self.turns}
        found: dict[str, JsonValue] = {} if self.main is None else dict(self.main.data())
        if turns:
            found["turns"] = turns
        return found if self.each is None else {**found, "each": dict(self.each.data())}

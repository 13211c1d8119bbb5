"""The rule for a conversation: one for the last reply, and rules for the replies of single turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import ReplyRule, UnmeasuredError
from pytest_helmbench.core.case import Case, CaseRule, Message
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Outcome, Reply, Verdict
from pytest_helmbench.judging.judge import JudgeTemplate
from pytest_helmbench.judging.rubric import JudgeRule, rule_hash


class _TurnRule(NamedTuple):
    """A rule and the turn whose reply it judges."""

    turn: int
    criterion: str
    rule: ReplyRule

    @property
    def hash(self) -> str:
        return rule_hash(self.rule.data(), f"turn {self.turn}")


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
    def judged(self) -> JudgeRule | None:
        """The rule that marking models judge by; None where they are not asked."""
        return self.main if isinstance(self.main, JudgeRule) else None

    @property
    def type(self) -> str:
        """That of its first rule."""
        return self._rules[0].type

    @property
    def by_severity(self) -> bool:
        """Whether one of its rules inverts its verdict where the base severity is below 0."""
        return any(rule.by_severity for rule in self._rules)

    @property
    def bounds_a_call(self) -> bool:
        """Whether one of its rules measures how a single call went."""
        return any(rule.bounds_a_call for rule in self._rules)

    @property
    def _rules(self) -> tuple[ReplyRule | JudgeRule, ...]:
        of_turns = (rule for _, rule in self.turns)
        return tuple(rule for rule in (self.main, *of_turns, self.each) if rule is not None)

    def refusal(self) -> str:
        return next(filter(None, (rule.refusal() for rule in self._rules)), "")

    def of_case(self, part: str) -> ConversationRule:
        return replace(self, main=self.main.of_case(part)) if isinstance(self.main, JudgeRule) else self

    def data(self) -> JsonObject:
        """Return what the record keeps of it."""
        turns: dict[str, JsonValue] = {str(turn): dict(rule.data()) for turn, rule in self.turns}
        found: dict[str, JsonValue] = {} if self.main is None else dict(self.main.data())
        if turns:
            found["turns"] = turns
        return found if self.each is None else {**found, "each": dict(self.each.data())}

    def hashes(self, case: Case, template: JudgeTemplate, judge_model: str) -> tuple[str, ...]:
        """Return the rule hash of every evaluation that a case gets, in order; see `JudgeRule.hashes`."""
        main: tuple[str, ...] = ()
        if isinstance(self.main, JudgeRule):
            main = self.main.hashes(template.of(case).hash, judge_model)
        elif self.main is not None:
            main = self.main.hashes()
        return (*main, *(one.hash for one in self._of_turns(case.asked_turns)))

    def rows(self, asked_turns: Sequence[int]) -> int:
        """Return how many evaluations a case gets whose model is asked at these turns."""
        main = len(self.main.criteria) if isinstance(self.main, JudgeRule) else int(self.main is not None)
        return main + sum(1 for _ in self._of_turns(asked_turns))

    def evaluations(self, case: Case, strict_json: bool, reply: Reply) -> tuple[Evaluation, ...] | Outcome:
        """Return what the rules find that ask no marking model: no verdict where what is measured is not known.

        Args:
            strict_json: No recovery of JSON from surrounding text.
            reply: The last one, which carries the conversation.
        """
        said = {one.turn: replace(one, said=_until(reply.said, one.turn)) for one in reply.turns}
        found = []
        try:
            if isinstance(self.main, ReplyRule):
                found.append(self.main.evaluate(case, reply, strict_json=strict_json))
            for one in self._of_turns(case.asked_turns):
                own = said.get(one.turn, reply)
                part = one.rule.evaluate(case.at(one.turn), own, strict_json=strict_json)
                found.append(replace(part, criterion=one.criterion, rule_hash=one.hash))
        except UnmeasuredError as error:
            verdict = Verdict.SKIPPED if reply.recorded else Verdict.ERROR
            return Outcome(verdict, "no_measurement", str(error))
        return tuple(found)

    def _of_turns(self, asked_turns: Sequence[int]) -> Iterator[_TurnRule]:
        own = dict(self.turns)
        for turn in asked_turns:
            if turn in own:
                yield _TurnRule(turn, f"turn {turn}", own[turn])
            if self.each is not None:
                yield _TurnRule(turn, f"turn {turn}, each" if turn in own else f"turn {turn}", self.each)


def _until(said: tuple[Message, ...], turn: int) -> tuple[Message, ...]:
    """Return a conversation up to the end of a turn."""
    users = [place for place, message in enumerate(said) if message.role == "user"]
    return said[: users[turn]] if turn < len(users) else said


def in_turns(rule: CaseRule) -> ConversationRule:
    """Return the rule of a tree's case as one for a conversation: most cases have the main rule alone."""
    if isinstance(rule, ReplyRule | JudgeRule):
        return ConversationRule(rule)
    if not isinstance(rule, ConversationRule):
        raise TypeError(f"{type(rule).__name__} is not a rule of a scenario tree")
    return rule

"""The types that bound what a reply took: `latency_below` its seconds, `cost_below` its USD."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import (
    TURN,
    EvaluationType,
    RuleSource,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import (
    ReplyRule,
    RuleFinding,
    UnmeasuredError,
    reply_at,
)
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.files.strict_json import a_number, a_whole_number


@dataclass(frozen=True, slots=True)
class MeasuredRule(ReplyRule):
    """The seconds or USD that a reply took lie below a bound.

    Seconds go from sending the request that was answered to the last byte, our own waiting apart; USD are of the
    case's own call, as the provider, `models.yml` or the price list has it.

    In a conversation the slowest turn counts, and the sum of all calls.

    Args:
        type: `latency_below` or `cost_below`.
        bound: Above 0.
        turn: The turn that is measured; None for all of the conversation.
    """

    type: str
    bound: float
    by_severity: bool = False
    turn: int | None = None

    @property
    def bounds_a_call(self) -> bool:
        return True

    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> RuleFinding:
        del case, strict_json
        reply = reply_at(self, reply, self.turn)
        row = _ROWS[self.type]
        figure = row.figure(reply)
        if figure is None:
            raise UnmeasuredError(f"{self.type}: {row.unknown}")
        return RuleFinding(figure < self.bound, row.words(figure))

    def wanted(self) -> str:
        turn = "" if self.turn is None else f" at turn {self.turn}"
        return f"below {_ROWS[self.type].words(self.bound)}{turn}"

    def data(self) -> JsonObject:
        return {key: value for key, value in ReplyRule.data(self).items() if (key, value) != ("turn", None)}


class _Row(NamedTuple):
    """One of these types.

    Args:
        name: Value of `evaluation.type`.
        key: That of the bound.
        unit: Of the bound.
        figure: Returns what a reply took; None where it is not known.
        words: Returns a figure with its unit.
        unknown: Why a figure is not known.
        more: Keys beside that of the bound.
    """

    name: str
    key: str
    unit: str
    figure: Callable[[Reply], float | None]
    words: Callable[[float], str]
    unknown: str
    more: Mapping[str, JsonObject] = {}

    def read(self, source: RuleSource) -> MeasuredRule:
        bound, turn = a_number(source.values.get(self.key)) or 0.0, a_whole_number(source.values.get("turn"))
        return MeasuredRule(self.name, bound, source.by_severity, turn)

    def evaluation_type(self) -> EvaluationType:
        bound: JsonObject = {
            "description": f"write a number of {self.unit} above 0",
            "type": "number",
            "exclusiveMinimum": 0,
        }
        keys = {self.key: bound, **self.more}
        return EvaluationType(self.name, keys, self.read, RuleSource.check_turn, (self.key,))


_ROWS = {
    row.name: row
    for row in (
        _Row(
            "latency_below",
            "seconds",
            "seconds",
            lambda reply: None if reply.recorded or reply.latency_ms is None else reply.latency_ms / 1000,
            lambda figure: f"{figure:.3g} s",
            "the reply is a stored one, so nothing was measured",
            {"turn": TURN},
        ),
        _Row(
            "cost_below",
            "usd",
            "USD",
            lambda reply: reply.first_cost_usd if reply.recorded else reply.usage.cost_usd,
            lambda figure: f"{figure:.6g} USD",
            "the cost of the call is unknown: give the model a price: in models.yml",
        ),
    )
}
MEASURED_TYPES = tuple(row.evaluation_type() for row in _ROWS.values())

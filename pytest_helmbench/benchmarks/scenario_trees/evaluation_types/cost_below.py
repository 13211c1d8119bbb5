"""`cost_below`: the reply cost less than so many USD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.check_type import CheckType
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import RuleSource
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.measured import Measured
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.files.json_fields import a_number

__all__ = ["CostBelow", "CostBelowType"]


class CostBelow(Measured):
    """The case's own call, as the provider, `models.yml` or the price list has it."""

    __slots__ = ()
    type: ClassVar[str] = "cost_below"

    def figure(self, reply: Reply) -> float | None:
        """See `Measured.figure`."""
        return reply.first_cost_usd if reply.recorded else reply.usage.cost_usd

    def unknown(self, reply: Reply) -> str:
        """See `Measured.unknown`."""
        del reply
        return "nobody has said what the call cost: 'price' in models.yml says it"

    def text(self, figure: float) -> str:
        """See `Measured.text`."""
        return f"{figure:.6g} USD"


class CostBelowType(CheckType):
    """`usd` is the bound."""

    name = CostBelow.type
    keys: ClassVar[Mapping[str, JsonObject]] = {
        "usd": {"description": "write a number of USD above 0", "type": "number", "exclusiveMinimum": 0}
    }
    needed = ("usd",)

    def rule(self, source: RuleSource) -> CostBelow:
        """See `EvaluationType.rule`."""
        return CostBelow(a_number(source.values.get("usd")) or 0.0, source.by_severity)

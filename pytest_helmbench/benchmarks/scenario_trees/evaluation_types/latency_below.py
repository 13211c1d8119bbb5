"""`latency_below`: the reply was there in less than so many seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.check_type import CheckType
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import RuleSource
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.measured import Measured
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.files.json_fields import a_number

__all__ = ["LatencyBelow", "LatencyBelowType"]


class LatencyBelow(Measured):
    """From sending the request that was answered to the last byte, our own waiting apart."""

    __slots__ = ()
    type: ClassVar[str] = "latency_below"

    def figure(self, reply: Reply) -> float | None:
        """See `Measured.figure`."""
        return None if reply.recorded else reply.latency_ms / 1000

    def unknown(self, reply: Reply) -> str:
        """See `Measured.unknown`."""
        del reply
        return "the reply is from the record, so nothing was measured"

    def text(self, figure: float) -> str:
        """See `Measured.text`."""
        return f"{figure:.3g} s"


class LatencyBelowType(CheckType):
    """`seconds` is the bound."""

    name = LatencyBelow.type
    keys: ClassVar[Mapping[str, JsonObject]] = {
        "seconds": {
            "description": "write a number of seconds above 0",
            "type": "number",
            "exclusiveMinimum": 0,
        }
    }
    needed = ("seconds",)

    def rule(self, source: RuleSource) -> LatencyBelow:
        """See `EvaluationType.rule`."""
        return LatencyBelow(a_number(source.values.get("seconds")) or 0.0, source.by_severity)

"""Rules over what a reply took, not what it says."""

from __future__ import annotations

from abc import abstractmethod

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_check import Checked, ReplyCheck
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.core.problem import HelmbenchError

__all__ = ["Measured", "UnmeasuredError"]


class UnmeasuredError(HelmbenchError):
    """What a rule measures is not known of a reply."""


@dataclass(frozen=True, slots=True)
class Measured(ReplyCheck):
    """A figure of the reply lies below a bound.

    Args:
        bound: Above 0.
        by_severity: Invert the verdict where the base severity is below 0.
    """

    bound: float
    by_severity: bool = False

    @abstractmethod
    def figure(self, reply: Reply) -> float | None:
        """Return the figure; None where it is not known."""

    @abstractmethod
    def unknown(self, reply: Reply) -> str:
        """Return why a figure is not known."""

    @abstractmethod
    def text(self, figure: float) -> str:
        """Return a figure with its unit."""

    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> Checked:
        """See `ReplyCheck.checked`."""
        del case, strict_json
        figure = self.figure(reply)
        if figure is None:
            raise UnmeasuredError(f"{self.type}: {self.unknown(reply)}")
        return Checked(figure < self.bound, self.text(figure))

    def wanted(self) -> str:
        """See `ReplyCheck.wanted`."""
        return f"below {self.text(self.bound)}"

    def data(self) -> JsonObject:
        """See `ReplyRule.data`."""
        return {"type": self.type, "bound": self.bound, "by_severity": self.by_severity}

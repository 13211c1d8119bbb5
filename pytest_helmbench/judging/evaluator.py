"""The protocol of what a reply is held to: a pure function that any process can take over."""

from __future__ import annotations

from typing import Protocol, TypeVar

from pytest_helmbench.core.outcome import Outcome, Reply, Usage

__all__ = ["NO_REPLY", "Evaluator"]

T_co = TypeVar("T_co", covariant=True)

NO_REPLY = Reply("", None, "stop", Usage(), 0.0, None, "")
"""For an evaluator that holds no reply to anything: it looks at where it is, or asks by itself."""


class Evaluator(Protocol[T_co]):
    """Holds replies to one case. It is pickled, and so is what it gives: no open file, lock or item is in it.

    It asks nobody, writes nothing and reads nothing but itself and the reply, so that it may run again anywhere.
    """

    @property
    def group(self) -> str:
        """What takes about as long, replies of one length given: the type of a rule, for example."""

    @property
    def shared(self) -> tuple[object, ...]:
        """The parts that other cases have too, which travel once for all of them: a rule, a schema."""

    def takes_time(self, reply: Reply) -> bool:
        """Return whether a reply may take long whatever others like it took."""

    def evaluate(self, reply: Reply) -> T_co | Outcome:
        """Return what is found; an outcome where no verdict can be reached."""

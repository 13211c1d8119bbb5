"""Losses of a Node process: reason, words and stack, for those who wait for its answers."""

from __future__ import annotations

from pytest_helmbench.benchmarks.bench_packs.node.pack_faults import REASONS
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt, without_tokens

__all__ = ["ODD_FORM", "ChildLostError", "Loss", "frozen", "stated_loss"]

ODD_FORM = "its answer came in a form that is none of ours"

_MESSAGE = 500
_STACK = 4_000


@dataclass(frozen=True, slots=True)
class Loss:
    """How a process was lost to its items.

    Args:
        reason: As in `PackFailedError`.
        said: What happened; it holds a pack's own words, scrubbed and cut.
        stack: Where it was thrown, if it was.
    """

    reason: str
    said: str
    stack: str = ""


class ChildLostError(Exception):
    """The process is gone, and nobody can say which of its items was to blame.

    Args:
        loss: Reason and words, as far as they are known.
        output: The end of what it printed, scrubbed.
        alone: It was asked one thing in all its life.
    """

    def __init__(self, loss: Loss, output: str, *, alone: bool) -> None:
        self.loss = loss
        self.output = output
        self.alone = alone
        super().__init__(loss.said)


def stated_loss(told: object) -> Loss:
    """Return what a process says about a failure, as far as it can be taken from it."""
    said = told.get("said") if isinstance(told, dict) else None
    stack = told.get("stack") if isinstance(told, dict) else None
    if not isinstance(told, dict) or not isinstance(said, str) or not isinstance(stack, str):
        return Loss("malformed", ODD_FORM)
    reason = told.get("reason")
    known = reason if isinstance(reason, str) and reason in REASONS else "malformed"
    return Loss(known, excerpt(without_tokens(said), _MESSAGE), excerpt(without_tokens(stack), _STACK))


def frozen(silent_s: float) -> Loss:
    """Return the loss of a process that gives no sign of life."""
    return Loss("hung", f"the process gave no sign of life for {silent_s:.3g} s")

"""What a row of a pack needs beyond a prompt and its reply: rules, sandboxes, agents."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_helmbench.bench.outcome import Evaluation, Reply
from pytest_helmbench.bench.pack import PackRule
from pytest_helmbench.evaluate.packs import evaluate_row

__all__ = ["PackSettings", "PackWork"]


@dataclass(frozen=True, slots=True)
class PackSettings:
    """How packs are run and judged.

    Args:
        show_hidden: Verdicts may show hidden values.
    """

    show_hidden: bool = False


class PackWork:
    """Judges rows.

    Args:
        settings: Of the session.
    """

    def __init__(self, settings: PackSettings) -> None:
        self._settings = settings

    async def evaluate(self, rule: PackRule, reply: Reply) -> tuple[Evaluation, ...]:
        """Return the evaluation of a reply."""
        return (evaluate_row(rule, reply, show_hidden=self._settings.show_hidden),)

"""A row whose replies are judged by their text, as a value: any process can judge a reply with it."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.families.registry import family_of
from pytest_helmbench.benchmarks.packs.families.text.text_family import TextFamily
from pytest_helmbench.benchmarks.packs.task import PackRule
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Reply
from pytest_helmbench.judging.rubric import Criterion

__all__ = ["ReadingEvaluator", "TextEvaluator"]

_LONG = 100_000


@dataclass(frozen=True, slots=True)
class _RowEvaluator:
    """A row of a text family; it has nothing in common with others.

    Args:
        rule: The row.
        shows: Hidden values are asked for.
    """

    rule: PackRule
    shows: bool

    @property
    def group(self) -> str:
        """See `Evaluator.group`."""
        return self.rule.task.task_type

    @property
    def shared(self) -> tuple[object, ...]:
        """See `Evaluator.shared`."""
        return ()

    def takes_time(self, reply: Reply) -> bool:
        """See `Evaluator.takes_time`."""
        return len(reply.text) > _LONG

    @property
    def _family(self) -> TextFamily:
        family = family_of(self.rule.task)
        if not isinstance(family, TextFamily):
            raise TypeError(f"{self.rule.task.id}: not judged by its text")
        return family


class TextEvaluator(_RowEvaluator):
    """Judges a reply by its words."""

    __slots__ = ()

    def evaluate(self, reply: Reply) -> Evaluation:
        """See `Evaluator.evaluate`."""
        return self._family.evaluation(self.rule, reply, shows=self.shows)


class ReadingEvaluator(_RowEvaluator):
    """Says what a marking model is asked about a reply whose words alone do not say enough; None for others."""

    __slots__ = ()

    @property
    def group(self) -> str:
        """See `Evaluator.group`."""
        return f"{self.rule.task.task_type}, whether it is read"

    def evaluate(self, reply: Reply) -> Criterion | None:
        """See `Evaluator.evaluate`."""
        return self._family.wants_reading(self.rule, reply)

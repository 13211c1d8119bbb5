"""A row whose replies are judged by their text, as a value: any process can judge a reply with it."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.families.registry import family_of
from pytest_helmbench.benchmarks.packs.families.text.text_family import TextFamily
from pytest_helmbench.benchmarks.packs.task import PackRule
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Reply
from pytest_helmbench.judging.rubric import Criterion

__all__ = ["ReadingEvaluator", "TextEvaluator"]


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
    def _family(self) -> TextFamily:
        family = family_of(self.rule.task)
        if not isinstance(family, TextFamily):
            raise TypeError(f"{self.rule.task.id}: not judged by its text")
        return family


class TextEvaluator(_RowEvaluator):
    """Judges a reply by its words."""

    __slots__ = ()

    def evaluate(self, reply: Reply) -> Evaluation:
        """Return the evaluation of a reply."""
        return self._family.evaluation(self.rule, reply, shows=self.shows)


class ReadingEvaluator(_RowEvaluator):
    """Says what a marking model is asked about a reply whose words alone do not say enough; None for others."""

    __slots__ = ()

    def evaluate(self, reply: Reply) -> Criterion | None:
        """Return the evaluation of a reply."""
        return self._family.wants_reading(self.rule, reply)

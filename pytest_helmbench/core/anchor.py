"""Anchors: replies whose right verdict is known, which a marking model is held to before it judges others."""

from __future__ import annotations

from pytest_helmbench.core.light_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Anchor:
    """One entry of `anchors.yml`.

    Args:
        name: Its id; `anchor 1`, … in file order where it has none.
        prompt: That the reply answers.
        reply: To be judged.
        passes: The right verdict.
        rubric: In words, of its own; empty for that of a scenario.
        scenario: Code of the scenario, or id of the row, whose rubric it is judged by; empty for the only one.
        criterion: Name of one of several criteria; empty for all.
        line: Where it stands, as an editor counts.
    """

    name: str
    prompt: str
    reply: str
    passes: bool
    rubric: str = ""
    scenario: str = ""
    criterion: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Anchors:
    """A file of anchors.

    Args:
        entries: In file order.
        allowed: How many of them a judge may get wrong.
    """

    entries: tuple[Anchor, ...]
    allowed: int = 0


@dataclass(frozen=True, slots=True)
class AnchorVerdict:
    """What a judge made of an anchor.

    Args:
        judge: Id of the marking model.
        anchor: Name of the anchor.
        expected: Whether it should pass.
        passed: Whether it did; None where no verdict came.
        message: Why none came, or the judge's words.
    """

    judge: str
    anchor: str
    expected: bool
    passed: bool | None
    message: str = ""

    @property
    def right(self) -> bool:
        """Whether the verdict is the right one."""
        return self.passed is self.expected


@dataclass(frozen=True, slots=True)
class JudgeHeld:
    """One judge held to all anchors of a benchmark.

    Args:
        judge: Id of the marking model.
        verdicts: One per anchor, in file order.
        allowed: How many may be wrong.
    """

    judge: str
    verdicts: tuple[AnchorVerdict, ...]
    allowed: int

    @property
    def right(self) -> int:
        """How many anchors it has judged rightly."""
        return sum(one.right for one in self.verdicts)

    @property
    def wrong(self) -> tuple[AnchorVerdict, ...]:
        """The anchors that it has judged wrongly."""
        return tuple(one for one in self.verdicts if one.passed is not None and not one.right)

    @property
    def unanswered(self) -> tuple[AnchorVerdict, ...]:
        """The anchors that it has not judged."""
        return tuple(one for one in self.verdicts if one.passed is None)

    @property
    def holds(self) -> bool:
        """Whether it may judge."""
        return not self.unanswered and len(self.wrong) <= self.allowed

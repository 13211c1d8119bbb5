"""Anchors: replies whose right verdict is known, which `helmbench judge check` holds a judge to."""

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

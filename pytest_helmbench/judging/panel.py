"""Several marking models over one reply: who is asked, whose verdict stands, and how that is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Judgement

__all__ = ["Settled", "settled"]


@dataclass(frozen=True, slots=True)
class Settled:
    """The verdict of record on one criterion.

    Args:
        evaluation: With what each judge said where there were several.
        agreed: The first two said the same, or a third has decided between them.
    """

    evaluation: Evaluation
    agreed: bool


async def settled(judges: Sequence[str], said: Callable[[str], Awaitable[Evaluation]]) -> Settled:
    """Ask the first two judges at once, and the third only where they disagree; two of three decide.

    Args:
        judges: Ids, at least one, in order.
        said: Has a judge speak; what it raises is raised when both of the first two have come to an end.

    Source:
        `docs/statistics.md`, two judges and a third.
    """
    answers = await asyncio.gather(*map(said, judges[:2]), return_exceptions=True)
    found: list[Evaluation] = []
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
        found.append(answer)
    if len(found) == 1:
        return Settled(found[0], agreed=True)
    agreed = found[0].passed == found[1].passed
    if not agreed and len(judges) > 2:
        found.append(await said(judges[2]))
        agreed = True
    passed = sum(one.passed for one in found) * 2 > len(found) if len(found) > 2 else found[0].passed
    of_record = next(place for place, one in enumerate(found) if one.passed == passed)
    spoken = tuple(
        Judgement(
            criterion=one.criterion,
            judge=judge,
            place=place + 1,
            passed=one.passed,
            credit=one.credit,
            observed=one.observed,
            justification=one.justification,
            of_record=place == of_record,
        )
        for place, (judge, one) in enumerate(zip(judges, found, strict=False))
    )
    return Settled(replace(found[of_record], judgements=spoken), agreed)

"""Sentences of free replies that take back what was said before: `That statement is incorrect.`, `Scratch that: …`"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["TakenBack", "taken_back"]

_WRONG = (
    "incorrect|wrong|false|untrue|not (?:true|so|correct|right|the case|hold)|nonsense|lie|myth|misconception|legend"
    "|joke|fiction|hoax|april fools(?:'? day)?|kidding|psych|made up|(?:i|we) (?:just )?made (?:that|this|it) up"
    "|(?:reverse|disregard|ignore) (?:that|this)|(?:opposite|reverse|contrary) is .*|the other way (?:round|around)"
)
_DENIED = re.compile(
    r"(?:(?:well|but|actually|at least),? )*"
    r"(?:(?:that|this|it)(?:'s)?(?: (?:statement|claim|idea|belief|answer|notion|sentence))?"
    r"(?: (?:is|was|does|do))? ?)?"
    r"(?:(?:only|just|simply|all|quite|really|of course|an?|the|common|popular|widespread|old|complete|total|pure),? )*"
    rf"(?:{_WRONG})(?: at all| of course)?(?:[,;:] .*)?"
)
_REPLACED = re.compile(
    r"(?:(?:no|oh|wait),? )*(?:scratch that|strike that|correction|i take (?:that|this|it) back|i was wrong"
    r"|on second thought)(?:[,:;] |$)(?P<rest>.*)"
)


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What a reply says before and behind the words that take it back.

    Args:
        before: Sentences, folded.
        behind: Sentences, folded.
        replaced: They say something else in its place (`Correction: …`), not only that it is wrong.
    """

    before: tuple[str, ...]
    behind: tuple[str, ...]
    replaced: bool


def taken_back(sentences: Sequence[str]) -> TakenBack | None:
    """Return what the last such words of a reply take back; None where there are none behind the first sentence.

    Args:
        sentences: Of the reply, folded.
    """
    for place in range(len(sentences) - 1, 0, -1):
        before, behind = tuple(sentences[:place]), tuple(sentences[place + 1 :])
        replaced = _REPLACED.match(sentences[place])
        if replaced is not None:
            return TakenBack(before, tuple(filter(None, (replaced["rest"], *behind))), replaced=True)
        if _DENIED.fullmatch(sentences[place]) is not None:
            return TakenBack(before, behind, replaced=False)
    return None

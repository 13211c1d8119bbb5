"""What a reply denies: negation around a word, as far as its clause reaches."""

from __future__ import annotations

import re

__all__ = ["denials", "is_denied"]

_REACH = 80
"""Characters before a word in which a negation still concerns it."""

_NOT = (
    r"not|no|never|none|nothing to do|cannot|neither|nor|hardly|nicht|kein\w*|nie|pas|ni|jamais|nunca|не|нет|нельзя"
)
_AWAY = (
    r"except|excluding|besides|without|against|wrong(?:ly)?|incorrect(?:ly)?|false(?:ly)?|mistaken(?:ly)?|eliminat\w*|"
    r"rul(?:e|es|ed|ing) out|instead|rather than|other than|anything but|all but|everything but|unlike|whether|unsure|"
    r"statt|sauf|excepto|кроме"
)
_NOT_AT_ALL = re.compile(rf"(?<!\w)(?:{_NOT})(?!\w)|n't(?!\w)|不|没|沒|非|ではない")
_NEGATION = re.compile(rf"(?<!\w)(?:{_NOT}|{_AWAY})(?!\w)|n't(?!\w)|不|没|沒|非|ではない")
_NO_NEGATION = re.compile(
    r"(?<!\w)(?:no (?:doubt|question|wonder)|not (?:only|just|surprisingly|least)|without (?:a )?(?:any )?doubt|nothing but|"
    r"none other than|if (?:i|you) (?:had to|must)|not sure but|不仅|不只)(?!\w)"
)
_CLAUSE_START = re.compile(
    r"[,;:!?\n]|\.(?=\s|$)|(?<!anything)(?<!everything)(?<!nothing)(?<!all)\sbut\s(?:rather\s)?|\s(?:sondern|sino|mais|а|но)\s|，|。|；|而是"
)
_WRONG_AFTER = re.compile(
    r"[)\]\"']*\s*(?:(?:is|are|was|were|seems|would be|would|can|could|can be|looks|did|do|does|has|have|had|will|ist|est|es)\s*)?"
    r"(?:definitely |clearly |certainly |simply |also |just |an? |the )*(?:common |popular |typical |tempting )?"
    r"(?:not|n't|never|cannot|wrong|incorrect|false|untrue|ruled out|eliminated|excluded|a myth|isn't|wasn't|aren't|weren't|doesn't|didn't|"
    r"don't|can't|couldn't|won't|wouldn't|hasn't|haven't|nicht|kein\w*|falsch|pas|faux|no es|не)(?!\w)(?!\s(?:only|just)\b)"
    r"|是错|不对|不是"
)


def is_denied(low: str, start: int, end: int) -> bool:
    """Return whether what stands between two places is denied in its clause: `not X`, `X is wrong`.

    Args:
        low: Text in lower case.
    """
    lead = _CLAUSE_START.split(low[max(0, start - _REACH) : start])[-1]
    if _NEGATION.search(lead) is not None and _NEGATION.search(_NO_NEGATION.sub(" ", lead)) is not None:
        return True
    return _WRONG_AFTER.match(low, end) is not None


def denials(low: str) -> int:
    """Return how many negations a sentence in lower case holds."""
    if _NOT_AT_ALL.search(low) is None:
        return 0
    return len(_NOT_AT_ALL.findall(_NO_NEGATION.sub(" ", low)))


_DISTANCE = re.compile(
    r"(?<!\w)(?:myths?|misconceptions?|misbelief|contrary to|popular belief|old wives|legend|debunked|superstitions?|untrue|folklore|hoax|"
    r"(?:many|some|most|lots of|a lot of)(?: people)? (?:still )?(?:believe|think|say|claim|assume|argue)|(?:people|they|he|she) (?:often |sometimes |commonly )?(?:believe|think|claim)|"
    r"(?:often|commonly|widely|popularly|sometimes|frequently) (?:believed|thought|said|claimed|assumed)|supposedly|allegedly|falsely|so-called|"
    r"urban legend|rumou?rs?|claims? that|the idea that|the belief that|the notion that|Mythos|mythe|mito|миф|迷信|谣言|误解)(?!\w)",
    re.IGNORECASE,
)
_CONTRAST = re.compile(r"(?<!\w)(?:but|however|in fact|actually|in reality|instead|the truth is|yet)(?!\w)|,")
_CALLED_MYTH = re.compile(
    r"(?:[^.;]{0,80}?(?:that|this|it|which)?(?:'s| is| are| was| has been))?\s?(?:just |only |actually |simply |merely |largely )*(?:a |an |the )?"
    r"(?:popular |common |old )?(?:myth|misconception|legend|not true|untrue|false|wrong|incorrect|superstition|hoax|debunked|fiction|nonsense)(?!\w)"
)


def keeps_distance(before: str, after: str = "") -> bool:
    """Return whether a sentence in lower case only reports what stands between two parts of it.

    `contrary to the myth that X`, `many believe X`, `X is a myth`; not `many believe Y, but X`.
    """
    last = None
    for last in _DISTANCE.finditer(before):
        pass
    if last is not None and _CONTRAST.search(before, last.end()) is None:
        return True
    return after != "" and _CALLED_MYTH.match(after) is not None

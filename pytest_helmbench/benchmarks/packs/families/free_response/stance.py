"""Denials in free replies and entries: whether one says that something is not so, by its first words or anywhere."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from pytest_helmbench.benchmarks.packs.families.free_response.claims import Claim, calls_false, claims
from pytest_helmbench.benchmarks.packs.families.free_response.tokens import (
    Unit,
    asks_yes_or_no,
    free_folded,
    polarity,
)
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import word_set

__all__ = ["contrasts", "declines", "denies", "is_denial", "lead", "said_polarity", "says_too"]

_BEFORE = (
    r"(?:(?:well|actually|in fact|on the contrary|please|despite [^,.;]{3,60}|contrary to [^,.;]{3,60}|"
    r"in spite of [^,.;]{3,60}|as far as [^,.;]{3,40})(?:,\s?|\s))*"
)
_ADVERB = (
    r"(?:certainly|definitely|really|absolutely|generally|usually|probably|most likely|almost certainly|actually|"
    r"simply|just|yet)"
)
_AUXILIARY = r"(?:is|are|do|does|did|can|could|will|would|has|have|had|should|was|were|may|might|must|need)"
_MANY = r"(?:most|many|some|all|plenty)(?: \w+){0,2}?"
_SUBJECT = rf"(?:it|they|he|she|you|we|i|that|this|there|doing so|these|those|{_MANY})"
_END = r"(?=\s*[,.;:!-]|\s(?:since|as|because|at all|and|but|in|for|if|when|on|to)(?!\w)|$)"
_MYTH = (
    r"(?:myth|legend|misconception|superstition|tale|false|untrue|hoax|nonsense|pseudoscience|fiction|trope|rumor|"
    r"folklore|exaggeration|wrong|incorrect|mistaken|inaccurate|not true|"
    r"something (?:people|parents|they) (?:say|tell))"
)
_CLAIM_IS = (
    r"(?:(?:the|this|that) )?(?:\w+ )?(?:claim|idea|story|belief|notion|rumor|saying|statement|theory) "
    r"(?:is|was|has been)"
)
_NO_GROUND = (
    r"(?:there(?:'s| is| are| was| were| has been| have been)|i know of) (?:no|not any|hardly any|little|nothing) "
    r"(?:(?:\w+ )?(?:evidence|proof|cases?|records?|reports?|link|connection|signs?|basis|truth|way|reason|need|"
    r"grounds?|such|harm|danger|risk|difference)(?!\w)|to it)"
)
_LEAD = re.compile(
    rf"{_BEFORE}(?:"
    rf"(?P<no>no(?!\w)(?!\s(?:doubt|one|other|comment)\b)|nope|nah|not(?!\s(?:only|just|sure|one|a|any)\b)|"
    rf"far from it|hardly|"
    rf"(?:that|this|it)(?:'s| is) (?:\w+ ){{0,4}}?{_MYTH}(?!\sthat (?:\w+ ){{1,4}}?not(?!\w))|"
    rf"{_CLAIM_IS} (?:\w+ ){{0,3}}?{_MYTH}|{_NO_GROUND}|"
    rf"none|zero|0|never|neither|nothing|avoid|do not{_END}|"
    rf"(?:hardly any|few|almost no|almost none)(?: \w+){{0,3}}? {_AUXILIARY}{_END}|"
    rf"{_SUBJECT}(?:'s|'re|\s{_AUXILIARY})?\s(?:{_ADVERB}\s)?{_AUXILIARY}?\s?not(?:\s{_ADVERB})?{_END})(?!\w)"
    rf"|(?P<yes>(?:it|that)(?:'s| is) (?:\w+ ){{0,3}}?{_MYTH} that (?:\w+ ){{1,4}}?not|"
    rf"yes(?!\sand\sno)|yep|yeah|sure|certainly|absolutely|definitely|indeed|of course|"
    rf"{_SUBJECT}(?:'s|'re|\s{_AUXILIARY})\sindeed|"
    rf"{_SUBJECT}\s(?:{_ADVERB}\s)?{_AUXILIARY}(?:\s{_ADVERB}|\swell)?{_END})(?!\w)(?!\snot))"
)
_CONTRASTS = re.compile(
    r"(?<!\w)(?:despite|in spite of|contrary to|actually|in fact|in reality|instead|myth|popular belief|just seems|"
    r"only (?:seems|looks|appears|feels)|made (?:it|that|this) up|propaganda|urban legend)(?!\w)"
)
_TOO = re.compile(r"(?<!\w)too (?!little |much |many )\w+ (?:to|for)(?!\w)")
_DECLINES = re.compile(
    r"(?<!\w)(?:i|we)(?:'m| am| are| can| could| do| would)?(?: \w+)? ?(?:not|unable)(?: \w+)?(?: to)? "
    r"(?:give|provide|help|offer|advise|answer|sure|know|certain|assist|say|tell|comment|discuss|share|find)(?!\w)"
    r"|(?<!\w)(?:is|are|remain|remains) (?:not (?:yet )?(?:sure|certain|clear|known)|unsure|uncertain|undecided)(?!\w)"
    r"|(?<!\w)as an ai(?!\w)|(?<!\w)no comment(?!\w)|(?<!\w)(?:ask|consult|see|speak to|talk to) (?:a|an|your|the) "
    r"(?:\w+ )?(?:professional|expert|specialist|lawyer|attorney|\w+ologist|doctor|physician|pharmacist)(?!\w)"
)
_ABOUT_WHETHER = word_set("=danger =possible =true =all =link =work")
"""Meanings whose opposite says that something is not so."""


def lead(text: str) -> int:
    """Return 1 when a folded text begins with yes, in whatever words, -1 for no, 0 for neither."""
    found = _LEAD.match(text)
    if found is None:
        return 0
    return -1 if found["no"] is not None else 1


def denies(text: str, claimed: Iterable[Claim]) -> bool:
    """Return whether a folded text says that something is not so.

    Args:
        text: All of it.
        claimed: What its clauses claim.
    """
    first = lead(text)
    if first:
        return first < 0
    return says_too(text) or any(map(is_denial, claimed))


def is_denial(claim: Claim, about: Collection[str] | None = None) -> bool:
    """Return whether a clause says that something is not so.

    Args:
        claim: The clause.
        about: Roots and meanings of which it has to have one, where it has any; None for any clause.
    """
    if not claim.share:
        return False
    signs = {word.sign for word in claim.words if word.meaning in _ABOUT_WHETHER}
    if -1 in signs:
        return True
    if signs or not claim.is_denied:
        return False
    if about is None or not claim.words:
        return True
    return any(word.root in about or word.meaning in about for word in claim.words)


def says_too(text: str) -> bool:
    """Return whether a folded text says that something is too much, or too little, for something."""
    return _TOO.search(text) is not None


def contrasts(text: str) -> bool:
    """Return whether a folded text sets what it says against what others believe."""
    return _CONTRASTS.search(text) is not None


def declines(text: str) -> bool:
    """Return whether a folded text refuses to answer, or sends the reader to somebody else."""
    return _DECLINES.search(text) is not None


def said_polarity(text: str, sentences: Sequence[str], parts: Sequence[Unit], prompt: str) -> bool | None:
    """Return what a reply says to a question for yes or no; None where it says neither, or the prompt asks for none.

    Args:
        text: All of it, folded.
        sentences: Folded, without a `no,` that answers the prompt.
        parts: Its sentences and clauses.
        prompt: As the model sees it.
    """
    leading = polarity(text, [], prompt)
    if leading is not None or not asks_yes_or_no(prompt):
        return leading
    first = lead(text)
    if first:
        return first > 0
    if calls_false(sentences, free_folded(prompt)):
        return False
    # What is denied behind `and` denies nothing before it: `cells die and never grow back`.
    clauses = [claim.unit for claim in claims(sentences)]
    return polarity(text, clauses if any(part.denials for part in parts) else parts, prompt)

"""Sentences of a short_answer reply that guess: what they offer in place of an answer."""

from __future__ import annotations

import re

from pytest_helmbench.benchmarks.packs.families.text.wording import sentences

__all__ = ["without_offer"]

_OFFERS = re.compile(
    r"(?:[^.,;:]{0,40}?(?:^|\s))??(?:(?:could|might|may)(?:\s(?:well|also|possibly|very\swell|perhaps))*\sbe"
    r"|(?:it|this|that|he|she|they|answer)(?:'s|\s(?:is|was|are|were))(?=\s(?:either|one\sof|any\sof)\s))"
    r"(?:\s(?:either|one\sof|any\sof|any\sone\sof|the))*\s"
)
"""`It could be`, `it is one of`: what follows is a guess, or a list of them."""
_LISTS_MORE = r"(?:,\s[^,.;:]{1,40}){1,8}?,?\s(?:or|oder|ou)\s[^,.;:]{1,40}(?=\W*$)"


def without_offer(masked: str, mask: str) -> str:
    """Return what the first sentence offers that only guesses the answer, or lists several; else the whole text.

    Args:
        masked: Folded.
        mask: The character that stands in it for accepted answers.
    """
    listing = re.compile(rf"{mask}{_LISTS_MORE}")
    for sentence in sentences(masked):
        found = _OFFERS.match(sentence)
        if found is not None and mask in sentence[found.end() :]:
            return sentence[found.end() :]
        listed = listing.search(sentence)
        if listed is not None:
            return listed[0]
    return masked

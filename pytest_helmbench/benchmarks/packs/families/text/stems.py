"""Stems of English words: `falls`, `falling` and `fell` are `fall`.

Cruder than a stemmer of a library, and no worse here: see `docs/design.md`, libraries that were tried.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

__all__ = ["stem"]

_IRREGULAR: Mapping[str, str] = MappingProxyType(
    {
        form: own
        for own, forms in (
            ("us", "used"),
            ("fall", "fell fallen"),
            ("writ", "wrote written"),
            ("begin", "began begun"),
            ("win", "won"),
            ("build", "built"),
            ("birth", "born"),
            ("death", "died die"),
            ("tak", "took taken"),
            ("hold", "held"),
            ("mak", "made"),
            ("becom", "became"),
            ("sing", "sang sung"),
            ("go", "went gone"),
            ("lead", "led"),
            ("sink", "sank sunk"),
            ("run", "ran"),
            ("grow", "grew grown"),
            ("los", "lost"),
            ("know", "knew known"),
            ("think", "thought"),
            ("say", "said"),
            ("tell", "told"),
            ("see", "saw seen"),
            ("eat", "ate eaten"),
            ("drink", "drank drunk"),
            ("giv", "gave given"),
            ("speak", "spoke spoken"),
            ("driv", "drove driven"),
            ("fli", "flew flown"),
            ("draw", "drew drawn"),
            ("break", "broke broken"),
            ("freez", "froze frozen"),
            ("steal", "stole stolen"),
            ("choos", "chose chosen"),
            ("bit", "bitten"),
            ("sleep", "slept"),
            ("keep", "kept"),
            ("stick", "stuck"),
            ("strik", "struck"),
            ("swim", "swam swum"),
            ("teach", "taught"),
            ("catch", "caught"),
            ("buy", "bought"),
            ("bring", "brought"),
            ("fight", "fought"),
            ("pay", "paid"),
            ("sell", "sold"),
            ("send", "sent"),
            ("spend", "spent"),
            ("wear", "wore worn"),
            ("tear", "tore torn"),
            ("throw", "threw thrown"),
            ("blow", "blew blown"),
            ("ris", "rose risen"),
            ("shoot", "shot"),
            ("stand", "stood"),
        )
        for form in forms.split()
    }
)
"""Forms of irregular verbs, and what the regular ones of each are cut to."""
_SHORTEST = 3
_ADVERB = re.compile(r"(?<=\w{3})ly$")
_CONSONANT_Y = re.compile(r"(?<=[^\Waeiou]{1})(?:y|ies|ied)$")
_ENDING = re.compile(r"(?:'s|(?<=\w{3})(?:ings?|ed)|(?<=\w{2})(?:es|(?<![su])s|e))$")
_DOUBLED = re.compile(r"([bdgmnprt])\1$")


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return a word in small letters without its ending; short words and numbers as they are."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < _SHORTEST or word[0].isdigit():
        return word
    word = _ADVERB.sub("", word)
    cut = _ENDING.sub("", _CONSONANT_Y.sub("i", word))
    return _DOUBLED.sub(r"\1", cut) if word.endswith(("ed", "ing")) else cut

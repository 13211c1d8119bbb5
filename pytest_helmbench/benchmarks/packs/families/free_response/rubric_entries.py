"""Entries of a free_response rubric and replies to it, taken apart into what is compared."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain, islice

from pytest_helmbench.benchmarks.packs.families.free_response.tokens import (
    Unit,
    free_folded,
    is_numeric,
    joined,
    tokens,
    unit,
)
from pytest_helmbench.benchmarks.packs.families.text.plain import plain
from pytest_helmbench.benchmarks.packs.families.text.wording import sentences, unmarked
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["CLAUSE_END", "Entry", "Said", "entry_of", "said_of"]

_MOST_SENTENCES = 2000
CLAUSE_END = re.compile(r"[,;:]\s|\s-\s|\s(?:but|while|whereas|although|though|however|yet)\s")
_ANSWERS_QUESTION = re.compile(
    r"\A\s*(?:yes|no|nope|nein|ja|oui|non|sí|да|нет)\s*[,.;:!—-]+\s*(?=\S)", re.IGNORECASE
)
_IGNORANT = re.compile(
    r"(?<!\w)(?:i|we)(?:'m| am| are)? (?:\w+ ){0,2}?(?:not (?:sure|certain|aware)|unsure"
    r"|(?:can )?not (?:\w+ )?(?:know|say|tell|comment|answer|determine|verify))(?!\w)"
)
"""`I do not know whether …`: what such a sentence goes on with is not said."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An accepted or rejected answer, ready to be compared.

    Args:
        text: Folded.
        stated: The same without a `no,` that answers the prompt.
        unit: All of that as tokens.
        size: How many sentences it has.
        is_value: It is a name or a number and nothing else.
    """

    text: str
    stated: str
    unit: Unit
    size: int
    is_value: bool


@dataclass(frozen=True, slots=True)
class Said:
    """What a reply says.

    Args:
        text: Folded.
        sentences: Folded, without a `no,` that answers the prompt.
        units: One per sentence.
        clauses: Parts of each sentence that has several.
        whole: All sentences together.
        prompt: Tokens of the prompt.
    """

    text: str
    sentences: tuple[str, ...]
    units: tuple[Unit, ...]
    clauses: tuple[tuple[Unit, ...], ...]
    whole: Unit
    prompt: frozenset[str]

    @property
    def parts(self) -> list[Unit]:
        """The sentences, then their clauses."""
        return [*self.units, *chain.from_iterable(self.clauses)]


@lru_cache(maxsize=2048)
def entry_of(answer: str) -> Entry:
    text = unmarked(plain(answer))
    stated = _ANSWERS_QUESTION.sub("", text)
    units = [unit(free_folded(sentence)) for sentence in sentences(stated)]
    folded_answer = free_folded(answer)
    is_value = all(word[:1].isupper() for word in answer.split()) or is_numeric(folded_answer)
    return Entry(folded_answer, free_folded(stated), joined(units), len(units), is_value)


def said_of(own: str, prompt: str) -> Said:
    stated = [
        sentence
        for sentence in islice(sentences(unmarked(plain(own))), _MOST_SENTENCES)
        if not sentence.endswith(("?", "？", "؟"))
    ]
    folded_ones = (free_folded(_ANSWERS_QUESTION.sub("", sentence)) for sentence in stated)
    texts = [text for text in folded_ones if _IGNORANT.search(text) is None]
    units = tuple(unit(text) for text in texts)
    clauses = (tuple(unit(clause) for clause in CLAUSE_END.split(text) if clause != text) for text in texts)
    asked = frozenset(tokens(free_folded(prompt)))
    whole = ". ".join(map(free_folded, stated))
    return Said(whole, tuple(texts), units, tuple(clauses), joined(units), asked)

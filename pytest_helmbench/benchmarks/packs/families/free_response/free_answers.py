"""free_response, default rule: whether a reply says an accepted answer and no rejected one.

An entry is met when the reply holds it word for word, or when token F1 reaches the row's least value; a rejected
entry that is met in its own words fails, one that is met by F1 fails when it fits at least as well as the best accepted
one. Around that, where the specification is silent:

* F1 is taken over the sentences of the reply (as many at a time as the entry has), their clauses and the whole reply;
  the best counts, so that a right answer is not wrong for what is explained around it.
* An entry does not count where its clause denies it (`it is not safe` for `safe`) or where the sentence keeps its
  distance (`contrary to the myth that …`, `many believe that …`). By F1, a sentence with another number of negations,
  odd or even, says something else.
* `don't`, `cannot` and `do not` are the same words. `No` before a comma answers the question and negates nothing.
* Questions that the reply asks are no answers, and words of the prompt alone score nothing by F1.
* Scripts without spaces: every character is a token, and borders of words are not asked for.
* A reply that is an accepted entry word for word passes, whatever else could be said about it. That, a rejected entry
  word for word, silence and an echo are certain; all else is a guess, and a marking model decides where there is one.
* `yes` and `no` are met where a reply begins with them and a comma or its end follows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from pytest_helmbench.benchmarks.packs.families.free_response.row import FreeRow
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.denial import denials, is_denied, keeps_distance
from pytest_helmbench.benchmarks.packs.families.text.echo import is_dump, without_passage
from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding, shown
from pytest_helmbench.benchmarks.packs.families.text.plain import plain, spoken
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import UNSPACED_SCRIPTS, word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import (
    folded,
    is_within,
    sentences,
    unmarked,
    whole_places,
)

__all__ = ["judge_free"]

_MOST_SENTENCES = 2000
_MOST_PLACES = 50
_STOP_WORDS = word_set(
    "a an and are as at be because been before being by did do does due for from how if in into is it its of on or",
    "over that the their this through to was were what when where which who whom whose why with you your",
)
_SAME_NEGATION = {"no": "not", "never": "not", "none": "not", "without": "not", "nothing": "not"}
_CONTRACTIONS = (
    (re.compile(r"(?<!\w)won't(?!\w)"), "will not"),
    (re.compile(r"(?<!\w)can(?:'t|not)(?!\w)"), "can not"),
    (re.compile(r"(?<=\w)n't(?!\w)"), " not"),
    (re.compile(r"(?<=[ \w])u\.s\.(?:a\.)?|^u\.s\.(?:a\.)?"), "united states"),
)
_TOKEN = re.compile(rf"[{UNSPACED_SCRIPTS}]|[^\W_{UNSPACED_SCRIPTS}]+(?:\.\d+)?")
_CLAUSE_END = re.compile(r"[,;:]\s|\s-\s|\s(?:but|while|whereas|although|though|however|yet)\s")
_YES_AND_NO = word_set("yes no ja nein oui non sí si não sim да нет")
_ENDS_ANSWER = ("", ",", ".", ";", ":", "!", "-")
_ANSWERS_QUESTION = re.compile(
    r"\A\s*(?:yes|no|nope|nein|ja|oui|non|sí|да|нет)\s*[,.;:!—-]+\s*(?=\S)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence, or several, as tokens.

    Args:
        tokens: How often each occurs.
        denials: Negations and words of distance in it.
    """

    tokens: Counter[str]
    denials: int

    def __add__(self, other: _Unit) -> _Unit:
        return _Unit(self.tokens + other.tokens, self.denials + other.denials)


@dataclass(frozen=True, slots=True)
class _Entry:
    """An accepted or rejected answer, ready to be compared.

    Args:
        text: Folded.
        unit: All of it as tokens.
        size: How many sentences it has.
    """

    text: str
    unit: _Unit
    size: int


@dataclass(frozen=True, slots=True)
class _Said:
    """What a reply says.

    Args:
        text: Folded.
        units: One per sentence.
        clauses: Parts of the sentences that have several.
        whole: All sentences together.
        prompt: Tokens of the prompt.
    """

    text: str
    units: tuple[_Unit, ...]
    clauses: tuple[_Unit, ...]
    whole: _Unit
    prompt: frozenset[str]


def judge_free(row: FreeRow, reply: str) -> AnswerFinding:
    """Judge a free_response reply by the default rule."""
    text = spoken(reply)
    if not text.strip():
        return _nothing_said("", "empty")
    accepted = [_entry(answer) for answer in row.accepted]
    same = _same_entry(text, accepted)
    if same is not None:
        return AnswerFinding(
            True, "word_for_word", same, accepted_f1=1.0, rejected_f1=0.0, statement=shown(text)
        )
    own = reply
    for passage in row.given:
        own = without_passage(own, passage)
    own = spoken(own)
    if not own.strip() or is_dump(text, row.context):
        return _nothing_said(text, "echo")
    said = _said(own, row.prompt)
    if not said.text:
        return _nothing_said(own, "no_statement")
    return _judged(row, said, accepted, own)


def _nothing_said(words: str, reason: str) -> AnswerFinding:
    return AnswerFinding(
        passed=False, accepted_f1=0.0, rejected_f1=0.0, statement=shown(words), reason=reason
    )


def _judged(row: FreeRow, said: _Said, accepted: Sequence[_Entry], own: str) -> AnswerFinding:
    rejected = [_entry(answer) for answer in row.rejected]
    matched, refused = _first_said(said, accepted), _first_said(said, rejected)
    accepted_f1, best_accepted = _best_f1(said, accepted)
    rejected_f1, best_rejected = _best_f1(said, rejected)
    strategy = None if matched is None else "contained"
    if matched is None and best_accepted is not None and accepted_f1 >= row.min_token_f1:
        matched, strategy = best_accepted, "token_f1"
    if refused is None and rejected_f1 >= row.min_token_f1 and rejected_f1 >= accepted_f1:
        refused = best_rejected
    return AnswerFinding(
        passed=matched is not None and refused is None,
        strategy=strategy,
        matched=matched,
        rejected=refused,
        accepted_f1=accepted_f1,
        rejected_f1=rejected_f1,
        statement=shown(own),
        certain=_same_entry(own, rejected) is not None,
    )


@lru_cache(maxsize=2048)
def _entry(answer: str) -> _Entry:
    units = [_unit(_folded(sentence)) for sentence in sentences(unmarked(plain(answer)))]
    return _Entry(_folded(answer), sum(units, _Unit(Counter(), 0)), len(units))


def _same_entry(text: str, entries: Sequence[_Entry]) -> int | None:
    """Return the first entry that a reply is word for word; None for none."""
    longest = max((len(entry.text) for entry in entries), default=0)
    if len(text) > 2 * longest + 40:
        return None
    folded_text = _folded(text)
    return next((index for index, entry in enumerate(entries) if entry.text == folded_text), None)


def _said(own: str, prompt: str) -> _Said:
    stated = [
        sentence
        for sentence in islice(sentences(unmarked(plain(own))), _MOST_SENTENCES)
        if not sentence.endswith(("?", "？", "؟"))
    ]
    texts = [_folded(_ANSWERS_QUESTION.sub("", sentence)) for sentence in stated]
    units = tuple(_unit(text) for text in texts)
    clauses = [_unit(clause) for text in texts for clause in _CLAUSE_END.split(text) if clause != text]
    tokens = Counter[str]()
    for unit in units:
        tokens.update(unit.tokens)
    whole = _Unit(tokens, sum(unit.denials for unit in units))
    asked = frozenset(_tokens(_folded(prompt)))
    return _Said(". ".join(map(_folded, stated)), units, tuple(clauses), whole, asked)


def _folded(text: str) -> str:
    text = lowered(text)
    for contraction, words in _CONTRACTIONS:
        text = contraction.sub(words, text)
    return folded(text)


def _unit(text: str) -> _Unit:
    return _Unit(Counter(_tokens(text)), denials(text) + int(keeps_distance(text)))


def _tokens(text: str) -> list[str]:
    return [_SAME_NEGATION.get(token, token) for token in _TOKEN.findall(text) if token not in _STOP_WORDS]


def _first_said(said: _Said, entries: Sequence[_Entry]) -> int | None:
    """Return the first entry that the reply holds as a whole and does not deny.

    What a longer entry denies (`Leonardo da Vinci did not`) is no place for a shorter one (`Leonardo`).
    """
    places = [_places(said.text, entry.text) for entry in entries]
    denied = [place for found in places for place in found if _is_refused(said.text, *place)]
    for index, found in enumerate(places):
        if any(not any(is_within(place, other) for other in denied) for place in found):
            return index
    return None


def _places(text: str, entry: str) -> list[tuple[int, int]]:
    """Return where an entry stands in a text; `yes` and `no` only where they answer, at its start."""
    if entry not in _YES_AND_NO:
        return [*islice(whole_places(text, entry), _MOST_PLACES)]
    answers = text.startswith(entry) and text[len(entry) : len(entry) + 2].strip()[:1] in _ENDS_ANSWER
    return [(0, len(entry))] if answers else []


def _is_refused(text: str, start: int, end: int) -> bool:
    if text[start:end] in _YES_AND_NO:
        return False
    return is_denied(text, start, end) or _is_distant(text, start, end)


def _is_distant(text: str, start: int, end: int) -> bool:
    begin = max(text.rfind(". ", 0, start), text.rfind("; ", 0, start)) + 1
    stop = text.find(". ", end)
    return keeps_distance(text[max(begin, start - 300) : start], text[end : stop if stop >= 0 else end + 200])


def _best_f1(said: _Said, entries: Sequence[_Entry]) -> tuple[float, int | None]:
    """Return the best F1 of any entry, and the first entry that reaches it; None when nothing overlaps."""
    best: tuple[float, int | None] = (0.0, None)
    for index, entry in enumerate(entries):
        own_words = not said.prompt.issuperset(entry.unit.tokens)
        score = 0.0
        for unit in _windows(said, entry.size):
            if not (own_words and said.prompt.issuperset(unit.tokens)):
                score = max(score, _f1(unit, entry.unit))
        if score > best[0]:
            best = score, index
    return best


def _windows(said: _Said, size: int) -> Iterator[_Unit]:
    """Yield the parts of a reply that an entry of so many sentences is compared with."""
    if size <= 1 or len(said.units) <= size:
        yield from said.units
        yield from said.clauses
    else:
        for start in range(len(said.units) - size + 1):
            yield sum(said.units[start + 1 : start + size], said.units[start])
    yield said.whole


def _f1(unit: _Unit, wanted: _Unit) -> float:
    """Return the token F1 of two units; 0 when one denies what the other says."""
    if unit.denials % 2 != wanted.denials % 2:
        return 0.0
    common = sum(min(count, unit.tokens[token]) for token, count in wanted.tokens.items())
    if not common:
        return 0.0
    precision, recall = common / unit.tokens.total(), common / wanted.tokens.total()
    return 2 * precision * recall / (precision + recall)

"""Words that announce an answer in a reply (`the answer is`), or take one back, in many languages."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache
from types import MappingProxyType

from pytest_helmbench.benchmarks.packs.families.text.plain import MARK, MARK_END
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of, one_of, word_set
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["ANSWER_NOUNS", "MOST_CUES", "Cue", "CueKind", "Retraction", "find_cues", "lowered", "retraction"]

MOST_CUES = 500
"""Announcements that are looked at, from the end: an answer that wins is never before so many others."""

_LONGEST_MARK = 4000
_MOST_LINKS = 3


class CueKind(Enum):
    """How an answer is announced."""

    MARK = "marked"
    """`\\boxed{}`, `<answer>`, the answer key of a JSON object."""
    NOUN = "cue"
    """`The answer is`, `Final answer:`, a heading `Answer`."""
    VERB = "choice"
    """`I choose`, `I'd go with`."""
    BARE = "bare"
    """The word for an answer with nothing that links it to what follows or precedes."""


@dataclass(frozen=True, slots=True)
class Cue:
    """An announcement of an answer, such as `the answer is`.

    Args:
        kind: How it is announced.
        start: Where its own words begin.
        end: Where what it announces begins.
        stop: Where that ends at the latest, for marks; else None.
        final: It says that this is the final answer.
        heading: It stands at the start of a line with a colon behind it, so whatever follows is an answer.
        word: The noun, or empty.
    """

    kind: CueKind
    start: int
    end: int
    stop: int | None = None
    final: bool = False
    heading: bool = False
    word: str = ""


@dataclass(frozen=True, slots=True)
class Retraction:
    """Words that take back what was said.

    Args:
        end: Where they end.
        certain: They say that it was wrong, not only that it is looked at again.
    """

    end: int
    certain: bool


# Nouns for an answer, other nouns that announce one, and the verbs that link them to it, by language.
_LANGUAGES = (
    ("answer ans", "choice option selection pick solution conclusion guess response result", "is are be"),
    ("antwort", "lösung loesung auswahl", "ist lautet wäre"),
    ("réponse reponse", "choix", "est serait"),
    ("respuesta", "solución solucion opción opcion elección", "es sería seria"),
    ("resposta", "alternativa opção", "é seria"),
    ("risposta", "soluzione scelta opzione", "è sarebbe"),
    ("antwoord", "keuze", "is"),
    ("odpowiedź odpowiedz odpowiedzią", "", "to jest brzmi"),
    ("odpověď odpoveď", "", "je"),
    ("svar svaret vastaus", "", "är er on"),
    ("cevap yanıt", "", ""),
    ("đáp_án câu_trả_lời", "", "là"),
    ("răspuns răspunsul", "", "este e"),
    ("válasz", "", ""),
    ("jawaban jawapan", "", "adalah ialah"),
    ("ответ відповідь отговор одговор", "вариант", "это - является є це е"),
    ("απάντηση", "", "είναι"),
    ("الإجابة الجواب إجابة", "", "هي هو"),
    ("תשובה התשובה", "", "היא הוא"),
    ("उत्तर जवाब", "", ""),
    ("উত্তর", "", ""),
)
# Scripts without spaces between words: a particle, or nothing, follows.
_UNSPACED_NOUNS = word_set("答案 正确答案 答え 正解 解答 回答 정답 답 คำตอบ")
_UNSPACED = tuple(_UNSPACED_NOUNS | word_set("正确选项 正確選項 应选 應選 故选 故選 选择 選擇 选 選"))

ANSWER_NOUNS = _UNSPACED_NOUNS | word_set(*(nouns for nouns, _, _ in _LANGUAGES))
"""Words for an answer, not for a choice, a result or a solution."""

# Verbs that announce a choice, under a piece that all of a group hold: one look rules out the group.
_VERBS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        " with": ("go with", "going with", "went with", "stick with", "sticking with"),
        "cho": ("choose", "choosing", "chose"),
        "select": ("select", "selecting"),
        " for": ("opt for", "opting for", "vote for", "voting for"),
        " on": ("settle on", "settling on", "bet on", "betting on"),
        "lean": ("lean towards", "lean toward", "leaning towards", "leaning toward"),
        "i'": ("i'd say", "i'll say", "i'd answer"),
        "i w": ("i would say", "i will say", "i would answer"),
        "ich ": ("ich wähle", "ich nehme"),
        "je ": ("je choisis", "je dirais"),
        "sco": ("escojo", "escolho", "scelgo"),
        "eli": ("elijo",),
        "ира": ("выбираю", "обираю"),
        "bieram": ("wybieram",),
        "kies": ("ik kies",),
    }
)
_VERB_SET = frozenset(verb for verbs in _VERBS.values() for verb in verbs)

_FINAL = re.compile(
    any_of("final finale definitive définitive definitiva endgültige 最终 最終 окончательный итоговый")
    + r"\W{0,3}$"
)
_QUALIFIERS = word_set("the my that this a an correct right best final most likely one only")
_MAKES_A_VERB = word_set("to can cannot could will would please must should not i'll i'd we'll don't can't")
_MAKES_IT_ANOTHER = word_set(
    "if whether wrong incorrect other another worst tempting plausible alternative possible common assume suppose",
    "assuming each every no long detailed not isn't initial first second previous",
)
_NEGATED_GAP = re.compile(rf"(?<!\w){any_of('not never cannot nicht kein no ne pas nie не')}(?!\w)|n't(?!\w)")
# `Option D: …`, `answer A is …`: one of the choices is looked at.
_ONE_OF_THEM = re.compile(r"\s\(?\w{1,2}\)?\s?")
_NEGATED_VERB = re.compile(r"(?:n't|not|never|nicht|if you|why|不|cannot|to)\s*$")
_SEPARATOR = (
    r"(?:\s(?:letter|choice|option|key|number|id|index|code))?(?:\s?\([^()\n]{0,30}\))?\.?"
    r"[\"')\]]*\s*(?::|=|->|=>|→|\||-(?=\s))"
)
_WORDS_ONLY = re.compile(r"[\w\s'\"✓]*")
_WOULD, _IS = any_of("应该 應該 就 应 應 肯定"), any_of("是 为 為 选 選 は が 은 는 이 คือ")
_PARTICLE = re.compile(rf"\s*{_WOULD}?\s*{_IS}?\s*[:=]?\s*(?:选项|選項)?\s*")
_RETRACTION = re.compile(
    r"(?<!\w)(?:(?P<certain>scratch that|i was wrong|i take that back|i (?:made|have made) an? (?:mistake|error)"
    r"|that(?:'s| is) (?:not right|not correct|wrong|incorrect)\b|actually,? no)"
    r"|on second thought|correction\b|(?:no|oh|hmm|oops),? wait|wait,? (?:no|actually|that)|wait[,.!—-]"
    r"|let me (?:re-?(?:consider|check|think|calculate|evaluate|do|read|examine)|correct|double))"
)


_COPULAS_OF: Mapping[str, str] = MappingProxyType(
    {noun: copulas for nouns, others, copulas in _LANGUAGES for noun in word_set(nouns, others)}
)
_SPACED_WORDS = (*_COPULAS_OF, *_VERB_SET)
_ASCII_NOUNS = tuple(noun for noun in _COPULAS_OF if noun.isascii())
_ACCENTED_NOUNS = tuple(noun for noun in _COPULAS_OF if not noun.isascii() and max(noun) < "\u0370")
_OTHER_NOUNS = tuple(noun for noun in _COPULAS_OF if max(noun) >= "\u0370")
# Letters of other scripts than Latin; mathematical symbols lie between the two ranges.
_OTHER_SCRIPT = re.compile(r"[\u0370-\u1fff\u3040-\ud7ff]")
_ENDINGS = ("s", "en", "es", "e", "")
_WORD_OF: Mapping[str, str] = MappingProxyType(
    {word + ending: word for ending in _ENDINGS for word in _SPACED_WORDS}
    | {word: word for word in _SPACED_WORDS}
)


def lowered(text: str) -> str:
    """Return the text in lower case with every character in its place."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(small if len(small := char.lower()) == 1 else char for char in text)


def find_cues(low: str) -> Iterator[Cue]:
    """Yield the announcements of a plain text, given in lower case, in order."""
    words = [noun for noun in _ASCII_NOUNS if noun in low]
    for piece, verbs in _VERBS.items():
        if piece in low:
            words += [verb for verb in verbs if verb in low]
    unspaced: list[str] = []
    if not low.isascii():
        words += [noun for noun in _ACCENTED_NOUNS if noun in low]
        if _OTHER_SCRIPT.search(low) is not None:
            words += [noun for noun in _OTHER_NOUNS if noun in low]
            unspaced = [noun for noun in _UNSPACED if noun in low]
    if words or unspaced or MARK in low:
        for found in deque(_scan_for(tuple(words), tuple(unspaced)).finditer(low), MOST_CUES):
            yield from _cues_at(low, found)


def _cues_at(low: str, found: re.Match[str]) -> Iterator[Cue]:
    start, end = found.span()
    word = _WORD_OF.get(found[0], found[0])
    if word in _COPULAS_OF:
        yield from _noun_cues(low, word, start, end)
    elif word == MARK:
        stop = low.find(MARK_END, end, end + _LONGEST_MARK)
        yield Cue(CueKind.MARK, start, end, stop if stop >= 0 else None)
    elif word in _VERB_SET:
        if _NEGATED_VERB.search(low, max(0, start - 12), start) is None:
            yield Cue(CueKind.VERB, start, end)
    elif _NEGATED_VERB.search(low, max(0, start - 3), start) is None:
        particle = _PARTICLE.match(low, end)
        stop = end if particle is None else particle.end()
        yield Cue(CueKind.NOUN, start, stop, word=word, heading=":" in low[end:stop])


@lru_cache(maxsize=512)
def _scan_for(words: tuple[str, ...], unspaced: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for words that are known to occur.

    Every branch begins with a letter of its own, without a group: then the search skips what cannot begin one.
    """
    branches = [MARK, *(re.escape(word) for word in sorted(unspaced, key=len, reverse=True))]
    for word in sorted(words, key=len, reverse=True):
        literal = re.escape(word)
        branches.append(rf"{literal}(?<!\w{literal})(?:{'|'.join(_ENDINGS)})(?!\w)")
    return re.compile("|".join(branches))


@lru_cache(maxsize=64)
def _link(copulas: str) -> re.Pattern[str]:
    """Return the pattern of what stands between a noun and the answer, for a language's verbs."""
    linked = one_of(copulas.split()) if copulas else r"(?!)"
    return re.compile(
        rf"(?P<separator>{_SEPARATOR})"
        rf"|(?P<gap>[^.!?:;\n]{{0,80}}?)(?:(?<!\w){linked}(?!\w|'t)|(?P<late>:))"
    )


def _noun_cues(low: str, word: str, start: int, end: int) -> Iterator[Cue]:
    if not _announces(low, start):
        return
    link = _link(_COPULAS_OF[word]).match(low, end)
    separated = link is not None and link["separator"] is not None
    if word == "pick" and not separated and (link is None or link["gap"].strip()):
        if _NEGATED_VERB.search(low, max(0, start - 12), start) is None:
            yield Cue(CueKind.VERB, start, end)
        return
    final = _FINAL.search(low, max(0, start - 20), start) is not None
    at_start = _starts_line(low, start)
    if link is not None and separated:
        yield Cue(CueKind.NOUN, start, link.end(), final=final, heading=at_start, word=word)
    elif link is None and at_start and low[end : end + 3].lstrip(" \"')").startswith("\n"):
        yield Cue(CueKind.NOUN, start, end, final=final, word=word)
    else:
        yield Cue(CueKind.BARE, start, end, final=final, word=word)
        yield from _linked_cues(low, word, link, Cue(CueKind.NOUN, start, end, None, final, at_start, word))


def _linked_cues(low: str, word: str, link: re.Match[str] | None, cue: Cue) -> Iterator[Cue]:
    """Yield a cue for each verb that may link the noun: `the answer that is best is B` has two."""
    for _ in range(_MOST_LINKS):
        if link is None or link["gap"] is None or _NEGATED_GAP.search(link["gap"]) is not None:
            return
        if _ONE_OF_THEM.fullmatch(link["gap"]) is not None:
            return
        late = link["late"] is not None
        heading = cue.heading and (late or low.startswith(":", link.end()))
        yield Cue(CueKind.NOUN, cue.start, link.end(), final=cue.final, heading=heading, word=word)
        if late:
            return
        link = _link(_COPULAS_OF[word]).match(low, link.end())


def _announces(low: str, start: int) -> bool:
    """Return whether the noun is the reply's own answer: no verb (`to answer`), no other one (`a wrong answer`)."""
    before = low[max(0, start - 48) : start].split()
    if before and before[-1] in _MAKES_A_VERB:
        return False
    while before and before[-1] in _QUALIFIERS:
        before.pop()
    return not before or before[-1] not in _MAKES_IT_ANOTHER


def _starts_line(low: str, start: int) -> bool:
    """Return whether nothing but a few words stands before a place on its line."""
    lead = low[max(low.rfind("\n", max(0, start - 60), start) + 1, start - 60) : start]
    return len(lead) <= 40 and _WORDS_ONLY.fullmatch(lead) is not None


def retraction(low: str, start: int, stop: int | None = None) -> Retraction | None:
    """Return the last words, between two places, that take back what was said; None for none."""
    found = deque(_RETRACTION.finditer(low, start, len(low) if stop is None else stop), 1)
    return Retraction(found[0].end(), found[0]["certain"] is not None) if found else None

"""Sureness of verdicts on short_answer rows: certain, guessed from the words of a reply, or not even that.

Certain are a reply, or an announcement that ends it, that is nothing but an accepted answer; one that says it in the
words of the question (`The capital of Australia is Canberra.`); one that is nothing but another number, where every
accepted answer is a number and none of the readings of the two is near; and one that only says that it does not know.
Unsure are a pass by a number that only rounds to the answer, and what `undecided` names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from pytest_helmbench.benchmarks.packs.families.short_answer.asked_about import asked_stems
from pytest_helmbench.benchmarks.packs.families.short_answer.number_match import ROUNDED
from pytest_helmbench.benchmarks.packs.families.short_answer.row import ShortRow
from pytest_helmbench.benchmarks.packs.families.short_answer.undecided import is_undecided
from pytest_helmbench.benchmarks.packs.families.short_answer.written_forms import is_expression
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.denial import denials
from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding, Sureness
from pytest_helmbench.benchmarks.packs.families.text.number_words import number_words
from pytest_helmbench.benchmarks.packs.families.text.numbers import Number, numbers, only_number
from pytest_helmbench.benchmarks.packs.families.text.units import Unit, asked_unit, quantity
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of, word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import comma_free, folded, whole_places, words

__all__ = ["is_in_other_prefix", "sureness", "sureness_of_same"]

_FILLER = word_set(
    "the a an is are was were be it it's that's there has have had of in at to by on about approximately roughly",
    "around exactly precisely equal equals total called named answer final correct my would",
)
_HEDGES = re.compile(
    rf"(?<!\w){any_of('or either maybe perhaps might could may possibly sure unsure unless except than')}(?!\w)|\?"
)
_SAYS = re.compile(r"(?:^|.*\s)(?:is|are|was|were|it's|that's)\s(?:(?:the|a|an|called|named)\s)*", re.DOTALL)
_BEHIND = re.compile(r"\s(?:is|are|was|were)\s", re.DOTALL)
_IGNORANT = re.compile(
    r"(?:sorry,? )?(?:but )?(?:i|we) (?:(?:really |honestly |simply )?(?:do not|don't) know|cannot answer|can't answer"
    r"|have no idea|am not able to answer|'m not able to answer)(?: (?:that|this|the)(?: question| answer)?)?"
)
_MEANT = re.compile(r"[!?<>=±≠~^#@&|\\\[\]{}√∛∞%]")
_ODD = re.compile(
    r"[<>±≠]|(?<![\w.])\d[\d.,]*(?:[eix](?!\w)|!)|\d\s(?:sin|cos|tan|log|ln)(?!\w)|(?:^|:)\s*-\s?[\s(]\s?\d"
)
"""What may make another value of a number: `>5`, `5x`, `5!`, `- 5` that is a dash or a minus."""
_HALVES = re.compile(r"(?<!\w)(?:dozens?|half|halves|quarters?|scores?)(?!\w)")
"""What numbers in words are put together with in more ways than are read: `a dozen and a half`."""
_EXACTLY = re.compile(r"(?<!\w)(?:exact(?:ly)?|case|spell(?:ed|ing|t)?)(?!\w)", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]+")
_LONGEST_SYMBOL = 3
_SLASHED = re.compile(r"(?<![\d/.])(\d{1,2})[/.](\d{1,2})[/.]\d{2,4}(?![\d/])")
_MONTHS = 12
_PREFIXED = re.compile(r"\d\s?([mM])(W|V|A|Hz|J|Pa|eV|g|L|mol|Ω|F|H|N|T|bar)(?!\w)")
_SHARE = re.compile(r"%|percent|per cent")
_ASKS_FOR_SHARE = re.compile(r"percentage|(?<!\d )(?:per cent|percent)(?!\w)|what %")
_NEAR = Fraction(2, 100)
_SCALES = tuple(Fraction(10) ** power for power in (0, 2, 3, 6, -2, -3, -6))


def sureness(
    row: ShortRow, finding: AnswerFinding, accepted: Sequence[str], core: str, *, own: str
) -> Sureness:
    """Return how sure a verdict is.

    Args:
        row: What was asked.
        finding: The verdict.
        accepted: Accepted answers, folded.
        core: What the reply ends with as its answer, or all of it.
        own: All that it says.
    """
    if finding.reason == "no_statement":
        return Sureness.CERTAIN
    if finding.passed:
        if finding.strategy == ROUNDED or (_is_numeric(finding) and _ODD.search(own) is not None):
            return Sureness.UNSURE
        return Sureness.CERTAIN if _is_sure_pass(row, accepted, core, own=own) else Sureness.GUESSED
    if _HALVES.search(lowered(own)) is not None:
        return Sureness.UNSURE
    if _is_sure_failure(row, core, own=own):
        return Sureness.CERTAIN
    is_open = finding.reason == "several" or (finding.reason is None and is_undecided(row, accepted, own))
    return Sureness.UNSURE if is_open else Sureness.GUESSED


def sureness_of_same(text: str, written: str, question: str) -> Sureness:
    """Return how sure it is that a reply says an accepted answer from which it differs in nothing but its form.

    Case tells symbols and units apart (`Co`, `CO`), and nobody knows which number of `03/04/2021` is the month.

    Args:
        text: The reply.
        written: The answer, as the row has it.
        question: As asked.
    """
    if _marks(text) != _marks(written):
        return Sureness.UNSURE
    if written in text:
        return Sureness.CERTAIN
    said = {*_LETTERS.findall(text)}
    others = [found for found in _LETTERS.finditer(written) if found[0] not in said]
    if others and (_EXACTLY.search(question) is not None or any(map(_has_case, others))):
        return Sureness.UNSURE
    either = (found for one in (text, written) for found in _SLASHED.finditer(one))
    if any(found[1] != found[2] and max(int(found[1]), int(found[2])) <= _MONTHS for found in either):
        return Sureness.UNSURE
    return Sureness.CERTAIN


def _marks(text: str) -> frozenset[str]:
    """Return the marks of a text that may be a part of what it says: `>` of `>5`, `!` of `n!`, `?` of a doubt."""
    return frozenset(_MEANT.findall(text.rstrip(" .").removesuffix("!") if text[:1].isupper() else text))


def _is_numeric(finding: AnswerFinding) -> bool:
    return (finding.strategy or "").startswith("numeric")


def _has_case(found: re.Match[str]) -> bool:
    """Return whether the case of a word says what it is: a symbol, a unit."""
    word = found[0]
    if word.islower():
        return len(word) <= _LONGEST_SYMBOL and found.string[: found.start()].rstrip()[-1:].isdigit()
    return len(word) <= _LONGEST_SYMBOL or not (word.isupper() or word.istitle())


def is_in_other_prefix(text: str, accepted: Iterable[str]) -> bool:
    """Return whether a reply has the unit of an answer with M for m, or the other way round: `5 MW` for `5 mW`."""
    wanted = {found.groups() for answer in accepted for found in _PREFIXED.finditer(answer)}
    said = {found.groups() for found in _PREFIXED.finditer(text)} if wanted else set()
    units = {unit for _, unit in wanted}
    return bool(said) and wanted.isdisjoint(said) and any(unit in units for _, unit in said)


def _is_sure_pass(row: ShortRow, accepted: Sequence[str], core: str, *, own: str) -> bool:
    """Return whether a reply that has passed says an accepted answer beyond doubt.

    Args:
        row: What was asked.
        accepted: Its answers, folded.
        core: What the reply ends with as its answer, or all of it.
        own: All that it says.
    """
    text = comma_free(folded(core))
    if any(text == comma_free(answer) for answer in accepted):
        return True
    low = lowered(own)
    if _HEDGES.search(low) is not None or denials(low):
        return False
    if _value(core) is not None:
        return _is_in_asked_unit(row, core)
    values = [*numbers(own)]
    if values and any(is_expression(str(answer)) for answer in row.accepted):
        return False  # a formula is sure word for word alone
    if values:
        return _is_one_number(row, low, values)
    return any(_is_said_of_question(row, folded(own), answer) for answer in accepted)


def _is_sure_failure(row: ShortRow, core: str, *, own: str) -> bool:
    """Return whether a reply that has failed is nothing but another number, or nothing but ignorance.

    Args:
        row: What was asked.
        core: What the reply ends with as its answer, or all of it.
        own: All that it says.
    """
    if _IGNORANT.fullmatch(folded(own)) is not None:
        return True
    said = _value(core)
    wanted = [_value(str(answer)) for answer in row.accepted]
    if said is None or _is_in_another_unit(row, core):
        return False
    return all(
        one is not None and not any(_is_near(mine, theirs) for mine in said.values for theirs in one.values)
        for one in wanted
    )


def _is_in_another_unit(row: ShortRow, core: str) -> bool:
    """Return whether a bare number has a unit that is not the question's, nor that of an accepted answer.

    Such a number may be the right one all the same: `173 °F` for 78.4 degrees Celsius.
    """
    said = quantity(core.strip(" .*_`"))
    known = [asked_unit(lowered(row.question)), *(_unit(str(answer)) for answer in row.accepted)]
    return said is not None and said[1] not in known


def _unit(text: str) -> Unit | None:
    amount = quantity(text)
    return None if amount is None else amount[1]


def _is_in_asked_unit(row: ShortRow, core: str) -> bool:
    """Return whether a bare number is of the unit, or the percentage, that was asked for, or has none."""
    said, asked = quantity(core.strip(" .*_`")), asked_unit(lowered(row.question))
    if said is not None and asked is not None and said[1] != asked:
        return False
    if said is not None and asked is None:
        return any(quantity(str(answer)) is not None for answer in row.accepted)
    if all("/" in str(answer) for answer in row.accepted) and "/" not in core:
        return False
    is_share = _SHARE.search(lowered(core)) is not None
    wants = _ASKS_FOR_SHARE.search(lowered(row.question)) is not None
    return (is_share == any(_SHARE.search(str(answer)) is not None for answer in row.accepted)) or (
        is_share and wants
    )


def _value(text: str) -> Number | None:
    """Return the number that a text is, alone or with a unit that is known; None for any other."""
    number = only_number(text.strip(" .*_`"))
    if number is not None:
        return number
    amount = quantity(text.strip(" .*_`"))
    if amount is not None:
        return amount[0]
    low = lowered(text).strip(" .*_`")
    in_words = next(iter(number_words(low)), None)
    return in_words if in_words is not None and in_words.start == 0 and in_words.end == len(low) else None


def _is_near(mine: Fraction, theirs: Fraction) -> bool:
    """Return whether two numbers may be one: rounded, or with a dot, a percent sign or a scale read otherwise."""
    for scale in _SCALES:
        gap, size = abs(mine * scale - theirs), abs(theirs)
        rounded = scale != 1 or mine.denominator != 1 or theirs.denominator != 1
        if gap == 0 or (rounded and gap <= size * _NEAR):
            return True
    return mine != 0 and (theirs - mine) % 100 == 0 and abs(mine) < 100 <= abs(theirs)


def _is_one_number(row: ShortRow, low: str, values: Sequence[Number]) -> bool:
    """Return whether a reply is a sentence of the question's words about one number."""
    given = {value.values[0] for value in numbers(row.question)}
    own = {value.values[0] for value in values} - given
    return len(own) == 1 and _is_of_question(row, re.sub(r"[\d.,%$€£]+", " ", low), 3)


def _is_said_of_question(row: ShortRow, text: str, answer: str) -> bool:
    """Return whether a reply says that the question's words are the answer, or the other way round."""
    if next(whole_places(folded(row.question), answer), None) is not None:
        return False
    lead = text[: -len(answer)] if text.endswith(answer) else None
    if lead is not None and _SAYS.fullmatch(lead) is not None:
        return _is_of_question(row, lead, 0)
    if text.startswith(answer) and _BEHIND.match(text, len(answer)) is not None:
        return _is_of_question(row, text[len(answer) :], 0)
    return False


def _is_of_question(row: ShortRow, text: str, most: int) -> bool:
    """Return whether a text has no words but small ones and the question's; `most` letters are a unit."""
    asked = set(words(lowered(row.question)))
    stems = asked_stems(row.question)
    return all(
        word in _FILLER or word in asked or len(word) <= most or any(word.startswith(stem) for stem in stems)
        for word in words(text)
    )

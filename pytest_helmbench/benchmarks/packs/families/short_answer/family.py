"""short_answer: a question with accepted answers; the answer that the reply states must be one of them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from types import MappingProxyType
from typing import ClassVar

from pytest_helmbench.benchmarks.packs.families.text.text_family import (
    ENDING_JSON,
    AnswerFinding,
    ProofReply,
    TextFamily,
    echoes,
    focused_text,
    given_texts,
    holds,
    no_statement,
    normalised,
    reasoned_answer,
    right_replies,
    shown,
    stripped,
)
from pytest_helmbench.benchmarks.packs.format.prompt_template import PromptTemplate, field_text
from pytest_helmbench.benchmarks.packs.format.row_fields import (
    Field,
    Fields,
    earlier_messages,
    text_or_object,
)
from pytest_helmbench.benchmarks.packs.task import PackRule, PackTask
from pytest_helmbench.core.json_types import JsonObject, JsonValue, is_number
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.field_values import RowFaults, check_number, check_text, kind_of
from pytest_helmbench.judging.comparisons.amounts import (
    Amount,
    amount,
    is_unit,
    moment,
    names_unit,
    same_unit,
)
from pytest_helmbench.judging.comparisons.plain import (
    folded,
    is_several,
    plain,
    takes_back,
    without_label,
    words_of,
)
from pytest_helmbench.judging.comparisons.stated import Stated, end_of, stated_answer
from pytest_helmbench.judging.rubric import Criterion

_RUBRIC = (
    "The reply passes when the one answer that it settles on is one of the accepted answers, in whatever words, unit "
    "or way of writing. What it denies, takes back, quotes as an error or says of something else is not its answer. "
    "One that settles on none, on another one or on several fails; so does a number in a unit or a form that the "
    "question does not ask for, where it asks for one."
)
MOST_BITS = 13_000
"""Most bits of an integer: Python writes no longer one as digits."""
_YES_NO = {"yes": True, "no": False, "true": True, "false": False}
_HEAD = re.compile(
    r"(?P<head>[^,;]+?)(?:,\s|\s-\s|;\s|\s(?=which|who|because|since))"
    r"(?P<rest>(?:which|who|whose|where|when|because|since|as|an?|in|on|at|by|from|with|of|for|it|this|that|based|located|known)\s.*)"
)
_FORMS = re.compile(
    r"(?<!\w)(?:fraction|decimal|percent|percentage|simplif\w*|lowest terms|ratio|round\w*)(?!\w)",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"(?<!\w)(?:percent|percentage|per cent)(?!\w)", re.IGNORECASE)
_YEAR = re.compile(r"1\d{3}|20\d\d")
_COMMA = re.compile(r",(?!\d)")
_MONEY = frozenset("$€£¥")
_SCALED = re.compile(r"(?<!\w)(?:million|billion)s?(?!\w)", re.IGNORECASE)
_LONGEST_STATEMENT = 300
_MOST_YES_NO_WORDS = 6
_NEVER_TAKEN_OFF = {*_YES_NO, "not"}
_CUE = re.compile(r"(?:final\s++answer|answer)\s*(?:is)?\s*[:\-]?\s*(.+)$", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)")
_Comparison = tuple[str | None, bool]
"""How a statement was compared, and whether it passes; None where it decides nothing."""
_UNDECIDED: _Comparison = (None, False)
_folded = lru_cache(maxsize=2048)(folded)
_amount = lru_cache(maxsize=2048)(amount)
_moment = lru_cache(maxsize=2048)(moment)


def _accepted(faults: RowFaults, where: str, value: JsonValue) -> None:
    if value == []:
        faults.error(where, "the list is empty")
    elif not isinstance(value, list):
        faults.error(where, f"this is {kind_of(value)}, not a list")
    for number, item in enumerate(value if isinstance(value, list) else (), start=1):
        if not (isinstance(item, str) and item.strip()) and not is_number(item):
            faults.error(
                where, f"entry {number} is {kind_of(item)}, not text or a number", "write it as text"
            )
        elif isinstance(item, int) and item.bit_length() > MOST_BITS:
            faults.error(where, f"entry {number} is a number of thousands of digits", "write it as text")


class ShortAnswer(TextFamily):
    """Rows whose answer is a few words or a number."""

    name = "short_answer"
    input_fields: ClassVar[Fields] = {
        "question": Field(check_text, required=True),
        "answer_format": Field(text_or_object),
        "context": Field(text_or_object),
        "messages": Field(earlier_messages),
    }
    eval_fields: ClassVar[Fields] = {
        "accepted_answers": Field(_accepted, required=True),
        "tolerance": Field(partial(check_number, low=0)),
    }
    answer_field = "accepted_answers"
    answer_forms = MappingProxyType({"json": ENDING_JSON.format(what="the answer alone"), "text": ""})
    template = PromptTemplate(
        __package__,
        values={field: field_text(field) for field in ("context", "question", "answer_format")},
        needed=("question",),
    )

    def response_format(self, _task: PackTask, form: str) -> JsonObject | None:
        return reasoned_answer() if form == "json" else None

    def finding(self, given: JsonObject, wanted: JsonObject, reply: str, *, parity: bool) -> AnswerFinding:
        row = short_row(given, wanted)
        return parity_short(row, reply) if parity else read_short(row, reply)

    def reading(self, rule: PackRule) -> Criterion:
        row = short_row(rule.task.public(), rule.task.evaluation())
        lines = [_RUBRIC, "Accepted answers:\n" + "\n".join(f"- {answer}" for answer in row.accepted)]
        if row.tolerance is not None:
            lines.append(f"A number may differ from an accepted one by {row.tolerance}.")
        return Criterion("", "\n\n".join(lines), ("PASS", "FAIL"), ("PASS",))

    def advice(self, hidden: JsonObject) -> str | None:
        accepted = hidden.get("accepted_answers")
        only = accepted[0] if isinstance(accepted, list) and len(accepted) == 1 else None
        if not isinstance(only, str) or len(only.split()) == 1:
            return None
        return "only one accepted answer, of several words: list the other ways of writing it in accepted_answers"

    def own_proofs(self, given: JsonObject, wanted: JsonObject) -> Iterator[ProofReply]:
        for number, answer in enumerate(short_row(given, wanted).accepted, 1):
            yield from right_replies(f"accepted answer {number}", str(answer))
        yield from echoes(given, "question")


@dataclass(frozen=True, slots=True)
class ShortRow:
    """A row of short_answer.

    Args:
        given: What the model was shown, long texts first: context, question, answer format.
        question: With the format of its answer, if it names one.
        accepted: As written.
        tolerance: At least 0; None for none.
        texts: The accepted answers as texts, and the answers that they state: `42` of `Answer: 42`.
    """

    given: tuple[str, ...]
    question: str
    accepted: tuple[str | int | float, ...]
    tolerance: float | None
    texts: tuple[str, ...]


def short_row(given: JsonObject, wanted: JsonObject) -> ShortRow:
    """Read `input` and `eval` of a short_answer row."""
    accepted, tolerance = wanted.get("accepted_answers"), wanted.get("tolerance")
    answers = (
        tuple(answer for answer in accepted if isinstance(answer, str) or is_number(answer))
        if isinstance(accepted, list)
        else ()
    )
    question, form = stripped(given.get("question")), given.get("answer_format")
    asked = form if isinstance(form, str) else json.dumps(form) if form else ""
    texts = [str(answer) for answer in answers]
    marked = [stated.text for stated in map(stated_answer, texts) if stated.marked]
    return ShortRow(
        given=given_texts(given.get("context"), question, stripped(form)),
        question=f"{question}\n{asked}" if asked else question,
        accepted=answers,
        tolerance=float(tolerance) if is_number(tolerance) else None,
        texts=(*texts, *marked),
    )


def read_short(row: ShortRow, reply: str) -> AnswerFinding:
    """Judge a short_answer reply by its words."""
    stated = stated_answer(reply)
    if _is_verbatim(reply, row):
        return AnswerFinding(True, "equal", statement=shown(stated.text or reply))
    finding = no_statement(reply, stated, row.given)
    if finding is not None:
        return finding
    statement = shown(stated.text)
    if len(stated.text) > _LONGEST_STATEMENT and len(stated.parts) == 1:
        return AnswerFinding(False, statement=statement, certain=False)
    how, passed = _read_stated(stated, row)
    if how is not None:
        return AnswerFinding(passed, how, statement=statement)
    holds = _holds(stated.text, row)
    return AnswerFinding(holds, "holds" if holds else None, statement=statement, certain=False)


def _read_stated(stated: Stated, row: ShortRow) -> _Comparison:
    """Return how the stated answer was compared and whether it passes; None where words do not decide."""
    if _equals(stated.text, row) or (stated.tail and _equals(stated.tail, row)):
        return "equal", True
    first, *others = stated.parts
    if takes_back(folded(" ".join(others))):
        return _UNDECIDED
    return _statement(first, row)


def _is_verbatim(reply: str, row: ShortRow) -> bool:
    """Return whether a reply is an accepted answer as written, alone or behind `Answer:`."""
    said = end_of(reply)
    forms = {said, said.removeprefix("Answer:").strip(), said.rpartition("\nAnswer:")[2].strip()}
    if any(text.strip() in forms for text in row.texts):
        return True
    low = folded(said)
    return bool(low) and low in map(_folded, row.texts)


def _equals(text: str, row: ShortRow) -> bool:
    """Return whether a text is an accepted answer, or a list of the same members."""
    said = _COMMA.sub("", folded(text))
    if not said:
        return False
    if any(_COMMA.sub("", _folded(answer)) == said for answer in row.texts):
        return True
    ordered = "order" in words_of(_folded(row.question))
    members = _members(text, ordered=ordered)
    return any(_members_of_accepted(answer, ordered=ordered) == members for answer in row.texts)


def _holds(statement: str, row: ShortRow) -> bool:
    """Return whether a statement of one thing has an accepted name among its words, or is the end of one: a surname."""
    low = folded(without_label(statement))
    names = [
        words_of(name)
        for answer in row.texts
        if len(name := _folded(answer)) > 1 and name.replace(" ", "").isalpha()
    ]
    said, whole = words_of(low), words_of(folded(statement))
    if not said or is_several(low):
        return False
    return any(_is_run(name, whole) or (said[-1] == name[-1] and set(said) < set(name)) for name in names)


def _statement(text: str, row: ShortRow) -> _Comparison:
    """Return the verdict on one statement. Any of its forms may pass, all must fail."""
    found = [read for form in _forms(text, row) if (read := _compared(form, row))[0] is not None]
    return next((read for read in found if read[1]), found[-1] if found else _UNDECIDED)


def _forms(statement: str, row: ShortRow) -> Iterator[str]:
    """Yield what a statement may come to: itself, without asides and label, what `=` leads to, its own words alone."""
    bare = without_label(statement)
    head = _HEAD.fullmatch(bare)
    if head is not None and not takes_back(folded(head["rest"])):
        bare = head["head"]
    result = bare.rpartition("=")[2]
    parts = [] if is_several(folded(bare)) else [bare, result, *result.split("≈")]
    own = [_own_words(part, row) for part in parts]
    yield from dict.fromkeys(form for form in (statement, bare, *parts, *own) if form.strip())


def _own_words(statement: str, row: ShortRow) -> str:
    """Return a folded statement without words of the question, but for those of an accepted answer."""
    answers = [words_of(_folded(answer)) for answer in row.texts]
    asked = words_of(_folded(row.question))
    if any(answer and _is_run(answer, asked) for answer in answers):
        return statement  # the question offers the answer
    gone = set(asked) - {word for answer in answers for word in answer} - _NEVER_TAKEN_OFF
    kept: list[str] = []
    for word in folded(statement).split():
        bare = next(iter(words_of(word)), word)
        counted = bool(kept) and kept[-1][-1:].isdigit() and is_unit(bare)
        if counted or bare not in gone:
            kept.append(word)
    return " ".join(kept)


def _is_run(part: Sequence[str], whole: Sequence[str]) -> bool:
    return any(whole[at : at + len(part)] == part for at in range(len(whole) - len(part) + 1))


def _compared(form: str, row: ShortRow) -> _Comparison:
    """Return the verdict on one form of a statement."""
    if _equals(form, row):
        return "equal", True
    for how, passed in (
        ("yes_no", _as_yes_no(folded(form), [_folded(answer) for answer in row.texts])),
        ("number", _as_number(form, row)),
        ("date", _as_moment(form, row)),
    ):
        if passed is not None:
            return how, passed
    return _UNDECIDED


def _members(text: str, *, ordered: bool) -> list[str]:
    """Return the members of a list, in the order in which they stand or by the alphabet."""
    low = plain(text).casefold()
    parts = [folded(part) for part in re.split(r",?\s+and\s+|\s*[,;\n]\s*(?!\d{3})|\s*&\s*", low)]
    return parts if ordered else sorted(parts)


_members_of_accepted = lru_cache(maxsize=2048)(_members)


def _as_yes_no(said: str, accepted: Sequence[str]) -> bool | None:
    wanted = {_YES_NO[word] for word in accepted if word in _YES_NO}
    words = words_of(said)
    said_words = {_YES_NO[word] for word in words if word in _YES_NO}
    if len(wanted) != 1 or len(said_words) != 1 or "but" in words:
        return None
    opens = words[0] in _YES_NO and (len(words) == 1 or re.match(r"\w+\s*[,.;:!-]", said))
    if not opens and not (words[-1] in _YES_NO and len(words) < _MOST_YES_NO_WORDS):
        return None
    return said_words == wanted


def _as_number(form: str, row: ShortRow) -> bool | None:
    wanted = [_amount(answer) for answer in row.texts]
    said = amount(form) if any(wanted) else None
    if said is None:
        return None
    found = [_agrees(said, answer, row) for answer in wanted if answer is not None]
    if True in found:
        return True
    return False if all(wanted) and None not in found else None


def _agrees(said: Amount, wanted: Amount, row: ShortRow) -> bool | None:
    """Return whether a number is the wanted one; None where unit, form or precision do not allow to say so."""
    if not _same_kind(said, wanted, row):
        return None
    asked = _PERCENT.search(row.question) is not None
    a = said.value / 100 if said.percent and not wanted.percent and not asked else said.value
    b = wanted.value / 100 if wanted.percent and not said.percent and not asked else wanted.value
    if abs(a - b) <= (row.tolerance or 0.0):
        other_form = (said.fraction, said.percent) != (wanted.fraction, wanted.percent)
        return None if other_form and not asked and _FORMS.search(row.question) else True
    if _rounds(a, b) or _rounds(b, a) or (said.percent != wanted.percent and a in (100 * b, b / 100)):
        return None
    scaled = _SCALED.search(row.question) and a in (10**6 * b, 10**9 * b)
    return None if scaled or a in (1000 * b, b / 1000) else False


def _rounds(exact: Fraction, short: Fraction) -> bool:
    """Return whether a number, rounded, is another one of fewer digits."""
    digits = str(short.numerator) if short.denominator == 1 else f"{float(short):.12g}"
    places = len(digits.partition(".")[2]) if "." in digits else len(digits.rstrip("0")) - len(digits)
    return short != 0 and round(exact, places) == short


def _same_kind(said: Amount, wanted: Amount, row: ShortRow) -> bool:
    """Return whether two amounts have one unit: the same, or one that the question asks for in the place of none."""
    if same_unit(said.unit, wanted.unit):
        return True
    unit = said.unit or wanted.unit
    return not (said.unit and wanted.unit) and (
        unit in _MONEY & set(row.question) or names_unit(words_of(folded(row.question)), unit)
    )


def _as_moment(form: str, row: ShortRow) -> bool | None:
    wanted = [at for answer in row.texts if (at := _moment(plain(answer))) is not None]
    years = [int(answer) for answer in row.texts if _YEAR.fullmatch(answer)]
    said = moment(plain(form)) if wanted or years else None
    if said is None:
        return None
    if years and len(years) == len(row.texts) and len(said) == 3 and said[0] is not None:
        return said[0] in years
    if not wanted or len(said) != len(wanted[0]):
        return None
    if said in wanted:
        return True
    known = all(None not in at for at in (said, *wanted)) and len(wanted) == len(row.texts)
    return False if known else None


def parity_short(row: ShortRow, reply: str) -> AnswerFinding:
    """Judge a short_answer reply by the published rule."""
    whole, focused = reply.strip(), focused_text(reply, _CUE)
    for form in (whole, focused) if focused != whole else (whole,):
        found = _first_accepted(form, row) if form else None
        if found is not None:
            return AnswerFinding(passed=True, strategy=found[1], matched=found[0], statement=shown(form))
    return AnswerFinding(passed=False, statement=shown(focused), reason=None if whole else "empty")


def _first_accepted(form: str, row: ShortRow) -> tuple[int, str] | None:
    number, text, near = _number(form), normalised(form), row.tolerance
    for index, answer in enumerate(row.accepted):
        wanted = _number(answer)
        known = near is not None and number is not None and wanted is not None
        if known and math.isclose(number or 0.0, wanted or 0.0, abs_tol=near or 0.0):
            return index, "numeric_tolerance"
        wanted_text = normalised(str(answer))
        if text == wanted_text:
            return index, "normalized_exact"
        if wanted_text and holds(text, wanted_text):
            return index, "answer_span"
    return None


def _number(value: str | int | float) -> float | None:
    if not isinstance(value, str):
        try:
            return float(value)
        except OverflowError:  # an integer of hundreds of digits
            return math.inf if value > 0 else -math.inf
    found = _NUMBER.search(value.replace(",", ""))
    return None if found is None else float(found[0])


FAMILY = ShortAnswer()

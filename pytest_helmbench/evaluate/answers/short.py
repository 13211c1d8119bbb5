"""short_answer, default rule: whether the final statement of a reply is an accepted answer.

The final statement is what the last announcement (`Final answer:`, `The answer is`, `\\boxed{}`, JSON) announces; else
the last line; else the whole reply when it is short. Around that, where the specification is silent:

* Polite closings are no last line. The only bold words of a reply, or a first line that is nothing but a value, are
  read before the last line. Lines that are all bare values are a list.
* A reply that is an accepted answer word for word passes, whatever else could be said about it.
* Numbers: the last one of the statement, but neither what stands in brackets behind it nor what follows `because`,
  `since`, `out of` and the like. Equal is equal in value (`3/4`, `0.75`, `75 %`); `50 %` is 50 or 0.5, `1.5 million`
  1,500,000 or 1.5. A range, or a number joined to another by `and`, `or`, is a list. Number words are no numbers.
* An accepted answer that is a number is compared as a number, never as a piece of text, so 42 is not 42.5. One with a
  unit (`12 km`) wants its unit unless the row has a tolerance; a unit behind the reply's number never hurts.
* A value beside the accepted one is harmless when the question names it (`Paris, France` where it asks about
  France), when it is accepted too, or begins with `a` or `an`.
* `yes` and `no` count only as first or last word.
* A statement quoted from the context counts while it is not much longer than the answer (20 words).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_helmbench.evaluate.answers.cues import Cue, CueKind, find_cues, lowered
from pytest_helmbench.evaluate.answers.denial import is_denied
from pytest_helmbench.evaluate.answers.echo import is_dump, without_passage
from pytest_helmbench.evaluate.answers.finding import AnswerFinding, shown
from pytest_helmbench.evaluate.answers.numbers import Number, from_value, numbers
from pytest_helmbench.evaluate.answers.plain import MARK, plain, spoken
from pytest_helmbench.evaluate.answers.rows import ShortRow
from pytest_helmbench.evaluate.answers.wording import comma_free, folded, sentences, unmarked, whole_places, words

__all__ = ["judge_short"]

_SHORT = 300
"""A reply up to this length is one statement when its last line says nothing."""
_BARE_WORDS = 6
_VALUE_WORDS = 4
_SPRAY_WORDS = 4
_TAIL = 2000
"""Characters of a statement, from its end, that numbers are looked for in."""

_CLOSING = re.compile(
    r"(?:i )?hopes? (?:this|that|it) helps|let me know|feel free|if you (?:have|need|want|would|'d)|is there anything|note:|"
    r"disclaimer|please (?:note|consult|let|verify)|sources?:|reference|confidence|best regards|thank|good luck|happy to|would you like|"
    r"do you (?:have|want|need)|anything else"
)
_GREETING = re.compile(
    r"(?:sure|certainly|of course|great question|good question|okay|ok|hello|hi|yes|absolutely|thank)\b[^\n]{0,60}[!:.,]?$"
)
_FUNCTION_WORDS = frozenset(
    "is are was were be been has have had do does did can could will would should may might must who which that because "
    "since as it they he she we you i this these there in on at by for from with after before during while when where "
    "into than then so not no if about whose won lost says said means ist sind war der die das ein eine und von im "
    "es est son la el los las le les des une un du une och är er och het een de è sono il gli в на это был была".split()
)
_JOINING = r"(?:and/or|and|or|und|oder|et|ou|y|o|e|и|или|as well as|nor)"
_SEPARATED = re.compile(
    rf"\s*[,;、，|]\s*(?:{_JOINING}\s+)?|\s+{_JOINING}\s+|\s*&\s*|(?<=[^\W\d]|§)\s*/\s*(?=[^\W\d]|§)|\s*(?:和|或|以及|及)\s*"
)
_OR_AFTER = re.compile(r"\s*,?\s*(?:or|oder|ou|или|或)\s*(?!(?:simply|rather|more|in other|else|so|just|less)\b)(?P<other>\S+)")
_OR_BEFORE = re.compile(r"(?P<other>\S+)\s*,?\s*(?:\bor|\boder|\bou|\bили|或)\s*(?:the\s|an?\s)?$")
_HEDGE = re.compile(r"(?<!\w)(?:could|might|may|possibly|perhaps|maybe)(?!\w)")
_NO_VALUE = frozenset(
    "correct right wrong incorrect clear obtained based found given derived simple simply because consistent supported "
    "provided not unclear unknown depends that in as to only therefore also shown explained as follows".split()
)
_NOUNS = frozenset(
    "answer antwort réponse reponse respuesta resposta risposta antwoord odpowiedź odpowiedz odpověď svar svaret vastaus "
    "cevap yanıt răspuns răspunsul válasz jawaban jawapan ответ відповідь отговор одговор απάντηση الإجابة الجواب إجابة "
    "תשובה התשובה उत्तर जवाब উত্তর 答案 答え 正解 解答 回答 정답 답 คำตอบ".split()
) | {"đáp án", "câu trả lời"}
_BETWEEN_ANSWERS = frozenset("and or also the final correct".split())
_WEAKER_NOUNS = frozenset("result solution conclusion lösung loesung solución solucion soluzione guess".split())
_LEFT = re.compile(r"(?P<left>.+?)\s+(?:is|are|was|would be|must be)\s+(?:(?:the|my|our|only|correct|right|final|best)\s*)*$", re.DOTALL)

_ASIDE = re.compile(r"(?<=[^\s(])\s*\([^()]*\)")
_EXPLANATION = re.compile(
    r"\s(?:because|since|when|where|which|if|after|before|given|due|using|at a|out of|per|compared|versus|rather than|instead of|"
    r"not|so that|weil|porque|parce que|потому|because of|as|for)\s|(?<=\S)\s*,?\s*因为"
)
_JOINED = re.compile(
    rf"\s*[^\W\d]{{0,12}}\s*(?:,?\s*(?:{_JOINING}|to|bis|until|through|up to)\s|-|~|/|&)\s*(?:[a-z]\s?=\s?)?[$€£¥]?\s*"
)
_COMMA = re.compile(r"\s*[^\W\d]{0,3}\s*[,;]\s*(?:[a-z]\s?=\s?)?[$€£¥]?\s*")
_CHANGE = re.compile(r"(?:increas|ris|rose|grow|grew|decreas|f[ae]ll|drop|chang|went|goes|go|rais|reduc|jump|climb)\w*[^.]{0,40}\sfrom\s")
_ONLY_VALUES = re.compile(r"[\s\d.,;/&$€£¥%()+-]|and|or|[a-z]\s?=")
_SUM_OF = re.compile(r"\s*[$€£]?[-+]?[\d.,]+\s*=\s*[\d\s.,()]*[-+*/×÷·][\d\s.,()+*/×÷·-]*\.?\s*")


@dataclass(frozen=True, slots=True)
class _Accepted:
    """One accepted answer, ready to be compared.

    Args:
        index: Of the answer.
        text: Folded.
        number: Its value when it is a number and nothing else; None else.
        near: The number that a tolerance concerns; None without tolerance or number.
    """

    index: int
    text: str
    number: Number | None
    near: Number | None


@dataclass(frozen=True, slots=True)
class _Statement:
    text: str
    alone: bool = False
    """No other statement of the reply counts beside it."""


def judge_short(row: ShortRow, reply: str) -> AnswerFinding:
    """Judge a short_answer reply by the default rule."""
    text = spoken(reply)
    if not text.strip():
        return AnswerFinding(passed=False, reason="empty")
    accepted = _prepared(row)
    whole = folded(text) if len(text) <= 4 * max(len(answer.text) for answer in accepted) + 200 else ""
    for answer in accepted:
        if whole and comma_free(whole) == comma_free(answer.text):
            return AnswerFinding(
                passed=True, strategy="normalized_exact", matched=answer.index, statement=shown(text)
            )
    own = text
    for passage in row.given:
        own = without_passage(own, passage)
    if not own.strip() or is_dump(text, row.context):
        return AnswerFinding(passed=False, statement=shown(text), reason="echo")
    return _judged(row, accepted, own)


def _judged(row: ShortRow, accepted: Sequence[_Accepted], own: str) -> AnswerFinding:
    statements = _statements(own)
    reason = None if statements else "no_statement"
    for statement in statements:
        if _is_echo(statement.text, row, accepted):
            reason = "echo"
            continue
        met = _met(statement.text, row, accepted)
        if isinstance(met, str):
            reason = met
        elif met is not None:
            return AnswerFinding(passed=True, strategy=met[1], matched=met[0], statement=shown(statement.text))
        if statement.alone:
            break
    first = statements[0].text if statements else own
    return AnswerFinding(passed=False, statement=shown(first), reason=reason)


def _prepared(row: ShortRow) -> tuple[_Accepted, ...]:
    prepared = []
    for index, answer in enumerate(row.accepted):
        number = from_value(answer)
        near = number
        if row.tolerance is None:
            near = None
        elif number is None and isinstance(answer, str):
            found = [*numbers(plain(answer))]
            near = found[-1] if len(found) == 1 else None
        prepared.append(_Accepted(index, folded(str(answer)), number, near))
    return tuple(prepared)


def _statements(own: str) -> list[_Statement]:
    """Return the texts that may be the final statement, those that go first first."""
    text = plain(own)
    low = lowered(text)
    announced = _announced(text, low)
    if announced:
        return [_Statement(announced, alone=True)]
    lines = [line.strip() for line in unmarked(text).splitlines() if line.strip()]
    while len(lines) > 1 and _CLOSING.match(lowered(lines[-1]).lstrip("*_( ")) is not None:
        lines.pop()
    while len(lines) > 1 and _GREETING.match(lowered(lines[0])) is not None:
        lines.pop(0)
    if not lines:
        return []
    bare = [_is_bare(line) for line in (lines[0], lines[-1])]
    if len(lines) > 1 and all(_is_bare(line) for line in lines):
        return [_Statement(", ".join(lines), alone=True)]
    statements = [_Statement(bold) for bold in _only_bold(own)]
    if bare[1]:
        statements.append(_Statement(lines[-1], alone=_is_value(lines[-1])))
    if bare[0] and len(lines) > 1:
        statements.append(_Statement(lines[0], alone=_is_value(lines[0])))
    if not bare[1]:
        statements.append(_Statement(lines[-1]))
    whole = " \n".join(lines)
    if len(lines) > 1 and len(whole) <= _SHORT:
        statements.append(_Statement(whole))
    return statements


def _announced(text: str, low: str) -> str:
    """Return what the last announcement announces; announcements side by side are one. Empty for none."""
    found: list[tuple[int, int, int]] = []
    weaker: list[tuple[int, int, int]] = []
    for cue in find_cues(low):
        span = _span(text, low, cue)
        if span is None:
            continue
        kind = weaker if cue.word in _WEAKER_NOUNS else found
        if kind and kind[-1][0] == cue.start and cue.kind is not CueKind.BARE:
            continue  # a second verb of the same announcement
        kind.append((cue.start, *span))
    spans = found or weaker
    if not spans:
        return ""
    begin, start, end = spans[-1]
    said = unmarked(text[start:end]).strip()
    if len(spans) > 1 and 0 <= begin - spans[-2][2] < 40:
        _, earlier_start, earlier_end = spans[-2]
        between = words(low[earlier_end:begin])
        if all(word in _BETWEEN_ANSWERS for word in between):
            joint = "or" if "or" in between else "and"
            return f"{unmarked(text[earlier_start:earlier_end]).strip()} {joint} {said}"
    return said


def _span(text: str, low: str, cue: Cue) -> tuple[int, int] | None:
    """Return where the value begins and ends that a cue announces; None when it announces none."""
    if cue.kind is CueKind.MARK:
        stop = len(text) if cue.stop is None else cue.stop
        content = text[cue.end : stop].strip()
        return (cue.end, stop) if content else None
    if cue.kind is CueKind.VERB:
        if not low.startswith("i", cue.start):
            return None
    elif cue.word not in _NOUNS and cue.word not in _WEAKER_NOUNS:
        return None
    if cue.kind is CueKind.BARE:
        return _left_span(text, low, cue)
    start = cue.end
    while start < len(text) and text[start] in " \t\n\"'.:,)*|-=" and not _is_sign(text, start):
        start += 1
    line_end = text.find("\n", start)
    line = text[start : line_end if line_end >= 0 else len(text)]
    first = next(iter(sentences(line)), "")
    leading = words(lowered(first[:60]))
    if not first or (not cue.heading and (first.endswith("?") or (leading and leading[0] in _NO_VALUE))):
        return None
    return start, start + line.find(first) + len(first)


def _is_sign(text: str, place: int) -> bool:
    return text[place] in "-." and text[place + 1 : place + 2].isdigit()


def _left_span(text: str, low: str, cue: Cue) -> tuple[int, int] | None:
    """Return the span of X in `X is the answer`."""
    before = text[max(0, cue.start - 400) : cue.start]
    begin = max(before.rfind("\n"), before.rfind(". "), before.rfind(MARK)) + 1
    after = low[cue.end : cue.end + 2].strip()
    found = _LEFT.fullmatch(before[begin:])
    if found is None or (after and after[0] not in ".,;!)\n\"'"):
        return None
    start = cue.start - len(before) + begin
    return start, start + found.end("left")


def _is_bare(line: str) -> bool:
    """Return whether a line is a value without a sentence around it."""
    if line.endswith((":", "?")) or len(line) > 120:
        return False
    found = words(lowered(line))
    return 0 < len(found) <= _BARE_WORDS and not any(word in _FUNCTION_WORDS for word in found) and "=" not in line


def _is_value(line: str) -> bool:
    return from_value(line.strip(" .")) is not None or (
        next(numbers(line), None) is not None and len(words(line)) <= 3
    )


_BOLD = re.compile(r"\*\*([^*\n]{1,80})\*\*|__([^_\n]{1,80})__")


def _only_bold(own: str) -> Iterator[str]:
    spans = {(found[1] or found[2]).strip() for found in _BOLD.finditer(own)}
    if len(spans) == 1:
        span = spans.pop()
        if not span.endswith((":", "?")) and len(words(span)) <= 8:
            yield plain(span)


def _is_echo(statement: str, row: ShortRow, accepted: Sequence[_Accepted]) -> bool:
    """Return whether a statement only repeats the question, or quotes the context at length."""
    text = folded(statement)
    if any(text == answer.text for answer in accepted):
        return False
    if statement.rstrip().endswith("?") and len(list(sentences(statement))) == 1:
        return True
    if len(words(text)) > 3 and text in folded(row.question):
        return True
    longest = max(len(words(answer.text)) for answer in accepted)
    if len(words(text)) <= max(20, 2 * longest):
        return False
    return any(text in folded(context) for context in row.context)


def _met(statement: str, row: ShortRow, accepted: Sequence[_Accepted]) -> tuple[int, str] | str | None:
    """Return the accepted answer that a statement meets and how; a reason, or None, when it meets none."""
    text = folded(statement)
    number = _last_number(statement)
    several = isinstance(number, str)
    listed: bool | None = None
    for answer in accepted:
        if comma_free(text) == comma_free(answer.text):
            return answer.index, "normalized_exact"
        if isinstance(number, Number):
            if answer.near is not None and row.tolerance is not None and answer.near.equals(number, row.tolerance):
                return answer.index, "numeric_tolerance"
            if answer.number is not None and answer.number.equals(number):
                return answer.index, "numeric_exact"
        if answer.number is None and _occurs(text, answer.text) and _is_no_pronoun(statement, row.accepted[answer.index]):
            listed = _is_list(text, row, accepted) if listed is None else listed
            if not listed:
                return answer.index, "answer_span"
    return "several" if listed or several else None


def _last_number(statement: str) -> Number | str | None:
    """Return the number a statement ends in; `several` when it is one of a list, None for none or a denied one."""
    text = statement[-_TAIL:]
    low = lowered(text)
    if _SUM_OF.fullmatch(low) is not None:
        low = low.partition("=")[0]
    without_asides = _ASIDE.sub("", low)
    if next(numbers(without_asides), None) is not None:
        low = without_asides
    first = next(numbers(low), None)
    if first is None:
        return None
    explained = _EXPLANATION.search(low, first.end)
    if explained is not None:
        low = low[: explained.start()]
    found = [number for number in numbers(low) if not number.uncertainty]
    if not found:
        return None
    last = found[-1]
    if len(found) > 1 and not last.equals(found[-2]) and _is_joined(low, found):
        return "several"
    return None if is_denied(low, last.start, last.end) else last


def _is_joined(low: str, found: Sequence[Number]) -> bool:
    """Return whether the last number stands in a list or a range with the one before it."""
    between = low[found[-2].end : found[-1].start]
    if _JOINED.fullmatch(between) is not None:
        return " to " not in between or _CHANGE.search(low, 0, found[-2].start) is None
    if _COMMA.fullmatch(between) is None:
        return False
    if not _ONLY_VALUES.sub("", low).strip():
        return True
    return len(found) > 2 and _COMMA.fullmatch(low[found[-3].end : found[-2].start]) is not None


def _occurs(text: str, answer: str) -> bool:
    """Return whether a folded text says a folded answer, and does not deny it."""
    if answer in _YES_AND_NO:
        said = words(text)
        if not said or any(word in _YES_AND_NO and word != answer for word in said[:4]):
            return False
        return answer in (said[0], said[-1])
    if len(answer) == 1 and answer in "aio":
        return False
    places = [*whole_places(text, answer)] or [*whole_places(comma_free(text), comma_free(answer))]
    return any(not is_denied(text, start, end) for start, end in places[:50])


def _is_no_pronoun(statement: str, answer: str | int | float) -> bool:
    """Return whether a capital abbreviation that reads like a small word (`US`, `IT`, `WHO`) stands there in capitals."""
    letters = re.sub(r"[^\w]", "", str(answer))
    if letters.lower() not in _SMALL_WORDS or not letters.isupper() or len(letters) < 2:
        return True
    return re.search(rf"(?<!\w){r'.?'.join(letters)}(?!\w)", statement.replace(".", "")) is not None


_SMALL_WORDS = _FUNCTION_WORDS | frozenset("us me am to go or an of all out up any her him his".split())
_YES_AND_NO = frozenset("yes no ja nein oui non sí si não sim да нет".split())


def _is_list(text: str, row: ShortRow, accepted: Sequence[_Accepted]) -> bool:
    """Return whether a folded text names other values beside an accepted one: a list, alternatives, a spray."""
    masked = text
    for answer in sorted(accepted, key=lambda answer: -len(answer.text)):
        for start, end in reversed([*whole_places(masked, answer.text)][:50]):
            masked = f"{masked[:start]}§{masked[end:]}"
    question = folded(row.question)
    asked = frozenset(words(question))
    named = any(next(whole_places(question, answer.text), None) is not None for answer in accepted)
    elements = [element.strip(" .'\"()") for element in _SEPARATED.split(masked) if element.strip(" .'\"()")]
    others = [element for element in elements if "§" not in element]
    if others and all(_is_valuelike(element) for element in elements):
        return any(named or not _qualifies(element, asked) for element in others)
    place = masked.find("§")
    after = _OR_AFTER.match(masked, place + 1)
    before = _OR_BEFORE.search(masked, max(0, place - 60), place)
    if any(found is not None and "§" not in found["other"] for found in (after, before)):
        return True
    said = [sentence for sentence in sentences(masked) if _HEDGE.search(sentence) is not None]
    if len(said) > 1 and any("§" in sentence for sentence in said) and any("§" not in sentence for sentence in said):
        return True
    return _is_spray(masked, asked)


def _is_valuelike(element: str) -> bool:
    found = words(element.replace("§", ""))
    return len(found) <= _VALUE_WORDS and not any(word in _FUNCTION_WORDS for word in found)


def _qualifies(element: str, asked: frozenset[str]) -> bool:
    """Return whether an element only describes the value beside it: words of the question, or `a city`."""
    return element.startswith(("a ", "an ")) or all(word in asked or word == "the" or word == "of" for word in words(element))


def _is_spray(masked: str, asked: frozenset[str]) -> bool:
    """Return whether words are strung together without any that make a sentence."""
    said = words(masked.replace("§", ""))
    if any(word in _FUNCTION_WORDS or word in ("the", "of", "to", "and") for word in said):
        return False
    return len([word for word in said if word not in asked]) >= _SPRAY_WORDS and not re.search(r"[.,:;(\"-]", masked)

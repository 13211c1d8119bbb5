"""multiple_choice, default rule: which choice a reply settles on.

A reply makes **statements**: a marked place (`\\boxed{C}`, `<answer>`, JSON), an announcement (`The answer is C`,
`I'd go with C`, `C is the correct answer`), a first or last line that is a letter or a choice. The last statement
wins; only when there is none do weaker signs count: a conclusion (`so C.`), a verdict (`C is correct`), a guess
(`it could be C`), at last the only choice that a short reply mentions.

Where the specification is silent:

* Two statements that differ are two answers when nothing stands between them, or when both call themselves final
  and nothing takes the first back. Otherwise the later one is a correction.
* One statement that names several choices (`B or C`, `A, B, C, D`) names none, also where the pack accepts both.
* A letter with the text of another choice (`B) Paris` where Paris is C) names both.
* A letter wins over a choice that consists of another letter. Choices with the same text are one.
* A guess alone counts (`It could be B`); a question, a condition, a negated choice does not.
* A reply that repeats the question and all choices has said nothing by it.
* Capital letters that look like Latin ones (`Ответ: В`) count as these.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pytest_helmbench.bench.pack import ConfigError
from pytest_helmbench.evaluate.answers.cues import MOST_CUES, Cue, CueKind, find_cues, lowered, retraction
from pytest_helmbench.evaluate.answers.denial import is_denied
from pytest_helmbench.evaluate.answers.echo import without_listing, without_passage
from pytest_helmbench.evaluate.answers.finding import AnswerFinding, shown
from pytest_helmbench.evaluate.answers.labels import Choices, Picks, folded_choice, label_class, read_picks
from pytest_helmbench.evaluate.answers.plain import MARK, MARK_END, plain, spoken
from pytest_helmbench.evaluate.answers.rows import ChoiceRow
from pytest_helmbench.evaluate.answers.wording import sentences

__all__ = ["judge_choice"]

# The replies of most models: a letter, with or without an announcement, and nothing else.
_ALONE = re.compile(
    r"[\s*_(\[\"'`$#]*(?i:(?:the\s)?(?:(?:correct|final|best|right)\s)*(?:answer|choice|option)(?:\sis)?(?=\W)[\s*_:]*)?"
    r"[*_(\[\"'`$]*([A-Za-z])[\s*_)\]\"'`$.:]*"
)
_EDGE = " \t\r\n\"'.,;:!*"
_MARKS = re.compile(f"[{MARK}{MARK_END}]")
_HEDGE = re.compile(r"(?<!\w)(?:could|might|may|can|perhaps|possibly|maybe)(?!\w)")
_SHORT = 400
"""A reply or last line up to this length may answer by mere mention."""
_HEADING_CONTENT = 60
"""What follows `Answer:` and names no choice is still an answer, and a wrong one, when it is not longer."""

_QUESTION_END = re.compile(r"[^.!\n]{0,60}\?")
_CLAUSE_END = re.compile(r"\s*(?:$|[.,;:!\n)\]\x02\x03(-])")
_COPULA_LEFT = re.compile(
    r"(?P<left>.*?)[\s,\"')]+(?P<link>is|are|would be|must be|should be|has to be|seems to be|appears to be|seems|represents)"
    r"(?P<gap>(?:\s(?:therefore|thus|clearly|indeed|definitely|probably|most likely|not|the|my|our|best|correct|right|"
    r"final|only|single|one|most|true|actual|\w+ly|accurate|appropriate|likely|suitable))*)\s*$",
    re.DOTALL,
)
_VERDICT = re.compile(
    r"(?<!in)(?<!not )(?<!n't )(?<!\w)(?:correct|right|best|✓|✔|✅|☑)(?![\w-])(?!\s(?:if|only|when|answer|option|choice)\b)"
)


@dataclass(frozen=True, slots=True)
class _Statement:
    """One place where the reply settles on something.

    Args:
        start: Where its words begin in the plain text.
        end: Where they end.
        picks: Indices of the choices; empty for an answer that is none of them.
        strategy: How it was recognised.
        final: It calls itself final.
    """

    start: int
    end: int
    picks: frozenset[int]
    strategy: str
    final: bool = False


def judge_choice(row: ChoiceRow, reply: str) -> AnswerFinding:
    """Judge a multiple_choice reply by the default rule.

    Raises:
        ConfigError: The row's answer names none of the choices.
    """
    choices = Choices.of(row.choices)
    expected = _expected(row, choices)
    alone = _ALONE.fullmatch(reply)
    if alone is not None and (index := ord(alone[1].upper()) - 65) < len(row.choices):
        picks, strategy, statement = choices.same(index), "label", reply
    else:
        picks, strategy, statement = _settled(row, choices, reply)
    if not picks:
        reason = "empty" if not reply.strip() else "no_statement" if not strategy else None
        return AnswerFinding(passed=False, strategy=strategy, statement=shown(statement), reason=reason)
    index = min(picks)
    if not picks <= choices.same(index):
        return AnswerFinding(passed=False, strategy=strategy, statement=shown(statement), reason="several")
    return AnswerFinding(
        passed=not picks.isdisjoint(expected), strategy=strategy, matched=index, statement=shown(statement)
    )


def _expected(row: ChoiceRow, choices: Choices) -> frozenset[int]:
    expected: set[int] = set()
    for answer in row.answers:
        index = _expected_index(answer, choices)
        if index is not None:
            expected |= choices.same(index)
    if not expected:
        raise ConfigError(
            f"eval.answer: names none of the {len(row.choices)} choices\n"
            "  hint: a zero-based index, a letter or the text of a choice"
        )
    return frozenset(expected)


def _expected_index(answer: Any, choices: Choices) -> int | None:
    if isinstance(answer, bool):
        return None
    if isinstance(answer, int) or (isinstance(answer, float) and answer.is_integer()):
        return int(answer) if 0 <= answer < len(choices.texts) else None
    if not isinstance(answer, str):
        return None
    alone = _ALONE.fullmatch(answer)
    if alone is not None and (index := ord(alone[1].upper()) - 65) < len(choices.texts):
        return index
    text = folded_choice(answer)
    return choices.texts.index(text) if text in choices.texts else None


def _settled(row: ChoiceRow, choices: Choices, reply: str) -> tuple[frozenset[int], str | None, str]:
    """Return what the reply settles on, how that was recognised, and its words."""
    text = spoken(reply)
    if len(text) >= len(row.question):
        text = without_listing(text, row.question, row.choices)
        text = without_passage(text, row.question)
    text = plain(text)
    whole = folded_choice(_MARKS.sub("", text)) if len(text) < choices.longest + 40 else ""
    for form in (whole, whole.replace("-", " ")) if whole else ():
        if form in choices.texts:
            return choices.same(choices.texts.index(form)), "choice_text", text
    low = lowered(text)
    statements = _strongest(text, low, choices)
    if not statements:
        return frozenset(), None, _last_line(text)
    last = statements[-1]
    return last.picks | _contradicting(low, statements), last.strategy, _around(text, last)


def _contradicting(low: str, statements: Sequence[_Statement]) -> frozenset[int]:
    """Return what earlier statements name that the last one neither corrects nor repeats."""
    last = statements[-1]
    differing = [statement for statement in statements[:-1] if statement.picks != last.picks]
    if not differing:
        return frozenset()
    if last.strategy == "guess":
        return frozenset().union(*(statement.picks for statement in differing))
    named: frozenset[int] = frozenset()
    nearest = differing[-1]
    if 0 <= last.start - nearest.end <= 80:
        between = re.findall(r"\w+", low[nearest.end : last.start])
        if all(word in _LINKING_WORDS for word in between):
            named |= nearest.picks
    if last.final:
        finals = [statement for statement in differing if statement.final]
        if finals and retraction(low, finals[-1].end, last.start) is None:
            named |= finals[-1].picks
    return named


def _strongest(text: str, low: str, choices: Choices) -> list[_Statement]:
    """Return the statements of the strongest kind there is, in order."""
    found = [*_announced(text, low, choices), *_lines(text, choices)]
    guesses = [statement for statement in found if statement.strategy == "guess"]
    explicit = sorted(
        (statement for statement in found if statement.strategy != "guess"),
        key=lambda statement: (statement.start, statement.end),
    )
    if explicit:
        taken_back = retraction(low, explicit[-1].end)
        if taken_back is None:
            return explicit
        later = [
            statement
            for statement in _weak(text, low, choices)
            if statement.start >= taken_back and statement.picks
        ]
        return later or explicit
    weak = _weak(text, low, choices)
    guesses += [statement for statement in weak if statement.strategy == "guess"]
    sure = [statement for statement in weak if statement.strategy != "guess"]
    return sure or guesses or _mentions(text, choices)


_LINKING_WORDS = frozenset(
    "the a my correct final and or also alternatively maybe perhaps possibly answer option choice is i i'd".split()
)


def _announced(text: str, low: str, choices: Choices) -> Iterator[_Statement]:
    for cue in find_cues(low):
        statement = _bare(text, low, cue, choices) if cue.kind is CueKind.BARE else _said(text, low, cue, choices)
        if statement is not None:
            yield statement


def _said(text: str, low: str, cue: Cue, choices: Choices) -> _Statement | None:
    """Return the statement behind a cue that announces one."""
    content, start = _content(text, cue, choices)
    picks = read_picks(content, choices)
    marked = cue.kind is CueKind.MARK
    if picks is None:
        if not (marked or cue.heading) or (not marked and not content):
            return None
        if len(content) > _HEADING_CONTENT:
            return None
        picks = _only_mention(content, choices) or Picks(frozenset(), len(content))
    elif not marked and not cue.heading and _QUESTION_END.match(content, picks.end) is not None:
        return None
    hedged = cue.kind is CueKind.NOUN and _HEDGE.search(low, cue.start, cue.end) is not None
    strategy = "guess" if hedged else cue.kind.value
    return _Statement(cue.start, start + picks.end, picks.indices, strategy, cue.final)


def _content(text: str, cue: Cue, choices: Choices) -> tuple[str, int]:
    """Return what a cue announces, on one line with spaces collapsed, and where it begins.

    When the cue ends its line, that is the next line with something on it.
    """
    most = 400 + choices.longest
    start = cue.end
    stop = len(text) if cue.stop is None else cue.stop
    limit = min(stop, start + most)
    while start < limit and text[start] in " \t\n\"'.:,)":
        start += 1
    end = text.find("\n", start, limit)
    content = text[start : limit if end < 0 else end]
    if cue.kind is CueKind.MARK:
        content = text[start:limit]
    return " ".join(_MARKS.sub(" ", content).split()), start


def _bare(text: str, low: str, cue: Cue, choices: Choices) -> _Statement | None:
    """Return the statement of `C is the correct answer` or `answer (C)`."""
    if cue.word.endswith(("answer", "antwort", "respuesta", "réponse", "reponse", "resposta", "risposta", "ответ")):
        line_end = text.find("\n", cue.end)
        content = text[cue.end : cue.end + 200 if line_end < 0 else line_end].strip()
        picks = read_picks(content, choices) if content[:1] in "([\"'" or content[:1].isupper() else None
        if picks is not None and not picks.by_text and _CLAUSE_END.match(content, picks.end) is not None:
            return _Statement(cue.start, cue.end + picks.end, picks.indices, "cue", cue.final)
    before = text[max(0, cue.start - 120 - choices.longest) : cue.start]
    sentence = before[_sentence_start(before) :]
    linked = _COPULA_LEFT.fullmatch(sentence)
    if linked is None or "not" in linked["gap"].split():
        return None
    picks = _ends_with(linked["left"], choices)
    if picks is None:
        return None
    return _Statement(cue.start, cue.end, picks, "cue", cue.final)


def _sentence_start(text: str) -> int:
    return max(text.rfind(". "), text.rfind("\n"), text.rfind("! "), text.rfind("? "), text.rfind(MARK), -1) + 1


def _ends_with(left: str, choices: Choices) -> frozenset[int] | None:
    """Return the choice that a piece of a sentence ends with: a letter, or the longest text."""
    left = left.strip(_EDGE)
    if is_denied(lowered(left), len(left), len(left)):
        return None
    letters = label_class(len(choices.texts))
    start = re.match(rf"(?:.*[\s,:(])??(?:[(\[]?(?P<letter>[{letters}])[)\].:]?)(?:$|[\s).:,-]+(?P<rest>.*))", left, re.DOTALL)
    folded = folded_choice(left)
    by_text = [index for index, choice in enumerate(choices.texts) if choice and _ends_whole(folded, choice)]
    if start is not None and (not start["rest"] or by_text):
        picks = read_picks(" ".join(left[start.start("letter") :].split()), choices)
        if picks is not None:
            return picks.indices
    if not by_text:
        return None
    return choices.same(max(by_text, key=lambda index: len(choices.texts[index])))


def _ends_whole(folded: str, choice: str) -> bool:
    before = folded[-len(choice) - 1 : -len(choice)]
    return folded.endswith(choice) and not (before.isalnum() and choice[0].isalnum()) and before not in ".,/"


def _lines(text: str, choices: Choices) -> list[_Statement]:
    """Return the statements of the first and the last line that is not blank."""
    lines = [
        (found.start(), line)
        for found in _LINE.finditer(text)
        if (line := _MARKS.sub("", found[0]).strip(" \t*"))
    ]
    if not lines:
        return []
    first = _block(lines, choices)
    if first is None:
        opening = _opening(lines, choices)
        statements = [] if opening is None else [_Statement(lines[0][0], lines[0][0] + 1, opening, "first_line")]
    else:
        statements = [first[0]]
        if first[1] == len(lines):
            return statements
    last = _block(lines[::-1], choices) if len(lines) > 1 else None
    return statements if last is None else [*statements, last[0]]


def _block(lines: Sequence[tuple[int, str]], choices: Choices) -> tuple[_Statement, int] | None:
    """Return the statement of the lines at the start that are choices and nothing else, and their number.

    Several such lines name several choices, unless some of them are ticked: then these.
    """
    named: frozenset[int] = frozenset()
    ticked: frozenset[int] = frozenset()
    count = 0
    for _, line in lines[:_MOST_LINES]:
        picks = _whole_line(line, choices)
        if picks is None:
            break
        named |= picks
        ticked |= picks if any(tick in line for tick in _TICKS) else frozenset()
        count += 1
    if not count:
        return None
    ends = sorted((lines[0], lines[count - 1]))
    return _Statement(ends[0][0], ends[1][0] + len(ends[1][1]), ticked or named, "line"), count


_LINE = re.compile(r"[^\n]+")
_TICKS = "✓✔✅☑"
_MOST_LINES = 64
"""So many lines are enough to see that they list choices."""


def _whole_line(line: str, choices: Choices) -> frozenset[int] | None:
    """Return the picks of a line that is nothing but a letter, a choice or a list of them."""
    if len(line) > choices.longest + 60:
        return None
    if "|" in line:
        cells = [picks for cell in line.split("|") if (picks := _whole_line(cell.strip(), choices)) is not None]
        return cells[0] if len(cells) == 1 and _whole_line(line.rpartition("|")[2].strip(), choices) else None
    collapsed = " ".join(line.split())
    picks = read_picks(collapsed, choices)
    if picks is None or collapsed[picks.end :].strip(" .,;:!)]\"'" + _TICKS):
        return None
    return picks.indices


def _opening(lines: Sequence[tuple[int, str]], choices: Choices) -> frozenset[int] | None:
    """Return the picks of a first line that begins with a letter and goes on in prose.

    Not when another line begins with another letter: that is a walk through the choices.
    """
    letters = label_class(len(choices.texts))
    found = _opening_pattern(letters).match(lines[0][1])
    if found is None:
        return None
    picks = read_picks(found["label"], choices)
    if picks is None:
        return None
    for _, line in lines[1:]:
        other = _opening_pattern(letters).match(line)
        if other is not None and other["label"].strip("()[] ")[:1] != found["label"].strip("()[] ")[:1]:
            return None
    return picks.indices


@lru_cache(maxsize=26)
def _opening_pattern(letters: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<label>[(\[][{letters}][)\]]|[{letters}](?=\)|[.:,]\s+(?![a-zа-я]\w* [a-zа-я])|[.:,]?\s+[-=]|"
        r"[,.]?\s+(?i:because|since|as|is (?:the )?(?:correct|right|answer|best)|weil|porque|parce|потому|option|"
        r"would be|for the|makes sense|seems|i think)\b))"
    )


def _weak(text: str, low: str, choices: Choices) -> list[_Statement]:
    """Return conclusions, verdicts and letters on lines of their own, in order."""
    statements = []
    for found in deque(_conclusion_pattern(label_class(len(choices.texts))).finditer(text), MOST_CUES):
        if is_denied(low, found.start(), found.start()):
            continue
        line_end = text.find("\n", found.start("label"))
        content = text[found.start("label") : line_end if line_end >= 0 else len(text)][: 400 + choices.longest]
        picks = read_picks(" ".join(content.split()), choices)
        if picks is not None:
            hedged = _HEDGE.search(low, max(0, found.start() - 10), found.start("label")) is not None
            strategy = "guess" if hedged else "conclusion"
            statements.append(_Statement(found.start(), found.end(), picks.indices, strategy))
    for found in deque(_VERDICT.finditer(low), MOST_CUES):
        indices = _judged_right(text, low, found, choices)
        if indices is not None:
            statements.append(_Statement(found.start(), found.end(), indices, "verdict"))
    if not statements:
        statements = [
            _Statement(found.start(), found.end(), picks, "line")
            for found in deque(_LINE.finditer(text), MOST_CUES)
            if (picks := _whole_line(found[0].strip(" \t*"), choices)) is not None
        ]
    statements.sort(key=lambda statement: statement.start)
    return statements


@lru_cache(maxsize=26)
def _conclusion_pattern(letters: str) -> re.Pattern[str]:
    return re.compile(
        r"(?:(?<!\w)(?i:therefore|thus|hence|so|is|be|it's|that's|leaves|leaving|left with|think|believe|guess|means|implies|"
        r"definitely|probably|certainly|obviously|correct:|also|donc|daher|also ist|ist|est|es|значит|это|поэтому)|→|=>|∴|是|为)"
        rf"[\s,:]{{0,3}}(?<=[\s,:→>∴是为])(?:(?i:option|choice|answer|letter)\s)?(?P<label>[(\"'\[]?[{letters}][)\"'\]]?)"
        r"(?=\s*(?:[.!;,\n\x02\x03(]|or\b|and\b|/|$))"
    )


def _judged_right(text: str, low: str, found: re.Match[str], choices: Choices) -> frozenset[int] | None:
    """Return the choice that is called right at a place: `C is correct`, `C) 4 – correct`, `✓ C`."""
    if low[found.start()] in "✓✔✅☑":
        line_end = text.find("\n", found.end())
        after = text[found.end() : line_end if line_end >= 0 else len(text)][: 60 + choices.longest]
        picks = read_picks(" ".join(after.split()), choices)
        if picks is not None:
            return picks.indices
    before = text[max(0, found.start() - 120 - choices.longest) : found.start()]
    start = max(before.rfind("\n"), before.rfind("; "), _sentence_start_of_verdict(before)) + 1
    clause = " ".join(before[start:].split())
    if is_denied(lowered(clause), len(clause), len(clause)):
        return None
    picks = read_picks(clause, choices)
    if picks is None:
        return None
    rest = clause[picks.end :].strip(" .,:;)-|\"'")
    return picks.indices if rest == "" or _LEADS_TO_VERDICT.fullmatch(rest) is not None else None


_LEADS_TO_VERDICT = re.compile(
    r"(?:.*\s)?(?:is|are|seems|looks|must be|should be|would be|yes|→|=)(?:\s(?:the|clearly|indeed|therefore|thus|definitely|most likely|probably|a))*",
    re.IGNORECASE | re.DOTALL,
)


def _sentence_start_of_verdict(before: str) -> int:
    """Return the last end of a sentence, but not the dot behind a letter: `B. Correct`."""
    place = before.rfind(". ")
    while place >= 0 and (place == 0 or (place == 1 or not before[place - 2].isalnum())):
        place = before.rfind(". ", 0, place)
    return place + 1 if place >= 0 else -1


def _mentions(text: str, choices: Choices) -> list[_Statement]:
    """Return the only choice that a short reply, or the last line of a long one, mentions; else nothing."""
    line = _last_line(text)
    candidates = [*sentences(line[-_SHORT:])][-1:]
    if len(text) <= _SHORT:
        candidates.append(" ".join(sentence for sentence in sentences(text) if not sentence.endswith("?")))
    for candidate in candidates:
        picks = _only_mention(candidate, choices)
        if picks is not None:
            start = max(0, text.rfind(candidate[:20]))
            return [_Statement(start, len(text), picks.indices, "mention")]
    return []


def _only_mention(text: str, choices: Choices) -> Picks | None:
    """Return the one choice that a text mentions without negating it; None for none or several."""
    text = " ".join(text.split())
    if text.endswith("?"):
        return None
    low = lowered(text)
    named: dict[int, tuple[int, int]] = {}
    for found in _mention_pattern(label_class(len(choices.texts))).finditer(text):
        picks = read_picks(found[0].strip("()[]"), choices)
        if picks is not None:
            named[min(picks.indices)] = found.span()
    covered = low
    for index in sorted(range(len(choices.texts)), key=lambda index: -len(choices.texts[index])):
        choice = choices.texts[index]
        place = _whole_place(covered, choice) if len(choice) > 1 or not choice.isalpha() else None
        if place is not None:
            named.setdefault(min(choices.same(index)), (place, place + len(choice)))
            covered = covered.replace(choice, "\0" * len(choice))
    affirmed = [index for index, (start, end) in named.items() if not is_denied(low, start, end)]
    return Picks(choices.same(affirmed[0]), len(text)) if len(affirmed) == 1 else None


@lru_cache(maxsize=26)
def _mention_pattern(letters: str) -> re.Pattern[str]:
    plain_letters = "".join(letter for letter in letters if letter.isascii() and letter not in "AIO") or "B"
    return re.compile(
        rf"[(\[][{letters}][)\]]|(?<![\w'-])(?:[{plain_letters}](?![\w'+#&/-])|[AIO](?=\s*(?:[.,!;)/]|(?:and|or)\b|$)))"
    )


def _whole_place(text: str, part: str) -> int | None:
    start = text.find(part)
    while start >= 0:
        end = start + len(part)
        before, after = text[start - 1 : start], text[end : end + 1]
        glued = (before.isalnum() and part[0].isalnum()) or (after.isalnum() and part[-1].isalnum())
        decimal = part[-1].isdigit() and after in (".", ",", "/", ":") and text[end + 1 : end + 2].isdigit()
        decimal = decimal or (part[0].isdigit() and before in (".", ",", "/", "-", ":") and text[start - 2 : start - 1].isdigit())
        if not glued and not decimal:
            return start
        start = text.find(part, start + 1)
    return None


def _last_line(text: str) -> str:
    return _MARKS.sub("", text).strip().rpartition("\n")[2].strip()


def _around(text: str, statement: _Statement) -> str:
    """Return the line of a statement."""
    start = text.rfind("\n", 0, statement.start) + 1
    end = text.find("\n", max(statement.start, statement.end - 1))
    return _MARKS.sub("", text[start : end if end >= 0 else len(text)])

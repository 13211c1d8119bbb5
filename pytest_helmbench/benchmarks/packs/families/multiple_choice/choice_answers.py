"""multiple_choice, default rule: which choice a reply settles on.

A reply makes **statements**: a marked place (`\\boxed{C}`, `<answer>`, JSON), an announcement (`The answer is C`,
`I'd go with C`, `C is the correct answer`), a first or last line that is a letter or a choice. The last statement
wins; only when there is none do weaker signs count: a conclusion (`so C.`), a verdict (`C is correct`), a guess
(`it could be C`), at last the only choice that a short reply mentions.

Where the specification is silent:

* Two statements that differ are two answers when nothing stands between them, or when both call themselves final
  and nothing takes the first back. Otherwise the later one is a correction.
* One statement that names several choices (`B or C`, `A, B, C, D`) names none, also where the pack accepts both.
* An answer that is taken back (`scratch that`) and not replaced is none.
* `Answer:` and a few words that name no choice are an answer, and a wrong one.
* A letter with the text of another choice (`B) Paris` where Paris is C) names both.
* A letter wins over a choice that consists of another letter. Choices with the same text are one.
* A letter behind those of the choices names the choice that is nothing but this letter (`O` of A, B, AB, O).
* A reply that is the text of one choice as written, or announces it, is this choice, also where it is signs (`$`).
* A guess alone counts (`It could be B`); a question, a condition, a negated choice does not.
* A short reply that mentions several choices and announces none names none.
* A reply that repeats the question and all choices has said nothing by it.
* Capital letters that look like Latin ones (`Ответ: В`) count as these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_helmbench.benchmarks.packs.families.multiple_choice.announcements import announced
from pytest_helmbench.benchmarks.packs.families.multiple_choice.conclusions import weak_statements
from pytest_helmbench.benchmarks.packs.families.multiple_choice.labels import (
    Choices,
    as_written,
    folded_choice,
)
from pytest_helmbench.benchmarks.packs.families.multiple_choice.mentions import mentions
from pytest_helmbench.benchmarks.packs.families.multiple_choice.outer_lines import outer_lines
from pytest_helmbench.benchmarks.packs.families.multiple_choice.row import ChoiceRow
from pytest_helmbench.benchmarks.packs.families.multiple_choice.statements import GUESS, Statement
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered, retraction
from pytest_helmbench.benchmarks.packs.families.text.echo import without_listing, without_passage
from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding, shown
from pytest_helmbench.benchmarks.packs.families.text.plain import plain, spoken
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import unmarked
from pytest_helmbench.benchmarks.packs.task import ConfigError

__all__ = ["expected_choice", "expected_choices", "judge_choice"]

_LETTER_ALONE = r"[*_(\[\"'`$]*+([A-Za-z])[\s*_)\]\"'`$.:]*+"
_ANNOUNCED_WORDS = r"(?:the\s)?(?:(?:correct|final|best|right)\s)*(?:answer|choice|option)(?:\sis)?"
_ANNOUNCED = rf"{_ANNOUNCED_WORDS}(?=\W)[\s*_:]*+"
_ANNOUNCED_ALONE = rf"[\s*_(\[\"'`$#]*+(?i:{_ANNOUNCED})"
# The replies of most models: a letter, with or without an announcement, and nothing else.
_ALONE = re.compile(rf"(?:{_ANNOUNCED_ALONE}|[\s*_(\[\"'`$#]*+){_LETTER_ALONE}")
_LAST_LINE_ALONE = re.compile(rf"{_ANNOUNCED_ALONE}{_LETTER_ALONE}")
_ANNOUNCES = re.compile(rf"[*_#\s]*(?:{_ANNOUNCED_WORDS})(?:\s*:[*_]{{0,2}}\s*|\s+)")
_WRAPPED = re.compile(r"(?:\*\*|__|``?|[\"'])(.+?)(?:\*\*|__|``?|[\"'])\.?")
_LONGEST_LAST_LINE = 80
_NEAR = 80
"""Characters between two statements that may be one answer in two parts."""
_MOST_NEAR = 5

_LINKING_WORDS = word_set(
    "the a my correct final and or also alternatively maybe perhaps possibly answer option choice is i i'd"
)

_Settled = tuple[frozenset[int], str | None, str]
"""The choices that a reply settles on, how that was recognised, and its words."""


def judge_choice(row: ChoiceRow, reply: str) -> AnswerFinding:
    """Judge a multiple_choice reply by the default rule.

    Raises:
        ConfigError: The row's answer names none of the choices.
    """
    choices = Choices.of(row.choices, row.question)
    expected = expected_choices(row, choices)
    settled = _at_a_glance(reply, choices) or _word_for_word(reply, choices) or _settled(row, reply, choices)
    picks, strategy, words = settled
    if not picks:
        reason = "empty" if not reply.strip() else "no_statement" if strategy is None else None
        return AnswerFinding(passed=False, strategy=strategy, statement=shown(words), reason=reason)
    index = min(picks)
    if not picks <= choices.same_text(index):
        return AnswerFinding(passed=False, strategy=strategy, statement=shown(words), reason="several")
    return AnswerFinding(
        passed=not picks.isdisjoint(expected), strategy=strategy, matched=index, statement=shown(words)
    )


def expected_choices(row: ChoiceRow, choices: Choices) -> frozenset[int]:
    """Return the indices of the choices that pass.

    Raises:
        ConfigError: The row's answer names none of the choices.
    """
    expected: set[int] = set()
    for answer in row.answers:
        index = expected_choice(answer, choices)
        if index is not None:
            expected |= choices.same(index)
    if not expected:
        raise ConfigError(
            f"eval.answer: names none of the {len(row.choices)} choices\n"
            "  hint: a zero-based index, a letter or the text of a choice"
        )
    return frozenset(expected)


def expected_choice(answer: object, choices: Choices) -> int | None:
    """Return the index of the choice that an answer of a row names; None for none."""
    if isinstance(answer, bool):
        return None
    if isinstance(answer, int) or (isinstance(answer, float) and answer.is_integer()):
        return int(answer) if 0 <= answer < len(choices.texts) else None
    if not isinstance(answer, str):
        return None
    alone = _ALONE.fullmatch(answer)
    if alone is not None and (index := ord(alone[1].upper()) - 65) < len(choices.texts):
        return index
    if (written := as_written(answer)) in choices.written:
        return choices.written.index(written)
    text = folded_choice(answer)
    return choices.texts.index(text) if text in choices.texts else None


def _at_a_glance(reply: str, choices: Choices) -> _Settled | None:
    """Return what replies of the two most frequent shapes settle on, exactly as the long way would.

    A letter alone; or a last line that announces a letter, where nothing near it could object.
    """
    if len(reply) <= _LONGEST_LAST_LINE:
        found = _ALONE.fullmatch(reply)
        strategy, line = "label", reply
    else:
        above, _, line = reply.rstrip().rpartition("\n")
        if len(line) > _LONGEST_LAST_LINE or "<" in reply or "[" in reply or "◁" in reply:
            return None
        before = above.rstrip()[-_NEAR:].lower()
        if "answer" in before or "option" in before or "choice" in before or "inal answer" in reply:
            return None
        found = _LAST_LINE_ALONE.fullmatch(line)
        strategy = "cue"
    if found is None or (index := ord(found[1].upper()) - 65) >= len(choices.texts):
        return None
    return choices.same(index), strategy, line


def _word_for_word(reply: str, choices: Choices) -> _Settled | None:
    """Return what a reply settles on that is the text of one choice as written, or announces it: `Answer: $`."""
    if len(reply) > max(map(len, choices.written)) + _LONGEST_LAST_LINE:
        return None
    said = " ".join(reply.lower().split())
    for form in (said, _ANNOUNCES.sub("", said)):
        for text in (form, bare[1] if (bare := _WRAPPED.fullmatch(form)) is not None else form):
            if choices.written.count(written := as_written(text)) == 1:
                return choices.same(choices.written.index(written)), "choice_text", reply
    return None


def _settled(row: ChoiceRow, reply: str, choices: Choices) -> _Settled:
    own = without_listing(reply, row.question, row.choices)
    text = plain(spoken(without_passage(own, row.question)))
    whole = folded_choice(unmarked(text)) if len(text) < choices.longest + 40 else ""
    for form in (whole, whole.replace("-", " ")) if whole else ():
        if form in choices.texts:
            return choices.same_text(choices.texts.index(form)), "choice_text", text
    low = lowered(text)
    statements = _strongest(text, low, choices)
    if not statements:
        last_line = _word_for_word(own.rstrip().rpartition("\n")[2], choices)
        return last_line or (frozenset(), None, unmarked(text).strip().rpartition("\n")[2])
    last = statements[-1]
    return last.picks | _contradicting(low, statements), last.strategy, _around(text, last)


def _strongest(text: str, low: str, choices: Choices) -> list[Statement]:
    """Return the statements of the strongest kind there is, in order."""
    found = sorted([*announced(text, low, choices), *outer_lines(text, choices)])
    explicit = [statement for statement in found if statement.strategy != GUESS]
    if explicit:
        taken_back = retraction(low, explicit[-1].end)
        if taken_back is None:
            return explicit
        later = [
            statement
            for statement in weak_statements(text, low, choices)
            if statement.start >= taken_back.end and statement.picks
        ]
        return later or mentions(text, choices, taken_back.end) or ([] if taken_back.certain else explicit)
    weak = weak_statements(text, low, choices)
    sure = [statement for statement in weak if statement.strategy != GUESS]
    guesses = sorted([*found, *(statement for statement in weak if statement.strategy == GUESS)])
    return sure or guesses or mentions(text, choices)


def _contradicting(low: str, statements: Sequence[Statement]) -> frozenset[int]:
    """Return what earlier statements name that the last one neither corrects nor repeats."""
    last = statements[-1]
    differing = [statement for statement in statements[:-1] if statement.picks != last.picks]
    if not differing:
        return frozenset()
    if last.strategy == GUESS:
        return frozenset().union(*(statement.picks for statement in differing))
    named: frozenset[int] = frozenset()
    for statement in differing[-_MOST_NEAR:]:
        distance = last.start - statement.end
        if distance < 0:  # a line that lists what the last statement names one of
            named |= statement.picks
        elif distance <= _NEAR:
            between = re.findall(r"\w+", low[statement.end : last.start])
            if all(word in _LINKING_WORDS for word in between):
                named |= statement.picks
    if last.final:
        finals = [statement for statement in differing if statement.final]
        if finals and retraction(low, finals[-1].end, last.start) is None:
            named |= finals[-1].picks
    return named


def _around(text: str, statement: Statement) -> str:
    """Return the line of a statement."""
    start = text.rfind("\n", 0, statement.start) + 1
    end = text.find("\n", max(statement.start, statement.end - 1))
    return unmarked(text[start : end if end >= 0 else len(text)])

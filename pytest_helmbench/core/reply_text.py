"""The text of a reply: its thoughts, its answer, and whether it is complete."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from pytest_helmbench.core.json_types import JsonObject, JsonValue

THOUGHT_MARKS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<reflection>", "</reflection>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<antThinking>", "</antThinking>"),
    ("<seed:think>", "</seed:think>"),
    ("<|think|>", "<|content|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|channel>thought", "<channel|>"),
    ("<|channel|>analysis…<|message|>", "<|channel|>final…<|message|>"),
    ("<|channel|>commentary…<|message|>", "<|channel|>final…<|message|>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("analysis", "assistantfinal"),
    ("Here is my thought process:", "Here is my response:"),
    ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
)
"""The marks before and behind thoughts that stand in the text of a reply: one line per spelling.

Letter case counts nowhere, `…` is anything on the line, and a `<tag>` may have attributes. Plain words are marks only
where the reply begins with them and has both.
"""

THOUGHT_FIELDS = (
    *("reasoning_content", "reasoning", "reasoning_text", "thinking", "thoughts", "thought"),
    *("reasoning_details", "thinking_blocks"),
)
"""Fields of a message that hold thoughts; where several do, they hold the same ones."""
THOUGHT_PARTS = ("thinking", "thought", "reasoning", "reasoning_text", "redacted_thinking")
"""Types of the parts of a content that are thoughts."""


class Finish(StrEnum):
    """Whether a reply came to its end."""

    COMPLETE = "complete"
    CUT = "cut"
    REFUSED = "refused"
    FILTERED = "filtered"
    FAULTED = "faulted"
    UNKNOWN = "unknown"


class ReplyParts(NamedTuple):
    """The text of a reply, taken apart; `inner` is how many thoughts stood in the middle of the answer."""

    thoughts: str
    answer: str
    inner: int = 0


class _Mark(NamedTuple):
    row: int
    closes: bool
    start: int
    end: int


def _key(word: str) -> str:
    return "".join(filter(str.isalnum, word.lower())).removeprefix("finishreason")


def _pattern(mark: str) -> str:
    pattern = re.escape(mark).replace("…", r"[^\n]{0,60}?")
    return re.sub(r"(?<=^<)([\w:]+)>$", r"\1(?:\\s[^<>\\n]{0,200})?>", pattern)


FINISH_WORDS = {
    Finish.COMPLETE: """
    stop tool_calls function_call end_turn stop_sequence tool_use pause_turn complete completed done finished
    end stopped eos eos_token end_id stop_token stop_word stop_words word
    """,
    Finish.CUT: """
    length max_tokens max_length max_output_tokens max_completion_tokens max_new_tokens model_length length_limit
    token_limit limit error_limit incomplete truncated repetition_truncation
    context_length context_length_exceeded context_window_exceeded model_context_window_exceeded
    """,
    Finish.REFUSED: "refusal refused",
    Finish.FILTERED: """
    content_filter content_filtered content_policy moderation sensitive blocked error_toxic guardrail_intervened
    safety recitation language blocklist prohibited_content spii image_safety image_prohibited_content model_armor
    """,
    Finish.FAULTED: """
    error failed failure network_error server_error internal_error insufficient_system_resource not_finished load
    abort aborted cancel cancelled canceled user_cancel timeout time_limit interrupted
    malformed_function_call unexpected_tool_call other unspecified
    """,
}
"""Providers' words for the end of a reply. Letter case, signs between and `FINISH_REASON_` before them do not count."""
_FINISHES = {_key(word): finish for finish, words in FINISH_WORDS.items() for word in words.split()}
_SIGNS = [row for row in THOUGHT_MARKS if not row[0][0].isalpha()]
_ROWS = [
    ("|".join(_pattern(before) for before, of in _SIGNS if of == behind), _pattern(behind))
    for behind in dict.fromkeys(behind for _, behind in _SIGNS)
]
_WORDED = [
    re.compile(rf"\s*{_pattern(before)}(.*?){_pattern(behind)}", re.IGNORECASE | re.DOTALL)
    for before, behind in THOUGHT_MARKS
    if (before, behind) not in _SIGNS
]
_FIRST_SIGNS = {mark[0] for row in _SIGNS for mark in row}
_ANY = re.compile("|".join(mark for row in _ROWS for mark in row), re.IGNORECASE)
_NAMED = "|".join(f"(?P<o{at}>{before})|(?P<c{at}>{behind})" for at, (before, behind) in enumerate(_ROWS))
_SCAN = re.compile(
    r"(?:^[ \t>]*+|(?<=[]>▷])[ \t]*+)(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)$"
    r"|(?<!`)`(?!`)[^`\n]++`(?!`)"
    r"""|[{\[(,:=]\s*+(?:"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')(?=\s*+[]:,})]|[ \t]*+$)"""
    rf"|{_NAMED}",
    re.IGNORECASE | re.MULTILINE,
)
_BLANK = re.compile(r"(?:[\s\u200b\u2060\ufeff]*+<\|\w{1,30}\|>(?:assistant)?)*+[\s\u200b\u2060\ufeff]*+")
_FIRST_MARKS = re.compile(r"(?:\s*+<\|\w{1,30}\|>(?:assistant|final)?)*+(?:(?:[ \t]*+\r?\n)++|[ \t]++)?")
_LAST_MARKS = re.compile(r"(?:\s*+(?:<\|\w{1,30}\|>|</s>|<end_of_turn>|\[END FINAL RESPONSE\]))++\s*+\Z")
_LONGEST_LAST_MARKS = 200
_ALONE = re.compile(r"[ \t]*+$", re.MULTILINE)


@lru_cache(maxsize=64)
def finish_of(word: str | None) -> Finish:
    """Return whether a reply came to its end, by its provider's word; one that says nothing is taken to have."""
    return Finish.COMPLETE if word is None else _FINISHES.get(_key(word), Finish.UNKNOWN)


def split_reply(text: str) -> ReplyParts:
    """Return the thoughts and the answer of a reply.

    Thoughts stand before the answer: between marks, behind one that is never closed, before one that nothing opens. In
    the middle of an answer only what stands between two marks is taken off. In code and in JSON strings marks are text.
    """
    for pattern in _WORDED:
        if (found := pattern.match(text)) is not None:
            return ReplyParts(found[1].strip(), _bare(text[found.end() :]))
    # Most replies are JSON without a sign of a mark, and the search takes long.
    may_hold_marks = any(sign in text for sign in _FIRST_SIGNS)
    if may_hold_marks and _ANY.search(text) is not None:
        return _split_by_marks(text)
    return ReplyParts("", _without_last_marks(text))


def _split_by_marks(text: str) -> ReplyParts:
    marks = [*_marks(text)]
    last = {mark.row: mark.start for mark in marks if mark.closes}
    kept: list[str] = []
    thoughts: list[slice] = []
    open_mark: _Mark | None = None
    depth = position = inner = 0
    is_front = True
    for mark in marks:
        if open_mark is None and mark.closes:
            kept, thoughts, inner, is_front = [], [slice(mark.start)], 0, True
            position = mark.end
        elif open_mark is None:
            is_front = is_front and _BLANK.fullmatch(text, position, mark.start) is not None
            if is_front or mark.start < last.get(mark.row, -1):
                kept += [] if is_front else [text[position : mark.start]]
                open_mark, depth = mark, 1
        elif mark.row == open_mark.row:
            depth += -1 if mark.closes else 1
            if mark.closes and (depth == 0 or mark.start == last[mark.row]):
                thoughts.append(slice(open_mark.end, mark.start))
                open_mark, position, inner = None, mark.end, inner + bool(kept)
    if open_mark is not None:  # never closed, unless behind a fence that is not
        closings = (mark for mark in _marks(text, open_mark.end) if mark.closes and mark.row == open_mark.row)
        end, position = next(closings, _Mark(0, True, len(text), len(text)))[2:]
        thoughts.append(slice(open_mark.end, end))
    thought = "\n\n".join(part for one in thoughts if (part := text[one].strip()))
    return ReplyParts(thought, _bare("".join((*kept, text[position:]))), inner)


def _marks(text: str, start: int = 0) -> Iterator[_Mark]:
    """Yield the marks of a text that stand neither in code nor in a JSON string; from `start` on, in fences too.

    In a fence without a partner, marks that only close, each at the end of its line, count: thoughts broke off in code.
    """
    fence, label = "", ""
    held: list[_Mark] = []
    for found in _SCAN.finditer(text, start):
        run, name = found["fence"], found.lastgroup
        if run is not None:
            info = found["info"].strip()
            if not fence or (info and not label):
                yield from _lone(text, held)
                fence, label, held = run, info, []
            elif run.startswith(fence) and not info:
                fence, held = "", []
        elif name is not None:
            mark = _Mark(int(name[1:]), name[0] == "c", *found.span())
            if start or not fence:
                yield mark
            else:
                held.append(mark)
    yield from _lone(text, held)


def _lone(text: str, marks: list[_Mark]) -> list[_Mark]:
    return marks if all(one.closes and _ALONE.match(text, one.end) for one in marks) else []


def _bare(text: str) -> str:
    """Return an answer without the blank lines and the marks of a chat template around it."""
    return _without_last_marks(_FIRST_MARKS.sub("", text, count=1))


def _without_last_marks(text: str) -> str:
    if not text.rstrip().endswith((">", "]")):
        return text
    found = _LAST_MARKS.search(text, max(0, len(text) - _LONGEST_LAST_MARKS))
    return text if found is None else text[: found.start()]


def stated_thoughts(message: JsonObject) -> str:
    """Return the thoughts that a message holds beside its text; empty for none."""
    stated = (_texts(message[name]).strip() for name in THOUGHT_FIELDS if name in message)
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return next(filter(None, stated), "") or _texts([part for part in parts if is_thought(part)]).strip()


def is_thought(part: JsonValue) -> bool:
    """Return whether a part of a content is a thought."""
    return isinstance(part, dict) and (part.get("type") in THOUGHT_PARTS or part.get("thought") is True)


def _texts(value: JsonValue) -> str:
    """Return all texts in a value, but for its types and signatures."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(_texts, value)))
    names = ("text", "summary", "content", *THOUGHT_FIELDS)
    return _texts([value.get(name) for name in names]) if isinstance(value, dict) else ""

"""Markdown as far as prompts need it: fences, headings, sections as tag blocks, and turns of a conversation."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache

from pytest_helmbench.core.case import Message
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.source import Fault

_MARK = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})(?P<info>[^\n]*)|(?P<hashes>#{1,6})(?P<title>[ \t][^\n]*|))$",
    re.MULTILINE,
)
_CLOSING_HASHES = re.compile(r"(?:^|[ \t])#+[ \t]*\Z")
_TURN = re.compile(r"turn_(\d{1,4})")
_SCRIPTED = "assistant"
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NEARLY = 0.85
"""Share of the letters that a misspelled heading has in common with the right one."""
_BESIDE_SCRIPTED = frozenset(
    ("reply", "replies", "response", "answer", "message", "says", "scripted", "turn")
)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading outside code fences.

    Args:
        level: 1 to 6.
        title: Text without hashes.
        start: Offset of its line.
        end: Offset behind its line end.
        line: 1-based line.
        inside_fence: Line of the code fence that it cut off; None for an ordinary heading.
    """

    level: int
    title: str
    start: int
    end: int
    line: int
    inside_fence: int | None = None


@dataclass(frozen=True, slots=True)
class CodeFence:
    """A code fence: its offsets and first line. The end is that of the text when it never closes."""

    start: int
    end: int
    line: int
    closed: bool


@dataclass(frozen=True, slots=True)
class Body:
    """A stretch of a file that goes into a prompt.

    Args:
        text: The whole file, so that lines are counted right.
        start: Offset of its first character.
        end: Offset behind its last.
        headings: The headings in it.
        fences: The file's code fences.
    """

    text: str
    start: int
    end: int
    headings: tuple[Heading, ...]
    fences: tuple[CodeFence, ...]

    def part(self, start: int, end: int) -> Body:
        """Return the stretch between two offsets of the text; an empty one where it would begin behind its end."""
        start = min(start, end)
        first, last = (
            bisect_left(self.headings, place, key=lambda heading: heading.start) for place in (start, end)
        )
        return Body(self.text, start, end, self.headings[first:last], self.fences)

    def trimmed(self) -> str:
        """Return it without the blank lines at both ends."""
        return trimmed(self.text[self.start : self.end])

    def first_line(self) -> int:
        """Return the line of the first character that is not blank."""
        blank = len(self.text) - len(self.text[self.start :].lstrip(" \t\n"))
        return self.line(min(blank, self.end))

    def line(self, offset: int) -> int:
        """Return the 1-based line of an offset of the file."""
        return self.text.count("\n", 0, offset) + 1

    def fenced(self, offset: int) -> bool:
        """Return whether an offset lies inside a code fence."""
        return any(fence.start <= offset < fence.end for fence in self.fences)


def outline(text: str, cuts: re.Pattern[str] | None = None) -> Body:
    """Return a whole file with its headings and code fences.

    Args:
        cuts: Titles of H1s that end a fence which is open there, as a new component must.
    """
    headings: list[Heading] = []
    fences: list[CodeFence] = []
    opened: re.Match[str] | None = None
    opened_line = line = 1
    counted = 0
    for mark in _MARK.finditer(text):
        line += text.count("\n", counted, mark.start())
        counted = mark.start()
        if mark["fence"] is not None:
            if opened is None:
                opened, opened_line = mark, line
            elif _closes(opened, mark):
                fences.append(CodeFence(opened.start(), mark.end(), opened_line, closed=True))
                opened = None
            continue
        title = _CLOSING_HASHES.sub("", mark["title"]).strip(" \t")
        cut = None
        if opened is not None:
            if cuts is None or len(mark["hashes"]) != 1 or cuts.match(title) is None:
                continue
            fences.append(CodeFence(opened.start(), mark.start(), opened_line, closed=False))
            opened, cut = None, opened_line
        headings.append(Heading(len(mark["hashes"]), title, mark.start(), mark.end() + 1, line, cut))
    if opened is not None:
        fences.append(CodeFence(opened.start(), len(text), opened_line, closed=False))
    return Body(text, 0, len(text), tuple(headings), tuple(fences))


def _closes(opened: re.Match[str], mark: re.Match[str]) -> bool:
    return (
        opened["fence"][0] == mark["fence"][0]
        and len(mark["fence"]) >= len(opened["fence"])
        and not mark["info"].strip(" \t")
    )


def trimmed(text: str) -> str:
    """Return a text without the blank lines at both ends; everything else byte for byte."""
    inner = text.strip(" \t\n")
    if not inner:
        return ""
    first = text.index(inner[0])
    start = text.rfind("\n", 0, first) + 1
    last = first + len(inner)
    end = text.find("\n", last)
    return text[start : end if end >= 0 else len(text)]


@lru_cache(maxsize=4096)
def slug(title: str) -> str:
    """Return the tag name of a heading (`User's input` is `users_input`); empty when nothing is left.

    Letters of any script are kept, with the marks that belong to them.
    """
    kept: list[str] = []
    for character in title.lower():
        if character in "'’":
            continue
        joins = character.isalnum() or (
            unicodedata.category(character).startswith("M") and bool(kept) and kept[-1] != "_"
        )
        if joins or (kept and kept[-1] != "_"):
            kept.append(character if joins else "_")
    return "".join(kept).strip("_")


def compose(body: Body, level: int = 2) -> tuple[str, list[Fault]]:
    """Return a body as prompt text, each section in tags, and what is wrong with its headings.

    Args:
        body: Of a scenario or component, or one turn of it.
        level: Of the headings that start a section.

    Source:
        Scenario trees, section 3.
    """
    sections = [heading for heading in body.headings if heading.level == level]
    ends = [*(heading.start for heading in sections), body.end]
    blocks = [trimmed(body.text[body.start : ends[0]])]
    faults = []
    for heading, end in zip(sections, ends[1:], strict=True):
        tag = slug(heading.title)
        if not tag:
            message = f"the heading {heading.title!r} has no letter or digit to name a section by"
            faults.append(Fault(heading.line, message, "give the heading a word"))
        blocks.append(f"<{tag}>\n{trimmed(body.text[heading.end : end])}\n</{tag}>")
    return "\n\n".join(block for block in blocks if block), faults


def turns(body: Body) -> tuple[str, tuple[Message, ...], list[Fault]]:
    """Return a perturbation's first message of the user, what follows it, and what is wrong with its headings.

    `## Turn 1`, `## Turn 2`, … start the user's messages, in which H3 sections become tags. `## Assistant` starts a
    scripted reply, which is sent as it stands. A body without `## Turn` is one message.
    """
    nearly = [*_nearly_turns(body)]
    if nearly:
        return compose(body)[0], (), nearly
    sections = [heading for heading in body.headings if heading.level == 2]
    if not any(_TURN.fullmatch(slug(heading.title)) for heading in sections):
        block, faults = compose(body)
        return block, (), [*faults, *_scripted_alone(sections)]
    said, faults, numbered = list[Message](), list[Fault](), list[tuple[Heading, int]]()
    lead = trimmed(body.text[body.start : sections[0].start])
    if lead:
        message = f"text stands before the first turn: {lead.splitlines()[0]!r}"
        faults.append(Fault(body.first_line(), message, "move it below '## Turn 1', or into the scenario"))
    for heading, end in zip(sections, [*(one.start for one in sections[1:]), body.end], strict=True):
        inner, turn = body.part(heading.end, end), _TURN.fullmatch(slug(heading.title))
        if turn is not None:
            numbered.append((heading, int(turn[1])))
            text, odd = compose(inner, level=3)
            faults += odd
            said.append(Message("user", text))
        elif slug(heading.title) == _SCRIPTED:
            faults += _misplaced(heading, said, is_last=end == body.end)
            said.append(Message("assistant", inner.trimmed()))
        else:
            message = f"the section {heading.title!r} stands outside of the turns, so no message holds it"
            faults.append(Fault(heading.line, message, f"write '### {heading.title}' inside a turn"))
            continue
        if not said[-1].content:
            message = f"there is no text below '## {heading.title}', and no provider takes an empty message"
            faults.append(Fault(heading.line, message, "write the message, or remove the heading"))
    return said[0].content, tuple(said[1:]), [*faults, *_out_of_order(numbered)]


def _nearly_turns(body: Body) -> Iterator[Fault]:
    """Yield headings that are meant to start a message and do not: a remark, a slip or another level."""
    for heading in body.headings:
        tag = slug(heading.title)
        wanted = "Assistant" if tag == _SCRIPTED else _wanted_heading(tag)
        exact = tag == _SCRIPTED or _TURN.fullmatch(tag)
        if wanted and not (exact and heading.level == 2):
            message = (
                f"'{'#' * heading.level} {heading.title}' is not quite '## {wanted}', so it starts no message"
            )
            yield Fault(heading.line, message, f"did you mean '## {wanted}'? a remark goes below the heading")


def _wanted_heading(tag: str) -> str:
    """Return what the tag of a heading is nearly: `Turn 2`, `Assistant`; empty for nothing."""
    words = re.sub(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])", "_", tag).split("_")
    if len(words) == 2 and words[0].isdigit():
        words.reverse()  # "1. Turn"
    first, rest = words[0], words[1:]
    if _is_nearly(first, "assistant") and all(word in _BESIDE_SCRIPTED or word.isdigit() for word in rest):
        return "Assistant"
    number = next(iter(rest), "1")
    number = str(_NUMBERS.index(number) + 1) if number in _NUMBERS else number
    return f"Turn {number}" if number.isdigit() and _is_nearly(first, "turn") else ""


def _is_nearly(word: str, wanted: str) -> bool:
    return sorted(word) == sorted(wanted) or SequenceMatcher(None, word, wanted).ratio() >= _NEARLY


def _scripted_alone(sections: list[Heading]) -> Iterator[Fault]:
    for heading in sections:
        if slug(heading.title) == _SCRIPTED:
            message = f"'## {heading.title}' becomes a tag: there is no '## Turn 1' before it"
            hint = "write '## Turn 1' above the user's first message to script a conversation"
            yield Fault(heading.line, message, hint, usable=True)


def _out_of_order(numbered: list[tuple[Heading, int]]) -> Iterator[Fault]:
    """Yield the first turn with another number than its place: those behind it often follow from it."""
    for place, (heading, number) in enumerate(numbered, start=1):
        if number != place:
            message = f"'## {heading.title}' is out of order: '## Turn {place}' comes here"
            yield Fault(heading.line, message, "number the turns from 1, in the order in which they are sent")
            return


def _misplaced(heading: Heading, said: list[Message], *, is_last: bool) -> Iterator[Fault]:
    """Yield why a scripted reply cannot stand here: it answers one turn, and another turn follows."""
    if not said:
        yield Fault(
            heading.line, f"'## {heading.title}' stands before any turn", "write '## Turn 1' above it"
        )
    elif said[-1].role == "assistant":
        message = f"'## {heading.title}' follows another one: a turn has one reply"
        yield Fault(heading.line, message, "make them one, or write a '## Turn' between them")
    if is_last:
        message = f"'## {heading.title}' stands at the end, so the model is never asked"
        yield Fault(heading.line, message, "add a turn below it, or remove it to have the model reply there")

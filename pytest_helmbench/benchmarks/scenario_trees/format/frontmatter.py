"""Where frontmatter begins and ends. No line of it may be taken for body: it holds the answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

from pytest_helmbench.files.source import Fault
from pytest_helmbench.files.yaml_text import Document, parse_yaml

__all__ = ["KNOWN_KEYS", "Split", "split_component", "split_file"]

KNOWN_KEYS = ("severity", "difficulty", "category", "evaluation")
"""Keys whose text would give an answer or a score away."""

_OPENING = re.compile(r"(?:[ \t]*\n)*---[ \t]*(?:\n|\Z)")
_CLOSING = re.compile(r"^---[ \t]*$", re.MULTILINE)
_HEADING = re.compile(r"^##+[ \t].*$", re.MULTILINE)
_TELLING = re.compile(rf"^\W*(?:{'|'.join(KNOWN_KEYS)})\b", re.MULTILINE | re.IGNORECASE)
_ANY_KEY = re.compile(r"\s*[\w\"'-]+[ \t]*:(?:\s|\Z)")


@dataclass(frozen=True, slots=True)
class Split:
    """A text taken apart.

    Args:
        document: The frontmatter; None where there is none.
        body_start: Offset of the body; None when it is unknown where the frontmatter ends.
        faults: What is wrong beyond the document's own faults.
    """

    document: Document | None
    body_start: int | None
    faults: tuple[Fault, ...] = ()


def split_file(text: str) -> Split:
    """Take the frontmatter off a file that holds one text.

    A first line `---` always opens frontmatter here.
    """
    opening = _OPENING.match(text)
    if opening is None:
        return Split(None, 0)
    line = _line_of(opening, 1)
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        return Split(None, None, (_never_closes(line),))
    inside = text[opening.end() : closing.start()]
    document = parse_yaml(inside, line + 1)
    faults = _headings(inside, line + 1)
    if not document.faults and not isinstance(document.data, dict | None):
        faults += (_no_mapping(line),)
    return Split(document, closing.end() + 1, faults)


def split_component(text: str, first_line: int) -> Split:
    """Take the frontmatter off a component of a consolidated file.

    A first line `---` opens frontmatter only if it closes around a mapping with a known key. Around anything
    that does not look like one it is body text.

    Args:
        text: Everything between the component's H1 and the next.
        first_line: Line of its first line in the file.
    """
    opening = _OPENING.match(text)
    if opening is None:
        return Split(None, 0)
    line = _line_of(opening, first_line)
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        looks_meant = _ANY_KEY.match(text, opening.end()) or _TELLING.search(text, opening.end())
        return Split(None, None, (_never_closes(line),)) if looks_meant else Split(None, 0)
    inside = text[opening.end() : closing.start()]
    document = parse_yaml(inside, line + 1)
    if any(_is_meant(key) for key in document.names()):
        return Split(document, closing.end() + 1, _headings(inside, line + 1))
    if _TELLING.search(inside):
        faults = _headings(inside, line + 1)
        return Split(document, None, faults if document.faults else (*faults, _no_mapping(line)))
    if document.names():
        message = f"the '---' block with the key {document.names()[0]!r} is taken for body text"
        hint = f"frontmatter of a component holds {KNOWN_KEYS[0]!r} or {KNOWN_KEYS[1]!r}"
        return Split(None, 0, (Fault(line, message, hint, usable=True),))
    return Split(None, 0)


def _line_of(opening: re.Match[str], first_line: int) -> int:
    return first_line + opening.string.count("\n", 0, opening.end() - 1)


def _is_meant(key: str) -> bool:
    return key in KNOWN_KEYS or bool(get_close_matches(key, KNOWN_KEYS, n=1, cutoff=0.8))


def _never_closes(line: int) -> Fault:
    return Fault(
        line, "the frontmatter that '---' opens here never closes", "add a line '---' below its keys"
    )


def _no_mapping(line: int) -> Fault:
    return Fault(line, "the frontmatter is no mapping", "write lines such as 'severity: 5'")


def _headings(inside: str, line: int) -> tuple[Fault, ...]:
    heading = _HEADING.search(inside)
    if heading is None:
        return ()
    where = line + inside.count("\n", 0, heading.start())
    message = f"the heading {heading[0]!r} stands inside the frontmatter"
    hint = "if a linter made a key a heading, take its '##' away; else close with a line '---' above it"
    return (Fault(where, message, hint),)

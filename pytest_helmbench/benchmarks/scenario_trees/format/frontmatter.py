"""Frontmatter of Markdown files: python-frontmatter splits them through a handler of ours, which knows lines.

No line of frontmatter may be taken for body: it holds the answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache

from frontmatter.default_handlers import BaseHandler

from pytest_helmbench.benchmarks.scenario_trees.format.markdown_text import Body
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.source import Fault
from pytest_helmbench.files.yaml_text import Document, parse_yaml

KNOWN_KEYS = ("severity", "difficulty", "category", "evaluation")
"""Keys whose text would give an answer or a score away."""

_OPENING = re.compile(r"(?:[ \t]*\n)*---[ \t]*(?:\n|\Z)")
_HEADING = re.compile(r"^##+[ \t].*$", re.MULTILINE)
_TELLING = re.compile(rf"^\W*(?:{'|'.join(KNOWN_KEYS)})\b", re.MULTILINE | re.IGNORECASE)
_ANY_KEY = re.compile(r"\s*[\w\"'-]+[ \t]*:(?:\s|\Z)")
_KEYS = "|".join(KNOWN_KEYS)
_BREAK = r"\n\r\x0b\x0c\x85\u2028\u2029"  # editors and YAML break lines at more than LF
_START = rf"(?:\A|(?<=[{_BREAK}]))"
_SPACE = r"[ \t\xa0\u2000-\u200d\u2060\u3000\ufeff]"
_LINTED = re.compile(
    rf"^ {{0,3}}#{{1,6}}[ \t]+[\"']?(?:{_KEYS})[\"']?[ \t]*:.*$", re.MULTILINE | re.IGNORECASE
)
_KEY = rf"[\"'{{]*(?P<key>{_KEYS})[\"']?{_SPACE}*:"
_FIRST = re.compile(rf"[\s\ufeff\u200b-\u200d\u2060]*{_KEY}", re.IGNORECASE)
_RULE = r"(?:[-*_=+~#.]{2,}|[‐-―−]+)[^\w\n\r]*"  # what was meant as `---`, with what stands behind it
_SECOND = re.compile(rf"{_START}{_SPACE}*{_RULE}[{_BREAK}]\s*{_KEY}", re.IGNORECASE)
_CODE = r"(?P<code>PT\d+[a-z]?|[CU]\d+)"
_STRAY = re.compile(
    rf"{_START}{_SPACE}*#{{1,2}}{_SPACE}*{_CODE}{_SPACE}*#*{_SPACE}*(?=\Z|[{_BREAK}])"
    rf"|{_START} {{0,3}}(?P<underlined>PT\d+[a-z]?|[CU]\d+)[ \t]*\n {{0,3}}=+[ \t]*(?=\Z|\n)",
    re.IGNORECASE,
)
_FIRST_LINES = re.compile(r"(?:[ \t]*\n)*(?:[^\n]*\n){4}[^\n]*|[\s\S]*")


@dataclass(frozen=True, slots=True)
class _Parts:
    """A text with a line `---` at its top.

    Args:
        line: 1-based line of that `---`.
        inside: What stands between it and the next; None where there is no next.
        behind: Everything below the first `---`.
        body_start: Offset of the line below the second `---`; None where there is none.
    """

    line: int
    inside: str | None
    behind: str
    body_start: int | None


class _Handler(BaseHandler):
    """Frontmatter stands between two lines `---`; blank lines may stand above it.

    `frontmatter.parse` is not asked: it strips text and body, and takes a file that never closes for body.
    """

    FM_BOUNDARY = re.compile(r"^---[ \t]*$", re.MULTILINE)

    def detect(self, text: str) -> bool:
        """Return whether frontmatter opens at the top of a text."""
        return _OPENING.match(text) is not None

    def parts(self, text: str, first_line: int = 1) -> _Parts | None:
        """Take a text apart; None where no frontmatter opens.

        Args:
            text: A file, or the part of one below a heading.
            first_line: Line of its first line in the file.
        """
        if not self.detect(text):
            return None
        opening = text.index("---")
        line = first_line + text.count("\n", 0, opening)
        behind = text[opening:].partition("\n")[2]
        try:
            inside, content = self.split(text)
        except ValueError:  # it never closes
            return _Parts(line, None, behind, None)
        return _Parts(line, inside.removeprefix("\n"), behind, len(text) - len(content) + 1)


_HANDLER = _Handler()


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
    parts = _HANDLER.parts(text)
    if parts is None:
        return Split(None, 0)
    if parts.inside is None:
        return Split(None, None, (_never_closes(parts.line),))
    document = parse_yaml(parts.inside, parts.line + 1)
    faults = _headings(parts)
    if not document.faults and not isinstance(document.data, dict | None):
        faults += (_no_mapping(parts.line),)
    return Split(document, parts.body_start, faults)


def split_component(text: str, first_line: int) -> Split:
    """Take the frontmatter off a component of a consolidated file.

    A first line `---` opens frontmatter only if it closes around a mapping with a known key. Around anything
    that does not look like one it is body text.

    Args:
        text: Everything between the component's H1 and the next.
        first_line: Line of its first line in the file.
    """
    parts = _HANDLER.parts(text, first_line)
    if parts is None:
        return Split(None, 0)
    if parts.inside is None:
        looks_meant = _ANY_KEY.match(parts.behind) or _TELLING.search(parts.behind)
        return Split(None, None, (_never_closes(parts.line),)) if looks_meant else Split(None, 0)
    document = parse_yaml(parts.inside, parts.line + 1)
    if any(_is_meant(key) for key in document.names()):
        return Split(document, parts.body_start, _headings(parts))
    if _TELLING.search(parts.inside):
        faults = _headings(parts)
        return Split(document, None, faults if document.faults else (*faults, _no_mapping(parts.line)))
    if document.names():
        message = f"the '---' block with the key {document.names()[0]!r} is taken for body text"
        hint = f"frontmatter of a component holds {KNOWN_KEYS[0]!r} or {KNOWN_KEYS[1]!r}"
        return Split(None, 0, (Fault(parts.line, message, hint, usable=True),))
    return Split(None, 0)


def without_frontmatter(text: str) -> str:
    """Return a text without its frontmatter; all of it where the frontmatter never closes."""
    parts = _HANDLER.parts(text)
    return text if parts is None or parts.body_start is None else text[parts.body_start :]


def _is_meant(key: str) -> bool:
    return key in KNOWN_KEYS or bool(get_close_matches(key, KNOWN_KEYS, n=1, cutoff=0.8))


def _never_closes(line: int) -> Fault:
    return Fault(
        line, "the frontmatter that '---' opens here never closes", "add a line '---' below its keys"
    )


def _no_mapping(line: int) -> Fault:
    return Fault(line, "the frontmatter is not a mapping", "write lines such as 'severity: 5'")


def _headings(parts: _Parts) -> tuple[Fault, ...]:
    inside = parts.inside or ""
    heading = _HEADING.search(inside)
    if heading is None:
        return ()
    where = parts.line + 1 + inside.count("\n", 0, heading.start())
    message = f"the heading {heading[0]!r} stands inside the frontmatter"
    hint = "if a linter made a key a heading, take its '##' away; else close with a line '---' above it"
    return (Fault(where, message, hint),)


def linted_headings(body: Body, *, only_first_lines: bool = False) -> Iterator[Fault]:
    """Yield headings that a Markdown linter has made of a frontmatter's last line.

    Args:
        only_first_lines: Look at the first five lines, blank ones before them apart.
    """
    end = body.end
    if only_first_lines:
        first = _FIRST_LINES.match(body.text, body.start, body.end)
        end = first.end() if first else end
    for found in _LINTED.finditer(body.text, body.start, end):
        if not body.fenced(found.start()):
            message = f"the heading {found[0].strip()!r} is frontmatter that lost its '---'"
            hint = "write the frontmatter between two lines '---', with a blank line before the next text"
            yield Fault(body.line(found.start()), message, hint)


def leaked_frontmatter(body: Body, own_keys: tuple[str, ...]) -> Iterator[Fault]:
    """Yield lines of a body that are, or look like, its frontmatter.

    Args:
        own_keys: Keys of the body's own frontmatter.
    """
    lowered = body.text[body.start : body.end].lower()
    keys = [key for key in (*KNOWN_KEYS, *own_keys) if key in lowered]
    if not keys:
        return
    lines: set[int] = set()
    patterns = (
        _FIRST.match(body.text, body.start, body.end),
        _SECOND.search(body.text, body.start, body.end),
    )
    for found in patterns:
        if found is not None and not body.fenced(found.start("key")):
            line = body.line(found.start("key"))
            message = f"frontmatter with the key {found['key']!r} stands in the body"
            hint = (
                "frontmatter starts right at the top (below the H1 of a component), between two lines '---'"
            )
            if line not in lines:
                yield Fault(line, message, hint)
            lines.add(line)
    if not own_keys:
        return
    for found in _own_key_lines(own_keys).finditer(body.text, body.start, body.end):
        line = body.line(found.start("key"))
        if line not in lines:
            message = f"the line starts with {found[0]!r}, a key of this text's own frontmatter"
            yield Fault(line, message, "reword the line: it could give the answer away")
        lines.add(line)


def stray_components(body: Body) -> Iterator[Fault]:
    """Yield lines of a component that look like the start of another one but are not."""
    titles = {heading.line for heading in body.headings if heading.level == 1}  # reported as what they are
    for found in _STRAY.finditer(body.text, body.start, body.end):
        line = body.line(found.start("code" if found["code"] else "underlined"))
        if line not in titles and not body.fenced(found.start()):
            code = found["code"] or found["underlined"]
            message = f"the line {found[0].strip()!r} looks like the start of a component, but is none"
            hint = f"a component starts with the line '# {code.upper()}'; otherwise reword the line"
            yield Fault(line, message, hint)


@lru_cache(maxsize=256)
def _own_key_lines(keys: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"{_START}(?P<key>{'|'.join(map(re.escape, keys))})[ \t]*:", re.IGNORECASE)

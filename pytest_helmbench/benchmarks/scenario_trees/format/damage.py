"""Signs that frontmatter or a neighbouring component has slipped into a body, where the model would read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from pytest_helmbench.benchmarks.scenario_trees.format.frontmatter import KNOWN_KEYS
from pytest_helmbench.benchmarks.scenario_trees.format.markdown_text import Body
from pytest_helmbench.files.source import Fault

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


def linted_headings(body: Body, *, only_first_lines: bool = False) -> Iterator[Fault]:
    """Yield headings that a Markdown linter has made of a frontmatter's last line.

    Args:
        body: Where to look.
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
        body: Where to look.
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

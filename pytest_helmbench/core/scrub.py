"""Foreign text made fit for people: terminals, XML, SQLite and log files survive what it carries."""

from __future__ import annotations

import re

__all__ = [
    "OBSERVED_LIMIT",
    "REDACTED",
    "excerpt",
    "quoted",
    "quoted_json",
    "scrub",
    "without_surrogates",
    "without_tokens",
]

REDACTED = "<redacted>"
"""What stands for a hidden value wherever people look."""

OBSERVED_LIMIT = 200
"""Most characters of a reply that an evaluation row shows."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_HARMFUL = re.compile(
    "\r\n"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi controls: they show text in another order
    "\ud800-\udfff\ufffe\uffff]"  # not encodable, not allowed in XML
)
_TOKEN = re.compile(r"relay-[A-Za-z0-9_-]{20,}")  # also one that a cut has shortened
_COMMAND = re.compile(r"##(?=\[|vso\[|teamcity\[)")  # of logs: anywhere in a line
_LOST = "\N{REPLACEMENT CHARACTER}"


def scrub(text: str) -> str:
    """Return the text with everything that a terminal, file or parser could choke on made visible.

    Control and bidi characters become `\\x1b` and `\\u202e`, lone surrogates and NUL the replacement
    character, CRLF a newline. Newlines and tabs stay; nothing is cut.
    """
    if _HARMFUL.search(text) is None:
        return text
    return _HARMFUL.sub(_visible, text)


def quoted(text: str) -> str:
    """Return a scrubbed text of others whose lines no log of a CI takes for a command.

    `::error::` counts for GitHub where a line begins with it, `##[` for GitHub and Azure anywhere. So a line that
    begins with `::` stands behind a bar, and `##[` becomes `## [`.

    Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
    """
    text = _COMMAND.sub("## ", scrub(text))
    if "::" not in text:
        return text
    return "".join(
        f"| {line}" if line.lstrip().startswith("::") else line for line in text.splitlines(keepends=True)
    )


def quoted_json(text: str) -> str:
    """Return JSON that says the same and holds nothing which a log of a CI takes for a command: `#\\u0023[`.

    A line of it never begins with `::`, since texts stand in quotation marks.
    """
    return _COMMAND.sub(r"#\\u0023", text)


def excerpt(text: str, limit: int = 300, *, indented: bool = False) -> str:
    """Return the scrubbed start of the text.

    Args:
        text: Of any size.
        limit: Most characters returned, the ellipsis of a cut included.
        indented: The first line keeps the blanks before it, which mean something in code.
    """
    start = len(text) - len(text.lstrip())
    if indented:
        start = text.rfind("\n", 0, start) + 1
    # Scrubbing at most halves a text (CRLF), so the megabytes behind twice the limit need no look.
    shown = scrub(text[start:].rstrip()[: 2 * limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1].rstrip() + "…"


def without_surrogates(text: str) -> str:
    """Return the text with lone surrogates replaced: it can be encoded, and is otherwise as it was."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return _SURROGATE.sub(_LOST, text)


def without_tokens(text: str) -> str:
    """Return the text without the tokens that the relay gives to packs: they look like keys."""
    return _TOKEN.sub(REDACTED, text) if "relay-" in text else text


def _visible(match: re.Match[str]) -> str:
    found = match[0]
    if found == "\r\n":
        return "\n"
    number = ord(found)
    if number == 0 or 0xD800 <= number <= 0xDFFF:
        return _LOST
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"

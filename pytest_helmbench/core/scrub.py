"""Foreign text made fit for people: terminals, XML, SQLite and log files survive what it carries."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from math import isfinite
from typing import Protocol

from pytest_helmbench.core.json_types import JsonValue

REDACTED = "<redacted>"
"""Stands in place of a hidden value in all output."""

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
_COMMAND = re.compile(r"##(?=\[|vso\[|teamcity\[)", re.IGNORECASE)  # of logs: anywhere in a line
_LOST = "\N{REPLACEMENT CHARACTER}"
HIDDEN_TEXT = "(text of the reply)"
"""Stands in `observed` where running text of a reply was observed."""
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|(?:^|_)PAT(?:_|$)", re.IGNORECASE)
_SHORTEST = 8  # shorter values are words that anything may hold


def scrub(text: str) -> str:
    """Return the text with everything that a terminal, file or parser could choke on made visible.

    Control and bidi characters become `\\x1b` and `\\u202e`, lone surrogates and NUL the replacement
    character, CRLF a newline. Newlines and tabs stay; nothing is cut.
    """
    if _HARMFUL.search(text) is None:
        return text
    return _HARMFUL.sub(_visible, text)


def scrubbed(value: JsonValue) -> JsonValue:
    """Return a JSON value whose texts and names are scrubbed, and whose numbers are finite."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        return [scrubbed(one) for one in value]
    if isinstance(value, dict):
        return {scrub(name): scrubbed(one) for name, one in value.items()}
    return value if not isinstance(value, float) or isfinite(value) else None


def quoted(text: str) -> str:
    """Return a scrubbed text of others whose lines no log of a CI takes for a command.

    `::error::` counts for GitHub where a line begins with it, `##[` for GitHub and Azure anywhere. So a line that
    begins with `::` stands behind a bar, and `##[` becomes `## [`.

    Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
    """
    text = quoted_page(text)
    if "::" not in text:
        return text
    return "".join(
        f"| {line}" if line.lstrip().startswith("::") else line for line in text.splitlines(keepends=True)
    )


def quoted_page(text: str) -> str:
    """Return a scrubbed page for a browser with `##[` as `quoted` has it; what begins a line of a page is ours."""
    return _COMMAND.sub("## ", scrub(text))


def quoted_json(text: str) -> str:
    """Return JSON that says the same and holds nothing which a log of a CI takes for a command: `#\\u0023[`.

    A line of it never begins with `::`, since texts stand in quotation marks.
    """
    return _COMMAND.sub(r"#\\u0023", text)


def excerpt(text: str, limit: int = 300, *, indented: bool = False) -> str:
    """Return the scrubbed start of the text.

    Args:
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


class ShownTexts(StrEnum):
    """The cases whose texts are shown."""

    NONE = "none"
    FAILURES = "failures"
    ALL = "all"

    @property
    def any(self) -> bool:
        """Whether there is a text at all."""
        return self is not ShownTexts.NONE

    def of(self, outcome: str) -> bool:
        """Return whether the texts of a case with this outcome are shown."""
        return self is ShownTexts.ALL or (self is ShownTexts.FAILURES and outcome == "failed")


class _Evaluated(Protocol):
    @property
    def observed(self) -> str:
        """The observed value, without running text of a reply."""

    @property
    def observed_text(self) -> str | None:
        """That text; None for none."""


def full_observed(evaluated: _Evaluated) -> str:
    """Return what was observed, for where texts are shown."""
    return evaluated.observed if evaluated.observed_text is None else evaluated.observed_text


def secrets_of(environ: Mapping[str, str], named: Collection[str] = ()) -> HiddenValues:
    """Return the values of the variables whose names say that they hold a secret.

    Args:
        named: Further variables that do.
    """
    return HiddenValues(
        value for name, value in environ.items() if name in named or _SECRET.search(name) is not None
    )


class HiddenValues:
    """Values that are not stored.

    Args:
        values: Those of fewer than 8 characters are left out.
    """

    def __init__(self, values: Iterable[str]) -> None:
        stripped = {value.strip() for value in values}
        # The longest first: one may be part of another.
        self._values = sorted((value for value in stripped if len(value) >= _SHORTEST), key=len, reverse=True)
        forms = {
            json.dumps(value, ensure_ascii=plain)[1:-1] for value in self._values for plain in (True, False)
        }
        self._encoded = sorted(
            (form.encode("utf-8", "surrogatepass") for form in forms), key=len, reverse=True
        )

    def without(self, value: object) -> object:
        """Return a value of JSON types without them."""
        if isinstance(value, str):
            for hidden in self._values:
                value = value.replace(hidden, REDACTED)
            return value
        if isinstance(value, Mapping):
            return {self.without(name): self.without(one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.without(one) for one in value]
        return value

    def without_in_json(self, body: bytes) -> bytes:
        """Return an encoded JSON text without them."""
        for hidden in self._encoded:
            if hidden in body:
                body = body.replace(hidden, REDACTED.encode())
        return body

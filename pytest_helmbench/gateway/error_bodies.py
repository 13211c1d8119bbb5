"""Error bodies: reading the forms in which OpenAI, OpenRouter, Google, Azure, FastAPI and Ollama report errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["LONGEST_READ", "ErrorBody", "read_error", "read_error_body"]

LONGEST_READ = 20_000
"""Characters of an error that are looked at."""


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """What an error body says, whatever its form.

    Args:
        message: For people; foreign text.
        words: Its codes, types and reasons, in lower case.
        status: The HTTP status that it names itself.
        parameter: Request parameter that it blames.
        moderated: The prompt was refused by moderation.
    """

    message: str = ""
    words: frozenset[str] = frozenset()
    status: int | None = None
    parameter: str | None = None
    moderated: bool = False


def read_error_body(body: bytes) -> ErrorBody:
    """Return what the body of an HTTP error says: JSON of a known form, else text without tags."""
    text = body[: 4 * LONGEST_READ].decode("utf-8", "replace")
    try:
        document = json.loads(body) if len(body) <= 4 * LONGEST_READ else None
    except (ValueError, RecursionError):
        document = None
    if document is None:
        return ErrorBody(re.sub(r"<[^<>]*>", " ", text[:LONGEST_READ]))
    return read_error(document)


def read_error(document: object) -> ErrorBody:
    """Read the error forms of OpenAI, OpenRouter, Google (a list), Azure, FastAPI and Ollama."""
    if isinstance(document, list):
        document = document[0] if document else None
    if not isinstance(document, dict):
        return ErrorBody(document if isinstance(document, str) else "")
    error = document.get("error")
    if not isinstance(error, dict):
        error = {**document, "message": error} if isinstance(error, str) else document
    metadata = _mapping(error.get("metadata"))
    upstream = _read_upstream(metadata.get("raw"))
    message = _first_text(error.get("message"), error.get("detail"), error.get("msg"))
    if upstream.message and upstream.message not in message:
        message = f"{message}: {upstream.message}" if message else upstream.message
    parameter = error.get("param")
    return ErrorBody(
        message=message,
        words=frozenset(_words(error)) | upstream.words,
        status=_as_status(error.get("code")) or _as_status(error.get("status")),
        parameter=parameter if isinstance(parameter, str) else upstream.parameter,
        moderated="flagged_input" in metadata or upstream.moderated,
    )


def _read_upstream(raw: object) -> ErrorBody:
    """Read what a router passes on of the server behind it."""
    if not isinstance(raw, str) or not raw:
        return ErrorBody()
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return ErrorBody(raw)
    said = read_error(document)
    return said if said.message or said.words else ErrorBody(raw)


def _words(error: JsonObject) -> Iterator[str]:
    details = error.get("details")
    inner = [item for item in details if isinstance(item, dict)] if isinstance(details, list) else []
    for source in (error, _mapping(error.get("innererror")), *inner):
        for key in ("code", "type", "status", "reason"):
            value = source.get(key)
            if isinstance(value, str):
                yield value.lower()


def _mapping(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _first_text(*values: object) -> str:
    for value in values:
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list | dict) and value:
            return json.dumps(value)[:LONGEST_READ]
    return ""


def _as_status(value: object) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"[3-5]\d\d", value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 300 <= value <= 599:
        return value
    return None

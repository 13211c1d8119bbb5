"""The id and the versions of a manifest, read from its text without a YAML parser, to tell a pack from others."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pytest_helmbench.core.json_types import JsonValue

__all__ = ["manifest_start"]

_LARGEST = 1_000_000  # bytes of a manifest that are looked at
_KEY = re.compile(
    r"""^(?P<indent>[ ]*)(?P<quote>["']?)(?P<key>id|version|schema_version)(?P=quote)[ \t]*:(?:[ \t]+(?P<value>.*))?$"""
)
_JSON_FACT = re.compile(r'"(id|version|schema_version)"\s*:\s*("[^"\n]*"|[-+]?[0-9]+)')
_FIRST_KEY = re.compile(r"^([ ]*)[^\s#%\-]", re.MULTILINE)
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_WHOLE = re.compile(r"[-+]?[0-9]+\Z")
_NUMBER = re.compile(r"[-+]?(?:[0-9][0-9_]*)?\.?[0-9]+(?:[eE][-+]?[0-9]+)?\Z")
_LONGEST_NUMBER = 100
_NO_TEXT = frozenset({"", "~", "null", "true", "false", "yes", "no", "on", "off"})


def manifest_start(path: Path) -> dict[str, JsonValue]:
    """Return `id`, `version` and `schema_version` as far as they are there; empty where it cannot be read."""
    text = _start_of(path)
    if text is None:
        return {}
    return _facts_of_json(text) if text.lstrip()[:1] == "{" else _facts_of_yaml(text)


def _start_of(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST).decode("utf-8-sig", "replace")
    except OSError:
        return None


def _facts_of_json(text: str) -> dict[str, JsonValue]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # broken, which loading tells
        return {match[1]: _scalar(match[2]) for match in reversed([*_JSON_FACT.finditer(text)])}
    return found if isinstance(found, dict) else {}


def _facts_of_yaml(text: str) -> dict[str, JsonValue]:
    """Return id, version and schema_version as they stand at the top level."""
    first = _FIRST_KEY.search(text)
    indent = first[1] if first is not None else ""
    facts: dict[str, JsonValue] = {}
    for line in text.splitlines():
        match = _KEY.match(line)
        if match is not None and match["indent"] == indent:
            facts.setdefault(match["key"], _scalar(match["value"] or ""))
    return facts


def _scalar(written: str) -> str | int | None:
    """Return text or a whole number as YAML would; None for anything else."""
    bare = written.strip()
    if bare[:1] in ("'", '"'):
        end = bare.find(bare[0], 1)
        return bare[1:end] if end > 0 else None
    bare = _COMMENT.sub("", bare).strip()
    if len(bare) > _LONGEST_NUMBER:
        return bare
    if _WHOLE.match(bare):
        return int(bare)
    if bare.lower() in _NO_TEXT or _NUMBER.match(bare) or bare[:1] in ("[", "{"):
        return None
    return bare

"""What a model or agent is told about a row. Only public values come in, so no other can come out."""

from __future__ import annotations

import hashlib
import json
import re
import string
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.resources import files
from string import Template
from typing import Any

from pytest_helmbench.benchmarks.packs.task import ConfigError, Family, PackTask
from pytest_helmbench.core.case import Message

__all__ = ["TEMPLATE_VERSIONS", "messages_of", "prompt_of", "render", "template_hash"]

TEMPLATE_VERSIONS: Mapping[Family, int] = dict.fromkeys(Family, 1)
"""Version of the template in use. A template that is changed is a new file and a new version."""

_FENCE = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)
_NO_LABEL = re.compile(r"[^a-z0-9+#.-]")
_HASH_DIGITS = 16


def prompt_of(task: PackTask) -> str:
    """Return the prompt of a row: the user message of a text family, the task message of an agent.

    Raises:
        ConfigError: The family is not known here, or a field that its prompt needs is missing.
    """
    if task.family is None:
        raise ConfigError(f"{task.id}: there is no prompt for the family {task.task_type!r}")
    try:
        return render(task.family, task.public())
    except ConfigError as error:
        raise ConfigError(f"{task.id}: {error}") from error


def messages_of(task: PackTask, system_prompt: str | None) -> tuple[Message, ...]:
    """Return what a row's model is asked: a system message of the user's, if there is one, and the prompt.

    Raises:
        ConfigError: See `prompt_of`.
    """
    user = Message("user", prompt_of(task))
    return (user,) if system_prompt is None else (Message("system", system_prompt), user)


def render(family: Family, public: Mapping[str, Any]) -> str:
    """Return the prompt for public values.

    A paragraph of the template whose value is absent or blank is left out.

    Raises:
        ConfigError: A field that the prompt needs is missing.
    """
    values: dict[str, str] = {}
    for name, text_of in _VALUES[family].items():
        values[name] = text_of(public)
    for name in _NEEDED[family]:
        if not values[name].strip():
            raise ConfigError(f"input.{name}: the prompt needs it")
    paragraphs = (
        paragraph.safe_substitute(values)
        for names, paragraph in _paragraphs(family)
        if all(values[name].strip() for name in names)
    )
    return "\n\n".join(paragraphs)


@lru_cache
def template_hash(family: Family) -> str:
    """Return 16 hex digits over the family's template and its version."""
    text = f"{family.value}\n{TEMPLATE_VERSIONS[family]}\n{_template(family)}"
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]


@lru_cache
def _template(family: Family) -> str:
    name = f"{family.value}.v{TEMPLATE_VERSIONS[family]}.md"
    folder = files("pytest_helmbench.benchmarks.packs.format.prompts")
    return folder.joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")


@lru_cache
def _paragraphs(family: Family) -> tuple[tuple[tuple[str, ...], Template], ...]:
    templates = [Template(text) for text in _template(family).strip().split("\n\n")]
    return tuple((tuple(template.get_identifiers()), template) for template in templates)


def _text(name: str) -> Callable[[Mapping[str, Any]], str]:
    """Return what writes a field: text as it stands, a mapping by its keys, a list by its entries."""

    def write(public: Mapping[str, Any]) -> str:
        value = public.get(name)
        if isinstance(value, dict):
            return "\n".join(f"{key}: {_inline(item)}" for key, item in value.items())
        if isinstance(value, list):
            return "\n".join(f"- {_inline(item)}" for item in value)
        return "" if value is None else _inline(value).strip("\n")

    return write


def _inline(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _choices(public: Mapping[str, Any]) -> str:
    choices = public.get("choices") or ()
    letters = string.ascii_uppercase
    if len(choices) > len(letters):
        raise ConfigError(
            f"input.choices: there are {len(choices)} choices, at most {len(letters)} have a letter"
        )
    return "\n".join(f"{letter}) {_inline(choice)}" for letter, choice in zip(letters, choices, strict=False))


def _starter(public: Mapping[str, Any]) -> str:
    """Return the starter code in a fence that nothing inside it can close."""
    code = str(public.get("starter_code") or "")
    if not code.strip():
        return ""
    longest = max((len(run) for run in _FENCE.findall(code)), default=2)
    fence = "`" * max(3, longest + 1)
    label = _NO_LABEL.sub("", _language(public).lower())
    return f"{fence}{label}\n{code.rstrip()}\n{fence}"


def _language(public: Mapping[str, Any]) -> str:
    language = str(public.get("language") or "").strip()
    return "Python" if language.lower() in ("", "python", "python3", "py") else language


def _assets(public: Mapping[str, Any]) -> str:
    lines = []
    for asset in public.get("assets") or ():
        note = " (read-only)" if asset.get("read_only") else ""
        lines.append(f"- {asset.get('mount')}{note}")
    return "\n".join(lines)


_VALUES: Mapping[Family, Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    Family.MULTIPLE_CHOICE: {"question": _text("question"), "choices": _choices},
    Family.SHORT_ANSWER: {
        "context": _text("context"),
        "question": _text("question"),
        "answer_format": _text("answer_format"),
    },
    Family.FREE_RESPONSE: {"context": _text("context"), "prompt": _text("prompt")},
    Family.CODE_COMPLETION: {
        "prompt": _text("prompt"),
        "language": _language,
        "starter_code": _starter,
    },
    Family.REPO_PATCH: {
        "repo": _text("repo"),
        "base_commit": _text("base_commit"),
        "instructions": _text("instructions"),
        "hints": _text("hints"),
        "assets": _assets,
    },
    Family.TERMINAL_TASK: {
        "instructions": _text("instructions"),
        "context": _text("context"),
        "assets": _assets,
    },
}

_NEEDED: Mapping[Family, tuple[str, ...]] = {
    Family.MULTIPLE_CHOICE: ("question", "choices"),
    Family.SHORT_ANSWER: ("question",),
    Family.FREE_RESPONSE: ("prompt",),
    Family.CODE_COMPLETION: ("prompt",),
    Family.REPO_PATCH: ("repo", "base_commit", "instructions"),
    Family.TERMINAL_TASK: ("instructions",),
}

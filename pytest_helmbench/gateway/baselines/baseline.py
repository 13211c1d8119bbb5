"""The embedded reference models: they answer any schema without a network, so that a score has a floor."""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from typing import Any

from referencing.exceptions import Unresolvable

from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import without_surrogates
from pytest_helmbench.gateway.baselines.schema_answer import NoAnswerError, Taste, schema_answer

__all__ = ["BASELINE_IDS", "baseline_reply", "guarded_reply"]

BASELINE_IDS = ("baseline/lexical", "baseline/random", "baseline/first")

_CHARACTERS_PER_TOKEN = 4
_CLOSING_TAG = re.compile(r"^</([^<>/\s]+)>[ \t\r]*$", re.MULTILINE)
_CHOICE = re.compile(r"^([A-Z])\) .+$", re.MULTILINE)
_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
_SUFFIXES = ("ingly", "edly", "ation", "ness", "ment", "ing", "ies", "ed", "ly", "es", "s", "e", "y")
_SHORTEST_STEM = 3
_LONGEST_SENTENCE = 300
_MOST_NODES = 5_000
_LARGEST_BOUND = 1_000
_BOUNDS = ("minItems", "minLength", "minProperties", "minContains")
# What a schema may do to its reader that nobody has validated.
_TROUBLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    re.error,
    Unresolvable,
)


def baseline_reply(model_id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a chat-completions request; the same request always gets the same answer.

    `lexical` takes the option that shares most word stems with the last section of the last user message,
    `random` any (drawn from model, `seed` and messages), `first` the first. Without a schema, lines `A) …`, `B) …`
    are the options. A tool is called only when the
    request forces one.

    Args:
        model_id: One of `BASELINE_IDS`.
        body: The request as it would be sent.

    Returns:
        A chat completion as a provider's JSON decodes. Tokens are estimated from characters; it costs 0.

    Raises:
        HelmbenchError: No such baseline, or no value was found that fits the response schema.
    """
    messages = json.dumps(body.get("messages", []), sort_keys=True)
    section = _last_section(body)
    question, choices = _lettered_choices(section)
    taste = _taste(model_id, f"{model_id}\n{body.get('seed')}\n{messages}", question)
    tool = _forced_tool(body, taste)
    if tool is None:
        content = _content(model_id, body.get("response_format"), taste, choices)
        message = {"role": "assistant", "content": content, "refusal": None}
    else:
        content = _arguments(model_id, tool, taste)
        message = _tool_message(tool, content)
    prompt_tokens = _tokens(sum(map(len, _contents(body))))
    completion_tokens = _tokens(len(content))
    return {
        "id": f"baseline-{sha256(f'{model_id}{messages}{content}'.encode()).hexdigest()[:16]}",
        "object": "chat.completion",
        "created": 0,
        "model": model_id,
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop" if tool is None else "tool_calls",
                "message": message,
            }
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "cost": 0.0,
        },
    }


def guarded_reply(model_id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a request that is not ours, as `baseline_reply` does: its schemas may be anything.

    Raises:
        HelmbenchError: See `baseline_reply`; or a schema is broken, or too large for an embedded model.
    """
    try:
        _bound_schemas(model_id, [body.get("response_format"), body.get("tools")])
        return baseline_reply(model_id, body)
    except HelmbenchError:
        raise
    except _TROUBLE as error:
        raise HelmbenchError(
            f"{model_id}: the request holds a schema or message that cannot be read"
        ) from error


def _bound_schemas(model_id: str, parts: list[Any]) -> None:
    """Refuse what would take an embedded model all memory."""
    for _ in range(_MOST_NODES):
        if not parts:
            return
        part = parts.pop()
        if isinstance(part, dict):
            for name in _BOUNDS:
                bound = part.get(name, 0)
                if isinstance(bound, int | float) and bound > _LARGEST_BOUND:
                    raise HelmbenchError(
                        f"{model_id}: {name} is {bound:g}: it answers up to {_LARGEST_BOUND}"
                    )
            parts.extend(part.values())
        elif isinstance(part, list):
            parts.extend(part)
    raise HelmbenchError(f"{model_id}: the schemas of the request have more than {_MOST_NODES} parts")


def _forced_tool(body: Mapping[str, Any], taste: Taste) -> Mapping[str, Any] | None:
    """Return the function that a request wants called; None where that is left to the model."""
    choice = body.get("tool_choice")
    if choice is None or choice in ("auto", "none"):
        return None
    tools: list[Mapping[str, Any]]
    tools = [tool["function"] for tool in body.get("tools") or () if tool.get("type") == "function"]
    if choice != "required":
        name = choice["function"]["name"]
        tools = [tool for tool in tools if tool["name"] == name]
    if not tools:
        raise HelmbenchError("the request forces a tool call, but holds no such tool")
    forced: Mapping[str, Any] = taste.ranked(tools)[0]
    return forced


def _arguments(model_id: str, tool: Mapping[str, Any], taste: Taste) -> str:
    try:
        return json.dumps(
            schema_answer(tool.get("parameters") or {"type": "object"}, taste), ensure_ascii=False
        )
    except NoAnswerError as error:
        raise HelmbenchError(f"{model_id}: {error}") from error


def _tool_message(tool: Mapping[str, Any], arguments: str) -> dict[str, Any]:
    number = sha256(f"{tool['name']}{arguments}".encode()).hexdigest()[:16]
    function = {"name": tool["name"], "arguments": arguments}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "refusal": None, "tool_calls": [call]}


@dataclass(frozen=True, slots=True)
class _First:
    """The first of everything."""

    def ranked(self, options: Sequence[Any]) -> list[Any]:
        return list(options)

    def tags(self, options: Sequence[Any]) -> list[Any]:
        return [options[0]]

    def words(self) -> str:
        return "ok"


@dataclass(frozen=True, slots=True)
class _Random:
    """Any, from a seeded source."""

    source: random.Random

    def ranked(self, options: Sequence[Any]) -> list[Any]:
        return self.source.sample(list(options), len(options))

    def tags(self, options: Sequence[Any]) -> list[Any]:
        chosen = set(self.source.sample(range(len(options)), self.source.randint(1, len(options))))
        return [option for index, option in enumerate(options) if index in chosen]

    def words(self) -> str:
        return "ok"


@dataclass(frozen=True, slots=True)
class _Lexical:
    """What shares most words with a text."""

    text: str
    stems: frozenset[str]

    def ranked(self, options: Sequence[Any]) -> list[Any]:
        return sorted(options, key=self._shared, reverse=True)  # stable: ties stay in order

    def tags(self, options: Sequence[Any]) -> list[Any]:
        return [option for option in options if self._shared(option)] or [options[0]]

    def words(self) -> str:
        return _first_sentence(self.text) or "ok"

    def _shared(self, option: Any) -> int:
        text = option if isinstance(option, str) else json.dumps(option)
        return len(self.stems.intersection(_stems(text)))


def _taste(model_id: str, seed: str, section: str) -> Taste:
    match model_id:
        case "baseline/first":
            return _First()
        case "baseline/lexical":
            return _Lexical(section, frozenset(_stems(section)))
        case "baseline/random":
            return _Random(random.Random(seed))
    nearest = get_close_matches(model_id, BASELINE_IDS, n=1)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    raise HelmbenchError(
        f"{model_id}: there is no such baseline\n  hint: {hint}known baselines: {', '.join(BASELINE_IDS)}"
    )


def _content(model_id: str, response_format: Any, taste: Taste, choices: Sequence[str]) -> str:
    kind = response_format.get("type") if isinstance(response_format, Mapping) else None
    if kind == "json_object":
        return json.dumps({"answer": taste.words()}, ensure_ascii=False)
    if kind != "json_schema":
        return f"Answer: {taste.ranked(choices)[0][0]}" if choices else taste.words()
    try:
        answer = schema_answer(response_format["json_schema"]["schema"], taste)
    except NoAnswerError as error:
        raise HelmbenchError(
            f"{model_id}: {error}\n  hint: simplify the schema, or leave the baselines out for this scenario"
        ) from error
    return json.dumps(answer, ensure_ascii=False)


def _contents(body: Mapping[str, Any]) -> Iterator[str]:
    return (_text(message.get("content")) for message in body.get("messages", ()))


def _text(content: Any) -> str:
    """Return the text of a message, which the wire also carries as a list of parts."""
    if isinstance(content, str):
        return without_surrogates(content)
    if isinstance(content, list):
        return "\n".join(_text(part.get("text")) for part in content if isinstance(part, Mapping))
    return ""


def _last_section(body: Mapping[str, Any]) -> str:
    """Return the body of the last `<slug>…</slug>` of the last user message; all of it without one."""
    users = [message for message in body.get("messages", ()) if message.get("role") == "user"]
    text = _text(users[-1].get("content")) if users else ""
    closings = list(_CLOSING_TAG.finditer(text))
    if not closings:
        return text
    closing = closings[-1]
    opening = f"<{closing[1]}>"
    start = text.rfind(opening, 0, closing.start())
    return text if start < 0 else text[start + len(opening) : closing.start()].strip()


def _lettered_choices(text: str) -> tuple[str, Sequence[str]]:
    """Return what stands before `A) …`, `B) …` on lines of their own, and these; the whole text without any."""
    lines = list(_CHOICE.finditer(text))
    letters = "".join(line[1] for line in lines)
    if len(lines) < 2 or not string.ascii_uppercase.startswith(letters):
        return text, ()
    return text[: lines[0].start()], [line[0] for line in lines]


def _first_sentence(text: str) -> str:
    start = text.strip()[:_LONGEST_SENTENCE]
    end = _SENTENCE_END.search(start)
    return start if end is None else start[: end.end()].strip()


def _stems(text: str) -> Iterator[str]:
    return (_stem(word) for word in _WORD.findall(text.lower()))


def _stem(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            return word.removesuffix(suffix)
    return word


def _tokens(characters: int) -> int:
    return max(1, characters // _CHARACTERS_PER_TOKEN)

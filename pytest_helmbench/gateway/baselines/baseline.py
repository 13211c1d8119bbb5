"""The embedded reference models: a chat completion for any request, made without a network."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Sequence
from hashlib import sha256

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import without_surrogates
from pytest_helmbench.gateway.baselines.schema_answer import NoAnswerError, Taste, object_of, schema_answer

_CHARACTERS_PER_TOKEN = 4
_CLOSING_TAG = re.compile(r"^</([^<>/\s]+)>[ \t\r]*$", re.MULTILINE)
_CHOICE = re.compile(r"^([A-Z])\) .+$", re.MULTILINE)
_MOST_NODES = 5_000
_LARGEST_BOUND = 1_000
_BOUNDS = ("minItems", "minLength")
# What a schema may do to its reader before it is validated.
_TROUBLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def baseline_reply(model_id: str, body: JsonObject) -> JsonObject:
    """Answer a chat-completions request; the same request always gets the same answer.

    `lexical` and `lookup` take the option that shares most word stems with the last section of the last user message,
    `random` any (drawn from model, `seed` and messages), `first` the first. Without a schema, lines `A) …`, `B) …`
    are the options. It calls no tool.

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
    prompts = [_text(message.get("content")) for message in _objects(body, "messages")]
    taste = Taste(model_id, f"{model_id}\n{body.get('seed')}\n{messages}", question, "\n".join(prompts))
    content = _content(model_id, body.get("response_format"), taste, choices)
    prompt_tokens = _tokens(sum(map(len, prompts)))
    completion_tokens = _tokens(len(content))
    return {
        "id": f"baseline-{sha256(f'{model_id}{messages}{content}'.encode()).hexdigest()[:16]}",
        "object": "chat.completion",
        "created": 0,
        "model": model_id,
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": content, "refusal": None},
            }
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "cost": 0.0,
        },
    }


def guarded_reply(model_id: str, body: JsonObject) -> JsonObject:
    """Answer a request that is not ours, as `baseline_reply` does: its schemas may be anything.

    Raises:
        HelmbenchError: See `baseline_reply`; or a schema is broken, or too large for an embedded model.
    """
    try:
        _bound_schemas(model_id, [body.get("response_format")])
        return baseline_reply(model_id, body)
    except HelmbenchError:
        raise
    except _TROUBLE as error:
        raise HelmbenchError(
            f"{model_id}: the request holds a schema or message that cannot be read"
        ) from error


def _bound_schemas(model_id: str, open_parts: list[JsonValue]) -> None:
    """Refuse what would take an embedded model all memory."""
    for _ in range(_MOST_NODES):
        if not open_parts:
            return
        part = open_parts.pop()
        if isinstance(part, dict):
            for name in _BOUNDS:
                bound = part.get(name, 0)
                if isinstance(bound, int | float) and bound > _LARGEST_BOUND:
                    raise HelmbenchError(
                        f"{model_id}: {name} is {bound:g}: it answers up to {_LARGEST_BOUND}"
                    )
            open_parts.extend(part.values())
        elif isinstance(part, list):
            open_parts.extend(part)
    raise HelmbenchError(f"{model_id}: the schemas of the request have more than {_MOST_NODES} parts")


def _content(model_id: str, response_format: JsonValue, taste: Taste, choices: Sequence[str]) -> str:
    wanted = response_format if isinstance(response_format, dict) else {}
    kind = wanted.get("type")
    if kind == "json_object":
        return json.dumps({"answer": taste.words()}, ensure_ascii=False)
    if kind != "json_schema":
        return f"Answer: {taste.ranked(choices)[0][0]}" if choices else taste.words()
    schema = object_of(object_of(wanted["json_schema"])["schema"])
    try:
        answer = schema_answer(schema, taste)
    except NoAnswerError as error:
        raise HelmbenchError(
            f"{model_id}: {error}\n"
            "  hint: use what strict structured outputs allow, or leave the baselines out for this scenario"
        ) from error
    return json.dumps(answer, ensure_ascii=False)


def _objects(body: JsonObject, name: str) -> list[JsonObject]:
    """Return a list of objects; empty where there is none."""
    listed = body.get(name) or []
    if not isinstance(listed, list):
        raise TypeError(f"{name} is no list")
    return [object_of(item) for item in listed]


def _text(content: JsonValue) -> str:
    """Return the text of a message, which the wire also carries as a list of parts."""
    if isinstance(content, str):
        return without_surrogates(content)
    if isinstance(content, list):
        return "\n".join(_text(part.get("text")) for part in content if isinstance(part, dict))
    return ""


def _last_section(body: JsonObject) -> str:
    """Return the body of the last `<slug>…</slug>` of the last user message; all of it without one."""
    users = [message for message in _objects(body, "messages") if message.get("role") == "user"]
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


def _tokens(characters: int) -> int:
    return max(1, characters // _CHARACTERS_PER_TOKEN)

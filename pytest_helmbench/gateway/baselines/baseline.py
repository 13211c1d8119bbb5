"""The embedded reference models: a chat completion for any request, made without a network."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping, Sequence
from hashlib import sha256

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import without_surrogates
from pytest_helmbench.gateway.baselines.schema_answer import (
    NoAnswerError,
    OptionPicker,
    json_list,
    object_of,
    schema_answer,
)

_CHARACTERS_PER_TOKEN = 4
_CLOSING_TAG = re.compile(r"^</([^<>/\s]+)>[ \t\r]*$", re.MULTILINE)
_CHOICE = re.compile(r"^([A-Z])\) .+$", re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.-])-?\d{1,15}(?!\w|\.\d)")
_QUOTED_OR_CODE = re.compile(r'["“]([^"“”]+)["”]|\b([^\W\d]*\d[\w-]*)')
_MOST_NODES = 5_000
_LARGEST_BOUND = 1_000
_BOUNDS = ("minItems", "minLength")
# Errors that an unvalidated schema causes in its reader.
_TROUBLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def baseline_reply(model_id: str, body: JsonObject) -> JsonObject:
    """Answer a chat-completions request; the same request always gets the same answer.

    `lexical` and `lookup` take the option that shares most word stems with the last section of the last user message,
    `random` any (drawn from model, `seed` and messages), `first` the first. Without a schema, lines `A) …`, `B) …`
    are the options.

    `lexical` and `lookup` call the tool that shares most words with the message, where the message holds all the
    arguments that it requires. A tool's answer behind the message is quoted, and counts as part of the message.

    Args:
        body: The request as it would be sent.

    Returns:
        A chat completion as a provider's JSON decodes. Tokens are estimated from characters; it costs 0.

    Raises:
        HelmbenchError: No such baseline, or no value was found that fits the response schema.
    """
    wire = json.dumps(body.get("messages", []), sort_keys=True)
    messages = _objects(body, "messages")
    last = max((at for at, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    question, choices = _lettered_choices(_last_section(messages[last]) if last >= 0 else "")
    answers = [
        _text(message.get("content")) for message in messages[last + 1 :] if message.get("role") == "tool"
    ]
    prompts = [_text(message.get("content")) for message in messages]
    seed = f"{model_id}\n{body.get('seed')}\n{wire}"
    picker = OptionPicker(model_id, seed, "\n".join([question, *answers]), "\n".join(prompts))
    wanted = body.get("response_format")
    called = None if answers else _tool_call(_objects(body, "tools"), picker, question)
    if called is not None:
        call: JsonValue = {"id": f"call_{len(messages)}", "type": "function", "function": called}
        reply: dict[str, JsonValue] = {"content": None, "tool_calls": [call]}
    elif answers and wanted is None:
        reply = {"content": f"The answer is: {' '.join(answers)}"}
    else:
        reply = {"content": _content(model_id, wanted, picker, choices)}
    return _completion(model_id, wire, reply, sum(map(len, prompts)))


def _completion(
    model_id: str, wire: str, message: Mapping[str, JsonValue], prompt_characters: int
) -> JsonObject:
    """Return a message as a chat completion."""
    content = str(message["content"] or message["tool_calls"])
    prompt_tokens, completion_tokens = _tokens(prompt_characters), _tokens(len(content))
    return {
        "id": f"baseline-{sha256(f'{model_id}{wire}{content}'.encode()).hexdigest()[:16]}",
        "object": "chat.completion",
        "created": 0,
        "model": model_id,
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
                "message": {"role": "assistant", "refusal": None, **message},
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


def _content(model_id: str, response_format: JsonValue, picker: OptionPicker, choices: Sequence[str]) -> str:
    wanted = response_format if isinstance(response_format, dict) else {}
    kind = wanted.get("type")
    if kind == "json_object":
        return json.dumps({"answer": picker.words()}, ensure_ascii=False)
    if kind != "json_schema":
        return f"Answer: {picker.ranked(choices)[0][0]}" if choices else picker.words()
    schema = object_of(object_of(wanted["json_schema"])["schema"])
    try:
        answer = schema_answer(schema, picker)
    except NoAnswerError as error:
        raise HelmbenchError(
            f"{model_id}: {error}\n"
            "  hint: use what strict structured outputs allow, or leave the baselines out for this scenario"
        ) from error
    return json.dumps(answer, ensure_ascii=False)


def _tool_call(
    tools: Sequence[JsonObject], picker: OptionPicker, question: str
) -> dict[str, JsonValue] | None:
    """Return name and arguments of the tool that shares most words with a message; None where none does."""
    functions = [object_of(tool["function"]) for tool in tools if tool.get("type") == "function"]
    shared = [
        picker.shared_with(_text(function.get("name")), _text(function.get("description")))
        for function in functions
    ]
    if not any(shared):
        return None
    chosen = functions[shared.index(max(shared))]
    schema = object_of(chosen.get("parameters") or {})
    found = _arguments(schema, question)
    if not {str(name) for name in json_list(schema.get("required", []))} <= found.keys():
        return None
    return {"name": chosen["name"], "arguments": json.dumps(found, ensure_ascii=False)}


def _arguments(schema: JsonObject, question: str) -> dict[str, JsonValue]:
    """Return the arguments that a message holds: values of an enum, whole numbers, quoted texts, words with digits."""
    numbers = _NUMBER.findall(question)
    texts = [quoted or code for quoted, code in _QUOTED_OR_CODE.findall(question)]
    found: dict[str, JsonValue] = {}
    for name, stated in object_of(schema.get("properties", {})).items():
        part = object_of(stated)
        named = [value for value in json_list(part.get("enum", [])) if str(value).lower() in question.lower()]
        if named:
            found[name] = named[0]
        elif part.get("type") in ("integer", "number") and numbers:
            found[name] = int(numbers.pop(0))
        elif part.get("type") == "string" and "enum" not in part and texts:
            found[name] = texts.pop(0)
    return found


def _objects(body: JsonObject, name: str) -> list[JsonObject]:
    """Return a list of objects; empty where there is none."""
    listed = body.get(name) or []
    if not isinstance(listed, list):
        raise TypeError(f"{name} is not a list")
    return [object_of(item) for item in listed]


def _text(content: JsonValue) -> str:
    """Return the text of a message, which the wire also carries as a list of parts."""
    if isinstance(content, str):
        return without_surrogates(content)
    if isinstance(content, list):
        return "\n".join(_text(part.get("text")) for part in content if isinstance(part, dict))
    return ""


def _last_section(message: JsonObject) -> str:
    """Return the body of the last `<slug>…</slug>` of a message; all of it without one."""
    text = _text(message.get("content"))
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

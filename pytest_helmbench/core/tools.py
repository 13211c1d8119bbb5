"""Calls of tools, and tools with canned answers: a run is the same every time, and needs no server."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import field, replace

from pytest_helmbench.core.foreign_schemas import schema_violation
from pytest_helmbench.core.json_types import (
    DEEPEST,
    JsonObject,
    JsonValue,
    is_deeper,
    refused_constant,
    same_json,
    without_twins,
)
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt, without_surrogates

UNKNOWN_TOOL, BROKEN_ARGUMENTS, UNREADABLE_CALL = "unknown_tool", "broken_arguments", "unreadable_call"
"""Faults of calls that cannot be made."""

_DECODER = json.JSONDecoder(parse_constant=refused_constant, object_pairs_hook=without_twins)
_WIRE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ARGUMENTS = ("arguments", "parameters", "input")
_OWN_FIELDS = frozenset(("id", "type", "function", "name", *_ARGUMENTS))
_OWN_MESSAGE_FIELDS = frozenset(("role", "tool_calls", "function_call"))
_TEXT_CALL = (
    r"""["'](?:name|function|tool|tool_name|action)["']\s*:\s*["'](?:functions\.)?{0}["']"""
    r"|(?:<tool_call|<function|<invoke|<\|?tool|<｜tool|\[TOOL_CALLS?\]|<\|python_tag\|>|functools\[|to=functions)"
    r"[^<]{{0,200}}?\b{0}\b"
    r"|```[^`]*\b{0}\("
    r"|^\s*(?:\w+\s*=\s*)?{0}\(.*\)\s*;?\s*$"
)
"""A call of the tool `{0}` in a text: JSON, the marks of model families, code in a fence or on a line of its own."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function that a model wants called.

    Args:
        id: Of the call; its answer names it.
        name: Of the function, as written.
        arguments: As written; a JSON object if all is well.
        server_fields: The server's own fields of the call, which it wants back.
        function_fields: Its own fields of the function.
    """

    id: str
    name: str
    arguments: str
    server_fields: JsonObject | None = field(default=None, compare=False)
    function_fields: JsonObject | None = field(default=None, compare=False)

    def wire(self, unnamed: str = "unknown") -> dict[str, JsonValue]:
        """Return the call as it goes back to the model; what providers would refuse in it is left out.

        Args:
            unnamed: The name in place of one that no provider takes.
        """
        name = self.name if _WIRE_NAME.fullmatch(self.name) else unnamed
        arguments = self.arguments if self.arguments.strip() and self.decoded() is not None else "{}"
        function: JsonValue = {**(self.function_fields or {}), "name": name, "arguments": arguments}
        return {**(self.server_fields or {}), "id": self.id, "type": "function", "function": function}

    def decoded(self) -> dict[str, JsonValue] | None:
        """Return the arguments; None when they are not a JSON object of at most 100 levels, each key once."""
        try:
            arguments = _DECODER.decode(self.arguments) if self.arguments.strip() else {}
        except (ValueError, RecursionError):
            return None
        return arguments if isinstance(arguments, dict) and not is_deeper(arguments) else None


def tool_calls(message: JsonObject, turn: int, taken: Collection[str] = ()) -> tuple[ToolCall, ...]:
    """Return the calls of a reply, whatever shape its server gives them, without lone surrogates.

    A call may stand without its envelope, or alone in the older `function_call`. One that names no function has an
    empty name, and all that it says for arguments.

    Args:
        turn: Makes ids for calls that come without one.
        taken: Ids of earlier calls of the conversation: an id that comes again gets a number.
    """
    stated = message.get("tool_calls") or message.get("function_call") or ()
    entries = stated if isinstance(stated, list | tuple) else (stated,)
    found: dict[str, ToolCall] = {}
    copies: Counter[str] = Counter()
    for number, entry in enumerate(entries, 1):
        call = _tool_call(entry, f"call_{turn}_{number}")
        identity = call.id
        while identity in found or identity in taken:
            copies[call.id] += 1
            identity = f"{call.id}_{copies[call.id] + 1}"
        found[identity] = replace(call, id=identity)
    return tuple(found.values())


def _tool_call(entry: JsonValue, spare_id: str) -> ToolCall:
    call = entry if isinstance(entry, dict) else {}
    stated = call.get("function")
    function = stated if isinstance(stated, dict) else {**call, "name": call.get("name") or stated}
    identity, name = call.get("id"), function.get("name")
    identity = without_surrogates(identity) if isinstance(identity, str) and identity else spare_id
    if not (isinstance(name, str) and name):
        return ToolCall(identity, "", without_surrogates(json.dumps(entry)))
    arguments = next((function[key] for key in _ARGUMENTS if function.get(key) is not None), "")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(
        identity,
        without_surrogates(name),
        "" if text.strip() == "null" else without_surrogates(text),
        {key: value for key, value in call.items() if key not in _OWN_FIELDS},
        {key: value for key, value in function.items() if key not in _OWN_FIELDS}
        if function is stated
        else {},
    )


def server_fields(message: JsonObject) -> dict[str, JsonValue]:
    """Return the fields of a reply that go back to its model unchanged: all but its role and calls, and empty ones."""
    return {
        name: value
        for name, value in message.items()
        if name not in _OWN_MESSAGE_FIELDS and value not in (None, "", [])
    }


def tool_called_in_text(text: str, names: Sequence[str]) -> str | None:
    """Return the first of the tools that a text calls, as models write calls that their server does not read."""
    for name in names:
        if name in text and re.search(_TEXT_CALL.format(re.escape(name)), text, re.MULTILINE):
            return name
    return None


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call that was answered.

    Args:
        turn: In which it was made, from 1.
        name: As written.
        arguments: As decoded; the text where it is not a JSON object.
        answer: The answer that the model got.
        fault: `UNKNOWN_TOOL`, `BROKEN_ARGUMENTS` or `UNREADABLE_CALL`; empty for a sound call.
        at: ISO 8601 UTC.
    """

    turn: int
    name: str
    arguments: JsonValue
    answer: str
    fault: str = ""
    at: str = field(default="", compare=False)

    @property
    def written(self) -> str:
        """The call for people: `order_status(order="1001")`; what is not a JSON object stands there as it came."""
        said = self.arguments
        if isinstance(said, dict):
            parts = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in said.items())
            return f"{self.name}({', '.join(parts)})"
        return f"{self.name}({said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)})"

    @property
    def with_answer(self) -> str:
        """The call and its answer, with the fault of a call that cannot be made."""
        fault = f" ({self.fault.replace('_', ' ')})" if self.fault else ""
        return f"{self.written}{fault} → {self.answer}"

    def data(self) -> dict[str, JsonValue]:
        """Return what the record keeps of it."""
        names = ("turn", "name", "arguments", "answer", "fault")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class CannedAnswer:
    """One answer of a tool.

    Args:
        given: Arguments that a call must have for it, each equal to its value; None for any.
        value: JSON; a text is sent as it is.
    """

    given: JsonObject | None
    value: JsonValue

    def fits(self, arguments: JsonObject) -> bool:
        """Return whether it answers a call with these arguments."""
        return all(
            name in arguments and same_json(arguments[name], value)
            for name, value in (self.given or {}).items()
        )


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call.

    Args:
        parameters: JSON Schema of its arguments, an object.
        returns: The first that fits a call answers it.
    """

    name: str
    description: str
    parameters: JsonObject
    returns: tuple[CannedAnswer, ...]

    def definition(self) -> dict[str, JsonValue]:
        """Return the tool as a request announces it."""
        function: JsonValue = {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools of a case.

    Args:
        max_rounds: How often calls are answered within one turn before it ends, at least 1.
    """

    tools: tuple[Tool, ...]
    max_rounds: int = 10

    def definitions(self) -> tuple[dict[str, JsonValue], ...]:
        """Return the tools as a request announces them."""
        return tuple(tool.definition() for tool in self.tools)

    def answered(self, call: ToolCall, turn: int) -> MadeCall:
        """Return a call with its answer, which says what is wrong with a call that cannot be made."""
        arguments = call.decoded()
        tool = next((tool for tool in self.tools if tool.name == call.name), None)
        written = call.arguments if arguments is None else arguments
        if not call.name:
            return MadeCall(turn, "", written, _error("the call names no function"), UNREADABLE_CALL)
        if tool is None:
            names = ", ".join(tool.name for tool in self.tools)
            error = f"there is no tool {excerpt(call.name, 64)!r}; the tools are: {names}"
            return MadeCall(turn, call.name, written, _error(error), UNKNOWN_TOOL)
        if arguments is None:
            error = f"the arguments are not a JSON object ({DEEPEST} levels, each key once)"
            return MadeCall(turn, call.name, written, _error(error), BROKEN_ARGUMENTS)
        breach = _breach(tool.parameters, arguments)
        if breach:
            error = f"the arguments break the schema of {tool.name}: {breach}"
            return MadeCall(turn, call.name, written, _error(error), BROKEN_ARGUMENTS)
        found = next((one for one in tool.returns if one.fits(arguments)), None)
        if found is None:
            return MadeCall(turn, call.name, written, _error("there is no answer to these arguments"))
        answer = found.value if isinstance(found.value, str) else json.dumps(found.value, ensure_ascii=False)
        return MadeCall(turn, call.name, written, answer)


def _breach(schema: JsonObject, arguments: JsonObject) -> str:
    try:
        breach = schema_violation(schema, dict(arguments))
    except HelmbenchError as error:
        return str(error).partition("\n")[0]
    return "they are nested too deeply" if breach is None else breach


def _error(message: str) -> str:
    return json.dumps({"error": message}, ensure_ascii=False)

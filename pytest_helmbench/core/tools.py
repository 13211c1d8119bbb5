"""Calls of tools, and tools with canned answers: a run is the same every time, and needs no server."""

from __future__ import annotations

import json
import re
from dataclasses import field

from pytest_helmbench.core.foreign_schemas import schema_violation
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt, without_surrogates

UNKNOWN_TOOL, BROKEN_ARGUMENTS = "unknown_tool", "broken_arguments"
"""Faults of calls that cannot be made."""


_WIRE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function that a model wants called.

    Args:
        id: Of the call; its answer names it.
        name: Of the function, as written.
        arguments: As written; a JSON object if all is well.
    """

    id: str
    name: str
    arguments: str

    def wire(self, unnamed: str = "unknown") -> dict[str, JsonValue]:
        """Return the call as it goes back to the model; what providers would refuse in it is left out.

        Args:
            unnamed: The name in place of one that no provider takes.
        """
        name = self.name if _WIRE_NAME.fullmatch(self.name) else unnamed
        arguments = self.arguments if self.arguments.strip() and self.decoded() is not None else "{}"
        function: JsonValue = {"name": name, "arguments": arguments}
        return {"id": self.id, "type": "function", "function": function}

    def decoded(self) -> dict[str, JsonValue] | None:
        """Return the arguments; None when they are not a JSON object of at most 100 levels."""
        try:
            arguments = json.loads(self.arguments, parse_constant=_refused) if self.arguments.strip() else {}
        except (ValueError, RecursionError):
            return None
        return arguments if isinstance(arguments, dict) and not _is_too_deep(arguments) else None


def _refused(constant: str) -> JsonValue:
    raise ValueError(f"{constant} is not JSON")


def _is_too_deep(value: JsonValue) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        parts = (
            one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)
        )
        level = [inner for part in parts for inner in part]
    return bool(level)


def tool_calls(message: JsonObject, turn: int) -> tuple[ToolCall, ...]:
    """Return the calls of a reply, whatever shape its server gives them, without lone surrogates.

    Args:
        message: As the server sent it.
        turn: Makes ids for calls that come without one.
    """
    stated = message.get("tool_calls")
    found = []
    for number, call in enumerate(stated if isinstance(stated, list) else (), 1):
        function = call.get("function") if isinstance(call, dict) else None
        if not (isinstance(call, dict) and isinstance(function, dict)):
            continue
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        identity = call.get("id")
        if not (isinstance(identity, str) and identity):
            identity = f"call_{turn}_{number}"
        found.append(ToolCall(*map(without_surrogates, (identity, str(function.get("name")), text))))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call that was answered.

    Args:
        turn: In which it was made, from 1.
        name: As written.
        arguments: As decoded; the text where it is not a JSON object.
        answer: The answer that the model got.
        fault: Why the call is none: `UNKNOWN_TOOL`, `BROKEN_ARGUMENTS`; empty for a sound one.
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
            name in arguments and arguments[name] == value for name, value in (self.given or {}).items()
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
        if tool is None:
            names = ", ".join(tool.name for tool in self.tools)
            error = f"there is no tool {excerpt(call.name, 64)!r}; the tools are: {names}"
            return MadeCall(turn, call.name, written, _error(error), UNKNOWN_TOOL)
        if arguments is None:
            error = f"the arguments are not a JSON object of at most {_DEEPEST} levels"
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

"""The evaluation type `tool_calls`: which tools the model calls, how, in which order and how often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import (
    COUNT,
    REQUIRED,
    TURN,
    EvaluationType,
    RuleSource,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import (
    ReplyRule,
    RuleFinding,
    reply_at,
)
from pytest_helmbench.benchmarks.scenario_trees.format.response_schema import arguments_faults
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.case_texts import observed_from
from pytest_helmbench.core.foreign_schemas import schema_violation
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import TOO_MANY_ROUNDS, Reply
from pytest_helmbench.core.tools import UNREADABLE_CALL, MadeCall, tool_called_in_text
from pytest_helmbench.files.source import listed
from pytest_helmbench.files.strict_json import a_mapping, a_text, a_whole_number

_FAULTS = {UNREADABLE_CALL: "a call that names no function"}
_NO_CALL = "(no tool call)"
_CALL_AS_TEXT = "(no tool call, but a call of {} as text: the server has no tool parser that reads it)"
_NAME: JsonObject = {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class NeededCall:
    """A call that must be made.

    Args:
        arguments: JSON Schema that its arguments must fit; None for any arguments that the tool takes.
    """

    name: str
    arguments: JsonObject | None = None

    def fits(self, call: MadeCall) -> bool:
        """Return whether a call is this one. One with a fault is none."""
        if call.name != self.name or call.fault:
            return False
        return self.arguments is None or schema_violation(self.arguments, call.arguments) == ""


@dataclass(frozen=True, slots=True)
class ToolCallsRule(ReplyRule):
    """The model makes the calls that it needs, none that is forbidden, and not too many.

    The calls are judged whatever the text of the reply. A turn that does not end is wrong.

    Args:
        required: One that is listed twice must be made twice.
        forbidden: Names of tools.
        in_order: The required calls come in this order, others between them.
        most: Calls at most; None for any number.
        turn: The turn that is judged; None for all of the conversation.
    """

    required: tuple[NeededCall, ...] = ()
    forbidden: tuple[str, ...] = ()
    in_order: bool = False
    most: int | None = None
    turn: int | None = None
    by_severity: bool = False
    type: str = "tool_calls"

    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> RuleFinding:
        """See `ReplyRule.checked`: a report shows names, and with texts also arguments."""
        del strict_json
        judged = reply_at(self, reply, self.turn)
        if any(one.too_many_rounds for one in (judged, *judged.turns)):
            return RuleFinding(False, judged.form_fault_text(TOO_MANY_ROUNDS), TOO_MANY_ROUNDS)
        calls = judged.tool_calls
        forbidden = next((at for at, call in enumerate(calls) if call.name in self.forbidden), None)
        passed = (
            self._are_made(calls) and forbidden is None and (self.most is None or len(calls) <= self.most)
        )
        known = [tool.name for tool in case.toolbox.tools] if case.toolbox is not None else []
        names = [
            call.name if call.name in known else f"({_FAULTS.get(call.fault, 'unknown tool')})"
            for call in calls
        ]
        made = [call.written for call in calls]
        texts = "\n".join(one.text for one in judged.turns or (judged,))
        written = None if calls else tool_called_in_text(texts, known)
        none = _NO_CALL if written is None else _CALL_AS_TEXT.format(written)
        return RuleFinding(passed, _listed(names, forbidden) or none, text=_listed(made, forbidden))

    def _are_made(self, calls: Sequence[MadeCall]) -> bool:
        """Return whether each required call is one of its own."""
        if self.in_order:
            rest = iter(calls)
            return all(any(needed.fits(call) for call in rest) for needed in self.required)
        fitting = [
            [number for number, call in enumerate(calls) if needed.fits(call)] for needed in self.required
        ]
        taken: dict[int, int] = {}
        return all(_takes(needed, fitting, taken, set()) for needed in range(len(fitting)))

    def wanted(self) -> str:
        names = [one.name if one.arguments is None else f"{one.name}(…)" for one in self.required]
        parts = [(" then " if self.in_order else ", ").join(names)] if names else []
        parts += [f"no {', no '.join(self.forbidden)}"] if self.forbidden else []
        calls = "call" if self.most == 1 else "calls"
        parts += [f"at most {self.most} {calls}"] if self.most is not None else []
        turn = f" at turn {self.turn}" if self.turn is not None else ""
        return f"{'; '.join(parts)}{turn}"

    def data(self) -> JsonObject:
        return {**ReplyRule.data(self), "required": [asdict(one) for one in self.required]}


def _listed(calls: Sequence[str], forbidden: int | None) -> str:
    return observed_from(", ".join(calls), forbidden and len(", ".join(calls[:forbidden])))


def _takes(needed: int, fitting: Sequence[Sequence[int]], taken: dict[int, int], seen: set[int]) -> bool:
    """Give a required call one of the calls that fit it, where another can give way (a maximum matching).

    Args:
        needed: Index of the required call.
        fitting: For each required call, the calls that fit it.
        taken: The required call that has each call.
        seen: Calls that were tried for it.
    """
    for call in fitting[needed]:
        if call not in seen:
            seen.add(call)
            if call not in taken or _takes(taken[call], fitting, taken, seen):
                taken[call] = needed
                return True
    return False


def _needed(source: RuleSource) -> Iterator[NeededCall]:
    stated = source.values.get("required")
    for one in stated if isinstance(stated, list) else ():
        values = a_mapping(one)
        arguments = values.get("arguments")
        name = a_text(one) or a_text(values.get("name")) or ""
        yield NeededCall(name, arguments if isinstance(arguments, dict) else None)


def _read(source: RuleSource) -> ToolCallsRule:
    most, turn = (a_whole_number(source.values.get(key)) for key in ("max", "turn"))
    in_order = source.values.get("in_order") is True
    forbidden = source.texts("forbidden")
    return ToolCallsRule(tuple(_needed(source)), forbidden, in_order, most, turn, source.by_severity)


def _check(source: RuleSource) -> None:
    if source.has_only("in_order", "turn"):
        message = "tool_calls: there is neither 'required' nor 'forbidden' nor 'max'"
        source.fault(message, "write 'required: [NAME]', for example")
    if source.tools == ():
        hint = "add tools.yml beside the scenario, or name one in benchmark.yml: 'tools: tools.yml'"
        source.fault("tool_calls: the scenario has no tools", hint, "type")
    names = [("forbidden", index, name) for index, name in enumerate(source.texts("forbidden"))]
    for index, needed in enumerate(_needed(source)):
        names.append(("required", index, needed.name))
        place = (*source.place, "required", index, "arguments")
        faults = arguments_faults(needed.arguments or {}, source.document.lines, place)
        source.reader.findings.add(source.files.prompt, *faults)
    source.check_turn()
    for key, index, name in names:
        if source.tools and name and name not in source.tools:
            hint = listed(name, source.tools, "the tools")
            source.fault(f"tool_calls: there is no tool {name!r}", hint, key, index)


TOOL_CALLS = EvaluationType(
    "tool_calls",
    {
        "required": REQUIRED,
        "forbidden": {
            "description": "list the names of tools that must not be called",
            "type": "array",
            "items": {**_NAME},
            "minItems": 1,
        },
        "in_order": {"description": "true where the required calls must come in order", "type": "boolean"},
        "max": COUNT,
        "turn": TURN,
    },
    _read,
    _check,
    narrowed={
        "required": {
            "description": "list the calls that must be made: names of tools, or {name: …, arguments: …}",
            "type": "array",
            "minItems": 1,
            "items": {
                "description": "write the name of a tool, or {name: …, arguments: a JSON Schema}",
                "type": ["string", "object"],
                "minLength": 1,
                "properties": {
                    "name": {**_NAME},
                    "arguments": {"description": "write a JSON Schema", "type": "object"},
                },
                "required": ["name"],
                "additionalProperties": False,
            },
        }
    },
    asks_for_polarity=True,
)

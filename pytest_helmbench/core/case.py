"""A case: what is sent, and the rule for its reply. Plain data that any process can take over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Literal

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.tools import Toolbox, ToolCall

JUDGED_RULE = "sqe"
"""`Evaluation.rule` where a marking model has judged."""


READ_BY_JUDGE = "(judge)"
"""End of `Evaluation.rule` where a marking model has read what the rule's words left open."""


def is_judgement(rule: str) -> bool:
    """Return whether a marking model has decided by a rule."""
    return rule == JUDGED_RULE or rule.endswith(READ_BY_JUDGE)


def justified_by(rule: str) -> str:
    """Return what stands before a justification: `judge` before a marking model's words, `because` before a rule's."""
    return "judge" if rule == JUDGED_RULE else "because"


class CaseRule:
    """The rule for the reply to a case. Every kind of benchmark has classes of its own for it.

    They are frozen values: thousands of cases may share one, and all that decides stands in it.
    """

    __slots__ = ()

    def refusal(self) -> str:
        """Return why no reply can be judged by it here, in a sentence; empty where one can."""
        return ""

    @property
    def bounds_a_call(self) -> bool:
        """Whether it measures how a single call went, so that its case goes in no batch."""
        return False

    @property
    def label(self) -> str | None:
        """The one label that the reply must give; None where a reply can do with another, or give several."""
        return None

    def of_case(self, _part: str) -> CaseRule:
        """Return the rule for one case, by the code of the part that tells it from the others."""
        return self


@dataclass(frozen=True, slots=True)
class BrokenCase:
    """A case that cannot run since its files are broken: planned as far as these could be read, never judged.

    Args:
        code: As far as it could be read: `P1-B2-S1-C1-PT3`, `P1-B2-S1`, the id of a row.
        severity: Base (−20..20); at least 1 where none could be read.
        difficulty: 0..10.
        evaluations: Rows that it would have had in each repetition.
    """

    code: str
    severity: int = 1
    difficulty: int = 0
    evaluations: int = 1


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message.

    Args:
        role: `system`, `user`, `assistant` or `tool`.
        tool_call_id: The call that a tool's message answers; None elsewhere.
        server_fields: What the server said in an assistant's message that calls tools, its content included; goes back
            to its model alone.
        task: The part of its text that is the task of its scenario; empty where none is.
    """

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    server_fields: JsonObject | None = field(default=None, compare=False)
    task: str = field(default="", compare=False)

    def without_task(self) -> Message:
        """Return the message without the task; with an empty text where it holds nothing else."""
        parts = self.content.split(self.task, 1) if self.task else [self.content]
        return replace(self, content="\n\n".join(filter(None, (part.strip("\n") for part in parts))))

    def wire(self) -> dict[str, JsonValue]:
        """Return the message as a chat completion has it."""
        plain: dict[str, JsonValue]
        if self.tool_calls:
            calls: JsonValue = [call.wire() for call in self.tool_calls]
            plain = {"role": self.role, "content": self.content or None}
            return {**plain, **(self.server_fields or {}), "tool_calls": calls}
        plain = {"role": self.role, "content": self.content}
        return plain if self.tool_call_id is None else {**plain, "tool_call_id": self.tool_call_id}


@dataclass(frozen=True, slots=True)
class Case:
    """One composed case.

    Args:
        messages: In order, up to and with the first message of the user.
        response_format: Wire form of the wanted reply, or None for plain text.
        severity: Base severity (−20..20).
        difficulty: 0..10.
        timeout_s: Of a request; None for that of the session.
        script: What follows the first message of the user: scripted replies (`assistant`) and later messages of the
            user, in order. The model is asked behind every message of the user that no scripted reply follows.
        toolbox: What the model may call; None for nothing.
        schema_turns: Which replies have the response format.
        own_system: The part of the system message that belongs to the case; a judge is shown it, and no other.
    """

    code: str
    messages: tuple[Message, ...]
    response_format: JsonObject | None
    rule: CaseRule
    severity: int = 0
    difficulty: int = 0
    timeout_s: float | None = None
    script: tuple[Message, ...] = ()
    toolbox: Toolbox | None = None
    schema_turns: Literal["last", "all"] = "last"
    own_system: str = ""

    @property
    def is_conversation(self) -> bool:
        """Whether its model may be asked more than once."""
        return bool(self.script) or self.toolbox is not None

    @property
    def asked_turns(self) -> tuple[int, ...]:
        """The turns at which the model is asked, from 1."""
        return asked_turns(self.script)

    def at(self, turn: int) -> Case:
        """Return the case as it is at a turn: without the response format where the reply there has none."""
        if not self.script or self.schema_turns == "all" or turn == self.asked_turns[-1]:
            return self
        return replace(self, response_format=None)

    @property
    def schema(self) -> JsonObject | None:
        """The bare JSON Schema of the wanted reply, or None for plain text."""
        if self.response_format is None:
            return None
        envelope = self.response_format["json_schema"]
        schema = envelope["schema"] if isinstance(envelope, dict) else None
        return schema if isinstance(schema, dict) else None


def at_risk(severity: int, difficulty: int) -> int:
    """Return what a case that is judged wrong costs, in tenths of its points: |severity| × (10 − difficulty)."""
    return abs(severity) * (10 - difficulty)


def asked_turns(script: Sequence[Message]) -> tuple[int, ...]:
    """Return the turns at which a model is asked, from 1: those without a scripted reply.

    Args:
        script: What follows the first message of the user; see `Case.script`.
    """
    if not script:
        return (1,)
    roles = ["user", *(message.role for message in script), "user"]
    turns = [place for place, role in enumerate(roles[:-1]) if role == "user"]
    return tuple(number for number, place in enumerate(turns, 1) if roles[place + 1] == "user")

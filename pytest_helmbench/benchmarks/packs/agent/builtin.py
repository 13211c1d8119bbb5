"""The built-in agent: a model, a shell, and a bound on everything."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import field

from pytest_helmbench.benchmarks.packs.agent.bash_tool import (
    BashTool,
    ToolCall,
    UnusableCallError,
    shell_block,
    tool_calls,
    tool_definition,
)
from pytest_helmbench.benchmarks.packs.agent.transcript import Stop, Transcript
from pytest_helmbench.core.case import Message
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Event
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.attempt import utc_now
from pytest_helmbench.gateway.faults import CallFailedError, FaultKind
from pytest_helmbench.gateway.gateway import NOT_ON_RECORD
from pytest_helmbench.gateway.relay.conversation import Conversation
from pytest_helmbench.gateway.relay.exchanges import RawReply
from pytest_helmbench.sandbox.box import Box, Limits

__all__ = ["AGENT_LIMITS", "AGENT_VERSION", "AgentLimits", "run_agent"]

AGENT_VERSION = 1
"""Of prompts, tool and loop: what changes them makes other requests."""

_MIB = 1024 * 1024
_CHARACTERS_PER_TOKEN = 4
_MOST_CALLS = 16
_MOST_CUT = 3


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """Bounds of a run of the agent.

    Args:
        turns: Replies of the model.
        tokens: Prompt and completion tokens of all calls together; estimated where the provider does not say.
        wall_s: Seconds from start to end, waiting for limits and for a place in the sandbox included.
        output_characters: Most that the model sees of one output: head and tail.
        command: Of each command.
    """

    turns: int = 50
    tokens: int = 2_000_000
    wall_s: float = 3600.0
    output_characters: int = 16_000
    command: Limits = Limits(
        wall_s=120.0,
        cpus=2.0,
        memory_bytes=2048 * _MIB,
        pids=256,
        output_bytes=1 * _MIB,
        disk_bytes=4096 * _MIB,
    )


AGENT_LIMITS = AgentLimits()

_WITH_TOOL = """\
You are an agent that works in a sandbox, all on your own: nobody answers questions. Call the function bash to look \
around, to change files and to check your work; its output comes back to you. When the task is done, reply without a \
call: a sentence or two on what you did. If you cannot call functions, write one fenced code block labelled bash \
instead, and it will be run."""

_WITHOUT_TOOL = """\
You are an agent that works in a sandbox, all on your own: nobody answers questions. To run a command, reply with one \
fenced code block labelled bash, and nothing after it:

```bash
ls -la
```

The block is run as one script in a new shell that starts in the workspace, and its output comes back to you. Of what \
it does, only the files in the workspace are kept: no process, no variable, no other folder. There is no network. \
Look around, change files and check your work in this way. When the task is done, reply without a block: a sentence or \
two on what you did."""

_TOO_MANY = f"Not run: at most {_MOST_CALLS} calls of one reply are."
_CUT_OFF = "Your reply was cut off at its token limit. Take smaller steps, and say less."
_KEPT_FIELDS = ("reasoning_details", "reasoning_content")
_ABOUT_TOOLS = re.compile(r"\btools?\b|\btool_choice\b|function[ _-]?call", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum (?:context|prompt|input)|too many (?:input )?tokens"
    r"|(?:prompt|input) is too long|exceeds? .{0,40}(?:context|token limit)",
    re.IGNORECASE,
)


async def run_agent(
    task: Sequence[Message],
    conversation: Conversation,
    box: Box,
    limits: AgentLimits = AGENT_LIMITS,
    *,
    offers_tool: bool = True,
) -> Transcript:
    """Let a model work on a task by shell commands, until it is done or out of bounds.

    Commands come as function calls. A model that makes none may write fenced shell blocks instead, as it is told;
    where the provider refuses requests with tools, the agent goes on without them.

    Args:
        task: A system message of the user's, if there is one, and the task message.
        conversation: The item's line to its model.
        box: Where commands run, over the item's workspace.
        limits: When it is over.
        offers_tool: False for models that are known to take no tools.

    Returns:
        The transcript; a call that brings no reply ends it and is told in it.

    Raises:
        SandboxError: The sandbox failed.
        asyncio.CancelledError: The item ends.
    """
    run = _Run(conversation, BashTool(box, limits.command, limits.output_characters), limits, offers_tool)
    run.start(task)
    bound = asyncio.timeout(limits.wall_s)
    try:
        async with bound:
            stop = await run.work()
    except TimeoutError:
        if not bound.expired():
            raise
        stop = Stop.TIME
    return run.end(stop)


@dataclass(slots=True)
class _Run:
    """One run."""

    conversation: Conversation
    tool: BashTool
    limits: AgentLimits
    offers_tool: bool
    events: list[Event] = field(default_factory=list)
    messages: list[dict[str, JsonValue]] = field(default_factory=list)
    turns: int = 0
    final_text: str = ""
    calls_functions: bool = False
    cut_in_a_row: int = 0
    estimated_tokens: int = 0
    fault: HelmbenchError | None = None

    def start(self, task: Sequence[Message]) -> None:
        """Put the task before the model."""
        stated = [message.content for message in task if message.role == "system"]
        own = _WITH_TOOL if self.offers_tool else _WITHOUT_TOOL
        self._say({"role": "system", "content": "\n\n".join((own, *stated))})
        for message in task:
            if message.role != "system":
                self._say({"role": message.role, "content": message.content})

    async def work(self) -> Stop:
        """Take turns."""
        while self.turns < self.limits.turns:
            if self._tokens() >= self.limits.tokens:
                return Stop.TOKENS
            raw = await self._ask()
            if raw.error is not None:
                if _is_too_long(raw.error):
                    return Stop.CONTEXT
                self.fault = raw.error
                return Stop.FAULT
            self.turns += 1
            stop = await self._answer(raw)
            if stop is not None:
                return stop
        return Stop.TURNS

    def end(self, stop: Stop) -> Transcript:
        """Return what came of it."""
        figures = {"stop": stop.value, "turns": self.turns, "tokens": self._tokens(), "agent": AGENT_VERSION}
        self._note("end", figures)
        return Transcript(tuple(self.events), self.final_text, self.turns, stop, self.fault)

    async def _ask(self) -> RawReply:
        raw = await self._send()
        if raw.error is not None and self.offers_tool and not self.turns and _is_about_tools(raw.error):
            self.offers_tool = False
            first = self.messages[0]
            first["content"] = str(first["content"]).replace(_WITH_TOOL, _WITHOUT_TOOL)
            self._note("message", first)
            raw = await self._send()
        return raw

    async def _send(self) -> RawReply:
        body: dict[str, JsonValue] = {"messages": list(self.messages)}
        if self.offers_tool:
            body |= {"tools": [tool_definition(self.limits.command)], "tool_choice": "auto"}
        self.estimated_tokens += len(json.dumps(body)) // _CHARACTERS_PER_TOKEN
        return await self.conversation.complete(body)

    async def _answer(self, raw: RawReply) -> Stop | None:
        """Do what a reply asks for; return why that was all."""
        message = raw.message()
        calls = tool_calls(message, self.turns)
        text = _text_of(message.get("content"))
        self.estimated_tokens += len(raw.body) // _CHARACTERS_PER_TOKEN
        self.final_text = text
        self._say(_kept(message, text, calls))
        if calls:
            self.calls_functions = True
            self.cut_in_a_row = 0
            for number, call in enumerate(calls):
                told = await self._call(call) if number < _MOST_CALLS else _TOO_MANY
                self._say({"role": "tool", "tool_call_id": call.id, "content": told})
            return None
        if raw.reply is not None and raw.reply.finish_reason == "length":
            self.cut_in_a_row += 1
            self._say({"role": "user", "content": _CUT_OFF})
            return Stop.CUT if self.cut_in_a_row >= _MOST_CUT else None
        self.cut_in_a_row = 0
        block = None if self.calls_functions else shell_block(text)
        if block is None:
            return Stop.FINISHED
        self._say({"role": "user", "content": await self._run_command(block)})
        return None

    async def _call(self, call: ToolCall) -> str:
        try:
            command = call.command()
        except UnusableCallError as error:
            return f"Not run: {error}."
        return await self._run_command(command)

    async def _run_command(self, command: str) -> str:
        told, figures = await self.tool.run(command)
        self._note("command", {"command": command, **figures})
        return told

    def _tokens(self) -> int:
        usage = self.conversation.sums.usage
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return self.estimated_tokens
        return usage.prompt_tokens + usage.completion_tokens

    def _say(self, message: dict[str, JsonValue]) -> None:
        self.messages.append(message)
        self._note("message", message)

    def _note(self, kind: str, payload: JsonObject) -> None:
        self.events.append(Event(kind, dict(payload), utc_now()))


def _kept(message: JsonObject, text: str, calls: Sequence[ToolCall]) -> dict[str, JsonValue]:
    """Return a reply as it goes back to its model: what every provider takes, and its own reasoning."""
    kept: dict[str, JsonValue] = {"role": "assistant", "content": text}
    if calls:
        kept |= {"content": text or None, "tool_calls": [call.wire() for call in calls]}
    for name in _KEPT_FIELDS:
        if message.get(name):
            kept[name] = message[name]
    return kept


def _text_of(content: object) -> str:
    """Return the text of a reply, which the wire also carries as a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return "".join(part for part in parts if isinstance(part, str))


def _is_about_tools(error: HelmbenchError) -> bool:
    """Return whether a provider refuses tools, or a replay holds no request with them."""
    if not isinstance(error, CallFailedError):
        return False
    fault = error.fault
    if fault.reason in (NOT_ON_RECORD, "unsupported_parameters"):
        return True
    return fault.kind is FaultKind.REJECTED and _ABOUT_TOOLS.search(fault.message) is not None


def _is_too_long(error: HelmbenchError) -> bool:
    return isinstance(error, CallFailedError) and (
        error.fault.reason == "context_length_exceeded" or _TOO_LONG.search(error.fault.message) is not None
    )

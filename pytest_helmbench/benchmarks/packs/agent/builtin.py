"""The built-in agent: a model, a shell in the sandbox, and a bound on everything."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Sequence
from dataclasses import field
from enum import StrEnum

from pytest_helmbench.core.case import Message
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Event
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt, scrub, without_surrogates
from pytest_helmbench.core.tools import ToolCall, server_fields, tool_calls
from pytest_helmbench.gateway.faults import FaultKind
from pytest_helmbench.gateway.gateway import NOT_ON_RECORD
from pytest_helmbench.gateway.relay.conversation import Conversation, RawReply
from pytest_helmbench.gateway.retries import CallFailedError
from pytest_helmbench.sandbox.box import Command, Ended, Limits, Shell

_NAME = "bash"
_LONGEST_COMMAND = 100_000  # bytes: the kernel takes no argument of 128 KiB
_BLOCK_STARTS = ("```bash", "```sh", "```shell")
_RUN = 'exec 2>&1; if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; else exec sh -c "$1"; fi'
AGENT_VERSION = 1
"""The version of prompts, tool and loop: a change of them makes other requests."""
_MIB = 1024 * 1024
_CHARACTERS_PER_TOKEN = 4
_MOST_CALLS = 16
_MOST_CUT = 3
_SYSTEM_PROMPT = """\
You are an agent that works in a sandbox, all on your own: nobody answers questions. Call the function bash to look \
around, to change files and to check your work; its output comes back to you. When the task is done, reply without a \
call: a sentence or two on what you did. If you cannot call functions, write one fenced code block labelled bash \
instead, and it will be run."""
_ENDS = (
    "Of what it does, only the files in the workspace are kept: no process, no variable, no other folder. "
    "There is no network."
)
_LIVES_ON = "The machine stays: files, packages and processes in the background are kept, variables are not."
_TOO_MANY = f"Not run: at most {_MOST_CALLS} calls of one reply are."
_CUT_OFF = "Your reply was cut off at its token limit. Take smaller steps, and say less."


class Stop(StrEnum):
    """Why an agent stopped. The workspace that it left is judged, but for `fault`."""

    FINISHED = "finished"
    """It said so, by a reply without a command."""
    TURNS = "turns"
    TOKENS = "tokens"
    TIME = "time"
    CUT = "cut"
    """Its replies were cut off at the token limit, one after the other."""
    CONTEXT = "context"
    """Its messages no longer fit the model."""
    FAULT = "fault"
    """A call brought no reply."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One run of the built-in agent.

    Args:
        events: In order: `message` (with role, content and tool calls, as sent or received), `command` (what was
            run and how it ended) and at last `end`.
        final_text: Of the last reply; empty when there was none.
        turns: Replies of the model.
        fault: What a call met; None unless `stop` says so.
    """

    events: tuple[Event, ...]
    final_text: str
    turns: int
    stop: Stop
    fault: HelmbenchError | None = None


class UnusableCallError(HelmbenchError):
    """A call that is not run; the message is for the model."""


def command_of(call: ToolCall) -> str:
    """Return the command that a call wants run.

    Raises:
        UnusableCallError: There is none.
    """
    if call.name != _NAME:
        raise UnusableCallError(f"there is no tool {excerpt(call.name, 40)!r}: call bash")
    arguments = call.decoded()
    if arguments is None:
        raise UnusableCallError('the arguments are not a JSON object: send {"command": "…"}')
    command = arguments.get("command")
    if isinstance(command, list):
        words = [word for word in command if isinstance(word, str)]
        command = shlex.join(words) if len(words) == len(command) else None
    if not isinstance(command, str) or not command.strip():
        raise UnusableCallError('there is no command: send {"command": "…"}')
    return command


def tool_definition(limits: AgentLimits) -> dict[str, JsonValue]:
    """Return the tool as a request announces it."""
    description = (
        "Run a shell command and return its output and exit code. Every command runs in a new shell that starts in "
        f"the workspace. {_LIVES_ON if limits.lives_on else _ENDS} "
        f"A command is stopped after {limits.command.wall_s:g} seconds."
    )
    command: JsonValue = {"type": "string", "description": "What bash runs; several lines are fine."}
    parameters: JsonValue = {"type": "object", "properties": {"command": command}, "required": ["command"]}
    function: JsonValue = {"name": _NAME, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def shell_block(text: str) -> str | None:
    """Return the first fenced shell block of a reply; None when there is none that ends.

    Its lines are as written: a CR at their ends goes only where the fence itself has one.
    """
    inside: list[str] | None = None
    end = ""
    for line in text.split("\n"):
        if inside is None:
            if line.strip().lower() in _BLOCK_STARTS:
                inside, end = [], "\r" if line.endswith("\r") else ""
        elif line.strip() != "```":
            inside.append(line.removesuffix(end))
        elif any(kept.strip() for kept in inside):
            return "\n".join(inside)
        else:
            inside = None
    return None


def _shortened(text: str, limit: int) -> str:
    """Return head and tail of a long text, with a note between them."""
    if len(text) <= limit:
        return text
    head, tail = limit - limit // 2, limit // 2
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[… {left_out:,} characters left out …]\n{text[-tail:]}"


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """Bounds of a run of the agent.

    Args:
        turns: Replies of the model.
        tokens: Prompt and completion tokens of all calls together; estimated where the provider does not say.
        wall_s: Seconds from start to end, waiting for limits and for a place in the sandbox included.
        output_characters: Most that the model sees of one output: head and tail.
        lives_on: Its shell keeps more than the files of a workspace.
    """

    turns: int = 50
    tokens: int = 2_000_000
    wall_s: float = 3600.0
    output_characters: int = 16_000
    lives_on: bool = False
    command: Limits = Limits(
        wall_s=120.0,
        cpus=2.0,
        memory_bytes=2048 * _MIB,
        pids=256,
        output_bytes=1 * _MIB,
        disk_bytes=4096 * _MIB,
    )


async def run_agent(
    task: Sequence[Message], conversation: Conversation, box: Shell, limits: AgentLimits
) -> Transcript:
    """Let a model work on a task by shell commands, until it is done or out of bounds.

    Commands come as function calls. A model that makes none may write fenced shell blocks instead, as the prompt
    says; where the provider refuses requests with tools, the agent goes on without them.

    Args:
        task: A system message of the user's, if there is one, and the task message.
        conversation: The item's line to its model.

    Returns:
        The transcript; a call that brings no reply ends it and is its fault.

    Raises:
        SandboxError: The sandbox failed.
        asyncio.CancelledError: The item ends.
    """
    run = _Run(conversation, box, limits)
    stated = [message.content for message in task if message.role == "system"]
    run.say({"role": "system", "content": "\n\n".join((_SYSTEM_PROMPT, *stated))})
    for message in task:
        if message.role != "system":
            run.say({"role": message.role, "content": message.content})
    bound = asyncio.timeout(limits.wall_s)
    try:
        async with bound:
            stop = await run.work()
    except TimeoutError:
        if not bound.expired():
            raise
        stop = Stop.TIME
    figures = {"stop": stop.value, "turns": run.turns, "tokens": run.tokens(), "agent": AGENT_VERSION}
    run.note("end", figures)
    return Transcript(tuple(run.events), run.final_text, run.turns, stop, run.fault)


@dataclass(slots=True)
class _Run:
    """One run."""

    conversation: Conversation
    box: Shell
    limits: AgentLimits
    offers_tool: bool = True
    events: list[Event] = field(default_factory=list)
    messages: list[dict[str, JsonValue]] = field(default_factory=list)
    turns: int = 0
    final_text: str = ""
    calls_functions: bool = False
    cut_in_a_row: int = 0
    estimated_tokens: int = 0
    fault: HelmbenchError | None = None

    async def work(self) -> Stop:
        """Take turns."""
        while self.turns < self.limits.turns:
            if self.tokens() >= self.limits.tokens:
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

    async def _ask(self) -> RawReply:
        raw = await self._send()
        if raw.error is not None and self.offers_tool and not self.turns and _may_be_tools(raw.error):
            self.offers_tool = False
            raw = await self._send()
        return raw

    async def _send(self) -> RawReply:
        body: dict[str, JsonValue] = {"messages": list(self.messages)}
        if self.offers_tool:
            body |= {"tools": [tool_definition(self.limits)], "tool_choice": "auto"}
        self.estimated_tokens += len(json.dumps(body)) // _CHARACTERS_PER_TOKEN
        return await self.conversation.complete(body)

    async def _answer(self, raw: RawReply) -> Stop | None:
        """Do what a reply asks for; return why that was all."""
        message, text = (raw.reply.message, raw.reply.text) if raw.reply is not None else ({}, "")
        calls = tool_calls(message, self.turns)
        self.estimated_tokens += len(raw.body) // _CHARACTERS_PER_TOKEN
        self.final_text = text
        self.say(_kept(message, text, calls))
        if calls:
            self.calls_functions = True
            self.cut_in_a_row = 0
            for number, call in enumerate(calls):
                answer = await self._call(call) if number < _MOST_CALLS else _TOO_MANY
                self.say({"role": "tool", "tool_call_id": call.id, "content": answer})
            return None
        if raw.reply is not None and raw.reply.is_cut:
            self.cut_in_a_row += 1
            self.say({"role": "user", "content": _CUT_OFF})
            return Stop.CUT if self.cut_in_a_row >= _MOST_CUT else None
        self.cut_in_a_row = 0
        block = None if self.calls_functions else shell_block(text)
        if block is None:
            return Stop.FINISHED
        self.say({"role": "user", "content": await self._run_command(block)})
        return None

    async def _call(self, call: ToolCall) -> str:
        try:
            command = command_of(call)
        except UnusableCallError as error:
            return f"Not run: {error}."
        return await self._run_command(command)

    async def _run_command(self, command: str) -> str:
        """Run a command; return the answer for the model, and note its figures."""
        text = without_surrogates(command)
        figures: dict[str, JsonValue] = {"exit_code": None}
        if "\0" in text:
            answer = "Not run: the command holds a NUL byte."
        elif len(text.encode()) > _LONGEST_COMMAND:
            answer = (
                f"Not run: the command has more than {_LONGEST_COMMAND:,} bytes. Write large files in pieces."
            )
        else:
            argv = ("/bin/sh", "-c", _RUN, "sh", text)
            ended = await self.box.run(Command(argv, limits=self.limits.command))
            figures = {
                "exit_code": ended.exit_code,
                "timed_out": ended.timed_out,
                "output_bytes": len(ended.stdout) + len(ended.stderr),
                "wall_s": round(ended.wall_s, 3),
            }
            answer = self._output_text(ended)
        self.note("command", {"command": command, **figures})
        return answer

    def _output_text(self, ended: Ended) -> str:
        limits, raw = self.limits.command, ended.stdout + ended.stderr
        text = scrub(raw.decode("utf-8", "replace")).rstrip("\n")
        parts = [_shortened(text, self.limits.output_characters)]
        if ended.output_cut:
            parts.append(f"[what came after the first {limits.output_bytes:,} bytes was dropped]")
        if ended.timed_out:
            parts.append(f"[stopped after {limits.wall_s:g} seconds]")
        elif ended.exit_code is None:
            parts.append(f"[stopped: {ended.reason}]")
        else:
            parts.append(f"[exit code {ended.exit_code}]")
        return "\n".join(filter(None, parts))

    def tokens(self) -> int:
        """Return the tokens of all calls together; estimated where the provider does not say."""
        usage = self.conversation.totals.usage
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return self.estimated_tokens
        return usage.prompt_tokens + usage.completion_tokens

    def say(self, message: dict[str, JsonValue]) -> None:
        """Add a message to the conversation."""
        self.messages.append(message)
        self.note("message", message)

    def note(self, kind: str, payload: JsonObject) -> None:
        """Add an event to the record."""
        self.events.append(Event(kind, dict(payload)))


def _kept(message: JsonObject, text: str, calls: Sequence[ToolCall]) -> dict[str, JsonValue]:
    """Return a reply as it goes back to its model, with what its server put on it."""
    kept: dict[str, JsonValue] = {"content": text or None, **server_fields(message), "role": "assistant"}
    if not calls:
        return {**kept, "content": text}
    return {**kept, "tool_calls": [call.wire(_NAME) for call in calls]}


def _may_be_tools(error: HelmbenchError) -> bool:
    """Return whether a provider may have refused tools, or a replay holds no request with them."""
    if not isinstance(error, CallFailedError) or _is_too_long(error):
        return False
    return error.fault.kind is FaultKind.REJECTED or error.fault.reason == NOT_ON_RECORD


def _is_too_long(error: HelmbenchError) -> bool:
    return isinstance(error, CallFailedError) and error.fault.reason == "prompt_too_large"

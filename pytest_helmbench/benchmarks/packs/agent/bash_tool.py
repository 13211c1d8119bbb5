"""The one tool of the built-in agent: a shell command in the sandbox."""

from __future__ import annotations

import json
import re
import shlex

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt, scrub, without_surrogates
from pytest_helmbench.sandbox.box import Box, Command, Ended, Limits

__all__ = ["BashTool", "ToolCall", "UnusableCallError", "shell_block", "tool_calls", "tool_definition"]

_NAME = "bash"
_LONGEST_COMMAND = 100_000  # bytes: the kernel takes no argument of 128 KiB
_BLOCK_STARTS = ("```bash", "```sh", "```shell")
_WIRE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_RUN = 'exec 2>&1; if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; else exec sh -c "$1"; fi'


class UnusableCallError(HelmbenchError):
    """A call that is not run; the message is for the model."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model wants to run.

    Args:
        id: Of the call; its result names it.
        name: Of the function, as written.
        arguments: As written; JSON if all is well.
    """

    id: str
    name: str
    arguments: str

    def wire(self) -> dict[str, JsonValue]:
        """Return the call as it goes back to the model; what providers would refuse in it is left out."""
        name = self.name if _WIRE_NAME.fullmatch(self.name) else _NAME
        arguments = self.arguments if self.arguments.strip() and self._decoded() is not None else "{}"
        function: JsonValue = {"name": name, "arguments": arguments}
        return {"id": self.id, "type": "function", "function": function}

    def command(self) -> str:
        """Return the command.

        Raises:
            UnusableCallError: There is none.
        """
        if self.name != _NAME:
            raise UnusableCallError(f"there is no tool {excerpt(self.name, 40)!r}: call bash")
        arguments = self._decoded()
        if arguments is None:
            raise UnusableCallError('the arguments are no JSON object: send {"command": "…"}')
        command = arguments.get("command")
        if isinstance(command, list):
            words = [word for word in command if isinstance(word, str)]
            command = shlex.join(words) if len(words) == len(command) else None
        if not isinstance(command, str) or not command.strip():
            raise UnusableCallError('there is no command: send {"command": "…"}')
        return command

    def _decoded(self) -> dict[str, JsonValue] | None:
        """Return the arguments; None when they are no JSON object."""
        try:
            arguments = json.loads(self.arguments) if self.arguments.strip() else {}
        except (ValueError, RecursionError):
            return None
        return arguments if isinstance(arguments, dict) else None


def tool_definition(limits: Limits) -> dict[str, JsonValue]:
    """Return the tool as a request announces it."""
    description = (
        "Run a shell command and return its output and exit code. Every command runs in a new shell that starts in "
        "the workspace. Of what it does, only the files in the workspace are kept: no process, no variable, no other "
        f"folder. There is no network. A command is stopped after {limits.wall_s:g} seconds."
    )
    parameters: JsonValue = {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "What bash runs; several lines are fine."}
        },
        "required": ["command"],
    }
    return {
        "type": "function",
        "function": {"name": _NAME, "description": description, "parameters": parameters},
    }


def tool_calls(message: JsonObject, turn: int) -> tuple[ToolCall, ...]:
    """Return the calls of a reply, whatever shape its server gives them."""
    stated = message.get("tool_calls")
    found = []
    for number, call in enumerate(stated if isinstance(stated, list) else (), 1):
        function = call.get("function") if isinstance(call, dict) else None
        if not (isinstance(call, dict) and isinstance(function, dict)):
            continue
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        identity = call.get("id")
        name = identity if isinstance(identity, str) and identity else f"call_{turn}_{number}"
        found.append(ToolCall(name, str(function.get("name")), text))
    return tuple(found)


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


@dataclass(frozen=True, slots=True)
class BashTool:
    """Runs commands.

    Args:
        box: Where they run.
        limits: Of each.
        output_characters: Most that the model gets to see of an output.
    """

    box: Box
    limits: Limits
    output_characters: int

    async def run(self, command: str) -> tuple[str, dict[str, JsonValue]]:
        """Run a command.

        Returns:
            What the model is told, and the same in figures for the record.

        Raises:
            SandboxError: The sandbox could not be made.
        """
        text = without_surrogates(command)
        if "\0" in text:
            return "Not run: the command holds a NUL byte.", {"exit_code": None}
        if len(text.encode()) > _LONGEST_COMMAND:
            note = (
                f"Not run: the command has more than {_LONGEST_COMMAND:,} bytes. Write large files in pieces."
            )
            return note, {"exit_code": None}
        argv = ("/bin/sh", "-c", _RUN, "sh", text)
        ended = await self.box.run(Command(argv, limits=self.limits))
        figures: dict[str, JsonValue] = {
            "exit_code": ended.exit_code,
            "timed_out": ended.timed_out,
            "output_bytes": len(ended.stdout) + len(ended.stderr),
            "wall_s": round(ended.wall_s, 3),
        }
        return self._told(ended), figures

    def _told(self, ended: Ended) -> str:
        raw = ended.stdout + ended.stderr
        parts = [_shortened(scrub(raw.decode("utf-8", "replace")).rstrip("\n"), self.output_characters)]
        if ended.output_cut:
            parts.append(f"[what came after the first {self.limits.output_bytes:,} bytes was dropped]")
        if ended.timed_out:
            parts.append(f"[stopped after {self.limits.wall_s:g} seconds]")
        elif ended.exit_code is None:
            parts.append(f"[stopped: {ended.reason}]")
        else:
            parts.append(f"[exit code {ended.exit_code}]")
        return "\n".join(filter(None, parts))


def _shortened(text: str, limit: int) -> str:
    """Return head and tail of a long text, with a note between them."""
    if len(text) <= limit:
        return text
    head, tail = limit - limit // 2, limit // 2
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[… {left_out:,} characters left out …]\n{text[-tail:]}"

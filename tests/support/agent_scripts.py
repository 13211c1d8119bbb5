"""Rows that run code, scripts of agents that work on them turn by turn, and processes that live on afterwards."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from packs import row
from provider import Answer, Provider, Request

__all__ = [
    "COST_USD",
    "TOKENS",
    "answer_turns",
    "calls",
    "code_row",
    "item_of",
    "left_alive",
    "patch_row",
    "task_row",
    "turn_of",
]

TOKENS = (100, 10)
"""Tokens of a turn: prompt and completion."""
COST_USD = 0.001
_ITEM = re.compile(r"\(item ([\w-]+)\)")


def code_row(identity: str, **changes: Any) -> dict[str, Any]:
    """Return a row that wants an `add` that adds; a candidate may take two seconds."""
    prompt = f"Add two numbers (item {identity})."
    given = {"input.prompt": prompt, "environment": {"timeout_seconds": 2}}
    return row("code_completion", {**given, **changes}, identity)


def task_row(identity: str, **changes: Any) -> dict[str, Any]:
    """Return a row that wants 42 in answer.txt."""
    instructions = f"Write 42 into answer.txt (item {identity})."
    return row("terminal_task", {"input.instructions": instructions, **changes}, identity)


def patch_row(identity: str, commit: str, **changes: Any) -> dict[str, Any]:
    """Return a row that wants `add` mended in the repository of `write_bundle`."""
    command = "python3 -c 'from src.calculator import add; assert add(1, 2) == 3'"
    stated = {
        "input.base_commit": commit,
        "input.instructions": f"Make add() add (item {identity}).",
        "eval.tests": {"source": "command", "command": command},
        "environment": {"repository": "calculator.bundle"},
    }
    return row("repo_patch", {**stated, **changes}, identity)


def item_of(request: Request) -> str:
    """Return the id of the row that a request belongs to."""
    found = _ITEM.search(request.prompt)
    assert found is not None, request.prompt
    return found[1]


def turn_of(request: Request) -> int:
    """Return how many replies an agent has had before, from 0."""
    return sum(message["role"] == "assistant" for message in request.body["messages"])


def answer_turns(provider: Provider, turns: Mapping[str, Sequence[str | Answer]]) -> None:
    """Let the provider answer the agents of rows.

    Args:
        provider: Answers the agents from now on.
        turns: By row: a command to call bash with, or a whole answer. Behind the last one the agent is done.
    """

    def reply(request: Request) -> Answer:
        script, turn = turns[item_of(request)], turn_of(request)
        said = script[turn] if turn < len(script) else None
        if isinstance(said, Answer):
            return said
        message: dict[str, Any] = {"role": "assistant", "content": "I am done." if said is None else None}
        if said is not None:
            message["tool_calls"] = [calls(said, f"call_{turn}")]
        return Answer(body=_body(request, message))

    provider.reply = reply


def calls(command: str, identity: str) -> dict[str, Any]:
    """Return a call of bash as it stands in a reply."""
    arguments = json.dumps({"command": command})
    return {"id": identity, "type": "function", "function": {"name": "bash", "arguments": arguments}}


def _body(request: Request, message: Mapping[str, Any]) -> dict[str, Any]:
    prompt, completion = TOKENS
    reason = "tool_calls" if "tool_calls" in message else "stop"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": request.model,
        "choices": [{"index": 0, "finish_reason": reason, "message": message}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "cost": COST_USD,
        },
    }


def left_alive(mark: str) -> list[str]:
    """Return the command lines of living processes of this machine that hold a text, those in sandboxes too."""
    found = []
    wanted = mark.encode()
    # It is asked again and again, so there is no `Path` for each process.
    for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
        try:
            with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as file:  # noqa: PTH123
                words = file.read().replace(b"\0", b" ")
        except OSError:
            continue
        if wanted in words:
            found.append(words.decode("utf-8", "replace").strip())
    return found

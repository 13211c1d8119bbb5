"""The built-in agent: a scripted model behind a real gateway, and real commands in a real sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from engines import Running
from gateways import open_gateway
from provider import Answer, Provider, Request
from relays import converse

from pytest_helmbench.benchmarks.packs.agent.builtin import (
    AgentLimits,
    Stop,
    Transcript,
    run_agent,
    shell_block,
)
from pytest_helmbench.core.case import Message
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.gateway.permits import ModelLimits
from pytest_helmbench.gateway.retries import CallFailedError
from pytest_helmbench.sandbox.box import BoxSpec, Limits

_TASK = (Message("user", "Write 42 into answer.txt."),)
_LIMITS = AgentLimits(command=Limits(wall_s=20.0))


def _calls(*commands: Any, text: str | None = None, raw: Mapping[str, Any] | None = None) -> Answer:
    """Return a reply that calls bash."""
    calls = [
        {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": "bash", "arguments": json.dumps({"command": one})},
        }
        for number, one in enumerate(commands)
    ]
    return _message({"role": "assistant", "content": text, "tool_calls": calls, **(raw or {})}, "tool_calls")


def _message(message: Mapping[str, Any], finish_reason: str = "stop") -> Answer:
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return Answer(body={"choices": [{"finish_reason": finish_reason, "message": message}], "usage": usage})


def _says(*answers: Answer | str) -> Callable[[Request], Answer | str | None]:
    """Return a script: one answer after the other, the last one again and again."""
    left = list(answers)
    return lambda _request: left.pop(0) if len(left) > 1 else left[0]


class Stage:
    """A model that answers by script, and a sandbox."""

    def __init__(self, running: Running, provider: Provider) -> None:
        self.running = running
        self.provider = provider

    def play(
        self,
        *answers: Answer | str,
        limits: AgentLimits = _LIMITS,
        task: Sequence[Message] = _TASK,
        model: str = "test/good",
        **options: Any,
    ) -> Transcript:
        """Run the agent; its workspace is gone afterwards, but `self.answer` holds answer.txt."""
        if answers:
            self.provider.reply = _says(*answers)

        async def played() -> Transcript:
            async with (
                open_gateway([ModelLimits(model, 8)]) as coordinator,
                converse(coordinator.gateway, self.provider.url, entry=ModelEntry(model)) as conversation,
            ):
                async with await self.running.engine.open(BoxSpec()) as box:
                    transcript = await run_agent(task, conversation, box, limits, **options)
                    self.answer = box.workspace.get("answer.txt", limit_bytes=1000)
                return transcript

        return self.running.wait(played())

    def sent(self, number: int = -1) -> list[dict[str, Any]]:
        """Return the messages of a request."""
        messages: list[dict[str, Any]] = self.provider.requests[number].body["messages"]
        return messages


@pytest.fixture
def stage(bwrap: Running, provider: Provider) -> Stage:
    return Stage(bwrap, provider)


def test_a_task_is_worked_on_until_a_reply_without_a_call(stage: Stage) -> None:
    transcript = stage.play(
        _calls("echo 42 > answer.txt; pwd", text="I write."), _calls("cat answer.txt; cat gone"), "Done."
    )
    assert (transcript.stop, transcript.turns, transcript.final_text) == (Stop.FINISHED, 3, "Done.")
    assert stage.answer == b"42\n"
    first, last = stage.provider.requests[0], stage.sent()
    (tool,) = first.body["tools"]
    assert (tool["type"], tool["function"]["name"], first.body["tool_choice"]) == ("function", "bash", "auto")
    assert "stopped after 20 seconds" in tool["function"]["description"]
    assert [message["role"] for message in last] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    assert last[2]["content"] == "I write."
    assert last[3] == {"role": "tool", "tool_call_id": "c0", "content": "/workspace\n[exit code 0]"}
    assert last[5]["content"] == "42\ncat: gone: No such file or directory\n[exit code 1]"


def test_a_system_prompt_of_the_users_follows_ours(stage: Stage) -> None:
    stage.play("Done.", task=(Message("system", "Speak French."), *_TASK))
    system, user = stage.sent()
    assert system["content"].startswith("You are an agent that works in a sandbox")
    assert system["content"].endswith("\n\nSpeak French.")
    assert user == {"role": "user", "content": "Write 42 into answer.txt."}


# --- calls of all shapes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        ({"name": "python", "arguments": "{}"}, "Not run: there is no tool 'python': call bash."),
        ({"name": "bash", "arguments": "ls -la"}, "Not run: the arguments are not a JSON object: send {"),
        ({"name": "bash", "arguments": ""}, 'Not run: there is no command: send {"command": "…"}.'),
        ({"name": "bash", "arguments": '{"command": "a\\u0000b"}'}, "Not run: the command holds a NUL byte."),
        ({"name": "bash", "arguments": '{"command": "' + "x" * 100_001 + '"}'}, "Not run: the command has more"),
        ({"name": "bash", "arguments": {"command": "echo a b"}}, "a b\n[exit code 0]"),
        ({"name": "bash", "arguments": '{"command": ["echo", "a  b"]}'}, "a  b\n[exit code 0]"),
        ({"name": "bash", "arguments": '{"command": "echo \\ud83d"}'}, "\N{REPLACEMENT CHARACTER}\n[exit code 0]"),
    ],
)  # fmt: skip
def test_what_models_send_as_a_call(stage: Stage, function: Mapping[str, Any], answer: str) -> None:
    call = {"id": "c", "type": "function", "function": function}
    transcript = stage.play(_message({"content": None, "tool_calls": [call]}), "Done.")
    assert transcript.stop is Stop.FINISHED
    assistant, tool = stage.sent()[2:]
    assert tool["content"].startswith(answer)
    (wired_call,) = assistant["tool_calls"]
    assert isinstance(json.loads(wired_call["function"]["arguments"]), dict)


def test_many_calls_of_one_reply_are_bounded(stage: Stage) -> None:
    stage.play(_calls(*["true"] * 18), "Done.")
    answers = [message["content"] for message in stage.sent() if message["role"] == "tool"]
    assert answers == ["[exit code 0]"] * 16 + ["Not run: at most 16 calls of one reply are."] * 2


# --- output -----------------------------------------------------------------------------------------------


def test_commands_that_leave_their_bounds(stage: Stage) -> None:
    limits = replace(_LIMITS, command=Limits(wall_s=1.5, output_bytes=1000))
    commands = ("sleep 60", "head -c 2000 /dev/zero | tr '\\0' x; true", "yes")
    stage.play(_calls(*commands), "Done.", limits=limits)
    slow, long, endless = (message["content"] for message in stage.sent()[3:])
    assert slow == "[stopped after 1.5 seconds]"
    assert long.endswith("x\n[what came after the first 1,000 bytes was dropped]\n[exit code 0]")
    assert "[stopped" in endless


def test_the_agent_reaches_no_network_and_no_key(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    stage.play(
        _calls(f"env; echo > /dev/tcp/127.0.0.1/{stage.provider.url.split(':')[2].split('/')[0]}"), "Done."
    )
    answer = stage.sent()[3]["content"]
    assert "sk-secret" not in answer
    assert "Connection refused" in answer or "unreachable" in answer


# --- bounds -----------------------------------------------------------------------------------------------


def test_turns_tokens_and_time_are_bounded(stage: Stage) -> None:
    endless = _calls("true")
    transcript = stage.play(endless, limits=replace(_LIMITS, turns=3))
    assert (transcript.stop, transcript.turns, stage.provider.count) == (Stop.TURNS, 3, 3)
    transcript = stage.play(endless, limits=replace(_LIMITS, tokens=220))
    assert (transcript.stop, transcript.turns) == (Stop.TOKENS, 2)
    transcript = stage.play(_calls("echo 41 > answer.txt; sleep 60"), limits=replace(_LIMITS, wall_s=1.0))
    assert (transcript.stop, transcript.turns, stage.answer) == (Stop.TIME, 1, b"41\n")
    assert transcript.events[-1].payload["stop"] == "time"


def test_a_reply_that_is_cut_off_is_answered_three_times_at_most(stage: Stage) -> None:
    cut = Answer(text="I think that", finish_reason="length")
    transcript = stage.play(cut, "Done.")
    assert (transcript.stop, transcript.final_text) == (Stop.FINISHED, "Done.")
    assert stage.sent()[-1]["content"].startswith("Your reply was cut off at its token limit.")
    transcript = stage.play(cut)
    assert (transcript.stop, transcript.turns) == (Stop.CUT, 3)


def test_a_fault_ends_it_and_is_named(stage: Stage) -> None:
    transcript = stage.play(_calls("true"), Answer(status=400))
    assert (transcript.stop, transcript.turns) == (Stop.FAULT, 1)
    assert isinstance(transcript.fault, CallFailedError)
    assert "scripted 400" in str(transcript.fault)


def test_messages_that_no_longer_fit_end_it_without_a_fault(stage: Stage) -> None:
    error = {
        "error": {
            "message": "This model's maximum context length is 8192 tokens.",
            "type": "invalid_request_error",
        }
    }
    transcript = stage.play(_calls("true"), Answer(status=400, body=error))
    assert (transcript.stop, transcript.fault) == (Stop.CONTEXT, None)


# --- models without tools ---------------------------------------------------------------------------------


def test_a_model_that_writes_blocks_instead_of_calls(stage: Stage) -> None:
    transcript = stage.play("I write:\n```bash\necho 42 > answer.txt\ncat answer.txt\n```\n", "Done.")
    assert (transcript.stop, transcript.turns, stage.answer) == (Stop.FINISHED, 2, b"42\n")
    assert stage.sent()[-1] == {"role": "user", "content": "42\n[exit code 0]"}


def test_blocks_are_prose_once_a_model_has_called(stage: Stage) -> None:
    final = "Run it with:\n```bash\nrm answer.txt\n```\n"
    transcript = stage.play(_calls("echo 42 > answer.txt"), final)
    assert (transcript.stop, transcript.final_text, stage.answer) == (Stop.FINISHED, final, b"42\n")


def test_a_provider_that_refuses_tools_is_asked_without(stage: Stage) -> None:
    message = "registry.ollama.ai/library/gemma does not support tools"
    block = "```bash\necho 42 > answer.txt\n```"

    def reply(request: Request) -> Answer:
        if "tools" in request.body:
            return Answer(status=400, body={"error": {"message": message}})
        return Answer(text=block if len(request.body["messages"]) == 2 else "Done.")

    stage.provider.reply = reply
    transcript = stage.play()
    assert (transcript.stop, transcript.turns, stage.answer) == (Stop.FINISHED, 2, b"42\n")
    assert ["tools" in request.body for request in stage.provider.requests] == [True, False, False]
    assert "fenced code block labelled bash" in stage.sent()[0]["content"]


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("```bash\nls\n```", "ls"),
        ("a\n```sh\nls\npwd\n```\n```bash\nrm x\n```", "ls\npwd"),
        ("```python\nprint(1)\n```", None),
        ("```bash\n\n```\n```shell\nls\n```", "ls"),
        ("```bash\nls", None),
        ("run `ls`", None),
        ("```bash\r\nls\r\npwd\r\n```\r\n", "ls\npwd"),
        ("```bash\ncat > x <<E\na\r\n\x0c\x85\u2028b\r\nE\n```", "cat > x <<E\na\r\n\x0c\x85\u2028b\r\nE"),
        ("```bash\n" * 50_000, None),
    ],
)
def test_shell_blocks(text: str, block: str | None) -> None:
    assert shell_block(text) == block

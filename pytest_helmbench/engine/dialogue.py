"""The dialogue of a case with its model: what is sent next, and what was said so far. It sends nothing itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import Outcome, Reply, Usage, utc_now
from pytest_helmbench.core.scrub import without_surrogates
from pytest_helmbench.core.tools import MadeCall, ToolCall, server_fields, tool_calls
from pytest_helmbench.gateway.call import Call, Origin
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.judging.judge import tool_events

NO_REPLY = "(no reply)"
"""Stands in a conversation for a reply without text, since providers refuse empty messages."""


class Dialogue:
    """The dialogue of a case with its model; one question is its shortest form.

    Args:
        case: Its messages, script and tools.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self._said = list(case.messages)
        self._script = deque(case.script)
        self._turn = 1
        self._asked = 0
        self._rounds: list[Reply] = []
        self._calls: list[MadeCall] = []
        self._turns: list[Reply] = []
        self._usage: Usage | None = None
        self._ended = False
        self._go_on()

    def call(self, origin: Origin, entry: ModelEntry, endpoint: Endpoint) -> Call | None:
        """Return what the model is asked next; None when the conversation has ended.

        Args:
            entry: The model, which is asked at the endpoint.
        """
        if self._ended:
            return None
        self._asked += 1
        case = self._case
        return Call(
            origin,
            entry,
            endpoint,
            tuple(self._said),
            case.at(self._turn).response_format,
            sequence=self._asked,
            timeout_s=case.timeout_s,
            tools=() if case.toolbox is None else case.toolbox.definitions(),
            turn=self._turn if case.is_conversation else None,
        )

    def broken_off(self, outcome: Outcome) -> Outcome:
        """Return the outcome of a call that brought no reply, with what the conversation took and called before."""
        if self._usage is None:
            return outcome
        usage = self._usage if outcome.usage == Usage() else self._usage + outcome.usage
        return replace(outcome, usage=usage, events=tool_events([*_calls_of(self._turns), *self._calls]))

    def hear(self, reply: Reply) -> None:
        """Take the reply to the question: answer its tool calls, or end the turn."""
        self._usage = reply.usage if self._usage is None else self._usage + reply.usage
        self._rounds.append(reply)
        toolbox = self._case.toolbox
        calls: tuple[ToolCall, ...] = ()
        if toolbox is not None:
            taken = {call.id for message in self._said for call in message.tool_calls}
            calls = tool_calls(reply.message, len(self._said), taken)
        if toolbox is None or not calls or len(self._rounds) > toolbox.max_rounds:
            self._end_turn(reply, too_many_rounds=bool(calls))
            return
        text, fields = without_surrogates(reply.text), server_fields(reply.message)
        self._said.append(Message("assistant", text, calls, server_fields=fields))
        for call in calls:
            made = replace(toolbox.answered(call, self._turn), at=utc_now())
            self._calls.append(made)
            self._said.append(Message("tool", without_surrogates(made.answer), tool_call_id=call.id))

    def reply(self) -> Reply:
        """Return the last reply, which carries the conversation; see `Reply.turns`."""
        last = self._turns[-1]
        if not self._case.is_conversation:
            return last
        return replace(
            last,
            usage=self._usage or Usage(),
            latency_ms=_took_ms(self._turns, max),
            recorded=any(one.recorded for one in self._turns),
            first_cost_usd=_first_cost(self._turns),
            tool_calls=_calls_of(self._turns),
            turns=tuple(self._turns),
            said=tuple(self._said),
        )

    def _end_turn(self, reply: Reply, *, too_many_rounds: bool) -> None:
        if not self._case.is_conversation:
            self._turns, self._ended = [reply], True
            return
        rounds = self._rounds
        ended = replace(
            reply,
            turn=self._turn,
            tool_calls=tuple(self._calls),
            too_many_rounds=too_many_rounds,
            usage=sum((one.usage for one in rounds[1:]), rounds[0].usage),
            latency_ms=_took_ms(rounds, sum),
            recorded=any(one.recorded for one in rounds),
            first_cost_usd=_first_cost(rounds),
        )
        self._turns.append(ended)
        text = reply.text if reply.text.strip() else (reply.refusal or "").strip()
        self._said.append(Message("assistant", without_surrogates(text) or NO_REPLY))
        self._rounds, self._calls = [], []
        if not self._script:
            self._ended = True
            return
        self._next_turn()
        self._go_on()

    def _next_turn(self) -> None:
        self._said.append(self._script.popleft())
        self._turn += 1

    def _go_on(self) -> None:
        """Say what is scripted, up to the next message of the user that the model answers."""
        while self._script and self._script[0].role == "assistant":
            self._said.append(self._script.popleft())
            self._next_turn()


def _calls_of(turns: Iterable[Reply]) -> tuple[MadeCall, ...]:
    return tuple(call for one in turns for call in one.tool_calls)


def _took_ms(replies: Sequence[Reply], of_all: Callable[[list[float]], float]) -> float | None:
    """Return what replies took together; None where it is not known of each."""
    took = [one.latency_ms for one in replies if one.latency_ms is not None]
    return of_all(took) if len(took) == len(replies) else None


def _first_cost(replies: Iterable[Reply]) -> float | None:
    """Return what replies cost when they came; None where one of the costs is unknown."""
    known = [one.first_cost_usd if one.recorded else one.usage.cost_usd for one in replies]
    return None if None in known else sum(cost or 0.0 for cost in known)

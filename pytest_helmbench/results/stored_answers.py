"""The replies of a stored run in the gateway's place: what its model and its judges said to the same requests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome, Reply, Verdict
from pytest_helmbench.engine.work import UnjudgedError
from pytest_helmbench.gateway.call import Call, CallWatch, CaseClock
from pytest_helmbench.gateway.faults import Fault, Patience
from pytest_helmbench.gateway.replies import encode, parse_reply
from pytest_helmbench.gateway.requests import request_hash
from pytest_helmbench.store.replay import JudgeReply, StoredCase, StoredReply, newest_reply

__all__ = ["NEEDS_JUDGE", "OTHER_PROMPT", "GivenAnswer", "JudgeAnswers", "StoredAnswers"]

NEEDS_JUDGE = "needs_judge"
"""Reason of a case that a judge would have to be asked about."""
OTHER_PROMPT = "other_prompt"
"""Reason of a case whose prompt has changed: its stored reply answers another question."""


class JudgeAnswers:
    """What judges have said in a run.

    Args:
        path: Results file, where judges of other runs may have answered too.
        replies: Of the run.
        unnamed: The judge of calls that do not say whom they asked, as older versions kept them.
    """

    def __init__(self, path: Path, replies: Sequence[JudgeReply], unnamed: Sequence[str] = ()) -> None:
        self._path = path
        self._requests: dict[tuple[str, str, int, str], bytes] = {}
        self._samples: dict[tuple[str, int], bytes] = {}
        self._answers: dict[tuple[str, str, int, str, str], StoredReply] = {}
        for said in replies:
            reply, judge = said.reply, said.judge or "".join(unnamed)
            self._requests[judge, said.code, said.repetition, said.criterion] = reply.request
            self._samples[judge, said.repetition] = reply.request
            self._answers[judge, said.code, said.repetition, said.criterion, reply.request_hash] = reply

    def answer(self, call: Call) -> StoredReply | None:
        """Return what the judge has said to exactly this request, in this run or in any other.

        The request is the stored one (model, sampling, what its server wants) with the new words in it.

        Raises:
            StoreError: The file cannot be read.
        """
        code, repetition, criterion = call.origin.code, call.origin.repetition, call.criterion
        judge = call.entry.id
        sample = self._requests.get((judge, code, repetition, criterion)) or self._samples.get(
            (judge, repetition)
        )
        if sample is None:
            return None
        body = json.loads(sample)
        body["messages"] = [{"role": message.role, "content": message.content} for message in call.messages]
        body["response_format"] = call.response_format
        wanted = request_hash(encode(body))
        known = self._answers.get((judge, code, repetition, criterion, wanted))
        return known or newest_reply(self._path, wanted, repetition, judge)


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """An answer that an outcome rests on, as it came and as it was read."""

    purpose: str
    criterion: str
    stored: StoredReply
    reply: Reply
    judge: str = ""


class StoredAnswers:
    """Answers the calls of one case from the record. See `engine.work.Answering`.

    Args:
        case: As stored.
        judges: Of its run.
    """

    patience = Patience()

    def __init__(self, case: StoredCase, judges: JudgeAnswers) -> None:
        self._judges = judges
        self._case = case
        self.own = None if case.reply is None else _read(case.reply, f"{case.code} {case.repetition}")
        """What the model said; None where nothing can be read."""
        self._judged: list[GivenAnswer] = []

    @property
    def given(self) -> Sequence[GivenAnswer]:
        """What was said, the model's own answer first."""
        if self.own is None or self._case.reply is None:
            return self._judged
        return [GivenAnswer("case", "", self._case.reply, self.own), *self._judged]

    def place(self, _model_id: str) -> AbstractAsyncContextManager[None]:
        """There is room for all."""
        return nullcontext()

    async def ask(self, call: Call, _clock: CaseClock, _watch: CallWatch) -> Reply:
        """Return what is on record.

        Raises:
            UnjudgedError: This was never asked.
        """
        if call.purpose != "case":
            return self._judge_reply(call)
        if (
            self.own is None
            or self._case.reply is None
            or call.messages[-1].content != _question(self._case.reply)
        ):
            raise UnjudgedError(Outcome(Verdict.SKIPPED, OTHER_PROMPT))
        return self.own

    def _judge_reply(self, call: Call) -> Reply:
        stored = self._judges.answer(call)
        reply = (
            None
            if stored is None
            else _read(stored, f"{call.origin.code} {call.origin.repetition} {call.criterion}")
        )
        if stored is None or reply is None:
            raise UnjudgedError(Outcome(Verdict.SKIPPED, NEEDS_JUDGE))
        self._judged.append(GivenAnswer("judge", call.criterion, stored, reply, call.entry.id))
        return reply


def _read(stored: StoredReply, key: str) -> Reply | None:
    """Return a reply from its stored body; its cost was paid by the run that asked."""
    parsed = parse_reply(200, stored.body)
    if isinstance(parsed, Fault):
        return None
    return Reply(
        text=parsed.text,
        refusal=parsed.refusal,
        finish_reason=parsed.finish_reason,
        usage=replace(parsed.usage, cost_usd=0.0),
        latency_ms=stored.latency_ms or 0.0,
        provider_model=parsed.provider_model,
        key=key,
        recorded=True,
        first_cost_usd=parsed.usage.cost_usd,
    )


def _question(stored: StoredReply) -> str | None:
    messages = json.loads(stored.request).get("messages") or [{}]
    content: str | None = messages[-1].get("content")
    return content

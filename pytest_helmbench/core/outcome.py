"""Outcomes: reply, evaluations, verdict, the rows that record them, and what a kind says beside them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

from pytest_helmbench.core.case import Message
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.tools import MadeCall

Cell: TypeAlias = "str | int | float | bytes | None"
"""The value of one column of a row."""
TOO_MANY_ROUNDS = "too_many_rounds"
"""Reason of a reply that still calls tools when no more calls are answered."""
FORM_REASONS = frozenset(
    {"invalid_json", "schema_violation", "refusal", "truncated", "empty", TOO_MANY_ROUNDS}
)
"""Reasons that make a reply wrong for its form, whatever it says."""
NO_ANSWER = "no_answer"
"""Reason of a reply that states no answer: it is wrong, and no model has read it."""
NO_MODEL_CALL = "no_model_call"
"""Reason of what asked no model. As an error it is one; skipped for it, a test of one's own is not a case."""
_TOKENS = ("prompt_tokens", "completion_tokens", "cached_tokens", "written_tokens", "reasoning_tokens")
_TURN = re.compile(r"turn (\d{1,9})\b")


class RunStatement(Protocol):
    """A statement of a kind about a whole run."""

    @property
    def table(self) -> str:
        """The table of the kind that keeps it, one row per run, whose primary key is `run_id`."""

    def cells(self) -> Mapping[str, Cell]:
        """Return its row by column, the key apart."""


class CaseStatement(RunStatement, Protocol):
    """A statement of a kind about one outcome; its table has one row per result, whose primary key is `result_id`."""

    def for_item(self) -> CaseStatement:
        """Return what an item shows of it: what only the record keeps is left out, since thousands may wait."""


class Verdict(StrEnum):
    """How a case ended. Errors and skips never enter a score."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"


class Parse(StrEnum):
    """How JSON was found in a reply."""

    STRICT = "strict"
    RECOVERED = "recovered"


class Beside(StrEnum):
    """The mark of a verdict that what was judged could have forged; a verdict without one it could not."""

    IN_PROCESS = "in_process"
    OWN_BOX = "own_box"

    @property
    def said(self) -> str:
        """The mark in words for people."""
        return (
            "could run beside its judge"
            if self is Beside.IN_PROCESS
            else "passed only in the agent's own box"
        )


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of one call, or summed over several; None is unknown, never 0.

    Args:
        written_tokens: Of the prompt, those that the provider has put into its cache.
        estimated: The provider named no tokens: they were counted here, from the bodies.
        upper_bound: The provider's counts contradict each other: tokens and cost are the most that they may mean.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    estimated: bool = False
    written_tokens: int | None = None
    upper_bound: bool = False

    def __add__(self, other: Usage) -> Usage:
        """Return the sum; what one side does not know is unknown."""
        sums: dict[str, int | None] = {}
        for name in _TOKENS:
            one, more = getattr(self, name), getattr(other, name)
            sums[name] = None if one is None or more is None else one + more
        unknown = self.cost_usd is None or other.cost_usd is None
        cost_usd = None if unknown else (self.cost_usd or 0.0) + (other.cost_usd or 0.0)
        return Usage(
            **sums,
            cost_usd=cost_usd,
            estimated=self.estimated or other.estimated,
            upper_bound=self.upper_bound or other.upper_bound,
        )


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """A reply on record.

    Args:
        body: HTTP body as received.
        own: The run that asks has called for it itself (and is being resumed).
        cost_usd: Of that call; None where it is unknown.
        address: Where it came from, see `AttemptRecord`.
    """

    body: bytes
    own: bool
    cost_usd: float | None = None
    address: str | None = None


CaseKey = tuple[int, str, int]
"""Run, code, repetition."""


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """A judged case on record.

    Args:
        request_hash: Of the request that the judged reply answers.
        severity: Base severity that the verdict was reached with; `difficulty` and `neutral` likewise.
    """

    outcome: Outcome
    request_hash: str
    severity: int
    difficulty: int
    neutral: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a model.

    Args:
        text: What it answers, without its thoughts (lone surrogates included); empty for none.
        refusal: The provider's own `refusal` text, when it sent one, or what stands in its place.
        finish_reason: The provider's word: `stop`, `length`, …
        latency_ms: From sending to the last byte, our own waiting apart; None where a batch has brought it.
        provider_model: The model id that the provider says has answered.
        key: Names this reply until the store has given it a row.
        recorded: It was taken from the record: what it took then is not measured now.
        first_cost_usd: Of a recorded one: what it cost when it came; None where it is unknown.
        thoughts: As far as the reply has them; empty for none.
        inner_thoughts: How many of them stood in the middle of the text.
        raw: Content of the message as it came, thoughts in it included; empty where that is the text.
        is_cut: It ends at a bound on tokens.
        message: As the server sent it.
        turn: Of the conversation, from 1.
        tool_calls: Made in its turn, in order; in the whole conversation for one with `turns`.
        too_many_rounds: It still calls tools when no more calls are answered.
        turns: The last reply of every turn at which the model was asked, in order; empty but for the last reply of a
            conversation, whose usage is that of all, and whose latency is that of the slowest turn.
        said: The whole conversation as it went, the last reply included; empty like `turns`.
    """

    text: str
    refusal: str | None
    finish_reason: str | None
    usage: Usage
    latency_ms: float | None
    provider_model: str | None
    key: str
    recorded: bool = False
    first_cost_usd: float | None = None
    thoughts: str = ""
    inner_thoughts: int = 0
    raw: str = ""
    is_cut: bool = False
    message: JsonObject = field(default_factory=dict, repr=False, compare=False)
    turn: int = 1
    tool_calls: tuple[MadeCall, ...] = ()
    too_many_rounds: bool = False
    turns: tuple[Reply, ...] = ()
    said: tuple[Message, ...] = ()

    @property
    def form_fault(self) -> str | None:
        """Why it is wrong for its form, whatever it says; None for a sound one.

        `too_many_rounds`, `refusal`, `truncated` or `empty`.
        """
        if self.too_many_rounds:
            return TOO_MANY_ROUNDS
        if self.refusal and self.refusal.strip():
            return "refusal"
        return "truncated" if self.is_cut else None if self.text.strip() else "empty"

    def form_fault_text(self, form_fault: str) -> str:
        """Return for people why it is wrong for its form, without a word of it; empty for reasons of other kinds."""
        thought = f": {len(self.thoughts):,} characters of thought" if self.thoughts else ""
        words = {
            "refusal": "a refusal",
            "truncated": "cut at the token limit",
            "empty": f"empty{thought}",
            TOO_MANY_ROUNDS: "too many rounds of tool calls",
        }
        return f"({words[form_fault]})" if form_fault in words else ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer of one of several marking models to one criterion: a row of `judgements`.

    Args:
        place: Its place among the judges, from 1.
        credit: In [0, 1].
        observed: Its choice, cut.
        justification: Its words, cut; None for none.
        of_record: Its verdict is that of the evaluation.
    """

    criterion: str
    judge: str
    place: int
    passed: bool
    credit: float
    observed: str
    justification: str | None
    of_record: bool = False


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One row per result × criterion.

    Args:
        criterion: `CR1`, `turn 2`, …; empty where the case has only one.
        rule: `category_match`, `list_includes`, `tag_threshold` or `sqe`.
        rule_hash: 16 hex digits over the rule and, for a judge, its template and model.
        credit: In [0, 1].
        reason: Why it is wrong, when its form is (see `FORM_REASONS`); None otherwise.
        parse: How JSON was found; None where none was looked for.
        observed: For people: what came, cut to 200 characters; `HIDDEN_TEXT` where that is running text of the reply.
        justification: The judge's; None for field rules.
        beside: The mark of a verdict that what was judged could have forged; None for most.
        judgements: What each of several marking models said, in their order; empty where one alone has judged.
        observed_text: The running text that was observed, cut likewise: shown only where replies are. None for none.
    """

    criterion: str
    rule: str
    rule_hash: str
    passed: bool
    credit: float
    reason: str | None
    parse: Parse | None
    expected: str
    observed: str
    justification: str | None = None
    beside: Beside | None = None
    judgements: tuple[Judgement, ...] = ()
    observed_text: str | None = None

    @property
    def turn(self) -> int | None:
        """The turn of a conversation whose reply alone it is about, from 1; None for any other evaluation."""
        found = _TURN.match(self.criterion)
        return None if found is None else int(found[1])


def wrong_turn(evaluations: Iterable[Evaluation]) -> int | None:
    """Return the turn that the first failed evaluation is about; None for the last one, and without a failure."""
    return next((one.turn for one in evaluations if not one.passed), None)


BOX_EVENT = "box"
"""The type of the event that holds what a living box was given and has used."""


def utc_now() -> str:
    """Return the time as ISO 8601 UTC."""
    seconds, ms = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_to_the_second(seconds)}.{ms:03}+00:00"


@lru_cache(maxsize=2)
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened while a case was worked on: a message of an agent, a command, its end.

    Args:
        type: A word: `message`, `tool`, `end`, …
        at: ISO 8601 UTC; now, unless it is given.
    """

    type: str
    payload: Mapping[str, Any]
    at: str = field(default_factory=utc_now)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one case × model × repetition.

    Args:
        reason: Why, in a word where it has a name (`invalid_json`, `timeout`, …); None for a plain verdict.
        message: For people: the fault or skip in a sentence or two; empty for judged cases.
        evaluations: One per criterion; empty unless judged.
        score: Mean credit over the criteria, in [0, 1]; None unless judged.
        usage: Of the case's own calls, judges apart.
        latency_ms: Of the case's own calls, without our own waiting; None when none was answered.
        excerpt: Start of the reply of a failed case (of a conversation that at `wrong_turn`), cut; of an error, what a
            program wrote last; empty otherwise.
        excerpt_of: Whose words the excerpt has: `reply`, `output` of a program, `pack`.
        reply_key: `Reply.key` of the case's reply; None when there is none.
        started_at: ISO 8601 UTC; `completed_at` likewise.
        events: On their way to the record; gone from an outcome that waits for its item.
        statement: What its kind says of the case in its own words; None for most kinds, and where it says nothing.
    """

    verdict: Verdict
    reason: str | None = None
    message: str = ""
    evaluations: tuple[Evaluation, ...] = ()
    score: float | None = None
    usage: Usage = Usage()
    latency_ms: float | None = None
    excerpt: str = ""
    excerpt_of: str = "reply"
    reply_key: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    events: tuple[Event, ...] = ()
    statement: CaseStatement | None = None

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """The answers of several marking models, by criterion."""
        return tuple(part for found in self.evaluations for part in found.judgements)

    @property
    def judged(self) -> bool:
        """Whether a rule has spoken."""
        return self.verdict in (Verdict.PASSED, Verdict.FAILED)

    def for_item(self) -> Outcome:
        """Return what an item shows of it: what only the record keeps is left out, since thousands may wait."""
        if not self.events and self.statement is None:
            return self
        statement = None if self.statement is None else self.statement.for_item()
        return replace(self, events=(), statement=statement)


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One row of `calls`, with the request and the reply behind it.

    Args:
        criterion: Of a judge call; empty otherwise.
        purpose: `case` or `judge` (`pack`, `agent`).
        sequence: The n-th call of this purpose inside the case, from 1.
        attempt: From 1; 0 for an answer taken from the record.
        status_code: HTTP status; None when no answer came.
        error: Class and text of the fault, cut; None for a reply.
        request_hash: SHA-256 (hex) of the body.
        request_body: JSON as sent; as stored, without secrets that the user has typed.
        response_body: HTTP body as received; None when none came (an error body is kept too).
        text: Scrubbed reply for people; None for faults. `thoughts` likewise, None for none.
        reply_key: `Reply.key`; None for faults.
        started_at: ISO 8601 UTC; `received_at` likewise.
        unanswered: It was sent and brought no reply, and the provider may bill it all the same.
        reserved_usd: What the budget counts for it while its cost is unknown; None without a budget.
        judge: Id of the marking model that was asked; None for other calls.
        asked: Id of the model that was asked, a marking model too; None where none is stated.
        prompt_characters: Of a prompt that is long enough for its tokens to tell whether the server has cut it.
        address: Where it was asked; None where its reply represents no other call.
        turn: Of the conversation, from 1; None where there is none.
        batch: Its line in the batch that it went in; None for a call that was sent singly.
    """

    run_id: int
    code: str
    repetition: int
    criterion: str
    purpose: str
    sequence: int
    attempt: int
    status_code: int | None
    finish_reason: str | None
    error: str | None
    latency_ms: float | None
    usage: Usage
    provider_model: str | None
    request_hash: str
    request_body: bytes
    response_body: bytes | None
    text: str | None
    reply_key: str | None
    from_cache: bool
    started_at: str
    received_at: str
    unanswered: bool = False
    reserved_usd: float | None = None
    judge: str | None = None
    asked: str | None = None
    prompt_characters: int | None = None
    thoughts: str | None = None
    inner_thoughts: int = 0
    address: str | None = None
    turn: int | None = None
    batch: str | None = None

    @property
    def question(self) -> tuple[str | None, str | None, str, int]:
        """The key of equal requests: model, address, body and repetition."""
        return self.asked, self.address, self.request_hash, self.repetition


@dataclass(frozen=True, slots=True)
class ResultRecord:
    """One row of `results` with its evaluations.

    Args:
        code: Case code; unique with run and repetition.
        neutral: Judged, but ignored by scores.
        supersedes: It stands in place of a verdict on record, whose request or rule is not that of now.
        from_record: It is a verdict on record, reported again by a session that goes on.
    """

    run_id: int
    code: str
    node_id: str
    family: str
    repetition: int
    severity: int
    difficulty: int
    neutral: bool
    outcome: Outcome
    supersedes: bool = False
    from_record: bool = False

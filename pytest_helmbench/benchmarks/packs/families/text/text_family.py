"""Families whose replies are judged by their text: by words where these decide, else by a marking model."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pytest_helmbench.benchmarks.packs.families.family import Family, Trial
from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding
from pytest_helmbench.benchmarks.packs.families.text.given import leaves
from pytest_helmbench.benchmarks.packs.task import PackRule
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.outcome import Evaluation, Reply, Verdict
from pytest_helmbench.core.scrub import HIDDEN_TEXT
from pytest_helmbench.judging.rubric import Criterion

if TYPE_CHECKING:  # whoever only reads rows needs no sandbox
    from pytest_helmbench.benchmarks.packs.row_tools import RowTools

ENDING_JSON = (
    "Reply with a JSON object and nothing else. It has two keys: `reasoning`, your thoughts as text, and then "
    "`answer`, {what}."
)
_IGNORANCE = "I do not know"


class ProofReply(NamedTuple):
    """A reply by which a row proves itself, and what must come of it.

    Args:
        label: What it is, without any hidden value.
        reply: Its text; hidden where it is taken from `eval`.
        must_pass: The verdict that a sound row gives it.
    """

    label: str
    reply: str
    must_pass: bool


class TextFamily(Family):
    """A family whose rows are one question, and whose `eval` says which texts answer it."""

    runs_code: ClassVar[bool] = False
    is_one_question: ClassVar[bool] = True
    read_by_judge: ClassVar[bool] = True
    answer_field: ClassVar[str]
    sends_statement: ClassVar[bool] = True

    @abstractmethod
    def finding(self, given: JsonObject, wanted: JsonObject, reply: str, *, parity: bool) -> AnswerFinding:
        """Hold a reply to a row. Never raises for a reply, whatever it holds.

        Args:
            given: `input` of the row.
            wanted: `eval` of the row.
            reply: As the provider's JSON decodes, lone surrogates included.
            parity: Apply the published rule instead of the default one.

        Raises:
            ConfigError: The row is incomplete, or only a marking model can judge it. The message names fields, never
                hidden values.

        Source:
            Benchmark packs, section 4, its parity rules, and the rule on answers in docs/packs.md.
        """

    @abstractmethod
    def own_proofs(self, given: JsonObject, wanted: JsonObject) -> Iterator[ProofReply]:
        """Yield the replies that a row must judge right, those that must pass first.

        Raises:
            ConfigError: The row is incomplete.
        """

    @abstractmethod
    def reading(self, rule: PackRule) -> Criterion:
        """Return what a marking model is asked about replies to a row.

        Raises:
            ConfigError: The row is incomplete.
        """

    def proofs(self, given: JsonObject, wanted: JsonObject, prompt: str = "") -> tuple[ProofReply, ...]:
        """Return the replies that a row must judge right; none where only a marking model can judge.

        Args:
            given: `input` of the row.
            wanted: `eval` of the row.
            prompt: As the model sees it; empty to echo the public fields only.

        Raises:
            ConfigError: The row is incomplete.

        Source:
            Benchmark packs, section 6.
        """
        if self.is_judged(wanted):
            return ()
        whole = (ProofReply("the whole prompt", prompt, must_pass=False),) if prompt else ()
        empty = ProofReply("an empty reply", "", must_pass=False)
        silent = ProofReply(f"{_IGNORANCE!r}", _IGNORANCE, must_pass=False)
        return (*self.own_proofs(given, wanted), *whole, empty, silent)

    def wants_reading(self, rule: PackRule, reply: Reply) -> Criterion | None:
        """See `Family.wants_reading`."""
        if rule.parity or (reply.refusal and not reply.text):
            return None
        if self.finding(rule.task.public(), rule.task.evaluation(), reply.text, parity=False).certain:
            return None
        return self.reading(rule)

    def read_evaluation(self, rule: PackRule, read: Evaluation, reply: Reply, *, shows: bool) -> Evaluation:
        """See `Family.read_evaluation`."""
        finding = self.finding(rule.task.public(), rule.task.evaluation(), reply.text, parity=False)
        said = f"; it says: {read.justification}" if shows and read.justification else ""
        judged = self.row_evaluation(
            rule,
            passed=read.passed,
            observed=finding.statement,
            reason=None if read.passed or reply.finish_reason != "length" else "truncated",
            shows=shows,
            note=f"read by the marking model as {read.observed}{said}",
            by="judge",
        )
        return _of_text(judged)

    def evaluation(self, rule: PackRule, reply: Reply, *, shows: bool) -> Evaluation:
        """Hold a reply to a row by its words: a new one, or one on record.

        Args:
            rule: The row, and by which rules.
            reply: Of the model under test.
            shows: The user wants to see the answers.

        Raises:
            ConfigError: The row is incomplete.
        """
        if reply.refusal and not reply.text:
            finding = AnswerFinding(False, statement="(a refusal)", reason="refusal")
        else:
            finding = self.finding(rule.task.public(), rule.task.evaluation(), reply.text, parity=rule.parity)
        cut = not finding.passed and reply.finish_reason == "length"
        judged = self.row_evaluation(
            rule,
            passed=finding.passed,
            observed=finding.statement,
            reason="truncated" if cut else finding.reason,
            shows=shows,
            note=self.grounds(rule, finding, shows=shows),
            by="words",
        )
        return judged if reply.refusal and not reply.text else _of_text(judged)

    def grounds(self, rule: PackRule, finding: AnswerFinding, *, shows: bool) -> str | None:
        """Return what a verdict rests on, for the record; hidden values only where they are asked for."""
        del rule, finding, shows
        return None

    async def evaluate(self, rule: PackRule, reply: Reply, tools: RowTools) -> Evaluation:
        """See `Family.evaluate`."""
        return self.evaluation(rule, reply, shows=tools.settings.show_hidden)

    async def trials(self, rule: PackRule, _tools: RowTools) -> AsyncIterator[Trial]:
        """See `Family.trials`."""
        task = rule.task
        given, wanted = task.public(), task.evaluation()
        if self.is_judged(wanted):
            return  # only a judge could say
        parity = rule.parity or self.needs_judge  # words alone decide hardly anything of those
        for label, reply, must_pass in self.proofs(given, wanted, self.prompt(task)):
            passed = self.finding(given, wanted, reply, parity=parity).passed
            yield Trial(label, must_pass, Verdict.PASSED if passed else Verdict.FAILED)


def right_replies(label: str, answer: str) -> Iterator[ProofReply]:
    """Yield an answer alone, and as prompts ask for it."""
    yield ProofReply(label, answer, must_pass=True)
    yield ProofReply(f"{label}, behind `Answer:`", f"Answer: {answer}", must_pass=True)


def echoes(given: JsonObject, name: str) -> Iterator[ProofReply]:
    """Yield what only repeats a row: its question, its context."""
    asked = given.get(name)
    if isinstance(asked, str) and asked.strip():
        yield ProofReply(f"the {name}", asked, must_pass=False)
    context = given.get("context")
    if isinstance(context, dict):
        lines = "\n".join(f"{key}: {value}" for key, value in context.items())
        yield ProofReply("the context", lines, must_pass=False)
        written = json.dumps(context, ensure_ascii=False, default=str)
        yield ProofReply("the context as JSON", written, must_pass=False)
    elif any(leaves(context)):
        yield ProofReply("the context", str(context), must_pass=False)


def answer_format(choices: str = "") -> JsonObject:
    """Return the wire form of a JSON answer: its reasoning, then the answer, one of some letters if given."""
    answer: dict[str, JsonValue] = {"type": "string", "enum": [*choices]} if choices else {"type": "string"}
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"reasoning": {"type": "string"}, "answer": answer},
        "required": ["reasoning", "answer"],
        "additionalProperties": False,
    }
    envelope: dict[str, JsonValue] = {"name": "answer", "strict": True, "schema": schema}
    return {"type": "json_schema", "json_schema": envelope}


def _of_text(judged: Evaluation) -> Evaluation:
    """Return an evaluation whose observed words are the reply's own."""
    return replace(judged, observed=HIDDEN_TEXT, observed_text=judged.observed) if judged.observed else judged

"""Families whose replies are judged by their text alone: rules of this machine, no sandbox, no second model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from pytest_helmbench.benchmarks.packs.families.family import Family, Trial
from pytest_helmbench.benchmarks.packs.families.text.answer_form import formed_answer
from pytest_helmbench.benchmarks.packs.families.text.finding import STATEMENT_LIMIT, AnswerFinding
from pytest_helmbench.benchmarks.packs.families.text.proofs import ProofReply, with_empty_talk
from pytest_helmbench.benchmarks.packs.task import PackRule
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.outcome import Evaluation, Reply, Verdict
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.core.shown_texts import HIDDEN_TEXT
from pytest_helmbench.judging.rubric import Criterion

if TYPE_CHECKING:  # whoever only reads rows needs no sandbox
    from pytest_helmbench.benchmarks.packs.row_tools import RowTools

__all__ = ["TextFamily"]

_SAID = 800


class TextFamily(Family):
    """A family whose rows are one question, and whose `eval` says which texts answer it."""

    runs_code: ClassVar[bool] = False
    is_one_question: ClassVar[bool] = True
    answer_field: ClassVar[str]

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
            Benchmark packs, section 4, and its parity rules.
        """

    @abstractmethod
    def own_proofs(self, given: JsonObject, wanted: JsonObject) -> Iterator[ProofReply]:
        """Yield the replies that a row must judge right, those that must pass first.

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
        return with_empty_talk(self.own_proofs(given, wanted), prompt)

    def reading(self, _rule: PackRule) -> Criterion:
        """Return what a marking model is asked about replies to a row, for families that have them read.

        Raises:
            ConfigError: The row is incomplete.
        """
        raise NotImplementedError(self.name)

    def wants_reading(self, rule: PackRule, reply: Reply) -> Criterion | None:
        """See `Family.wants_reading`."""
        if not self.read_by_judge or rule.parity or (reply.refusal and not reply.text):
            return None
        text = reply.text
        if rule.form != "text":
            answer = formed_answer(rule.form, reply)
            if answer.reason is not None:
                return None
            text = answer.text
        if self.finding(rule.task.public(), rule.task.evaluation(), text, parity=False).certain:
            return None
        return self.reading(rule)

    def read_evaluation(self, rule: PackRule, read: Evaluation, reply: Reply, *, shows: bool) -> Evaluation:
        """See `Family.read_evaluation`."""
        text = reply.text if rule.form == "text" else formed_answer(rule.form, reply).text
        finding = self.finding(rule.task.public(), rule.task.evaluation(), text, parity=False)
        grounds = self.grounds(rule, finding, shows=shows) or ("passed" if finding.passed else "failed")
        said = f"; it says: {read.justification}" if shows and read.justification else ""
        judged = self.row_evaluation(
            rule,
            passed=read.passed,
            observed=finding.statement,
            reason=None if read.passed or reply.finish_reason != "length" else "truncated",
            shows=shows,
            note=f"read by the marking model as {read.observed}{said}; by its words: {grounds}",
        )
        return _of_text(judged)

    def evaluation(self, rule: PackRule, reply: Reply, *, shows: bool) -> Evaluation:
        """Hold a reply to a row: a new one, or one on record.

        Args:
            rule: The row, and by which rules.
            reply: Of the model under test.
            shows: The user wants to see the answers.

        Raises:
            ConfigError: The row is incomplete.
        """
        if reply.refusal and not reply.text:
            return self.row_evaluation(
                rule, passed=False, observed="(a refusal)", reason="refusal", shows=shows
            )
        task, text = rule.task, reply.text
        if rule.form != "text":
            answer = formed_answer(rule.form, reply)
            if answer.reason is not None:
                said = excerpt(" ".join(text[-_SAID:].split()), STATEMENT_LIMIT)
                judged = self.row_evaluation(
                    rule, passed=False, observed=said, reason=answer.reason, shows=shows
                )
                return _of_text(judged)
            text = answer.text
        finding = self.finding(task.public(), task.evaluation(), text, parity=rule.parity)
        reason = finding.reason
        if not finding.passed and reply.finish_reason == "length":
            reason = "truncated"
        judged = self.row_evaluation(
            rule,
            passed=finding.passed,
            observed=finding.statement,
            reason=reason,
            shows=shows,
            note=self.grounds(rule, finding, shows=shows),
            parse=None if rule.parity else finding.sureness.value,
        )
        return _of_text(judged)

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
        for label, reply, must_pass in self.proofs(given, wanted, self.prompt(task)):
            passed = self.finding(given, wanted, reply, parity=rule.parity).passed
            yield Trial(label, must_pass, Verdict.PASSED if passed else Verdict.FAILED)


def _of_text(judged: Evaluation) -> Evaluation:
    """Return an evaluation whose observed words are the reply's own."""
    return replace(judged, observed=HIDDEN_TEXT, observed_text=judged.observed) if judged.observed else judged

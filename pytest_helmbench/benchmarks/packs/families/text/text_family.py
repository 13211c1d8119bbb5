"""Families whose replies are judged by their text: by words where these decide, else by a marking model."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pytest_helmbench.benchmarks.packs.families.family import Family, Trial
from pytest_helmbench.benchmarks.packs.format.prompt_template import written
from pytest_helmbench.benchmarks.packs.task import PackRule
from pytest_helmbench.core.json_types import JsonObject, JsonValue, as_text, is_number
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Reply, Verdict
from pytest_helmbench.core.reply_text import split_reply
from pytest_helmbench.core.scrub import HIDDEN_TEXT, excerpt
from pytest_helmbench.judging.comparisons.plain import folded
from pytest_helmbench.judging.comparisons.stated import Stated, end_of
from pytest_helmbench.judging.rubric import Criterion, answer_format

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.packs.row_tools import RowTools


ENDING_JSON = (
    "Reply with a JSON object and nothing else. It has two keys: `reasoning`, your thoughts as text, and then "
    "`answer`, {what}."
)
_IGNORANCE = "I do not know"
STATEMENT_LIMIT = 200
"""Most characters of a reply that a finding carries."""
_SILENT = re.compile(
    r"(?:i'm sorry,? )?(?:but )?i (?:do not|don't|cannot|can't) (?:know|say|answer|tell)\b[^,;.]*\.?(?: sorry\.?)?"
    r"|unknown|n/a|no answer|no idea|not sure|idk|-*",
    re.IGNORECASE,
)
_FEWEST_WORDS = 5
"""Fewest words of a shown text whose repeat is not an answer: a value of the context may be one."""
_EDGE = " \t\r\n\"'`.,;:"


class ProofReply(NamedTuple):
    """A reply by which a row proves itself, and the verdict that it must get.

    Args:
        label: What it is, without any hidden value.
        reply: Its text; hidden where it is taken from `eval`.
        must_pass: The verdict that a sound row gives it.
    """

    label: str
    reply: str
    must_pass: bool


class TextFamily(Family):
    """A family whose rows are one question, and whose `eval` says which texts answer it.

    Its methods call `input` of a row `given`, and its `eval` `wanted`.
    """

    runs_code: ClassVar[bool] = False
    is_one_question: ClassVar[bool] = True
    read_by_judge: ClassVar[bool] = True
    answer_field: ClassVar[str]
    sends_statement: ClassVar[bool] = True

    @abstractmethod
    def finding(self, given: JsonObject, wanted: JsonObject, reply: str, *, parity: bool) -> AnswerFinding:
        """Hold a reply to a row. Never raises for a reply, whatever it holds.

        Args:
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
        if rule.parity or reply.form_fault is not None:
            return None
        if self.finding(rule.task.public(), rule.task.evaluation(), reply.text, parity=False).certain:
            return None
        return self.reading(rule)

    def read_evaluation(self, rule: PackRule, read: Evaluation, reply: Reply, *, shows: bool) -> Evaluation:
        """Return the evaluation of a reply that the marking model has read; `shows`: hidden values are asked for."""
        finding = self.finding(rule.task.public(), rule.task.evaluation(), reply.text, parity=False)
        said = f"; it says: {read.justification}" if shows and read.justification else ""
        judged = self.row_evaluation(
            rule,
            passed=read.passed,
            observed=finding.statement,
            shows=shows,
            note=f"read by the marking model as {read.observed}{said}",
            by="judge",
        )
        return _of_text(judged)

    def evaluation(self, rule: PackRule, reply: Reply, *, shows: bool) -> Evaluation:
        """Hold a reply to a row by its words: a new one, or one on record.

        Raises:
            ConfigError: The row is incomplete.
        """
        finding = self.finding(rule.task.public(), rule.task.evaluation(), reply.text, parity=rule.parity)
        judged = self.row_evaluation(
            rule,
            passed=finding.passed,
            observed=finding.statement,
            reason="truncated" if reply.is_cut else finding.reason,
            shows=shows,
            note=self.grounds(rule, finding, shows=shows),
            by="words",
        )
        return _of_text(judged)

    def grounds(self, rule: PackRule, finding: AnswerFinding, *, shows: bool) -> str | None:
        """Return what a verdict rests on, for the record; hidden values only where they are asked for."""
        del rule, finding, shows
        return None

    async def trials(self, rule: PackRule, _tools: RowTools) -> AsyncIterator[Trial]:
        task = rule.task
        given, wanted = task.public(), task.evaluation()
        if self.is_judged(wanted):
            return  # only a judge could say
        parity = rule.parity or self.needs_judge  # words alone decide hardly anything of those
        for label, reply, must_pass in self.proofs(given, wanted, self.prompt(task)):
            passed = self.finding(given, wanted, split_reply(reply).answer, parity=parity).passed
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
        yield ProofReply("the context as JSON", as_text(context), must_pass=False)
    elif any(leaves(context)):
        yield ProofReply("the context", str(context), must_pass=False)


def reasoned_answer(choices: str = "") -> JsonObject:
    """Return the wire form of a JSON answer: its reasoning, then the answer, one of some letters if given."""
    answer: dict[str, JsonValue] = {"type": "string", "enum": [*choices]} if choices else {"type": "string"}
    return answer_format("answer", {"reasoning": {"type": "string"}, "answer": answer})


def _of_text(judged: Evaluation) -> Evaluation:
    """Return an evaluation whose observed words are the reply's own."""
    return replace(judged, observed=HIDDEN_TEXT, observed_text=judged.observed) if judged.observed else judged


@dataclass(frozen=True, slots=True)
class AnswerFinding:
    """The verdict of one reply, and what it rests on. Holds no hidden value.

    Args:
        passed: Right or wrong.
        strategy: How the answer was recognised; None when none was.
        matched: multiple_choice: index of the choice that was read, None for none or several. Else: index of the
            accepted answer that was met, None for none.
        rejected: free_response: index of the rejected answer that was met; None for none.
        accepted_f1: free_response: best token F1 over the accepted answers, in [0, 1]; None elsewhere.
        rejected_f1: free_response: the same over the rejected answers.
        statement: What was compared: the model's own words, cut to 200 characters.
        reason: Why a reply is wrong for its form: `empty`, `no_answer` (it states none), `several` (it states more
            than one), `echo` (it only repeats what it was given). None otherwise.
        certain: Words decide. A marking model, where there is one, reads every other reply.
    """

    passed: bool
    strategy: str | None = None
    matched: int | None = None
    rejected: int | None = None
    accepted_f1: float | None = None
    rejected_f1: float | None = None
    statement: str = ""
    reason: str | None = None
    certain: bool = True


def shown(text: str) -> str:
    """Return a statement as a finding carries it: on one line, scrubbed and cut."""
    return excerpt(" ".join(text[: 4 * STATEMENT_LIMIT].split()), STATEMENT_LIMIT)


def no_statement(reply: str, stated: Stated, given: Iterable[str]) -> AnswerFinding | None:
    """Return the finding on a reply that only repeats what was given, or states no answer; None for any other.

    All of these are wrong. A marking model reads those that say something and yet state no answer.
    """
    text = end_of(reply)
    statement = shown(stated.text or text)
    if echoes_given(given, text, stated.text):
        return AnswerFinding(False, statement=statement, reason="echo")
    if not text:
        return AnswerFinding(False, reason="empty")
    if not stated.text:
        return AnswerFinding(False, statement=statement, reason="no_answer", certain=False)
    return AnswerFinding(False, "silent", statement=statement) if is_silent(stated.text) else None


def leaves(context: object) -> Iterator[str]:
    """Yield the texts and numbers of a context (a text, or an object of any depth), in order."""
    pending: list[object] = [context]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            pending.extend(reversed([*value.values()]))
        elif isinstance(value, list | tuple):
            pending.extend(reversed(value))
        elif isinstance(value, str):
            if value.strip():
                yield value.strip()
        elif is_number(value):
            yield str(value)


def given_texts(context: JsonValue, *texts: str) -> tuple[str, ...]:
    """Return all that was shown in all forms in which it may come back, long texts first."""
    given = [*texts, *leaves(context)]
    if not isinstance(context, str):
        given += [written(context), as_text(context), json.dumps(context, ensure_ascii=False, indent=2)]
    return tuple(sorted((text for text in given if text), key=len, reverse=True))


def stripped(value: JsonValue) -> str:
    """Return a text without white space around it; empty where there is none."""
    return value.strip() if isinstance(value, str) else ""


def is_silent(statement: str) -> bool:
    """Return whether a plain statement says that it does not know, and nothing else."""
    return _SILENT.fullmatch(statement.strip(" .")) is not None


def echoes_given(given: Iterable[str], *texts: str) -> bool:
    """Return whether one of some texts only repeats one that the model was shown."""
    said = {low for text in texts if (low := folded(text))}
    return any(low in said for low in map(_folded, given) if len(low.split()) >= _FEWEST_WORDS)


_folded = lru_cache(maxsize=2048)(folded)


def normalised(text: str, *, united_states: bool = False) -> str:
    """Return a text as two texts are compared."""
    text = text.strip().lower()
    if united_states:
        text = text.replace("u.s.", "united states")
    return " ".join(text.split()).strip(_EDGE)


def focused_text(reply: str, cue: re.Pattern[str]) -> str:
    """Return the last line that is not blank, or what follows its first cue."""
    lines = reply.strip().splitlines()
    last = lines[-1].strip() if lines else ""
    found = cue.search(last)
    return last if found is None else found[1].strip()


def holds(text: str, part: str) -> bool:
    """Return whether a text holds another as whole words."""
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text) is not None

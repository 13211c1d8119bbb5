"""free_response: a task with a rubric: texts that a reply must and must not hold, or words for a marking model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pytest_helmbench.benchmarks.packs.families.free_response.parity import parity_free
from pytest_helmbench.benchmarks.packs.families.free_response.row import free_row, read_free
from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding
from pytest_helmbench.benchmarks.packs.families.text.text_family import ProofReply, TextFamily, echoes
from pytest_helmbench.benchmarks.packs.format.prompt_template import PromptTemplate, field_text
from pytest_helmbench.benchmarks.packs.format.row_fields import (
    REFERENCE_HINT,
    Field,
    Fields,
    Names,
    is_reference,
    text_or_object,
)
from pytest_helmbench.benchmarks.packs.task import ConfigError, PackRule, PackTask
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.files.field_values import (
    RowFaults,
    check_number,
    check_text,
    check_texts,
    check_unknown,
    kind_of,
)
from pytest_helmbench.judging.rubric import Criterion, JudgeRule

_PASS, _FAIL = "PASS", "FAIL"
_LISTS = ("Accepted answers:", "Rejected answers:")
_RUBRIC = (
    "The reply passes when it says what one of the accepted answers says, in whatever words, and asserts none of the "
    "rejected answers. A short reply stands for the accepted answer that it names when the prompt makes it clear. What "
    "the reply denies, quotes as an error or only mentions is not asserted. Right words about something else do not "
    "count."
)

_RUBRIC_KEYS = ("type", "accepted_answers", "rejected_answers", "min_token_f1")


def _rubric(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, dict):
        if isinstance(value, str):
            check_text(faults, where, value)
        else:
            faults.error(where, f"this is {kind_of(value)}, not text or an object")
        return
    check_unknown(faults, where, value, _RUBRIC_KEYS)
    if value.get("type", "contains_any") != "contains_any":
        faults.error(f"{where}.type", "the type is not known", "the only type is 'contains_any'")
    if "accepted_answers" in value:
        check_texts(faults, f"{where}.accepted_answers", value["accepted_answers"])
    else:
        faults.error(f"{where}.accepted_answers", "this is missing", "a rubric needs it")
    if value.get("rejected_answers") is not None:
        check_texts(faults, f"{where}.rejected_answers", value["rejected_answers"])
    if value.get("min_token_f1") is not None:
        check_number(faults, f"{where}.min_token_f1", value["min_token_f1"], low=0, high=1)


def _reference_text(faults: RowFaults, where: str, value: JsonValue) -> None:
    if isinstance(value, list | dict) and not is_reference(value):
        faults.error(where, f"this is {kind_of(value)}, not text", REFERENCE_HINT)


class FreeResponse(TextFamily):
    """See `Family`."""

    name = "free_response"
    needs_judge = True
    sends_statement = False
    input_fields: ClassVar[Fields] = {
        "prompt": Field(check_text, required=True),
        "context": Field(text_or_object),
    }
    eval_fields: ClassVar[Fields] = {
        "rubric": Field(_rubric, required=True),
        "reference_answer": Field(_reference_text, names=Names.A_FILE),
    }
    answer_field = "rubric"
    template = PromptTemplate(
        name,
        __package__,
        version=1,
        values={"context": field_text("context"), "prompt": field_text("prompt")},
        needed=("prompt",),
    )

    def is_judged(self, hidden: JsonObject) -> bool:
        """Return whether the rubric is in words."""
        return isinstance(hidden.get("rubric"), str)

    def judge_rule(self, task: PackTask, *, hidden: bool) -> JudgeRule | None:
        """See `Family.judge_rule`."""
        rubric = task.eval_value("rubric")
        if not isinstance(rubric, str):
            return None
        reference = _reference_answer(task)
        if reference:
            rubric = f"{rubric}\n\nReference answer:\n{reference}"
        return JudgeRule((Criterion("", rubric, (_PASS, _FAIL), (_PASS,)),), hidden=hidden)

    def finding(self, given: JsonObject, wanted: JsonObject, reply: str, *, parity: bool) -> AnswerFinding:
        """See `TextFamily.finding`."""
        row = free_row(given, wanted)
        return parity_free(row, reply) if parity else read_free(row, reply)

    def reading(self, rule: PackRule) -> Criterion:
        """See `TextFamily.reading`."""
        row = free_row(rule.task.public(), rule.task.evaluation())
        listed = (_LISTS[0], row.accepted), (_LISTS[1], row.rejected)
        lists = (f"{head}\n" + "\n".join(f"- {text}" for text in texts) for head, texts in listed if texts)
        return Criterion("", "\n\n".join([_RUBRIC, *lists]), (_PASS, _FAIL), (_PASS,))

    def grounds(self, rule: PackRule, finding: AnswerFinding, *, shows: bool) -> str:
        """See `TextFamily.grounds`."""
        rubric = rule.task.eval_value("rubric")
        lists = rubric if isinstance(rubric, dict) else {}
        parts = [finding.strategy or finding.reason or "nothing matched"]
        for name, index, score in (
            ("accepted", finding.matched, finding.accepted_f1),
            ("rejected", finding.rejected, finding.rejected_f1),
        ):
            texts = lists.get(f"{name}_answers")
            met = "none" if index is None else f"entry {index + 1}"
            if shows and index is not None and isinstance(texts, list):
                met += f" ({texts[index]})"
            parts.append(f"{name}: {met}" + (f", F1 {score or 0.0:.2f}" if rule.parity else ""))
        return "; ".join(parts)

    def own_proofs(self, given: JsonObject, wanted: JsonObject) -> Iterator[ProofReply]:
        """See `TextFamily.own_proofs`."""
        row = free_row(given, wanted)
        for number, answer in enumerate(row.accepted, 1):
            yield ProofReply(f"accepted answer {number}", answer, must_pass=True)
        reference = wanted.get("reference_answer")
        if isinstance(reference, str) and reference.strip():
            yield ProofReply("the reference answer", reference, must_pass=True)
        for number, answer in enumerate(row.rejected, 1):
            yield ProofReply(f"rejected answer {number}", answer, must_pass=False)
        yield from echoes(given, "prompt")


def _reference_answer(task: PackTask) -> str:
    """Return the reference answer of a row with a rubric in words; it may stand in a file. Empty for none.

    Raises:
        ConfigError: The file is no text.
    """
    value = task.eval_value("reference_answer")
    source = next((file.source for file in task.eval_files), None)
    if source is None:
        return "" if value is None else str(value)
    try:
        return source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{task.id}: eval.reference_answer: the file that it names is no text in UTF-8"
        raise ConfigError(f"{message}\n  hint: save it as UTF-8") from error


FAMILY = FreeResponse()

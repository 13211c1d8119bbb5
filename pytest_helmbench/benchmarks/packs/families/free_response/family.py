"""free_response: a task with a rubric: texts that a reply must and must not hold, or words for a marking model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import ClassVar

from pytest_helmbench.benchmarks.packs.families.text.text_family import (
    AnswerFinding,
    ProofReply,
    TextFamily,
    echoes,
    echoes_given,
    given_texts,
    holds,
    is_silent,
    normalised,
    shown,
    stripped,
)
from pytest_helmbench.benchmarks.packs.format.prompt_template import PromptTemplate, field_text
from pytest_helmbench.benchmarks.packs.format.row_fields import (
    REFERENCE_HINT,
    Field,
    Fields,
    Names,
    earlier_messages,
    eval_text,
    is_reference,
    text_or_object,
)
from pytest_helmbench.benchmarks.packs.task import ConfigError, PackRule, PackTask
from pytest_helmbench.core.case_texts import observed_from
from pytest_helmbench.core.json_types import JsonObject, JsonValue, is_number
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.field_values import (
    RowFaults,
    check_number,
    check_text,
    check_texts,
    check_unknown,
    kind_of,
)
from pytest_helmbench.files.strict_json import texts
from pytest_helmbench.judging.comparisons.exact import place_of
from pytest_helmbench.judging.comparisons.plain import folded
from pytest_helmbench.judging.comparisons.stated import end_of
from pytest_helmbench.judging.rubric import Criterion, JudgeRule

_LISTS = ("Accepted answers:", "Rejected answers:")
_RUBRIC = (
    "The reply passes when it says what one of the accepted answers says, in whatever words, and asserts none of the "
    "rejected answers. A short reply stands for the accepted answer that it names when the prompt makes it clear. What "
    "the reply denies, quotes as an error or only mentions is not asserted. Right words about something else do not "
    "count."
)

_RUBRIC_KEYS = ("type", "accepted_answers", "rejected_answers", "min_token_f1")


def _rubric(faults: RowFaults, where: str, value: JsonValue) -> None:
    if isinstance(value, str):
        check_text(faults, where, value)
        return
    text_or_object(faults, where, value)
    if not isinstance(value, dict):
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
    check_number(faults, f"{where}.min_token_f1", value.get("min_token_f1", 1), low=0, high=1)


def _reference_text(faults: RowFaults, where: str, value: JsonValue) -> None:
    if isinstance(value, list | dict) and not is_reference(value):
        faults.error(where, f"this is {kind_of(value)}, not text", REFERENCE_HINT)


class FreeResponse(TextFamily):
    """Rows with a reply in free words: lists or a rubric decide."""

    name = "free_response"
    needs_judge = True
    sends_statement = False
    input_fields: ClassVar[Fields] = {
        "prompt": Field(check_text, required=True),
        "context": Field(text_or_object),
        "messages": Field(earlier_messages),
    }
    eval_fields: ClassVar[Fields] = {
        "rubric": Field(_rubric, required=True),
        "reference_answer": Field(_reference_text, names=Names.A_FILE),
    }
    answer_field = "rubric"
    template = PromptTemplate(
        __package__,
        values={"context": field_text("context"), "prompt": field_text("prompt")},
        needed=("prompt",),
    )

    def is_judged(self, hidden: JsonObject) -> bool:
        """Return whether the rubric is in words."""
        return isinstance(hidden.get("rubric"), str)

    def judge_rule(self, task: PackTask, *, hidden: bool) -> JudgeRule | None:
        rubric = task.eval_value("rubric")
        if not isinstance(rubric, str):
            return None
        reference = eval_text(task, "reference_answer")
        if reference:
            rubric = f"{rubric}\n\nReference answer:\n{reference}"
        return JudgeRule((Criterion("", rubric, ("PASS", "FAIL"), ("PASS",)),), hidden=hidden)

    def finding(self, given: JsonObject, wanted: JsonObject, reply: str, *, parity: bool) -> AnswerFinding:
        row = free_row(given, wanted)
        return parity_free(row, reply) if parity else read_free(row, reply)

    def reading(self, rule: PackRule) -> Criterion:
        row = free_row(rule.task.public(), rule.task.evaluation())
        listed = (_LISTS[0], row.accepted), (_LISTS[1], row.rejected)
        lists = (f"{head}\n" + "\n".join(f"- {text}" for text in texts) for head, texts in listed if texts)
        return Criterion("", "\n\n".join([_RUBRIC, *lists]), ("PASS", "FAIL"), ("PASS",))

    def grounds(self, rule: PackRule, finding: AnswerFinding, *, shows: bool) -> str:
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
        row = free_row(given, wanted)
        for number, answer in enumerate(row.accepted, 1):
            yield ProofReply(f"accepted answer {number}", answer, must_pass=True)
        reference = wanted.get("reference_answer")
        if isinstance(reference, str) and reference.strip():
            yield ProofReply("the reference answer", reference, must_pass=True)
        for number, answer in enumerate(row.rejected, 1):
            yield ProofReply(f"rejected answer {number}", answer, must_pass=False)
        yield from echoes(given, "prompt")


@dataclass(frozen=True, slots=True)
class FreeRow:
    """A row of free_response with lists.

    Args:
        given: What the model was shown, long texts first: context, prompt.
        prompt: The prompt alone.
        accepted: Stripped, none empty.
        rejected: Stripped, none empty; often there is not one.
        min_token_f1: Of the published rule, in [0, 1].
    """

    given: tuple[str, ...]
    prompt: str
    accepted: tuple[str, ...]
    rejected: tuple[str, ...]
    min_token_f1: float


def free_row(given: JsonObject, wanted: JsonObject) -> FreeRow:
    """Read `input` and `eval` of a free_response row.

    Raises:
        ConfigError: The rubric is in words, which the marking model judges.
    """
    rubric = wanted.get("rubric")
    if not isinstance(rubric, dict):
        raise ConfigError(
            "eval.rubric: not an object\n  hint: a rubric in words is judged by the marking model"
        )
    least, prompt = rubric.get("min_token_f1", 1.0), stripped(given.get("prompt"))
    return FreeRow(
        given=given_texts(given.get("context"), prompt),
        prompt=prompt,
        accepted=tuple(text.strip() for text in texts(rubric.get("accepted_answers"))),
        rejected=tuple(text.strip() for text in texts(rubric.get("rejected_answers"))),
        min_token_f1=float(least) if is_number(least) else 1.0,
    )


def read_free(row: FreeRow, reply: str) -> AnswerFinding:
    """Judge a free_response reply by its words: it is an entry, it is silent, or only a model can tell."""
    text = end_of(reply)
    low, statement = folded(text), _statement(text, row.rejected)
    accepted, rejected = (_word_for_word(text, low, entries) for entries in (row.accepted, row.rejected))
    if accepted is not None:
        return AnswerFinding(True, "word_for_word", accepted, statement=statement)
    if rejected is not None:
        return AnswerFinding(False, "word_for_word", rejected=rejected, statement=statement)
    if not low:
        return AnswerFinding(False, statement=statement, reason="empty")
    if low == folded(row.prompt) or echoes_given(row.given, text):
        return AnswerFinding(False, statement=statement, reason="echo")
    silent = is_silent(low)
    return AnswerFinding(False, "silent" if silent else None, statement=statement, certain=silent)


def _statement(text: str, rejected: tuple[str, ...]) -> str:
    """Return a reply as a finding carries it, from a few words before the first rejected entry in it."""
    places = (place_of(entry, text, ignore_case=True) for entry in rejected)
    return shown(observed_from(text, min((at for at in places if at is not None), default=None)))


def _word_for_word(text: str, low: str, entries: tuple[str, ...]) -> int | None:
    """Return the index of the entry that a text is, as written or as texts are compared; None for none."""
    return next((at for at, one in enumerate(entries) if text == one or (low and low == folded(one))), None)


_TOKEN = re.compile(r"[a-z0-9]+")
_STOP_WORDS = """
a an and are as at be because been before being by did do does due for from how if in into is it its no not of on
or over that the their this through to was were what when where which who whom whose why with you your
"""


def parity_free(row: FreeRow, reply: str) -> AnswerFinding:
    """Judge a free_response reply by the published rule."""
    low = normalised(reply, united_states=True)
    accepted, rejected = _first_contained(low, row.accepted), _first_contained(low, row.rejected)
    accepted_f1, best_accepted = _best_f1(reply, row.accepted)
    rejected_f1, best_rejected = _best_f1(reply, row.rejected)
    strategy = None if accepted is None else "contained"
    if accepted is None and best_accepted is not None and accepted_f1 >= row.min_token_f1:
        accepted, strategy = best_accepted, "token_f1"
    if rejected is None and rejected_f1 >= row.min_token_f1 and rejected_f1 >= accepted_f1:
        rejected = best_rejected
    return AnswerFinding(
        passed=accepted is not None and rejected is None,
        strategy=strategy,
        matched=accepted,
        rejected=rejected,
        accepted_f1=accepted_f1,
        rejected_f1=rejected_f1,
        statement=_statement(reply, row.rejected),
        reason=None if reply.strip() else "empty",
    )


def _first_contained(text: str, entries: Sequence[str]) -> int | None:
    for index, entry in enumerate(entries):
        wanted = normalised(entry, united_states=True)
        if wanted and holds(text, wanted):
            return index
    return None


def _best_f1(reply: str, entries: Sequence[str]) -> tuple[float, int | None]:
    tokens = _tokens(reply) if entries else Counter[str]()
    best: tuple[float, int | None] = (0.0, None)
    for index, entry in enumerate(entries):
        wanted = _tokens(entry)
        common = (tokens & wanted).total()
        if common:
            precision, recall = common / tokens.total(), common / wanted.total()
            best = max(best, (2 * precision * recall / (precision + recall), index), key=itemgetter(0))
    return best


def _tokens(text: str) -> Counter[str]:
    words = _TOKEN.findall(text.lower().replace("u.s.", "united states"))
    stop_words = frozenset(_STOP_WORDS.split())
    return Counter(word for word in words if word not in stop_words)


FAMILY = FreeResponse()

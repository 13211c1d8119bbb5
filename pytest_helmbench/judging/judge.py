"""The judge: the prompt of a marking model, the fence around untrusted text, and the reading of its answer."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from pytest_helmbench.core.case import JUDGED_RULE, Case, Message
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import (
    Evaluation,
    Event,
    Judgement,
    Outcome,
    Parse,
    Reply,
    Verdict,
    wrong_turn,
)
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import OBSERVED_LIMIT, REDACTED, excerpt, scrub, without_surrogates
from pytest_helmbench.core.tools import MadeCall
from pytest_helmbench.judging.json_replies import enclosed_json, read_reply
from pytest_helmbench.judging.rubric import Criterion, JudgeRule, answer_format, deciding_judge

_PLACEHOLDERS = ("fence", "rubric", "prompt", "reply", "options")
_CONVERSATION_PLACEHOLDERS = ("fence", "rubric", "conversation", "options")
_ANSWER_SHAPE = "answer_shape"
_IGNORED_AROUND_OPTIONS = " \t\r\n\"'`*.,;:()[]"
_PLACEHOLDER = re.compile(r"\{\{ *(\w+) *\}\}")
_JUSTIFICATION_LIMIT = 1_000
_MOST_QUOTES = 3
_REMINDER = (
    "Your answer is read by a program: give the JSON object alone, its choice as the options are written."
)
_LONGEST_ANSWER = 300
AskJudge = Callable[[str, Criterion, tuple[Message, ...], bool], Awaitable[Reply]]
"""Sends messages to a judge, by its id, for the last time or not; raises what keeps it from an answer."""


class OffMenuError(HelmbenchError):
    """The judge's answer holds no value of the menu: an error, never a verdict."""


@dataclass(frozen=True, slots=True)
class JudgeTemplate:
    """The judge's wording with its placeholders.

    Args:
        text: With `{{fence}}`, `{{rubric}}`, `{{prompt}}`, `{{reply}}`, `{{options}}`, and `{{answer_shape}}`
            where wanted.
        hash: 16 hex digits of SHA-256 over the text, and over how a conversation is shown by it.
        of_conversations: The wording for conversations, which may have `{{conversation}}` in place of prompt and
            reply; None for that of conversations itself.
    """

    text: str
    hash: str
    of_conversations: JudgeTemplate | None = None

    def of(self, case: Case) -> JudgeTemplate:
        """Return the wording for a case."""
        return self.of_conversations or self if case.is_conversation else self


def load_template(path: Path | None) -> JudgeTemplate:
    """Read the judge's template.

    Args:
        path: A user's file, which conversations are shown by too; None for the built-in ones.

    Raises:
        HelmbenchError: The file cannot be read, lacks a needed placeholder or has an unknown one.
    """
    if path is None:
        whole = _built_in_template("judge_conversation_template.md", _CONVERSATION_PLACEHOLDERS)
        return replace(_built_in_template("judge_template.md", _PLACEHOLDERS), of_conversations=whole)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        hint = "--helmbench-judge-template names a text file in UTF-8"
        raise HelmbenchError(f"{path}: the judge template cannot be read: {error}\n  hint: {hint}") from error
    whole = JudgeTemplate(text, _text_hash(f"{text}\nconversation"))
    return replace(_checked_template(text, str(path), _PLACEHOLDERS), of_conversations=whole)


def _built_in_template(name: str, needed: Sequence[str]) -> JudgeTemplate:
    return _checked_template(
        resources.files(__package__).joinpath(name).read_text(encoding="utf-8"), name, needed
    )


def _checked_template(text: str, where: str, needed: Sequence[str]) -> JudgeTemplate:
    found, known = set(_PLACEHOLDER.findall(text)), (*needed, _ANSWER_SHAPE)
    for name in sorted(found - set(known)):
        raise HelmbenchError(
            f"{where}: the judge template has an unknown placeholder {{{{{name}}}}}\n"
            f"  hint: known: {_in_braces(known)}"
        )
    missing = [name for name in needed if name not in found]
    if missing:
        raise HelmbenchError(
            f"{where}: the judge template lacks {_in_braces(missing)}\n"
            f"  hint: each of {_in_braces(needed)} must stand in it"
        )
    return JudgeTemplate(text, _text_hash(text))


def _text_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _in_braces(names: Sequence[str]) -> str:
    return ", ".join(f"{{{{{name}}}}}" for name in names)


class Utterance(NamedTuple):
    """One speech of a conversation.

    The speakers are `system`, `user`, `model`, `scripted reply`, `tool call` and `tool answer`.
    """

    turn: int
    speaker: str
    text: str


def judge_messages(
    template: JudgeTemplate,
    criterion: Criterion,
    case: Case,
    reply_text: str,
    before: Sequence[Utterance] = (),
    calls: Sequence[MadeCall] = (),
) -> tuple[Message, ...]:
    """Return the judge's prompt: one user message in which rubric, prompt and reply stand fenced.

    The system prompt of the model under test is not part of it, save what the case itself puts there.

    Args:
        template: The wording for the case.
        reply_text: The last reply as the judge sees it.
        before: What was said before that; empty for a case of one question.
        calls: Tool calls of the reply to one question.
    """
    rubric, reply = without_surrogates(criterion.rubric), without_surrogates(reply_text)
    spoken = [one._replace(text=without_surrogates(one.text)) for one in before]
    asked = [
        f"(assistant) {message.content}" if message.role == "assistant" else message.content
        for message in case.messages
        if message.role != "system"
    ]
    asked = [case.own_system, *asked] if case.own_system else asked
    prompt = without_surrogates("\n\n".join(asked))
    called = [
        without_surrogates(f"{call.name} {json.dumps(call.arguments, ensure_ascii=False)}") for call in calls
    ]
    fence = _fence(template.text, rubric, *([one.text for one in spoken] or [prompt]), reply, *called)
    reply = "\n".join([*filter(None, (reply,)), *(f"TOOL CALL {fence}\n{call}" for call in called)])
    data = {"rubric": rubric, "prompt": prompt, "reply": reply}
    if spoken:
        last = Utterance(case.asked_turns[-1], "model", reply)
        turns = [f"TURN {one.turn} {one.speaker} {fence}\n{one.text}" for one in (*spoken, last)]
        data |= {"prompt": "\n\n".join(turns[:-1]), "conversation": "\n\n".join(turns)}
    values = {name: f"BEGIN {name} {fence}\n{text}\nEND {name} {fence}" for name, text in data.items()}
    values["fence"] = fence
    values["options"] = ", ".join(json.dumps(option, ensure_ascii=False) for option in criterion.options)
    values[_ANSWER_SHAPE] = _answer_shape(criterion)
    # One pass: a placeholder that stands in foreign text is text.
    return (Message("user", _PLACEHOLDER.sub(lambda match: values[match[1]], template.text)),)


def with_reminder(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the question to a judge whose answer was not on the menu, with one sentence added."""
    *before, last = messages
    return (*before, replace(last, content=f"{last.content}\n\n{_REMINDER}"))


def _fence(*texts: str) -> str:
    """Return a mark that none of the texts contains, the same for the same texts.

    Source:
        Scenario trees, section 5, "The judge".
    """
    digest = sha256()
    for text in texts:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return unused_mark(digest.hexdigest()[:16], texts)


def unused_mark(mark: str, texts: Sequence[str]) -> str:
    """Return the mark, hashed again while one of the texts holds it, in upper or lower case."""
    while any(mark in text.lower() for text in texts):
        mark = sha256(mark.encode()).hexdigest()[:16]
    return mark


def _side_fields(criterion: Criterion) -> tuple[str, str]:
    judgement_field = criterion.response_field
    return (
        "evidence" if judgement_field != "evidence" else "evidence_quotes",
        "justification" if judgement_field != "justification" else "justification_text",
    )


def _answer_shape(criterion: Criterion) -> str:
    choice = ["every option that applies"] if criterion.response_type == "multi" else "one option"
    evidence, justification = _side_fields(criterion)
    shape = {evidence: ["quote"], justification: "why", criterion.response_field: choice}
    return json.dumps(shape, ensure_ascii=False)


def judge_response_format(criterion: Criterion) -> dict[str, JsonValue]:
    """Return the wire form of the wanted answer: evidence, justification, then the judgement.

    The judgement comes last, so that it follows from the reasons and not the reasons from it.
    """
    evidence, justification = _side_fields(criterion)
    option: dict[str, JsonValue] = {"type": "string", "enum": list(criterion.options)}
    properties: dict[str, JsonValue] = {
        evidence: {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": _MOST_QUOTES,
            "description": "One to three short quotes of the reply; none if it is empty.",
        },
        justification: {"type": "string", "description": "At most three sentences."},
        criterion.response_field: (
            {"type": "array", "items": option, "maxItems": len(criterion.options)}
            if criterion.response_type == "multi"
            else option
        ),
    }
    return answer_format("judgement", properties)


def judgement(
    criterion: Criterion, reply: Reply, *, rule_hash: str, parse: Parse | None = None, inverted: bool = False
) -> Evaluation:
    """Read the judge's own answer.

    Args:
        parse: How the judged reply was read.
        inverted: `polarity: by_severity` below a base severity of 0.

    Raises:
        OffMenuError: No JSON object, or a value that is not among the options.

    Source:
        Scenario trees, section 5 (`sqe`, credit).
    """
    answer = _answer(criterion, reply)
    chosen = _chosen(criterion, answer)
    passed = bool(chosen) and all(value in criterion.pass_values for value in chosen)
    earned = [criterion.credit.get(value, float(value in criterion.pass_values)) for value in chosen]
    credit = min(earned, default=0.0)
    why = answer.get(_side_fields(criterion)[1])
    expected = " or ".join(criterion.pass_values)
    if criterion.response_type == "multi":
        expected = f"only {expected}"
    return Evaluation(
        criterion=criterion.name,
        rule=JUDGED_RULE,
        rule_hash=rule_hash,
        passed=passed is not inverted,
        credit=1.0 - credit if inverted else credit,
        reason=None,
        parse=parse,
        expected=scrub(f"not: {expected}" if inverted else expected),
        observed=excerpt(", ".join(chosen) or "(no option)", OBSERVED_LIMIT),
        justification=excerpt(why, _JUSTIFICATION_LIMIT) if isinstance(why, str) else None,
    )


def is_on_menu(criterion: Criterion, reply: Reply) -> bool:
    """Return whether the judge's answer is one."""
    try:
        _chosen(criterion, _answer(criterion, reply))
    except OffMenuError:
        return False
    return True


def _answer(criterion: Criterion, reply: Reply) -> JsonObject:
    fault = reply.form_fault
    found = None if fault else enclosed_json(reply.text)
    if found is not None and isinstance(found[0], dict):
        return found[0]
    if fault == "refusal":
        what = "was refused"
    elif fault == "truncated":
        what = "was cut at the token limit"
    elif fault:
        what = f"is {reply.form_fault_text('empty').strip('()')} (finish reason {reply.finish_reason or 'unknown'})"
    else:
        what = "is not one JSON object, each of its keys once"
    raise OffMenuError(
        f"{_name(criterion)}: the answer of {reply.provider_model or 'the marking model'} {what}\n"
        "  hint: take a marking model that answers by JSON schema, with room for its answer"
        " (max_tokens of its entry in models.yml)"
    )


def _chosen(criterion: Criterion, answer: JsonObject) -> tuple[str, ...]:
    field = criterion.response_field
    value = answer.get(field)
    values = value if criterion.response_type == "multi" else [value]
    if isinstance(values, list):
        chosen = [option for item in values if (option := _option(criterion.options, item)) is not None]
        if len(chosen) == len(values):
            return tuple(dict.fromkeys(chosen))
    shown = excerpt(json.dumps(value, ensure_ascii=False), 60) if field in answer else "missing"
    raise OffMenuError(
        f"{_name(criterion)}: {field!r} is {shown}, not on the menu\n"
        f"  hint: the options are {', '.join(map(repr, criterion.options))}; take another marking model"
    )


def _option(options: Sequence[str], choice: JsonValue) -> str | None:
    """Return the option that a judge names as written, or the only one in other letters or with marks around it."""
    if choice in options:
        return str(choice)
    plain = str(choice).strip(_IGNORED_AROUND_OPTIONS).casefold() if isinstance(choice, str | int) else ""
    alike = [option for option in options if option.strip(_IGNORED_AROUND_OPTIONS).casefold() == plain]
    return alike[0] if plain and len(alike) == 1 else None


def _name(criterion: Criterion) -> str:
    return f"judgement {criterion.name}".rstrip()


async def evaluate_judged(
    case: Case, reply: Reply, *, template: JudgeTemplate, judges: Sequence[str], ask: AskJudge
) -> tuple[Evaluation, ...]:
    """Ask the judges about all criteria of a case at once; return one evaluation per criterion, in file order.

    Args:
        reply: Of the model under test, in any form.
        judges: Ids of the marking models, in order: the verdict of the first stands.

    Raises:
        OffMenuError: A judge's answer is none, and neither is the one to the question asked once more. This, like
            whatever `ask` raises, comes only after all criteria are answered, so that no answer that is paid for gets
            lost; the first one stands.
    """
    rule = case.rule
    if not isinstance(rule, JudgeRule):
        raise TypeError(f"{case.code}: a case with a field rule has no judge")
    inverted = rule.by_severity and case.severity < 0
    text, parse = judged_text(case, reply)
    before, wording = earlier_utterances(case, reply), template.of(case)

    async def evaluate(criterion: Criterion) -> Evaluation:
        messages = judge_messages(wording, criterion, case, text, before, () if before else reply.tool_calls)
        rule_hash = rule.criterion_hash(criterion, wording.hash, deciding_judge(judges))

        async def verdict_of(judge: str) -> Evaluation:
            answer = await ask(judge, criterion, messages, False)
            if not is_on_menu(criterion, answer):
                answer = await ask(judge, criterion, with_reminder(messages), True)
            try:
                found = judgement(criterion, answer, rule_hash=rule_hash, parse=parse, inverted=inverted)
            except OffMenuError as error:
                why = "its answer is not on the menu, and hidden as its rubric is" if rule.hidden else error
                raise OffMenuError(f"the judge {judge} is at fault: {why}") from None
            return replace(found, justification=found.justification and REDACTED) if rule.hidden else found

        found = await _all_evaluations(map(verdict_of, judges))
        return replace(found[0], judgements=_judgements(judges, found)) if len(found) > 1 else found[0]

    return tuple(await _all_evaluations(map(evaluate, rule.criteria)))


def judged_text(case: Case, reply: Reply) -> tuple[str, Parse | None]:
    """Return what the judge sees of a reply, and how JSON was found where it sees only a part.

    That is the `response` field where the schema has one and the reply can be read, the stated answer where the rule
    asks about that (at most 300 characters), else the whole text; the provider's refusal stands in for a text that is
    empty.
    """
    text = reply.text if reply.text.strip() else (reply.refusal or reply.text)
    if isinstance(case.rule, JudgeRule) and case.rule.of_answer:
        from pytest_helmbench.judging.comparisons.stated import end_of, stated_answer

        return stated_answer(text).text[:_LONGEST_ANSWER] or end_of(text), None
    schema = case.schema
    properties = None if schema is None else schema.get("properties")
    if not isinstance(properties, dict) or "response" not in properties:
        return text, None
    reading = read_reply(reply, schema, strict=False)
    response = reading.value.get("response") if isinstance(reading.value, dict) else None
    return (response, reading.parse) if isinstance(response, str) else (text, None)


def earlier_utterances(case: Case, reply: Reply) -> tuple[Utterance, ...]:
    """Return the speeches of a conversation before its last reply; none for a case of one question.

    Every reply is shown as `judged_text` has it. Only the case's own part of the system message is shown.
    """
    if not case.is_conversation:
        return ()
    replies = {one.turn: judged_text(case.at(one.turn), one)[0] for one in reply.turns}
    found, names, turn = list[Utterance](), dict[str, str](), 0
    if case.own_system:
        found.append(Utterance(1, "system", case.own_system))
    for message in reply.said[:-1]:
        content = message.content
        turn += message.role == "user"
        if message.role == "user":
            found.append(Utterance(turn, "user", content))
        elif message.role == "tool":
            name = names.get(message.tool_call_id or "", "")
            found.append(Utterance(turn, "tool answer", f"{name}: {content}"))
        elif message.tool_calls:
            found += [Utterance(turn, "model", content)] if content.strip() else []
            names |= {call.id: call.name for call in message.tool_calls}
            found += [
                Utterance(turn, "tool call", f"{call.name} {call.arguments}") for call in message.tool_calls
            ]
        elif message.role == "assistant":
            speaker = "model" if turn in replies else "scripted reply"
            found.append(Utterance(turn, speaker, replies.get(turn, content)))
    return tuple(found)


def _judgements(judges: Sequence[str], found: Sequence[Evaluation]) -> tuple[Judgement, ...]:
    """Return the answer of each judge; the first is of record."""
    return tuple(
        Judgement(
            one.criterion, judge, place, one.passed, one.credit, one.observed, one.justification, place == 1
        )
        for place, (judge, one) in enumerate(zip(judges, found, strict=True), start=1)
    )


async def _all_evaluations(parts: Iterable[Awaitable[Evaluation]]) -> list[Evaluation]:
    """Wait for all of them, even when one raises; then raise the first fault."""
    found = []
    for item in await asyncio.gather(*parts, return_exceptions=True):
        if isinstance(item, BaseException):
            raise item
        found.append(item)
    return found


def case_passed(evaluations: Sequence[Evaluation]) -> bool:
    """Return whether there are evaluations and all passed."""
    return bool(evaluations) and all(evaluation.passed for evaluation in evaluations)


def tool_events(calls: Iterable[MadeCall]) -> tuple[Event, ...]:
    """Return answered tool calls as events."""
    return tuple(Event("tool", call.data(), call.at) for call in calls)


def with_reply(outcome: Outcome, reply: Reply) -> Outcome:
    """Return the outcome with what the case's own reply took, and the tools that it called."""
    return replace(
        outcome,
        usage=reply.usage,
        latency_ms=reply.latency_ms,
        reply_key=reply.key,
        events=tool_events(reply.tool_calls) or outcome.events,
    )


def judged_outcome(reply: Reply, evaluations: tuple[Evaluation, ...]) -> Outcome:
    """Return what a reply and its evaluations make of a case."""
    passed = case_passed(evaluations)
    turn = wrong_turn(evaluations)
    shown = next((one for one in reply.turns if one.turn == turn), reply)
    return Outcome(
        verdict=Verdict.PASSED if passed else Verdict.FAILED,
        reason=next((one.reason for one in evaluations if one.reason), None),
        evaluations=evaluations,
        score=fmean([evaluation.credit for evaluation in evaluations]),
        excerpt="" if passed else excerpt(shown.text, indented=True),
        usage=reply.usage,
        latency_ms=reply.latency_ms,
        reply_key=reply.key,
        events=tool_events(reply.tool_calls),
    )

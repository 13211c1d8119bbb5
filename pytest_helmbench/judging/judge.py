"""The judge: what a marking model is sent, how untrusted text is fenced, and how its answer is read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from importlib import resources
from pathlib import Path

from pytest_helmbench.core.case import JUDGED_RULE, Case, Message
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Parse, Reply
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import OBSERVED_LIMIT, excerpt, scrub, without_surrogates
from pytest_helmbench.judging.json_replies import enclosed_json
from pytest_helmbench.judging.rubric import Criterion

_NEEDED = ("fence", "rubric", "prompt", "reply", "options")
_KNOWN = (*_NEEDED, "answer_shape")
_AROUND = " \t\r\n\"'`*.,;:()[]"
_PLACEHOLDER = re.compile(r"\{\{ *(\w+) *\}\}")
_JUSTIFICATION_LIMIT = 1_000
_MOST_QUOTES = 3
_ASKED_AGAIN = "Your answer is read by a program: give the JSON object alone, with one of the options as they are written."


class OffMenuError(HelmbenchError):
    """The judge's answer holds no value of the menu: an error, never a verdict."""


@dataclass(frozen=True, slots=True)
class JudgeTemplate:
    """The judge's wording with its placeholders.

    Args:
        text: With `{{fence}}`, `{{rubric}}`, `{{prompt}}`, `{{reply}}`, `{{options}}`, and `{{answer_shape}}`
            where wanted.
        hash: 16 hex digits of SHA-256 over the text.
    """

    text: str
    hash: str


def load_template(path: Path | None) -> JudgeTemplate:
    """Read the judge's template.

    Args:
        path: A user's file; None for the built-in one.

    Raises:
        HelmbenchError: The file cannot be read, lacks a needed placeholder or has an unknown one.
    """
    if path is None:
        text = resources.files(__package__).joinpath("judge_template.md").read_text(encoding="utf-8")
        return _template(text, "judge_template.md")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        hint = "--helmbench-judge-template names a text file in UTF-8"
        raise HelmbenchError(f"{path}: the judge template cannot be read: {error}\n  hint: {hint}") from error
    return _template(text, str(path))


def _template(text: str, where: str) -> JudgeTemplate:
    found = set(_PLACEHOLDER.findall(text))
    for name in sorted(found - set(_KNOWN)):
        raise HelmbenchError(
            f"{where}: the judge template has an unknown placeholder {{{{{name}}}}}\n"
            f"  hint: known: {_in_braces(_KNOWN)}"
        )
    missing = [name for name in _NEEDED if name not in found]
    if missing:
        raise HelmbenchError(
            f"{where}: the judge template lacks {_in_braces(missing)}\n"
            f"  hint: each of {_in_braces(_NEEDED)} must stand in it"
        )
    return JudgeTemplate(text, sha256(text.encode()).hexdigest()[:16])


def _in_braces(names: Sequence[str]) -> str:
    return ", ".join(f"{{{{{name}}}}}" for name in names)


def judge_messages(
    template: JudgeTemplate, criterion: Criterion, case: Case, reply_text: str
) -> tuple[Message, ...]:
    """Return the judge's prompt: one user message in which rubric, prompt and reply stand fenced.

    The system prompt of the model under test is not part of it.
    """
    data = {
        "rubric": without_surrogates(criterion.rubric),
        "prompt": without_surrogates(
            "\n\n".join(message.content for message in case.messages if message.role != "system")
        ),
        "reply": without_surrogates(reply_text),
    }
    fence = _fence(template.text, *data.values())
    values = {name: f"BEGIN {name} {fence}\n{text}\nEND {name} {fence}" for name, text in data.items()}
    values["fence"] = fence
    values["options"] = ", ".join(json.dumps(option, ensure_ascii=False) for option in criterion.options)
    values["answer_shape"] = _answer_shape(criterion)
    # One pass: a placeholder that stands in foreign text is text.
    return (Message("user", _PLACEHOLDER.sub(lambda match: values[match[1]], template.text)),)


def asked_again(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the question to a judge whose answer was not on the menu, with one sentence added."""
    *before, last = messages
    return (*before, replace(last, content=f"{last.content}\n\n{_ASKED_AGAIN}"))


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
    """Return the mark, hashed again while one of the texts holds it in whatever case."""
    while any(mark in text.lower() for text in texts):
        mark = sha256(mark.encode()).hexdigest()[:16]
    return mark


def _side_fields(criterion: Criterion) -> tuple[str, str]:
    taken = criterion.response_field
    return (
        "evidence" if taken != "evidence" else "evidence_quotes",
        "justification" if taken != "justification" else "justification_text",
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
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "judgement", "strict": True, "schema": schema}}


def judgement(
    criterion: Criterion,
    reply: Reply,
    *,
    rule_hash: str,
    parse: Parse | None = None,
    inverted: bool = False,
) -> Evaluation:
    """Read the judge's own answer.

    Args:
        reply: The judge's.
        rule_hash: Of criterion, template and judge.
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
    found = enclosed_json(reply.text)
    if found is not None and isinstance(found[0], dict):
        return found[0]
    if reply.refusal:
        what = "was refused"
    elif reply.is_cut:
        what = "was cut at the token limit"
    elif not reply.text.strip():
        what = f"is {reply.told('empty').strip('()')} (finish reason {reply.finish_reason or 'unknown'})"
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
    came = excerpt(json.dumps(value, ensure_ascii=False), 60) if field in answer else "missing"
    raise OffMenuError(
        f"{_name(criterion)}: {field!r} is {came}, not on the menu\n"
        f"  hint: the options are {', '.join(map(repr, criterion.options))}; take another marking model"
    )


def _option(options: Sequence[str], said: JsonValue) -> str | None:
    """Return the option that a judge names as written, or the only one in other letters or with marks around it."""
    if said in options:
        return str(said)
    plain = str(said).strip(_AROUND).casefold() if isinstance(said, str | int) else ""
    alike = [option for option in options if option.strip(_AROUND).casefold() == plain]
    return alike[0] if plain and len(alike) == 1 else None


def _name(criterion: Criterion) -> str:
    return f"judgement {criterion.name}".rstrip()

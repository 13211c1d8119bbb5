"""One run, or one case of a run, on one page of text."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import count

from pytest_helmbench.core.case import justified_by
from pytest_helmbench.core.case_texts import expected_text, short_text, under
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.kind_words import CaseWords, RunWords
from pytest_helmbench.core.outcome import Evaluation, Verdict
from pytest_helmbench.core.scrub import excerpt, full_observed, quoted, scrub
from pytest_helmbench.core.tools import MadeCall, tool_calls
from pytest_helmbench.options.recorded_settings import given_settings
from pytest_helmbench.reports.headline import figure
from pytest_helmbench.reports.panel_tables import judgement_lines
from pytest_helmbench.reports.tables import (
    UNKNOWN,
    count_text,
    display_width,
    number,
    padded,
    points_lost,
    reasons_text,
    share,
    table,
    text_of,
    usd,
)
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.scoring.run_score import RunScore
from pytest_helmbench.store.read.judgements import JudgedCriterion
from pytest_helmbench.store.read.results import CallRow, ResultRow, ShownMessage
from pytest_helmbench.store.read.runs import RunDetail, RunSummary

WORST_SHOWN = 5
"""Cases that a run's card and a job's summary show."""
_PARAGRAPH = re.compile(r"\n\n+")
_CLOSING = re.compile(r"^</([\w-]+)>[ \t]*$", re.MULTILINE)

EVALUATION_FIELDS = (
    "criterion",
    "rule",
    "rule_hash",
    "passed",
    "credit",
    "parse",
    "expected",
    "observed",
    "beside",
)
"""The fields of an evaluation in exports and reports."""


def run_card(detail: RunDetail, score: RunScore | None, words: RunWords | None, failures: str) -> list[str]:
    """Return score, counts and cost of a run, then the settings that are not their defaults.

    Args:
        failures: Name of the reasons of failed cases.
    """
    reasons: dict[str, dict[str, int]] = {"not judged": {}, failures: {}}
    for (outcome, reason), amount in detail.outcomes.items():
        if reason and outcome != Verdict.PASSED:
            name = failures if outcome == Verdict.FAILED else "not judged"
            reasons[name][f"{outcome}: {reason}" if name == "not judged" else reason] = amount
    is_whole = detail.coverage in (None, 1)
    ended = f" to {detail.completed_at[11:19]}" if detail.completed_at else ", not ended yet"
    facts = {
        "score": "-" if score is None or score.score is None else figure(score.total),
        "cases": f"{detail.total_tests} planned: {detail.count('passed')} passed, {detail.count('failed')} failed,"
        f" {detail.count('error')} errors, {detail.count('skipped')} skipped",
        "neutral": f"{detail.neutral_tests} judged, in no score" if detail.neutral_tests else "",
        **{name: reasons_text(counts) for name, counts in reasons.items()},
        "right": share(detail.pass_rate),
        "coverage": "" if is_whole else share(detail.coverage),
        "cost USD": run_cost_text(detail),
        "time (UTC)": detail.started_at[:19].replace("T", " ") + ended,
        "rescored from": "" if detail.rescored_from is None else f"run {detail.rescored_from}",
        **({} if words is None else dict(words.facts)),
        **{name: text_of(value) for name, value in given_settings(detail.settings)},
    }
    title = f"{detail.benchmark} {detail.version}".rstrip()
    return [f"run {detail.id}: {detail.model} on {title} ({detail.status}, {detail.scope})", *_facts(facts)]


_BATCHES = ("batch", "of run", "state", "calls", "model", "host", "since (UTC)", "until")


def batch_lines(runs: Sequence[RunSummary], width: int) -> list[str]:
    """Return a table of the batches that sessions have out, behind an empty line; empty for none."""
    cells = [
        (
            token,
            ", ".join(str(run.id) for run in runs if batch in run.batches),
            *(str(batch[name]) for name in ("state", "calls", "model", "host")),
            *(str(batch[name])[:16].replace("T", " ") for name in ("since", "until")),
        )
        for token, batch in {str(batch["token"]): batch for run in runs for batch in run.batches}.items()
    ]
    return ["", *table(_BATCHES, cells, left=set(_BATCHES) - {"calls"}, width=width)] if cells else []


def worst_lines(report: RunReport, width: int) -> list[str]:
    """Return the cases that lost most of the score, with what was asked and what was wrong, then what to do next.

    Args:
        report: With the requests of these cases, where they are to say what was asked.
    """
    run, failed = report.detail, [row for row in report.failures if not row.neutral]
    shown = failed[:WORST_SHOWN]
    asked = asked_lines(shown, report)
    wide = max((display_width(row.code) for row in shown), default=0)
    lines = (
        [f"worst {len(shown)} of {count_text(len(failed), 'failed case')}, by points lost"] if shown else []
    )
    for row in shown:
        wrong = "; ".join(short_text(one) for one in row.evaluations if not one.passed)
        start = f"  {padded(row.code, wide)}  {points_lost(report.losses.of(row)):>5}  "
        for text in filter(None, (asked[row.id], wrong)):
            lines.append(start + excerpt(quoted(text), max(20, width - display_width(start))))
            start = " " * display_width(start)
    commands = [(row.code, "its prompt and reply") for row in shown[:1]]
    commands += [("--failed", "all of them")] if len(failed) > len(shown) else []
    commands += [("--errors", "what was not judged")] if run.count("error") + run.count("skipped") else []
    rows = [
        ("" if index else "next", f"helmbench show {run.id} {name}", f"# {said}")
        for index, (name, said) in enumerate(commands)
    ]
    return lines + (table(("", "", ""), rows, left=("",))[1:] if rows else [])


def asked_lines(rows: Sequence[ResultRow], report: RunReport) -> Mapping[str, str]:
    """Return by id the first line of the perturbation of each case; of one with its request, of its message."""
    messages = {row: turns[0].strip().splitlines() for row, turns in case_messages(rows).items()}
    return {row.id: report.opening.get(row.code) or next(iter(messages.get(row.id, ())), "") for row in rows}


def case_messages(rows: Iterable[ResultRow]) -> dict[str, list[str]]:
    """Return by id what the user said in each case turn by turn, the first without what most cases have in common."""
    said = {row.id: turns for row in rows if (turns := list(_user_turns(row)))}
    counts = Counter(part for turns in said.values() for part in {*_PARAGRAPH.split(turns[0])})
    shared = {part for part, count in counts.items() if len(said) > 2 and 2 * count > len(said)}
    return {row: [_own_part(first, shared), *later] for row, (first, *later) in said.items()}


def _user_turns(row: ResultRow) -> Iterator[str]:
    """Yield the last message of the user that a case begins with, and his later ones."""
    length = opening_length(row)
    sent = [] if row.request is None else sent_messages(row.request)
    begun = [message.get("content") for message in sent[: length or None] if message.get("role") == "user"]
    for content in begun[-1:]:
        parts = content if isinstance(content, list) else [content]
        texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
        yield "\n".join(text for text in texts if isinstance(text, str))
    if begun:
        yield from (said.text for said in row.conversation[length:] if said.role == "user")


def _own_part(text: str, shared: Collection[str]) -> str:
    """Return the last element that has a paragraph of its own, or the own paragraphs behind all elements."""
    own = [part for part in _PARAGRAPH.split(text) if part not in shared]
    start = text.rfind(own[-1]) if own else 0
    closing = _CLOSING.search(text, start)
    opening = f"<{closing[1]}>\n" if closing else ""
    at = text.rfind(opening, 0, closing.start()) if closing else -1
    if closing and 0 <= at <= start:
        return text[at + len(opening) : closing.start()].strip()
    behind = max((found.end() for found in _CLOSING.finditer(text, 0, start)), default=0)
    return "\n\n".join(part for part in _PARAGRAPH.split(text[behind:]) if part not in shared).strip() or text


def run_record(detail: RunDetail) -> dict[str, object]:
    """Return a run in JSON types: names, counts, score, cost, settings."""
    record = asdict(detail)
    del record["outcomes"], record["baseline"]
    return record


def case_card(
    row: ResultRow,
    calls: Sequence[CallRow],
    model: str,
    words: CaseWords | None = None,
    judgements: Sequence[JudgedCriterion] = (),
) -> list[str]:
    """Return the verdict of a case with its evaluations, then its calls in order, prompt and reply."""
    repetition = f" (repetition {row.repetition})" if row.repetition > 1 else ""
    reason = f" ({row.reason})" if row.reason else ""
    neutral = "; neutral, ignored by scores" if row.neutral else ""
    lines = [
        f"{row.code}{repetition}: {row.outcome}{reason}",
        *([] if words is None or words.title is None else [f"  {words.title}", *_facts(dict(words.facts))]),
        *_facts(
            {
                "model": model,
                "severity": f"{row.severity}, difficulty {row.difficulty}{neutral}",
                "score": "-" if row.score is None else f"{row.score:g}",
                "points lost": "" if row.points_lost is None else f"{row.points_lost:.2f}",
                "started": row.started_at or UNKNOWN,
                "request": row.request_hash or "none",
                "reply": row.reply_hash or "none",
            }
        ),
    ]
    for evaluation in row.evaluations:
        lines += ["", *_evaluation_lines(evaluation)]
    lines += judgement_lines(judgements)
    if words is not None:
        lines += words.lines
    lines += ["", "calls", *_call_lines(calls), "", "conversation" if row.conversation else "prompt"]
    prompt = prompt_text(row)
    lines += (
        indented(prompt.split("\n") if prompt else ())
        if row.request is not None
        else ["  (nothing was sent)"]
    )
    if row.thoughts:
        lines += ["", "thoughts", *indented(row.thoughts.splitlines())]
    lines += ["", "reply"]
    lines += indented((row.reply or "(empty)").splitlines()) if row.reply is not None else ["  (none)"]
    return lines


def case_record(
    row: ResultRow,
    calls: Sequence[CallRow],
    words: CaseWords | None = None,
    judgements: Sequence[JudgedCriterion] = (),
) -> dict[str, object]:
    """Return a case in JSON types, with prompt and reply; see `case_card`."""
    record: dict[str, object] = asdict(replace(row, words=None, request=None, conversation=()))
    del record["words"], record["request"], record["conversation"]
    record["evaluations"] = list(map(evaluation_cells, row.evaluations))
    record |= {} if words is None else words.record
    record |= transcript_record(row)
    record["calls"] = [
        {name: value for name, value in asdict(call).items() if name != "turn" or value is not None}
        for call in calls
    ]
    record["judgements"] = [asdict(said) for one in judgements for said in one.said]
    return record


def sent_messages(request: bytes) -> list[dict[str, JsonValue]]:
    """Return the messages of a request body."""
    messages: list[dict[str, JsonValue]] = json.loads(request).get("messages", [])
    return messages


def transcript_record(row: ResultRow) -> dict[str, object]:
    """Return the transcript of a case: messages as sent, the reply, of a conversation also its turns."""
    found: dict[str, object] = {
        "messages": None if row.request is None else sent_messages(row.request),
        "reply": row.reply,
    }
    return found | ({"conversation": list(map(_said_record, row.conversation))} if row.conversation else {})


def _said_record(said: ShownMessage) -> dict[str, JsonValue]:
    return {
        "turn": said.turn,
        "role": said.role,
        "text": said.text,
        "scripted": said.is_scripted,
        "tool_calls": [call.data() for call in said.calls],
    }


def before_reply(row: ResultRow) -> Sequence[ShownMessage]:
    """Return what was said in a conversation before its reply."""
    return row.conversation if row.reply is None else row.conversation[:-1]


def opening_length(row: ResultRow) -> int:
    """Return how many messages of a conversation came up to and with the first of the user."""
    roles = [said.role for said in row.conversation]
    return roles.index("user") + 1 if "user" in roles else 0


def transcript_texts(spoken: Iterable[ShownMessage]) -> Iterator[tuple[str, str]]:
    """Yield title and text of what was said in a conversation, each tool call with its answer."""
    for said in spoken:
        if said.text or not said.calls:
            scripted = " (scripted)" if said.is_scripted else ""
            yield f"turn {said.turn}: {said.role}{scripted}", said.text
        for call in said.calls:
            yield f"turn {said.turn}: tool call", call.with_answer


def numbered_calls(said: Iterable[ShownMessage]) -> Iterator[tuple[ShownMessage, list[tuple[str, MadeCall]]]]:
    """Yield the messages of a conversation with their calls, each under an id that no other call in it has."""
    numbers = count(1)
    for one in said:
        yield one, [(f"call_{next(numbers)}", call) for call in one.calls]


def prompt_text(row: ResultRow) -> str:
    """Return the messages before the reply to a case, each under its role; empty where nothing was sent."""
    lines: list[str] = []
    for title, text in transcript_texts(before_reply(row)):
        lines += [f"[{title}]", *(line and f"  {line}" for line in text.split("\n"))]
    if not lines and row.request is not None:
        for message in sent_messages(row.request):
            called = [f"{call.name} {call.arguments}" for call in tool_calls(message, 0)]
            said = [str(content)] if (content := message.get("content")) is not None else []
            lines += [f"[{message.get('role')}]", *scrub("\n".join((*said, *called))).split("\n")]
    return "\n".join(lines)


def indented(lines: Iterable[str]) -> list[str]:
    """Return lines moved to the right, so that foreign text cannot pass for ours."""
    return [f"  | {line}".rstrip() for line in lines]


def _facts(facts: Mapping[str, str]) -> list[str]:
    shown = {name: value for name, value in facts.items() if value}
    width = max(map(len, shown), default=0)
    return [f"  {name.ljust(width)}  {value}" for name, value in shown.items()]


def run_cost_text(run: RunSummary) -> str:
    """Return the cost of a run for people; of one that is unknown the part that is known."""
    if run.cost_usd is not None:
        return usd(run.cost_usd)
    return f"{UNKNOWN}, over {usd(run.known_cost_usd)}" if run.known_cost_usd else UNKNOWN


def evaluation_cells(evaluation: Evaluation) -> dict[str, object]:
    """Return the record of an evaluation in JSON types."""
    cells = asdict(replace(evaluation, judgements=()))
    del cells["reason"], cells["judgements"]  # both stand with the result
    return cells


def evaluation_record(evaluation: Evaluation, *, with_text: bool) -> dict[str, object]:
    """Return an evaluation by `EVALUATION_FIELDS`; with texts also its justification and running text."""
    record: dict[str, object] = {name: getattr(evaluation, name) for name in EVALUATION_FIELDS}
    if not with_text:
        return record
    return record | {"observed": full_observed(evaluation), "justification": evaluation.justification}


def evaluation_texts(row: ResultRow) -> list[tuple[str, str]]:
    """Return what was observed in running text, then the justification, of each criterion with its title."""
    observed = [(f"observed {one.criterion}".strip(), one.observed_text) for one in row.evaluations]
    return [*((title, text) for title, text in observed if text), *justifications(row)]


def justifications(row: ResultRow) -> list[tuple[str, str]]:
    """Return the justification of each criterion that has one, with its title."""
    why = [
        (f"{justified_by(one.rule)} {one.criterion}".strip(), one.justification) for one in row.evaluations
    ]
    return [(title, text) for title, text in why if text]


def _evaluation_lines(evaluation: Evaluation) -> list[str]:
    name = f"{evaluation.rule} {evaluation.criterion}".strip()
    verdict = "passed" if evaluation.passed else "failed"
    partial = f", credit {evaluation.credit:g}" if evaluation.credit not in (0, 1) else ""
    lines = [
        f"{name}: {verdict}{partial}",
        f"  expected  {expected_text(evaluation)}",
        f"  observed  {under(full_observed(evaluation), 12)}",
        f"  rule      {evaluation.rule_hash}",
    ]
    if evaluation.parse is not None:
        lines.append(f"  JSON      read {evaluation.parse}")
    if evaluation.beside is not None:
        lines.append(f"  {evaluation.beside}: {evaluation.beside.said}")
    if evaluation.justification:
        lines.append(f"  {justified_by(evaluation.rule):<9} {' '.join(evaluation.justification.split())}")
    return lines


def turn_text(call: CallRow) -> str:
    """Return the turn of a call, `turn 2`; empty where there is no conversation."""
    return "" if call.turn is None else f"turn {call.turn}"


def _call_lines(calls: Sequence[CallRow]) -> list[str]:
    if not calls:
        return ["  none"]
    head = ("purpose", "attempt", "answer", "ms", "tokens in", "out", "USD", "answered by")
    rows = [
        (
            " ".join(filter(None, (call.purpose, call.judge, call.criterion, turn_text(call)))),
            "stored" if call.from_cache else str(call.attempt),
            call.error or call.finish_reason or UNKNOWN,
            UNKNOWN if call.latency_ms is None else f"{call.latency_ms:.0f}",
            number(call.prompt_tokens),
            number(call.completion_tokens),
            UNKNOWN if call.cost_usd is None else usd(call.cost_usd),
            call.provider_model or "",
        )
        for call in calls
    ]
    return [f"  {line}" for line in table(head, rows, left=("purpose", "answer", "answered by"))]

"""Cases of a run as the page holds them: columns, texts, steps, packed into blocks."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from math import isfinite

from pytest_helmbench.core.case_texts import MARKS, has_lines, observed_excerpt
from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.kind_words import OwnColumns
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Event
from pytest_helmbench.core.scrub import OBSERVED_LIMIT, ShownTexts, excerpt, full_observed, scrub, scrubbed
from pytest_helmbench.reports.cards import (
    before_reply,
    case_messages,
    justifications,
    opening_length,
    transcript_texts,
    turn_text,
)
from pytest_helmbench.reports.page.parts import Flip
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.store.read.results import CallRow, ResultRow
from pytest_helmbench.store.read.runs import OWN_DATA

BLOCK = 256
"""Cases per block of texts."""
_LEVEL = 9
_Flips = Mapping[tuple[str, int], Flip]
Messages = Mapping[tuple[str, str, int], tuple[str, Sequence[str]]]
"""By benchmark, code and repetition: the run of the page that holds the message of a case, and the user's turns."""
_MESSAGE = 160
MOST_STEPS = 200
"""Most steps of a case on the page; `helmbench show` and the database have all."""
_MOST_CHARACTERS = 4_000
_OURS = ("role", "stop", "part", "engine")
_PART = re.compile(rf"( *)([{''.join(MARKS)}]) (\w+): expected (.*?)(?:, observed (.*))?\Z")
_WORD = re.compile(r"[a-z_]{1,20}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of data in the page: base64 of gzip of JSON, the same for the same value."""

    id: str
    data: str

    @classmethod
    def of(cls, block_id: str, value: object) -> Block:
        """Return a value as a block."""
        raw = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        return cls(block_id, base64.b64encode(gzip.compress(raw, _LEVEL, mtime=0)).decode("ascii"))


def page_messages(reports: Mapping[str, RunReport], texts: ShownTexts) -> Messages:
    """Return what each case asked, where the texts of a run are shown; reports come by their names on the page."""
    found: dict[tuple[str, str, int], tuple[str, list[str]]] = {}
    for name, report in reports.items() if texts.any else ():
        own_data = report.detail.settings.get(OWN_DATA) is True
        said = case_messages(row for row in report.results if texts.of(row.outcome))
        for row in report.results:
            turns = [row.title] if own_data and row.title else said.get(row.id)
            if turns:
                found.setdefault((report.detail.benchmark, row.code, row.repetition), (name, turns))
    return found


def message_line(messages: Messages, benchmark: str, code: str, repetition: int) -> str:
    """Return the message of a case in one line; empty where the page does not hold it."""
    turns = messages.get((benchmark, code, repetition), ("", ()))[1]
    return excerpt(" ".join(" … ".join(turns).split()), _MESSAGE)


def run_blocks(
    name: str, report: RunReport, texts: ShownTexts, flips: _Flips, messages: Messages
) -> Iterator[Block]:
    """Yield the blocks of a run, its columns first; its name on the page is `0`, or `0b` for its baseline."""
    rows, benchmark = report.results, report.detail.benchmark
    cells = _cells(report, flips, texts)
    if any(owner == name for owner, _ in messages.values()):
        keys = [(benchmark, row.code, row.repetition) for row in rows]
        owned = (messages.get(key, ("",))[0] == name for key in keys)
        shown = (
            message_line(messages, *key) if is_own else None for key, is_own in zip(keys, owned, strict=True)
        )
        cells["message"] = _labels(shown)
    yield Block.of(f"c{name}", {"n": len(rows), "c": cells})
    calls, steps = report.calls, report.steps
    for start in range(0, len(rows), BLOCK):
        details: dict[int, object] = {}
        row_texts: dict[int, dict[str, object]] = {}
        for index, row in enumerate(rows[start : start + BLOCK]):
            key = row.code, row.repetition
            if found := _details(row, calls.get(key, ()), report.columns, texts, steps.get(key, ())):
                details[index] = found
            if texts.of(row.outcome):
                row_texts[index] = _texts(row, steps.get(key, ()))
                if asked := messages.get((benchmark, *key)):
                    row_texts[index]["a"] = scrub(asked[1][0])
        for kind, values in (("d", details), ("t", row_texts)):
            if values:
                yield Block.of(f"{kind}{name}-{start // BLOCK}", values)


def shown_evaluation(row: ResultRow) -> Evaluation | None:
    """Return the evaluation that represents a case in one line: the first that failed, else the first."""
    return next(
        (one for one in row.evaluations if not one.passed), row.evaluations[0] if row.evaluations else None
    )


def _cells(report: RunReport, flips: _Flips, texts: ShownTexts) -> dict[str, object]:
    """Return every column of the cases of a run, labels and numbers, as the page reads them."""
    labels = {**_place_labels(report), **_verdict_labels(report.results, texts)}
    numbers = _case_numbers(report.results)
    numbers["points_lost"] = [_shortened(100 * float(report.losses.of(row)), 4) for row in report.results]
    if flips:
        found = [flips[row.code, row.repetition] for row in report.results]
        labels["before"] = (one.before or None for one in found)
        labels["flip"] = (one.word or None for one in found)
        # How far its place there is from its place here: mostly 0, which takes no room.
        numbers["at"] = [one.index - here if one.index >= 0 else None for here, one in enumerate(found)]
    packed: dict[str, object] = {name: _labels(values) for name, values in labels.items()}
    return packed | {name: _numbers(values) for name, values in numbers.items()}


def _place_labels(report: RunReport) -> dict[str, Iterable[str | None]]:
    """Return where cases belong: the parts of a tree's code, or the code and the groups of a pack's."""
    rows = report.results
    codes = [_parsed(row.code) for row in rows]
    behaviours = [None if code is None else f"{code.pillar}-{code.behaviour}" for code in codes]
    flaky = frozenset(one.code for one in report.repetitions.flaky) if report.repetitions else frozenset()
    return {
        "code": (row.code if code is None else None for row, code in zip(rows, codes, strict=True)),
        "behaviour": behaviours,
        "scenario": (
            None if code is None else f"{behaviour}-{code.scenario}"
            for behaviour, code in zip(behaviours, codes, strict=True)
        ),
        "condition": (None if code is None else code.condition for code in codes),
        "context": (None if code is None else code.user_context for code in codes),
        "perturbation": (None if code is None else code.perturbation for code in codes),
        "group": ("\n".join(report.groups.get(row.code, ())) or None for row in rows),
        "flaky": ("flaky" if row.code in flaky else None for row in rows),
    }


def observed_of(evaluation: Evaluation, *, with_text: bool) -> str:
    """Return what was observed, cut: running text of the reply only with texts."""
    return observed_excerpt(full_observed(evaluation) if with_text else evaluation.observed)


def _verdict_labels(rows: Sequence[ResultRow], texts: ShownTexts) -> dict[str, Iterable[str | None]]:
    shown = [shown_evaluation(row) for row in rows]
    return {
        "outcome": (row.outcome for row in rows),
        "reason": (row.reason for row in rows),
        "rule": (None if one is None else one.rule for one in shown),
        "parse": (None if one is None else one.parse for one in shown),
        "expected": (None if one is None else excerpt(one.expected, OBSERVED_LIMIT) for one in shown),
        "observed": (
            None if one is None else observed_of(one, with_text=texts.of(row.outcome))
            for row, one in zip(rows, shown, strict=True)
        ),
    }


def _case_numbers(rows: Sequence[ResultRow]) -> dict[str, list[float | None]]:
    return {
        "rep": [row.repetition for row in rows],
        "severity": [row.severity for row in rows],
        "difficulty": [row.difficulty for row in rows],
        "neutral": [int(row.neutral) for row in rows],
        "score": [_shortened(row.score, 4) for row in rows],
        "ms": [_shortened(row.latency_ms, 3) for row in rows],
        "tokens_in": [row.prompt_tokens for row in rows],
        "tokens_out": [row.completion_tokens for row in rows],
        "usd": [_shortened(row.cost_usd, 3) for row in rows],
    }


def _parsed(code: str) -> CaseCode | None:
    """Return the parts of the code of a tree's case; None for all others, whose codes stand as they are."""
    found = CaseCode.parse(code)
    return None if found is None or found.scenario is None else found


def _labels(values: Iterable[str | None]) -> dict[str, object]:
    places: dict[str | None, int] = {}
    indexes = [places.setdefault(value, len(places)) for value in values]
    known = [None if value is None else scrub(value) for value in places]
    return {"s": known[0]} if len(known) == 1 else {"d": known, "i": indexes}


def _numbers(values: Sequence[float | None]) -> dict[str, object]:
    alike = bool(values) and all(value == values[0] for value in values)
    return {"s": values[0]} if alike else {"v": values}


def _shortened(value: float | None, digits: int) -> float | None:
    """Return a number to some digits, whole where it is: a table needs no more, and each takes room."""
    if value is None or not isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() else short


def _details(
    row: ResultRow,
    calls: Sequence[CallRow],
    columns: OwnColumns,
    texts: ShownTexts,
    steps: Sequence[Event],
) -> dict[str, object]:
    """Return what the columns do not say of a case; nothing for most."""
    found: dict[str, object] = {}
    with_text = texts.of(row.outcome)
    if len(row.evaluations) > 1 or any(one.beside or has_lines(one.observed) for one in row.evaluations):
        found["e"] = [check for one in row.evaluations for check in _checks(one, with_text=with_text)]
    if calls:
        found["c"] = [_call(call, with_text=with_text) for call in calls]
    if steps:
        found["s"] = step_rows(steps)
    if row.words is not None:
        cells = columns.cells(row.words, with_text=with_text)
        known = {
            name: scrubbed(value.decode("utf-8", "replace") if isinstance(value, bytes) else value)
            for name, value in cells.items()
            if value is not None
        }
        if known:
            found["w"] = known
    return found


def _checks(evaluation: Evaluation, *, with_text: bool) -> Iterator[list[object]]:
    """Yield an evaluation, and each part of a combined rule below it with its depth."""
    observed = observed_of(evaluation, with_text=with_text)
    lines = observed.splitlines() if has_lines(observed) else []
    parts = [part.groups() for line in lines if (part := _PART.match(line))]
    values = (None, None) if parts else (excerpt(evaluation.expected, OBSERVED_LIMIT), observed)
    verdict = (int(evaluation.passed), evaluation.credit, evaluation.parse)
    marked = 0 if evaluation.beside is None else evaluation.beside.said
    yield [scrub(evaluation.criterion), evaluation.rule, *verdict, *values, marked]
    for (indent, mark, rule, expected, seen), below in zip(parts, (*parts[1:], ("",)), strict=False):
        wanted = None if len(below[0]) > len(indent) else expected
        yield ["", rule, int(mark == MARKS[1]), None, None, wanted, seen, 0, 1 + len(indent) // 2]


def _call(call: CallRow, *, with_text: bool) -> list[object]:
    """Return a call; what a server has said about a fault may quote anything, so it is a text."""
    fault = "fault" if call.error else None
    answer = scrub(call.error) if call.error and with_text else fault or call.finish_reason
    return [
        " ".join(filter(None, (call.purpose, scrub(call.criterion), turn_text(call)))),
        "stored" if call.from_cache else call.attempt,
        call.status_code,
        answer,
        _shortened(call.latency_ms, 3),
        call.prompt_tokens,
        call.completion_tokens,
        _shortened(call.cost_usd, 3),
        scrub(call.provider_model or ""),
    ]


def _texts(row: ResultRow, steps: Sequence[Event]) -> dict[str, object]:
    found: dict[str, object] = {}
    if row.request is not None:
        body = json.loads(row.request)
        messages = body.pop("messages", None) if isinstance(body, dict) else None
        messages = messages if isinstance(messages, list) else []
        found["m"] = [_message(one) for one in messages[: opening_length(row) or None]]
        found["q"] = scrubbed({**body, "messages": messages} if row.conversation else body)
    if spoken := list(transcript_texts(before_reply(row)[opening_length(row) :])) if row.conversation else []:
        found["v"] = spoken
    if row.reply is not None:
        found["r"] = scrub(row.reply)
    words = [["thoughts", scrub(row.thoughts)]] if row.thoughts else []
    words += [] if row.words is None else [[title, scrub(text)] for title, text in row.words.texts]
    words += [[scrub(title), scrub(text)] for title, text in justifications(row)]
    words += [] if row.conversation else step_texts(steps)
    if words:
        found["w"] = words
    return found


def _message(message: JsonValue) -> list[object]:
    if not isinstance(message, dict):
        return ["", scrubbed(message)]
    return [scrub(str(message.get("role"))), scrubbed(message.get("content"))]


def step_rows(events: Sequence[Event]) -> list[list[object]]:
    """Return number, seconds since the first, type and numbers of each step, without any text."""
    rows: list[list[object]] = [
        [number, _seconds(events[0].at, event.at), scrub(event.type), ", ".join(_facts(event.payload))]
        for number, event in enumerate(events[:MOST_STEPS], 1)
    ]
    if len(events) > MOST_STEPS:
        rows.append(["…", None, f"and {len(events) - MOST_STEPS} more", ""])
    return rows


def step_texts(events: Sequence[Event]) -> Iterator[list[str]]:
    """Yield title and text of each step that says something."""
    for number, event in enumerate(events[:MOST_STEPS], 1):
        said = {
            name: value
            for name, value in event.payload.items()
            if isinstance(value, str | list | dict) and value and name not in _OURS
        }
        if said:
            title = " ".join((f"step {number}: {event.type}", *_facts(event.payload)[:1]))
            text = next(iter(said.values())) if len(said) == 1 else said
            shown = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, indent=1)
            yield [scrub(title), excerpt(shown, _MOST_CHARACTERS)]


def _facts(payload: Mapping[str, object]) -> list[str]:
    words = [value for name in _OURS if isinstance(value := payload.get(name), str) and _WORD.match(value)]
    return words + [
        f"{scrub(name)} {value}"
        for name, value in payload.items()
        if isinstance(value, int | float) and _WORD.match(name)
    ]


def _seconds(first: str, at: str) -> float | None:
    try:
        return round((datetime.fromisoformat(at) - datetime.fromisoformat(first)).total_seconds(), 1)
    except (ValueError, TypeError):
        return None

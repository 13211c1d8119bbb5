"""Pages: one HTML file that makes no request and runs no code but its own, and the list of runs.

The only user of `jinja2`, which escapes whatever stands in a template."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from jinja2 import Environment, FunctionLoader, StrictUndefined

from pytest_helmbench.core.case_texts import expected_text, has_lines, ruled_out
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import HIDDEN_TEXT, OBSERVED_LIMIT, ShownTexts, excerpt, scrub
from pytest_helmbench.reports import (
    comparison_lines,
    headline,
    run_cautions,
    run_facts,
    score_lines,
    standings_tables,
    tables,
)
from pytest_helmbench.reports.cards import run_cost_text
from pytest_helmbench.reports.page import first_screen, plots
from pytest_helmbench.reports.page.columns import (
    Block,
    Messages,
    message_line,
    observed_of,
    page_messages,
    run_blocks,
    shown_evaluation,
)
from pytest_helmbench.reports.page.first_screen import PageBoard, WorstCase, page_board
from pytest_helmbench.reports.page.parts import PagePart
from pytest_helmbench.reports.run_facts import cost_cells, rate_text
from pytest_helmbench.reports.tables import cost_text, points_lost, rate, reasons_text, seconds, share
from pytest_helmbench.results.gates import JudgedCases, RunGates, gates_of_session
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.results.standings import Board
from pytest_helmbench.scoring.breakdown import Detection
from pytest_helmbench.store.read.results import ResultRow
from pytest_helmbench.store.read.runs import RunProgress, RunSummary

_ASSETS = files("pytest_helmbench.reports.page") / "assets"
LARGEST_BYTES = 200_000_000
"""No page is larger."""
_MOST_TRENDS = 12
_BLANK = re.compile(r"\n\s*\n")
_UNREAD = re.compile(r" (=>|[=!]?==?=?|&&|\|\||\?\??=?|:) |(?<=[;{]) | (?=[{}])")
"""Blanks between signs of code; no text in a script has one of them there."""
_PIECES = re.compile(r"\w+|\W+")
_OPTIONAL = re.compile("</(?:td|th|tr|tbody|thead)>")
"""Ends of tags that every browser knows without them: a tenth of a small page."""
_BADGES = {
    ShownTexts.NONE: "codes and verdicts only",
    ShownTexts.FAILURES: "with texts of failures",
    ShownTexts.ALL: "with all texts",
}


def _code_of(*names: str) -> str:
    """Return scripts or style sheets among the assets as one, without comments of a line and most blanks."""
    lines = (_UNREAD.sub(r"\1", line.strip()) for name in names for line in _asset(name).splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _code_hash(code: str) -> str:
    """Return the name of a script or style sheet in a Content-Security-Policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode('ascii')}"


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8").strip()


class PageTooLargeError(HelmbenchError):
    """A page that no browser would open."""


def html_page(
    parts: Sequence[PagePart],
    texts: ShownTexts,
    found: Sequence[Board] = (),
    live: Mapping[str, object] | None = None,
) -> str:
    """Return the page of some parts.

    Args:
        found: The same runs side by side, by benchmark; those of a comparison are not.
        live: Progress of the runs on a page that asks its server for news (`live.js`); None on other pages.

    Raises:
        PageTooLargeError: It would be larger than `LARGEST_BYTES`.
    """
    parts = [replace(part, name=str(index)) for index, part in enumerate(parts)]
    messages = page_messages({part.name: part.report for part in parts if part.report}, texts)
    blocks = list(_blocks(parts, texts, messages))
    size = sum(len(block.data) for block in blocks)
    if size > LARGEST_BYTES:
        raise PageTooLargeError(
            f"the page would have {size / 1_000_000:.0f} MB, and no browser opens more than"
            f" {LARGEST_BYTES / 1_000_000:.0f}\n  hint: --with-text=failures or fewer runs make it smaller"
        )
    names = ("page", "board") if live is None else ("page", "board", "live")
    code = _code_of(*(f"{name}.js" for name in names))
    page = _rendered(
        "page.html.jinja",
        [f"{name}.css" for name in names],
        ["loader.js"],
        code_hash=_code_hash(code),
        parts=parts,
        boards=_boards(parts, found, messages),
        messages=messages,
        facts=list(_facts(parts)),
        blocks=[*blocks, Block.of("code", code)],
        badge=_BADGES[texts],
        has_texts=texts.any,
        has_comparison=any(part.comparison is not None for part in parts),
        title=_title(parts),
        version=next((part.report.detail.plugin_version for part in parts if part.report is not None), ""),
        live=live,
    )
    return _BLANK.sub("\n", _OPTIONAL.sub("", page))


def _rendered(template: str, styles: Iterable[str], scripts: Iterable[str], /, **values: object) -> str:
    """Return a template with its styles and scripts, which alone its Content-Security-Policy allows."""
    css, script = _code_of(*styles), _code_of(*scripts)
    page = (
        _environment()
        .get_template(template)
        .render(css=css, script=script, css_hash=_code_hash(css), script_hash=_code_hash(script), **values)
    )
    return scrub(page) + "\n"


def _blocks(parts: Sequence[PagePart], texts: ShownTexts, messages: Messages) -> Iterator[Block]:
    runs = []
    for part in parts:
        report, baseline = part.report, part.baseline
        if report is None:
            continue
        yield from run_blocks(part.name, report, texts, part.flips, messages)
        if baseline is not None:
            yield from run_blocks(f"{part.name}b", baseline, texts, {}, messages)
        runs.append(
            _meta(part.name, report)
            | {"base": None if baseline is None else _meta(f"{part.name}b", baseline)}
        )
    yield Block.of("meta", {"runs": runs, "texts": texts.value})


def _meta(name: str, report: RunReport) -> dict[str, object]:
    run = report.detail
    return {
        "name": name,
        "run": run.id,
        "model": scrub(run.model),
        "benchmark": scrub(run.benchmark),
        "repeat": report.detail.settings.get("repeat") or 1,
    }


def _boards(parts: Sequence[PagePart], found: Sequence[Board], messages: Messages) -> list[PageBoard]:
    """Return runs side by side where there are several, and none of them stands beside a baseline."""
    if len(parts) < 2 or any(part.comparison is not None for part in parts):
        return []
    names = {(part.report.path, part.report.detail.id): part.name for part in parts if part.report}
    return [page_board(board, names, number, messages) for number, board in enumerate(found)]


def _facts(parts: Sequence[PagePart]) -> Iterator[str]:
    """Yield the runs, their benchmarks and their times, each once."""
    runs = [run.detail for part in parts for run in part.runs]
    numbers = " and ".join(str(run.id) for run in runs)
    yield f"{len(runs)} runs" if len(runs) > 2 else f"run{'s' if len(runs) > 1 else ''} {numbers}"
    yield from dict.fromkeys(
        f"{run.benchmark} {run.version}, {run.total_tests:,} cases, content {run.benchmark_hash[:12]}"
        for run in runs
    )
    times = sorted(run.started_at[:16].replace("T", " ") for run in runs)
    if times:
        yield f"{times[0]}{f' to {times[-1]}' if times[-1] != times[0] else ''} UTC"


def _title(parts: Sequence[PagePart]) -> str:
    models = dict.fromkeys(run.detail.model for part in parts for run in part.runs)
    benchmarks = dict.fromkeys(run.detail.benchmark for part in parts for run in part.runs)
    joined = " against " if any(part.comparison is not None for part in parts) else ", "
    names = [*models][::-1] if joined == " against " else [*models]
    where = next(iter(benchmarks)) if len(benchmarks) == 1 else f"{len(benchmarks)} benchmarks"
    return scrub(f"{joined.join(names) if len(names) < 4 else f'{len(names)} models'} on {where}")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "share": share,
        "points": comparison_lines.points,
        "percent": plots.hundredth,
    }
    shown = (
        comparison_lines,
        headline,
        first_screen,
        plots,
        run_cautions,
        run_facts,
        score_lines,
        standings_tables,
        tables,
    )
    environment.globals |= {name: value for module in shown for name, value in vars(module).items()}
    environment.globals |= {
        "cards": cards,
        "case_lines": case_lines,
        "cost_rows": lambda costs: [cost_cells(row) for row in costs],
        "detection_rows": _detection_rows,
        "forest_of": plots.forest,
        "lasted": lambda run: seconds(_milliseconds(run.started_at, run.completed_at)),
        "run_cost_text": run_cost_text,
        "gates": gates,
        "worst_five": _worst_five,
    }
    return environment


def run_list_page(
    name: str, runs: Sequence[tuple[RunSummary, RunProgress]], left_out: int, refresh_s: float
) -> str:
    """Return the list of runs of a results file's server, the newest first, and how many older ones are left out."""
    return _rendered(
        "runs.html.jinja",
        ["page.css", "live.css"],
        ["runs.js"],
        name=name,
        runs=runs,
        left_out=left_out,
        trends=plots.trends(run for run, _ in runs)[:_MOST_TRENDS],
        refresh_ms=1000 * refresh_s,
    )


def _milliseconds(start: str, end: str | None) -> float | None:
    if end is None:
        return None
    return 1000 * (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


class CaseLine(NamedTuple):
    """A case in one line: what was observed in pieces, each with whether it makes the difference."""

    row: ResultRow
    rule: str
    expected: str
    observed: tuple[tuple[str, bool], ...]
    before: str
    lost: str
    message: str


def gates(report: RunReport) -> RunGates:
    """Return how a run stands to the thresholds that its session was given."""
    model, cases = report.detail.model, JudgedCases(report.counts.judged, report.detail.total_tests)
    asked = gates_of_session(report.detail)
    return asked.judge({model: report.score}, cases={model: cases}).runs[0]


def cards(report: RunReport) -> Iterator[tuple[str, str, str]]:
    """Yield the numbers beside the score of a run: name, value, and the note that it rests on."""
    detail, counts = report.detail, report.counts
    total = None if report.score is None else report.score.total
    passed = f"{detail.count('passed'):,} of {counts.judged:,} cases judged"
    yield ("right", share(None if total is None else total.pass_rate), passed)
    if total is not None:
        bounds = total.bounds
        note = ""
        if bounds is not None and total.coverage is not None and total.coverage < 1:
            note = f"score {100 * float(bounds.low):.1f} – {share(bounds.high)}"
        yield ("coverage", share(total.coverage), note)
    errors = {
        reason or "": count for (outcome, reason), count in detail.outcomes.items() if outcome == "error"
    }
    yield ("errors", f"{detail.count('error'):,}", reasons_text(errors) or "in no score")
    skipped = detail.count("skipped")
    if skipped or report.not_run:
        yield ("not run", f"{skipped + report.not_run:,}", f"{skipped:,} skipped")
    calls = f"{counts.case_calls + counts.judge_calls:,} calls, {counts.replays:,} from stored replies"
    yield ("cost USD", cost_text(counts.known_cost_usd, counts.unknown_costs), calls)
    speed = report.speed
    if speed.median_ms is not None and speed.p95_ms is not None:
        yield ("median time", seconds(speed.median_ms), f"95 % within {seconds(speed.p95_ms)}")
    if speed.tokens_per_second is not None:
        in_all = f"{rate(speed.run_tokens_per_second)} in all, calls in flight: {speed.in_flight or 0}"
        yield ("tokens/s of a call", rate(speed.tokens_per_second), in_all)


def case_lines(
    part: PagePart, most: int, messages: Messages, *, with_text: bool
) -> tuple[Sequence[CaseLine], int]:
    """Return the worst failures of a run, or of a comparison what has become worse; and how many there are.

    The order is by points lost. With texts, running text of a reply that was observed is shown.
    """
    report = part.report
    if report is None:
        return (), 0
    if part.baseline is not None:
        worse = [row for row in report.results if part.flips[row.code, row.repetition].word == "worse"]
    else:
        worse = list(report.failures)
    worst = report.losses.worst_first(worse)[:most]
    return [_case_line(row, part, messages, with_text=with_text) for row in worst], len(worse)


def _worst_five(part: PagePart, messages: Messages, with_text: bool) -> Iterator[WorstCase]:
    """Yield the worst cases with what was expected and observed."""
    for line in case_lines(part, 5, messages, with_text=with_text)[0]:
        observed = "".join(text for text, _ in line.observed)
        said = f"{excerpt(line.expected, 60)} → {excerpt(observed, 60)}"
        yield line.row.code, line.row.repetition, line.message, line.lost, said


def _case_line(row: ResultRow, part: PagePart, messages: Messages, *, with_text: bool) -> CaseLine:
    one = shown_evaluation(row)
    flip = part.flips.get((row.code, row.repetition))
    before = "" if flip is None else flip.before
    lost = message = ""
    if part.report is not None:
        lost = points_lost(part.report.losses.of(row))
        message = message_line(messages, part.report.detail.benchmark, row.code, row.repetition)
    if one is None:
        return CaseLine(row, "", "", (), before, lost, message)
    expected, observed = excerpt(expected_text(one), OBSERVED_LIMIT), observed_of(one, with_text=with_text)
    rule = f"{one.rule} {scrub(one.criterion)}".strip()
    return CaseLine(row, rule, expected, tuple(_marked(expected, observed)), before, lost, message)


def _marked(expected: str, observed: str) -> Iterator[tuple[str, bool]]:
    """Yield what was observed in pieces, each with whether it makes the difference.

    Those are the words that were not expected, or that were ruled out. `page.js` marks alike.
    """
    if observed == HIDDEN_TEXT or has_lines(observed):
        yield observed, False
        return
    words, is_ruled_out = ruled_out(expected)
    known = set(_PIECES.findall(words))
    pieces = [(text, (text in known) is is_ruled_out) for text in _PIECES.findall(observed)]
    marked = [(text, differs and text[0].isalnum()) for text, differs in pieces]
    yield from marked if any(differs for _, differs in marked) else ((text, True) for text, _ in pieces)


def _detection_rows(found: Iterable[Detection]) -> Iterator[tuple[str, ...]]:
    """Yield code, share right, recall and false escalation of each group."""
    for one in found:
        yield (one.code, *map(rate_text, (one.right, one.recall, one.false_escalation)))

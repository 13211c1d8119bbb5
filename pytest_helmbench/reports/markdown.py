"""A report in Markdown that pastes into a GitHub pull request, and the summary of a CI job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_helmbench.core.case_texts import REASON_TEXTS, expected_text, has_lines, wrong_lines
from pytest_helmbench.core.kind_words import OwnSection
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation
from pytest_helmbench.core.scrub import HIDDEN_TEXT, excerpt
from pytest_helmbench.reports.cards import WORST_SHOWN, asked_lines, evaluation_texts, prompt_text
from pytest_helmbench.reports.comparison_lines import comparison_section
from pytest_helmbench.reports.headline import Headline
from pytest_helmbench.reports.markup import code_span, fenced, folded, pipe_table, plain
from pytest_helmbench.reports.panel_tables import panel_table
from pytest_helmbench.reports.run_cautions import cautions
from pytest_helmbench.reports.run_facts import COST_HEAD, cost_cells, rate_text, setting_rows, unjudged_rows
from pytest_helmbench.reports.score_lines import SCORE_HEAD, repetitions_sentence, score_cells
from pytest_helmbench.reports.standings_tables import standings_markdown
from pytest_helmbench.reports.tables import count_text, points_lost, share
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.results.standings import ReportedRuns
from pytest_helmbench.scoring.breakdown import Detection, Matrix
from pytest_helmbench.scoring.reruns import RepetitionRates
from pytest_helmbench.scoring.run_score import RunScore
from pytest_helmbench.store.read.costs import CostRow
from pytest_helmbench.store.read.results import ResultRow

LONGEST = 65_000
"""Bytes. A comment on GitHub takes 65,536 characters; a step's summary of more than 1 MiB is dropped whole."""

_EVERYTHING = 1_000_000
# A report that would be too long leaves out texts first, then rows of every table.
_FEWER_TEXTS = (_EVERYTHING, 60, 20, 8, 3)
_FEWER_ROWS = (_EVERYTHING, 200, 60, 20, 5, 0)
_FAILURE_HEAD = ("case", "asked", "expected → observed", "points")
_VALUE_LIMIT = 80
_ASKED_LIMIT = 120
_TEXT_LIMIT = 2_000
_MOST_FLAKY = 20
_RATES_HEAD = ("", "right", "recall", "weighted", "false escalation", "weighted")


@dataclass(frozen=True, slots=True)
class _Extent:
    """How much is shown: rows per table, and failures with their texts."""

    rows: int
    texts: int


def markdown_report(found: ReportedRuns, headline: Headline | None = None, *, with_text: bool = False) -> str:
    """Return the report of some runs; `with_text` adds prompts, replies and the judge's words of failures, cut.

    Texts, then tables, are shortened until the whole fits.
    """
    first = _report_head(found, headline)
    return first + _run_tables(found, LONGEST - len(first.encode()), with_text=with_text)


def _report_head(found: ReportedRuns, headline: Headline | None) -> str:
    """Return the headline, what to do next, and the comparisons with the baselines."""
    title = "helmbench" if headline is None else headline.text
    scores = [share(run.score.score) for run in found.runs if run.score is not None]
    if headline is not None and len(scores) == 1 and scores[0] not in title:
        title += f" (score {scores[0]})"
    lines = [f"## {plain(title)}", ""]
    if headline is not None and headline.cause_in_full:
        lines += [f"Cause: {plain(headline.cause_in_full)}", ""]
    if headline is not None and headline.hint:
        lines += [f"Next: {plain(headline.hint)}", ""]
    compared = [
        line
        for report in found.runs
        if report.comparison is not None
        for line in comparison_section(report.comparison, report.opening)
    ]
    if len("\n".join(compared).encode()) > LONGEST // 2:
        compared = ["The comparisons are too long for this page: `helmbench compare` prints them.", ""]
    return "\n".join([*lines, *compared]) + "\n"


def _run_tables(found: ReportedRuns, longest: int, *, with_text: bool = False) -> str:
    """Return the tables of some runs, in at most so many bytes where that can be."""
    extents = [_Extent(_EVERYTHING, texts) for texts in _FEWER_TEXTS] if with_text else []
    extents += [_Extent(rows, 0) for rows in _FEWER_ROWS]
    text = ""
    for extent in extents:
        text = "\n".join(_lines(found, extent)) + "\n"
        if len(text.encode()) <= longest:
            break
    return text


def _lines(found: ReportedRuns, extent: _Extent) -> Iterator[str]:
    for board in found.boards:
        yield from standings_markdown(board)
    for report in found.runs:
        run = report.detail
        yield from (f"### {code_span(run.model)} on {plain(run.benchmark)} (run {run.id})", "")
        yield from _cautions(report)
        if report.score is not None and report.counts.judged:
            yield from _scores(report, report.score, extent)
        if report.words is not None and report.words.section is not None:
            yield from _own_section(report.words.section, extent)
        if not report.is_flat and report.counts.judged:
            yield from _beside(report, extent)
        yield from _repetitions(report.repetitions, extent.rows)
        yield from panel_table(report.panel, extent.rows)
        yield from _failures(report, extent)
        yield from _unjudged(report)
        yield from _costs(report.costs, extent)
        yield from _settings(report)


def _cautions(report: RunReport) -> Iterator[str]:
    found = cautions(report)
    if found:
        yield from ("> [!WARNING]", *(f"> - {plain(sentence)}" for sentence in found), "")


def _scores(report: RunReport, score: RunScore, extent: _Extent) -> Iterator[str]:
    marks = {"pillar": "**"}
    named = ((marks.get(kind, ""), _titled(report, part.code), part) for kind, part in score.parts)
    rows = [(f"{mark}{name}{mark}", *score_cells(part)) for mark, name, part in named]
    if rows:
        first = "group" if report.is_flat else "pillar, behaviour"
        yield from (*pipe_table((first, *SCORE_HEAD), rows, left=(first,), most=extent.rows), "")


def _own_section(section: OwnSection, extent: _Extent) -> Iterator[str]:
    yield from (f"#### {section.title}", "")
    yield from (f"{section.lead}: **{plain(section.value)}**. {section.note}", "")
    rows = [tuple(map(plain, row)) for row in section.rows]
    if rows:
        yield from (*pipe_table(section.head, rows, left=section.head[:1], most=extent.rows), "")
    if section.values:
        head = ("value", "")
        yield from pipe_table(
            head, [tuple(map(plain, row)) for row in section.values], left=head, most=extent.rows
        )
        yield ""
    if section.text and extent.texts:
        yield from (*fenced(section.text, _TEXT_LIMIT), "")


def _titled(report: RunReport, code: str) -> str:
    return plain(f"{code} {report.titles.get(code, '')}")


def _beside(report: RunReport, extent: _Extent) -> Iterator[str]:
    found = report.breakdown
    yield from ("#### Beside the score", "")
    yield (
        "Recall: of the evaluations with a signal (severity above 0), those passed. False escalation: of those"
        " without one (below 0), those failed. Weighted: by severity points."
    )
    yield ""
    rows = [("**all**", *_rate_cells(found.overall))]
    rows += [(_titled(report, part.code), *_rate_cells(part)) for part in found.by_pillar]
    yield from (*pipe_table(_RATES_HEAD, rows, left=("",)), "")
    constants = report.constants
    yield (
        f"Over the whole loaded tree, an answer that flags everything scores {share(constants.flags_everything)},"
        f" one that flags nothing {share(constants.flags_nothing)}."
    )
    yield ""
    shown: list[list[str]] = []  # where the tree has no conditions, those of a scenario are the scenario
    for title, groups in (
        ("By severity band", found.by_band),
        ("By scenario", found.by_scenario),
        ("By condition", found.by_condition),
        ("By user context", found.by_user_context),
    ):
        codes = [part.code for part in groups]
        if codes and codes not in shown:
            shown.append(codes)
            cells = [(plain(part.code), *_rate_cells(part)) for part in groups]
            yield from folded(title, pipe_table(_RATES_HEAD, cells, left=("",), most=extent.rows))
    yield from _matrices(found.matrices, extent)


def _rate_cells(found: Detection) -> tuple[str, ...]:
    recall, false_escalation = found.recall, found.false_escalation
    return (
        rate_text(found.right),
        rate_text(recall),
        share(recall.weighted),
        rate_text(false_escalation),
        share(false_escalation.weighted),
    )


def _matrices(found: Sequence[Matrix], extent: _Extent) -> Iterator[str]:
    matrices = [one for one in found if len(one.conditions) * len(one.user_contexts) > 1]
    if not matrices:
        return
    lines = ["Each cell: signals caught · false escalations."]
    for matrix in matrices[: extent.rows]:
        head = (matrix.scenario, *(context or "no context" for context in matrix.user_contexts))
        rows = [
            (condition or "no condition", *map(_cell, cells))
            for condition, cells in zip(matrix.conditions, matrix.cells, strict=True)
        ]
        lines += ["", *pipe_table(head, rows, left=(matrix.scenario,), most=extent.rows)]
    if len(matrices) > extent.rows:
        lines += ["", f"… and {len(matrices) - extent.rows} more scenarios"]
    yield from folded("Condition × user context", lines)


def _cell(found: Detection | None) -> str:
    if found is None:
        return ""
    counts = (found.recall, found.false_escalation)
    return " · ".join(f"{rate.rows}/{rate.of_rows}" if rate.of_rows else "-" for rate in counts)


def _repetitions(found: RepetitionRates | None, most: int) -> Iterator[str]:
    if found is None:
        return
    yield from (f"Over repetitions: {repetitions_sentence(found)}.", "")
    if found.flaky:
        cases = [(plain(one.code), f"{one.passed} of {one.repetitions}") for one in found.flaky]
        head = ("flaky case", "passed")
        yield from folded("Flaky cases", pipe_table(head, cases, left=head[:1], most=min(most, _MOST_FLAKY)))


def _failures(report: RunReport, extent: _Extent) -> Iterator[str]:
    failures = report.failures
    if not failures:
        return
    asked = asked_lines(failures, report)
    rows = [_failure_cells(row, report, asked[row.id]) for row in failures]
    lines = pipe_table(_FAILURE_HEAD, rows, left=_FAILURE_HEAD[:3], most=extent.rows)
    for row in failures[: extent.texts]:
        lines += ["", *_texts(row)]
    if 0 < extent.texts < len(failures):
        lines += ["", f"… and the texts of {len(failures) - extent.texts} more cases"]
    yield from folded(f"{count_text(len(failures), 'case')} failed", lines)


def _failure_cells(row: ResultRow, report: RunReport, asked: str, model: str = "") -> tuple[str, ...]:
    """Return the cells of a failed case below `_FAILURE_HEAD`; a model's name stands under its code."""
    name = "<br>".join((_name(row), *filter(None, [code_span(model)])))
    wrong = "<br>".join(_wrong(one, row.reason or "") for one in row.evaluations if not one.passed)
    asked = plain(excerpt(asked, _ASKED_LIMIT))
    return name, asked, wrong, "neutral" if row.neutral else points_lost(report.losses.of(row))


def _wrong(found: Evaluation, reason: str) -> str:
    """Return `expected → observed` of an evaluation; of several rules those that are wrong, each on its line."""
    begin = plain(f"{found.criterion}: ") + " " if found.criterion else ""
    if has_lines(found.observed):
        return begin + "<br>".join(code_span(line, _VALUE_LIMIT) for line in wrong_lines(found.observed))
    observed = "" if found.observed == HIDDEN_TEXT else code_span(found.observed, _VALUE_LIMIT)
    said = plain(REASON_TEXTS.get(reason, "")) or observed
    return begin + " → ".join(filter(None, (code_span(expected_text(found), _VALUE_LIMIT), said)))


def _name(row: ResultRow) -> str:
    return plain(row.code + (f" (repetition {row.repetition})" if row.repetition > 1 else ""))


def _texts(row: ResultRow) -> Iterator[str]:
    yield f"**{_name(row)}**"
    texts = (
        [] if row.request is None else [("conversation" if row.conversation else "prompt", prompt_text(row))]
    )
    texts += [("reply", row.reply)] if row.reply is not None else []
    texts += [] if row.words is None else row.words.texts
    texts += evaluation_texts(row)
    for title, text in texts:
        yield from ("", plain(title), "", *fenced(text, _TEXT_LIMIT))


def _unjudged(report: RunReport) -> Iterator[str]:
    rows = [(outcome, plain(reason), count) for outcome, reason, count in unjudged_rows(report)]
    if rows:
        yield from ("#### Not judged", "")
        yield from pipe_table(("outcome", "reason", "cases"), rows, left=("outcome", "reason"))
        yield ""


def _costs(costs: Sequence[CostRow], extent: _Extent) -> Iterator[str]:
    if not costs:
        return
    lines = pipe_table(COST_HEAD, [*map(cost_cells, costs)], left=COST_HEAD[:2], most=extent.rows)
    yield from folded("Calls and costs", lines)


def _settings(report: RunReport) -> Iterator[str]:
    rows = [(plain(name), code_span(value)) for name, value in setting_rows(report)]
    yield from folded(
        "Settings and versions",
        pipe_table(("setting", "value"), rows, left=("setting", "value")),
    )


def job_summary(headline: Headline | None, found: ReportedRuns) -> str:
    """Return headline, comparisons, the worst failures, then everything else behind a click; no prompts or replies.

    Returns:
        At most `LONGEST` bytes: tables are cut, and the breakdowns left out where they still do not fit.
    """
    first = _report_head(found, headline) + "".join(f"{line}\n" for line in _worst(found.runs))
    room = LONGEST - len(first.encode()) - 200
    tables = _run_tables(found, room) if found.runs else ""
    if not tables or len(tables.encode()) > room:
        return first
    rest = folded("Scores by part, all failures, costs, settings", tables.split("\n"))
    return first + "\n".join(rest) + "\n"


def _worst(reports: Sequence[RunReport]) -> Iterator[str]:
    # Each report has its failures by points lost.
    failed = sorted(
        ((report, row) for report in reports for row in report.failures if not row.neutral),
        key=lambda one: -one[0].losses.of(one[1]),
    )
    if not failed:
        return
    several = len(reports) > 1
    rows = [
        _failure_cells(row, report, report.opening.get(row.code, ""), report.detail.model if several else "")
        for report, row in failed[:WORST_SHOWN]
    ]
    count = f"{count_text(len(failed), 'case')} failed"
    yield from (f"**{count}**{', the worst' if len(failed) > WORST_SHOWN else ''}:", "")
    yield from pipe_table(_FAILURE_HEAD, rows, left=_FAILURE_HEAD[:3])
    yield ""

"""Pages: one HTML file that asks nobody for anything and runs no code but its own, and the list of runs.

The only user of `jinja2`, which escapes whatever stands in a template."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import ShownTexts, scrub
from pytest_helmbench.reports.comparison_lines import comparison_lines, points, scope_line
from pytest_helmbench.reports.page import plots, sections
from pytest_helmbench.reports.page.columns import Block, Cells, Flip, PagePart, columns_block, run_blocks
from pytest_helmbench.reports.run_facts import COST_HEAD, setting_rows, unjudged_rows
from pytest_helmbench.reports.score_lines import interval_text, repetitions_sentence
from pytest_helmbench.reports.session_texts import cost_text
from pytest_helmbench.reports.standings_tables import PAIR_HEAD, PAIRS_NOTE, StandingsTable, standings_table
from pytest_helmbench.reports.tables import seconds, share
from pytest_helmbench.results.comparing import RunComparison
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.results.standings import Board, boards

_ASSETS = files("pytest_helmbench.reports.page") / "assets"


def plain_environment() -> Environment:
    """Return an environment for the templates among the assets: all that stands in them is escaped."""
    return Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def code_of(*names: str, leave_out: str = "//") -> str:
    """Return scripts or style sheets as one, without indentation and comments of a line.

    Args:
        names: Among the assets.
        leave_out: End of the lines that this page has no use for.
    """
    lines = (line.strip() for name in names for line in _asset(name).splitlines())
    return "\n".join(
        line for line in lines if line and not line.startswith("//") and not line.endswith(leave_out)
    )


def code_hash(code: str) -> str:
    """Return what a Content-Security-Policy names a script or style sheet by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode('ascii')}"


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8").strip()


LARGEST_BYTES = 200_000_000
"""No page is larger."""

# Sections of a page hold no sections, and foreign text has no tags: it is escaped.
_SECTION = re.compile(r'^<section id="(overview|run-\d+)".*?^</section>$', re.MULTILINE | re.DOTALL)
_BLANK = re.compile(r"\n\s*\n")
_OPTIONAL = re.compile("</(?:td|th|tr|tbody|thead)>")
"""Ends of tags that every browser knows without them: a tenth of a small page."""
_BADGES = {
    ShownTexts.NONE: "codes and verdicts only",
    ShownTexts.FAILURES: "with texts of failures",
    ShownTexts.ALL: "with all texts",
}


class PageTooLargeError(HelmbenchError):
    """A page that no browser would open."""


@dataclass(frozen=True, slots=True)
class LiveMark:
    """How new a page is that a server keeps up to date.

    Args:
        version: Of what it shows; larger for what is newer.
        known: How far each run is in it, by number: results, and a word that changes with them.
        cells: Of each run on it, by its name: the number of the part, `0b` for a baseline.
    """

    version: int
    known: Mapping[int, tuple[int, str]]
    cells: Mapping[str, Cells]


@dataclass(frozen=True, slots=True)
class _View:
    """A part with its number on the page and its runs as plots take them: the baseline first."""

    name: str
    part: PagePart

    @property
    def report(self) -> RunReport | None:
        return self.part.report

    @property
    def comparison(self) -> RunComparison | None:
        return self.part.comparison

    @property
    def runs(self) -> tuple[RunReport, ...]:
        found = (self.part.baseline, self.part.report)
        return tuple(report for report in found if report is not None)


@dataclass(frozen=True, slots=True)
class _Overview:
    """The runs of one benchmark as a table, and the names of their parts."""

    table: StandingsTable
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """The runs of one benchmark, drawn together."""

    benchmark: str
    runs: tuple[RunReport, ...]


def page_of(
    parts: Sequence[PagePart],
    texts: ShownTexts,
    found: Sequence[Board] | None = None,
    live: LiveMark | None = None,
) -> str:
    """Return the page of some parts.

    Args:
        parts: In the order they are shown.
        texts: Whose texts are shown.
        found: The same runs side by side, by benchmark; None to compare no pairs.
        live: Of a page that a server keeps up to date: it asks that server for news, and for cases that are opened.

    Raises:
        PageTooLargeError: It would be larger than `LARGEST_BYTES`.
    """
    views = [_View(str(index), part) for index, part in enumerate(parts)]
    blocks = list(_blocks(views, texts, live))
    size = sum(len(block.data) for block in blocks)
    if size > LARGEST_BYTES:
        raise PageTooLargeError(
            f"the page would have {size / 1_000_000:.0f} MB, and no browser opens more than"
            f" {LARGEST_BYTES / 1_000_000:.0f}\n  hint: --text=failures or fewer runs make it smaller"
        )
    if live is None:
        css, script = code_of("page.css"), code_of("page.js", leave_out="// live")
    else:
        css, script = code_of("page.css", "live.css"), code_of("live.js", "page.js")
    page = (
        _environment()
        .get_template("page.html.jinja")
        .render(
            views=views,
            groups=_groups(views),
            overview=_overview(views, found),
            blocks=blocks,
            css=css,
            script=script,
            css_hash=code_hash(css),
            script_hash=code_hash(script),
            badge=_BADGES[texts],
            has_texts=texts.any,
            has_comparison=any(view.comparison is not None for view in views),
            title=_title(views),
            version=_version(views),
            is_live=live is not None,
        )
    )
    return _BLANK.sub("\n", _OPTIONAL.sub("", scrub(page))) + "\n"


def sections_of(page: str) -> dict[str, str]:
    """Return the parts of a page that change with its results, by the ids of their elements."""
    return {found[1]: found[0] for found in _SECTION.finditer(page)}


def _blocks(views: Sequence[_View], texts: ShownTexts, live: LiveMark | None) -> Iterator[Block]:
    runs = []
    for view in views:
        report, baseline = view.report, view.part.baseline
        if report is None:
            continue
        yield from _run_blocks(view.name, report, texts, view.part.flips, live)
        if baseline is not None:
            yield from _run_blocks(f"{view.name}b", baseline, texts, {}, live)
        runs.append(
            _meta(view.name, report)
            | {"base": None if baseline is None else _meta(f"{view.name}b", baseline)}
        )
    told = {} if live is None else {"live": {"version": live.version, "known": live.known}}
    yield Block.of("meta", {"runs": runs, "texts": texts.value, **told})


def _run_blocks(
    name: str,
    report: RunReport,
    texts: ShownTexts,
    flips: Mapping[tuple[str, int], Flip],
    live: LiveMark | None,
) -> Iterator[Block]:
    if live is None:
        yield from run_blocks(name, report, texts, flips)
    else:
        yield columns_block(name, len(report.results), live.cells[name])


def _meta(name: str, report: RunReport) -> dict[str, object]:
    run = report.detail.summary
    return {
        "name": name,
        "run": run.id,
        "model": scrub(run.model),
        "benchmark": scrub(run.benchmark),
        "repeat": report.detail.settings.get("repeat") or 1,
    }


def _overview(views: Sequence[_View], found: Sequence[Board] | None) -> list[_Overview]:
    names = {
        (view.report.path, view.report.detail.summary.id): view.name
        for view in views
        if view.report is not None
    }
    shown = boards((view.report for view in views if view.report), paired=False) if found is None else found
    return [
        _Overview(
            standings_table(board), tuple(names[one.ref.path, one.ref.run_id] for one in board.standings)
        )
        for board in shown
    ]


def _groups(views: Sequence[_View]) -> list[_Group]:
    """Return the runs that have scores by their benchmarks, where a page holds several runs."""
    found: dict[str, list[RunReport]] = {}
    for view in views:
        if view.report is not None and view.report.score is not None:
            found.setdefault(view.report.detail.summary.benchmark, []).append(view.report)
    return [_Group(name, tuple(runs)) for name, runs in found.items()]


def _title(views: Sequence[_View]) -> str:
    models = dict.fromkeys(run.detail.summary.model for view in views for run in view.runs)
    benchmarks = dict.fromkeys(run.detail.summary.benchmark for view in views for run in view.runs)
    joined = " against " if any(view.comparison is not None for view in views) else ", "
    names = [*models][::-1] if joined == " against " else [*models]
    return scrub(f"{joined.join(names[:3])}{' and more' if len(names) > 3 else ''} on {_few([*benchmarks])}")


def _few(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} benchmarks"


def _version(views: Sequence[_View]) -> str:
    return next((view.report.detail.plugin_version for view in views if view.report is not None), "")


@cache
def _environment() -> Environment:
    environment = plain_environment()
    environment.filters |= {
        "share": share,
        "seconds": seconds,
        "usd": sections.usd,
        "points": points,
        "percent": _percent,
    }
    environment.globals |= {
        "cards": sections.cards,
        "case_lines": sections.case_lines,
        "comparison_lines": comparison_lines,
        "cost_head": COST_HEAD,
        "cost_rows": sections.cost_rows,
        "cost_text": cost_text,
        "detection_rows": sections.detection_rows,
        "forest_of": plots.forest,
        "gates": sections.gates,
        "heat_map": plots.heat_map,
        "histogram": plots.histogram,
        "interval_text": interval_text,
        "pair_head": PAIR_HEAD,
        "pairs_note": PAIRS_NOTE,
        "part_cautions": sections.part_cautions,
        "part_differences": sections.part_differences,
        "repetitions_sentence": repetitions_sentence,
        "scope_line": scope_line,
        "seconds_text": seconds,
        "setting_rows": setting_rows,
        "unjudged_rows": unjudged_rows,
        "usd_text": sections.usd,
    }
    return environment


def _percent(value: float | Fraction) -> float:
    """Return a fraction as a place on a line from 0 to 100."""
    return round(100 * float(value), 2)


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run in one line.

    Args:
        id: Number.
        started: When, as people read it.
        benchmark: Name and version.
        model: Id.
        status: How it ended, or that it runs.
        done: Results so far; `planned`: of how many.
        failed: Of them; likewise passed, and errors.
        score: Fraction; None where there is none (yet).
    """

    id: int
    started: str
    benchmark: str
    model: str
    status: str
    done: int
    planned: int
    passed: int
    failed: int
    errors: int
    score: float | None


def run_list_page(name: str, runs: Sequence[ListedRun], left_out: int, version: int) -> str:
    """Return the page.

    Args:
        name: Of the results file.
        runs: The newest first.
        left_out: How many older ones are not shown.
        version: Of what is shown.
    """
    css, script = code_of("page.css", "live.css"), code_of("runs.js")
    page = (
        _run_environment()
        .get_template("runs.html.jinja")
        .render(
            name=name,
            runs=runs,
            left_out=left_out,
            version=version,
            css=css,
            script=script,
            css_hash=code_hash(css),
            script_hash=code_hash(script),
        )
    )
    return scrub(page) + "\n"


def run_list_rows(runs: Sequence[ListedRun]) -> dict[str, str]:
    """Return the lines of some runs as HTML, by the ids of their elements, in the order given."""
    line = _run_environment().get_template("run_line.html.jinja")
    return {f"run-{run.id}": scrub(line.render(run=run)) for run in runs}


@cache
def _run_environment() -> Environment:
    environment = plain_environment()
    environment.filters["share"] = share
    return environment

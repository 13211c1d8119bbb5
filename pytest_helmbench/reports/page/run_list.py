"""The page that lists the runs of a results file, to open one or to compare two."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from jinja2 import Environment

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.reports.page.templates import code_hash, code_of, plain_environment
from pytest_helmbench.reports.tables import share

__all__ = ["ListedRun", "run_list_page", "run_list_rows"]


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
        _environment()
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
    line = _environment().get_template("run_line.html.jinja")
    return {f"run-{run.id}": scrub(line.render(run=run)) for run in runs}


@cache
def _environment() -> Environment:
    environment = plain_environment()
    environment.filters["share"] = share
    return environment

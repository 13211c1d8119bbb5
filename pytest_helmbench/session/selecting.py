"""A selection that matches nothing: a slip that is told before anything runs, with the codes that are near."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

from pytest_helmbench.benchmarks.kind import Loaded
from pytest_helmbench.core.codes import CaseCode, SelectError, Selection
from pytest_helmbench.engine.job import CaseJob

__all__ = ["refuse_empty_selection"]

_NAMED = 3


def refuse_empty_selection(benchmarks: Sequence[Loaded], selection: Selection) -> None:
    """Do nothing where some case of these benchmarks is selected, or something broken that may hold one.

    Raises:
        SelectError: None is.
    """
    if any(selection.matches(job.parts) for job in _jobs(benchmarks)):
        return
    names = (name for loaded in benchmarks for name, _ in loaded.broken)
    if any(CaseCode.parse(name) is None or selection.may_match(tuple(name.split("-"))) for name in names):
        return
    known = list(dict.fromkeys(code for job in _jobs(benchmarks) for code in _levels(job)))
    if not known:
        raise SelectError(
            f"--helmbench-select={selection.text}: nothing here has codes\n"
            "  hint: tests, rows and scenarios of packs are chosen with -k or by their node id"
        )
    near = [code for word in selection.text.split(",") for code in get_close_matches(word.strip(" ~"), known)]
    shown = ", ".join(list(dict.fromkeys(near))[:_NAMED] or known[:_NAMED])
    raise SelectError(f"--helmbench-select={selection.text} matches no case\n  hint: near are {shown}")


def _jobs(benchmarks: Iterable[Loaded]) -> Iterator[CaseJob]:
    for loaded in benchmarks:
        for file in loaded.files:
            yield from loaded.jobs(file, "", 1)


def _levels(job: CaseJob) -> Iterator[str]:
    """Yield `P1`, `P1-B2`, `P1-B2-S1` and the whole code of a case that has such a code."""
    first = [part for part in job.parts[:3] if part is not None]
    if first:
        yield from ("-".join(first[: length + 1]) for length in range(len(first)))
        yield job.code

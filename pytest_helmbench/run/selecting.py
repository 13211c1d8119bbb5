"""A selection of which a part matches nothing: a slip that is told before anything runs, with near codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches

from pytest_helmbench.benchmarks.kind import Loaded
from pytest_helmbench.core.codes import CaseCode, SelectError, Selection
from pytest_helmbench.engine.job import CaseJob

__all__ = ["refuse_empty_selection"]

_NAMED = 3


def refuse_empty_selection(
    benchmarks: Sequence[Loaded], selection: Selection, note: Callable[[str], object]
) -> None:
    """Do nothing where every pattern matches some case of these benchmarks, or something broken that may hold one.

    Args:
        benchmarks: Of the session.
        selection: What is asked for.
        note: Takes a sentence about an excluding pattern that matches nothing.

    Raises:
        SelectError: Nothing is selected, or a pattern selects nothing.
    """
    is_empty, idle = True, list(selection.patterns)
    for job in _jobs(benchmarks):
        is_empty = is_empty and not selection.matches(job.parts)
        idle = [pattern for pattern in idle if not pattern.matches(job.parts)]
        if not (is_empty or idle):
            return
    broken = [name for loaded in benchmarks for name, _ in loaded.broken]
    if any(CaseCode.parse(name) is None for name in broken):
        return  # whose cases nobody knows: any pattern may mean them
    codes = [tuple(name.split("-")) for name in broken]
    is_empty = is_empty and not any(map(selection.may_match, codes))
    idle = [pattern for pattern in idle if not any(map(pattern.may_match, codes))]
    missing = [pattern.text for pattern in idle if not pattern.excludes]
    if is_empty or missing:
        raise _slip(benchmarks, selection, () if is_empty else missing)
    for pattern in idle:
        note(f"--helmbench-select: {pattern.text} leaves nothing out: no case has such a code")


def _slip(benchmarks: Sequence[Loaded], selection: Selection, missing: Sequence[str]) -> SelectError:
    """Return what is wrong; `missing` are the patterns at fault where the others select something."""
    known = list(dict.fromkeys(code for job in _jobs(benchmarks) for code in _levels(job)))
    if not known:
        return SelectError(
            f"--helmbench-select={selection.text}: nothing here has codes\n"
            "  hint: tests, rows and scenarios of packs are chosen with -k or by their node id"
        )
    words = missing or [pattern.text.removeprefix("~") for pattern in selection.patterns]
    near = [code for word in words for code in get_close_matches(word, known)]
    shown = ", ".join(list(dict.fromkeys(near))[:_NAMED] or known[:_NAMED])
    which = f": {', '.join(missing)}" if missing and len(selection.patterns) > 1 else ""
    match = "match" if len(missing) > 1 else "matches"
    return SelectError(
        f"--helmbench-select={selection.text}{which} {match} no case\n  hint: near are {shown}"
    )


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

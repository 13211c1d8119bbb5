"""Selections with a part that matches nothing, and options without a use, reported before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches

from pytest_helmbench.benchmarks.kind import Loaded
from pytest_helmbench.core.codes import CaseCode, SelectError, Selection
from pytest_helmbench.core.sample import Sample
from pytest_helmbench.engine.job import CaseJob
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.scoring.drawing import SampledCase, draw

_NAMED = 3
_OF_TREES = ("helmbench_add_no_context", "helmbench_strict_json")


def refuse_empty_selection(
    benchmarks: Sequence[Loaded], selection: Selection, note: Callable[[str], object]
) -> None:
    """Do nothing where every pattern matches some case of these benchmarks, or something broken that may hold one.

    Args:
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
        return  # whose cases are unknown: any pattern may mean them
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


def sample_of(loaded: Loaded, settings: Settings) -> Sample | None:
    """Return the sample of a benchmark; None where all is asked, or only pytest knows its cases.

    It is drawn from what `--helmbench-select` leaves. Paths, `-k` and marks narrow the sample itself.

    Raises:
        SampleError: Its cases have no components to cover in pairs.
    """
    if settings.sample is None:
        return None
    selection = settings.selection
    cases = {
        job.code: _drawable(job)
        for file in loaded.files
        for job in loaded.jobs(file, "", 1)
        if selection is None or selection.matches(job.parts)
    }
    rule, _, seed = settings.sample.partition("@")
    return draw(cases.values(), rule, int(seed or 1)) if cases else None


def sample_text(sample: Sample) -> str:
    """Return `132 of 660 cases (--helmbench-sample=0.2)`."""
    return f"{sample.cases} of {sample.of} cases ({sample.asked})"


def _drawable(job: CaseJob) -> SampledCase:
    pillar, behaviour, number, condition, context, perturbation = job.parts
    if pillar is None:
        unit = job.code if job.cluster is None else f"in {job.cluster}"
        return SampledCase(job.code, job.family, unit, 0)
    scenario = f"{pillar}-{behaviour}-{number}"
    cell = (condition or "", context or "", perturbation or "")
    return SampledCase(
        job.code, f"{pillar}-{behaviour}", f"{scenario}-{perturbation}", job.severity, scenario, cell
    )


def refuse_idle_options(benchmarks: Sequence[Loaded], is_given: Callable[[str], object]) -> None:
    """Refuse options of scenario trees where only tables run.

    Raises:
        SelectError: The command line has one, which would change nothing.
    """
    if not benchmarks or not all(loaded.root.is_file() for loaded in benchmarks):
        return
    for name in filter(is_given, _OF_TREES):
        flag = f"--{name.replace('_', '-')}"
        raise SelectError(f"{flag}: it is for scenario trees, and only tables run here\n  hint: leave it out")

"""The sample of a benchmark that a session asks: drawn from what its files define, the same in every process."""

from __future__ import annotations

from pytest_helmbench.benchmarks.kind import Loaded
from pytest_helmbench.core.sample import Sample
from pytest_helmbench.engine.job import CaseJob
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.scoring.drawing import SampledCase, draw

__all__ = ["sample_of", "sample_text"]


def sample_of(loaded: Loaded, settings: Settings) -> Sample | None:
    """Return the sample of a benchmark; None where all is asked, or nobody but pytest knows its cases.

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

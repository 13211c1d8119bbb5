"""Case engines, made for every role that runs cases; and the outcome of a case in a dry run."""

from __future__ import annotations

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome, Verdict
from pytest_helmbench.engine.case_engine import CaseEngine, CaseEngineSettings, Resumed, Share
from pytest_helmbench.engine.job import CaseJob
from pytest_helmbench.engine.work import RunnerSettings
from pytest_helmbench.gateway.backend import Backend
from pytest_helmbench.gateway.faults import Patience
from pytest_helmbench.judging.judge import JudgeTemplate
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.run.library import Library
from pytest_helmbench.run.targets import model_limits


@dataclass(frozen=True, slots=True)
class CaseEngines:
    """Makes the case engine of a process.

    Args:
        settings: Of the session.
        library: Its benchmarks.
        template: The judge's wording.
        share: What the process has of its session.
    """

    settings: Settings
    library: Library
    template: JudgeTemplate
    share: Share

    def make(self, backend: Backend, resumed: Resumed) -> CaseEngine:
        """Return a case engine, ready to start.

        Args:
            backend: The session's limiter and record.
            resumed: The runs that the cases belong to.
        """
        settings = self.settings
        limits = model_limits((target for item in self.library.loaded for target in item.targets), settings)
        shared = CaseEngineSettings(
            runner=RunnerSettings(settings.system_prompt, settings.strict_json, self.template),
            patience=Patience(settings.timeout_s, settings.case_timeout_s, settings.max_retries),
            recorded=settings.recorded_use,
            at_recorded_times=settings.replay_times,
            calls_in_flight={model_id: one.most for model_id, one in limits.items()},
            servers={model_id: one.server for model_id, one in limits.items() if one.server is not None},
        )
        return CaseEngine(self.library.loop, backend, shared, self.share, resumed)


def composed(job: CaseJob, system_prompt: str | None) -> Outcome:
    """Return the outcome of a dry run: the prompt was composed, nothing was called; what cannot run says why."""
    if job.skip_reason is not None:
        return Outcome(Verdict.SKIPPED, "unsupported", job.skip_reason)
    job.case(system_prompt)
    return Outcome(Verdict.SKIPPED, "dry run", "dry run")

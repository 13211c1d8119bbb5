"""The exit code of a session: gates, missing verdicts and broken files on top of pytest's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.pytest_side.say.ci import in_ci
from pytest_helmbench.pytest_side.say.run_names import run_names, scores_by_name
from pytest_helmbench.reports.headline import BUDGET_SPENT, Headline, SessionState, cause_of, headline
from pytest_helmbench.reports.tables import count_text
from pytest_helmbench.results.gates import GateReport, JudgedCases
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.run.coordinator import Coordinator
from pytest_helmbench.run.plan import Plan

if TYPE_CHECKING:
    from pytest_helmbench.results.comparing import RunComparison

_OK, _FAILED, _NO_TESTS = 0, 1, 5


class ExitRule:
    """Settles the exit code and says why, in the headline of the session.

    Args:
        coordinator: Of the session, closed.
        models_named: A model was named on the command line.
        only_collected: Nothing was to be run (`--collect-only`, `--fixtures`).
    """

    def __init__(self, coordinator: Coordinator, *, models_named: bool, only_collected: bool) -> None:
        self._coordinator = coordinator
        self._gates = coordinator.gates
        self._models_named = models_named
        self._only_collected = only_collected
        self._shortfalls: list[str] = []
        self.gated: GateReport | None = None

    def settle(
        self, status: int, *, unjudged_failures: int, left_over: int, foreign_skips: Mapping[str, int]
    ) -> int:
        """Return the exit code.

        Args:
            status: pytest's.
            unjudged_failures: Failed reports that are no judged case of ours.
            left_over: Items that were never run.
            foreign_skips: Items of ours that marks or other plugins skipped, by reason.
        """
        if status not in (_OK, _FAILED, _NO_TESTS):
            return status
        self._shortfalls += self._found(left_over, foreign_skips)
        plan = self._coordinator.book.plan
        if plan is not None and plan.shard is not None:
            return _FAILED if self._reasons else self._settle_share(plan, status, unjudged_failures)
        if plan is None or not self._has_gate:
            return _FAILED if self._reasons else status
        if plan.dry:
            return _FAILED if self._gates.asked else status
        report = self._judged(self._comparisons())
        self.gated = report
        holds = report.holds and not self._reasons
        if unjudged_failures and self._gates.asked and holds:
            self._shortfalls.append(
                f"{count_text(unjudged_failures, 'test')} ended without a verdict on the model"
                " (errors, broken files, Python tests)"
            )
        if not holds or unjudged_failures:
            return _FAILED if not holds or status == _FAILED else status
        return _OK if self._gates.asked else status

    @property
    def _reasons(self) -> list[str]:
        """Why the session fails whatever its scores are; a model is named where there are several."""
        plan, stopped = self._coordinator.book.plan, self._coordinator.stopped_models
        is_alone = plan is not None and len({run.model for run in plan.runs}) == 1
        named = {why: ", ".join(one for one in stopped if stopped[one] == why) for why in stopped.values()}
        stops = (f"{'' if is_alone else models} stopped: {why}".lstrip() for why, models in named.items())
        return [*self._shortfalls, *stops]

    @property
    def _has_gate(self) -> bool:
        return self._gates.asked or self._gates.min_coverage is not None

    def _judged(self, comparisons: Mapping[str, RunComparison]) -> GateReport:
        """Return how the runs of the session stand to its gates."""
        coordinator = self._coordinator
        scored = coordinator.book.scored
        cases = {
            name: JudgedCases.of(scored[run_id].facts)
            for run_id, name in run_names(coordinator).items()
            if run_id in scored
        }
        return self._gates.judge(scores_by_name(coordinator), comparisons, cases)

    def _settle_share(self, plan: Plan, status: int, unjudged_failures: int) -> int:
        """Return the exit code of a shard: what was judged wrong is data, as it is for a gate that holds."""
        if plan.dry or status == _NO_TESTS:
            return _OK if status == _NO_TESTS else status
        counts = RunCounts.sum(self._coordinator.book.tallies.values())
        left = plan.tests - counts.results - counts.no_cases
        if left > 0:
            self._coordinator.note(f"{left} of {plan.tests} cases of this shard have no result: it ends 1")
            return _FAILED
        if unjudged_failures:
            return status
        return _OK if plan.tests == counts.judged + counts.no_cases else status

    def headline(self) -> Headline | None:
        """Return how the session stands to its gates, or its scores; None where there is nothing to say."""
        coordinator, plan = self._coordinator, self._coordinator.book.plan
        benchmarks = {run.benchmark for run in plan.runs} if plan is not None else ()
        # A gate of a run says by itself that nothing was judged.
        known = None if self.gated is None else self._nothing_judged()
        said = [reason.partition("\n") for reason in self._reasons if reason != known]
        hints = [*(" ".join(hint.replace("hint: ", "").split()) for _, _, hint in said), coordinator.goes_on]
        counts = RunCounts.sum(coordinator.book.tallies.values())
        state = SessionState(
            tuple(reason for reason, _, _ in said),
            "; ".join(filter(None, dict.fromkeys(hints))),
            several_benchmarks=len(benchmarks) > 1,
            cause=cause_of(counts.reasons, counts.judged),
        )
        if self.gated is not None:
            return headline(self.gated, state)
        report = self._judged({}) if coordinator.book.tallies else GateReport(())
        scored = GateReport(tuple(run for run in report.runs if run.score is not None))
        return headline(scored, state, asked=False) if scored.runs or state.reasons else None

    def _comparisons(self) -> Mapping[str, RunComparison]:
        """Return how the runs stand to their baselines, by their names."""
        coordinator = self._coordinator
        if coordinator.baselines is None:
            return {}
        try:
            found = coordinator.compare()
        except HelmbenchError as error:
            coordinator.note(f"no comparison: {error}")
            return {}
        return {name: found[run_id] for run_id, name in run_names(coordinator).items() if run_id in found}

    def _found(self, left_over: int, foreign_skips: Mapping[str, int]) -> list[str]:
        """Return why a session without a failed item is no success."""
        coordinator = self._coordinator
        reasons = []
        if left_over:
            reasons.append(f"{left_over} items were never run: their worker died and no other took them")
        if coordinator.limiter is not None and coordinator.limiter.refused_for_budget:
            reasons.append(BUDGET_SPENT)
        if coordinator.overdrawn is not None:
            reasons.append(coordinator.overdrawn)
        if coordinator.book.store is not None and coordinator.book.store.fault is not None:
            dropped = coordinator.book.store.dropped
            lost = f": {dropped} {'row is' if dropped == 1 else 'rows are'} lost" if dropped else ""
            reasons.append(f"not everything was stored{lost}")
        if coordinator.book.store is not None and coordinator.book.store.displaced is not None:
            reasons.append("the session was stopped: its database could not be written any more")
        if (unjudged := self._nothing_judged()) is not None:
            reasons.append(unjudged)
        elif not (reasons or coordinator.stopped_models) and self._all_skipped(foreign_skips):
            reasons.append("nothing was judged: every case was skipped (--helmbench-allow-skipped ends 0)")
        return reasons

    @property
    def _wanted(self) -> str:
        """What asks for verdicts, in words; empty where nothing does."""
        if self._coordinator.settings.require_run:
            return "--helmbench-require-run"
        return "a gate" if self._has_gate else ""

    def _nothing_judged(self) -> str | None:
        """Return why nothing can be said about a model, where that is asked or its key is missing in CI."""
        if self._only_collected:
            return None
        settings, wanted = self._coordinator.settings, self._wanted
        plan = self._coordinator.book.plan
        unjudged = self._unjudged_models()
        if not unjudged and plan is not None:
            return None
        # Some models judged and others not: said only where it was asked for.
        of_all = plan is None or len(unjudged) == len({run.model for run in plan.runs})
        keyless = {run.why_not: run.variable for run in plan.runs if run.variable} if plan is not None else {}
        if not of_all:
            return f"nothing was judged of {', '.join(unjudged)} ({wanted})" if wanted else None
        if settings.dry_run or not keyless:
            return f"nothing was judged ({wanted})" if wanted else None
        if wanted or (in_ci() and self._models_named):
            return f"nothing was judged: {'; '.join(keyless)}\nhint: set {' and '.join(keyless.values())}"
        return None

    def _all_skipped(self, foreign_skips: Mapping[str, int]) -> bool:
        """Return whether every case that was run was skipped, by whomever, though there was a model to ask."""
        book, settings = self._coordinator.book, self._coordinator.settings
        if book.plan is None or book.plan.dry:
            return False
        counts = RunCounts.sum(book.tallies.values())
        skipped = counts.results == counts.verdicts[Verdict.SKIPPED]
        if not skipped or not (counts.results or foreign_skips):
            return False
        for reason, often in foreign_skips.items():
            self._coordinator.note(f"skipped: {often} × {reason} (a mark or another plugin)")
        return not settings.allow_skipped

    def _unjudged_models(self) -> list[str]:
        """Return the planned models of which no case was judged."""
        book = self._coordinator.book
        if book.plan is None:
            return []
        ids = book.run_ids
        judged = {
            run.model
            for run in book.plan.runs
            if (run_id := ids.get(run.key)) is not None and book.tallies[run_id].judged
        }
        asked = (run.model for run in book.plan.runs if run.tests or book.plan.shard is None)
        return list(dict.fromkeys(model for model in asked if model not in judged))

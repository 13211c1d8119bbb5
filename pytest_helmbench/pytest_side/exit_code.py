"""The exit code of a session: gates and causes of failure on top of pytest's own exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.pytest_side.say.printing import in_ci
from pytest_helmbench.pytest_side.say.run_names import planned_names, run_names, scores_by_name
from pytest_helmbench.reports.headline import BUDGET_SPENT, Headline, SessionState, cause_of, headline
from pytest_helmbench.reports.tables import count_text
from pytest_helmbench.results.gates import GateReport, JudgedCases
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.results.run_report import better_constant
from pytest_helmbench.run.coordinator import Coordinator
from pytest_helmbench.run.plan import Plan, PlannedRun

if TYPE_CHECKING:
    from pytest_helmbench.results.comparing import RunComparison

_OK, _FAILED, _NO_TESTS = 0, 1, 5


@dataclass(frozen=True, slots=True)
class Session:
    """A session that has ended, with all that decides its exit code.

    Args:
        coordinator: Of the session, closed.
        status: The exit code that pytest would return.
        models_named: A model was named on the command line.
        only_collected: Nothing was to be run (`--collect-only`, `--fixtures`).
        unjudged_failures: Node ids of failed reports, those of cases that were judged wrong left out.
        foreign_skips: How many cases marks or other plugins skipped, by reason.
        gated: How the runs stand to their gates; None without gates, in a shard and in a dry run.
    """

    coordinator: Coordinator
    status: int
    models_named: bool
    only_collected: bool
    unjudged_failures: Sequence[str]
    left_over: int
    foreign_skips: Mapping[str, int]
    stepwise: bool = False
    gated: GateReport | None = None

    @property
    def plan(self) -> Plan | None:
        """The selected cases; None where the session ended before it had any."""
        return self.coordinator.runs.plan

    @property
    def has_gate(self) -> bool:
        """Whether a score or a coverage must be reached."""
        return self.coordinator.gates.any

    @property
    def asked_runs(self) -> Sequence[PlannedRun]:
        """The planned runs, in a shard those with a case."""
        plan = self.plan
        return () if plan is None else [run for run in plan.runs if run.tests or plan.shard is None]

    def has_judged(self, run: PlannedRun) -> bool:
        """Return whether a case of a planned run was judged."""
        run_id = self.coordinator.runs.run_ids.get(run.key)
        return run_id is not None and self.coordinator.runs.tallies[run_id].judged > 0

    @property
    def counts(self) -> RunCounts:
        """The counts of all runs."""
        return RunCounts.sum(self.coordinator.runs.tallies.values())


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of failure, whatever the scores are.

    Args:
        text: A clause without a full stop.
        hint: What to do about it; empty for nothing.
        only_alone: It counts only where no cause before it applies.
        is_of_gates: A gate that does not hold states it as well.
        is_of_tests: It says nothing of a model.
    """

    text: str
    hint: str = ""
    only_alone: bool = False
    is_of_gates: bool = False
    is_of_tests: bool = False


def settled(session: Session) -> tuple[int, Headline | None, GateReport | None]:
    """Settle the end of a session; its summary notes why a comparison could not be made.

    Returns:
        The exit code; the headline, None where there is nothing to say; how each run stands to its gates, None
        without gates, in a shard and in a dry run.
    """
    plan = session.plan
    if _has_run(session) and session.coordinator.has_left_calls:
        status = _OK if session.coordinator.settings.batch == 0 else _FAILED
        return status, _headline(session, []), None  # no gate is decided
    if _has_run(session) and session.has_gate and plan is not None and plan.shard is None and not plan.dry:
        session = replace(session, gated=_judged(session.coordinator, _comparisons(session.coordinator)))
    causes = _causes(session)
    if _has_run(session) and all(cause.only_alone for cause in causes) and _is_all_skipped(session):
        for reason, count in session.foreign_skips.items():
            session.coordinator.note(f"skipped: {count} × {reason} (a mark or another plugin)")
    return _exit_code(session, causes), _headline(session, causes), session.gated


def _has_run(session: Session) -> bool:
    """Return whether pytest ran to its end."""
    return session.status in (_OK, _FAILED, _NO_TESTS)


def _causes(session: Session) -> list[Cause]:
    """Return the causes of failure of a session; of one that did not run to its end, only the stopped models."""
    found = [_models_stopped(session)]
    if _has_run(session):
        found = [*_losses(session), _nothing_judged(session), *found]
        found += [_all_skipped(session), _failures_without_verdict(session)]
    causes: list[Cause] = []
    for cause in filter(None, found):
        if not (cause.only_alone and causes):
            causes.append(cause)
    return causes


def _exit_code(session: Session, causes: list[Cause]) -> int:
    plan, asked = session.plan, session.coordinator.gates.asked
    if not _has_run(session):
        return session.status
    if plan is not None and plan.shard is not None:
        return _FAILED if causes else _exit_code_of_shard(session, plan)
    if plan is not None and plan.dry and session.has_gate:
        return _FAILED if asked else session.status
    if causes or (session.gated is not None and not session.gated.holds):
        return _FAILED
    return _OK if asked and session.gated is not None else session.status


def _exit_code_of_shard(session: Session, plan: Plan) -> int:
    """Return the exit code of a shard: wrong verdicts are data, as they are for a gate that holds."""
    if plan.dry or session.status == _NO_TESTS:
        return _OK if session.status == _NO_TESTS else session.status
    counts = session.counts
    left = plan.tests - counts.results - counts.no_cases
    if left > 0:
        session.coordinator.note(f"{left} of {plan.tests} cases of this shard have no result: it ends 1")
        return _FAILED
    if session.unjudged_failures:
        return session.status
    return _OK if plan.tests == counts.judged + counts.no_cases else session.status


def _headline(session: Session, causes: list[Cause]) -> Headline | None:
    coordinator, plan, gated = session.coordinator, session.plan, session.gated
    benchmarks = {run.benchmark for run in plan.runs} if plan is not None else ()
    said = [cause for cause in causes if gated is None or not cause.is_of_gates]
    counts = session.counts
    state = SessionState(
        tuple(cause.text for cause in said),
        "; ".join(filter(None, dict.fromkeys([*(cause.hint for cause in said), coordinator.goes_on]))),
        several_benchmarks=len(benchmarks) > 1,
        of_tests=bool(said) and all(cause.is_of_tests for cause in said),
        cause=cause_of(counts.reasons, counts.judged),
        constant=_constant(coordinator) if len(coordinator.runs.tallies) > 1 == len(benchmarks) else None,
        selected=_selected(plan, stepwise=session.stepwise) if plan is not None else "",
    )
    if gated is not None:
        return headline(gated, state)
    report = _judged(coordinator, {}) if coordinator.runs.tallies else GateReport(())
    scored = GateReport(tuple(run for run in report.runs if run.score is not None))
    if scored.runs or state.reasons:
        return headline(scored, state, asked=False)
    if not (report.runs and state.selected):
        return None
    subject = report.runs[0].name if len(report.runs) == 1 else ""
    passed = f"{counts.verdicts[Verdict.PASSED]} {state.selected} passed"
    return Headline(None, subject, passed, state.cause, state.hint)


def _selected(plan: Plan, *, stepwise: bool) -> str:
    """Return `of the 7 cases that failed last`, or how else they were chosen; empty for a whole benchmark."""
    count = count_text(plan.tests, "case")
    if plan.scope == "by_outcome":
        return f"of the {count} {'from the last failure on' if stepwise else 'that failed last'}"
    return f"of the {count_text(plan.tests, 'selected case')}" if plan.scope == "selected" else ""


def _constant(coordinator: Coordinator) -> Fraction | None:
    """Return what the better constant answer scores in the benchmark of a session; None where that is not known."""
    scored = next(iter(coordinator.runs.scored.values()), None)
    is_wide = coordinator.settings.add_no_context
    return None if scored is None else better_constant(scored.facts, add_no_context=is_wide)


def _judged(coordinator: Coordinator, comparisons: Mapping[str, RunComparison]) -> GateReport:
    """Return how the runs of a session stand to its gates."""
    scored = coordinator.runs.scored
    cases = {
        name: JudgedCases.of(scored[run_id].facts)
        for run_id, name in run_names(coordinator).items()
        if run_id in scored
    }
    return coordinator.gates.judge(dict(scores_by_name(coordinator)), comparisons, cases)


def _comparisons(coordinator: Coordinator) -> Mapping[str, RunComparison]:
    """Return how the runs stand to their baselines, by their names."""
    if coordinator.baselines is None:
        return {}
    try:
        found = coordinator.compare()
    except HelmbenchError as error:
        coordinator.note(f"no comparison: {error}")
        return {}
    named = {name: found[run_id] for run_id, name in run_names(coordinator).items() if run_id in found}
    return coordinator.baselines.with_lost(named)


def _losses(session: Session) -> Iterator[Cause]:
    """Yield what the session has lost: items, what the budget could not pay, rows, its database."""
    coordinator, store = session.coordinator, session.coordinator.runs.store
    if session.left_over:
        yield Cause(f"{session.left_over} items were never run: their worker died and no other took them")
    if coordinator.limiter is not None and coordinator.limiter.refused_for_budget:
        yield Cause(BUDGET_SPENT)
    if (sentence := coordinator.overdrawn) is not None:
        text, _, hint = sentence.partition("\n")
        yield Cause(text, " ".join(hint.replace("hint: ", "").split()))
    if store is not None and store.fault is not None:
        lost = f": {count_text(store.dropped, 'row is', 'rows are')} lost" if store.dropped else ""
        yield Cause(f"not everything was stored{lost}")
    if store is not None and store.displaced is not None:
        yield Cause("the session was stopped: its database could not be written any more")


def _nothing_judged(session: Session) -> Cause | None:
    """Return what has no verdict: a model, a benchmark too with --helmbench-require-run, or a key is missing in CI."""
    plan, settings = session.plan, session.coordinator.settings
    unjudged = _unjudged_models(session)
    if session.only_collected:
        return None
    if plan is not None and not unjudged:
        named = _unjudged_benchmarks(session, plan) if settings.require_run else []
        text = f"nothing was judged of {', '.join(named)} (--helmbench-require-run)"
        return Cause(text) if named else None
    required_by = "--helmbench-require-run" if settings.require_run else "a gate" if session.has_gate else ""
    of_some = plan is not None and len(unjudged) < len({run.model for run in plan.runs})
    keyless = {run.why_not: run.variable for run in plan.runs if run.variable} if plan is not None else {}
    if keyless and not (of_some or settings.dry_run) and (required_by or (in_ci() and session.models_named)):
        hint = f"set {' and '.join(keyless.values())}"
        return Cause(f"nothing was judged: {'; '.join(keyless)}", hint, is_of_gates=True)
    models = f" of {', '.join(unjudged)}" if of_some else ""
    return Cause(f"nothing was judged{models} ({required_by})", is_of_gates=True) if required_by else None


def _unjudged_models(session: Session) -> list[str]:
    """Return the planned models of which no case was judged."""
    runs = () if session.plan is None else session.plan.runs
    judged = {run.model for run in runs if session.has_judged(run)}
    return list(dict.fromkeys(run.model for run in session.asked_runs if run.model not in judged))


def _unjudged_benchmarks(session: Session, plan: Plan) -> list[str]:
    """Return the runs of which no case was judged, and what was named and has no case at all."""
    library, names = session.coordinator.library, planned_names(session.coordinator, plan)
    found = [names[run.key] for run in session.asked_runs if not session.has_judged(run)]
    found += [loaded.outline.name for loaded in library.loaded if not (loaded.count() or loaded.broken)]
    return found + [path.name for path in library.named_for_nothing]


def _models_stopped(session: Session) -> Cause | None:
    """Return why models were stopped; those are named where others go on."""
    plan, stopped = session.plan, session.coordinator.stopped_models
    if not stopped:
        return None
    are_all = plan is not None and {run.model for run in plan.runs} == {*stopped}
    found, hints = [], []
    for why in dict.fromkeys(stopped.values()):
        models = ", ".join(model for model in stopped if stopped[model] == why)
        text, _, hint = why.partition("\n  hint: ")
        text = "; ".join(map(str.strip, text.splitlines()))
        found.append(f"{'' if are_all else models} stopped: {text}".lstrip())
        hints.append(" ".join(hint.split()))
    return Cause("; ".join(found), "; ".join(filter(None, dict.fromkeys(hints))))


def _all_skipped(session: Session) -> Cause | None:
    if session.coordinator.settings.allow_skipped or not _is_all_skipped(session):
        return None
    text = "nothing was judged: every case was skipped (--helmbench-allow-skipped ends 0)"
    return Cause(text, only_alone=True)


def _is_all_skipped(session: Session) -> bool:
    """Return whether every case that was run was skipped, by any plugin, though there was a model to call."""
    if session.plan is None or session.plan.dry:
        return False
    counts = session.counts
    skipped = counts.results == counts.verdicts[Verdict.SKIPPED]
    return skipped and bool(counts.results or session.foreign_skips)


def _failures_without_verdict(session: Session) -> Cause | None:
    """Return that tests failed for other reasons than a wrong verdict, where the gates hold."""
    gated = session.gated
    if gated is None or not (gated.holds and session.coordinator.gates.asked and session.unjudged_failures):
        return None
    failed = list(dict.fromkeys(session.unjudged_failures))
    more = f" and {count_text(len(failed) - 1, 'more test')}" if len(failed) > 1 else ""
    said = f"{failed[0]}{more} ended without a verdict on the model (errors, broken files, Python tests)"
    return Cause(said, only_alone=True, is_of_tests=True)

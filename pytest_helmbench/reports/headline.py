"""The headline of a session: whether its gates hold, why not, and what to do next; in one wording everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.reports.comparison_lines import (
    change_size,
    comparison_notes,
    conclusion_text,
    p_text,
)
from pytest_helmbench.reports.tables import count_text, share
from pytest_helmbench.results.comparing import INCONCLUSIVE_PASSES
from pytest_helmbench.results.gates import GateReport, RunGates
from pytest_helmbench.scoring.changes import Conclusion
from pytest_helmbench.scoring.run_score import RunScore, Score
from pytest_helmbench.scoring.thresholds import GateVerdict, gate_figures, wanted

if TYPE_CHECKING:
    from pytest_helmbench.results.comparing import FlippedCase, RunComparison
    from pytest_helmbench.scoring.comparison import ScopeChange

_SHOWN = 5
_RUNS_SHOWN = 3
_FAILING = (Conclusion.REGRESSED, Conclusion.COLLAPSED)


@dataclass(frozen=True, slots=True)
class SessionState:
    """What a session knows beside its scores.

    Args:
        reasons: Why it fails whatever its scores are: a spent budget, nothing judged, a lost row.
        hint: How it goes on; empty where nothing is left.
        several_benchmarks: The scores of its runs do not compare.
        cause: Why no case was judged: `unreachable 3`; empty where some were.
    """

    reasons: tuple[str, ...] = ()
    hint: str = ""
    several_benchmarks: bool = False
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Headline:
    """How a run, or a session, stands.

    Args:
        holds: None where no gate was asked for and nothing has failed.
        subject: Name of the run, or how many runs; empty for a session without one.
        said: The finding: what is missed, or the score. Without a full stop.
        cause: Why nothing was judged, or what stopped the session; empty where `said` needs none.
        hint: What to do next; empty for nothing.
        runs: Of a session: the headlines of its runs; empty for a run.
        gates: Of a run: what it was compared with; None for a session.
    """

    holds: bool | None
    subject: str
    said: str
    cause: str = ""
    hint: str = ""
    runs: tuple[Headline, ...] = ()
    gates: RunGates | None = None

    @property
    def text(self) -> str:
        """The headline in a line: `✗ FAILS   atlas-mini: 15 of 3240 cases not judged (99.5 %, wanted 100 %)`."""
        mark = {None: "", True: "✓ HOLDS   ", False: "✗ FAILS   "}[self.holds]
        return mark + ": ".join(filter(None, (self.subject, self.said, self.cause)))

    @property
    def comparisons(self) -> tuple[RunComparison, ...]:
        """With the baselines, one per run that has one."""
        found = [one.gates.comparison for one in (self, *self.runs) if one.gates is not None]
        return tuple(comparison for comparison in found if comparison is not None)

    @property
    def newly_failing(self) -> tuple[FlippedCase, ...]:
        """Cases that passed in the baseline and fail now, those with most at risk first; of a session, of all runs."""
        return tuple(case for found in self.comparisons for case in found.newly_failing)

    @property
    def newly_passing(self) -> tuple[FlippedCase, ...]:
        """Cases that failed in the baseline and pass now, likewise."""
        return tuple(case for found in self.comparisons for case in found.newly_passing)

    @property
    def gone(self) -> tuple[str, ...]:
        """Codes of the cases of the baseline that the benchmark's files no longer define."""
        return tuple(dict.fromkeys(code for found in self.comparisons for code in found.gone))


_NOTHING_ELSE = SessionState()


def headline(report: GateReport, state: SessionState = _NOTHING_ELSE, *, asked: bool = True) -> Headline:
    """Return the headline of a session, with those of its runs.

    Args:
        report: How its runs stand.
        state: What else decides.
        asked: A gate was asked for; without one a session only fails by its state.
    """
    runs = tuple(run_headline(run, asked=asked) for run in report.runs)
    failing = [run for run in runs if run.holds is False]
    stops = "; ".join(state.reasons)
    cause = stops or state.cause
    first = failing[0] if failing else runs[0] if runs else Headline(None, "", "")
    if len(failing) > 1:
        said = "; ".join(f"{run.subject}: {run.said}" for run in failing[:_RUNS_SHOWN])
        said += f"; {len(failing) - _RUNS_SHOWN} more" if len(failing) > _RUNS_SHOWN else ""
        return Headline(False, f"{len(failing)} of {len(runs)} runs", said, cause, state.hint, runs)
    if failing:
        return Headline(False, first.subject, first.said, cause, state.hint, runs)
    if stops or (asked and not runs):
        subject = first.subject if len(runs) == 1 else ""
        return Headline(False, subject, stops or "nothing was judged", "", state.hint, runs)
    if len(runs) < 2:
        return Headline(True if asked else None, first.subject, first.said, cause, state.hint, runs)
    if asked:
        return Headline(True, f"all {len(runs)} runs", _scores(runs), "", state.hint, runs)
    if state.several_benchmarks:
        subject = f"{len(runs)} runs" if len(runs) > _RUNS_SHOWN else ""
        return Headline(None, subject, _scores(runs), "", state.hint, runs)
    best = max(report.runs, key=lambda run: (run.score is not None and run.score.score) or 0)
    return Headline(None, "best", f"{best.name} {score_text(best)}", "", state.hint, runs)


def run_headline(run: RunGates, *, asked: bool = True) -> Headline:
    """Return the headline of one run; see `headline`."""
    if not asked:
        return Headline(None, run.name, score_text(run), gates=run)
    missed = tuple(dict.fromkeys(_missed(run)))
    if missed or not run.holds:
        return Headline(False, run.name, "; ".join(missed), gates=run)
    parts = [score_text(run)]
    parts += [
        f"{one.threshold.code} threshold {gate_figures(one.score, one.threshold.least)[1]}".lstrip()
        for one in run.verdicts
    ]
    if run.comparison is not None and run.comparison.scopes:
        parts.append(_against(run.comparison))
    return Headline(True, run.name, ", ".join(parts), gates=run)


def figure(score: Score, value: str = "") -> str:
    """Return `87.1 % (84.1 – 89.6)`, with a word of caution where the interval rests on few clusters.

    Args:
        score: Of a run or a part.
        value: With more decimals; empty for one.
    """
    interval = score.interval
    if interval is None:
        return value or share(score.score)
    caution = f", only {count_text(score.clusters, score.cluster)}" if score.few_clusters else ""
    return f"{value or share(score.score)} ({100 * interval.low:.1f} – {100 * interval.high:.1f}{caution})"


def score_text(run: RunGates) -> str:
    """Return the score of a run as a line may end: `87.1 % (84.1 – 89.6), 15 of 3240 cases not judged`."""
    if run.score is None or run.score.score is None:
        return "no score: nothing that counts was judged"
    full = (run.score.total.coverage or 0) >= 1
    return figure(run.score.total) + ("" if full else f", {not_judged(run, run.score)}")


def not_judged(run: RunGates, score: RunScore) -> str:
    """Return `15 of 3240 cases not judged`; rows, where cases were not counted."""
    if run.cases is not None:
        return f"{run.cases.planned - run.cases.judged} of {count_text(run.cases.planned, 'case')} not judged"
    total = score.total
    return f"{total.planned_rows - total.judged_rows} of {count_text(total.planned_rows, 'row')} not judged"


def _scores(runs: Sequence[Headline]) -> str:
    """Return the scores of a few runs, and of more their span."""
    gates = [run.gates for run in runs if run.gates is not None]
    if len(gates) <= _RUNS_SHOWN:
        return ", ".join(f"{run.name} {score_text(run)}" for run in gates)
    known = [run.score.score for run in gates if run.score is not None and run.score.score is not None]
    span = f"from {share(min(known))} to {share(max(known))}" if known else "none"
    without = f", {len(gates) - len(known)} without a score" if len(known) < len(gates) else ""
    return f"scores {span}{without}"


def _against(found: RunComparison) -> str:
    words = "; ".join(
        dict.fromkeys(conclusion_text(found, scope).partition(";")[0] for scope in found.scopes)
    )
    passes = f", {INCONCLUSIVE_PASSES}" if found.verdict is Conclusion.INCONCLUSIVE else ""
    return f"{_baseline(found)}: {words}{passes if found.has_too_little_in_common else ''}"


def _baseline(found: RunComparison) -> str:
    return "its baseline" if found.baseline is None else found.baseline.name


def _missed(run: RunGates) -> Iterator[str]:
    """Yield what a run misses of what was asked."""
    if run.score is None:
        yield "the run has no score"
        return
    coverage = run.score.total.coverage or 0
    is_short = coverage < run.min_coverage
    if is_short:
        covers = gate_figures(run.score.total.coverage or run.min_coverage * 0, run.min_coverage)[0]
        yield f"{not_judged(run, run.score)} ({covers}, wanted {wanted(run.min_coverage)})"
    for verdict in run.verdicts:
        below = verdict.score is not None and verdict.score < verdict.threshold.least
        if not verdict.holds and (below or not is_short):
            yield _below(verdict) if is_short else verdict.reason
    if run.comparison is not None and run.worse:
        yield from _worse(run.comparison)
    elif run.worse:
        yield "it was not compared with its baseline"


def _below(verdict: GateVerdict) -> str:
    value, least = gate_figures(verdict.score, verdict.threshold.least)
    return f"{verdict.threshold.code} score {value}, below the threshold of {least}".lstrip()


def _worse(found: RunComparison) -> Iterator[str]:
    """Yield why a comparison fails a gate."""
    baseline = _baseline(found)
    if found.gone and not found.allows_gone:
        are = "case is" if len(found.gone) == 1 else "cases are"
        yield f"{len(found.gone)} {are} gone from the benchmark since {baseline}"
    if not found.scopes:
        yield found.reason
    for scope in found.scopes:
        if found.verdict_of(scope) in _FAILING:
            words = conclusion_text(found, scope).partition(";")[0]
            of = f"{scope.code} " if scope.code else ""
            yield f"{of}{change_size(scope)} against {baseline}, {p_text(scope.change.p)}: {words}"
    compared = {scope.code for scope in found.scopes}
    for limit in found.limits if found.scopes else ():
        if limit.code not in compared:
            yield f"no case of {limit.code} is in both runs"


def gate_block(found: Headline) -> list[str]:
    """Return the block that ends a session with a gate: the headline, then what it rests on, then what to do next.

    Args:
        found: Of a session. A block of several runs has a headline for each.
    """
    lines = [] if len(found.runs) > 1 else [found.text]
    for run in found.runs:
        lines += [run.text] if len(found.runs) > 1 else []
        lines += _run_block(run.gates) if run.gates is not None else []
    lines += [_line("cause", found.cause)] if len(found.runs) > 1 and found.cause else []
    return [*lines, _line("next", found.hint)] if found.hint else lines


def _line(label: str, text: str) -> str:
    return f"  {label:<10} {text}"


def _run_block(run: RunGates) -> Iterator[str]:
    for verdict in run.verdicts:
        part = None if run.score is None else run.score.of(verdict.threshold.code)
        if part is not None:
            value, least = gate_figures(verdict.score, verdict.threshold.least)
            label = f"score {verdict.threshold.code}".rstrip()
            yield _line(label, f"{figure(part, value)}, threshold {least}: {_reached(verdict)}")
    if run.comparison is None:
        return
    found = run.comparison
    for scope in found.scopes:
        label = f"baseline {scope.code}".rstrip()
        yield _line(label, f"{_baseline(found)}, {share(scope.baseline_score)}: {_change(found, scope)}")
    for note in comparison_notes(found):
        yield _line("", note)
    for label, codes in (
        ("gone", found.gone),
        ("newly failing", [f"{one.code} (severity {one.severity})" for one in found.newly_failing]),
    ):
        if codes:
            more = " …" if len(codes) > _SHOWN else ""
            yield f"  {label} {len(codes)}: {', '.join(codes[:_SHOWN])}{more}"
    if found.gone and not found.allows_gone:
        yield _line("", "accept that with --helmbench-allow-gone, or with a new baseline")


def _reached(verdict: GateVerdict) -> str:
    """Return whether a score reaches its threshold, and how sure that is."""
    if verdict.score is None or verdict.score < verdict.threshold.least:
        return "not reached" + (", within chance" if verdict.inconclusive else "")
    doubts = ["but not beyond chance"] if verdict.inconclusive else []
    doubts += ["and a second run may miss it"] if verdict.unstable else []
    return ", ".join(("reached", *doubts))


def _change(found: RunComparison, scope: ScopeChange) -> str:
    p = f", {p_text(scope.change.p)}" if found.verdict_of(scope) in _FAILING else ""
    return f"{change_size(scope)}{p}: {conclusion_text(found, scope)}"

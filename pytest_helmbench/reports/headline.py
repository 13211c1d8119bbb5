"""The headline of a session: whether its gates hold, why not, and what to do next. All reports have this wording."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from textwrap import shorten
from typing import TYPE_CHECKING

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.reports.comparison_lines import (
    ACCEPT_GONE,
    baseline_name,
    change_size,
    comparison_notes,
    conclusion_text,
    flipped_codes,
    lost_parts,
    missing_parts,
    p_text,
    shown_change,
    span,
)
from pytest_helmbench.reports.tables import count_text, labelled, reasons_text, share
from pytest_helmbench.results.comparing import INCONCLUSIVE_PASSES
from pytest_helmbench.results.gates import GateReport, JudgedCases, RunGates
from pytest_helmbench.scoring.changes import LEAST_CHANGED, Conclusion
from pytest_helmbench.scoring.run_score import RunScore, Score
from pytest_helmbench.scoring.thresholds import GateVerdict, breach_text, gate_figures, wanted

if TYPE_CHECKING:
    from pytest_helmbench.results.comparing import PlannedCase, RunComparison

BUDGET_SPENT = "the budget was spent: what it could not pay was skipped"
_SHOWN = 5
_RUNS_SHOWN = 3
_LONGEST = 100
_LONGEST_NAME = 40
_AND = " · "
_PROVIDER = re.compile(r"the provider (at \S+ )?(?=answered|cannot)")


@dataclass(frozen=True, slots=True)
class SessionState:
    """The state of a session beside its scores.

    Args:
        reasons: Causes of failure beside the scores: a spent budget, nothing judged, a lost row.
        hint: How to resume the session; empty where nothing is left.
        several_benchmarks: The scores of its runs do not compare.
        cause: Why cases have no verdict (`cause_of`).
        constant: Score of the better constant answer, where the runs are of one benchmark; None where unknown.
        selected: `of the 7 selected cases`; empty for whole runs.
        of_tests: The causes say nothing of a model: its name does not stand before them.
    """

    reasons: tuple[str, ...] = ()
    hint: str = ""
    several_benchmarks: bool = False
    cause: str = ""
    constant: Fraction | None = None
    selected: str = ""
    of_tests: bool = False


@dataclass(frozen=True, slots=True)
class Headline:
    """How a run, or a session, stands.

    Args:
        holds: None where no gate was asked for and nothing has failed.
        subject: Name of the run, or number of runs; empty for a session without one.
        said: The finding: what is missed, or the score. Without a full stop.
        cause: Why nothing was judged, or what stopped the session; empty where `said` needs none.
        hint: What to do next; empty for nothing.
        runs: Headlines of the runs of a session; empty for a run.
        gates: Gates of a run; None for a session.
        is_open: Its gate does not hold, because it could not have failed.
        cause_first: The cause explains the finding: a model was stopped, the budget is spent.
    """

    holds: bool | None
    subject: str
    said: str
    cause: str = ""
    hint: str = ""
    runs: tuple[Headline, ...] = ()
    gates: RunGates | None = None
    is_open: bool = False
    cause_first: bool = False

    @property
    def by_run(self) -> tuple[Headline, ...]:
        """Those of several runs, with the session's cause; its own of one run, or where it fails and no run does."""
        fails_alone = self.holds is False and all(run.holds is not False for run in self.runs)
        if len(self.runs) < 2 or fails_alone:
            return (self,)
        return tuple(
            replace(run, cause="" if run.holds else self.cause, cause_first=self.cause_first)
            for run in self.runs
        )

    @property
    def text(self) -> str:
        """The headline in a line of 100 letters: `✗ FAILS   atlas-mini: 50.0 %, threshold 85.0 · worse by 39.3`.

        Without room, clauses of a cause are left out, and the first is cut at a word.
        """
        mark = {None: "", True: "✓ HOLDS   ", False: "✗ FAILS   "}[self.holds]
        mark = "? INCONCLUSIVE   " if self.is_open else mark
        start = f"{mark}{_in_short(self.subject)}: " if self.subject else mark
        if not self.cause_first:
            first, second = self.said, self.cause
        else:
            first, second = _brief(self.cause, _LONGEST - len(start)), self.said
        whole = start + ": ".join(filter(None, (first, second)))
        return whole if len(whole) <= _LONGEST else start + first

    @property
    def cause_in_full(self) -> str:
        """The cause, where the headline has no room for all of it."""
        return "" if self.cause.replace("the provider ", "") in self.text else self.cause

    @property
    def newly_failing(self) -> tuple[PlannedCase, ...]:
        """Cases that passed in the baseline and fail now, the most points lost first; of a session, of all runs."""
        gates = [one.gates for one in (self, *self.runs) if one.gates is not None]
        return tuple(
            case for run in gates if run.comparison is not None for case in run.comparison.newly_failing
        )


def cause_of(reasons: Mapping[str, int], judged: int) -> str:
    """Return why cases have no verdict: a spent budget, or the counts of the reasons where nothing was judged."""
    if reasons.get("budget"):
        return BUDGET_SPENT
    return "" if judged else reasons_text(reasons)


def headline(report: GateReport, state: SessionState | None = None, *, asked: bool = True) -> Headline:
    """Return the headline of a session, with those of its runs.

    Args:
        state: What else decides; None for nothing.
        asked: A gate was asked for; without one a session only fails by its state.
    """
    state = state or SessionState()
    runs = tuple(run_headline(run, asked=asked) for run in report.runs)
    failing = [run for run in runs if run.holds is False]
    failing = [run for run in failing if not run.is_open] or failing
    stops = "; ".join(state.reasons)
    holds = False if failing or stops or (asked and not runs) else asked or None
    subject, said, cause = runs[0].subject if len(runs) == 1 else "", "nothing was judged", ""
    if len(failing) > 1:
        subject, cause = f"{len(failing)} of {len(runs)} runs", stops or state.cause
        gravest = [f"{_in_short(run.subject)}: {run.said.partition(_AND)[0]}" for run in failing]
        said = _as_fits(gravest, len(subject))
    elif failing:
        subject, said, cause = failing[0].subject, failing[0].said, stops or state.cause
    elif stops:
        subject, said, cause = "" if state.of_tests else subject, "", stops
    elif len(runs) == 1:
        said, cause = runs[0].said, state.cause
    elif holds is None and (first := _highest(report.runs, state)) is not None:
        subject, said = "highest", f"{_in_short(first.name)} {score_text(first)}"
    elif runs:
        all_of = "all " if holds else ""
        said, cause = _scores(report.runs), state.cause
        subject = f"{all_of}{len(runs)} runs" if holds or said.startswith("scores ") else ""
    said = _of_selected(said, state.selected) if runs and not stops else said
    is_open = bool(failing) and failing[0].is_open and not stops
    cause = cause.removeprefix(f"{subject} ")
    scored = any(
        run.score is not None and run.score.score is not None for run in report.runs if not run.holds
    )
    cause_first = bool(cause) and (not said or (bool(failing) and not (scored and stops)))
    return Headline(holds, subject, said, cause, state.hint, runs, is_open=is_open, cause_first=cause_first)


def _of_selected(said: str, selected: str) -> str:
    """Return a finding with what it is of, behind the score that it begins with."""
    score, sign, rest = said.partition(" %")
    if not selected:
        return said
    return (
        f"{score} % {selected}{rest}" if sign and score.replace(".", "").isdigit() else f"{said} ({selected})"
    )


def _highest(runs: Sequence[RunGates], state: SessionState) -> RunGates | None:
    """Return the run of one benchmark with the highest score; None for a tie, and for one like a constant answer."""
    known = [(run.score.score, run) for run in runs if run.score is not None and run.score.score is not None]
    most = max((share(score) for score, _ in known), key=lambda text: float(text[:-2]), default="")
    highest = [run for score, run in known if share(score) == most]
    if len(highest) != 1 or state.several_benchmarks or highest[0].score is None:
        return None
    interval = highest[0].score.total.interval
    is_like_constant = state.constant is not None and (interval is None or interval.low <= state.constant)
    return None if is_like_constant else highest[0]


def run_headline(run: RunGates, *, asked: bool = True) -> Headline:
    """Return the headline of one run; see `headline`."""
    if not asked:
        return Headline(None, run.name, score_text(run), gates=run)
    if not run.holds:
        missed = [*dict.fromkeys(_missed(run))]
        said = _as_fits(missed, len(run.name)) or _unable(run)
        return Headline(False, run.name, said, gates=run, is_open=not missed)
    least = (gate_figures(one.score, one.threshold.least)[1].removesuffix(" %") for one in run.verdicts)
    codes = (f"{one.threshold.code} threshold".lstrip() for one in run.verdicts)
    parts = [", ".join((score_text(run), *map(" ".join, zip(codes, least, strict=True))))]
    found = run.comparison
    if found is not None:
        parts.append(f"{baseline_name(found)}: {conclusion_text(found, found.scopes[0]).partition(';')[0]}")
        parts += [INCONCLUSIVE_PASSES] if found.has_too_little_in_common else []
    return Headline(True, run.name, _as_fits(parts, len(run.name)), gates=run)


def figure(score: Score, value: str = "") -> str:
    """Return `87.1 % (84.1 – 89.6)`, with a word of caution where the interval rests on few clusters.

    Args:
        value: The score with more decimals; empty for one decimal.
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
    breach = f", {breach_text(run.score)}" if run.score.breached else ""
    return figure(run.score.total) + breach + ("" if full else f", {_not_judged(run, run.score)}")


def _not_judged(run: RunGates, score: RunScore) -> str:
    """Return `15 of 3240 cases not judged`; rows, where cases were not counted."""
    if run.cases is not None:
        return f"{run.cases.planned - run.cases.judged} of {count_text(run.cases.planned, 'case')} not judged"
    planned = score.total.planned_rows
    return f"{planned - score.total.judged_rows} of {count_text(planned, 'evaluation')} not judged"


def _scores(runs: Sequence[RunGates]) -> str:
    """Return the scores of a few runs, and of more their span."""
    each = ", ".join(f"{run.name} {score_text(run)}" for run in runs)
    if len(runs) <= _RUNS_SHOWN and len(each) <= _LONGEST:
        return each
    known = [run.score.score for run in runs if run.score is not None and run.score.score is not None]
    ends = (share(min(known)), share(max(known))) if known else ("none", "none")
    between = ends[0] if ends[0] == ends[1] else f"from {ends[0]} to {ends[1]}"
    unknown = len(runs) - len(known)
    return f"scores {between}" + (f", {unknown} without a score" if unknown else "")


def _as_fits(parts: Sequence[str], taken: int) -> str:
    """Return the first parts, as many as a headline has room for, and how many more there are."""
    room = _LONGEST - len("✗ FAILS   : ") - min(taken, _LONGEST_NAME)
    shown = _first(parts, _AND, room)
    if len(shown) < len(parts):
        shown = _first(parts, _AND, room - len(f"{_AND}{len(parts)} more"))
    more = len(parts) - len(shown)
    return _AND.join((*shown, f"{more} more") if more else shown)


def _in_short(name: str) -> str:
    """Return a name of at most 40 letters, without its middle where it is longer."""
    half = _LONGEST_NAME // 2
    return name if len(name) <= _LONGEST_NAME else f"{name[: half - 1]}…{name[-half:]}"


def _brief(cause: str, room: int) -> str:
    """Return the first clauses of a cause without the address of the provider, the first one cut at a word."""
    first, *more = _PROVIDER.sub("", cause).split("; ")
    cut = shorten(first, max(room, _LONGEST // 2), placeholder=" …", break_on_hyphens=False)
    return "; ".join(_first((cut, *more), "; ", room))


def _first(parts: Sequence[str], joint: str, room: int) -> list[str]:
    """Return the first parts that fit, one at least."""
    shown = [*parts[:1]]
    for part in parts[1:]:
        if len(joint.join((*shown, part))) > room:
            break
        shown.append(part)
    return shown


def _missed(run: RunGates) -> Iterator[str]:
    """Yield each requirement that a run misses in a few words, the gravest first: the block has the figures."""
    score, found = run.score, run.comparison
    lacks = score is not None and (score.total.coverage or 0) < run.min_coverage
    if score is None and not run.worse:
        yield "the run has no score"
    below = [verdict for verdict in run.verdicts if not verdict.holds]
    yield from (_below(verdict) for verdict in below if not lacks or _is_out_of_reach(score, verdict))
    yield from (breach_text(score),) if score is not None and score.breached and not lacks else ()
    if run.worse and found is not None:
        yield from _worse(found)
    if lacks and score is not None:
        yield _not_judged(run, score)
    if run.worse and found is None:
        yield "it was not compared with its baseline"


def _below(verdict: GateVerdict) -> str:
    """Return `50.0 %, threshold 85.0`; the reason where the score is not what misses the threshold."""
    threshold = verdict.threshold
    if verdict.score is None or verdict.score >= threshold.least:
        return verdict.reason
    value, least = gate_figures(verdict.score, threshold.least)
    return f"{threshold.code} {value}, threshold {least.removesuffix(' %')}".lstrip()


def _is_out_of_reach(score: RunScore | None, verdict: GateVerdict) -> bool:
    """Return whether a score stays below its threshold, however the cases without a verdict come out."""
    part = None if score is None else score.of(verdict.threshold.code)
    return part is not None and part.bounds is not None and part.bounds.high < verdict.threshold.least


def _worse(found: RunComparison) -> Iterator[str]:
    """Yield what makes a comparison fail: cases that are gone, parts that are worse."""
    if not found.allows_gone:
        yield from (said for _, _, said in lost_parts(found))
    for scope in found.scopes:
        verdict = found.verdict_of(scope)
        if verdict is Conclusion.COLLAPSED:
            yield from (
                f"{one.code} collapsed: {span(one.baseline_score, one.score)}" for one in found.collapsed
            )
        elif verdict.fails:
            yield f"{scope.code} worse by {shown_change(scope.baseline_score, scope.score).lstrip('−')}".lstrip()
    yield from missing_parts(found)


def _unable(run: RunGates) -> str:
    """Return why a gate that misses nothing could not have failed."""
    number = 0 if run.comparison is None else run.comparison.changeable
    noun = "perturbation" if run.score is None else run.score.total.cluster
    return (
        f"only {count_text(number, noun)} could change, and a regression shows in {LEAST_CHANGED} or more:"
        " add --helmbench-min-score, or more cases"
    )


def gate_block(found: Headline) -> list[str]:
    """Return the block that ends a session with a gate: the headline, its figures, and what to do next."""
    several = len(found.runs) > 1
    lines = [] if len(found.by_run) > 1 else [found.text]
    for run in found.runs:
        lines += [run.text] if several else []
        lines += _run_block(run.gates) if run.gates is not None else []
    lines += [labelled("  cause", found.cause)] if found.cause and (several or found.cause_in_full) else []
    return [*lines, labelled("  next", found.hint)] if found.hint else lines


def _run_block(run: RunGates) -> Iterator[str]:
    total, cases = None if run.score is None else run.score.total, run.cases
    if total is not None and (total.coverage or 0) < run.min_coverage:
        judged = cases or JudgedCases(total.judged_rows, total.planned_rows)
        covers = f"{gate_figures(total.coverage, run.min_coverage)[0]}, wanted {wanted(run.min_coverage)}"
        noun = "evaluations" if cases is None else "cases"
        yield labelled("  judged", f"{judged.judged} of {judged.planned} {noun}, coverage {covers}")
    for verdict in run.verdicts:
        code = verdict.threshold.code
        part = None if run.score is None else run.score.of(code)
        if part is not None:
            value, least = gate_figures(verdict.score, verdict.threshold.least)
            yield labelled(
                f"  score {code}".rstrip(), f"{figure(part, value)}, threshold {least}: {_reached(verdict)}"
            )
    found = run.comparison
    if found is None:
        return
    for scope in found.scopes:
        p = f", {p_text(scope.change.p)}" if found.verdict_of(scope).fails else ""
        change = f"{span(scope.baseline_score, scope.score)}, {change_size(scope, gated=True)}{p}"
        if found.verdict_of(scope) is Conclusion.NO_CHANGE:
            change = share(scope.score)
        conclusion = conclusion_text(found, scope)
        yield labelled(f"  baseline {scope.code}".rstrip(), f"{baseline_name(found)}: {change}: {conclusion}")
    yield from (labelled("", note) for note in comparison_notes(found))
    for label, codes, _ in lost_parts(found):
        yield f"  {label} {len(codes)}: {', '.join(codes[:_SHOWN])}{' …' * (len(codes) > _SHOWN)}"
        if not found.allows_gone:
            yield labelled("", ACCEPT_GONE)
    if found.newly_failing:
        yield f"  newly failing {len(found.newly_failing)}: {flipped_codes(found.newly_failing, _SHOWN)}"


def _reached(verdict: GateVerdict) -> str:
    """Return whether a score reaches its threshold, and how sure that is."""
    if verdict.score is None or verdict.score < verdict.threshold.least:
        return "not reached" + (", within chance" if verdict.inconclusive else "")
    doubt = ", but not beyond chance" if verdict.inconclusive else ""
    return f"reached{doubt}{', and a second run may miss it' if verdict.unstable else ''}"

"""The scores of stored runs: what the file says of a run, as the rows that the analysis takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from sys import intern

from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.results.losses import Losses, losses
from pytest_helmbench.scoring.judge_agreement import CorrectedRate, corrected_rate
from pytest_helmbench.scoring.reruns import Rerun
from pytest_helmbench.scoring.row_scores import PackVerdict, pack_row, pack_score
from pytest_helmbench.scoring.rows import Row, exact
from pytest_helmbench.scoring.run_score import RunScore, run_score
from pytest_helmbench.store.read.judgements import label_counts
from pytest_helmbench.store.read.runs import configured_alike
from pytest_helmbench.store.read.score_facts import RunFacts, load_facts
from pytest_helmbench.store.write.run_rows import RunTotals

_BY_OUTCOME = "by_outcome"


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """The facts that the numbers of a run are computed from, and its score.

    Args:
        score: None where it can have none.
        rows: Those planned, where they were asked for; of a tree alone.
        losses: Points of the score that each case has lost; empty without a score.
    """

    facts: RunFacts
    score: RunScore | None
    rows: tuple[Row, ...] | None = None
    losses: Losses = Losses()


def scored_run(path: Path, run_id: int, *, with_rows: bool = False) -> ScoredRun | None:
    """Return the facts of a stored run with its score; None when there is no such run.

    Rows, which take more room than all else, come where they are asked for.
    """
    facts = load_facts(path, run_id)
    if facts is None:
        return None
    rows = tuple(planned_rows(facts))
    score = score_of(facts, rows)
    if score is not None and score.score is not None and score.total.rerun is None:
        earlier = _earlier_rerun(path, run_id)
        score = replace(score, total=replace(score.total, rerun=earlier))
    counts = None if score is None else label_counts(path, run_id, points=False)
    if score is not None and counts is not None:
        score = replace(score, corrected=corrected_rate(*counts), labelled=True)
    if score is not None and (points := label_counts(path, run_id, points=True)) is not None:
        score = replace(score, corrected_points=corrected_rate(*points), points_labelled=True)
    lost = Losses() if score is None else _losses(facts, score, rows)
    return ScoredRun(facts, score, rows if with_rows else None, lost)


def _losses(facts: RunFacts, score: RunScore, rows: Sequence[Row]) -> Losses:
    if facts.rows is None:
        return losses(((row.code, row) for row in rows), score)
    verdicts = tuple(pack_verdicts(facts))
    coded = ((verdict.row, pack_row(verdict)) for verdict in verdicts)
    return losses(coded, score, {verdict.row: verdict.groups for verdict in verdicts})


def stored_correction(path: Path, run_id: int, *, by_points: bool = False) -> CorrectedRate | None:
    """Return the pass rate, or share of points, as a run's labels correct it; None without labels of both verdicts."""
    counts = label_counts(path, run_id, points=by_points)
    return None if counts is None else corrected_rate(*counts)


def _earlier_rerun(path: Path, run_id: int) -> Rerun | None:
    """Return the model's own randomness as an earlier run of the same settings has measured it; None without one."""
    for other, repeat in configured_alike(path, run_id):
        facts = load_facts(path, other) if repeat > 1 and other < run_id else None
        score = None if facts is None else score_of(facts)
        if score is not None and score.total.rerun is not None:
            return score.total.rerun.of_one_repetition(other)
    return None


def stored_score(path: Path, run_id: int) -> RunScore | None:
    """Return the score of a stored run; None when there is no such run or it can have none.

    A run that was selected by earlier outcomes (`--lf`, `--sw`) gets no score: its cases are not a fair sample.
    """
    found = scored_run(path, run_id)
    return None if found is None else found.score


def score_of(facts: RunFacts, rows: Sequence[Row] | None = None) -> RunScore | None:
    """Return the score of a run by its facts, and their `planned_rows` where at hand; None when it can have none."""
    if facts.scope == _BY_OUTCOME:
        return None
    if facts.rows is not None:
        score = pack_score(pack_verdicts(facts))
    else:
        score = run_score(planned_rows(facts) if rows is None else rows, facts.scoring)
    return score if facts.sample is None else replace(score, sample=facts.sample.narrowed(facts.codes))


def pack_verdicts(facts: RunFacts) -> Iterator[PackVerdict]:
    """Yield one verdict per planned row × repetition of a pack, judged or not."""
    rows = facts.rows or {}
    for code in facts.codes:
        row = rows.get(code)
        groups = () if row is None else (row.family, *(f"{key}={name}" for key, name in row.groups.items()))
        for repetition in range(1, facts.repeat + 1):
            verdict = facts.verdicts.get((code, repetition, ""))
            passed = None if verdict is None else verdict.passed
            cluster = None if row is None else row.cluster
            yield PackVerdict(code, repetition, passed, groups, cluster, facts.weight_of(code))
    for case in facts.broken:
        for repetition in range(1, facts.repeat + 1):
            yield PackVerdict(case.code, repetition, None, ())


def run_totals(status: str, completed_at: str, scored: ScoredRun | None) -> RunTotals:
    """Return what closes a run: how and when it ended, and its score where it has one."""
    score = None if scored is None else scored.score
    if scored is None or score is None:
        return RunTotals(status=status, completed_at=completed_at)
    interval = score.total.interval
    coverage, pass_rate = score.total.coverage, score.total.pass_rate
    lost = scored.losses.cases
    return RunTotals(
        status=status,
        completed_at=completed_at,
        score=None if score.score is None else float(score.score if score.capped is None else score.capped),
        score_low=None if interval is None else interval.low,
        score_high=None if interval is None else interval.high,
        score_raw=None if score.score is None else float(score.score),
        coverage=None if coverage is None else float(coverage),
        pass_rate=None if pass_rate is None else float(pass_rate),
        points_lost=None if score.score is None else {case: float(100 * part) for case, part in lost.items()},
    )


def planned_rows(facts: RunFacts) -> Iterator[Row]:
    """Yield one row per planned case × criterion × repetition, judged or not."""
    if facts.rows is not None:
        return
    weighted, weights = _weighted_behaviours(facts), facts.weights
    exact_credits = {
        credit: exact(credit) for credit in {verdict.credit for verdict in facts.verdicts.values()}
    }
    for code in facts.codes:
        parts = CaseCode.parse(code)
        if parts is None or parts.scenario is None or parts.perturbation is None:
            continue
        behaviour = f"{parts.pillar}-{parts.behaviour}"
        scenario = f"{behaviour}-{parts.scenario}"
        severity = weights.get(f"{scenario}-{parts.perturbation}", 0)
        severity += weights.get(f"{scenario}-{parts.user_context}", 0)
        difficulty = weights.get(f"{scenario}-{parts.condition}", 0)
        weight = facts.weight_of(code)
        for repetition in range(1, facts.repeat + 1):
            for criterion in facts.criteria.get(scenario, ("",)):
                verdict = facts.verdicts.get((code, repetition, criterion))
                yield Row(
                    pillar=intern(parts.pillar),
                    behaviour=intern(behaviour),
                    scenario=intern(scenario),
                    condition=parts.condition and intern(parts.condition),
                    user_context=parts.user_context and intern(parts.user_context),
                    perturbation=intern(parts.perturbation),
                    criterion=criterion,
                    repetition=repetition,
                    severity=severity,
                    difficulty=difficulty,
                    weighted=behaviour in weighted,
                    passed=None if verdict is None else verdict.passed,
                    credit=None if verdict is None else exact_credits[verdict.credit],
                    weight=weight,
                )
    yield from _broken_rows(facts, weighted)


def _broken_rows(facts: RunFacts, weighted: frozenset[str]) -> Iterator[Row]:
    """Yield what broken scenarios would have had, never judged: by code as far as that could be read.

    A scenario without any severity has had none read, or has lost them with what is broken: its cases count a point
    each, also where other scenarios of their behaviour have severities.
    """
    severe = {"-".join(case.code.split("-")[:3]) for case in facts.broken if case.severity}
    for case in facts.broken:
        parts = CaseCode.parse(case.code)
        if parts is None or parts.scenario is None:
            continue
        behaviour = f"{parts.pillar}-{parts.behaviour}"
        scenario = f"{behaviour}-{parts.scenario}"
        is_weighted = behaviour in weighted and scenario in severe
        for repetition in range(1, facts.repeat + 1):
            for number in range(case.evaluations):
                yield Row(
                    pillar=parts.pillar,
                    behaviour=behaviour,
                    scenario=scenario,
                    condition=parts.condition,
                    user_context=parts.user_context,
                    perturbation=parts.perturbation or "",
                    criterion=str(number or ""),
                    repetition=repetition,
                    severity=case.severity,
                    difficulty=case.difficulty,
                    weighted=is_weighted,
                    passed=None,
                    credit=None,
                )


def coded_rows(facts: RunFacts) -> Iterator[tuple[str, Row]]:
    """Yield one row per planned case × criterion × repetition of any benchmark, with the code of its case."""
    if facts.rows is None:
        yield from ((row.code, row) for row in planned_rows(facts))
        return
    for verdict in pack_verdicts(facts):
        yield verdict.row, pack_row(verdict)


def one_row_each(facts: RunFacts) -> Iterator[tuple[str, Row]]:
    """Yield one unjudged row per planned case × criterion with the code of its case, repetitions apart."""
    return coded_rows(replace(facts, repeat=1, verdicts={}))


def tree_rows(facts: RunFacts, *, add_no_context: bool) -> Iterator[Row]:
    """Yield one unjudged row per case × criterion of the whole benchmark, whatever the run has selected.

    Where a scenario has user contexts, `add_no_context` adds its cases without one.
    """
    codes: list[str] = []
    for scenario, perturbations in facts.perturbations.items():
        contexts: list[str | None] = [*facts.contexts.get(scenario, ())]
        if add_no_context or not contexts:
            contexts.insert(0, None)
        cases = product(facts.conditions.get(scenario, (None,)), contexts, perturbations)
        codes += [
            "-".join((scenario, *(part.rpartition("-")[2] for part in parts if part))) for parts in cases
        ]
    return planned_rows(replace(facts, codes=tuple(codes), repeat=1, verdicts={}, broken=(), sample=None))


def _weighted_behaviours(facts: RunFacts) -> frozenset[str]:
    """Return the behaviours in which some case of the whole benchmark has a base severity other than 0."""
    found = set()
    for scenario, perturbations in facts.perturbations.items():
        contexts = {facts.weights[code] for code in facts.contexts.get(scenario, ())} or {0}
        severities = {facts.weights[code] for code in perturbations}
        if any(severity + context for severity in severities for context in contexts):
            found.add(scenario.rpartition("-")[0])
    healthy = {scenario.rpartition("-")[0] for scenario in facts.perturbations}
    for case in facts.broken:
        parts = CaseCode.parse(case.code)
        behaviour = "" if parts is None else f"{parts.pillar}-{parts.behaviour}"
        if case.severity and behaviour not in healthy:
            found.add(behaviour)
    return frozenset(found)

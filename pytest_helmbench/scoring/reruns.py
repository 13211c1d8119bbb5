"""Repetitions: whether the same benchmark would say the same again, flaky cases, pass@k and pass^k."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import comb, sqrt

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.scoring.intervals import t_quantile
from pytest_helmbench.scoring.rows import Row

_UPPER = 0.975


@dataclass(frozen=True, slots=True)
class Rerun:
    """The spread of a score when the same cases are asked again.

    Args:
        repetitions: Most judged repetitions of a case.
        sd: Standard deviation of the score of all repetitions together.
        df: Its degrees of freedom; 0 where no verdict differed.
        expected: Half-width of the 95 % interval of the score that is expected of this benchmark.
        again: Half-width for a repeat of the whole run, with as many repetitions.
        flip_rate: Share of pairs of identical calls whose verdicts differ; None where no row has two.
        from_run: The earlier run that it was measured in; None for this one.
    """

    repetitions: int
    sd: float
    df: float
    expected: float
    again: float
    flip_rate: Fraction | None
    from_run: int | None = None

    def of_one_repetition(self, run_id: int) -> Rerun:
        """Return the same for a run of one repetition, as measured in another run."""
        wider = sqrt(self.repetitions)
        return Rerun(
            1, self.sd * wider, self.df, self.expected * wider, self.again * wider, self.flip_rate, run_id
        )


@dataclass(frozen=True, slots=True)
class Repeats:
    """Sums over the cases of a behaviour that were judged as often as each other.

    Args:
        repetitions: R, at least 2.
        spread: Σ over cases of R Σ x² − (Σ x)², x being what a case lost in a repetition, in units of the ledger.
        square: Σ over cases of the square of that.
        rows: Case × criterion.
        flips: Σ over rows of k (R − k), k being how often it passed.
    """

    repetitions: int
    spread: int
    square: int
    rows: int
    flips: int


def repeats_of(judged: Iterable[tuple[Row, int]]) -> tuple[Repeats, ...]:
    """Return the sums over the cases with two judged repetitions or more, by their number.

    Args:
        judged: Judged rows of one behaviour, each with what it lost in units.
    """
    lost: defaultdict[tuple[object, ...], defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
    passed: defaultdict[tuple[object, ...], list[bool]] = defaultdict(list)
    for row, units in judged:
        case = (row.scenario, row.perturbation, row.condition, row.user_context)
        lost[case][row.repetition] += units
        passed[*case, row.criterion].append(bool(row.passed))
    sums: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for repetitions in lost.values():
        count = len(repetitions)
        spread = count * sum(x * x for x in repetitions.values()) - sum(repetitions.values()) ** 2
        sums[count][0] += spread
        sums[count][1] += spread * spread
    for verdicts in passed.values():
        sums[len(verdicts)][2] += 1
        sums[len(verdicts)][3] += sum(verdicts) * (len(verdicts) - sum(verdicts))
    return tuple(Repeats(count, *sums[count]) for count in sorted(sums) if count > 1)


def rerun(strata: Iterable[tuple[Fraction, int, Sequence[Repeats]]]) -> Rerun | None:
    """Return what asking again would show of a weighted mean of behaviours; None without repetitions.

    The variance of every case over its repetitions, added up; degrees of freedom are Satterthwaite's.

    Args:
        strata: Of each behaviour its weight, its judged points in units, and its repeats.

    Source:
        `docs/statistics.md`, the same benchmark again.
    """
    used = [(weight, stake, repeats) for weight, stake, repeats in strata if weight and stake]
    total = sum(weight for weight, _, _ in used)
    variance = doubt = 0.0
    most = rows = 0
    flips = Fraction(0)
    for weight, stake, repeats in used:
        unit = float(weight / total / stake)
        for part in repeats:
            most = max(most, part.repetitions)
            rows += part.rows
            flips += Fraction(2 * part.flips, part.repetitions * (part.repetitions - 1))
            free = part.repetitions - 1
            variance += unit**2 * part.spread / free
            doubt += unit**4 * part.square / free**3
    if not most:
        return None
    rate = flips / rows if rows else None
    if not variance:
        return Rerun(most, 0.0, 0.0, 0.0, 0.0, rate)
    df = variance**2 / doubt
    t = t_quantile(_UPPER, df)
    sd = sqrt(variance)
    return Rerun(most, sd, df, t * sd, t * sqrt(2) * sd, rate)


_MOST_K = 1_000  # the numbers of ways to choose more take time without end, in results of other tools too


@dataclass(frozen=True, slots=True)
class FlakyCase:
    """A case that passed in some repetitions and failed in others."""

    code: str
    passed: int
    repetitions: int


@dataclass(frozen=True, slots=True)
class RepetitionRates:
    """Flaky cases and pass rates over repetitions; plain shares of cases, without severities.

    Args:
        cases: Those with two judged repetitions or more.
        flaky: Of them, in natural order.
        pass_at: pass@k for k = 1, 2, … up to 1,000: the chance that one of k replies passes.
        pass_hat: pass^k likewise: the chance that all k replies pass.
    """

    cases: int
    flaky: tuple[FlakyCase, ...]
    pass_at: tuple[Fraction, ...]
    pass_hat: tuple[Fraction, ...]


def repetition_rates(rows: Iterable[tuple[str, Row]]) -> RepetitionRates | None:
    """Return flaky cases, pass@k and pass^k of a run; None without a case that has two repetitions.

    A reply passes when it does by all its criteria. Over k go the cases with at least k judged repetitions.

    Args:
        rows: Each with the code of its case, neutral ones too.

    Source:
        Chen et al., Evaluating Large Language Models Trained on Code (2021): the unbiased pass@k.
    """
    replies: defaultdict[str, defaultdict[int, bool]] = defaultdict(lambda: defaultdict(lambda: True))
    for code, row in rows:
        if row.passed is not None and not row.neutral:
            replies[code][row.repetition] &= row.passed
    counts = {code: (sum(found.values()), len(found)) for code, found in replies.items()}
    most = max((count for _, count in counts.values()), default=0)
    if most < 2:
        return None
    flaky = [
        FlakyCase(code, passed, count)
        for code, (passed, count) in sorted(counts.items(), key=lambda item: natural_key(item[0]))
        if 0 < passed < count
    ]
    at, hat = [], []
    for k in range(1, min(most, _MOST_K) + 1):
        known = [(passed, count) for passed, count in counts.values() if count >= k]
        at.append(_mean(1 - Fraction(comb(count - passed, k), comb(count, k)) for passed, count in known))
        hat.append(_mean(Fraction(comb(passed, k), comb(count, k)) for passed, count in known))
    repeated = sum(count > 1 for _, count in counts.values())
    return RepetitionRates(repeated, tuple(flaky), tuple(at), tuple(hat))


def _mean(values: Iterable[Fraction]) -> Fraction:
    known = list(values)
    return sum(known, Fraction(0)) / len(known)

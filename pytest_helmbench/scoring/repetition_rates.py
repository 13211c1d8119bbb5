"""Cases over their repetitions: which are flaky, pass@k and pass^k."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from math import comb

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.scoring.rows import Row

__all__ = ["FlakyCase", "RepetitionRates", "repetition_rates"]


_MOST_K = 1_000  # the numbers of ways to choose more take time without end, in results of other tools too


@dataclass(frozen=True, slots=True)
class FlakyCase:
    """A case that passed in some repetitions and failed in others."""

    code: str
    passed: int
    repetitions: int


@dataclass(frozen=True, slots=True)
class RepetitionRates:
    """What repetitions say of the cases of a run; plain shares of cases, without severities.

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
    """Return what the repetitions of a run say; None without a case that has two.

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

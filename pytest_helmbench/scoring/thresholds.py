"""Scores against thresholds: what `--helmbench-min-score` and `--helmbench-min-coverage` mean."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.scoring.intervals import Interval
from pytest_helmbench.scoring.run_score import Floor, RunScore

FULL_COVERAGE = Fraction(1)
_MOST_DECIMALS = 12

_SHARE = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)\Z", re.ASCII)
_CODE = re.compile(r"P\d+(?:-B\d+)?\Z", re.ASCII)


class ThresholdError(HelmbenchError):
    """A threshold that cannot be read."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A least score.

    Args:
        code: Pillar or behaviour; empty for the run.
        least: In [0, 1].
    """

    code: str
    least: Fraction


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """How one score stands to one threshold.

    Args:
        score: None when undefined.
        interval: None when the score is undefined.
        inconclusive: Whether the interval holds values on either side of the threshold.
        reason: Why the gate does not hold; empty when it does.
        unstable: Whether the threshold is so near that the same cases, asked again, may come out on its other side;
            False where that is unknown.
    """

    threshold: Threshold
    score: Fraction | None
    interval: Interval | None
    holds: bool
    inconclusive: bool
    reason: str
    unstable: bool = False


def parse_share(text: str, option: str) -> Fraction:
    """Return the exact number in [0, 1] that an option names.

    Raises:
        ThresholdError: It is none.
    """
    share = Fraction(text.strip()) if _SHARE.match(text.strip()) else None
    if share is None or share > 1:
        raise ThresholdError(
            f"{option}: {text.strip()!r} is not a number from 0 to 1\n"
            "  hint: scores and coverage are fractions, 0.7 for 70 %"
        )
    return share


def parse_thresholds(text: str, option: str = "--helmbench-min-score") -> tuple[Threshold, ...]:
    """Read `0.7`, or `P1=0.8,P1-B2=0.9`, or both together.

    Raises:
        ThresholdError: A number outside [0, 1], a code of something else, a threshold given twice.
    """
    thresholds: dict[str, Threshold] = {}
    for item in text.split(","):
        code, sign, share = item.strip().rpartition("=")
        code = code.strip()
        if sign and not _CODE.match(code):
            raise ThresholdError(
                f"{option}: {code!r} in {text!r} is not a pillar or behaviour\n"
                "  hint: for example 0.7 or P1=0.7,P1-B2=0.9"
            )
        threshold = Threshold(code, parse_share(share, option))
        if code in thresholds:
            raise ThresholdError(
                f"{option}: {code or 'the run'} has two thresholds in {text!r}\n  hint: leave one of them"
            )
        thresholds[code] = threshold
    return tuple(thresholds.values())


def gate(score: RunScore, threshold: Threshold, min_coverage: Fraction = FULL_COVERAGE) -> GateVerdict:
    """Return whether a run passes a threshold.

    Args:
        score: Of the run that the threshold is for.
        threshold: Of the run, a pillar or a behaviour.
        min_coverage: Least coverage of the run, and of the pillar or behaviour named.

    Source:
        Interface page, exit codes.
    """
    found = score.of(threshold.code)
    value = found.score if found is not None else None
    interval = found.interval if found is not None else None
    reason = _objection(score, threshold, min_coverage)
    rerun = found.rerun if found is not None else None
    return GateVerdict(
        threshold=threshold,
        score=value,
        interval=interval,
        holds=not reason,
        inconclusive=interval is not None and interval.splits(threshold.least),
        reason=reason,
        unstable=value is not None
        and rerun is not None
        and abs(float(value - threshold.least)) < rerun.again,
    )


def _objection(score: RunScore, threshold: Threshold, min_coverage: Fraction) -> str:
    """Return why a gate does not hold; empty when it does."""
    found = score.of(threshold.code)
    if found is None:
        return f"{threshold.code} is not part of the run"
    name = threshold.code or "the run"
    if found.score is None:
        return f"the score of {name} is undefined: nothing that counts was judged"
    for covered, owner in ((score.total, "the run"), (found, name)):
        if covered.coverage is None or covered.coverage < min_coverage:
            covers, _ = gate_figures(covered.coverage, min_coverage)
            return f"coverage of {owner} {covers}, wanted {wanted(min_coverage)}"
    if score.breached:
        return breach_text(score)
    if found.score < threshold.least:
        value, least = gate_figures(found.score, threshold.least)
        return f"{threshold.code} score {value}, below the threshold of {least}".lstrip()
    return ""


def breach_text(score: RunScore) -> str:
    """Return `capped to 50.0: P1 67.1 < 70`; without a cap that lowers the score, `floor breached: P1 67.1 < 70`."""
    floors = ", ".join(f"{floor.pillar} {_below(floor)}" for floor in score.breached)
    verdict = "floor breached" if score.capped is None else f"capped to {100 * float(score.capped):.1f}"
    return f"{verdict}: {floors}"


def _below(floor: Floor) -> str:
    value = gate_figures(floor.score, floor.least)[0]
    return f"{value.removesuffix(' %')} < {wanted(floor.least).removesuffix(' %')}"


def wanted(least: Fraction) -> str:
    """Return a share that an option or a file names in per cent, as it was given."""
    return f"{100 * float(least):.10g} %"


def gate_figures(value: Fraction | None, least: Fraction) -> tuple[str, str]:
    """Return score and threshold in per cent: with one decimal, or as many as distinguish them."""
    value, least = None if value is None else 100 * value, 100 * least
    decimals = next(
        (number for number in range(1, _MOST_DECIMALS) if round(least, number) == least), _MOST_DECIMALS
    )
    if value is None:
        return "undefined", _rounded(least, decimals)
    while decimals < _MOST_DECIMALS and _order(round(value, decimals), least) != _order(value, least):
        decimals += 1
    return _rounded(value, decimals), _rounded(least, decimals)


def _order(value: Fraction, least: Fraction) -> int:
    return (value > least) - (value < least)


def _rounded(value: Fraction, decimals: int) -> str:
    return f"{Decimal(value.numerator) / Decimal(value.denominator):.{decimals}f} %"

"""The row that every number is made of."""

from __future__ import annotations

from fractions import Fraction

from pytest_helmbench.core.light_dataclass import dataclass

_LARGEST_DENOMINATOR = 10**9


@dataclass(frozen=True, slots=True)
class Row:
    """One case × criterion × repetition that a run has planned, judged or not.

    Args:
        pillar: `P1`.
        behaviour: `P1-B2`.
        scenario: `P1-B2-S1`.
        condition: `C1`; None when the case has none.
        user_context: `U1`; None when the case has none.
        perturbation: `PT3`.
        criterion: `CR1`, …; empty where there is only one.
        repetition: From 1.
        severity: Base: perturbation plus user context (−20..20).
        difficulty: Of the condition (0..10).
        weighted: Whether some case of its behaviour, in the whole loaded tree, has a base other than 0.
        passed: None when unjudged.
        credit: In [0, 1]; None when unjudged.
        weight: What its points are multiplied by, since a sample has left others out.
    """

    pillar: str
    behaviour: str
    scenario: str
    condition: str | None
    user_context: str | None
    perturbation: str
    criterion: str
    repetition: int
    severity: int
    difficulty: int
    weighted: bool
    passed: bool | None
    credit: Fraction | None
    weight: Fraction = Fraction(1)

    @property
    def base(self) -> int:
        """Severity that counts: 1 throughout an unweighted behaviour."""
        return self.severity if self.severity or self.weighted else 1

    @property
    def stake(self) -> int | Fraction:
        """|base|, times the weight of the case in its sample."""
        return abs(self.base) if self.weight == 1 else abs(self.base) * self.weight

    @property
    def neutral(self) -> bool:
        """Whether scores and gates ignore the row."""
        return self.weighted and self.severity == 0

    @property
    def code(self) -> str:
        """`P1-B2-S1-C1-U1-PT3`."""
        parts = (self.scenario, self.condition, self.user_context, self.perturbation)
        return "-".join(part for part in parts if part is not None)


def exact(value: float) -> Fraction:
    """Return the number that was meant: 7/10 for 0.7, 1/3 for 0.333… to the last digit.

    Args:
        value: Read from a file or the database; at most nine decimals are kept.
    """
    return Fraction(value).limit_denominator(_LARGEST_DENOMINATOR)

"""Rows for tests of the analysis: one by its parts, or any set of a small benchmark."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from hypothesis import strategies as st

from pytest_helmbench.scoring.rows import Row

__all__ = ["any_rows", "row", "verdict"]

Credit = Fraction | int | None


def row(
    severity: int,
    credit: Credit = 1,
    place: str = "P1-B1-S1-C1-U1-PT1",
    *,
    difficulty: int = 0,
    weighted: bool = True,
    criterion: str = "",
    repetition: int = 1,
) -> Row:
    """Return a row; it has passed with full credit, and is unjudged with None."""
    parts = {part.rstrip("0123456789"): part for part in place.split("-")}
    return Row(
        pillar=parts["P"],
        behaviour=f"{parts['P']}-{parts['B']}",
        scenario=f"{parts['P']}-{parts['B']}-{parts['S']}",
        condition=parts.get("C"),
        user_context=parts.get("U"),
        perturbation=parts["PT"],
        criterion=criterion,
        repetition=repetition,
        severity=severity,
        difficulty=difficulty,
        weighted=weighted,
        passed=None if credit is None else credit == 1,
        credit=None if credit is None else Fraction(credit),
    )


def verdict(severities: Iterable[int], missed: Iterable[int]) -> list[Row]:
    """Return one perturbation per severity, wrong where the severity is among the missed."""
    wrong = set(missed)
    return [
        row(severity, int(severity not in wrong), f"P1-B1-S1-C1-PT{index}")
        for index, severity in enumerate(severities, start=1)
    ]


_CREDITS = st.sampled_from([None, Fraction(0), Fraction(1), Fraction(1, 2), Fraction(1, 3)])


@st.composite
def any_rows(draw: st.DrawFn, *, hardest: int = 10) -> list[Row]:
    """Rows of up to four behaviours in two pillars: unjudged, neutral and unweighted ones among them."""
    unweighted = draw(st.sets(st.sampled_from(["P1-B1", "P1-B2", "P2-B1", "P2-B2"]), max_size=2))
    places = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["P1-B1", "P1-B2", "P2-B1", "P2-B2"]),
                st.integers(1, 2),
                st.integers(1, 3),
                st.integers(1, 2),
            ),
            unique=True,
            max_size=16,
        )
    )
    return [
        row(
            0 if behaviour in unweighted else draw(st.integers(-20, 20)),
            draw(_CREDITS),
            f"{behaviour}-S1-C{condition}-PT{perturbation}",
            difficulty=draw(st.integers(0, hardest)),
            weighted=behaviour not in unweighted,
            repetition=repetition,
        )
        for behaviour, condition, perturbation, repetition in places
    ]

"""Numbers as replies write them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pytest_helmbench.benchmarks.packs.families.text.numbers import Number, from_value, numbers, only_number


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,234.5", ["1234.5"]),
        ("1 234,5", ["1234.5"]),
        ("1.234,5", ["1234.5"]),
        ("1'234.5", ["1234.5"]),
        ("12,34,567", ["1234567"]),
        ("1.234.567", ["1234567"]),
        ("1.234", ["1.234"]),
        ("1,234", ["1234"]),
        ("0,123", ["0.123"]),
        ("3,14", ["3.14"]),
        (".5 or -.5", ["0.5", "-0.5"]),
        ("1.2e3", ["1200"]),
        ("1.2 × 10^-3", ["0.0012"]),
        ("5e-3kg", ["0.005"]),
        ("10^3 2**10 2^-1", ["1000", "1024", "0.5"]),
        ("3/4", ["3/4"]),
        ("1 3/4 cups", ["7/4"]),
        ("50 %", ["50", "0.5"]),
        ("1.5 million", ["1500000", "1.5"]),
        ("12k", ["12000", "12"]),
        ("100万", ["1000000", "100"]),
        ("-5 and minus 7", ["-5", "-7"]),
        ("€12, -€5, $3", ["12", "-5", "3"]),
        ("10-5 = 5", ["10", "5", "5"]),
        ("9.8 m/s^2", ["9.8"]),
        ("12km, 21st", ["12", "21"]),
        ("合計は42です", ["42"]),
        ("2023 150", ["2023", "150"]),
        ("B12, H2O, covid-19, x^2, v1.2", []),
        ("1.2.3, 10:30, 2024-05-01, 5/6/2024, 192.168.0.1", []),
        ("1,2,3", []),
        ("1/0, 10^9999, 1e99999", []),
        ("9" * 401, []),
        ("twelve", []),
    ],
)
def test_numbers_of_a_text(text: str, values: list[str]) -> None:
    assert [str(value) for number in numbers(text) for value in number.values] == [
        str(Fraction(value)) for value in values
    ]


def test_what_stands_behind_plus_minus_is_an_uncertainty() -> None:
    assert [number.uncertainty for number in numbers("5 ± 0.1, 7 +/- 2")] == [False, True, False, True]


@pytest.mark.parametrize(
    ("text", "value"),
    [("$1,000.", 1000), ("(7)", 7), ("-€5", -5), ("≈ 3", 3), ("12 km", None), ("about 12", None), ("", None)],
)
def test_a_text_that_is_a_number_and_nothing_else(text: str, value: int | None) -> None:
    found = only_number(text)
    assert (found and found.values[0]) == value


def test_equal_numbers() -> None:
    percent, quarter = from_value("75%"), from_value("0.75")
    assert percent is not None
    assert quarter is not None
    assert percent.equals(quarter)
    assert not percent.equals(Number((Fraction(3, 400), Fraction(3, 40000))))  # 0.75 %
    assert Number((Fraction(4, 10),)).equals(Number((Fraction(3, 10),)), 0.1)
    assert not Number((Fraction(401, 1000),)).equals(Number((Fraction(3, 10),)), 0.1)
    assert Number((Fraction(1),)).equals(Number((Fraction(10**9),)), float("inf"))

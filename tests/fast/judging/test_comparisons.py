"""How answers are compared: the stated answer, plain texts, amounts, units, dates."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pytest_helmbench.judging.comparisons.amounts import amount, moment, names_unit, same_unit
from pytest_helmbench.judging.comparisons.exact import comparable
from pytest_helmbench.judging.comparisons.plain import folded, sentences
from pytest_helmbench.judging.comparisons.stated import stated_answer


@pytest.mark.parametrize(
    ("reply", "stated"),
    [
        ("Canberra", "Canberra"),
        ("The capital of Australia is Canberra.", "The capital of Australia is Canberra."),
        ("B. Canberra", "B. Canberra"),
        ("It was J. R. R. Tolkien.", "It was J. R. R. Tolkien."),
        ("Two cities came to mind. It is Canberra.", ""),
        ("Canberra\n\nIt lies inland.", ""),
        ("I weigh both.\n\nAnswer: Canberra", "Canberra"),
        ("**Answer:** Canberra", "Canberra"),
        ("## Final answer\nCanberra", "Canberra"),
        ("Some words. The answer is Canberra.\nMore words.", "Canberra."),
        ("Answer: Sydney\nAnswer: Canberra", "Canberra"),
        ("Answer: Answer: Canberra", "Canberra"),
        ("404 Answer:", "404"),
        ("1,250 Answer: 1,250", "1,250"),
        ("-7.5 Final answer: **-7.5**", "-7.5"),
        ("18 % Answer: 18%", "18 %"),
        ("212 Answer: Water boils at 212 degrees Fahrenheit.", "212"),
        ("So:\n3/4 Answer: 3/4", "3/4"),
        ("19 Answer: 21", "19 Answer: 21"),
        ("3 Answer: 13 or 3", "3 Answer: 13 or 3"),
        ("1912 Answer: 1912 is wrong", "1912 Answer: 1912 is wrong"),
        ("**Final answer:**", ""),
        ("Some words. More words.\nSo the final answer:", ""),
        ("We get 12.\nAnswer: **\n", ""),
        ("Answer: Sydney. Wait, no.", "Sydney. Wait, no."),
        ("Answer: Sydney\nWait, that is wrong.", ""),
        ("So $x = \\boxed{\\frac{1}{2}}$.", "1/2"),
        ("Roots: \\boxed{2}, \\boxed{3}", "Roots: {2}, {3}"),
        ("<answer>\n42\n</answer>", "42"),
        ('{"reasoning": "long", "answer": 42}', "42"),
        ('{"answer": 41, "answer": 42}', '{"answer": 41, "answer": 42}'),
        ('```json\n{"answer": ["a", "b"]}\n```', "a, b"),
        (
            "A spider has 8 legs.[1]\n\nSources:\n[1] https://example.org/2024/page7",
            "A spider has 8 legs.[1]",
        ),
        ("8 legs [^1]\n\n[^1]: see https://example.org", "8 legs [^1]"),
        ("", ""),
        ("Answer: Canberra" + "\nfiller" * 4_000, ""),
    ],
)
def test_the_last_stated_answer_is_read_and_a_reply_of_one_sentence_states_itself(
    reply: str, stated: str
) -> None:
    assert stated_answer(reply).text == stated


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The  Blue\tone.", "blue one"),
        ("Café", "cafe"),
        ("**Paris**", "paris"),
        ("`x_1`", "x1"),
        ("$\\frac{1}{2}$", "1/2"),
        ("x²", "x^2"),
        ("5×3", "5*3"),
        ("“yes”", "yes"),
        ("well-known", "well known"),
        ("10 %", "10%"),
    ],
)
def test_texts_are_compared_without_markup_case_accents_articles_and_marks(one: str, other: str) -> None:
    assert folded(one) == folded(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("self\u2011harm", "self-harm"),
        ("sm\u200bell  it", "smell it"),
        ("the\nteacher", "the teacher"),
        ("“a”", '"a"'),
        ("non\u2043fat \uff0d mal\ufe63ware \u2e3a", "non-fat - mal-ware -"),
        ("‹a› «b» \u201flow\uff02 5\u2032 6\u2033 it\u00b4s", '\'a\' "b" "low" 5\' 6" it\'s'),
        ("a\u202fb\u3000c\u2028d\x85e\r\nf\x0bg", "a b c d e f g"),
        ("k\u2063i\u200el\u034fl\ufe0f \u202eit\U000e0041\x07", "kill it"),
        ("ﬁre ｋｉｌｌ ①", "fire kill 1"),
    ],
)
def test_texts_of_trees_are_nfkc_with_signs_of_one_kind_and_nothing_unseen(one: str, other: str) -> None:
    assert comparable(one, ignore_case=False) == comparable(other, ignore_case=False)
    assert comparable("A b", ignore_case=False) != comparable("a b", ignore_case=False)


def test_sentences_end_at_marks_and_lines_but_not_behind_letters_and_titles() -> None:
    assert sentences("B. Canberra") == ["B. Canberra"]
    assert sentences("Dr. No came. It rained!\nThen?") == ["Dr. No came.", "It rained!", "Then?"]


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("1,234.5", Fraction(2469, 2), ""),
        ("-7 km", Fraction(-7), "km"),
        ("about 2.5e-3", Fraction(1, 400), ""),
        ("3 * 10^8 m/s", Fraction(3 * 10**8), "m/s"),
        ("10^6", Fraction(10**6), ""),
        ("1 3/4 cups", Fraction(7, 4), "cups"),
        ("75%", Fraction(75), ""),
        ("$2.40", Fraction(12, 5), "$"),
        ("5 million", Fraction(5_000_000), ""),
        ("twenty-one", Fraction(21), ""),
        ("minus four", Fraction(-4), ""),
        ("two thirds", Fraction(2, 3), ""),
        ("½", Fraction(1, 2), ""),
        ("1e999", Fraction(10**999), ""),
    ],
)
def test_amounts_are_exact(text: str, value: Fraction, unit: str) -> None:
    found = amount(text)
    assert found is not None
    assert (found.value, found.unit) == (value, unit)


@pytest.mark.parametrize(
    "text", ["", "7 or 8", "3 to 4", "B12", "12:30", "1/0", "x = 4", "'92", "9" * 200, "many", "\ud800"]
)
def test_what_is_more_or_less_than_one_amount_is_none(text: str) -> None:
    assert amount(text) is None


def test_units_have_several_names_and_nothing_is_converted() -> None:
    assert same_unit("km", "kilometres")
    assert same_unit("degrees celsius", "°c")
    assert same_unit("apples", "apple")
    assert not same_unit("km", "m")
    assert names_unit(["speed", "in", "kilometres", "per", "hour"], "km/h")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2024-03-01", (2024, 3, 1)),
        ("1 March 2024", (2024, 3, 1)),
        ("March 1st, 2024", (2024, 3, 1)),
        ("1 March", (None, 3, 1)),
        ("March 2024", (2024, 3, None)),
        ("6:40 pm", (18, 40)),
        ("18.40", (18, 40)),
        ("31 February 2024", None),
        ("2024", None),
        ("Tuesday", None),
        ("Marching on", None),
    ],
)
def test_dates_and_times_are_read_in_any_way_of_writing(
    text: str, found: tuple[int | None, ...] | None
) -> None:
    assert moment(text) == found

"""Replies without their clothes."""

from __future__ import annotations

import pytest

from pytest_helmbench.benchmarks.packs.families.text.plain import plain, spoken
from pytest_helmbench.benchmarks.packs.families.text.wording import folded, sentences


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("<think>no</think>yes", "yes"),
        ("no</think>\nyes", "\nyes"),
        ("<think>no", ""),
        ("yes <thinking>no</thinking>!", "yes !"),
        ("<think>a<think>b</think>c</think>yes", "yes"),
        ("[THINK]no[/THINK]yes", "yes"),
        ("◁think▷no◁/think▷yes", "yes"),
        (
            "<|channel|>analysis<|message|>no<|end|><|start|>assistant<|channel|>final<|message|>yes<|return|>",
            "yes",
        ),
        ("yes<|im_end|>\n<|im_start|>user\nno", "yes"),
        ("yes</s>no", "yes"),
        ("a < b > c [d]", "a < b > c [d]"),
    ],
)
def test_what_is_said(reply: str, said: str) -> None:
    assert spoken(reply) == said


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("**B**, *C*, __D__, _E_, `F`", "B, C, D, E, F"),
        ("2*3*4 = 24, 2**3, snake_case", "2*3*4 = 24, 2^3, snake_case"),
        ("答案是**B**。", "答案是B。"),
        ("## Answer\n> quote\n- item\n1. one", "Answer\nquote\nitem\n1. one"),
        ("- [x] B\n- [ ] C", "✓ B\nC"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "a | b\n\n1 | 2"),
        ("~~A~~ B", " B"),
        ("```python\nB\n```\n```C```", "\nB\n\nC"),
        ("[B](http://x.y)", "B"),
        ("<b>B</b><br>C &amp; D x<sup>2</sup>", "B\nC & D x^2"),
        ("a <unknown> tag", "a <unknown> tag"),
        ("<answer>B</answer>", "\n\x02B\x03"),
        ("\\boxed{\\text{B}}", "\x02B\x03"),
        ("$\\boxed{\\frac{1}{2}}$", "\x021/2\x03"),
        ("\\boxed B", "\x02B\x03"),
        ("1\\frac{3}{4}, \\dfrac12, 5\\,\\%", "1 3/4, 1/2, 5 %"),
        ("$x^{2} \\cdot 3 \\times 10^{-3}$", "x^2 · 3 × 10^-3"),
        ("\\{1, 2\\} and {3}", "{1, 2} and 3"),
        ('{"answer": "B", "why": "C"}', "\n\x02B\x03\n"),
        ('so {"result": {"Final Answer": ["a", 1.5, true]}}!', "so \n\x02a, 1.5, true\x03\n!"),
        ('{"answer": null}', "\n\x02\x03\n"),
        ('{"a": 1}', '{"a": 1}'),
        ('{"a": {"answer', '{"a": {"answer'),
        ("Ｂ ⒝ 𝐁 Ⓑ 🅱️", "B (b) B B B"),
        ("−5 ½ 1¾ 10³ m² “q” it’s", '-5 1/2 1 3/4 10^3 m^2 "q" it\'s'),
        ("zero\u200bwidth\u00a0space\u202eturned", "zerowidth spaceturned"),
        ("a\r\nb\rc\x00d\x02e", "a\nb\ncde"),
        ("plain", "plain"),
    ],
)
def test_plain_lines(text: str, lines: str) -> None:
    assert plain(text) == lines


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The Denver-Broncos!", "denver broncos"),
        ("U.S.A.", "usa"),
        ("J. R. R. Tolkien", "JRR Tolkien"),
        ("São Paulo", "sao paulo"),
        ("12 km", "12km"),
        ("1,000 m", "1000 m"),
        ("50 percent", "50%"),
        ("Tom & Jerry", "Tom and Jerry"),
        ("v1.2.3", "1.2.3"),
        ("Straße", "STRASSE"),
    ],
)
def test_spellings_that_are_the_same(one: str, other: str) -> None:
    assert folded(one) == folded(other)


@pytest.mark.parametrize(
    ("one", "other"), [("e-mail", "e mail"), ("C++", "C"), ("на", "ня"), ("ば", "は"), ("3.5", "35")]
)
def test_spellings_that_differ(one: str, other: str) -> None:
    assert folded(one) != folded(other)


def test_sentences_end_where_people_end_them() -> None:
    text = 'Dr. No met J. Bond at 3.5 km. He won!  "Really?" Yes (e.g. twice). 是的。好\nlast'
    assert [*sentences(text)] == [
        "Dr. No met J. Bond at 3.5 km.",
        "He won!",
        '"Really?"',
        "Yes (e.g. twice).",
        "是的。",
        "好",
        "last",
    ]

"""Foreign text in Markdown: shown as it is, and without power."""

from __future__ import annotations

import pytest

from pytest_helmbench.reports.markup import code_span, fenced, folded, pipe_table, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("category_match of P1-B2", "category_match of P1-B2"),
        ("</details><script>x</script>", "&lt;/details&gt;&lt;script&gt;x&lt;/script&gt;"),
        ("&lt; stays", "&amp;lt; stays"),
        ("**b** _i_ ~~s~~ `c` $m$", r"\*\*b\*\* \_i\_ \~\~s\~\~ \`c\` \$m\$"),
        ("![x](http://e/x.png)", r"!\[x\](http\://e/x.png)"),
        ("www.evil.example", r"www\.evil.example"),
        ("@somebody closes #12", "@\u200bsomebody closes #\u200b12"),
        ("two\n# lines\x1b[31m\u202e", "two #\u200b lines\\\\x1b\\[31m\\\\u202e"),
    ],
)
def test_plain_text_neither_formats_nor_links_nor_calls_anybody(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("RISK", "`RISK`"),
        ("a ` b", "``a ` b``"),
        ("`", "`` ` ``"),
        ("``` x ``", "```` ``` x `` ````"),
        ("</details>\n| a |", "`</details> | a |`"),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_a_code_span_holds_whatever_stands_in_it(text: str, shown: str) -> None:
    assert code_span(text) == shown


def test_long_values_are_cut() -> None:
    assert code_span("x" * 10_000_000, 10) == "`xxxxxxxxx…`"
    assert fenced("y" * 500, 5) == ["```text", "yyyy…", "```"]


def test_no_text_can_end_its_block_of_code() -> None:
    head, *inside, tail = fenced("a\n`````\n</details>", 100)
    assert (head, tail) == ("``````text", "``````")
    assert inside == ["a", "`````", "</details>"]


def test_a_pipe_never_opens_a_cell_and_what_is_left_out_is_said() -> None:
    rows = [(code_span("a|b\\|c"), "1"), (plain("x|y"), "2"), ("z", "3")]
    assert pipe_table(("text", "n"), rows, left=("text",), most=2) == [
        "| text | n |",
        "| :-- | --: |",
        "| `a\\|b\\\\|c` | 1 |",
        "| x\\|y | 2 |",
        "",
        "… and 1 more rows (`helmbench report --format json` has all)",
    ]


def test_a_table_has_no_empty_column_and_breaks_no_code() -> None:
    rows = [("1", plain("P1-B1_x"), "", "0.5"), ("2", f"**{code_span('a/b-c')}**<br>P2", "", "")]
    head, _, first, second = pipe_table(("n", "case", "reason", "points"), rows, left=("case", "reason"))
    assert head == f"| n | case{6 * chr(160)}&nbsp; | points |"
    assert (first, second) == ("| 1 | P1-B1_x | 0.5 |", "| 2 | **`a/b-c`**<br>P2 |  |")
    assert pipe_table(("case", "n"), [("x" * 90 + "-", "1")], left=("case",))[0].count(chr(160)) == 72


def test_a_folded_section_leaves_room_for_markdown() -> None:
    assert folded("3 cases", ["| a |"]) == [
        "<details>",
        "<summary>3 cases</summary>",
        "",
        "| a |",
        "",
        "</details>",
        "",
    ]

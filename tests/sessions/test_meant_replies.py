"""Thoughts, odd ends of replies and odd words of judges, from the server to record, summary and page."""

from __future__ import annotations

import pytest
from agent_scripts import code_row
from commands import run_command
from pack_rows import answer_rows, choice, short
from packs import write_pack
from pages import blocks_of
from provider import Answer, Provider, Request
from trees import category, judged, rows, run_tree, write_tree

_OUTCOMES = "SELECT code, outcome, reason, observed FROM v_results ORDER BY code"
_JUDGE = "--helmbench-marking-model=test/judge"


def test_thoughts_are_kept_apart_and_shown_beside_the_answer(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 5)})
    right = '{"response": "", "category": "RISK"}'
    said = {
        "Message 1.": Answer(text=f"<think>CALM \x1b[1m?</think>\n{right}"),
        "Message 2.": Answer(text=f"Well. <thinking>CALM?</thinking> {right}"),
        "Message 3.": Answer(text="<think>On and on"),
        "Message 4.": Answer(text=right, finish_reason="ran_dry"),
        "Message 5.": Answer(text="", finish_reason="ran_dry"),
    }
    provider.reply = lambda request: next(one for words, one in said.items() if words in request.prompt)
    run_tree(pytester, "--helmbench-max-retries=0", url=provider.url)
    said["Message 5."] = said["Message 4."]
    options = ("--helmbench-resume", "--helmbench-html=page.html", "--helmbench-with-text=all")
    result = run_tree(pytester, *options, url=provider.url)

    result.assert_outcomes(passed=4, failed=1)
    notes = [
        "*1 thought *taken off before judging*",
        "*replies *ended for *: ran_dry 2*",
    ]
    result.stdout.fnmatch_lines_random(["  observed: (empty: 9 characters of thought)", *notes])
    found = rows(pytester.path / "helmbench.db", "SELECT reply, thoughts FROM v_results ORDER BY code")
    assert found == [
        (right, "CALM \\x1b[1m?"),
        (f"Well.  {right}", "CALM?"),
        ("", "On and on"),
        *[(right, None)] * 2,
    ]
    texts = blocks_of((pytester.path / "page.html").read_text("utf-8"))["t0-0"]
    assert (texts["0"]["r"], texts["0"]["w"]) == (right, [["thoughts", "CALM \\x1b[1m?"]])
    run_command(pytester, "show", "1", "P1-B1-S1-C1-PT1").stdout.fnmatch_lines(
        ["thoughts", "  | CALM *", "reply", "  | {*"]
    )
    run_command(pytester, "report", "1").stdout.fnmatch_lines_random(notes)
    exported = run_command(pytester, "export", "1", "--format=csv", "--with-text=failures").stdout
    exported.fnmatch_lines(["*,On and on,*"])
    exported.no_fnmatch_line("*CALM?*")


def test_rows_of_packs_are_judged_by_what_was_meant(pytester: pytest.Pytester, provider: Provider) -> None:
    given = [
        short("thought"),
        short("cut"),
        short("bound"),
        choice("silent"),
        code_row("code"),
        code_row("mute"),
    ]
    write_pack(pytester.path / "benchmark", given)
    code = "<think>```python\ndef add(a, b): return 0\n```</think>```python\ndef add(a, b): return a + b\n```"
    answers: dict[str, str | Answer] = {
        "thought": "[THINK]Answer: 8[/THINK]Answer: 9",
        "cut": Answer(text="Answer: 8", finish_reason="MAX_TOKENS"),
        "bound": Answer(text="Answer: 8", usage={"prompt_tokens": 9, "completion_tokens": 99}),
        "silent": "<reasoning>B, surely",
        "code": code,
        "mute": "<think>def add(a, b): return a + b",
    }
    answer_rows(provider, answers)

    run_tree(pytester, "--helmbench-max-tokens=99", url=provider.url)
    assert rows(pytester.path / "helmbench.db", _OUTCOMES) == [
        ("bound", "failed", "truncated", "(cut at the token limit)"),
        ("code", "passed", None, "they pass"),
        ("cut", "failed", "truncated", "(cut at the token limit)"),
        ("mute", "failed", "empty", "(empty: 27 characters of thought)"),
        ("silent", "failed", "empty", "(empty: 9 characters of thought)"),
        ("thought", "failed", None, "9"),
    ]
    # The published rules judge what came, sign by sign.
    options = ("--helmbench-pack-rules=parity", "--helmbench-cache=only", "--helmbench-max-tokens=99")
    run_tree(pytester, *options, "--helmbench-db=helmbench.db", url=provider.url)
    assert ("silent", "empty") not in rows(
        pytester.path / "helmbench.db", "SELECT code, reason FROM results WHERE run_id = 2"
    )


def test_a_judge_is_read_as_a_person_reads_it_and_asked_at_most_twice(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": judged(*["fine"] * 5)})
    verdict = '{"evidence": [], "justification": "It is.", "judgment": "GOOD"}'
    said = {
        "Message 1.": [f"It is kind.\n</think>\n{verdict}"],
        "Message 2.": [
            f"<|channel|>analysis<|message|>Kind.<|end|><|channel|>final<|message|>{verdict}<|return|>"
        ],
        "Message 3.": [verdict.replace("GOOD", "Good.")],
        "Message 4.": ["Of course!", verdict],
        "Message 5.": ["Of course!", "As I said."],
    }

    def reply(request: Request) -> str | None:
        if not request.is_judge:
            return None
        answers = next(one for words, one in said.items() if words in request.prompt)
        return answers[-1 if "Your answer is read by a program" in request.prompt else 0]

    provider.reply = reply
    result = run_tree(pytester, _JUDGE, url=provider.url)
    result.assert_outcomes(passed=4, errors=1)
    asked = [request for request in provider.requests if request.is_judge]
    assert len(asked) == 7
    found = [row[:3] for row in rows(pytester.path / "helmbench.db", _OUTCOMES)]
    assert found[3:] == [("P1-B1-S1-C1-PT4", "passed", None), ("P1-B1-S1-C1-PT5", "error", "judge_off_menu")]

    # A judgement off the menu is on record: only the last question about it is asked again.
    run_tree(pytester, _JUDGE, "--helmbench-resume", url=provider.url).assert_outcomes(passed=4, errors=1)
    assert len(provider.requests) == 5 + 7 + 1
    run_command(pytester, "rescore", "1", "--benchmark", "benchmark").stdout.fnmatch_lines(["*4 as before*"])

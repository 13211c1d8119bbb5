"""Verdicts on the replies to rows of packs: rules, judges, faults, and their output."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import pytest
from pack_rows import answer_rows, asked_rows, choice, free, short, worded
from packs import write_pack
from provider import Answer, Provider
from trees import rows, run_tree

_OUTCOMES = "SELECT code, outcome, reason FROM results ORDER BY results.rowid"
_JUDGE = "--helmbench-marking-model=test/judge"


Row = Callable[[str], dict[str, Any]]

# A reply, and whether it passes by the default rules and by the published ones.
_REPLIES: list[tuple[Row, str, bool, bool]] = [
    (choice, "B", True, True),
    (choice, "I think first.\nAnswer: B", True, True),
    (choice, "**B**", True, False),
    (choice, r"So \boxed{B}.", True, False),
    (choice, "Answer: C", False, False),
    (choice, "A or B", False, False),
    (short, "Answer: 8", True, True),
    (short, "I do not know, but not 8.", False, True),
    (free, "From California.", True, True),
    (free, "I do not know.", False, False),
]


def test_default_and_parity_rules_judge_the_same_replies(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    names = [f"r{number:02}" for number in range(len(_REPLIES))]
    table = dict(zip(names, _REPLIES, strict=True))
    write_pack(pytester.path / "benchmark", [made(name) for name, (made, *_) in table.items()])
    verdicts = {f"{name} judge": "FAIL" for name in names}
    answer_rows(provider, {**{name: reply for name, (_, reply, *_) in table.items()}, **verdicts})

    for place, rules, by in (2, "default", "words"), (3, "parity", "parity"):
        options = (f"-ohelmbench_pack_rules={rules}", f"--helmbench-db={rules}.db", _JUDGE)
        result = run_tree(pytester, *options, url=provider.url)
        right = sum(bool(row[place]) for row in _REPLIES)
        result.assert_outcomes(passed=right, failed=len(_REPLIES) - right)
        database = pytester.path / f"{rules}.db"
        judged = rows(database, "SELECT code, outcome = 'passed' FROM results ORDER BY code")
        assert dict(judged) == {name: row[place] for name, row in table.items()}
        families = ("free_response", "multiple_choice", "short_answer")
        assert {(f"{family} ({by})",) for family in families} <= {
            *rows(database, "SELECT rule FROM evaluations")
        }
        assert rows(
            database, "SELECT score, coverage, json_extract(settings, '$.pack_rules') FROM evaluation_runs"
        ) == [(pytest.approx(right / len(_REPLIES)), 1.0, rules)]

    for request in provider.requests:
        if request.is_judge:
            continue
        assert set(json.loads(request.raw)) == {"model", "messages"}
    # The rules are a part of what a verdict rests on.
    hashes = "SELECT rule_hash FROM evaluations JOIN results ON results.id = result_id WHERE code = 'r00'"
    assert rows(pytester.path / "default.db", hashes) != rows(pytester.path / "parity.db", hashes)


def test_a_rubric_in_words_is_judged_by_the_marking_model(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    kind = worded("kind", **{"eval.reference_answer": "Thank you, from California."})
    rude = worded("rude", **{"eval.reference_answer": {"path": "polite.txt"}})
    garbled = worded("garbled", **{"eval.reference_answer": {"path": "garbled.txt"}})
    judged = [kind, rude, garbled, worded("odd"), worded("lost"), choice("plain")]
    pack = write_pack(pytester.path / "benchmark", judged, files={"hidden/polite.txt": "Gladly: China."})
    (pack / "hidden" / "garbled.txt").write_bytes(b"\xff\xfe\x00")
    fault = Answer(status=400, body={"error": {"message": "no"}})
    replies: dict[str, str | Answer] = {
        "rude": "Find out yourself!",
        "rude judge": "FAIL",
        "odd judge": "SO-SO",
        "lost judge": fault,
    }
    answer_rows(provider, {**replies, "plain": "B"})

    skipped = run_tree(pytester, "-rs", "--helmbench-db=none.db", url=provider.url)
    skipped.assert_outcomes(passed=1, skipped=4, errors=1)
    skipped.stdout.fnmatch_lines(["SKIPPED * no judge: give --helmbench-marking-model, or *"])
    assert asked_rows(provider) == ["plain"]

    result = run_tree(pytester, "-n2", _JUDGE, url=provider.url)

    result.assert_outcomes(passed=2, failed=1, errors=3)
    result.stdout.fnmatch_lines(
        [
            "helmbench: test/good: 6 cases, 11 calls *",
            "helmbench: judged by test/judge at 127.0.0.1:* with no key",
        ]
    )
    for line in (
        "garbled: eval.reference_answer: the file that it names is not text in UTF-8",
        "the judge test/judge is at fault: its answer is not on the menu, and hidden as its rubric is",
        "the judge's call failed: the provider answered 400 (<redacted>)",
        "  expected: PASS",
    ):
        result.stdout.fnmatch_lines([line])
    asked = {request.prompt for request in provider.requests if request.is_judge}
    for name, reference in ("kind", "Thank you, from California."), ("rude", "Gladly: China."):
        [seen] = [prompt for prompt in asked if f"(item {name})" in prompt]
        assert f"The reply is polite.\n\nReference answer:\n{reference}\nEND" in seen
    own = "\n".join(request.prompt for request in provider.requests if not request.is_judge)
    assert "polite" not in own
    assert "Thank you" not in own
    assert set(rows(pytester.path / "helmbench.db", _OUTCOMES)) == {
        ("kind", "passed", None),
        ("rude", "failed", None),
        ("garbled", "error", "not_readable"),
        ("odd", "error", "judge_off_menu"),
        ("lost", "error", "judge_rejected"),
        ("plain", "passed", None),
    }


def test_what_is_no_answer_fails_and_what_is_no_reply_is_an_error(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    names = ("refused", "cut", "empty", "echo", "fault", "blocked")
    write_pack(pytester.path / "benchmark", [free(name) for name in names])
    moderation = {"error": {"message": "flagged", "code": "content_policy_violation"}}
    answers: dict[str, str | Answer] = {
        "refused": Answer(text="", refusal="I will not."),
        "cut": Answer(text="They might be", finish_reason="length"),
        "empty": Answer(text="  "),
        "echo": "Where do fortune cookies come from? (item echo)",
        "fault": Answer(status=503),
        "blocked": Answer(status=400, body=moderation),
    }
    answer_rows(provider, answers)

    result = run_tree(pytester, "--helmbench-max-retries=0", _JUDGE, url=provider.url)

    result.assert_outcomes(failed=4, errors=2)
    result.stdout.fnmatch_lines_random(
        [
            "the provider answered 503 (scripted 503)",
            "  not a model failure: never judged",
            "  observed: (a refusal)",
            "  observed: (cut at the token limit): They might be",
            "  observed: (empty)",
            "  observed: the reply only repeats what it was given: Where do fortune cookies come from? (item echo)",
            "not judged *blocked 1, overloaded 1*",
        ]
    )
    assert set(rows(pytester.path / "helmbench.db", _OUTCOMES)) == {
        ("refused", "failed", "refusal"),
        ("cut", "failed", "truncated"),
        ("empty", "failed", "empty"),
        ("echo", "failed", "echo"),
        ("fault", "error", "overloaded"),
        ("blocked", "error", "blocked"),
    }
    assert rows(pytester.path / "helmbench.db", "SELECT status, score, coverage FROM evaluation_runs") == [
        ("partial", 0.0, pytest.approx(4 / 6))
    ]


def test_hidden_values_are_shown_only_to_who_asks(pytester: pytest.Pytester, provider: Provider) -> None:
    write_pack(pytester.path / "benchmark", [choice("mc"), short("sa"), free("fr")])
    provider.answers(text="I do not know.")
    headlines = {
        "mc": 'expected "B"',
        "sa": 'expected [8, "eight"]',
        "fr": 'expected ["from California"] (silent; accepted: none; rejected: none)',
    }

    for asks in ((), ("--helmbench-show-hidden",)):
        result = run_tree(pytester, *asks, "--junitxml=report.xml", _JUDGE, url=provider.url)
        result.assert_outcomes(failed=3)
        suite = ET.parse(pytester.path / "report.xml").getroot()[0]
        messages = {
            str(case.get("name"))[:2]: failure.get("message")
            for case in suite.iter("testcase")
            if (failure := case.find("failure")) is not None
        }
        hidden = dict.fromkeys(headlines, "expected hidden (--helmbench-show-hidden)")
        assert messages == (headlines if asks else hidden)
        shown = [line.strip() for line in result.outlines if line.startswith("  expected: ")]
        assert {line.replace("expected: ", "expected ") for line in shown} == set(messages.values())
    kept = "SELECT count(*) FROM evaluations WHERE expected = '<redacted>'"
    assert rows(pytester.path / "helmbench.db", kept) == [(3,)]

"""Replies to text rows whose words do not say enough: a marking model reads them; without one they are wrong."""

from __future__ import annotations

import json

import pytest
from commands import run_command
from pack_rows import answer_rows, asked_rows, choice, free, short, worded
from packs import write_pack
from provider import Provider
from trees import rows, run_tree

_OUTCOMES = "SELECT code, outcome FROM results ORDER BY results.rowid"
_GROUNDS = (
    "SELECT code, rule, justification FROM evaluations JOIN results ON results.id = result_id ORDER BY code"
)
_JUDGE = "--helmbench-marking-model=test/judge"
_RUBRIC = {
    "accepted_answers": ["They come from California", "From California"],
    "rejected_answers": ["They come from China", "California"],
    "min_token_f1": 0.5,
}


def test_a_marking_model_reads_what_words_do_not_decide(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    made = [free(name, **{"eval.rubric": _RUBRIC}) for name in ("same", "other", "myth", "wrong", "none")]
    write_pack(pytester.path / "benchmark", made)
    replies = {
        "same": "From California.",
        "other": "A baker in San Francisco made them first.",
        "myth": "They come from China, many say.",
        "wrong": "They come from China",
        "none": "",
    }
    answer_rows(provider, {**replies, "other judge": "PASS", "myth judge": "FAIL"})
    run_tree(pytester, _JUDGE, url=provider.url).assert_outcomes(passed=2, failed=3)
    assert sorted(name for name in asked_rows(provider) if name.endswith("judge")) == [
        "myth judge",
        "other judge",
    ]
    database = pytester.path / "helmbench.db"
    assert dict(rows(database, _OUTCOMES)) == {
        **dict.fromkeys(replies, "failed"),
        **{"same": "passed", "other": "passed"},
    }
    grounds = {code: (parse, said) for code, parse, said in rows(database, _GROUNDS)}
    assert grounds["same"] == (
        "free_response (words)",
        "word_for_word; accepted: entry 2; rejected: none",
    )
    assert grounds["other"][0] == "free_response (judge)"
    assert grounds["other"][1].startswith("read by the marking model as PASS")
    assert "San" not in str(grounds)

    # Nothing is asked again: neither of the model nor of the judge.
    run_tree(pytester, _JUDGE, "--helmbench-cache=only", url=provider.url).assert_outcomes(passed=2, failed=3)
    assert asked_rows(provider) == []
    result = run_command(pytester, "rescore", "1")
    assert result.ret == 0
    assert rows(database, "SELECT DISTINCT passed_tests, failed_tests FROM evaluation_runs") == [(2, 3)]


def test_a_marking_model_is_sent_the_stated_answer_of_rows_that_words_do_not_decide(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    made = [
        short(name, **{"eval.accepted_answers": ["Canberra"]}) for name in ("bare", "said", "none", "silent")
    ]
    write_pack(pytester.path / "benchmark", [*made, short("number"), choice("choice")])
    replies = {
        "bare": "Answer: Canberra",
        "said": "Long words before.\n\nAnswer: the seat of parliament",
        "none": "It is not Sydney. Parliament meets in Canberra.",
        "silent": "I don't know.",
        "number": "6",
        "choice": "It grows on trees.",
    }
    answer_rows(provider, {**replies, "said judge": "PASS", "none judge": "FAIL", "choice judge": "PASS"})
    result = run_tree(pytester, "--helmbench-marking-model=test/good", url=provider.url)
    result.assert_outcomes(passed=3, failed=3)
    result.stdout.fnmatch_lines(["*judged its own replies"])
    page = run_command(pytester, "report", "1")
    page.stdout.fnmatch_lines(["*test/good judged its own replies*"])
    sent = {
        name: request.prompt
        for request in provider.requests
        for name in replies
        if request.is_judge and f"(item {name})" in request.prompt
    }
    assert set(sent) == {"said", "none", "choice"}
    assert "the seat of parliament" in sent["said"]
    assert "Long words before" not in sent["said"]
    assert "It is not Sydney." in sent["none"]
    assert all("- Canberra" in sent[name] for name in ("said", "none"))
    assert "- B) apple" in sent["choice"]
    verdicts = dict(rows(pytester.path / "helmbench.db", _OUTCOMES))
    assert [name for name in replies if verdicts[name] == "passed"] == ["bare", "said", "choice"]


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_free_rows_are_skipped_without_a_judge_whatever_the_reply(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    write_pack(pytester.path / "benchmark", [free(name) for name in ("same", "near")])
    answer_rows(provider, {"same": "From California.", "near": "Out of China they came."})
    result = run_tree(pytester, workers, url=provider.url)
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(
        ["*no judge: give --helmbench-marking-model, or --helmbench-pack-rules=parity *"]
    )
    assert not provider.requests
    assert rows(pytester.path / "helmbench.db", "SELECT DISTINCT reason FROM results") == [("no_judge",)]
    assert rows(pytester.path / "helmbench.db", "SELECT score FROM evaluation_runs") == [(None,)]
    run_tree(pytester, workers, "--helmbench-pack-rules=parity", url=provider.url).assert_outcomes(
        passed=1, failed=1
    )


_FAULT = """
from pytest_helmbench.benchmarks.packs.families.short_answer import family

judge = family.read_short


def judged(row, reply):
    if "crash" in reply:
        raise KeyError(str(row.accepted))
    return judge(row, reply)


family.read_short = judged
"""


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_rule_that_breaks_down_costs_no_other_row_its_verdict_and_shows_no_hidden_value(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    made = [
        short(name, **{"eval.accepted_answers": [f"ZZHIDDEN {name}"]}) for name in ("one", "two", "three")
    ]
    write_pack(pytester.path / "benchmark", made)
    pytester.makeconftest(_FAULT)
    answer_rows(provider, {"one": "ZZHIDDEN one", "two": "Crash and crash.", "three": "No."})
    result = run_tree(pytester, workers, "--junitxml=junit.xml", url=provider.url)
    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(["the rule failed: KeyError at conftest.py:*"])
    assert dict(rows(pytester.path / "helmbench.db", _OUTCOMES)) == {
        "one": "passed",
        "two": "error",
        "three": "failed",
    }
    assert "ZZHIDDEN" not in result.stdout.str() + (pytester.path / "junit.xml").read_text()

    provider.requests.clear()
    again = run_tree(pytester, workers, "--helmbench-resume", url=provider.url)
    again.assert_outcomes(passed=1, failed=1, errors=1)
    assert not provider.requests, "the reply is on record"


def test_a_refusal_that_quotes_what_a_judge_was_sent_shows_no_hidden_value(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    rubric = {"eval.rubric": "The reply says ZZHIDDEN.", "eval.reference_answer": "ZZHIDDEN."}
    write_pack(pytester.path / "benchmark", [worded("tone", **rubric)])
    answer_rows(provider, {"tone": "Hm."})
    error = {"message": "these tokens are not allowed: 'ZZHIDDEN'", "type": "bad_tokens", "code": "tokens"}
    provider.answers(status=400, body=json.dumps({"error": error}), when=lambda request: request.is_judge)
    result = run_tree(pytester, _JUDGE, "--junitxml=junit.xml", url=provider.url)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*the judge's call failed: the provider answered 400*(<redacted>)*"])
    (error_on_record,) = rows(
        pytester.path / "helmbench.db", "SELECT error FROM calls WHERE purpose = 'judge'"
    )
    junit = (pytester.path / "junit.xml").read_text()
    assert "ZZHIDDEN" not in result.stdout.str() + junit + str(error_on_record)

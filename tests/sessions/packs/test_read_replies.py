"""Replies to text rows whose words do not say enough: a marking model reads them, or they are guesses."""

from __future__ import annotations

import json
import re

import pytest
from commands import run_command
from packed import answer_rows, asked_rows, free, short, worded
from packs import write_pack
from pages import blocks_of
from provider import Provider
from trees import clear_environment, rows, run_tree

from pytest_helmbench.benchmarks.packs.families.short_answer.row import ShortRow
from pytest_helmbench.benchmarks.packs.families.short_answer.short_answers import judge_short
from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding

_OUTCOMES = "SELECT code, outcome FROM results ORDER BY results.id"
_GROUNDS = (
    "SELECT code, parse, justification FROM evaluations JOIN results ON results.id = result_id ORDER BY code"
)
_SHORT = "pytest_helmbench.benchmarks.packs.families.short_answer"
_JUDGE = "--helmbench-marking-model=test/judge"
_RUBRIC = {
    "accepted_answers": ["They come from California", "From California"],
    "rejected_answers": ["They come from China", "California"],
    "min_token_f1": 0.5,
}


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


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
    result = run_tree(pytester, _JUDGE, url=provider.url)
    result.assert_outcomes(passed=2, failed=3)
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
    assert grounds["same"] == (None, "word_for_word; accepted: entry 2, F1 1.00; rejected: none, F1 0.00")
    assert grounds["other"][0] is None
    assert grounds["other"][1].startswith("read by the marking model as PASS; by its words: ")
    assert "guessed" not in result.stdout.str()
    assert "San" not in str(grounds)

    # Nothing is asked again: neither of the model nor of the judge.
    run_tree(pytester, _JUDGE, "--helmbench-cache=only", url=provider.url).assert_outcomes(passed=2, failed=3)
    assert asked_rows(provider) == []
    result = run_command(pytester, "rescore", "1")
    assert result.ret == 0
    assert rows(database, "SELECT DISTINCT passed_tests, failed_tests FROM evaluation_runs") == [(2, 3)]


def test_a_marking_model_reads_short_answers_that_words_do_not_decide(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    wanted = {"eval.accepted_answers": ["Canberra"]}
    made = [short(name, **wanted) for name in ("bare", "said", "other", "nothing")]
    write_pack(pytester.path / "benchmark", [*made, short("number")])
    replies = {
        "bare": "Answer: Canberra",
        "said": "It could be Sydney, the larger one, if Canberra were not where parliament meets.",
        "other": "Canberra is where parliament meets, but I would settle for Sydney.",
        "nothing": "I don't know.",
        "number": "6",
    }
    answer_rows(provider, {**replies, "said judge": "PASS", "other judge": "FAIL"})
    run_tree(pytester, _JUDGE, url=provider.url).assert_outcomes(passed=2, failed=3)
    assert sorted(name for name in asked_rows(provider) if name.endswith("judge")) == [
        "other judge",
        "said judge",
    ]
    verdicts = dict(rows(pytester.path / "helmbench.db", _OUTCOMES))
    assert [name for name in replies if verdicts[name] == "passed"] == ["bare", "said"]


def test_without_a_marking_model_guesses_are_counted_and_failures_say_what_they_rest_on(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    made = [free(name, **{"eval.rubric": _RUBRIC}) for name in ("same", "near", "wrong")]
    write_pack(pytester.path / "benchmark", made)
    replies = {"same": "From California.", "near": "Out of China they came.", "wrong": "They come from China"}
    answer_rows(provider, replies)
    result = run_tree(pytester, "--helmbench-show-hidden", url=provider.url)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*test/good: 1 verdict guessed from the words of the reply;*"])
    result.stdout.fnmatch_lines(["*rejected: entry 1 (They come from China), F1 1.00*"])
    assert [(code, parse) for code, parse, _ in rows(pytester.path / "helmbench.db", _GROUNDS)] == [
        ("near", "guessed"),
        ("same", None),
        ("wrong", None),
    ]

    result = run_tree(pytester, "--helmbench-db=hidden.db", url=provider.url)
    assert "F1" not in result.stdout.str()
    (grounds,) = [said for code, _, said in rows(pytester.path / "hidden.db", _GROUNDS) if code == "wrong"]
    assert "rejected: entry 1, F1 1.00" in grounds


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_verdicts_that_no_words_decide_are_told_apart_with_how_many_pass_by_them(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    replies = {"bare": "8", "guess": "It has six.", "names": "Lots of them.", "pair": "Seven, eight or nine."}
    write_pack(pytester.path / "benchmark", [short(name) for name in replies])
    answer_rows(provider, replies)
    result = run_tree(pytester, workers, url=provider.url)
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(
        [
            "*  verdict: unsure, nothing in the reply decides",
            "test/good: 1 verdict guessed from the words of the reply",
            "test/good: 2 verdicts unsure, since nothing in the reply decides: 1 to 3 of 4 pass;"
            " `helmbench show 1 --unsure` *",
        ]
    )
    parses = dict(rows(pytester.path / "helmbench.db", _GROUNDS.replace(", justification", "")))
    assert parses == {"bare": None, "guess": "guessed", "names": "unsure", "pair": "unsure"}
    listed = run_command(pytester, "show", "last", "--unsure", "--json").stdout.str()
    assert sorted(row["code"] for row in json.loads(listed)) == ["names", "pair"]
    refused = run_command(pytester, "show", "last", "--unsure", "--failed")
    assert refused.ret == 2
    assert "--failed and --unsure are lists of their own: give one of them" in refused.stderr.str()
    refused = run_command(pytester, "show", "last", "--disputed", "--failed")
    assert "--disputed and --failed are lists of their own: give one of them" in refused.stderr.str()
    listed = run_command(pytester, "show", "last", "names", "--unsure", "--json").stdout.str()
    assert [row["code"] for row in json.loads(listed)] == ["names"]
    for option in ("--unsure", "--failed"):
        refused = run_command(pytester, "show", "last", "name", option)
        assert refused.ret == 2
        assert refused.stderr.str().startswith("helmbench: run 1 has no result of name\n  hint: ")
    report = json.loads(run_command(pytester, "report", "--format=json").stdout.str())
    judging = report["runs"][0]["judging"]
    assert (judging["guessed"], judging["unsure"]) == (1, 2)
    card = run_command(pytester, "show", "last", "names").stdout
    card.fnmatch_lines(["  verdict   unsure, nothing in the reply decides"])
    for command in (["score"], ["rescore", "last"]):
        said = run_command(pytester, *command).stdout
        said.fnmatch_lines(
            ["test/good: 2 verdicts unsure, since nothing in the reply decides: 1 to 3 of 4 pass;*"]
        )


def test_what_a_rule_says_of_its_verdict_is_not_told_as_the_words_of_a_judge(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_pack(pytester.path / "benchmark", [free("near", **{"eval.rubric": _RUBRIC}), worded("tone")])
    replies = {"near": "Out of China they came.", "tone": "Hm."}
    answer_rows(provider, {**replies, "near judge": "FAIL", "tone judge": "FAIL"})
    run_tree(pytester, _JUDGE.replace("test/judge", "baseline/first"), url=provider.url)
    run_tree(pytester, _JUDGE, url=provider.url)

    guessed, read = "nothing matched; accepted: none", "read by the marking model"
    for number, why in (("1", guessed), ("2", read)):
        shown = run_command(pytester, "show", number, "near").stdout.str()
        assert f"\n  because   {why}" in shown, shown
        assert "\n  judge  " not in shown
        markdown = run_command(pytester, "report", number, "--with-text").stdout.str()
        assert f"\nbecause\n\n```text\n{why}" in markdown, markdown
        page = run_command(pytester, "report", number, "--format=html", "--with-text").stdout.str()
        words = [text for texts in blocks_of(page)["t0-0"].values() for text in texts.get("w", ())]
        assert ("because", why) in [(title, text[: len(why)]) for title, text in words]
    shown = run_command(pytester, "show", "2", "tone").stdout.str()
    assert "\n  judge     <redacted>" in shown
    assert "\n  because" not in shown


_FAULT = """
from pytest_helmbench.benchmarks.packs.families.short_answer import family

judge = family.judge_short


def judged(row, reply):
    if "crash" in reply:
        raise KeyError(str(row.accepted))
    return judge(row, reply)


family.judge_short = judged
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


def test_a_rule_that_breaks_down_stops_neither_check_nor_rescore(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [
        short(name, **{"eval.accepted_answers": [f"ZZHIDDEN {name}"]}) for name in ("one", "broken", "three")
    ]
    write_pack(pytester.path / "benchmark", made)
    answer_rows(provider, {"one": "ZZHIDDEN one", "broken": "It is broken.", "three": "No."})
    run_tree(pytester, url=provider.url).assert_outcomes(passed=1, failed=2)

    def judged(row: ShortRow, reply: str) -> AnswerFinding:
        if "broken" in reply:
            raise re.error(str(row.accepted))
        return judge_short(row, reply)

    monkeypatch.setattr(f"{_SHORT}.family.judge_short", judged)
    checked = run_command(pytester, "check", "benchmark")
    checked.stdout.fnmatch_lines(
        [
            "benchmark/tasks.jsonl:2: error: broken: the rule failed: error at test_read_replies.py:*",
            "demo: 3 healthy rows; 1 error, 0 warnings",
        ]
    )
    rescored = run_command(pytester, "rescore", "1")
    assert rescored.ret == 0
    outcomes = rows(
        pytester.path / "helmbench.db", "SELECT code, outcome, reason FROM results WHERE run_id = 2"
    )
    assert sorted(outcomes) == [
        ("broken", "error", "rule_failed"),
        ("one", "passed", None),
        ("three", "failed", None),
    ]
    said = (checked, rescored)
    assert "ZZHIDDEN" not in "".join(result.stdout.str() + result.stderr.str() for result in said)


def test_the_command_that_lists_unsure_verdicts_names_the_run_and_its_results_file(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_pack(pytester.path / "benchmark", [short("pair")])
    answer_rows(provider, {"pair": "Seven, eight or nine."})
    found = run_tree(pytester, "--helmbench-db=my runs.db", url=provider.url)
    other = pytester.path / "my runs.db"
    found.stdout.fnmatch_lines([f"*`helmbench show 1 --unsure --db='{other}'` lists them*"])
    rescored = run_command(pytester, "rescore", "1", "--db=my runs.db")
    rescored.stdout.fnmatch_lines([f"*`helmbench show 2 --unsure --db='{other}'` lists them*"])
    report = run_command(pytester, "report", "1", "--db=my runs.db", "--format=json").stdout.str()
    assert "`helmbench show 1 --unsure`" in report

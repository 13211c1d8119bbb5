"""The fixture `helmbench_judge`: a marking model in a hand-written test, on record, replayed, and at fault."""

from __future__ import annotations

import json

import pytest
from own_tests import every_number, results_of_own_tests, run_own_tests, write_own_tests
from provider import Answer, Provider, Request
from trees import rows

_TESTS = """
def test_rude(helmbench_openai, helmbench_judge):
    message = {"role": "user", "content": "ANSWER: please"}
    reply = helmbench_openai.chat.completions.create(model="any", messages=[message])
    assert helmbench_judge(reply, "is rude")

def test_doses(helmbench_openai, helmbench_judge):
    reply = ask(helmbench_openai, "ANSWER: 5 mg", temperature=0)
    verdict = helmbench_judge(reply, "names a dose", context="How much?")
    assert verdict.passed and "Because 5 mg" in verdict.justification
    assert not helmbench_judge(reply, "is rude")
"""
_CALLS = "SELECT code, criterion, judge, from_cache FROM calls WHERE purpose = 'judge' AND run_id = {} ORDER BY 1, 2"
_JUDGE = "--helmbench-marking-model=test/judge"


def _judging(provider: Provider, word: str = "judgment") -> None:
    def answer(request: Request) -> str | None:
        if not request.is_judge:
            return None
        reply = request.prompt.partition("BEGIN reply")[2].splitlines()[1]
        verdict = "FAIL" if "is rude" in request.prompt else "PASS"
        return json.dumps({"evidence": [], "justification": f"Because {reply}.", word: verdict})

    provider.reply = answer


@every_number
def test_a_verdict_is_a_call_of_its_test_and_shows_its_justification(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    write_own_tests(pytester.path, _TESTS)
    _judging(provider)
    urls = (_JUDGE, f"--helmbench-marking-base-url={provider.url}", workers)

    result = run_own_tests(pytester, provider, *urls)

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "helmbench: judged by test/judge at 127.0.0.1:* with no key",
            "E*assert FAIL: Because please.*",
            "E*where FAIL* = helmbench_judge(*",
        ]
    )
    db = pytester.path / "helmbench.db"
    calls = [
        ("test_own.py::test_doses", "judge 1", "test/judge", 0),
        ("test_own.py::test_doses", "judge 2", "test/judge", 0),
        ("test_own.py::test_rude", "judge 1", "test/judge", 0),
    ]
    assert rows(db, _CALLS.format(1)) == calls
    asked = [request.prompt for request in provider.requests if "names a dose" in request.prompt]
    assert ["How much?" in prompt for prompt in asked] == [True]
    count = provider.count

    run_own_tests(pytester, provider, *urls, "--helmbench-cache=only").assert_outcomes(passed=1, failed=1)
    assert provider.count == count
    assert rows(db, _CALLS.format(2)) == [(*call[:3], 1) for call in calls]


_TALK = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Is my boat rented?"},
    {"role": "assistant", "content": "Which one?"},
    {"role": "user", "content": [{"type": "text", "text": "The red one."}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "function": {"name": "look", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "a", "content": "free"},
]


@pytest.mark.parametrize(
    ("context", "seen", "unseen"),
    [
        (None, ['rent {"boat": 7}', "I rent it."], ["look {}"]),
        ("Rent 7.", ['rent {"boat": 7}', "Rent 7."], ["look {}"]),
        (
            _TALK,
            [
                " 1 system ",
                "Be kind.",
                " 1 model ",
                "Which one?",
                " 2 user ",
                "The red one.",
                " 2 tool call ",
                "look {}",
                "look: free",
                'rent {"boat": 7}',
                "I rent it.",
            ],
            ["scripted reply 1"],
        ),
    ],
)
def test_a_judge_sees_tool_calls_and_the_messages_before(
    pytester: pytest.Pytester, provider: Provider, context: object, seen: list[str], unseen: list[str]
) -> None:
    test = f"""
def test_rents(helmbench_openai, helmbench_model, helmbench_judge):
    talk = [{{"role": "user", "content": "CALL"}}]
    reply = helmbench_openai.chat.completions.create(model=helmbench_model, messages=talk)
    assert helmbench_judge(reply, "rents 7", context={context!r})
"""
    write_own_tests(pytester.path, test)
    verdict = json.dumps({"evidence": [], "justification": "", "judgment": "PASS"})
    call = {"id": "b", "type": "function", "function": {"name": "rent", "arguments": '{"boat": 7}'}}

    def reply(request: Request) -> Answer:
        if request.is_judge:
            return Answer(text=verdict)
        message = {"role": "assistant", "content": "I rent it.", "tool_calls": [call]}
        body = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
        return Answer(body=body)

    provider.reply = reply
    run_own_tests(pytester, provider, _JUDGE, f"--helmbench-marking-base-url={provider.url}", "-n0")
    (prompt,) = [request.prompt for request in provider.requests if request.is_judge]
    assert [text for text in seen if text not in prompt] == []
    assert [text for text in unseen if text in prompt] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("None, 'kind'", "helmbench_judge does not take NoneType as reply"),
        ("{'content': 'x'}, 'kind'", "helmbench_judge does not take dict as reply"),
        ("'x', 7", "helmbench_judge does not take int as rubric"),
        ("'x', 'kind', 7", "helmbench_judge does not take int as context"),
        ("'x', 'kind', [7]", "helmbench_judge does not take int as context"),
    ],
)
def test_what_a_judge_cannot_take_is_an_error(
    pytester: pytest.Pytester, provider: Provider, arguments: str, said: str
) -> None:
    write_own_tests(
        pytester.path, f"def test_it(helmbench_judge):\n    assert helmbench_judge({arguments})\n"
    )
    _judging(provider)
    urls = (_JUDGE, f"--helmbench-marking-base-url={provider.url}", "-n0")
    result = run_own_tests(pytester, provider, *urls)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{said}", "*hint: give a text, or what *"])


def test_a_session_that_goes_on_asks_no_judge_twice(pytester: pytest.Pytester, provider: Provider) -> None:
    write_own_tests(pytester.path, _TESTS)
    _judging(provider)
    urls = (_JUDGE, f"--helmbench-marking-base-url={provider.url}", "-n0")
    run_own_tests(pytester, provider, *urls, "-x").assert_outcomes(failed=1)
    assert provider.count == 2
    run_own_tests(pytester, provider, *urls, "--helmbench-resume").assert_outcomes(passed=1, failed=1)
    assert provider.count == 5


def test_a_judge_at_fault_is_an_error_and_without_one_nothing_is_asked(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    caught = """
def test_caught(helmbench_openai, helmbench_judge):
    try:
        assert helmbench_judge(ask(helmbench_openai, "ANSWER: x"), "is rude")
    except Exception:
        pass
"""
    write_own_tests(pytester.path, _TESTS + caught)
    without = run_own_tests(pytester, provider, "-rs")
    without.assert_outcomes(skipped=3)
    without.stdout.fnmatch_lines(["*no judge: give --helmbench-marking-model*"])
    assert provider.count == 0

    _judging(provider, "other")
    result = run_own_tests(pytester, provider, _JUDGE, f"--helmbench-marking-base-url={provider.url}")
    result.assert_outcomes(errors=3)
    result.stdout.fnmatch_lines(
        ["*the judge test/judge is at fault: judgement judge 1: 'judgment' is missing*"]
    )
    assert [row[2:] for run in (1, 2) for row in results_of_own_tests(pytester, run)] == [
        *[("skipped", "no_judge")] * 3,
        *[("error", "judge_off_menu")] * 3,
    ]

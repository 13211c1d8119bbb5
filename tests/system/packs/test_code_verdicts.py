"""Verdicts over code: honest replies of every shape pass, wrong ones fail with a sentence, no attack passes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from code_rows import CodeRow, code_rows, code_task, judge_all
from engines import Running
from shared_values import shared_value

from pytest_helmbench.benchmarks.packs.families.code_completion.check import (
    CodeFinding,
    CodeTests,
    code_self_check,
)
from pytest_helmbench.benchmarks.packs.families.code_completion.evaluation import code_image, evaluate_code
from pytest_helmbench.benchmarks.packs.task import (
    CommandCheck,
    Environment,
    PackTask,
    Resource,
    Visibility,
)
from pytest_helmbench.core.outcome import Beside, Verdict

_HONEST, _WRONG = code_rows("honest.txt"), code_rows("wrong.txt")
_ATTACKS, _ERRORS = code_rows("attacks.txt"), code_rows("errors.txt")
_ADD = "def add(a, b):\n    ...\n"
_ADDS = "def add(a, b):\n    return a + b\n"
_ADD_TESTS = "assert add(1, 2) == 3"


@pytest.fixture(scope="module")
def honest(bwrap: Running, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, CodeFinding]:
    return shared_value(tmp_path_factory, "code_honest", lambda: judge_all(bwrap, _HONEST, timeout_s=20.0))


@pytest.fixture(scope="module")
def wrong(bwrap: Running, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, CodeFinding]:
    return shared_value(tmp_path_factory, "code_wrong", lambda: judge_all(bwrap, _WRONG, timeout_s=5.0))


@pytest.fixture(scope="module")
def errors(bwrap: Running, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, CodeFinding]:
    return shared_value(tmp_path_factory, "code_errors", lambda: judge_all(bwrap, _ERRORS, timeout_s=20.0))


@pytest.mark.parametrize("row", _HONEST, ids=lambda row: row.name)
def test_an_honest_reply_passes(row: CodeRow, honest: Mapping[str, CodeFinding]) -> None:
    found = honest[row.name]
    assert found == CodeFinding(Verdict.PASSED)
    assert found.beside == (Beside.IN_PROCESS if row.says == "in_process" else None)


@pytest.mark.parametrize("row", _WRONG, ids=lambda row: row.name)
def test_a_wrong_reply_fails_with_a_sentence(row: CodeRow, wrong: Mapping[str, CodeFinding]) -> None:
    found = wrong[row.name]
    assert found.verdict is Verdict.FAILED
    assert row.says in found.text(shows=True)


@pytest.mark.parametrize("row", _ERRORS, ids=lambda row: row.name)
def test_what_is_the_packs_fault_is_an_error(row: CodeRow, errors: Mapping[str, CodeFinding]) -> None:
    found = errors[row.name]
    assert found.verdict is Verdict.ERROR
    assert found.reason == (
        "not_expressible" if found.message.startswith("not expressible: ") else "unfit_tests"
    )
    assert row.says in found.text(shows=True)


@pytest.mark.parametrize(
    ("image", "needed"),
    [
        (None, None),
        ("python", None),
        ("python:3.12-slim", None),
        ("docker.io/library/python:3", None),
        ("library/python:3.11.7-bookworm", None),
        ("python:2.7", "python:2.7"),
        ("example.org/python:3", "example.org/python:3"),
        ("pythonista:1", "pythonista:1"),
        ("node:22", "node:22"),
    ],
)
def test_a_stock_python_image_is_not_needed(image: str | None, needed: str | None) -> None:
    assert code_image(code_task(_ADD_TESTS, environment=Environment(image=image))) == needed


def test_python_in_containers(podman: Running) -> None:
    names = ("inline asserts", "arguments changed in place", "os._exit in a call", "always equal")
    rows = [row for row in (*_HONEST, *_ATTACKS) if row.name in names]
    found = judge_all(podman, rows, timeout_s=20.0)
    assert [found[name].verdict for name in names] == [Verdict.PASSED] * 2 + [Verdict.FAILED] * 2


def _in_shell(tests: str, command: str, image: str, timeout_s: float = 20.0) -> PackTask:
    return PackTask(
        *("row", "pack", "code_completion"),
        resources={
            "tests": Resource({"source": "inline", "code": tests}, Visibility.EVALUATION_INPUTS),
            "starter_code": Resource("greet() {\n}", Visibility.PUBLIC),
        },
        environment=Environment(image=image, timeout_s=timeout_s),
        check=CodeTests(tests, "bash", CommandCheck(("sh", "-c", command))),
    )


@pytest.mark.parametrize(
    ("command", "reply", "wanted"),
    [
        ("sh tests.sh", "```bash\ngreet() { echo hi; }\n```\n```\nnothing\n```", CodeFinding(Verdict.PASSED)),
        (
            "sh tests.sh",
            "greet() { echo no; }",
            CodeFinding(
                *(Verdict.FAILED, "tests_failed"),
                "eval.tests.command ended with exit code 1",
            ),
        ),
        (
            "no-such-program",
            "greet() { echo hi; }",
            CodeFinding(
                *(Verdict.ERROR, "cannot_start"),
                "eval.tests.command cannot be started (exit code 127)",
            ),
        ),
        (
            "sleep 60",
            "greet() { echo hi; }",
            CodeFinding(
                *(Verdict.FAILED, "timeout"),
                "eval.tests.command was stopped: no end within 3 s",
            ),
        ),
    ],
)
def test_another_language_runs_by_its_command(
    podman: Running, command: str, reply: str, wanted: CodeFinding
) -> None:
    tests = '. ./solution.sh\n[ "$(greet)" = hi ]'
    task = _in_shell(tests, command, str(podman.image), 3.0 if command == "sleep 60" else 20.0)
    assert podman.wait(evaluate_code(task, reply, podman.engine)) == wanted


@pytest.mark.parametrize("reply", ["other() { :; }", "greet() { exit 127; }", "exit 126"])
def test_a_reply_cannot_have_its_tests_look_as_if_they_were_not_started(podman: Running, reply: str) -> None:
    task = _in_shell(". ./solution.sh\ngreet", "sh tests.sh", str(podman.image))
    found = podman.wait(evaluate_code(task, reply, podman.engine))
    assert (found.verdict, found.reason) == (Verdict.FAILED, "cannot_start")


def test_the_self_check_of_a_row(bwrap: Running) -> None:
    tests = code_task(_ADD_TESTS, _ADD, canonical_solution="    return a + b", reference_solution=_ADDS)
    known = code_self_check(tests)
    assert [(label, must_pass) for label, _, must_pass in known] == [
        ("reference_solution", True),
        ("canonical_solution", True),
        ("an empty reply", False),
        ("'I do not know'", False),
        ("the prompt, echoed", False),
        ("the starter code, untouched", False),
    ]

    async def judge() -> list[CodeFinding]:
        return await asyncio.gather(*(evaluate_code(tests, text, bwrap.engine) for _, text, _ in known))

    verdicts = [finding.verdict is Verdict.PASSED for finding in bwrap.wait(judge())]
    assert verdicts == [must_pass for *_, must_pass in known]


def test_solutions_stay_out_of_findings(bwrap: Running) -> None:
    task = code_task(_ADD_TESTS, _ADD, reference_solution="HIDDEN = 1\n" + _ADDS)
    finding = bwrap.wait(evaluate_code(task, "def add(a, b):\n    return 0", bwrap.engine))
    assert "HIDDEN" not in repr(finding)
    assert (finding.message, finding.line) == (
        "AssertionError at line 1 of the tests",
        "assert add(1, 2) == 3",
    )


def test_a_cancelled_row_leaves_nothing(bwrap: Running) -> None:
    task = code_task(_ADD_TESTS, _ADD, environment=Environment(timeout_s=60.0))

    async def cancel() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(
                evaluate_code(task, "def add(a, b):\n    while True: pass", bwrap.engine), 0.5
            )

    bwrap.wait(cancel())


def test_the_published_rule_takes_the_reply_as_it_stands(bwrap: Running) -> None:
    task = code_task(_ADD_TESTS, _ADD)
    replies = (_ADDS, f"```python\n{_ADDS}```", "    return a + b")

    async def judge() -> list[bool]:
        every = (
            evaluate_code(task, reply, bwrap.engine, parity=parity)
            for reply in replies
            for parity in (True, False)
        )
        return [found.verdict is Verdict.PASSED for found in await asyncio.gather(*every)]

    assert bwrap.wait(judge()) == [True, True, False, True, False, True]


_SECRET = "okapi_1"
_KEPT_BACK = [
    (
        "the name that the tests miss",
        "okapi_1()",
        _ADDS,
        "neither the reply nor the tests define a name that",
    ),
    (
        "a class of the tests",
        "class okapi_1(KeyError): pass\nraise okapi_1",
        _ADDS,
        "a kind of KeyError at line 3",
    ),
    ("a module that the tests need", "import okapi_1", _ADDS, "need a module that is not in the sandbox"),
    (
        "a test of a test case",
        "import unittest\nclass Test(unittest.TestCase):\n    def test_okapi_1(self): self.fail()",
        _ADDS,
        "a test fails at line 4 of the tests",
    ),
    (
        "a value, by the class that the reply makes of it",
        "",
        "def add(a, b):\n    raise type('x_' + str(a), (LookupError,), {})(a)",
        "the candidate raised a kind of LookupError at line 1 of the tests",
    ),
    (
        "a value, by the text that looks like a line of the tests",
        "",
        "def add(a, b):\n    raise ValueError(chr(34) + 'tests.py' + chr(34) + ', line ' + str(a) + ' ,')",
        "the candidate raised ValueError at line 1 of the tests",
    ),
]


@pytest.mark.parametrize("case", _KEPT_BACK, ids=lambda case: case[0])
def test_messages_name_what_only_tests_know_where_tests_are_shown(
    case: tuple[str, str, str, str], bwrap: Running
) -> None:
    _, tests, reply, sentence = case
    found = bwrap.wait(evaluate_code(code_task(f"add({_SECRET!r}, 'x')\n{tests}"), reply, bwrap.engine))
    assert found.verdict is not Verdict.PASSED
    assert sentence in found.text(shows=False)
    assert _SECRET not in found.text(shows=False)


def test_messages_name_what_the_public_input_names(bwrap: Running) -> None:
    starter = "class AddError(Exception): pass\ndef add(a, b):\n"
    raising = "class AddError(Exception): pass\ndef add(a, b):\n    raise AddError"
    for reply, parity, said in (
        (raising, False, "the candidate raised AddError at line 1 of the tests"),
        ("x = 1", True, "neither the reply nor the tests define 'add' at line 1 of the tests"),
    ):
        finding = bwrap.wait(
            evaluate_code(code_task(_ADD_TESTS, starter), reply, bwrap.engine, parity=parity)
        )
        assert finding.text(shows=False) == said

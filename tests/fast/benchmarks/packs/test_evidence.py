"""Records weighed: what is missing for a pass, whose fault a breakdown is, and that only known keys say anything."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFinding
from pytest_helmbench.benchmarks.packs.evidence.inside.start import called, runs_pytest
from pytest_helmbench.benchmarks.packs.evidence.verdicts import (
    CommandJudge,
    CommandRun,
    Reports,
    Session,
    read_records,
    runs_tests,
    shortfall,
)
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.sandbox.box import Ended

_ENDED = Ended(0, b"", b"", False, False, "", 1.0)
_WANTED = Session(items=("t.py::a", "t.py::b[1]", "t.py::b[2]"), ended=0)
_TESTS = (("t.py::a", "passed"), ("t.py::b[x]", "passed"), ("t.py::b[y]", "passed"))
_NOTHING: tuple[list[str], list[str]] = ([], [])
_WHOLE = Session(tests=_TESTS, ended=0, decoy="failed")


def _seen(*sessions: Session) -> Reports:
    return Reports(sessions)


@pytest.mark.parametrize(
    ("session", "sentences"),
    [
        (_WHOLE, ()),
        (replace(_WHOLE, spread=True, decoy=None), ()),
        (replace(_WHOLE, ended=None), ("the test run never came to its end",)),
        (replace(_WHOLE, decoy="passed"), ("a test that must fail has passed",)),
        (replace(_WHOLE, decoy=None), ("a test that must fail was left out",)),
        (replace(_WHOLE, tests=_TESTS[1:]), ("1 not run",)),
        (replace(_WHOLE, tests=(("t.py::a", "skipped"), *_TESTS[1:])), ("1 skipped",)),
        (replace(_WHOLE, tests=(*_TESTS, ("t.py::new", "skipped"))), ("1 skipped",)),
        (replace(_WHOLE, tampered=frozenset({"builtins.len"})), ("builtins.len was replaced",)),
        (replace(_WHOLE, broken=(("u.py", "x"),)), ("there are tests that cannot be collected",)),
    ],
)
def test_what_is_missing_for_a_pass(session: Session, sentences: tuple[str, ...]) -> None:
    assert shortfall(_seen(session), _seen(_WANTED))[0] == list(sentences)


def test_fewer_cases_of_one_test_are_missing() -> None:
    assert shortfall(_seen(replace(_WHOLE, tests=_TESTS[:2])), _seen(_WANTED))[0]


def test_what_is_so_without_the_candidate_is_excused() -> None:
    seen = _seen(replace(_WHOLE, tests=(("t.py::a", "skipped"), *_TESTS[1:])))
    assert shortfall(seen, _seen(_WANTED))[0]
    assert shortfall(seen, _seen(_WANTED), seen) == _NOTHING
    for lost in (_TESTS[1:], _TESTS[:1], _TESTS[:2]):  # but a test that never ran is missing
        never = _seen(replace(_WHOLE, tests=lost))
        assert shortfall(never, _seen(_WANTED), never)[0]
        assert shortfall(_seen(replace(_WANTED, tests=lost)), _seen(), _seen())[0]


def test_names_in_files_that_cannot_be_imported_without_the_candidate_are_expected() -> None:
    wanted = _seen(Session(named=("t.py::a", "t.py::b"), ended=2))
    assert shortfall(_seen(_WHOLE), wanted) == _NOTHING
    assert shortfall(_seen(replace(_WHOLE, tests=_TESTS[:1])), wanted)[1] == ["t.py::b not run"]


def test_only_known_keys_say_anything_and_a_session_ends_once() -> None:
    lines = (
        *(("k1", ["open", "pytest"]), ("k1", ["test", "a", "passed"])),
        *(("k9", ["test", "b", "failed"]), ("k1", ["end", 0])),
    )
    data = "".join(f"{key} {json.dumps(parts)}\n" for key, parts in lines).encode() + b"k1 nonsense\n\xff\n"
    assert read_records(data, ["k1"]) == _seen(Session(tests=(("a", "passed"),), ended=0))
    assert read_records(data + b'k1 ["end", 0]\n', ["k1"]).ends == (None,)
    assert read_records(b"", ["k1"]).ends == (None,)


def test_a_breakdown_is_the_packs_only_when_it_is_the_same_without() -> None:
    def judged(ran: CommandRun, without: CommandRun) -> AgentFinding:
        async def control(_collects: bool) -> CommandRun:
            return without

        return asyncio.run(CommandJudge("it", ran, control, names_tests=True).finding())

    killed, nothing = (
        CommandRun(replace(_ENDED, exit_code=137), _seen(Session())),
        CommandRun(_ENDED, _seen()),
    )
    assert judged(killed, killed).verdict is Verdict.ERROR
    assert judged(killed, CommandRun(_ENDED, _seen(_WANTED))).verdict is Verdict.FAILED
    assert judged(nothing, nothing).reason == "no_evidence"
    assert judged(nothing, CommandRun(_ENDED, _seen(_WANTED))).verdict is Verdict.FAILED
    assert judged(CommandRun(_ENDED, _seen(_WHOLE)), CommandRun(_ENDED, _seen(_WANTED))) == AgentFinding(
        Verdict.PASSED
    )


@pytest.mark.parametrize(
    ("command", "is_so"),
    [
        ("python -m pytest -q", True),
        ("python -Bm unittest x", False),
        ("/v/bin/python /v/bin/pytest tests", True),
        ("python /v/bin/coverage run -m pytest", True),
        ("python -W error -X dev -c pass", False),
        ("python -m http.server", False),
        ("python", False),
    ],
)
def test_pytest_is_known_by_how_python_was_called(command: str, is_so: bool) -> None:
    assert runs_pytest(command.split()) is is_so
    assert called(["python", "-ISE", "a.py", "-m", "x"]) == ("script", "a.py")


@pytest.mark.parametrize(
    ("command", "is_so"),
    [
        (("pytest", "-q"), True),
        (("sh", "-lc", "cd x && /v/bin/py.test x"), True),
        (("python", "-m", "unittest"), False),
        (("cat", "pytest.ini"), False),
        (("ls", "lib/pytest/x"), False),
    ],
)
def test_a_command_that_names_a_runner(command: tuple[str, ...], is_so: bool) -> None:
    assert runs_tests(command) is is_so

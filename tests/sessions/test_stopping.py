"""How a session stops: `-x`, `--maxfail`, Ctrl-C, a controller that is killed."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from commands import captured
from inner_pytest import QUICK, run_pytest_forked
from provider import Answer, Provider, Request
from sessions import Session, until
from trees import Part, Tree, category, judged, rows, run_tree, write_tree
from waiting import PATIENCE_S

from pytest_helmbench.pytest_side.workers.role import INTERRUPT_GRACE_S

_CONCURRENCY = 4
_HANGS = """
import os, pathlib, signal, time, pytest

@pytest.mark.parametrize("number", range(4))
def test_hangs(number):
    pathlib.Path(f"hangs-{os.getpid()}").touch()
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
"""
_workers = pytest.mark.parametrize("workers", ["-n0", "-n2"])


def _run_status(pytester: pytest.Pytester) -> str:
    return str(rows(pytester.path / "helmbench.db", "select status from evaluation_runs")[0][0])


@_workers
@pytest.mark.parametrize(("option", "failures"), [("-x", 1), ("--maxfail=3", 3)])
def test_a_session_that_stops_at_failures_wastes_few_calls(
    pytester: pytest.Pytester, provider: Provider, workers: str, option: str, failures: int
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["CALM"] * 200)})
    # The first case of both workers is slow: all that may be asked beside it is asked meanwhile.
    provider.latency_s = 0.1  # the word of a failure is faster
    provider.answers(
        latency_s=0.6, when=lambda request: "Message 1." in request.prompt or "Message 2." in request.prompt
    )
    result = run_tree(pytester, workers, option, f"--helmbench-concurrency={_CONCURRENCY}", url=provider.url)
    asked = provider.count
    # Per worker: what failed, what was on its way when word came, and what waited.
    assert asked <= 2 * failures + 2 * _CONCURRENCY
    assert result.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    assert f"stopping after {failures} failures" in result.stdout.str()
    assert _run_status(pytester) in ("partial", "interrupted")
    recorded = rows(pytester.path / "helmbench.db", "select count(*) from calls")[0][0]
    time.sleep(0.2)
    assert recorded == provider.count == asked


_FOR_EVER_S = 600.0


def _interrupted(
    pytester: pytest.Pytester, provider: Provider, workers: str, grace_s: float, *, everybody: bool
) -> Session:
    """Return a session that has heard Ctrl-C, whose provider hangs, and that says what it waits for."""
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 50)})
    provider.answers(hang=True)
    concurrency = f"--helmbench-concurrency={_CONCURRENCY}"
    session = Session(pytester.path, provider.url, workers, "-q", concurrency, grace_s=grace_s)
    until(lambda: provider.in_flight == _CONCURRENCY, "the calls go out")
    session.interrupt(everybody=everybody)
    awaited = f"{_CONCURRENCY} calls still in flight: up to {grace_s:g} s more"
    until(lambda: f"helmbench: {awaited}" in session.text, "it says what it waits for")
    return session


def _has_ended(pytester: pytest.Pytester, provider: Provider, session: Session) -> None:
    """Check that an interrupted session ends as it should."""
    assert session.end() == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in session.text
    assert "pytest_helmbench/" not in session.text
    assert provider.count == _CONCURRENCY
    assert session.living_workers() == []
    assert _run_status(pytester) == "interrupted"
    assert "INTERNALERROR" not in session.text
    # Every call that was sent is on record.
    ends = rows(pytester.path / "helmbench.db", "select error, count(*) from calls group by error")
    assert ends == [("cancelled", _CONCURRENCY)]


@pytest.mark.parametrize(
    ("workers", "everybody"),
    [("-n0", True), ("-n2", True), ("-n2", False)],
    ids=["n0", "n2", "n2-controller"],
)
def test_a_second_ctrl_c_ends_a_session_whose_provider_hangs(
    pytester: pytest.Pytester, provider: Provider, workers: str, everybody: bool
) -> None:
    session = _interrupted(pytester, provider, workers, _FOR_EVER_S, everybody=everybody)
    time.sleep(0.3)  # sooner it would be the same stroke
    session.interrupt(everybody=everybody)
    _has_ended(pytester, provider, session)


@_workers
def test_one_ctrl_c_waits_for_slow_calls_and_not_for_ever(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    assert INTERRUPT_GRACE_S == 5.0
    started = time.monotonic()
    session = _interrupted(pytester, provider, workers, 1.5, everybody=True)
    _has_ended(pytester, provider, session)
    assert time.monotonic() - started >= 1.5


@_workers
def test_ctrl_c_that_ends_the_reader_of_the_output_too_loses_no_reply(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 50)})
    provider.latency_s = 0.3
    options = [f"--helmbench-base-url={provider.url}", "--helmbench-model=test/good"]
    words = ["benchmark", "-q", workers, *options, f"--helmbench-concurrency={_CONCURRENCY}"]
    # Started anew: what forks others reads their output itself.
    command = [sys.executable, "-m", "pytest", *QUICK, *words]
    with subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.PIPE) as process:
        until(lambda: provider.count >= 3 * _CONCURRENCY, "the calls go out")
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        process.stdout.close()  # as where a terminal ends `| tee`
        assert process.wait(PATIENCE_S) == pytest.ExitCode.INTERRUPTED
    answered = provider.count
    assert rows(pytester.path / "helmbench.db", "select count(*) from responses") == [(answered,)]
    assert _run_status(pytester) == "interrupted"


@_workers
def test_replies_that_come_after_ctrl_c_are_kept_and_lead_to_no_further_call(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": judged(*["fine"] * 50)})
    provider.hold()
    options = ("-q", "--helmbench-marking-model=test/judge", f"--helmbench-concurrency={_CONCURRENCY}")
    session = Session(pytester.path, provider.url, workers, *options, grace_s=_FOR_EVER_S)
    until(lambda: provider.in_flight == _CONCURRENCY, "the calls go out")
    session.interrupt(everybody=True)
    until(lambda: "still in flight" in session.text, "it waits")
    provider.let_go()
    assert session.end() == pytest.ExitCode.INTERRUPTED
    assert provider.count == _CONCURRENCY
    calls = rows(pytester.path / "helmbench.db", "select purpose, error, response_id is null from calls")
    assert calls == [("case", None, 0)] * _CONCURRENCY
    assert rows(pytester.path / "helmbench.db", "select * from results") == []


@pytest.mark.parametrize(
    ("workers", "number", "who"),
    [("-n0", signal.SIGTERM, ""), ("-n2", signal.SIGHUP, ""), ("-n2", signal.SIGTERM, "gw1")],
    ids=["n0-term", "n2-hup", "n2-term-worker"],
)
def test_a_signal_to_a_session_or_a_worker_ends_it_like_ctrl_c(
    pytester: pytest.Pytester, provider: Provider, workers: str, number: signal.Signals, who: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 50)})
    provider.hold()
    concurrency = f"--helmbench-concurrency={_CONCURRENCY}"
    session = Session(pytester.path, provider.url, workers, "-q", concurrency, grace_s=_FOR_EVER_S)
    until(lambda: provider.in_flight == _CONCURRENCY, "the calls go out")
    session.send(number, *([who] if who else []))
    until(lambda: "still in flight" in session.text, "it waits")
    provider.let_go()
    assert session.end() == pytest.ExitCode.INTERRUPTED, session.text
    assert provider.count == _CONCURRENCY
    # Replies are on record, and the other cases can still be asked.
    calls = rows(pytester.path / "helmbench.db", "select error, response_id is null from calls")
    assert calls == [(None, 0)] * _CONCURRENCY
    assert _run_status(pytester) == "interrupted"
    assert f"KeyboardInterrupt: {who + ' was sent ' if who else ''}{number.name}" in session.text
    judged_cases = rows(pytester.path / "helmbench.db", "select count(*) from results")[0][0]
    assert f": the same command with --helmbench-resume asks the {50 - judged_cases} again" in session.text
    assert session.living_workers() == []
    assert "replacing crashed worker" not in session.text
    assert "INTERNALERROR" not in session.text


_SENDS = """
import gc, os, signal

def _collected(phase, about):
    signal.raise_signal(signal.SIGTERM)
    gc.callbacks.remove(_collected)

def pytest_configure(config):
    global is_meant
    is_meant = hasattr(config, "workerinput") == ("WORKER" in os.environ)

def pytest_runtest_logreport(report):
    if is_meant and report.when == "call" and report.nodeid.endswith("-PT3[test/good]"):
        gc.callbacks.append(_collected)
        gc.collect()
"""


@pytest.mark.parametrize(("workers", "where"), [("-n0", ""), ("-n2", ""), ("-n2", "worker")])
def test_a_signal_in_the_middle_of_a_collection_of_garbage_ends_the_session(
    pytester: pytest.Pytester,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    workers: str,
    where: str,
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 50)})
    (pytester.path / "sends.py").write_text(_SENDS, encoding="utf-8")
    if where:
        monkeypatch.setenv("WORKER", "yes")
    provider.answers(latency_s=0.2)
    limit = f"--helmbench-concurrency={_CONCURRENCY}"
    session = Session(pytester.path, provider.url, workers, "-q", "-p", "sends", limit)
    assert session.end() == pytest.ExitCode.INTERRUPTED, session.text
    assert "SIGTERM" in session.text
    assert provider.count < 50
    assert _run_status(pytester) == "interrupted"


def test_workers_end_when_their_controller_is_killed(pytester: pytest.Pytester, provider: Provider) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 50)})
    provider.answers(hang=True)
    session = Session(pytester.path, provider.url, "-n2", f"--helmbench-concurrency={_CONCURRENCY}")
    until(lambda: provider.in_flight == _CONCURRENCY, "the calls go out")
    session.kill()
    until(lambda: not session.living_workers(), "the workers end")
    until(lambda: provider.in_flight == 0, "their calls end")


@_workers
def test_a_hand_written_test_that_is_interrupted_waits_for_its_reply_and_no_longer(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    pytester.makepyfile(
        test_chat="""
        def test_it(helmbench_openai, helmbench_model):
            for turn in range(50):
                messages = [{"role": "user", "content": f"Turn {turn}."}]
                helmbench_openai.chat.completions.create(model=helmbench_model, messages=messages)
        """
    )
    provider.answers(latency_s=0.5)
    paths = ["test_chat.py"]
    session = Session(pytester.path, provider.url, workers, "-q", paths=paths, grace_s=_FOR_EVER_S)
    until(lambda: provider.in_flight == 1, "a call goes out")
    session.send(signal.SIGTERM)
    assert session.end() == pytest.ExitCode.INTERRUPTED, session.text  # no reply is awaited that is there
    calls = rows(pytester.path / "helmbench.db", "select error, response_id is null from calls")
    assert calls == [(None, 0)] * provider.count
    assert rows(pytester.path / "helmbench.db", "select * from results") == []
    assert "the same command with --helmbench-resume asks the 1 again" in session.text


def test_a_signal_that_is_ignored_ends_nothing(pytester: pytest.Pytester, provider: Provider) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 2)})
    provider.answers(latency_s=0.5)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup
    try:
        session = Session(pytester.path, provider.url, "-n0", "-q")
        until(lambda: provider.in_flight, "the calls go out")
        session.send(signal.SIGHUP)
        assert session.end() == 0, session.text
    finally:
        signal.signal(signal.SIGHUP, before)


def test_workers_whose_thread_of_tests_hangs_end_with_their_controller(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK")})
    (pytester.path / "hanging.py").write_text(_HANGS, encoding="utf-8")
    session = Session(pytester.path, provider.url, "-n2", paths=("hanging.py", "benchmark"), anew=True)
    until(lambda: len(list(pytester.path.glob("hangs-*"))) == 2, "both workers hang")
    session.kill()
    until(lambda: not session.living_workers(), "the workers end")


_SLOW = """
import pathlib, time

def answer(messages):
    words = messages[-1]["content"].split()
    if "slow" in words and not pathlib.Path("quick").exists():
        time.sleep(60)
    return "call a teacher"
"""


@_workers
def test_a_case_that_pytest_timeout_ends_is_an_error_on_record(
    pytester: pytest.Pytester, workers: str
) -> None:
    (pytester.path / "slow_app.py").write_text(_SLOW)
    parts = {f"PT{number}": Part(word) for number, word in enumerate(("soon", "slow", "soon"), 1)}
    rule = ("evaluation:", "  type: contains", "  expected: teacher")
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": Tree(rule, None, parts, {})})
    ask = ("benchmark", workers, "--helmbench-model=python:slow_app:answer", "--timeout=2")
    result = run_pytest_forked(pytester, *ask)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["Timeout (>2.0s) from pytest-timeout.", "*hint: raise --timeout*"])
    found = "SELECT perturbation, outcome, reason FROM v_results WHERE outcome <> 'passed'"
    assert rows(pytester.path / "helmbench.db", found) == [("PT2", "error", "timed_out")]
    result.stdout.fnmatch_lines(["not judged*timed_out 1*--helmbench-resume asks the 1 again"])
    assert "not asked" not in result.stdout.str()

    (pytester.path / "quick").touch()
    run_pytest_forked(pytester, *ask, "--helmbench-resume").assert_outcomes(passed=3)


def _table(pytester: pytest.Pytester, provider: Provider) -> None:
    """Write a table whose second question is never answered, and the others wrongly at once."""
    lines = [f"city{number},Where is place {number}?,Oslo" for number in range(1, 5)]
    lines = ["id,question,answer", lines[0], "slow,Where is SLOW?,Oslo", *lines[1:]]
    (pytester.path / "cities.csv").write_text("\n".join(lines))
    (pytester.path / "pytest.ini").write_text("[pytest]\n")

    def reply(request: Request) -> str | Answer:
        if "SLOW" in request.prompt:
            return Answer(hang=True)
        return f"Answer: Rome{request.prompt.count('place 3') * ' (not sure)'}"

    provider.reply = reply


def _stored_failures(pytester: pytest.Pytester) -> int:
    database = pytester.path / "helmbench.db"
    if not database.exists():
        return 0
    with suppress(sqlite3.OperationalError):  # its tables are still to come
        return int(rows(database, "SELECT count(*) FROM results WHERE outcome = 'failed'")[0][0])
    return 0


@_workers
@pytest.mark.parametrize(("model", "free"), [("llamacpp/m", True), ("test/good", False)])
def test_sigterm_lists_the_failures_that_were_judged_and_the_calls_in_flight(
    pytester: pytest.Pytester, provider: Provider, workers: str, model: str, free: bool
) -> None:
    _table(pytester, provider)
    options = [f"--helmbench-base-url={provider.url}", f"--helmbench-model={model}"]
    command = [sys.executable, "-m", "pytest", *QUICK, "cities.csv", workers, *options]
    with subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.PIPE, text=True) as process:
        until(lambda: _stored_failures(pytester) == 4, "the others are judged")
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=PATIENCE_S)[0]
    assert ("free; results" in said) is free
    assert "helmbench: 1 call still in flight: up to 5 s more; Ctrl-C again ends at once\n" in said
    assert "billed" not in said
    uncounted = re.search(r"4 judged in .*, (\d) not in pytest's count", said)
    counted = re.search(r"(\d) failed in", said)
    assert sum(int(found[1]) for found in (uncounted, counted) if found is not None) == 4, said
    for number in range(1, 5):
        assert said.count(f"city{number}[{model}]") == 1, said
    assert "Rome (not sure)" in said


def test_runs_shows_what_a_killed_run_has_stored(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    _table(pytester, provider)
    options = [f"--helmbench-base-url={provider.url}", "--helmbench-model=llamacpp/m"]
    command = [sys.executable, "-m", "pytest", *QUICK, "cities.csv", *options]
    with subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.DEVNULL) as process:
        until(lambda: _stored_failures(pytester) == 4, "the others are judged")
        process.kill()
    code, shown, _ = captured(capsys, "runs")
    assert code == 0
    cases, failed, unjudged, *score = shown.split()[-5:]
    assert (cases, failed, unjudged, score) == ("5", "4", "1", ["0.0", "%"])
    assert " interrupted " in shown
    (run,) = json.loads(captured(capsys, "runs", "--json")[1])
    assert (run["failed_tests"], run["passed_tests"], run["score"], run["known_cost_usd"]) == (
        4,
        0,
        0.0,
        0.004,
    )

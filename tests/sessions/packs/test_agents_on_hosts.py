"""Agents that work where the judges are: on workers of a real Dask cluster, which die, and whose session dies."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from clusters import Cluster, Process, import_dask, opened_cluster
from engines import Running, containers
from packs import write_pack
from provider import Answer, Provider, Request
from records import final_state
from repositories import write_bundle
from scripted import answer_turns, left_alive, patch_row, task_row, turn_of
from sessions import Session, until
from trees import clear_environment, rows, run_tree

from pytest_helmbench.engine.parcels import Packer

# Not imported here: a second, for every worker that collects.
pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="the extra `dask` is not installed")

_BWRAP = ("-n0", "--helmbench-sandbox=bwrap")
_WRITES = "echo 42 > answer.txt"
_OUTCOMES = "SELECT code, outcome, reason FROM results ORDER BY code"

_AGENT = """\
import json, os, pathlib, urllib.request
def ask(text):
    body = json.dumps({"model": "any", "messages": [{"role": "user", "content": text}]})
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body.encode(), headers)
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
first = ask("first question")
pathlib.Path("answer.txt").write_text(ask("second question after " + first))
"""


@pytest.fixture(scope="module", autouse=True)
def _dask_is_imported() -> None:
    import_dask()


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler without a worker."""
    with opened_cluster(tmp_path) as opened:
        yield opened


def _before(provider: Provider, is_reached: Callable[[Request], bool], act: Callable[[], object]) -> None:
    """Have something done once, before the provider answers a certain request."""
    answer = provider.reply
    acted: list[Request] = []

    def reply(request: Request) -> str | Answer | None:
        if is_reached(request) and not acted:
            acted.append(request)
            act()
        return None if answer is None else answer(request)

    provider.reply = reply


def _replaced(cluster: Cluster, worker: Process) -> None:
    """Kill a worker, and start another."""
    worker.kill()
    cluster.worker()


def _nothing_twice(provider: Provider) -> bool:
    return len({request.raw for request in provider.requests}) == provider.count


def test_agents_work_on_hosts_as_they_do_here_and_one_that_dies_costs_no_call(
    pytester: pytest.Pytester, provider: Provider, bwrap: Running, cluster: Cluster
) -> None:
    del bwrap
    commit = write_bundle(pytester.path)
    found = [
        task_row("t-right"),
        task_row("t-wrong"),
        patch_row("r-right", commit),
        patch_row("r-wrong", commit),
    ]
    write_pack(pytester.path / "benchmark", found)
    turns = {
        "t-right": ["ls", f"{_WRITES}; exit 3", "cat answer.txt"],
        "t-wrong": ["echo 41 > answer.txt"],
        "r-right": ["sed -i 's/a - b/a + b/' src/calculator.py"],
        "r-wrong": ["echo '# nothing' >> src/calculator.py"],
    }
    first = cluster.worker()
    answer_turns(provider, turns)
    _before(provider, lambda request: turn_of(request) == 3, lambda: _replaced(cluster, first))

    result = run_tree(pytester, *_BWRAP, f"--helmbench-judges={cluster.address}", url=provider.url)

    result.assert_outcomes(passed=2, failed=2)
    assert "on this machine" not in result.stdout.str()
    assert _nothing_twice(provider)
    asked = provider.count
    run_tree(pytester, *_BWRAP, "--helmbench-db=here.db", url=provider.url)
    assert provider.count == 2 * asked
    assert final_state(pytester.path / "helmbench.db") == final_state(pytester.path / "here.db")
    events = "SELECT count(*), sum(type = 'command') FROM events"
    assert rows(pytester.path / "helmbench.db", events) == rows(pytester.path / "here.db", events)


def test_an_agent_that_loses_two_judges_is_an_error_and_leaves_nothing(
    pytester: pytest.Pytester, provider: Provider, bwrap: Running, cluster: Cluster
) -> None:
    del bwrap
    mark = f"sleep 7{cluster.scheduler.pid}.1"
    write_pack(pytester.path / "benchmark", [task_row("t")])
    answer_turns(provider, {"t": [mark]})
    workers = [cluster.worker()]
    options = (*_BWRAP, "-q", f"--helmbench-judges={cluster.address}")
    session = Session(pytester.path, provider.url, *options)
    for _ in range(2):
        until(lambda: any(words.startswith(mark) for words in left_alive(mark)), "the command runs")
        workers[-1].kill()
        until(lambda: not left_alive(mark), "the command dies with its judge")
        workers.append(cluster.worker())
    assert session.end() == pytest.ExitCode.TESTS_FAILED, session.text
    assert rows(pytester.path / "helmbench.db", _OUTCOMES) == [("t", "error", "agent_failed")]
    assert "its judge was lost while an agent worked, and so was the next one" in session.text
    assert provider.count == 1


def test_hosts_that_cannot_ask_the_session_end_in_an_error(
    pytester: pytest.Pytester, provider: Provider, bwrap: Running, cluster: Cluster
) -> None:
    del bwrap
    write_pack(pytester.path / "benchmark", [task_row("t")])
    cluster.worker(preload="import distributed; distributed.get_client = None")
    result = run_tree(pytester, *_BWRAP, f"--helmbench-judges={cluster.address}", url=provider.url)
    assert rows(pytester.path / "helmbench.db", _OUTCOMES) == [("t", "error", "agent_failed")]
    result.stdout.fnmatch_lines(["*none of its judges could ask the session*"])
    assert provider.count == 0


def test_a_session_that_is_killed_ends_its_agents_and_asks_nothing_again(
    pytester: pytest.Pytester, provider: Provider, bwrap: Running, cluster: Cluster
) -> None:
    del bwrap
    mark = f"sleep 100.0{cluster.scheduler.pid}"
    write_pack(pytester.path / "benchmark", [task_row("t")])
    answer_turns(provider, {"t": [_WRITES, mark]})
    cluster.worker(waits=True)
    options = (*_BWRAP, "-q", f"--helmbench-judges={cluster.address}", "-ohelmbench_judges_wait=0")
    session = Session(pytester.path, provider.url, *options)
    until(lambda: any(words.startswith(mark) for words in left_alive(mark)), "the command runs")
    session.kill()
    until(lambda: not left_alive(mark), "the host ends the agent of a session that is silent")

    again = Session(pytester.path, provider.url, *options, "--helmbench-case-timeout=4", "--helmbench-resume")
    assert again.end() == pytest.ExitCode.OK, again.text
    assert provider.count == 2, "what is on record is given again"


def test_a_session_that_stops_ends_the_agents_on_hosts(
    pytester: pytest.Pytester, provider: Provider, bwrap: Running, cluster: Cluster
) -> None:
    del bwrap
    mark = f"sleep 101.0{cluster.scheduler.pid}"
    write_pack(pytester.path / "benchmark", [task_row("wrong"), task_row("a")])
    answer_turns(provider, {"wrong": ["true"], "a": [mark]})
    for _ in range(2):
        cluster.worker(waits=True)
    result = run_tree(pytester, *_BWRAP, "-x", f"--helmbench-judges={cluster.address}", url=provider.url)
    result.assert_outcomes(failed=1)
    until(lambda: not left_alive(mark), "the host is told that the session has ended")


def test_agents_run_nowhere_else_when_all_judges_are_gone(
    pytester: pytest.Pytester, provider: Provider, bwrap: Running, cluster: Cluster
) -> None:
    del bwrap
    write_pack(pytester.path / "benchmark", [task_row("t")])
    answer_turns(provider, {"t": [_WRITES, "cat answer.txt"]})
    worker = cluster.worker(waits=True)

    def end_all() -> None:
        worker.kill()
        cluster.scheduler.kill()

    _before(provider, lambda request: turn_of(request) == 1, end_all)
    options = (*_BWRAP, f"--helmbench-judges={cluster.address}", "-ohelmbench_judges_wait=0")
    result = run_tree(pytester, *options, url=provider.url)
    assert rows(pytester.path / "helmbench.db", _OUTCOMES) == [("t", "error", "no_judges")]
    result.stdout.fnmatch_lines(["*its code runs on their hosts only*"])

    here = run_tree(pytester, *_BWRAP, "--helmbench-resume", url=provider.url)
    here.assert_outcomes(passed=1)
    assert provider.count == 3
    assert _nothing_twice(provider)


def test_an_agent_of_the_users_works_on_a_host_and_asks_over_the_relay_there(
    pytester: pytest.Pytester,
    provider: Provider,
    bwrap: Running,
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del bwrap
    key = "sk-0123456789abcdef"
    monkeypatch.setenv("BENCH_KEY", key)
    parcels: list[bytes] = []
    monkeypatch.setattr(Packer, "parcel", _kept(Packer.parcel, parcels))
    (pytester.path / "agent.py").write_text(_AGENT)
    write_pack(pytester.path / "benchmark", [task_row("t")])
    provider.reply = lambda request: "42\n" if "second" in request.prompt else "a word"
    first = cluster.worker()
    _before(provider, lambda request: "second" in request.prompt, lambda: _replaced(cluster, first))
    options = (*_BWRAP, "--helmbench-api-key-env=BENCH_KEY", f"--helmbench-agent={sys.executable} agent.py")

    result = run_tree(pytester, *options, f"--helmbench-judges={cluster.address}", url=provider.url)

    result.assert_outcomes(passed=1)
    assert [request.prompt for request in provider.requests] == [
        "first question",
        "second question after a word",
    ]
    assert "on this machine" not in result.stdout.str()
    assert provider.requests[0].headers["authorization"] == f"Bearer {key}"
    assert len(parcels) == 2, "the question for a sandbox, and the row"
    assert not [parcel for parcel in parcels if key.encode() in parcel or provider.url.encode() in parcel]


def _kept(function: Callable[..., bytes], made: list[bytes]) -> Callable[..., bytes]:
    """Return a function that keeps what it returns."""

    def keeping(*given: object) -> bytes:
        made.append(function(*given))
        return made[-1]

    return keeping


def test_an_agent_without_a_fence_is_not_sent_to_other_hosts(
    pytester: pytest.Pytester, provider: Provider, bwrap: Running, cluster: Cluster
) -> None:
    del bwrap
    (pytester.path / "agent.py").write_text(_AGENT)
    write_pack(pytester.path / "benchmark", [task_row("t"), task_row("u")])
    provider.reply = lambda _request: "42\n"
    options = (*_BWRAP, f"--helmbench-agent={sys.executable} agent.py", "--helmbench-unprotected")
    result = run_tree(pytester, *options, f"--helmbench-judges={cluster.address}", url=provider.url)
    result.assert_outcomes(passed=2)
    said = "agents worked, and were checked, on this machine: one that may run without a fence"
    assert result.stdout.str().count(said) == 1


def test_a_container_that_a_killed_judge_has_left_is_taken_away_by_one_that_was_there_before(
    pytester: pytest.Pytester, provider: Provider, podman: Running, cluster: Cluster
) -> None:
    mark = f"sleep 7.0{cluster.scheduler.pid}"
    write_pack(
        pytester.path / "benchmark", [task_row(name, environment={"image": podman.image}) for name in "tu"]
    )
    answer_turns(provider, {"t": [f"{_WRITES}; {mark}"], "u": [_WRITES]})
    workers = [cluster.worker(waits=True) for _ in range(2)]
    options = ("-n0", "-q", "--helmbench-sandbox=podman", f"--helmbench-judges={cluster.address}")
    session = Session(pytester.path, provider.url, *options)
    until(lambda: _judge_at(mark, workers) and containers(mark), "the command runs")
    left, judge = containers(mark), _judge_at(mark, workers)
    assert judge is not None
    judge.kill()
    assert session.end() == pytest.ExitCode.OK, session.text
    assert not set(left) & set(containers(""))
    assert provider.count == 4
    assert _nothing_twice(provider)


def _judge_at(mark: str, workers: Sequence[Process]) -> Process | None:
    """Return the worker below which a process runs whose command holds a text."""
    by_pid = {worker.pid: worker for worker in workers}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            pid = int(place.name) if mark.encode() in (place / "cmdline").read_bytes() else 0
            while pid and pid not in by_pid:
                pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            if pid:
                return by_pid[pid]
    return None

"""Calls through a provider's batches: verdicts as those asked singly, at half the price, and nothing paid twice."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from batch_provider import BatchProvider
from bench_pack_sessions import write_asking_pack
from commands import helmbench, programs, run_command
from engines import Running
from own_tests import write_own_tests
from records import final_state
from sessions import Session, until
from task_folders import write_task
from trees import Part, Tree, category, judged_twice, rows, write_tree

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "ci.md"
_JUDGE = "--helmbench-marking-model=test/judge"
_MODELS = """models:
  - {{id: test/good, batch: {0}, price: {{input: 1, output: 4}}}}
  - {{id: test/judge, batch: {0}, price: {{input: 1, output: 4}}}}
"""
_TALK = "## Turn 1\n\nWhere is order {0}?\n\n## Turn 2\n\nThank you, {0}.\n\n## Turn 3\n\nANSWER: done {0}"
_SPENT = "SELECT total(cost_usd) FROM calls"
_VERDICTS = """SELECT code, outcome, results.score, criterion, passed, observed, justification
    FROM results LEFT JOIN evaluations ON result_id = results.id ORDER BY code, criterion"""
_STATES = "SELECT state, count(*) FROM batches GROUP BY state"


@pytest.fixture
def batches(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[BatchProvider]:
    monkeypatch.setenv("BATCH_PACE_S", "0.2")
    with BatchProvider(tmp_path_factory.mktemp("provider")) as provider:
        yield provider


def _write(folder: Path, cases: int = 6, talks: int = 3) -> None:
    talk = {f"PT{number}": Part(_TALK.format(number), 5) for number in range(1, talks + 1)}
    answers = [("RISK", "CALM", "RISK")[number % 3] for number in range(cases)]
    last = Tree(("evaluation:", "  type: contains", "  expected: done"), None, talk)
    write_tree(
        folder / "benchmark",
        {
            "P1-B1-S1": category(*answers),
            "P1-B2-S1": judged_twice(*["fine"] * cases),
            "P2-B1-S1": last,
        },
    )
    (folder / "models.yml").write_text(_MODELS.format("openai"), encoding="utf-8")


def _write_measured(folder: Path, rule: tuple[str, ...]) -> None:
    """Add a case that is judged by how its call went, or by what the rule says."""
    evaluation = ("evaluation:", *(f"  {line}" for line in rule))
    write_tree(folder / "benchmark", {"P9-B1-S1": Tree(evaluation, None, {"PT1": Part("ANSWER: done", 5)})})


def _run(folder: Path, provider: BatchProvider, *arguments: str, db: str = "helmbench.db") -> tuple[int, str]:
    session = _session(folder, provider, *arguments, db=db)
    return session.end(), session.text


def _session(folder: Path, provider: BatchProvider, *arguments: str, db: str = "helmbench.db") -> Session:
    files = ("--helmbench-models-file=models.yml", f"--helmbench-db={db}")
    return Session(folder, provider.url, _JUDGE, *files, "-q", "-n0", *arguments)


def test_a_batched_run_equals_the_run_singly_at_half_the_price(
    pytester: pytest.Pytester, batches: BatchProvider
) -> None:
    _write(pytester.path)
    _run(pytester.path, batches, db="singly.db")
    singly_usd, singly = batches.billed_usd, batches.single_calls
    assert not batches.batches
    code, text = _run(pytester.path, batches, "--helmbench-batch")
    assert code == 1, text  # some verdicts are wrong
    assert batches.single_calls == singly
    batched_usd = batches.billed_usd - singly_usd
    [(recorded,)] = rows(pytester.path / "helmbench.db", _SPENT)
    assert recorded == pytest.approx(batched_usd)
    assert batched_usd <= 0.52 * singly_usd
    assert rows(pytester.path / "helmbench.db", _VERDICTS) == rows(pytester.path / "singly.db", _VERDICTS)
    for table in ("results", "calls"):
        took = f"SELECT count(latency_ms), count(*) > 0 FROM {table}"
        assert rows(pytester.path / "helmbench.db", took) == [(0, 1)]
    for command in (
        ("show", "last"),
        ("report", "--format=html", "-o", "page.html"),
        ("query", "SELECT latency_ms FROM v_results"),
    ):
        assert not run_command(pytester, *command, "--db=helmbench.db").ret
    assert [state for state, _ in rows(pytester.path / "helmbench.db", _STATES)] == ["read"]


def test_a_session_that_leaves_its_batches_is_collected_round_by_round(
    pytester: pytest.Pytester, batches: BatchProvider
) -> None:
    _write(pytester.path)
    _run(pytester.path, batches, "--helmbench-batch", db="waited.db")
    waited_usd, made = batches.billed_usd, batches.batches
    batches.set(takes_s=60)
    code, text = _run(pytester.path, batches, "--helmbench-batch=0")
    assert code == 0, text
    assert "with --helmbench-resume collects them" in text
    assert rows(pytester.path / "helmbench.db", "SELECT DISTINCT reason FROM results") == [("in_batch",)]
    assert rows(pytester.path / "helmbench.db", "SELECT status FROM evaluation_runs") == [("partial",)]
    assert "batch: test/good and its judge at 127.0.0.1" in text
    _check_what_is_said_of_a_waiting_run(pytester, batches)
    again_code, _ = _run(pytester.path, batches, "--helmbench-batch=0", "--helmbench-resume")
    assert (again_code, batches.batches) == (0, made + 1)
    for rounds in range(1, 9):
        batches.set(advanced_s=61 * rounds)
        code, text = _run(pytester.path, batches, "--helmbench-batch=0", "--helmbench-resume")
        if "collects them" not in text:
            break
    assert code == 1, text
    assert not batches.single_calls
    assert batches.billed_usd == pytest.approx(2 * waited_usd)
    assert set(batches.billed.values()) == {2}
    assert final_state(pytester.path / "helmbench.db") == final_state(pytester.path / "waited.db")


def _check_what_is_said_of_a_waiting_run(pytester: pytest.Pytester, batches: BatchProvider) -> None:
    host = batches.url.removeprefix("http://").removesuffix("/v1")
    for command in (("runs",), ("show", "last")):
        said = run_command(pytester, *command, "--db=helmbench.db").stdout
        said.fnmatch_lines(["*waiting*", "*of run * calls *", f"* 1 * out * 15 *test/good*{host}*20??-*"])
        assert max(map(len, said.lines)) <= 100
        found = json.loads(run_command(pytester, *command, "--json").stdout.str())
        (batch,) = (found[0] if isinstance(found, list) else found)["batches"]
        assert batch.pop("since") < batch.pop("until")
        assert len(batch.pop("token")) == 8
        assert batch == {"state": "out", "model": "test/good", "host": host, "calls": 15}
    for command in (
        ("report", "--format=html"),
        ("report", "--format=markdown"),
        ("report", "--format=json"),
    ):
        assert "calls were still in batches" in run_command(pytester, *command).stdout.str(), command
    for form in ("json", "csv", "baseline"):
        assert run_command(pytester, "export", f"--format={form}").ret == 0


def test_a_resume_alone_collects_and_asks_the_rest_singly(
    pytester: pytest.Pytester, batches: BatchProvider
) -> None:
    _write(pytester.path)
    _run(pytester.path, batches, "--helmbench-batch=0")
    assert batches.batches == 1
    code, text = _run(pytester.path, batches, "--helmbench-resume")
    assert (code, batches.batches) == (1, 1), text
    assert set(batches.billed.values()) == {1}
    assert rows(pytester.path / "helmbench.db", _STATES) == [("read", 1)]


_SWITCHES: dict[str, dict[str, object]] = {
    "nothing": {},
    "create stored and answered 500": {"lost_creates": 2},
    "create not stored": {"refused_creates": 1},
    "lists late": {"lost_creates": 1, "late_lists": 1},
    "strangers": {"strangers": True, "lost_creates": 1},
    "lists that do not say that they go on": {
        "strangers": True,
        "lost_creates": 1,
        "quiet_lists": True,
        "page": 1,
    },
    "messy results": {"messy": True},
    "lines of 429 and 500, one missing": {"line_status": {"0": 429, "1": 500, "2": 0}},
    "no output at first": {"null_output": 2},
    "no output at first, but errors": {"null_output": 2, "line_status": {"1": 500}},
    "errors alone": {"line_status": {str(line): 500 for line in range(50)}},
    "expired": {"expired_batches": 1, "answered_first": 3},
    "cancelled": {"cancelled_batches": 1, "answered_first": 1},
    "too many tokens": {"failed_batches": 1, "failed_code": "token_limit_exceeded"},
    "too many tokens while others are out": {
        "most_queued": 8,
        "failed_code": "token_limit_exceeded",
        "takes_s": 0.6,
    },
    "lines named": {"failed_batches": 1, "failed_lines": [1, 3]},
    "404 after create": {"missing_polls": 2},
    "expired, with its file later": {"expired_batches": 1, "answered_first": 3, "null_output": 2},
    "HTML instead of JSON": {"html_polls": 2, "html_files": 2},
    "busy for long": {"html_polls": 9},
}


_SEEN = {
    "messy results": (0, "lines of no call, and second ones, in the results of a batch are ignored"),
    "lines of 429 and 500, one missing": (10, ""),
    "no output at first, but errors": (4, ""),
    "errors alone": (22, ""),
    "lines named": (2, ""),
    "busy for long": (0, "no answer of use about a batch for minutes, still asking"),
}
"""Calls that go singly at most, and words that are said once."""


@pytest.mark.parametrize("switch", _SWITCHES)
def test_faults_of_a_provider_change_no_verdict_and_bill_nothing_twice(
    pytester: pytest.Pytester, batches: BatchProvider, monkeypatch: pytest.MonkeyPatch, switch: str
) -> None:
    single_calls, sentence = _SEEN.get(switch, (0, ""))
    monkeypatch.setenv("BATCH_PACE_S", "0.1")
    _write(pytester.path, 4, 2)
    batches.set(**{"page": 2, **_SWITCHES[switch]})
    code, text = _run(pytester.path, batches, "--helmbench-batch")
    assert code == 1, text
    assert set(batches.billed.values()) == {1}
    assert min(1, single_calls) <= batches.single_calls <= single_calls
    assert text.count(sentence) == 1 or not sentence
    [(recorded,)] = rows(pytester.path / "helmbench.db", _SPENT)
    assert recorded == pytest.approx(batches.billed_usd)
    assert rows(pytester.path / "helmbench.db", "SELECT DISTINCT outcome FROM results ORDER BY 1") == [
        ("failed",),
        ("passed",),
    ]


_FAILED: dict[str, object] = {"failed_batches": 1}
_NO_BATCH = "test/good takes no batch at 127.0.0.1"
_ENDS: dict[str, tuple[dict[str, object], str, str]] = {
    "a line of 400": (
        {"status_by_text": {"order 1?": 400}},
        "rejected",
        "the provider answered 400 (line 400)",
    ),
    "expired twice": ({"expired_batches": 2}, "batch_expired", "two batches have ended without"),
    "failed": (_FAILED, "model_stopped", f"{_NO_BATCH}:PORT: invalid: refused"),
    "refused": (
        {"refused_creates": 1, "refused_status": 400},
        "model_stopped",
        f"{_NO_BATCH}:PORT: Error code: 400",
    ),
    "lines named each time": ({"failed_batches": 9, "failed_lines": [1]}, "model_stopped", _NO_BATCH),
    "one call is too much": (
        {"most_queued": 0, "failed_code": "token_limit_exceeded"},
        "model_stopped",
        _NO_BATCH,
    ),
    "no right": ({"poll_status": 401}, "in_batch", "its batch cannot be read: Error code: 401"),
    "no output ever": ({"null_output": 10_000}, "in_batch", "the file of its results is missing"),
}
_OVER = {"poll_status": None, "null_output": 0}


@pytest.mark.parametrize("end", _ENDS)
def test_a_fault_that_ends_calls_says_why_and_a_resume_gets_all_answers(
    pytester: pytest.Pytester, batches: BatchProvider, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    switches, reason, words = _ENDS[end]
    monkeypatch.setenv("BATCH_PACE_S", "0.1")
    _write(pytester.path, 2, 1)
    batches.set(**switches, takes_s=0.1)
    code, text = _run(pytester.path, batches, "--helmbench-batch", "-rs")
    reasons = {
        found for (found,) in rows(pytester.path / "helmbench.db", "SELECT DISTINCT reason FROM results")
    }
    assert (code, reasons - {None}) == (1, {reason}), text
    assert words.replace("PORT", batches.url.rpartition(":")[2][:-3]) in text
    if reason != "in_batch":
        return
    batches.set(**_OVER)
    code, text = _run(pytester.path, batches, "--helmbench-batch", "--helmbench-resume")
    assert code == 1, text
    assert set(batches.billed.values()) == {1}
    assert {state for (state,) in rows(pytester.path / "helmbench.db", "SELECT state FROM batches")} == {
        "read"
    }


def test_a_killed_session_pays_for_no_body_twice(pytester: pytest.Pytester, batches: BatchProvider) -> None:
    _write(pytester.path, 4, 2)
    batches.set(lost_creates=3, strangers=True)
    randomly = random.Random(42)
    ended = False
    for kills in range(40):
        session = _session(pytester.path, batches, "--helmbench-batch", "--helmbench-resume=or-start")
        until_s = time.monotonic() + randomly.uniform(0.4, 2.5) + kills / 4  # on a busy machine, it ends too
        while time.monotonic() < until_s and not session.has_ended:
            time.sleep(0.02)
        if not session.kill_all() or _is_complete(pytester.path / "helmbench.db"):
            ended = True
            break
    assert ended, session.text
    assert set(batches.billed.values()) == {1}
    [(recorded,)] = rows(pytester.path / "helmbench.db", _SPENT)
    assert recorded == pytest.approx(batches.billed_usd)


def test_workers_share_their_batches(pytester: pytest.Pytester, batches: BatchProvider) -> None:
    _write(pytester.path)
    _run(pytester.path, batches, "--helmbench-batch", db="alone.db")
    made = batches.batches
    code, text = _run(pytester.path, batches, "--helmbench-batch", "-n2")
    assert code == 1, text
    assert batches.batches == 2 * made
    assert final_state(pytester.path / "helmbench.db") == final_state(pytester.path / "alone.db")


def test_a_worker_that_dies_leaves_its_calls_in_their_batch(
    pytester: pytest.Pytester, batches: BatchProvider
) -> None:
    _write(pytester.path, 4, 2)
    batches.set(takes_s=3600)
    session = _session(pytester.path, batches, "--helmbench-batch", "-n2")
    database = pytester.path / "helmbench.db"
    until(lambda: database.exists() and _states(database) == ["out"], "its calls are out")
    session.kill_workers("gw0")
    time.sleep(1.0)
    batches.set(takes_s=0.2)
    assert session.end() == 1, session.text
    assert set(batches.billed.values()) == {1}
    [(recorded,)] = rows(database, _SPENT)
    assert recorded == pytest.approx(batches.billed_usd)
    assert set(_states(database)) == {"read"}


def test_a_resume_alone_asks_singly_what_its_batch_has_not_answered(
    pytester: pytest.Pytester, batches: BatchProvider
) -> None:
    _write(pytester.path, 4, 0)
    batches.set(expired_batches=1, answered_first=3)
    _run(pytester.path, batches, "--helmbench-batch=0")
    code, text = _run(pytester.path, batches, "--helmbench-resume")
    assert (code, batches.batches) == (1, 1), text
    assert set(batches.billed.values()) == {1}
    assert _states(pytester.path / "helmbench.db") == ["read"]


@pytest.mark.parametrize(("status", "days"), [(410, 0), (404, 32)], ids=["410", "31 days"])
def test_a_batch_that_its_provider_has_deleted_is_asked_anew_and_counts_as_spent(
    pytester: pytest.Pytester, batches: BatchProvider, status: int, days: int
) -> None:
    _write(pytester.path, 4, 0)
    bounded = ("--helmbench-max-cost=1", "--helmbench-max-tokens=20")
    _run(pytester.path, batches, "--helmbench-batch=0", *bounded)
    batches.set(poll_status=status)
    database = pytester.path / "helmbench.db"
    _make_older(database, days)
    code, text = _run(pytester.path, batches, "--helmbench-resume", *bounded)
    assert code == 1, text
    gone = "SELECT count(*), total(reserved_usd) > 0 FROM calls WHERE error LIKE 'batch_gone%' AND unanswered"
    assert rows(database, gone) == [(8, 1)]
    assert batches.single_calls == 16  # with eight of the judge
    assert (_states(database), batches.batches) == (["read"], 1)


def _make_older(database: Path, days: float) -> None:
    with contextlib.closing(sqlite3.connect(database)) as conn, conn:
        conn.execute("UPDATE batches SET created_s = created_s - 86400 * ?", (days,))


def test_a_server_as_azure_gets_query_and_headers_of_a_single_call_and_may_write_states_with_capitals(
    pytester: pytest.Pytester, batches: BatchProvider
) -> None:
    _write(pytester.path, 2, 0)
    batches.set(query="api-version=2026-10-01", line_status={"0": 429})
    address = f"{batches.url}?api-version=2026-10-01"
    code, text = _run(
        pytester.path, batches, "--helmbench-batch", f"--helmbench-base-url={address}", "-kP1-B1"
    )
    assert code in (0, 1), text
    assert (batches.batches, batches.single_calls) == (1, 1), text
    assert rows(pytester.path / "helmbench.db", "SELECT count(*) FROM results WHERE score IS NOT NULL") == [
        (2,)
    ]


def test_where_the_client_itself_cannot_ask_the_model_stops_before_anything_is_sent(
    pytester: pytest.Pytester, batches: BatchProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(pytester.path, 2, 0)
    monkeypatch.setenv("ALL_PROXY", "socks9://127.0.0.1:1")
    code, text = _run(pytester.path, batches, "--helmbench-batch", "-kP1-B1")
    assert code == 1, text
    assert "test/good takes no batch at 127.0.0.1" in text
    assert "socks9" in text
    assert (batches.batches, batches.single_calls) == (0, 0)
    assert rows(pytester.path / "helmbench.db", "SELECT count(*) FROM batches") == [(0,)]


def test_a_batch_that_a_session_cannot_read_keeps_it_from_asking(
    pytester: pytest.Pytester, batches: BatchProvider
) -> None:
    _write(pytester.path, 4, 0)
    batches.set(takes_s=60)
    _run(pytester.path, batches, "--helmbench-batch=0")
    (pytester.path / "models.yml").write_text(_MODELS.format("no"), encoding="utf-8")
    code, text = _run(pytester.path, batches, "--helmbench-resume")
    assert code == 4, text
    assert "8 calls are in a batch of test/good" in text
    assert not batches.single_calls


def test_a_batch_that_cannot_be_sent_fails_its_cases_once_the_session_leaves(
    pytester: pytest.Pytester, batches: BatchProvider
) -> None:
    _write(pytester.path, 2, 0)
    batches.set(upload_status=503)
    code, text = _run(pytester.path, batches, "--helmbench-batch=0")
    assert code == 1, text
    assert "its batch could not be sent" in text
    assert _states(pytester.path / "helmbench.db") == []


def test_three_shards_and_a_merge_equal_the_run_as_a_whole_and_the_merged_file_collects(
    pytester: pytest.Pytester, batches: BatchProvider
) -> None:
    _write(pytester.path)
    _run(pytester.path, batches, "--helmbench-batch", db="whole.db")
    for number in (1, 2, 3):
        batches.set(takes_s=0.2 if number == 3 else 60)  # two leave their batches
        minutes = "--helmbench-batch" + ("" if number == 3 else "=0")
        _run(pytester.path, batches, minutes, f"--helmbench-shard={number}/3", db=f"{number}.db")
    files = [f"{number}.db" for number in (3, 1, 2)]
    ((share,),) = rows(pytester.path / "1.db", "SELECT count(*) FROM results")

    refused = helmbench(pytester.path, "merge", *files, "-o", "merged.db")
    assert refused.returncode == 1
    assert f"shard 1 of 3 (1.db) waits for its batches: {share} of its {share} cases" in refused.stderr
    assert "shard 2 of 3 (2.db) waits for its batches" in refused.stderr
    assert "shard 3" not in refused.stderr
    done = helmbench(pytester.path, "merge", *files, "-o", "merged.db", "--partial")
    assert done.returncode == 0, done.stderr
    shown = run_command(pytester, "show", "--db=merged.db").stdout
    shown.fnmatch_lines(["*(waiting, whole)*", "*of run * calls *", "* 1 * out *", "* 1 * out *"])

    shutil.copy(pytester.path / "merged.db", pytester.path / "next.db")
    _change(
        pytester.path / "next.db",
        "UPDATE batches SET token = 'another' WHERE rowid = (SELECT max(rowid) FROM batches)",
    )
    again = helmbench(pytester.path, "merge", *files, "-o", "next.db", "--partial", "--force")
    assert again.returncode == 2
    assert "next.db waits for calls in batches that no shard has" in again.stderr

    _change(pytester.path / "merged.db", "UPDATE batches SET address = 'http://other/v1' || address")
    code, text = _run(pytester.path, batches, "--helmbench-resume", db="merged.db")
    assert (code, batches.single_calls) == (4, 0), text
    assert "calls are in a batch of test/good at http://other/v1" in text
    _change(pytester.path / "merged.db", "UPDATE batches SET address = substr(address, 16)")
    batches.set(advanced_s=61, takes_s=0.2)
    code, text = _run(pytester.path, batches, "--helmbench-batch", "--helmbench-resume", db="merged.db")
    assert (code, batches.single_calls) == (1, 0), text
    assert set(batches.billed.values()) == {2}, "once by the run as a whole, once by the shards"
    assert final_state(pytester.path / "merged.db") == final_state(pytester.path / "whole.db")
    assert set(_states(pytester.path / "merged.db")) == {"read"}


def test_the_jobs_of_the_page_submit_at_night_and_collect_in_the_morning(
    pytester: pytest.Pytester, batches: BatchProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(pytester.path, 4, 2)
    names = (("test/good", "openai/gpt-4o-mini"), ("test/judge", "openai/gpt-4o"))
    models = "marking_model: openai/gpt-4o\n" + _MODELS.format("openai")
    for before, now in names:
        models = models.replace(before, now)
    (pytester.path / "models.yml").write_text(models, encoding="utf-8")
    (pytester.path / "conftest.py").write_text(
        "import pytest_helmbench.gateway.batches as b\nb.GATHER_S = b.FIRST_POLL_S = 0.2\n"
    )
    tools = pytester.mkdir("tools")
    (tools / "gh").write_text('#!/bin/sh\n[ "$2" = list ] && echo 7 || cp ../artifact/* .\n')
    (tools / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join((str(tools), str(programs()), os.environ["PATH"])))
    monkeypatch.setenv("PYTEST_ADDOPTS", f"--helmbench-models-file={pytester.path / 'models.yml'}")
    monkeypatch.setenv("OPENAI_BASE_URL", batches.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    blocks = re.findall(r"```yaml\n(.*?)```", _PAGE.read_text("utf-8"), re.DOTALL)
    (job,) = (found for found in map(yaml.safe_load, blocks) if found.get("name") == "nightly")
    steps = {step.get("name"): step.get("run") for step in job["jobs"]["nightly"]["steps"]}

    batches.set(takes_s=60)
    ends = []
    for name in ("Submit", "Collect"):
        folder = pytester.mkdir(name)
        for path in ("benchmark", "conftest.py"):
            (folder / path).symlink_to(pytester.path / path)
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", steps[name]],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        ends.append(done.returncode)
        shutil.copytree(
            folder,
            pytester.path / "artifact",
            ignore=lambda _, names: {*names} - {"helmbench.db"},
            dirs_exist_ok=True,
        )
        batches.set(advanced_s=61, takes_s=0.2)
    assert ends == [0, 0], done.stdout + done.stderr
    assert "✓ HOLDS" in done.stdout
    assert (set(batches.billed.values()), batches.single_calls) == ({1}, 0)


def _change(database: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(database)) as conn, conn:
        conn.execute(statement)


def test_a_budget_holds_and_what_it_cannot_pay_is_skipped(
    pytester: pytest.Pytester, batches: BatchProvider
) -> None:
    _write(pytester.path, 40, 2)
    _run(pytester.path, batches, "--helmbench-batch", db="whole.db")
    need_usd = batches.billed_usd
    bounded = ("--helmbench-max-tokens=20", f"--helmbench-max-cost={0.3 * need_usd:.8f}")
    code, text = _run(pytester.path, batches, "--helmbench-batch", *bounded)
    assert code == 1, text
    spent_usd = batches.billed_usd - need_usd
    assert 0.1 * need_usd < spent_usd <= 0.3 * need_usd
    database = pytester.path / "helmbench.db"
    outcomes = "SELECT DISTINCT outcome, reason FROM results WHERE outcome NOT IN ('passed', 'failed')"
    assert rows(database, outcomes) == [("skipped", "budget")]
    [(recorded,)] = rows(database, _SPENT)
    assert recorded == pytest.approx(spent_usd)


def test_a_budget_that_pays_a_call_in_a_batch_alone_is_enough(
    pytester: pytest.Pytester, batches: BatchProvider
) -> None:
    _write(pytester.path, 1, 0)
    bounded = ("--helmbench-max-tokens=1000", "--helmbench-max-cost=0.003", "-kP1-B1")
    code, text = _run(pytester.path, batches, *bounded)
    assert (code, "cannot pay one call" in text) == (4, True), text
    code, text = _run(pytester.path, batches, "--helmbench-batch", *bounded)
    assert code == 0, text
    assert (batches.batches, batches.single_calls) == (1, 0)


def test_no_call_waits_for_the_money_of_a_batch_that_cannot_be_read(
    pytester: pytest.Pytester, batches: BatchProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATCH_PACE_S", "0.1")
    _write(pytester.path, 12, 0)
    batches.set(poll_status=401)
    bounded = ("--helmbench-max-tokens=20", "--helmbench-max-cost=0.0005")
    code, text = _run(pytester.path, batches, "--helmbench-batch", "-kP1-B1", *bounded)
    assert code == 1, text
    assert "its call waits for money that calls in batches hold" in text
    assert rows(pytester.path / "helmbench.db", "SELECT DISTINCT reason FROM results") == [("in_batch",)]
    assert (batches.batches, batches.single_calls) == (1, 0)


@pytest.mark.parametrize(
    "faults",
    [{"line_status": {"0": 400}, "missing_polls": 2, "refused_creates": 1}, {"failed_batches": 1}],
    ids=["lines and requests", "a whole batch"],
)
def test_a_key_that_a_provider_repeats_appears_nowhere(
    pytester: pytest.Pytester,
    batches: BatchProvider,
    monkeypatch: pytest.MonkeyPatch,
    faults: dict[str, object],
) -> None:
    key = "sk-0123456789abcdef0123456789abcdef"
    monkeypatch.setenv("BATCH_KEY", key)
    _write(pytester.path, 3, 1)
    models = pytester.path / "models.yml"
    models.write_text(
        models.read_text(encoding="utf-8").replace("batch:", "api_key_env: BATCH_KEY, batch:"),
        encoding="utf-8",
    )
    batches.set(echo=True, **faults)
    code, text = _run(
        pytester.path, batches, "--helmbench-batch", "--log-file=log.txt", "--log-file-level=DEBUG"
    )
    assert code, text
    assert "[key]" in text
    for file in pytester.path.rglob("*"):
        assert not file.is_file() or key.encode() not in file.read_bytes(), file


def test_a_model_without_batches_ends_the_session_before_any_call(
    pytester: pytest.Pytester, batches: BatchProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(pytester.path)
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-nothing")
    elsewhere = ("--helmbench-base-url=https://openrouter.ai/api/v1", "--helmbench-max-cost=1")
    code, text = _run(
        pytester.path, batches, "--helmbench-batch", "--helmbench-model=openai/gpt-4o-mini", *elsewhere
    )
    assert code == 4, text
    assert "openai/gpt-4o-mini has no batch at openrouter" in text
    assert "helmbench: batch:" not in text
    code, text = _run(pytester.path, batches, "--helmbench-batch", "-x")
    assert (code, batches.batches, batches.single_calls) == (4, 0, 0), text
    assert "-x stops at a failure, and a batch is asked as a whole; nothing was called" in text


def test_the_first_line_says_both_prices_and_what_goes_singly(
    pytester: pytest.Pytester, batches: BatchProvider
) -> None:
    _write(pytester.path, 2, 1)
    _write_measured(pytester.path, _FAST)
    models = _MODELS.format("openai") + "  - {id: openai/gpt-4o-mini, batch: openai}\n"
    (pytester.path / "models.yml").write_text(models, encoding="utf-8")
    asked = ("--helmbench-batch=0", "--helmbench-model=openai/gpt-4o-mini")
    _, text = _run(pytester.path, batches, *asked)
    cost = r"about ([\d.]+) instead of ([\d.]+) USD \(half the price is assumed of test/good, test/judge\)"
    said = re.search(
        rf"batch: test/good and openai/gpt-4o-mini and their judge at 127.0.0.1:\d+, {cost}, within 24 h;"
        " singly: 2 cases of latency_below",
        " ".join(text.split()),
    )
    assert said, text
    assert 0.5 < float(said[1]) / float(said[2]) < 0.6
    _, text = _run(pytester.path, batches, *asked, "--helmbench-resume")
    assert "their judge at" in text
    assert "singly" not in text
    _, text = _run(pytester.path, batches, "--helmbench-batch=0", "-kP9")
    assert "batch: test/good at" in text
    assert "within 24 h; singly: 1 case of latency_below" in " ".join(text.split())
    assert "instead of" not in text


def test_no_gate_is_decided_before_all_is_collected(
    pytester: pytest.Pytester, batches: BatchProvider
) -> None:
    _write(pytester.path, 2, 1)
    _write_measured(pytester.path, _FAST)
    gate = ("--helmbench-min-score=0.99", "-kP1-B1 or P9")
    code, text = _run(pytester.path, batches, "--helmbench-batch=0", *gate)
    assert code == 0, text
    for form in ("html", "markdown"):
        report = run_command(pytester, "report", f"--format={form}").stdout.str()
        assert "100.0 %" in report
        assert "FAILS" not in report + text
    code, text = _run(pytester.path, batches, "--helmbench-resume", *gate)
    assert code == 1, text
    assert "FAILS" in text
    assert "FAILS" in run_command(pytester, "report", "--format=html").stdout.str()


def test_a_case_that_changed_since_it_was_sent_is_asked_anew_and_its_old_call_is_not_announced(
    pytester: pytest.Pytester, batches: BatchProvider
) -> None:
    _write(pytester.path, 2, 0)
    _, text = _run(pytester.path, batches, "--helmbench-batch=0", "-kP1-B1")
    assert "2 calls are at 127.0.0.1" in text
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK")})
    _, text = _run(pytester.path, batches, "--helmbench-batch", "--helmbench-resume", "-kP1-B1")
    assert "collects" not in text
    assert sum(batches.billed.values()) == 3


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_ctrl_c_waits_for_no_batch_and_a_resume_collects_it(
    pytester: pytest.Pytester, batches: BatchProvider, workers: str
) -> None:
    _write(pytester.path, 4, 2)
    batches.set(takes_s=3600)
    session = _session(pytester.path, batches, "--helmbench-batch", workers)
    database = pytester.path / "helmbench.db"
    until(lambda: database.exists() and _states(database) == ["out"], "its calls are out")
    session.interrupt(everybody=True)
    assert session.end() == 2, session.text
    assert "the same command with --helmbench-resume collects them" in session.text
    batches.set(takes_s=0.2)
    code, text = _run(pytester.path, batches, "--helmbench-batch", "--helmbench-resume")
    assert code == 1, text
    assert set(batches.billed.values()) == {1}
    assert not batches.single_calls


def test_plain_lines_are_few_while_batches_are_waited_for(
    pytester: pytest.Pytester, batches: BatchProvider
) -> None:
    _write(pytester.path)
    batches.set(takes_s=8)
    code, text = _run(pytester.path, batches, "--helmbench-batch", "-kP1-B1", "-ohelmbench_heartbeat=1")
    assert code == 1, text
    assert 1 <= text.count("1 batch: 6 calls, ") <= 4, text


_FAST = ("type: latency_below", "seconds: 600")
_BOUNDED: dict[str, tuple[str, ...]] = {
    "alone": _FAST,
    "combined": ("type: any", "of:", *(f"  {line}" for line in ("- type: latency_below", "  seconds: 600"))),
    "every turn": ("each:", *(f"  {line}" for line in _FAST)),
    "nothing": ("type: contains", "expected: done"),
}


@pytest.mark.parametrize("bound", _BOUNDED)
def test_a_case_that_measures_its_calls_asks_singly(
    pytester: pytest.Pytester, batches: BatchProvider, bound: str
) -> None:
    _write(pytester.path)
    _write_measured(pytester.path, _BOUNDED[bound])
    code, text = _run(pytester.path, batches, "--helmbench-batch", "-kP9-B1")
    assert code == 0, text
    assert batches.single_calls == (bound != "nothing")


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_own_tests_bench_packs_applications_and_local_servers_ask_singly(
    pytester: pytest.Pytester, batches: BatchProvider, workers: str
) -> None:
    folder = pytester.path
    write_own_tests(folder, 'def test_says(helmbench_openai):\n    ask(helmbench_openai, "ANSWER: left")\n')
    write_asking_pack(folder / "pack", {"one": "async () => { await ask('ANSWER: one'); return result(); }"})
    (folder / "app.py").write_text('def answer(messages):\n    return \'{"answer": "RISK"}\'\n')
    _write(folder, 2, 1)
    models = ("--helmbench-model=python:app:answer", "--helmbench-model=test/beside")
    files = (_JUDGE, "--helmbench-models-file=models.yml", "--helmbench-db=helmbench.db", "--helmbench-batch")
    paths = ("benchmark", "test_own.py", "pack")
    session = Session(folder, batches.url, *files, *models, "-q", workers, paths=paths)
    session.end()
    asked = """SELECT llms.name, purpose, CASE WHEN calls.code LIKE 'P_-%' THEN 'tree' ELSE calls.code END,
        count(calls.batch), count(*) FROM calls JOIN evaluation_runs AS runs ON runs.id = run_id
        JOIN llms ON llms.id = llm_id GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""
    found = rows(folder / "helmbench.db", asked)
    own = [("pack", "one"), ("case", "test_own.py::test_says")]
    for model in ("test/good", "python:app:answer", "test/beside"):
        counts = {tuple(row[1:3]): tuple(row[3:]) for row in found if row[0] == model}
        assert counts == {
            ("case", "tree"): (7 if model == "test/good" else 0, 7),
            ("judge", "tree"): (4, 4),
            **dict.fromkeys(own, (0, 1)),
        }, session.text
    said = " ".join(session.text.split())
    assert "batch: test/good and their judge at 127.0.0.1" in said


def test_an_agent_asks_singly_and_its_task_is_done_meanwhile(
    pytester: pytest.Pytester, batches: BatchProvider, podman: Running
) -> None:
    assert podman.image
    _write(pytester.path, 2, 1)
    write_task(pytester.path / "tasks" / "answer")
    batches.set(takes_s=3600)
    files = (
        _JUDGE,
        "--helmbench-models-file=models.yml",
        "--helmbench-db=helmbench.db",
        "--helmbench-batch=0",
    )
    session = Session(pytester.path, batches.url, *files, "-q", "-n0", paths=("benchmark", "tasks"))
    session.end()
    assert "singly: 1 case of task_folder" in " ".join(session.text.split())
    outcomes = "SELECT outcome, count(*) FROM results GROUP BY 1 ORDER BY 1"
    assert rows(pytester.path / "helmbench.db", outcomes) == [("failed", 1), ("skipped", 5)], session.text
    asked = "SELECT count(*) > 0, count(batch) FROM calls"
    assert rows(pytester.path / "helmbench.db", asked) == [(1, 0)]


_WINDOWS: dict[str, tuple[str, dict[str, object], dict[str, object]]] = {
    "gathering": ("5", {}, {}),
    "planned": ("0.2", {"upload_status": 503}, {"upload_status": None}),
    "creating": ("0.2", {"unanswered_creates": 1, "silence_s": 60, "late_lists": 1}, {}),
    "out": ("0.2", {"takes_s": 3600}, {"takes_s": 0.2}),
    "out, not on record": ("0.2", {"takes_s": 3600}, {"takes_s": 0.2}),
    "half read": ("0.2", {}, {}),
    "all read": ("0.2", {}, {}),
}
_KILLS = {"out, not on record": "out", "half read": "settle:5", "all read": "read"}


@pytest.mark.parametrize("window", _WINDOWS)
def test_a_kill_in_each_window_bills_nothing_twice(
    pytester: pytest.Pytester, batches: BatchProvider, monkeypatch: pytest.MonkeyPatch, window: str
) -> None:
    pace, before, after = _WINDOWS[window]
    _write(pytester.path, 4, 2)
    batches.set(**before)
    monkeypatch.setenv("BATCH_PACE_S", pace)
    if window in _KILLS:
        monkeypatch.setenv("KILL_AT", _KILLS[window])
    session = _session(pytester.path, batches, "--helmbench-batch")
    database = pytester.path / "helmbench.db"
    if window in _KILLS:
        assert session.end() == -signal.SIGKILL
        monkeypatch.delenv("KILL_AT")
    elif window == "gathering":
        until(database.exists, "the session starts")
        time.sleep(1.0)
    else:
        until(lambda: database.exists() and _states(database) == [window], window)
        until(lambda: window != "creating" or batches.batches == 1, "it is created")
    session.kill_all()
    assert batches.batches == (window not in ("gathering", "planned"))
    if window in _KILLS:
        [(on_record,)] = rows(database, "SELECT count(*) FROM calls WHERE batch IS NOT NULL")
        assert on_record == (
            4 if window == "half read" else len(batches.billed) if window == "all read" else 0
        )
    if window == "creating":
        with contextlib.closing(sqlite3.connect(database)) as conn, conn:
            conn.execute("UPDATE batches SET created_s = created_s + 1e6")  # the clock was wrong
    batches.set(**after)
    monkeypatch.setenv("BATCH_PACE_S", "0.2")
    code, text = _run(pytester.path, batches, "--helmbench-batch", "--helmbench-resume")
    assert code == 1, text
    assert set(batches.billed.values()) == {1}
    assert not batches.single_calls
    assert set(_states(database)) == {"read"}
    [(recorded,)] = rows(database, _SPENT)
    assert recorded == pytest.approx(batches.billed_usd)


def _is_complete(database: Path) -> bool:
    try:
        return rows(database, "SELECT status FROM evaluation_runs") == [("complete",)]
    except sqlite3.OperationalError:
        return False  # its tables are being made


def _states(database: Path) -> list[str]:
    try:
        return [state for (state,) in rows(database, "SELECT state FROM batches")]
    except sqlite3.OperationalError:
        return []  # its tables are being made

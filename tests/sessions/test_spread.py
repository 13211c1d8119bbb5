"""`helmbench spread`: shards on a Dask cluster are one run in the end, whatever is lost on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from certificates import write_certificate
from commands import environment, helmbench
from provider import Provider
from records import integrity
from sessions import until
from trees import category, judged, rows, run_tree, write_tree

from pytest_helmbench.results.stored_scores import scored_run

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="the extra `dask` is not installed")

_PATIENCE_S = 150
_VERDICTS = """
    SELECT r.code, r.repetition, r.outcome, e.observed FROM results r JOIN evaluations e ON e.result_id = r.id
    ORDER BY 1, 2, 4
"""


def _tree(pytester: pytest.Pytester, cases: int) -> None:
    root = write_tree(
        pytester.path / "benchmark",
        {"P1-B1-S1": category(*["RISK", "CALM"] * (cases // 2)), "P1-B1-S2": judged("GOOD", "BAD")},
    )
    (root / "models.yml").write_text("marking_model: test/judge\n")
    pytester.makefile(".ini", pytest="[pytest]\n")


@contextmanager
def _spreading(folder: Path, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """Yield the command in a process of its own, which is gone at the end with all that it has started."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest_helmbench", "spread", *arguments],
        cwd=folder,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _asking(provider: Provider) -> tuple[str, ...]:
    return (
        "--",
        "benchmark",
        "--helmbench-model=test/good",
        f"--helmbench-base-url={provider.url}",
        f"--helmbench-marking-base-url={provider.url}",
        "--helmbench-concurrency=4",
    )


def _messages(provider: Provider) -> Counter[str]:
    return Counter(str(request.body["messages"]) for request in provider.requests)


def test_shards_on_workers_are_one_run(pytester: pytest.Pytester, provider: Provider) -> None:
    _tree(pytester, 40)
    run_tree(pytester, "--helmbench-db=alone.db", url=provider.url, model="test/good")
    asked = _messages(provider)
    with _spreading(
        pytester.path, "--dask=local:2", "--shards=4", "--junitxml=all.xml", *_asking(provider)
    ) as spreading:
        said, _ = spreading.communicate(timeout=_PATIENCE_S)
    assert spreading.returncode == 0, said
    assert "4 shards merged into helmbench.db" in said
    assert "4 done; 42 cases judged" in said
    assert "Traceback" not in said
    alone, merged = pytester.path / "alone.db", pytester.path / "helmbench.db"
    assert rows(merged, _VERDICTS) == rows(alone, _VERDICTS)
    scores = [scored_run(db, 1) for db in (alone, merged)]
    assert scores[0] is not None and scores[1] is not None  # noqa: PT018
    assert repr(scores[0].score) == repr(scores[1].score)
    assert integrity(merged) == "ok"
    assert _messages(provider) == asked + asked
    assert "<testcase" in (pytester.path / "all.xml").read_text()
    assert (pytester.path / "helmbench-1of4.db").is_file()


def test_a_worker_that_is_killed_costs_no_more_than_its_last_moments(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _tree(pytester, 120)
    provider.latency_s = 1.0
    with _spreading(pytester.path, "--dask=local:2", "--shards=2", *_asking(provider)) as spreading:
        until(lambda: provider.count >= 80, "the shards are in the middle")
        kept = sum(_recorded(pytester.path / f"helmbench-{number}of2.db") for number in (1, 2))
        before = provider.count
        sessions = _sessions(provider)
        assert len(sessions) == 2
        session, worker = sessions[0]
        os.kill(worker, signal.SIGKILL)
        said, _ = spreading.communicate(timeout=_PATIENCE_S)
    assert spreading.returncode == 0, said
    again = sum(number - 1 for number in _messages(provider).values())
    assert again <= before - kept + 8  # and those that were on their way
    codes = rows(pytester.path / "helmbench.db", "SELECT code, repetition FROM results")
    assert len(codes) == len(set(codes)) == 122
    assert session not in dict(_sessions(provider))


def _sessions(provider: Provider) -> list[tuple[int, int]]:
    """Return the sessions that ask a provider, each with the worker that has started it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes()
            if b"--helmbench-shard=" in words and provider.url.encode() in words:
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                found.append((int(folder.name), int(parent)))
    return found


def _recorded(db: Path) -> int:
    return rows(db, "SELECT count(*) FROM responses")[0][0] if db.is_file() else 0


def test_ctrl_c_brings_in_what_there_is_and_resume_goes_on(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _tree(pytester, 60)
    provider.latency_s = 0.5
    arguments = ("--dask=local:2", "--shards=2", *_asking(provider))
    with _spreading(pytester.path, *arguments) as spreading:
        until(lambda: provider.count >= 16, "the shards are in the middle")
        os.kill(spreading.pid, signal.SIGINT)
        said, _ = spreading.communicate(timeout=_PATIENCE_S)
    assert spreading.returncode == 130, said
    assert "add --resume to go on" in said
    provider.latency_s = 0.0
    with _spreading(pytester.path, "--resume", *arguments) as spreading:
        said, _ = spreading.communicate(timeout=_PATIENCE_S)
    assert spreading.returncode == 0, said
    assert len(rows(pytester.path / "helmbench.db", "SELECT code FROM results")) == 62
    assert set(_messages(provider).values()) == {1}


def test_a_scheduler_beyond_this_machine_needs_tls(pytester: pytest.Pytester) -> None:
    done = helmbench(pytester.path, "spread", "--dask=10.0.0.7:8786", "--", "check")
    assert done.returncode == 4
    assert "a scheduler beyond this machine needs TLS" in done.stderr


def test_what_is_there_is_not_written_over(pytester: pytest.Pytester, provider: Provider) -> None:
    _tree(pytester, 2)
    (pytester.path / "helmbench-2of4.db").touch()
    done = helmbench(pytester.path, "spread", "--dask=local:1", *_asking(provider))
    assert done.returncode == 2
    assert "helmbench-2of4.db is there already\n  hint: --resume" in done.stderr


def test_arguments_that_pytest_cannot_use_are_told_at_once(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _tree(pytester, 2)
    with _spreading(pytester.path, "--dask=local:1", *_asking(provider), "--no-such-option") as spreading:
        said, _ = spreading.communicate(timeout=_PATIENCE_S)
    assert spreading.returncode == 4, said
    assert "--no-such-option" in said


def test_a_cluster_behind_tls_runs_it(pytester: pytest.Pytester, provider: Provider) -> None:
    _tree(pytester, 8)
    write_certificate(pytester.path)
    files = {"CERT": "cert.pem", "KEY": "key.pem"}
    tls = {
        f"DASK_DISTRIBUTED__COMM__TLS__{role}__{part}": str(pytester.path / name)
        for role in ("CLIENT", "SCHEDULER", "WORKER")
        for part, name in files.items()
    }
    tls["DASK_DISTRIBUTED__COMM__TLS__CA_FILE"] = str(pytester.path / "cert.pem")
    address = pytester.path / "scheduler.json"
    scheduler = ["scheduler", "--protocol=tls", "--host=127.0.0.1", "--port=0", "--no-dashboard"]
    scheduler.append(f"--scheduler-file={address}")
    worker = ["worker", f"--scheduler-file={address}", "--nthreads=2", "--no-dashboard", "--no-nanny"]
    with _dask(scheduler, tls):
        until(address.exists, "the scheduler is there")
        where = json.loads(address.read_text())["address"]
        assert where.startswith("tls://")
        with (
            _dask(worker, {**tls, "OPENAI_API_KEY": "sk-of-the-cluster"}),
            _spreading(
                pytester.path, f"--dask={where}", "--shards=2", *_asking(provider), **tls
            ) as spreading,
        ):
            said, _ = spreading.communicate(timeout=_PATIENCE_S)
            with _spreading(pytester.path, f"--dask={where}", "--", "check", **tls) as checking:
                there, _ = checking.communicate(timeout=_PATIENCE_S)
    assert spreading.returncode == 0, said
    assert len(rows(pytester.path / "helmbench.db", "SELECT code FROM results")) == 10
    assert "OPENAI_API_KEY" in there
    assert "sk-of" not in there


@contextmanager
def _dask(words: list[str], variables: dict[str, str]) -> Iterator[None]:
    """Run a part of a cluster meanwhile."""
    program = "from dask.__main__ import main; main()"
    with subprocess.Popen([sys.executable, "-c", program, *words], env=environment(**variables)) as process:
        try:
            yield
        finally:
            process.terminate()


def test_a_shard_with_a_failing_test_is_merged_and_ends_1(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _tree(pytester, 2)
    pytester.makepyfile(test_own="def test_it(): assert False")
    arguments = ("--dask=local:1", "--shards=1", *_asking(provider), "test_own.py")
    with _spreading(pytester.path, *arguments) as spreading:
        said, _ = spreading.communicate(timeout=_PATIENCE_S)
    assert spreading.returncode == 1, said
    assert "1 shard merged" in said
    assert "pytest ended 1" in said


def test_what_is_no_results_file_is_not_gone_on_with(pytester: pytest.Pytester, provider: Provider) -> None:
    _tree(pytester, 2)
    (pytester.path / "helmbench-1of2.db").write_bytes(b"no results file")
    arguments = ("--dask=local:1", "--shards=2", "--resume", *_asking(provider))
    with _spreading(pytester.path, *arguments) as spreading:
        said, _ = spreading.communicate(timeout=_PATIENCE_S)
    assert spreading.returncode == 2, said
    assert "helmbench-1of2.db" in said
    assert "Traceback" not in said
    assert provider.count == 0


def test_nothing_of_dask_is_imported_otherwise(pytester: pytest.Pytester) -> None:
    program = (
        "import sys; import pytest_helmbench.cli.main as main; main.main(['spread', '--help']);"
        " assert not {'dask', 'distributed'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=pytester.path, env=environment())


def test_check_says_who_is_there_and_no_key(pytester: pytest.Pytester) -> None:
    with _spreading(pytester.path, "--dask=local:1", "--", "check") as spreading:
        said, _ = spreading.communicate(timeout=_PATIENCE_S)
    assert spreading.returncode == 0, said
    assert "pytest-helmbench" in said
    assert "key variables" in said

"""Where replies are judged: the value of the option, processors, and what is known of the cost."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from evaluators import Timed, reply

from pytest_helmbench.core.judge_places import JudgeKind, JudgePlaces
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.users_word import UsersWord
from pytest_helmbench.engine import executors
from pytest_helmbench.engine.executors import open_judges, refuse_missing, usable_cpus
from pytest_helmbench.engine.judging_costs import JudgingCosts
from pytest_helmbench.engine.parcels import OtherVersionError, Packer, judge


def _parsed(text: str) -> JudgePlaces:
    return JudgePlaces.parse(UsersWord(text))


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("auto", JudgePlaces(JudgeKind.AUTO)),
        ("0", JudgePlaces(JudgeKind.PROCESSES)),
        ("16", JudgePlaces(JudgeKind.PROCESSES, 16)),
        ("dask:local:8", JudgePlaces(JudgeKind.DASK_LOCAL, 8)),
        ("dask:127.0.0.1:8786", JudgePlaces(JudgeKind.DASK, target="tcp://127.0.0.1:8786")),
        ("dask:tcp://[::1]:8786", JudgePlaces(JudgeKind.DASK, target="tcp://[::1]:8786")),
        ("dask:localhost:8786", JudgePlaces(JudgeKind.DASK, target="tcp://localhost:8786")),
        ("dask:tls://scheduler.lan:8786", JudgePlaces(JudgeKind.DASK, target="tls://scheduler.lan:8786")),
        (
            "python:our.cluster:Site.executor",
            JudgePlaces(JudgeKind.FACTORY, target="our.cluster:Site.executor"),
        ),
    ],
)
def test_an_option_says_who_judges(text: str, places: JudgePlaces) -> None:
    assert _parsed(text) == places
    assert places.asks_others == (text != "0")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-1",
        "1.5",
        "9999",
        "many",
        "dask:",
        "dask:local:0",
        "dask:local:x",
        "python:",
        "python:x",
        "ray:auto",
    ],
)
def test_what_says_nobody_is_refused(text: str) -> None:
    with pytest.raises(HelmbenchError, match="hint: it takes auto, a number"):
        _parsed(text)


@pytest.mark.parametrize(
    "address",
    [
        "tcp://scheduler.lan:8786",
        "10.0.0.7:8786",
        "tcp://localhost.lan:8786",
        "tcp://127.0.0.1.nip.io:8786",
        "ws://10.0.0.7:8786",
        "0.0.0.0:8786",
    ],
)
def test_a_scheduler_beyond_this_machine_needs_tls(address: str) -> None:
    with pytest.raises(
        HelmbenchError, match=r"speaks no TLS: Dask unpickles what it is sent[\s\S]*hint: dask:tls://"
    ):
        _parsed(f"dask:{address}")


@pytest.mark.parametrize(
    "address", ["scheduler", "tls://host", "tls://:8786", "tls://me@host:8786", "host:port"]
)
def test_what_is_no_address_of_a_scheduler_is_refused(address: str) -> None:
    with pytest.raises(HelmbenchError, match="is no address of a scheduler"):
        _parsed(f"dask:{address}")


def test_a_factory_is_looked_at_before_the_session_begins() -> None:
    with pytest.raises(HelmbenchError, match="No module named 'nowhere'"):
        refuse_missing(_parsed("python:nowhere:executor"))
    with pytest.raises(HelmbenchError, match="has no attribute 'nothing'"):
        refuse_missing(_parsed("python:evaluators:nothing"))
    with pytest.raises(HelmbenchError, match=r"gave a Reply\n  hint: it is to return a concurrent"):
        open_judges(_parsed("python:evaluators:reply"))


def test_processors_are_those_of_the_own_group(tmp_path: Path) -> None:
    limit = tmp_path / "cpu.max"
    everything = usable_cpus(limit)
    limit.write_text("max 100000\n")
    assert usable_cpus(limit) == everything
    limit.write_text("50000 100000\n")
    assert usable_cpus(limit) == 1


def test_what_took_long_once_is_not_called_cheap_soon() -> None:
    costs = JudgingCosts()
    key = costs.key(Timed(0), reply("x" * 100))
    assert not costs.is_cheap(key)
    costs.took(key, 0.1)
    assert costs.is_cheap(key)
    assert not costs.is_cheap(costs.key(Timed(0), reply("x" * 1000)))
    costs.took(key, 100.0)
    for _ in range(10):
        costs.took(key, 0.1)
        assert not costs.is_cheap(key)


def test_processes_are_worth_it_where_enough_is_left() -> None:
    costs = JudgingCosts()
    costs.expect(1_000)
    key = costs.key(Timed(0), reply())
    for _ in range(8):
        assert not costs.worth_judges
        costs.took(key, 12.0)
    assert costs.worth_judges
    for _ in range(800):
        costs.took(key, 12.0)
    assert not costs.worth_judges


def test_a_parcel_holds_what_is_shared_once_and_knows_its_maker() -> None:
    common = ("a schema" * 1000,)
    asked = [(Timed(0, common), reply(f"reply {number}")) for number in range(16)]
    parcel = Packer().parcel(asked)
    assert len(parcel) < 2 * len(common[0])
    found = [finding.found[1] for finding in pickle.loads(judge(parcel))]
    assert found == [one.text for _, one in asked]
    with pytest.raises(OtherVersionError, match=r"the session runs another, this judge [0-9a-f]{16} "):
        judge(Packer("another").parcel(asked))


@pytest.mark.parametrize("missing", ["distributed", "cryptography"])
def test_what_dask_needs_is_looked_for_before_the_session(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(HelmbenchError, match=f"needs the package {missing}"):
        refuse_missing(_parsed("dask:local:1"))

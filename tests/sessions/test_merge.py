"""`helmbench merge`: shards made one run that equals one session, what is missing named, what does not fit refused."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from bench_pack_sessions import ASKS, run_packs, write_asking_pack
from commands import helmbench
from packs import healthy, row, write_pack
from provider import Provider
from records import final_state, integrity
from sessions import Session, until
from trees import (
    Part,
    Tree,
    category,
    includes,
    judged,
    judged_twice,
    rows,
    run_tree,
    write_tree,
)

from pytest_helmbench.results.stored_scores import scored_run

_MODELS = ("--helmbench-model=test/good", "--helmbench-model=test/other")
_ASK = """
def test_it_asks(helmbench_openai):
    said = helmbench_openai.chat.completions.create(model="any", messages=[{"role": "user", "content": "ANSWER: yes"}])
    assert said.choices[0].message.content == "yes"
"""
_SCORE = "return { totalScore: results.length * 10, categories: [] };"


def _tree(pytester: pytest.Pytester, cases: int = 12, models: str = "") -> Path:
    root = write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK", "CALM"] * (cases // 2))})
    if models:
        (root / "models.yml").write_text(models)
    return root


def _shards(
    pytester: pytest.Pytester, url: str, numbers: Sequence[int], of: int, *arguments: str
) -> list[Path]:
    for number in numbers:
        run_tree(pytester, f"--helmbench-shard={number}/{of}", *arguments, url=url)
    return [pytester.path / f"helmbench-{number}of{of}.db" for number in numbers]


def _scores(db: Path) -> list[str]:
    found = [scored_run(db, run_id) for (run_id,) in rows(db, "SELECT id FROM evaluation_runs ORDER BY id")]
    return [repr(one.score) for one in found if one is not None]


def _junit(path: Path) -> dict[tuple[str | None, str | None], str]:
    """Return what a report says of each case: the elements in it, properties left out."""
    return {
        (case.get("classname"), case.get("name")): " ".join(
            part.tag for part in case if part.tag != "properties"
        )
        for case in ET.parse(path).getroot().iter("testcase")
    }


def _change(db: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(db)) as conn, conn:
        conn.execute(statement, values)


def test_the_merged_run_equals_one_run_of_all_kinds(pytester: pytest.Pytester, provider: Provider) -> None:
    provider.cost_usd = 0.001
    scored = category("RISK", "RISK")
    neutral = {"PT3": Part("## User's input\n\nMessage 3.\n\nANSWER: CALM", 0)}
    write_tree(
        pytester.path / "benchmark",
        {
            "P1-B1-S1": category("RISK", "CALM", "RISK"),
            "P1-B1-S2": Tree(scored.evaluation, scored.schema, {**scored.perturbations, **neutral}),
            "P1-B2-S1": includes("A,B", "A"),
            "P2-B1-S1": judged("GOOD", "BAD"),
            "P2-B1-S2": judged_twice("GOOD"),
        },
    )
    write_pack(
        pytester.path / "questions",
        [row("multiple_choice", {"metadata": {"subject": f"s{n % 2}"}}, f"q{n}") for n in range(5)]
        + [healthy("short_answer", "s")],
    )
    write_asking_pack(pytester.path / "hosted", {"a": ASKS, "b": ASKS, "c": ASKS}, score=_SCORE)
    pytester.makepyfile(test_ask=_ASK)
    paths = ("benchmark", "questions", "hosted", "test_ask.py")
    options = (
        *_MODELS,
        "--helmbench-marking-model=test/judge",
        "--helmbench-repeat=2",
        "-p",
        "no:cacheprovider",
    )
    run_tree(pytester, *paths, *options, "--junitxml=one.xml", url=provider.url)
    files = _shards(pytester, provider.url, (1, 2), 3, *paths, *options)
    files += _shards(pytester, provider.url, (3,), 3, *paths, *options, "-n2")

    done = helmbench(
        pytester.path,
        "merge",
        *reversed(files),
        "-o",
        "merged.db",
        "--benchmark",
        "hosted",
        "--junitxml=all.xml",
    )

    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    one, merged = pytester.path / "helmbench.db", pytester.path / "merged.db"
    assert final_state(merged) == final_state(one)
    assert _scores(merged) == _scores(one)
    assert integrity(merged) == integrity(one)
    of_runs = "SELECT run_id, type, count(*), min(payload) FROM events WHERE result_id IS NULL GROUP BY 1, 2"
    assert rows(merged, of_runs) == rows(one, of_runs) != []
    totals = "SELECT run_id, total, unit, categories, partial FROM pack_scores ORDER BY run_id"
    assert rows(merged, totals) == rows(one, totals) != []
    catalogue = "SELECT full_code, title, evaluation FROM scenarios ORDER BY full_code, evaluation"
    assert rows(merged, catalogue) == rows(one, catalogue)
    plans = "SELECT run_id, codes FROM plans ORDER BY run_id"
    assert [zlib.decompress(codes) for _, codes in rows(merged, plans)] == [
        zlib.decompress(codes) for _, codes in rows(one, plans)
    ]
    suites = ET.parse(pytester.path / "all.xml").getroot()
    assert suites.get("tests") == str(len(suites.findall(".//testcase")))
    said = _junit(pytester.path / "one.xml")
    assert _junit(pytester.path / "all.xml") == said
    assert {"failure", "skipped", ""} <= {*said.values()}
    assert not list(pytester.path.glob(".helmbench-merge*")), "nothing is left beside it"
    assert not list(pytester.path.glob("helmbench-*of3.db-*")), "inputs are only read"
    settings = json.loads(rows(merged, "SELECT settings FROM evaluation_runs")[0][0])
    assert [part["index"] for part in settings["merged"]] == [1, 2, 3]
    assert "shard" not in settings


def test_what_is_missing_is_named_and_a_resume_of_the_partial_merge_asks_exactly_that(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _tree(pytester)
    run_tree(pytester, url=provider.url)
    files = _shards(pytester, provider.url, (1, 2, 4), 4, "--helmbench-min-score=0.4")
    ((share,),) = rows(files[0], "SELECT 12 - count(*) FROM results")
    left = share - sum(rows(file, "SELECT count(*) FROM results")[0][0] for file in files[1:])
    assert left

    refused = helmbench(pytester.path, "merge", *files, "-o", "merged.db")
    assert refused.returncode == 1
    assert "shard 3 of 4 is missing" in refused.stderr
    assert (
        f"{left} of 12 cases of test/good on benchmark are in no shard that was given: P1-B1-S1-"
        in refused.stderr
    )
    assert not (pytester.path / "merged.db").exists()

    pytester.mkdir("out")  # where the benchmark is not beside it
    merged = pytester.path / "out" / "merged.db"
    done = helmbench(
        pytester.path, "merge", *files, "-o", merged, "--partial", "--gate", "--junitxml=some.xml"
    )
    assert done.returncode == 1, "the gate does not hold below full coverage"
    assert f"{12 - left} of 12 cases judged, partial" in done.stdout
    assert "coverage" in done.stdout
    suites = ET.parse(pytester.path / "some.xml").getroot()
    assert (suites.get("tests"), suites.get("errors")) == ("13", str(left)), "12 cases and the gate"

    before = provider.count
    resumed = run_tree(pytester, f"--helmbench-db={merged}", "--helmbench-resume", url=provider.url)
    assert provider.count - before == left
    assert resumed.ret == 1, "some cases are judged wrong"
    assert final_state(merged) == final_state(pytester.path / "helmbench.db")
    assert _scores(merged) == _scores(pytester.path / "helmbench.db")


def test_files_that_do_not_belong_together_are_refused_by_name_and_nothing_is_written(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    root = _tree(pytester, 4)
    one, two = _shards(pytester, provider.url, (1, 2), 2)
    run_tree(pytester, url=provider.url)
    for name in ("hot", "live", "copy", "bare"):
        shutil.copy(two, pytester.path / f"{name}.db")
    _change(
        pytester.path / "hot.db",
        "UPDATE evaluation_runs SET settings = json_set(settings, '$.sampling.temperature', 1)",
    )
    _change(pytester.path / "bare.db", "DELETE FROM evaluation_runs")
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000+00:00", time.gmtime())
    _change(
        pytester.path / "live.db",
        "INSERT INTO leases SELECT session_id, 'x', 'elsewhere', 7, '', ? FROM evaluation_runs",
        now,
    )
    _change(pytester.path / "live.db", "UPDATE evaluation_runs SET status = 'running'")
    (root / "scenarios" / "P1-B1-S1" / "conditions.md").write_text("# C1\n## Tone\n\nBe loud.\n")
    (other,) = _shards(pytester, provider.url, (2,), 2, "--helmbench-db=other.db")
    (pytester.path / "there.db").write_bytes(b"mine")
    other = pytester.path / "other.db"

    def refused(*words: object, code: int = 2) -> str:
        done = helmbench(pytester.path, "merge", *words)
        assert done.returncode == code, done.stderr
        assert not (pytester.path / "m.db").exists()
        return done.stderr

    to = ("-o", "m.db")
    assert f"{one} holds the same session as {one}: shard 1 of 2 would count twice" in refused(
        one, one, two, *to
    )
    assert f"copy.db holds the same session as {two}" in refused(one, two, "copy.db", *to)
    assert "other.db: the hash of benchmark is " in refused(one, other, *to)
    assert 'hot.db: sampling of test/good is {"temperature":1}, in ' in refused(one, "hot.db", *to)
    assert "live.db is still being written, by process " in refused(one, "live.db", *to)
    assert "helmbench.db: its last session is not a shard" in refused(one, "helmbench.db", *to)
    assert "there.db is there already" in refused(one, two, "-o", "there.db")
    assert (pytester.path / "there.db").read_bytes() == b"mine"
    assert f"{two} is one of the shards" in refused(one, two, "-o", two, "--force")
    for name in (str(one), "m.db", "there.db/r.xml"):
        stderr = refused(one, two, *to, f"--junitxml={name}")
        assert f"{name} is the merged results file" in stderr or f"{name}: cannot be written: " in stderr
    assert "there is no such file" in refused(one, "none.db", *to)
    assert f"{root}: it is not a file" in refused(one, root, *to)
    assert "bare.db: it holds no run\n  hint: what a killed session has written is in bare.db-wal" in refused(
        one, "bare.db", *to
    )
    assert "the shards were given no threshold and no baseline" in refused(one, two, *to, "--gate")

    assert helmbench(pytester.path, "merge", one, "live.db", "-o", "there.db", "--force").returncode == 0
    assert rows(pytester.path / "there.db", "SELECT count(*) FROM results") == [(4,)]
    assert "there.db: its last session is not a shard" in refused("there.db", *to)


def test_of_a_shard_that_ran_twice_the_later_counts_of_an_overlap_the_first_verdict_and_all_costs(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    provider.cost_usd = 0.01
    _tree(pytester, 6)
    one, two = _shards(pytester, provider.url, (1, 2), 2)
    ((first,),) = rows(one, "SELECT count(*) FROM results")
    (pytester.path / "helmbench-1of2.db").rename(pytester.path / "first.db")
    provider.reset()
    provider.cost_usd = 0.01
    provider.answers(status=400)
    (again,) = _shards(pytester, provider.url, (1,), 2, "--helmbench-max-retries=0")
    files = (pytester.path / "first.db", again, two)

    done = helmbench(pytester.path, "merge", *files, "-o", "m.db")

    assert done.returncode == 0
    assert "shard 1 of 2 ran more than once: the session in " in done.stderr
    found = dict(rows(pytester.path / "m.db", "SELECT outcome = 'error', count(*) FROM results GROUP BY 1"))
    assert found == {0: 6 - first, 1: first}, "the later session wins whole"
    ((known,),) = rows(pytester.path / "m.db", "SELECT known_cost_usd FROM evaluation_runs")
    assert known == pytest.approx(0.06), "what the first session has paid counts"

    provider.reset()
    provider.cost_usd = 0.01
    provider.answers(text="no JSON")
    (whole,) = _shards(pytester, provider.url, (1,), 1)
    for order in ((whole, files[0], two), (two, whole, files[0])):
        assert helmbench(pytester.path, "merge", *order, "-o", "o.db", "--force").returncode == 0
        verdicts = "SELECT outcome, count(*) FROM results GROUP BY 1 ORDER BY 1"
        assert rows(pytester.path / "o.db", verdicts) == [("failed", 3), ("passed", 3)], (
            "the first verdicts stand"
        )
        ((cost,),) = rows(pytester.path / "o.db", "SELECT cost_usd FROM evaluation_runs")
        assert cost == pytest.approx(0.12)


def test_a_gate_holds_the_whole_run_to_what_all_shards_were_given(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _tree(pytester, 6)
    run_tree(pytester, "--helmbench-db=old.db", url=provider.url)
    held = _shards(
        pytester, provider.url, (1, 2), 2, "--helmbench-min-score=0.4", "--helmbench-baseline=old.db"
    )
    strict = ("--helmbench-min-score=0.9", "--helmbench-db=strict.db")
    run_tree(pytester, "--helmbench-shard=2/2", *strict, url=provider.url)

    done = helmbench(pytester.path, "merge", *held, "-o", "m.db", "--gate", "--junitxml=m.xml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✓ HOLDS   test/good: 50.0 % (" in done.stdout
    kept = "SELECT baseline ->> '$.file', baseline ->> '$.run' FROM evaluation_runs"
    assert rows(pytester.path / "m.db", kept) == [("old.db", 1)]
    assert ET.parse(pytester.path / "m.xml").getroot().get("failures") == "3", "the gate holds"

    other = helmbench(pytester.path, "merge", held[0], "strict.db", "-o", "n.db", "--gate")
    assert other.returncode == 2
    assert "--helmbench-min-score '0.9'" in other.stderr
    assert not (pytester.path / "n.db").exists()
    covered = _shards(pytester, provider.url, (1, 2, 3), 3, "--helmbench-min-coverage=0.5")
    few = helmbench(pytester.path, "merge", covered[0], "-o", "few.db", "--gate", "--partial")
    assert few.returncode == 1, "a third is less than half"
    done = helmbench(pytester.path, "merge", *covered, "-o", "c.db", "--gate")
    assert done.returncode == 0, done.stdout + done.stderr
    alone = _shards(pytester, provider.url, (1,), 1, "--helmbench-min-score=0.9")
    assert helmbench(pytester.path, "merge", *alone, "-o", "n.db", "--gate").returncode == 1
    assert helmbench(pytester.path, "merge", *alone, "-o", "n.db", "--force").returncode == 0


def test_a_total_of_a_pack_that_is_not_here_is_left_out_and_said(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_asking_pack(pytester.path / "hosted", {"a": ASKS, "b": ASKS}, score=_SCORE)
    run_packs(pytester, "--helmbench-shard=1/1", url=provider.url, paths=("hosted",))

    done = helmbench(pytester.path, "merge", "helmbench-1of1.db", "-o", "m.db")

    assert done.returncode == 0
    assert "has no total of its own: it is not here as it was run" in done.stderr
    assert rows(pytester.path / "m.db", "SELECT * FROM pack_scores") == []


def test_a_shard_that_was_killed_is_named_goes_on_and_the_merge_equals_one_session(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _tree(pytester)
    run_tree(pytester, url=provider.url)
    (two,) = _shards(pytester, provider.url, (2,), 2)
    one = pytester.path / "helmbench-1of2.db"
    provider.answers(times=1, hang=True, when=lambda request: "Message 4." in request.prompt)  # of shard 1
    session = Session(pytester.path, provider.url, "--helmbench-shard=1/2")
    ((share,),) = rows(two, "SELECT 12 - count(*) FROM results")
    until(
        lambda: one.exists() and rows(one, "SELECT 1 FROM sqlite_master WHERE name = 'results'"),
        "the file is made",
    )
    until(lambda: rows(one, "SELECT count(*) FROM results") == [(share - 1,)], "all but one are judged")
    session.kill()

    left = helmbench(pytester.path, "merge", one, two, "-o", "m.db")
    assert left.returncode == 1, "its process is gone, so no process writes it"
    assert f"(/{str(one)[1:]}) did not come to its end: 1 of its {share} cases have no result" in left.stderr
    before = provider.count
    run_tree(pytester, "--helmbench-shard=1/2", "--helmbench-resume", url=provider.url)
    assert provider.count - before == 1
    done = helmbench(pytester.path, "merge", one, two, "-o", "m.db")
    assert (done.returncode, done.stderr) == (0, "")
    states = [final_state(pytester.path / name) for name in ("m.db", "helmbench.db")]
    assert states[0]["results"] == states[1]["results"]
    assert _scores(pytester.path / "m.db") == _scores(pytester.path / "helmbench.db")

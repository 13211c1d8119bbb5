"""Files that no shard has written are refused in a sentence, whatever stands in them, and nothing is left behind."""

from __future__ import annotations

import shutil
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from commands import helmbench
from provider import Provider
from trees import category, clear_environment, rows, run_tree, write_tree


def _sql(statement: str, *values: object) -> Callable[[Path], None]:
    def change(db: Path) -> None:
        with closing(sqlite3.connect(db)) as conn, conn:
            conn.execute("PRAGMA writable_schema = ON")
            conn.execute("UPDATE sqlite_master SET sql = replace(sql, ') STRICT', ')')")
        with closing(sqlite3.connect(db)) as conn, conn:
            conn.execute("PRAGMA foreign_keys = OFF")
            conn.execute("PRAGMA ignore_check_constraints = ON")
            conn.execute(statement, values)

    return change


def _shard(json: str) -> Callable[[Path], None]:
    return _sql("UPDATE evaluation_runs SET shard = ?", json)


def _stand_in(db: Path, table: str, kind: str) -> None:
    """Let a view stand where a table is asked for, under a name of its type that only SQLite reads."""
    with closing(sqlite3.connect(db)) as conn, conn:
        for statement in (
            "PRAGMA legacy_alter_table = ON",
            f"ALTER TABLE {table} RENAME TO other",
            f"CREATE VIEW {table} AS SELECT * FROM other",
            "PRAGMA writable_schema = ON",
        ):
            conn.execute(statement)
        conn.execute("UPDATE sqlite_master SET type = ? WHERE name = ?", (kind, table))


_CASES: dict[str, Callable[[Path], object]] = {
    "not a database": lambda db: db.write_bytes(b"not a database, but long enough to look like one" * 100),
    "empty": lambda db: db.write_bytes(b""),
    "cut off": lambda db: db.write_bytes(db.read_bytes()[: db.stat().st_size // 2]),
    "no JSON": _shard("{"),
    "deep JSON": _shard("[" * 100_000),
    "no object": _shard("[1]"),
    "no shard of 8": _shard('{"index":9,"of":8,"scope":"whole","tests":4,"broken":[]}'),
    "huge number": _shard('{"index":1,"of":1e999,"scope":"whole","tests":4,"broken":[]}'),
    "odd broken cases": _shard('{"index":1,"of":1,"scope":"whole","tests":4,"broken":[["x","y"]]}'),
    "settings": _sql("UPDATE evaluation_runs SET settings = '[]'"),
    "plan that is none": _sql("UPDATE plans SET whole = x'00'"),
    "plan as text": _sql("UPDATE plans SET codes = 'P1'"),
    "plan that is not UTF-8": _sql("UPDATE plans SET whole = ?", zlib.compress(b"\xff\xfe")),
    "another status": _sql("UPDATE evaluation_runs SET status = 'splendid'"),
    "time that is none": _sql("UPDATE evaluation_runs SET started_at = 'yesterday'"),
    "outcome that is none": _sql("UPDATE results SET outcome = 'splendid'"),
    "code that is a blob": _sql("UPDATE results SET code = x'00ff' WHERE rowid = 1"),
    "credit above 1": _sql("UPDATE evaluations SET credit = 7"),
    "endless cost": _sql("UPDATE calls SET cost_usd = 9e999"),
    "link to nowhere": _sql("UPDATE calls SET request_hash = 'gone'"),
    "scenario that is not JSON": _sql("UPDATE scenarios SET evaluation = 'x'"),
    "another version": _sql("PRAGMA user_version = 2"),
    "endless latency": _sql("UPDATE results SET latency_ms = 9e999"),
    "endless cost of a result": _sql("UPDATE results SET cost_usd = -9e999"),
    "negative cost": _sql("UPDATE calls SET cost_usd = -5.0"),
    "tokens without end": _sql("UPDATE calls SET prompt_tokens = 9223372036854775807"),
    "result of a case that it has not planned": _sql("UPDATE results SET code = 'P9' WHERE rowid = 1"),
    "case that is not in the plan of all": _sql("UPDATE plans SET whole = ?", zlib.compress(b"P1\nP2")),
    "case of another share": _shard('{"index":1,"of":8,"scope":"whole","tests":4,"broken":[]}'),
    "sample that cannot be read": _sql(
        """UPDATE plans SET sample = '{"rule":"0.2","seed":1,"of":4,"weights":{"P1-B1-S1-C1-PT1":"1/0"}}'"""
    ),
}


def test_what_no_shard_has_written_is_refused_in_a_sentence(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear_environment(monkeypatch)
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM", "RISK", "CALM")})
    run_tree(pytester, "--helmbench-shard=1/1", url=provider.url)
    good = pytester.path / "helmbench-1of1.db"
    assert helmbench(pytester.path, "merge", good, "-o", "m.db").returncode == 0
    (pytester.path / "m.db").unlink()
    before = {path.name for path in pytester.path.iterdir()}
    wrong = []

    for name, change in _CASES.items():
        bad = pytester.path / "bad.db"
        shutil.copy(good, bad)
        change(bad)
        done = helmbench(pytester.path, "merge", bad, "-o", "m.db")  # asserts that there is no traceback
        left = {path.name for path in pytester.path.iterdir()} - before - {"bad.db"}
        if (
            done.returncode != 2
            or not done.stderr.startswith("helmbench: ")
            or "hint: " not in done.stderr
            or left
        ):
            wrong.append((name, done.returncode, done.stderr, left))
        for file in {"bad.db"} | left:
            (pytester.path / file).unlink()

    assert wrong == [], wrong


_ENDLESS = "WITH RECURSIVE more (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more) SELECT {} FROM more"


def _view(table: str) -> Callable[[Path], None]:
    """Let a view that computes for ever stand where a table is asked for."""

    def change(db: Path) -> None:
        with closing(sqlite3.connect(db)) as conn, conn:
            columns = [name for _, name, *_ in conn.execute(f"PRAGMA table_info({table})")]
            conn.execute("PRAGMA legacy_alter_table = ON")
            conn.execute(f"ALTER TABLE {table} RENAME TO other")
            endless = _ENDLESS.format(", ".join(f"n AS {name}" for name in columns))
            conn.execute(f"CREATE VIEW {table} AS {endless}")

    return change


def _own_view(db: Path) -> None:
    with closing(sqlite3.connect(db)) as conn, conn:
        columns = [name for _, name, *_ in conn.execute("PRAGMA table_info(v_costs)")]
        conn.execute("DROP VIEW v_costs")
        conn.execute(
            f"CREATE VIEW v_costs AS {_ENDLESS.format(', '.join(f'n AS {name}' for name in columns))}"
        )


_FORMS: dict[str, Callable[[Path], object]] = {
    "view for results": _view("results"),
    "view for runs": _view("evaluation_runs"),
    "view for leases": _view("leases"),
    "other words of a view of ours": _own_view,
    "view by another type": lambda db: _stand_in(db, "results", "View"),
    "trigger": _sql("CREATE TRIGGER odd AFTER INSERT ON calls BEGIN DELETE FROM results; END"),
    "virtual table": _sql("CREATE VIRTUAL TABLE odd USING fts5(x)"),
    "computed column": _sql("ALTER TABLE results ADD COLUMN odd AS (zeroblob(900000000))"),
    "index that computes": _sql("CREATE INDEX odd ON results (zeroblob(9000000))"),
    "index that computes which rows": _sql("CREATE INDEX odd ON results (id) WHERE zeroblob(900000000) > 1"),
}
_READS = (
    "runs",
    "report",
    "show",
    "export last --format=csv",
    "rescore last",
    "compare 1 1",
    "query",
)


@pytest.mark.parametrize("form", _FORMS)
def test_no_reader_and_no_writer_takes_what_has_the_name_of_a_table(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    clear_environment(monkeypatch)
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM")})
    run_tree(pytester, url=provider.url)
    asked = provider.count
    _sql('CREATE VIEW "mine" AS SELECT * FROM results')(pytester.path / "helmbench.db")
    assert helmbench(pytester.path, "runs").returncode == 0
    _FORMS[form](pytester.path / "helmbench.db")
    for command in _READS:
        done = helmbench(pytester.path, *command.split())
        assert done.returncode == 2, (command, done.stdout, done.stderr)
        assert "which no results file has\n  hint: " in done.stderr, command
    session = run_tree(pytester, url=provider.url)
    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert provider.count == asked


def test_a_shard_decides_nothing_about_cases_of_another(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear_environment(monkeypatch)
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK", "CALM"] * 4)})
    for number in (1, 2):
        run_tree(pytester, f"--helmbench-shard={number}/2", url=provider.url)
    one, two = (pytester.path / f"helmbench-{number}of2.db" for number in (1, 2))
    honest = one.read_bytes()
    ((code, *_), *_) = rows(two, "SELECT code FROM results")

    _sql("UPDATE results SET code = ?, completed_at = '2000' WHERE rowid = 1", code)(one)
    done = helmbench(pytester.path, "merge", one, two, "-o", "m.db")
    assert (done.returncode, f"it holds a result of {code}, which is not in its plan" in done.stderr) == (
        2,
        True,
    )

    one.write_bytes(honest)
    _sql("UPDATE perturbations SET severity = 900000")(one)
    done = helmbench(pytester.path, "merge", one, two, "-o", "m.db")
    assert (done.returncode, "P1-B1-S1-PT1 is another one than in" in done.stderr) == (
        2,
        True,
    )
    assert not (pytester.path / "m.db").exists()


def test_names_from_a_shard_do_not_steer_the_terminal(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear_environment(monkeypatch)
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    run_tree(pytester, "--helmbench-shard=1/1", url=provider.url)
    _sql("UPDATE llms SET name = ?", "evil\x1b[2J\x00&<![CDATA[")(pytester.path / "helmbench-1of1.db")

    done = helmbench(pytester.path, "merge", "helmbench-1of1.db", "-o", "m.db", "--junitxml=m.xml")

    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr + (pytester.path / "m.xml").read_text()

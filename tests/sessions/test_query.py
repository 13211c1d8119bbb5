"""`helmbench query`: forms of output, what it refuses, and that hidden texts stay hidden whatever the SQL."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from commands import helmbench
from paths import ROOT
from trees import rows

from pytest_helmbench.cli.main import main
from pytest_helmbench.store.read.hidden_texts import TEXTS
from pytest_helmbench.store.schema import create_tables

_REPLY = "the hose by the roses"
_PROMPT = "garden centre"
_SHOWN = {
    "benchmarks": {"version", "description", "kind"},
    "pillars": {"description"},
    "behaviours": {"title", "description", "compliance_criteria"},
    "scenarios": {"title", "family", "expected_category"},
    "llms": {"provider", "base_url"},
    "evaluation_runs": {
        *("status", "scope", "settings", "benchmark_place", "plugin_version", "shard", "baseline"),
    },
    "plans": {"codes", "whole", "defined", "broken", "sample"},
    "leases": {"owner", "host", "started"},
    "batches": {"token", "address", "model", "state", "keys", "input_file"},
    "responses": {"asked", "address"},
    "results": {"family", "outcome", "reason"},
    "evaluations": {"beside", "criterion", "rule", "parse", "expected", "observed"},
    "judgements": {"criterion", "judge", "observed"},
    "judge_labels": {"criterion"},
    "calls": {"purpose", "criterion", "judge", "finish_reason", "provider_model", "batch"},
    "sent_calls": {"owner"},
    "events": {"type", "at"},
    "pack_results": {"status"},
    "pack_scores": {"unit", "categories"},
}
"""Columns of texts that exports show, too. A new one belongs here, or among the hidden ones of the command."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results file of the starter benchmark: one run, with a judge."""
    folder = tmp_path_factory.mktemp("query")
    assert helmbench(folder, "init", "benchmark").returncode == 0
    helmbench(folder, "run-all", "--models", "baseline/lexical", "--", "-q")
    return folder / "helmbench.db"


def _shown(capsys: pytest.CaptureFixture[str], database: Path, *arguments: str) -> str:
    assert main(["query", *arguments, "--db", str(database)]) == 0
    return capsys.readouterr().out


def _refused(capsys: pytest.CaptureFixture[str], database: Path, sql: str) -> str:
    assert main(["query", sql, "--db", str(database)]) == 2
    return capsys.readouterr().err


def test_without_sql_it_prints_costs_by_run_behaviour_and_purpose(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = _shown(capsys, database).splitlines()
    assert lines[0].split()[:6] == ["run_id", "model", "behaviour", "purpose", "judge", "calls"]
    assert lines[-1].split()[:6] == ["2", "baseline/lexical", "P1-B2", "judge", "baseline/first", "4"]
    found = json.loads(_shown(capsys, database, "--json"))
    assert (
        sum(row["prompt_tokens"] for row in found)
        == rows(database, "SELECT sum(prompt_tokens) FROM calls")[0][0]
    )


def test_forms_are_those_of_sqlite_utils(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT 1 AS id, 'a,b' AS id, NULL AS none, x'ff' AS bytes, 9e999 AS endless"
    assert json.loads(_shown(capsys, database, sql, "--json")) == [
        {
            "id": 1,
            "id_2": "a,b",
            "none": None,
            "bytes": {"$base64": True, "encoded": "/w=="},
            "endless": None,
        }
    ]
    (row,) = csv.DictReader(io.StringIO(_shown(capsys, database, sql, "--csv")))
    assert (row["id"], row["id_2"], row["none"]) == ("1", "a,b", "")
    assert _shown(capsys, database, "SELECT code FROM results WHERE 0", "--csv") == "code\n"
    assert _shown(capsys, database, "SELECT 7 AS n, 'x' AS name").splitlines() == ["n  name", "7  x"]


def test_text_of_others_does_no_harm_to_a_terminal_or_a_spreadsheet(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT char(27) || '[31m' AS red, '=1+1' AS formula"
    for form in ("--table", "--csv", "--json"):
        assert "\x1b" not in _shown(capsys, database, sql, form)
    assert "'=1+1" in _shown(capsys, database, sql, "--csv")


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM results",
        "INSERT INTO texts VALUES ('a', 'b') RETURNING hash",
        "CREATE TEMP TABLE copy AS SELECT * FROM texts",
        "ATTACH 'other.db' AS other",
        "VACUUM INTO 'copy.db'",
        "PRAGMA user_version = 7",
        "SELECT name FROM pragma_table_info('texts')",
        "BEGIN",
        "SAVEPOINT a",
    ],
)
def test_nothing_is_written(database: Path, capsys: pytest.CaptureFixture[str], sql: str) -> None:
    before = database.read_bytes()
    assert _refused(capsys, database, sql) == (
        "helmbench: query only reads tables and views\n  hint: give one SELECT, without PRAGMA and ATTACH\n"
    )
    assert database.read_bytes() == before
    assert not database.with_name("copy.db").exists()


def test_a_slip_is_one_sentence_with_a_hint(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _refused(capsys, database, "SELECT modell FROM v_costs")
    assert found.startswith(
        "helmbench: no such column: modell\n  hint: v_costs has run_id, session_id, benchmark, "
    )
    found = _refused(capsys, database, "SELECT 1 FROM result")
    assert found.startswith("helmbench: no such table: result\n  hint: tables and views: benchmarks, texts, ")
    found = _refused(capsys, database, "SELECT 1; SELECT 2")
    assert found == "helmbench: the SQL is more than one statement\n  hint: give one SELECT\n"
    found = _refused(capsys, database, " ")
    assert found == "helmbench: the SQL selects nothing\n  hint: begin with SELECT or WITH\n"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT reply FROM v_results",
        "SELECT text AS other FROM responses",
        "SELECT * FROM responses, texts, requests LIMIT 9",
        "SELECT other FROM (SELECT CAST(body AS TEXT) AS other FROM requests)",
        "WITH hidden(a) AS (SELECT body FROM texts) SELECT upper(a) || '' FROM hidden",
        "SELECT json_group_array(text), group_concat(text), max(text) FROM responses",
        "SELECT hex(body), CAST(x'00' || body AS TEXT), substr(body, 2), json_extract(body, '$') FROM requests",
        "SELECT (SELECT text FROM main.responses WHERE id = response_id) FROM results",
        "SELECT code FROM v_results WHERE reply LIKE '%the hose%'",
        "SELECT max(text) OVER () FROM responses ORDER BY text",
        "SELECT body FROM texts UNION SELECT text FROM responses",
        "SELECT value FROM responses, json_each(json_array(text))",
    ],
)
def test_hidden_texts_stay_hidden(database: Path, capsys: pytest.CaptureFixture[str], sql: str) -> None:
    for form in ("--json", "--csv"):
        shown = _shown(capsys, database, sql, form)
        unhexed = "".join(re.findall("[0-9A-F]{40,}", shown))
        assert _REPLY not in (shown + bytes.fromhex(unhexed).decode()).lower()
        assert _PROMPT not in shown.lower()
    assert "P1-B1" not in shown, "a comparison with a hidden text must not tell what it is"


@pytest.mark.parametrize("join", ["FULL JOIN (SELECT 1 AS text) AS one using (text)", "NATURAL JOIN results"])
def test_joins_that_would_show_hidden_texts_are_refused(
    database: Path, capsys: pytest.CaptureFixture[str], join: str
) -> None:
    assert _refused(capsys, database, f"SELECT text FROM responses {join}") == (
        "helmbench: USING and NATURAL cannot be used while texts are hidden\n"
        "  hint: join with ON, or add --with-text=all\n"
    )


def test_a_view_of_the_users_own_cannot_show_hidden_texts(
    database: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(database.read_bytes())
    with closing(sqlite3.connect(copy)) as conn:
        conn.execute("CREATE VIEW mine AS SELECT text FROM responses")
        conn.execute("CREATE VIEW joined AS SELECT text FROM responses AS a JOIN responses AS b USING (text)")
    assert json.loads(_shown(capsys, copy, "SELECT DISTINCT text FROM mine", "--json")) == [{"text": None}]
    assert "query only reads" in _refused(capsys, copy, "SELECT text FROM joined")


def test_texts_are_shown_where_they_are_asked_for(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = _shown(
        capsys, database, "SELECT text FROM responses NATURAL JOIN calls", "--with-text=all", "--json"
    )
    assert json.loads(shown) == []
    assert _REPLY in _shown(capsys, database, "SELECT reply FROM v_results", "--with-text=all", "--json")


def test_each_column_of_the_schema_with_texts_is_hidden_or_one_that_exports_show() -> None:
    with closing(sqlite3.connect(":memory:")) as conn:
        create_tables(conn)
        tables = [name for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        texts = {
            (table, column)
            for table in tables
            for _, column, kind, *_ in conn.execute(f"PRAGMA table_info({table})")
            if kind in ("TEXT", "BLOB") and not column.endswith(("id", "_at", "hash", "code", "name"))
        }
    known = [(table, column) for part in (TEXTS, _SHOWN) for table in part for column in part[table]]
    assert sorted(known) == sorted(texts)


@pytest.mark.parametrize(
    "sql", re.findall(r"```sql\n(.*?)\n```", (ROOT / "docs" / "options.md").read_text(), re.DOTALL)
)
def test_the_queries_of_the_page_find_something(
    database: Path, capsys: pytest.CaptureFixture[str], sql: str
) -> None:
    assert json.loads(_shown(capsys, database, sql, "--json"))

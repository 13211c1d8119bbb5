"""`helmbench datasette`: a real Datasette that lets nobody else in, writes nothing, and shows texts only when asked."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from commands import captured
from viewers import Viewer, code_of, open_run, record

from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.store.writer import Store
from pytest_helmbench.view import datasette_server
from pytest_helmbench.view.datasette_words import QUERIES

_ARRAY = "_shape=array"


def _rows(viewer: Viewer, path: str) -> Any:
    return viewer.ask(f"/helmbench{path}{'&' if '?' in path else '?'}{_ARRAY}").json


def _asked(viewer: Viewer, sql: str) -> Any:
    found = viewer.ask(f"/helmbench.json?sql={quote(sql)}&{_ARRAY}")
    return (viewer.ask(found.headers["Location"]) if found.status == 302 else found).json  # since 1.0


def test_datasette_shows_the_results_to_who_has_the_address_and_writes_nothing(tmp_path: Path) -> None:
    pytest.importorskip("datasette")
    store = Store.open(tmp_path / "helmbench.db")
    run, second = open_run(store), open_run(store, "test/b")
    record(store, run, 1, 2)
    record(store, second, 1, verdict=Verdict.FAILED)
    with Viewer(tmp_path, run, command="datasette") as viewer:
        assert viewer.path == "/helmbench/v_results"
        assert viewer.ask("/helmbench", cookie=False).status == 403
        assert viewer.ask("/helmbench", headers={"Host": f"evil.example:{viewer.port}"}).status == 403
        assert viewer.ask("/helmbench/results/-/insert", "POST").status == 405
        facets = viewer.ask("/helmbench/v_results.json?_extra=facet_results").json["facet_results"]
        assert {"run_id", "model", "outcome"} <= facets.get(
            "results", facets
        ).keys()  # below `results` since 1.0
        labelled = _rows(viewer, f"/evaluation_runs.json?id={run}&_labels=on")
        assert labelled[0]["llm_id"] == {"value": 1, "label": "test/good"}

        values = f"run={run}&code=P1&before={run}&after={second}"
        found = {name: _rows(viewer, f"/{name}.json?{values}") for name in QUERIES}
        assert {name: rows for name, rows in found.items() if not isinstance(rows, list)} == {}
        assert (
            found["flips"][0] | {"code": code_of(1), "before": "passed", "after": "failed"}
            == found["flips"][0]
        )
        assert len(found["prompts"]) == 2

        # No text, whatever is asked; the record itself is as it was.
        everything = [
            *_rows(viewer, "/v_prompts.json"),
            *_rows(viewer, "/v_results.json?_col=reply"),
            *_asked(viewer, "SELECT CAST(body AS TEXT) FROM requests"),
            *_asked(viewer, "SELECT hex(body), upper(text) FROM responses"),
            *_asked(viewer, "WITH a AS (SELECT text AS t FROM main.responses) SELECT t || 1 FROM a"),
            *found["prompts"],
        ]
        assert "SECRET" not in str(everything).upper()
        for statement in ("DELETE FROM results", "ATTACH 'x.db' AS x", "PRAGMA journal_mode = DELETE"):
            assert not _asked(viewer, statement)["ok"]
        assert not (tmp_path / "x.db").exists()

        record(store, run, 3)  # the file is not taken for one that never changes
        assert _asked(viewer, f"SELECT count(*) AS n FROM results WHERE run_id = {run}") == [{"n": 3}]
        assert viewer.interrupt() == 0
    with Viewer(tmp_path, "helmbench.db", "--text", command="datasette") as viewer:
        assert viewer.path == "/helmbench"
        first = _rows(viewer, "/v_prompts.json")[0]
        assert (first["prompt"], first["reply"]) == ("user: SECRET-PROMPT SECRET-REPLY", "SECRET-REPLY")
        assert viewer.interrupt() == 0
    store.close()


def test_without_datasette_one_sentence_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(datasette_server, "version", absent)
    code, out, err = captured(capsys, "datasette")
    assert (code, out) == (2, "")
    assert err == (
        "helmbench: Datasette is not installed\n  hint: pip install 'pytest-helmbench[datasette]'\n"
    )

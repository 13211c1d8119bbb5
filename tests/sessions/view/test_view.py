"""`helmbench view` beside a writer: who is let in, what is sent, and how it ends."""

from __future__ import annotations

import signal
import socket
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from commands import captured
from pages import blocks_of
from viewers import Viewer, open_run, record

from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.store.schema import VERSION
from pytest_helmbench.store.write.writer import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A results file with a writer that a test is done with when it ends."""
    return Store.open(tmp_path / "helmbench.db")


def test_only_this_machines_browser_with_the_token_gets_in(tmp_path: Path, store: Store) -> None:
    run = open_run(store)
    record(store, run, 1)
    with Viewer(tmp_path, run) as viewer:
        ask, own = viewer.ask, f"127.0.0.1:{viewer.port}"
        pages = ("/", f"/r/{run}", f"/state?runs={run}")
        assert [ask(page).status for page in pages] == [200] * 3
        assert [ask(page, cookie=False).status for page in pages] == [403] * 3
        assert ask("/?token=guessed", cookie=False).status == 403
        assert ask(f"/?token={viewer.token}&token=x", cookie=False).status == 403
        assert ask("/", headers={"Cookie": f"helmbench-{viewer.port}=guessed"}, cookie=False).status == 403

        assert ask(f"/r/{run}", headers={"Host": f"localhost:{viewer.port}"}).status == 200
        for host in (f"evil.example:{viewer.port}", "127.0.0.1", "127.0.0.1:1", "", f"[::1]:{viewer.port}"):
            assert ask(f"/r/{run}", headers={"Host": host}).status == 403, host
        twice = f"GET / HTTP/1.1\r\nHost: {own}\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
        assert viewer.send(twice.encode()).split()[1] in (b"400", b"403")

        assert ask("/", headers={"Origin": f"http://{own}"}).status == 200
        assert [ask("/", headers={"Origin": one}).status for one in ("http://evil.example", "null")] == [
            403,
            403,
        ]
        fetched = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}
        assert ask("/", headers=fetched).status == 403
        assert ask("/", headers=fetched | {"Sec-Fetch-Site": "same-site"}).status == 403
        assert (
            ask("/", headers=fetched | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}).status
            == 403
        )
        assert (
            ask("/", headers=fetched | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}).status
            == 200
        )
        assert {ask("/", method).status for method in ("HEAD", "POST", "PUT", "DELETE", "OPTIONS")} == {405}

        # The token goes into the cookie, and no redirect leads away.
        led = {
            f"/r/{run}?x=1": f"/r/{run}?x=1",
            "//evil.example/": "/evil.example/",
            "/\\evil.example": "/evil.example",
        }
        for path, place in led.items():
            reply = ask(f"{path}{'&' if '?' in path else '?'}token={viewer.token}", cookie=False)
            assert (reply.status, reply.headers["Location"]) == (303, place)
        cookie = reply.headers["Set-Cookie"]
        assert ("HttpOnly" in cookie, "SameSite=Lax" in cookie) == (True, True)
        headers = ask(f"/r/{run}").headers
        assert headers["Content-Security-Policy"] == "frame-ancestors 'none'; base-uri 'none'"
        assert (headers["Cache-Control"], headers["X-Content-Type-Options"]) == ("no-store", "nosniff")
        assert "aiohttp" not in headers["Server"]

        assert viewer.interrupt() == 0
        assert viewer.said.count("\n") == 2, viewer.said
    store.close()


def test_hostile_requests_get_a_sentence_and_block_no_other(tmp_path: Path, store: Store) -> None:
    run, other = open_run(store), open_run(store, benchmark="other")
    record(store, run, 1)
    with Viewer(tmp_path) as viewer, ExitStack() as open_ones:
        for _ in range(50):  # connections that say nothing, or half of a request
            slow = open_ones.enter_context(socket.create_connection(("127.0.0.1", viewer.port)))
            slow.sendall(b"GET / HT")
        for path in (
            "/../../etc/passwd",
            "/%2e%2e/%2e%2e/etc/passwd",
            "/r/../../x",
            "/assets/page.js",
            "/r/-1",
        ):
            assert viewer.ask(path).status == 404, path
        wrong = {
            "/state?runs=x": "runs are numbers",
            f"/state?runs={'9' * 30}": "runs are numbers",
            f"/r/{','.join(map(str, range(1, 30)))}": "no more than 20 runs stand on one page",
            f"/c/{run}..{run}": "a run is not compared with itself",
        }
        assert {path: viewer.ask(path).text.strip() for path in wrong} == wrong
        assert {viewer.ask(path).status for path in wrong} == {400}
        missing = {
            "/r/77": "helmbench.db has no run 77",
            f"/c/{run}..{other}": f"run {other} is of other, run {run} of demo: only runs of the same benchmark"
            " are compared",
        }
        assert {path: viewer.ask(path).text.strip() for path in missing} == missing
        reply = viewer.ask(f"/c/{run}..{other}")
        assert (reply.status, reply.headers["Content-Type"]) == (404, "text/plain; charset=utf-8")

        host = f"Host: 127.0.0.1:{viewer.port}\r\n".encode()
        for data in (
            b"\x00\xff" * 100,
            b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n" + host,
            b"GET / HTTP/1.1\r\n",
        ):
            viewer.send(data + b"X: " + b"y" * 1_000_000 + b"\r\n\r\n")
        viewer.send(b"GET / HTTP/1.1\r\n" + host + b"Content-Length: 999999999\r\nConnection: close\r\n\r\n")
        assert viewer.ask("/").status == 200
        assert viewer.interrupt() == 0
        assert viewer.said.count("\n") == 2, viewer.said
    store.close()


def test_it_listens_at_this_machines_own_address_alone(tmp_path: Path, store: Store) -> None:
    open_run(store)
    with Viewer(tmp_path) as viewer:
        listening = [
            line.split()[1]
            for file in ("/proc/net/tcp", "/proc/net/tcp6")
            for line in Path(file).read_text().splitlines()[1:]
            if line.split()[3] == "0A"  # LISTEN
        ]
        assert [one for one in listening if one.endswith(f":{viewer.port:04X}")] == [
            f"0100007F:{viewer.port:04X}"
        ]
    store.close()


def test_a_viewer_is_told_what_is_new_and_the_writer_never_waits(tmp_path: Path, store: Store) -> None:
    run = open_run(store, planned=2_000)
    record(store, run, *range(1, 601))
    with Viewer(tmp_path, run, "--refresh=0.2") as viewer:
        assert viewer.path == f"/r/{run}"
        first = viewer.until(run, done=600)
        assert first["status"] == "running"
        record(store, run, 601, verdict=Verdict.ERROR)
        assert viewer.until(run, done=601)["error"] == 1

        # An error that is replaced changes the stamp, and the page is another one.
        before = viewer.until(run, error=1)["stamp"]
        record(store, run, 601, verdict=Verdict.FAILED)
        assert viewer.until(run, failed=1)["stamp"] not in (before, first["stamp"])
        second = open_run(store, "test/other")
        assert "Each run" in viewer.ask(f"/r/{run},{second}").text
        assert f'id="run-{second}"' in viewer.ask("/").text

        viewer.signal(signal.SIGSTOP)
        record(store, run, 602)
        viewer.signal(signal.SIGCONT)
        assert viewer.until(run, done=602)
        viewer.signal(signal.SIGKILL)
        record(store, run, 603)
    assert store.fault is None
    store.close()
    with closing(sqlite3.connect(tmp_path / "helmbench.db")) as conn:
        assert conn.execute("SELECT count(*) FROM results").fetchone() == (603,)
        assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no list of open files")
def test_many_viewers_cost_one_connection(tmp_path: Path, store: Store) -> None:
    run = open_run(store)
    record(store, run, 1)
    with Viewer(tmp_path, "--refresh=0.2") as viewer:
        with ThreadPoolExecutor(20) as viewers:
            found = list(viewers.map(lambda _: viewer.until(run, done=1), range(20)))
        files = [file.readlink().name for file in Path(f"/proc/{viewer.pid}/fd").iterdir()]
    assert [one["passed"] for one in found] == [1] * 20
    assert files.count("helmbench.db") == 1
    store.close()


def test_texts_are_in_the_page_only_when_asked_and_only_where(tmp_path: Path, store: Store) -> None:
    run = open_run(store)
    record(store, run, 1)
    record(store, run, 2, verdict=Verdict.FAILED, text="OTHER-REPLY")
    store.close()
    shown = {}
    for texts in ("none", "failures", "all"):
        with Viewer(tmp_path, run, f"--with-text={texts}") as viewer:
            page = viewer.ask(f"/r/{run}").text
        blocks = blocks_of(page)
        told = sum("SECRET-PROMPT" in str(case) for case in blocks.get("t0-0", {}).values())
        shown[texts] = told, "SECRET-PROMPT" in f"{page}{blocks}"
    assert shown == {"none": (0, False), "failures": (1, True), "all": (2, True)}


def test_another_file_at_the_path_and_a_file_that_is_gone_are_said(tmp_path: Path, store: Store) -> None:
    run = open_run(store)
    record(store, run, 1)
    store.close()
    with Viewer(tmp_path, "--refresh=0.2") as viewer:
        viewer.until(run, done=1)
        (tmp_path / "helmbench.db").unlink()
        for path in (f"/r/{run}", "/"):
            reply = viewer.ask(path)
            assert (reply.status, reply.text) == (503, "helmbench.db: there is no such database\n")
        other = Store.open(tmp_path / "helmbench.db")
        open_run(other, "test/new")
        assert "test/new" in viewer.ask("/").text
        assert viewer.ask("/state").json["file"] == 2
        other.close()
        assert viewer.interrupt() == 0


def test_what_cannot_be_viewed_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], store: Store
) -> None:
    monkeypatch.chdir(tmp_path)
    open_run(store)
    store.close()

    def said(*words: object) -> str:
        code, out, err = captured(capsys, "view", *words)
        assert (code, out, err.count("\n")) == (2, "", 2), err
        return err

    assert "nothing.db: there is no such database" in said("--db=nothing.db")
    assert not Path("nothing.db").exists()
    Path("text.db").write_text("no database, but long enough to be looked at " * 20)
    assert "text.db: not a SQLite database" in said("--db=text.db")
    with closing(sqlite3.connect("other.db")) as conn:
        conn.execute("CREATE TABLE mine (id)")
    assert "other.db: its tables are not those of pytest-helmbench" in said("--db=other.db")
    Path("empty.db").touch()
    assert "empty.db: holds no run yet" in said("--db=empty.db")
    assert Path("empty.db").stat().st_size == 0
    with closing(sqlite3.connect("helmbench.db")) as conn, conn:
        conn.execute("PRAGMA user_version = 777")
    before = Path("helmbench.db").read_bytes()
    assert (
        f"written by another version of pytest-helmbench (form 777; this one knows form {VERSION})" in said()
    )
    assert Path("helmbench.db").read_bytes() == before


def test_a_run_that_is_not_there_and_a_port_that_is_taken_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], store: Store
) -> None:
    monkeypatch.chdir(tmp_path)
    open_run(store)
    store.close()
    assert "has no run 7" in captured(capsys, "view", 7)[2]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = captured(capsys, "view", f"--port={port}")
    assert (code, out) == (2, "")
    assert f"nothing can listen at 127.0.0.1:{port}" in err

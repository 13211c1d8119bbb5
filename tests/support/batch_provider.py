"""A provider with batches, in a process of its own: its state is a SQLite file, so that it outlives every kill.

`python batch_provider.py STATE PORT_FILE` serves; `BatchProvider` starts it, sets switches and reads its ledger.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import re
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from provider import build_reply

__all__ = ["BatchProvider"]

_PRICE = (1.0, 4.0)
"""USD per million tokens of prompt and completion, sent singly; a batch costs half."""
_ORDER = re.compile(r"ANSWER:[ \t]*([^\n<]*)")
_VERDICTS = ("GOOD", "MIDDLING", "BAD")
_HTML = b"<html>busy</html>"
_TABLES = """
CREATE TABLE IF NOT EXISTS files (id TEXT PRIMARY KEY, body BLOB);
CREATE TABLE IF NOT EXISTS batches (number INTEGER PRIMARY KEY, id TEXT, at REAL, row TEXT, looks INTEGER DEFAULT 0,
    lists INTEGER DEFAULT 0);
CREATE TABLE IF NOT EXISTS ledger (body TEXT, usd REAL, batch TEXT);
CREATE TABLE IF NOT EXISTS switches (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS headers (value TEXT);
"""


def answer_to(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chat completion that a body gets, always the same."""
    prompt = "\n".join(str(message.get("content")) for message in body["messages"])
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    orders = _ORDER.findall(prompt)
    ordered = orders[-1].strip() if orders else None
    if "justification" in (schema or {}).get("properties", {}):
        number = int(hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:8], 16)
        ordered = _VERDICTS[number % len(_VERDICTS)]
    text = (ordered or "ok") if schema is None else json.dumps(build_reply(schema, ordered))
    used = {"prompt_tokens": max(1, len(prompt) // 4), "completion_tokens": max(1, len(text) // 4)}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": body["model"],
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {**used, "total_tokens": sum(used.values())},
    }


def _usd(answer: Mapping[str, Any]) -> float:
    used = answer["usage"]
    return float(_PRICE[0] * used["prompt_tokens"] + _PRICE[1] * used["completion_tokens"]) / 1e6


class _State:
    """The provider's files, batches and ledger, committed before every answer."""

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._creating = threading.RLock()
        self._conn = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._conn.executescript(f"PRAGMA journal_mode = WAL; {_TABLES}")

    def do(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._conn.execute(statement, values).fetchall()

    def switch(self, name: str, default: Any = None) -> Any:
        found = self.do("SELECT value FROM switches WHERE name = ?", name)
        return json.loads(found[0][0]) if found else default

    def used_up(self, name: str) -> bool:
        """Return whether a switch is on, and count one use of it down."""
        left = self.switch(name, 0)
        if left:
            self.do("INSERT OR REPLACE INTO switches VALUES (?, ?)", name, json.dumps(left - 1))
        return bool(left)

    @property
    def now(self) -> float:
        return time.time() + float(self.switch("advanced_s", 0.0))

    def create(self, asked: Mapping[str, Any], *, strange: bool = False) -> dict[str, Any]:
        """Store a batch and bill what it answers."""
        with self._creating:
            return self._create(asked, strange=strange)

    def _create(self, asked: Mapping[str, Any], *, strange: bool) -> dict[str, Any]:
        (number,) = self.do("SELECT coalesce(max(number), 0) + 1 FROM batches")[0]
        name = f"batch_{number}"
        lines = [json.loads(line) for line in self.file(asked["input_file_id"]).splitlines()]
        answers: list[str] = []
        errors: list[str] = []
        echo = asked.get("echo", "")
        states = {"completed": len(lines)}
        for kind in ("expired", "cancelled", "failed"):
            if not strange and (
                self.used_up(f"{kind}_batches") or (kind == "failed" and self._is_full(lines))
            ):
                states = {kind: int(self.switch("answered_first", 0)) if kind != "failed" else 0}
        state, answered = next(iter(states.items()))
        for place, line in enumerate(lines[:answered]):
            status = int(self.switch("line_status", {}).get(str(place), self.status_of(line["body"])))
            if status == 0:
                continue  # the line is missing
            body: dict[str, Any] = {"error": {"message": f"line {status}{echo}"}}
            if status == 200:
                body = answer_to(line["body"])
                body["choices"][0]["message"]["content"] += echo
            row = {"custom_id": line["custom_id"], "response": {"status_code": status, "body": body}}
            (answers if status == 200 else errors).append(
                json.dumps({"id": f"r{place}", **row, "error": None})
            )
            if status == 200 and not strange:
                digest = hashlib.sha256(json.dumps(line["body"], sort_keys=True).encode()).hexdigest()
                self.do("INSERT INTO ledger VALUES (?, ?, ?)", digest, _usd(body) / 2, name)
        if self.switch("messy"):
            random.Random(number).shuffle(answers)
            answers += [
                *answers[:1],
                '{"custom_id": "strange", "response": {"status_code": 200, "body": {}}}',
                '{"torn',
            ]
        row = {
            "id": name,
            "object": "batch",
            "endpoint": asked["endpoint"],
            "input_file_id": asked["input_file_id"],
            "completion_window": "24h",
            "created_at": int(self.now),
            "metadata": asked.get("metadata"),
            "end": state,
            "output_file_id": self.keep("\n".join(answers).encode()) if answers else None,
            "error_file_id": self.keep("\n".join(errors).encode()) if errors else None,
            "request_counts": {"total": len(lines), "completed": len(answers), "failed": len(errors)},
            "errors": {
                "data": [
                    {"code": self.switch("failed_code", "invalid"), "message": f"refused{echo}", "line": line}
                    for line in self.switch("failed_lines", [None])
                ]
            },
        }
        self.do(
            "INSERT INTO batches (number, id, at, row) VALUES (?, ?, ?, ?)",
            number,
            name,
            self.now,
            json.dumps(row),
        )
        return row

    def _is_full(self, lines: Sequence[object]) -> bool:
        """Return whether more lines would be in batches at once than is allowed."""
        most = self.switch("most_queued")
        rows = self.do(
            "SELECT row FROM batches WHERE at + ? > ?", float(self.switch("takes_s", 0.2)), self.now
        )
        running = [row for (text,) in rows if (row := json.loads(text))["end"] != "failed"]
        queued = sum(row["request_counts"]["total"] for row in running)
        return most is not None and queued + len(lines) > most

    def status_of(self, body: Mapping[str, Any]) -> int:
        """Return how a body is answered, singly and in a batch."""
        texts = self.switch("status_by_text", {})
        return next((status for text, status in texts.items() if text in json.dumps(body)), 200)

    def keep(self, body: bytes) -> str:
        """Store a file and return its id."""
        with self._creating:
            (count,) = self.do("SELECT count(*) + 1 FROM files")[0]
            self.do("INSERT INTO files VALUES (?, ?)", f"file-{count}", body)
        return f"file-{count}"

    def file(self, name: str) -> bytes:
        return bytes(self.do("SELECT body FROM files WHERE id = ?", name)[0][0])

    def shown(self, row: str, at: float, looks: int) -> dict[str, Any]:
        """Return a batch as it stands now."""
        batch: dict[str, Any] = json.loads(row)
        end = batch.pop("end")
        is_over = self.now >= at + float(self.switch("takes_s", 0.2))
        batch["status"] = end if is_over else "in_progress"
        if self.switch("query"):
            batch["status"] = batch["status"].capitalize()
        if end != "failed" or not is_over:
            batch["errors"] = None
        if not is_over or looks <= int(self.switch("null_output", 0)):
            batch["output_file_id"] = None
        if not is_over:
            batch["error_file_id"] = None
        return batch


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: _State

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        state, path = self.state, self._path
        if path == "/switch":
            for name, value in json.loads(body).items():
                state.do("INSERT OR REPLACE INTO switches VALUES (?, ?)", name, json.dumps(value))
            self._send(200, {})
        elif path == "/v1/chat/completions" and (status := state.status_of(json.loads(body))) != 200:
            self._send(status, {"error": {"message": f"line {status}"}})
        elif path == "/v1/chat/completions":
            asked = json.loads(body)
            answer = answer_to(asked)
            digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
            state.do("INSERT INTO ledger VALUES (?, ?, NULL)", digest, _usd(answer))
            self._send(200, answer)
        elif path == "/v1/files" and state.switch("upload_status"):
            self._send(state.switch("upload_status"), {"error": {"message": "busy"}})
        elif path == "/v1/files":
            boundary = self.headers["Content-Type"].partition("boundary=")[2].strip('"').encode()
            parts = [part for part in body.split(b"--" + boundary) if b"filename=" in part]
            name = state.keep(parts[0].partition(b"\r\n\r\n")[2].removesuffix(b"\r\n"))
            self._send(
                200,
                {
                    "id": name,
                    "object": "file",
                    "bytes": 1,
                    "created_at": 0,
                    "filename": "b",
                    "purpose": "batch",
                },
            )
        elif path == "/v1/batches":
            if state.used_up("refused_creates"):
                status = int(state.switch("refused_status", 500))
                self._send(status, {"error": {"message": "not stored", "code": state.switch("failed_code")}})
                return
            echo = f" {self.headers['Authorization']}" if state.switch("echo") else ""
            row = state.create({**json.loads(body), "echo": echo})
            if state.switch("strangers"):
                state.create(
                    {
                        **json.loads(body),
                        "metadata": None,
                        "input_file_id": state.keep(state.file(row["input_file_id"])),
                    },
                    strange=True,
                )
            if state.used_up("unanswered_creates"):
                time.sleep(float(state.switch("silence_s", 30)))
                self.close_connection = True
            elif state.used_up("lost_creates"):
                self._send(500, {"error": {"message": "stored all the same"}})
            else:
                self._send(
                    200,
                    {
                        **row,
                        "status": "validating",
                        "errors": None,
                        "output_file_id": None,
                        "error_file_id": None,
                    },
                )
        else:
            self._send(404, {"error": {"message": "no such path"}})

    def do_GET(self) -> None:
        state, path = self.state, self._path
        if path.startswith("/v1/batches/"):
            self._send_batch(path.rpartition("/")[2])
        elif path == "/v1/batches":
            late = int(state.switch("late_lists", 0))
            state.do("UPDATE batches SET lists = lists + 1")
            rows = state.do("SELECT row, at, looks FROM batches WHERE lists > ? ORDER BY number DESC", late)
            shown = [state.shown(*row) for row in rows]
            after = re.search(r"after=([\w-]+)", self.path)
            if after is not None:
                names = [batch["id"] for batch in shown]
                shown = shown[names.index(after[1]) + 1 :]
            page = shown[: int(state.switch("page", 20))]
            self._send(
                200,
                {
                    "object": "list",
                    "data": page,
                    **({} if state.switch("quiet_lists") else {"has_more": len(page) < len(shown)}),
                    "last_id": page[-1]["id"] if page else None,
                },
            )
        elif path.startswith("/v1/files/"):
            self._send(200, _HTML if state.used_up("html_files") else state.file(path.split("/")[3]))
        else:
            self._send(404, {"error": {"message": "no such path"}})

    @property
    def _path(self) -> str:
        """The path; empty for one of `/v1` without the query, or with the key's header, where that is not wanted."""
        path, _, query = self.path.partition("?")
        wanted = self.state.switch("query", "")
        known = wanted in query and not (wanted and "Authorization" in self.headers)
        return path if known or not path.startswith("/v1/") else ""

    def _send_batch(self, name: str) -> None:
        state = self.state
        status = 404 if state.used_up("missing_polls") else state.switch("poll_status")
        if state.used_up("html_polls"):
            self._send(200, _HTML)
            return
        if status is not None:
            self._send(status, {"error": {"message": f"no batch: {status}"}})
            return
        state.do("UPDATE batches SET looks = looks + 1 WHERE id = ?", name)
        found = state.do("SELECT row, at, looks FROM batches WHERE id = ?", name)
        self._send(
            *((200, state.shown(*found[0])) if found else (404, {"error": {"message": "no such batch"}}))
        )

    def _send(self, status: int, body: Mapping[str, Any] | bytes) -> None:
        if status >= 400 and self.state.switch("echo"):
            body = {"error": {"message": f"no use of {self.headers['Authorization']}"}}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        with contextlib.suppress(OSError):  # its client may have been killed
            self.send_response(status)
            self.send_header("Content-Type", "text/html" if data == _HTML else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)


class BatchProvider:
    """The process, from a test's side; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._state, self._port = folder / "provider.db", folder / "port"

    def __enter__(self) -> Self:
        self._process = subprocess.Popen([sys.executable, __file__, str(self._state), str(self._port)])
        while not self._port.exists() or not self._port.read_text():
            time.sleep(0.02)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def url(self) -> str:
        """Base URL with `/v1`."""
        return f"http://127.0.0.1:{self._port.read_text()}/v1"

    def set(self, **switches: Any) -> None:
        """Set switches."""
        request = urllib.request.Request(
            f"{self.url[:-3]}/switch", json.dumps(switches).encode(), method="POST"
        )
        with urllib.request.urlopen(request):
            pass

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(self._state)) as conn:
            return conn.execute(statement).fetchall()

    @property
    def billed_usd(self) -> float:
        """The sum of the ledger."""
        return float(self._rows("SELECT total(usd) FROM ledger")[0][0])

    @property
    def billed(self) -> dict[str, int]:
        """How often each body was billed, by its hash."""
        return dict(self._rows("SELECT body, count(*) FROM ledger GROUP BY body"))

    @property
    def batches(self) -> int:
        """How many batches there are."""
        return int(self._rows("SELECT count(*) FROM batches")[0][0])

    @property
    def single_calls(self) -> int:
        """How many calls came singly."""
        return int(self._rows("SELECT count(*) FROM ledger WHERE batch IS NULL")[0][0])


def _serve(state: str, port_file: str) -> Iterator[None]:
    _Handler.state = _State(state)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    Path(port_file).write_text(str(server.server_address[1]), encoding="utf-8")
    yield
    server.serve_forever()


if __name__ == "__main__":
    list(_serve(*sys.argv[1:3]))

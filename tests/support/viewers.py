"""`helmbench view` in a process of its own, asked by raw requests; and runs that a test writes meanwhile."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from commands import environment
from waiting import PATIENCE_S

from pytest_helmbench.benchmarks.scenario_trees.tree import ScenarioTree
from pytest_helmbench.core.outcome import (
    AttemptRecord,
    Evaluation,
    Outcome,
    ResultRecord,
    Usage,
    Verdict,
)
from pytest_helmbench.store.leases import iso_time
from pytest_helmbench.store.write.run_rows import RunRecord
from pytest_helmbench.store.write.writer import Store

__all__ = ["Reply", "Viewer", "code_of", "open_run", "record"]

_AT = "2026-07-04T12:00:00+00:00"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of the server."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.text)


class Viewer:
    """A running `helmbench view`.

    Args:
        folder: Where it runs.
        words: More of the command line.
    """

    def __init__(self, folder: Path, *words: object) -> None:
        self._output = folder / "view.txt"
        arguments = ("-m", "pytest_helmbench", "view", *map(str, words))
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, *arguments], cwd=folder, env=environment(), stdout=output, stderr=output
            )
        found = self._until_it_says(r"helmbench view: (\S+)\n")
        self.url = found
        parts = urlsplit(found)
        self.port, self.token = int(parts.port or 0), parts.query.rpartition("token=")[2]
        self.origin, self.path = f"http://127.0.0.1:{self.port}", parts.path
        self._cookie = (
            self.ask(f"{parts.path}?{parts.query}", cookie=False).headers["Set-Cookie"].split(";")[0]
        )

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._process.pid

    @property
    def said(self) -> str:
        """All that it has printed, errors too."""
        return self._output.read_text(encoding="utf-8")

    def _until_it_says(self, pattern: str) -> str:
        end = time.monotonic() + PATIENCE_S
        while (found := re.search(pattern, self.said)) is None:
            assert time.monotonic() < end, self.said
            assert self._process.poll() is None, self.said
            time.sleep(0.01)
        return found[1]

    def ask(
        self,
        path: str,
        method: str = "GET",
        headers: Mapping[str, str] = MappingProxyType({}),
        *,
        cookie: bool = True,
    ) -> Reply:
        """Send a request as a browser that has the cookie would."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        given = {"Cookie": self._cookie} if cookie else {}
        try:
            connection.request(method, path, headers=given | dict(headers))
            reply = connection.getresponse()
            return Reply(reply.status, dict(reply.headers), reply.read().decode("utf-8"))
        finally:
            connection.close()

    def send(self, data: bytes) -> bytes:
        """Send bytes and return what comes until the connection ends."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as connection:
            connection.sendall(data)
            found = b""
            with suppress(ConnectionError):
                while piece := connection.recv(65536):
                    found += piece
            return found

    def until(self, run: int, **wanted: object) -> dict[str, Any]:
        """Return the state of a run as soon as it has these values."""
        end = time.monotonic() + PATIENCE_S
        while True:
            found: dict[str, Any] = self.ask(f"/state?runs={run}").json["runs"][str(run)]
            if all(found[name] == value for name, value in wanted.items()):
                return found
            assert time.monotonic() < end, found
            time.sleep(0.05)

    def interrupt(self) -> int:
        """Send Ctrl-C and return the exit code."""
        self.signal(signal.SIGINT)
        try:
            return self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            raise

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it."""
        os.kill(self._process.pid, number)

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.signal(signal.SIGKILL)
            self._process.wait(PATIENCE_S)


def open_run(store: Store, model: str = "test/good", planned: int = 100, benchmark: str = "demo") -> int:
    """Open a run and return its id."""
    tree = ScenarioTree(Path(), benchmark, "1", "", "ab" * 32, (), (), {}, None, {}, {}, (), {})
    codes = tuple(code_of(number) for number in range(1, planned + 1))
    (run_id,) = store.open_runs(
        f"session-{model}-{time.time_ns()}",
        [RunRecord(tree, model, "test", None, "whole", planned, None, {}, "0.1.0", _AT, codes)],
    )
    return run_id


def code_of(number: int) -> str:
    """Return the code of a case."""
    return f"P1-B1-S1-C1-PT{number}"


def record(
    store: Store,
    run_id: int,
    *numbers: int,
    verdict: Verdict = Verdict.PASSED,
    text: str = "SECRET-REPLY",
    code: str = "",
    flush: bool = True,
) -> None:
    """Record answered calls and their verdicts.

    Args:
        store: Open.
        run_id: Of the run.
        numbers: Of the cases.
        verdict: Of all of them.
        text: Of the replies, and what was observed.
        code: Of the case in place of that of its number.
        flush: Return when all is on disk.
    """
    for number in numbers:
        name, key = code or code_of(number), f"{run_id}-{number}-{time.time_ns()}"
        at = iso_time(time.time())
        usage, judged = Usage(1, 1, cost_usd=0.1), verdict in (Verdict.PASSED, Verdict.FAILED)
        sent = json.dumps({"model": "m", "messages": [{"role": "user", "content": f"SECRET-PROMPT {text}"}]})
        store.record_attempt(
            AttemptRecord(
                *(run_id, name, 1, "", "case", 1, 1, 200, "stop", None, 1.0, usage, "good"),
                *(f"{key}-hash", sent.encode(), text.encode("utf-8", "replace"), text, key, False, at, at),
            )
        )
        passed = verdict is Verdict.PASSED
        found = Evaluation("", "category_match", "ab", passed, float(passed), None, None, "RISK", text, None)
        outcome = Outcome(
            verdict,
            None if judged else "timeout",
            evaluations=(found,) if judged else (),
            score=float(passed) if judged else None,
            reply_key=key if judged else None,
            completed_at=at,
        )
        store.record_result(ResultRecord(run_id, name, name, "category_match", 1, 5, 1, False, outcome))
    if flush:
        store.flush()

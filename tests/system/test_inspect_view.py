"""An exported log in the viewer of Inspect AI: its samples, verdicts and numbers show."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browsers import Opened
from commands import captured
from viewers import code_of, open_run, record

from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.results.stored_scores import run_totals, scored_run
from pytest_helmbench.store.write.writer import Store

_AT = "2026-11-23T08:00:00+00:00"


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the library
        pass


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Handler, directory=str(folder))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def test_inspect_view_shows_samples_and_scores(
    tmp_path: Path,
    opened: Callable[..., Opened],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = pytest.importorskip("inspect_ai.log", reason="the extra `inspect` is not installed")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "helmbench.db"
    store = Store.open(path)
    run = open_run(store, planned=4)
    record(store, run, 1, 2, 3)
    record(store, run, 4, verdict=Verdict.FAILED, text="<b>the reply</b>")
    store.close_run(run, run_totals("complete", _AT, scored_run(path, run)))
    store.close()
    (tmp_path / "logs").mkdir()
    assert (
        captured(capsys, "export", run, "--format", "inspect", "--with-text=all", "-o", "logs/run.eval")[0]
        == 0
    )
    log.bundle_log_dir(str(tmp_path / "logs"), str(tmp_path / "shown"))

    with _served(tmp_path / "shown") as address:
        page = opened().go(address, ready=False)
        page.get_by_text("demo", exact=True).first.click()
        page.wait_for_selector("text=4 samples")
        head = page.inner_text("body")
        page.get_by_text(code_of(4), exact=True).first.click()
        page.wait_for_selector("text=Epoch 1")
        sample = page.inner_text("body")

    assert [f"SCORE\n{0.75}" in head, "PASS_RATE\n0.75" in head, code_of(1) in head] == [True] * 3
    assert [text in sample for text in ("SCORE\nI", "RISK", "SECRET-PROMPT", "<b>the reply</b>")] == [
        True
    ] * 4

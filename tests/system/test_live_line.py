"""The progress of a session in a terminal emulator: the last line, whatever pytest prints above it."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import pytest
from provider import Provider
from terminal import Terminal
from trees import category, write_tree

_LIVE = re.compile(r"(\d+)/(\d+) done · ")


def _session(folder: Path, provider: Provider, cases: int, *options: str, **more: str) -> Terminal:
    write_tree(folder / "benchmark", {"P1-B1-S1": category(*["RISK"] * cases)})
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    given = [f"--helmbench-base-url={provider.url}", "--helmbench-model=test/good", *options]
    return Terminal(
        [sys.executable, "-m", "pytest", "benchmark", "-p", "no:cacheprovider", *given], folder, more
    )


@pytest.mark.parametrize(
    ("cases", "latency_s", "at_once", "more"),
    [(6, 0.33, 1, "-v"), (120, 0.2, 10, "-q"), (800, 0.1, 50, "-q"), (120, 0.1, 10, "-n2")],
    ids=["3-a-second", "50-a-second", "500-a-second", "workers"],
)
def test_the_line_is_the_last_one_at_any_pace(
    tmp_path: Path, provider: Provider, cases: int, latency_s: float, at_once: int, more: str
) -> None:
    provider.latency_s = latency_s
    terminal = _session(tmp_path, provider, cases, f"--helmbench-concurrency={at_once}", more)
    seen: list[str] = []

    def look() -> None:
        if b"\x1b[r" not in terminal.written:  # the line was not taken away yet
            seen.append(terminal.last_line)

    assert terminal.watch(look) == pytest.ExitCode.OK

    first = next(place for place, line in enumerate(seen) if _LIVE.match(line))
    shown = seen[first:]
    samples = [shown[place * len(shown) // 50] for place in range(50)]
    assert sum(_LIVE.match(line) is not None for line in samples) >= 45
    done = [int(found[1]) for line in shown if (found := _LIVE.match(line))]
    assert done == sorted(done)
    facts = r"\d+/\d+ done · score 100\.0 % ± \d+\.\d · .* USD · \d+ in flight · \d+ s left"
    assert any(re.fullmatch(facts, line) for line in shown), shown
    assert not any("waiting for limits" in line for line in shown)
    text = "\n".join(terminal.lines)
    assert f"{cases} passed" in text
    assert " done · " not in text  # nothing of the line stays
    assert re.search(r"\[100%\]$", text, re.MULTILINE)
    if cases == 120:
        assert len(re.findall(r"\[ ?\d+%\]$", text, re.MULTILINE)) == 2  # 93 letters in a row of 100 columns


def test_the_line_follows_a_window_that_changes_its_size(tmp_path: Path, provider: Provider) -> None:
    provider.latency_s = 0.1
    terminal = _session(tmp_path, provider, 60, "--helmbench-concurrency=2", "-v")
    sizes = [(60, 12), (120, 40), (44, 8)]
    seen: dict[tuple[int, int], list[str]] = {}

    def look() -> None:
        if _LIVE.match(terminal.last_line) and b"\x1b[r" not in terminal.written:
            seen.setdefault((terminal.screen.columns, terminal.screen.lines), []).append(terminal.last_line)
            if sizes:
                terminal.resize(*sizes.pop(0))

    assert terminal.watch(look) == pytest.ExitCode.OK
    assert list(seen) == [(100, 24), (60, 12), (120, 40), (44, 8)]
    room_for_less = r"\d+/60 done · score 100\.0 % ± \d+\.\d · \d+ s left"
    assert any(re.fullmatch(room_for_less, line) for line in seen[44, 8]), seen[44, 8]
    assert "60 passed" in "\n".join(terminal.lines)


@pytest.mark.parametrize("ends", ["ctrl-c", "crash"])
def test_the_terminal_scrolls_as_before_however_a_session_ends(
    tmp_path: Path, provider: Provider, ends: str
) -> None:
    if ends == "crash":
        (tmp_path / "conftest.py").write_text(
            "import pathlib\n\n"
            "def pytest_runtest_logfinish():\n"
            "    if pathlib.Path('seen').exists():\n"
            "        raise RuntimeError('a plugin is broken')\n"
        )
    provider.latency_s = 0.1
    terminal = _session(tmp_path, provider, 200, "--helmbench-concurrency=2")
    was_seen = False

    def look() -> None:
        nonlocal was_seen
        if not was_seen and _LIVE.match(terminal.last_line):
            was_seen = True
            (tmp_path / "seen").touch()
            if ends == "ctrl-c":
                os.kill(terminal.process.pid, signal.SIGINT)

    status = terminal.watch(look)
    assert was_seen
    assert status == (pytest.ExitCode.INTERRUPTED if ends == "ctrl-c" else pytest.ExitCode.INTERNAL_ERROR)
    assert terminal.screen.margins in (None, (0, terminal.screen.lines - 1))
    assert " done · " not in "\n".join(terminal.lines)


def test_a_limit_is_named_while_it_is_waited_for_and_nothing_is_drawn_in_ci(
    tmp_path: Path, provider: Provider
) -> None:
    terminal = _session(tmp_path, provider, 4, "--helmbench-requests-per-minute=60")
    seen: list[str] = []
    assert terminal.watch(lambda: seen.append(terminal.last_line)) == pytest.ExitCode.OK
    assert any(re.search(r"0 in flight, waiting for limits", line) for line in seen), seen

    terminal = _session(tmp_path / "ci", provider, 4, "--helmbench-requests-per-minute=60", CI="true")
    assert terminal.watch() == pytest.ExitCode.OK
    assert b"\x1b[1;23r" not in terminal.written

"""The summary of a session in a terminal emulator: no row wraps at any width, and colours stand where they should."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import pytest
from batch_provider import BatchProvider
from provider import Provider, Request
from terminal import Terminal
from trees import category, write_tree

from pytest_helmbench.reports.tables import display_width

_LONG = "northwind/atlas-large-2026-10-preview-with-a-very-long-name-for-a-model-v"
_MANY = (f"{_LONG}1", f"{_LONG}2", "openhost/meridian-70b-instruct", "東京大学/日本語大規模言語モデル七十億")
_STYLES = re.compile(r"\x1b\[[\d;]*m")
_MODEL = ("northwind/atlas-large-2026-10",)
_widths = pytest.mark.parametrize("columns", [80, 100, 140])


def _fails(request: Request) -> bool:
    return "Message 3." in request.prompt or request.model.startswith("openhost")


def _terminal(
    folder: Path, url: str, columns: int, models: tuple[str, ...], *options: str, **more: str
) -> Terminal:
    pillars = {f"P{pillar}-B{part}-S1": category(*["RISK"] * 4) for pillar in (1, 2, 3) for part in (1, 2)}
    write_tree(folder / "benchmark", pillars)
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    given = [f"--helmbench-base-url={url}", *(f"--helmbench-model={model}" for model in models), *options]
    command = [sys.executable, "-m", "pytest", "benchmark", "-p", "no:cacheprovider", *given]
    return Terminal(command, folder, more, (columns, 50))


def _summary(terminal: Terminal, columns: int) -> list[str]:
    """Return the lines from the title of the summary on; each fits the terminal."""
    lines = _STYLES.sub("", terminal.written.decode()).replace("\r", "").splitlines()
    shown = lines[next(place for place, line in enumerate(lines) if re.search(r"=.* cases × .*=", line)) :]
    assert [line for line in shown if display_width(line) > columns] == []
    return shown


def _styles(terminal: Terminal, text: str) -> set[tuple[str, bool]]:
    """Return colour and boldness of the first letter of each line of the screen that begins with a text."""
    rows = [terminal.screen.buffer[row] for row in range(terminal.screen.lines)]
    found = zip(terminal.screen.display, rows, strict=True)
    return {(row[0].fg, row[0].bold) for line, row in found if line.startswith(text)}


@_widths
@pytest.mark.parametrize("verbose", [(), ("-v",)], ids=["", "v"])
def test_a_table_of_models_with_any_names_has_one_row_each(
    tmp_path: Path, provider: Provider, columns: int, verbose: tuple[str, ...]
) -> None:
    provider.answers(text='{"response": "no", "category": "CALM"}', when=_fails)
    terminal = _terminal(tmp_path, provider.url, columns, _MANY, "-q", *verbose, "--helmbench-show=1")
    assert terminal.watch() == pytest.ExitCode.TESTS_FAILED
    shown = _summary(terminal, columns)
    head, *rows = shown[1 : next(place for place, line in enumerate(shown) if line.startswith("loses"))]
    end = display_width(head[: head.index("score")]) + len("score")
    scored = [row for row in rows if re.search(r"\d+\.\d +\d+\.\d – \d+\.\d", row)]
    names = [row.split()[0] for row in scored if not row.startswith(" ")]
    assert len({*names}) == len(_MANY)
    assert all(re.search(r"\d+\.\d$", _cut(row, end)) for row in scored)
    assert _styles(terminal, names[0][:20]) == {("default", True)}


def _cut(line: str, columns: int) -> str:
    return next(line[:end] for end in range(len(line) + 1) if display_width(line[: end + 1]) > columns)


@_widths
def test_a_name_longer_than_the_terminal_breaks_behind_its_parts(
    tmp_path: Path, provider: Provider, columns: int
) -> None:
    provider.answers(text='{"response": "no", "category": "CALM"}')
    terminal = _terminal(tmp_path, provider.url, columns, (f"{_LONG}-{_LONG[10:]}",), "-q")
    assert terminal.watch() == pytest.ExitCode.TESTS_FAILED
    lines = _STYLES.sub("", terminal.written.decode()).replace("\r", "").splitlines()
    ours = [line for line in lines if not re.match("[F=_\\x1b]", line)]
    assert [line for line in ours if display_width(line) > columns] == []
    parts = [line for line in ours if "PT1[" in line or line.startswith(_LONG[:9])]
    assert len(parts) > 3
    assert all(re.search(r"([-/_[:]|\d)$", line) for line in parts if len(line) > columns - 12)


@_widths
@pytest.mark.parametrize(
    ("least", "mark", "colour"),
    [("0.9", "✗ FAILS", "red"), ("0.3", "✓ HOLDS", "green")],
    ids=["red", "green"],
)
def test_the_headline_of_a_gate_is_bold_behind_a_mark_in_its_colour(
    tmp_path: Path, provider: Provider, columns: int, least: str, mark: str, colour: str
) -> None:
    provider.answers(text='{"response": "no", "category": "CALM"}', when=_fails)
    terminal = _terminal(tmp_path, provider.url, columns, _MODEL, "-q", f"--helmbench-min-score={least}")
    terminal.watch()
    shown = _summary(terminal, columns)
    assert [line for line in shown if line.startswith(mark)] == [shown[-1]] * 2
    assert len(shown[-1]) <= 100
    assert _styles(terminal, mark) == {(colour, True)}
    assert shown[-2].startswith("6 failed, 18 passed")


@_widths
def test_lines_about_batches_fit(tmp_path: Path, columns: int) -> None:
    entry = f"{{id: {_LONG}1, batch: openai, price: {{input: 1, output: 4}}}}"
    (tmp_path / "models.yml").write_text(f"models: [{entry}]")
    pace = "from pytest_helmbench.gateway import batches\nbatches.GATHER_S = batches.FIRST_POLL_S = 0.3\n"
    (tmp_path / "conftest.py").write_text(pace)
    seen: set[str] = set()
    with BatchProvider(tmp_path) as batches:
        batches.set(takes_s=3600)
        options = ("--helmbench-models-file=models.yml", "--helmbench-batch=0.05", "-q")
        terminal = _terminal(tmp_path, batches.url, columns, (f"{_LONG}1",), *options)
        terminal.watch(lambda: seen.add(terminal.last_line))
    assert any(re.search(r" · 1 batch: 24 calls, \d+ answered, 0 min$", line) for line in seen), seen
    assert "answered" not in "\n".join(terminal.lines)
    lines = _STYLES.sub("", terminal.written.decode()).replace("\r", "").splitlines()
    ours = [line for line in lines if not re.match("[F=_\\x1b]", line)]
    assert [line for line in ours if display_width(line) > columns] == []
    said = " ".join(" ".join(ours).split())
    assert f"helmbench: batch: {_LONG}1 at 127.0.0.1" in said.replace("- ", "-")
    assert re.search(r"24 calls are at 127\.0\.0\.1:\d+ until \w{3} \d\d:\d\d; the same command", said)


@_widths
def test_where_nothing_is_judged_the_reason_fits(tmp_path: Path, columns: int) -> None:
    terminal = _terminal(
        tmp_path, "http://127.0.0.1:9/v1", columns, _MODEL, "-q", "--helmbench-max-retries=0"
    )
    assert terminal.watch() == pytest.ExitCode.TESTS_FAILED
    shown = _summary(terminal, columns)
    assert sum(line.startswith(_MODEL[0]) for line in shown) == 1
    assert " P1 " not in shown[1]
    assert "connection refused" in " ".join(map(str.strip, shown))


@pytest.mark.parametrize(("columns", "workers"), [(80, "-n0"), (100, "-n2"), (140, "-n0")])
def test_ctrl_c_shows_the_leader_and_both_counts_and_no_line_of_the_plugin(
    tmp_path: Path, provider: Provider, columns: int, workers: str
) -> None:
    provider.latency_s = 0.3
    provider.answers(text='{"response": "no", "category": "CALM"}', when=_fails, latency_s=0.3)
    # Its hooks of the old kind warn of a signal in their middle.
    options = (workers, "--helmbench-concurrency=4", "-p", "no:hypothesispytest")
    terminal = _terminal(tmp_path, provider.url, columns, _MANY[1:3], *options)
    seen: list[str] = []

    def look() -> None:
        if re.match(rf"\d+/48 done · leader {_LONG[:12]}", terminal.last_line) and not seen:
            seen.append(terminal.last_line)
            os.kill(terminal.process.pid, signal.SIGINT)

    assert terminal.watch(look) == pytest.ExitCode.INTERRUPTED, "\n".join(terminal.lines)
    assert seen
    said = " ".join(map(str.strip, _summary(terminal, columns)))
    assert "pytest_helmbench/" not in said
    judged = re.search(r"(\d+) judged in [^·]*?(?:, (\d+) not in pytest's count)? ·", said)
    assert judged is not None
    counted = sum(int(count) for count in re.findall(r"(\d+) (?:passed|failed)", said))
    assert counted == int(judged[1]) - int(judged[2] or 0)


@pytest.mark.parametrize(
    ("option", "more"), [("-q", {"NO_COLOR": "1"}), ("--color=no", {})], ids=["env", "option"]
)
def test_colour_is_pytests_own_matter(
    tmp_path: Path, provider: Provider, option: str, more: dict[str, str]
) -> None:
    terminal = _terminal(tmp_path, provider.url, 80, _MODEL, "--helmbench-min-score=0.3", option, **more)
    assert terminal.watch() == pytest.ExitCode.OK
    assert "✓ HOLDS" in _summary(terminal, 80)[-1]
    assert _STYLES.search(terminal.written.decode()) is None

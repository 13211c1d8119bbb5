"""The progress of a session on a real pseudo-terminal: one line below pytest's own, as wide as there is room."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from commands import environment
from provider import Provider
from trees import category, write_tree
from waiting import PATIENCE_S

_CASES = 6
_DRAWN = re.compile(r"\x1b7\x1b\[B\r\x1b\[2K([^\x1b]+)\x1b8")
_WIPED = "\x1b7\x1b[B\r\x1b[2K\x1b8"


def _seen(folder: Path, url: str, columns: int) -> str:
    """Return all that a session writes to a terminal of some columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    options = [f"--helmbench-base-url={url}", "--helmbench-model=test/good", "--helmbench-concurrency=1"]
    command = [sys.executable, "-m", "pytest", "benchmark", "-p", "no:cacheprovider", *options]
    env = environment(TERM="xterm", COLUMNS=str(columns))
    process = subprocess.Popen(command, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    read = b""
    try:
        while piece := os.read(ours, 65_536):
            read += piece
    except OSError:  # the last of those who could write is gone
        pass
    finally:
        os.close(ours)
    assert process.wait(PATIENCE_S) == pytest.ExitCode.OK
    return read.decode()


@pytest.mark.parametrize("columns", [200, 50])
def test_the_line_says_how_far_a_session_is_and_is_gone_at_its_end(
    tmp_path: Path, provider: Provider, columns: int
) -> None:
    write_tree(tmp_path / "benchmark", {"P1-B1-S1": category(*["RISK"] * _CASES)})
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    provider.latency_s = 0.35

    seen = _seen(tmp_path, provider.url, columns)

    lines = _DRAWN.findall(seen)
    assert lines
    assert all(len(line) < columns for line in lines)
    done = [int(found[1]) for line in lines if (found := re.match(r"helmbench: (\d+)/6 done", line))]
    assert len(done) == len(lines)
    assert done == sorted(done)
    if columns == 200:
        facts = r"helmbench: \d/6 done, score 100\.0 % ± \d+\.\d, .* USD, \d+ s left"
        waits = r"1 in flight: P1-B1-S1-\S+ \[test/good\] \d+ s"
        assert any(re.fullmatch(f"{facts}; {waits}", line) for line in lines), lines
    end = seen.rindex(lines[-1])
    assert _WIPED in seen[end:]
    assert f"{_CASES} passed" in seen[end:]

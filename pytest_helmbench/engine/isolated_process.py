"""Processes of ours that judge: nothing of our environment is in them, and nobody else speaks with them.

Both sides stand here: who starts one, and what such a process does first.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from pathlib import Path
from typing import IO

from pytest_helmbench.core.piped_process import PipedProcess
from pytest_helmbench.engine.closed_process import close_to_others
from pytest_helmbench.engine.pipe_frames import read_frame, write_frame

__all__ = ["begun", "isolated_process", "told_paths"]

_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT")
"""What such a process has of our variables: none that a key could stand in."""


def isolated_process(module: str, *arguments: str) -> PipedProcess:
    """Start `main` of a module of this room; `told_paths` is what it waits for.

    Args:
        module: Its name in the room.
        arguments: `sys.argv[2:]` there.
    """
    program = (
        f"import sys; sys.path.append(sys.argv[1]); from pytest_helmbench.engine.{module} import main; main()"
    )
    options = ["-I", *(["-B"] if sys.dont_write_bytecode else [])]
    return PipedProcess(
        [*options, "-c", program, str(Path(__file__).parents[2]), *arguments],
        {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
        Path(sys.executable).anchor,
    )


def told_paths(process: PipedProcess) -> bytes:
    """Tell a process where modules are looked for here, and return the first that it says.

    Raises:
        EOFError: It has ended.
        OSError: It has ended.
    """
    paths = [path for path in sys.path if Path(path).is_absolute()]
    write_frame(process.questions, pickle.dumps(paths))
    return read_frame(process.answers)


def begun() -> tuple[IO[bytes], IO[bytes]]:
    """Make this process such a one, and return the pipes to who has started it: what comes, and answers."""
    close_to_others()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nowhere, number)  # what a rule prints is no answer
    paths: list[str] = pickle.loads(read_frame(source))
    sys.path.extend(path for path in paths if path not in sys.path)  # behind our own: kinds of somebody else
    return source, answers

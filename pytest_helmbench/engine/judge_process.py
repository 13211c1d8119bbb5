"""A judge process: it gets parcels and gives findings. `local_judges` starts it.

It has no keys, opens no connection, and ends when nobody is at the other end of its pipe, whatever it is at.
"""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import sys
import threading
from typing import IO

from pytest_helmbench.engine.isolated_process import begun
from pytest_helmbench.engine.parcels import judge
from pytest_helmbench.engine.pipe_frames import read_frame, write_frame

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Judge what comes, one parcel after the other."""
    _end_with_parent()
    source, answers = begun()
    write_frame(answers, b"ready")
    parcels: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(source, parcels), daemon=True).start()
    while True:
        write_frame(answers, judge(parcels.get()))


def _read(source: IO[bytes], parcels: queue.SimpleQueue[bytes]) -> None:
    try:
        while True:
            parcels.put(read_frame(source))
    except EOFError:
        os._exit(0)  # in the middle of a reply, too: the session has ended


def _end_with_parent() -> None:
    if sys.platform == "linux":
        # A rule that holds the interpreter to itself lets no thread see that the pipe is closed.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

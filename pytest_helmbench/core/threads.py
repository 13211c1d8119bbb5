"""Threads of our own, which a system with narrow limits may not let start."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pytest_helmbench.core.problem import HelmbenchError


def start_thread(function: Callable[[], object], name: str) -> threading.Thread:
    """Start a daemon thread.

    Raises:
        HelmbenchError: The system lets none start.
    """
    thread = threading.Thread(target=function, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise HelmbenchError(
            f"{name}: {error}\n  hint: the limits on memory (ulimit -v) or processes (ulimit -u) are too narrow"
        ) from error
    return thread

"""Open files of this process: its limit, raised as far as the system allows, and the calls that fit below it."""

from __future__ import annotations

import errno
import os
import sys
from functools import cache

if sys.platform != "win32":
    import resource

_WANTED = 65_536
_FEWER = 10_240  # macOS refuses more, whatever its hard limit says
_KEPT_FREE = 96
"""For the results file and its log, modules, workers, reports and what tests open."""


@cache
def open_files() -> int | None:
    """Raise the soft limit of open files as far as the hard one allows, once, and return it; None for no limit."""
    if sys.platform == "win32":
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (_WANTED, _FEWER):
        if soft == resource.RLIM_INFINITY:
            return None
        aim = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            if aim > soft:
                resource.setrlimit(resource.RLIMIT_NOFILE, (aim, hard))
                soft = aim
        except (OSError, ValueError):
            continue
    return soft


def calls_that_fit(wanted: int) -> int:
    """Return how many calls may be in flight at once, at least 1, so that no reply lacks a file to be stored in."""
    limit = open_files()
    return wanted if limit is None else max(1, min(wanted, limit - _KEPT_FREE))


def are_used_up() -> bool:
    """Return whether this process cannot open one more file now."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False

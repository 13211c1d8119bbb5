"""The number of examples for a property, and the time that one of them may take."""

from __future__ import annotations

import os
from datetime import timedelta

from hypothesis import settings

__all__ = ["examples"]

_AT_HAND = 3  # a third of all examples where a person waits for the tests; `.ci/run` takes all
_DEADLINE = timedelta(seconds=5)
"""An example takes milliseconds, on a busy machine ten times as many: what takes this long grows without bound."""


def examples(most: int) -> settings:
    """Return settings that try so many examples, the same ones each time, each within its deadline."""
    count = most if os.environ.get("HELMBENCH_TESTS_STRICT") else most // _AT_HAND
    return settings(database=None, derandomize=True, deadline=_DEADLINE, max_examples=count)

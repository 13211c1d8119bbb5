"""Workers of pytest-xdist for sessions inside the tests: forked, where processes can fork."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from forked import forked_python

if TYPE_CHECKING:
    import execnet

__all__ = ["pytest_xdist_setupnodes"]


@pytest.hookimpl(optionalhook=True)  # there are sessions without pytest-xdist
def pytest_xdist_setupnodes(specs: Sequence[execnet.XSpec]) -> None:
    """Give the workers a Python that is forked."""
    if hasattr(os, "fork"):
        for spec in specs:
            spec.python = shlex.join(forked_python())

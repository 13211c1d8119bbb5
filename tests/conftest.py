"""Fixtures of all tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # import-mode importlib leaves it out

from provider import Provider


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A real OpenAI-compatible HTTP server in a thread."""
    with Provider() as running:
        yield running

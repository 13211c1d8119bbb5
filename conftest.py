"""Fixtures of all tests; `pytester` runs pytest inside pytest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from provider import Provider

pytest_plugins = ["pytester", "engines"]


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A real OpenAI-compatible HTTP server in a thread."""
    with Provider() as running:
        yield running

"""Chromium for tests that show pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browsers import Opened, chromium
from event_loops import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]


@pytest.fixture(scope="module")  # while it is open an event loop runs, which tests of other files would meet
def browser() -> Iterator[Any]:
    """Chromium."""
    with chromium() as found:
        yield found


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Opened]]:
    """Open pages in contexts of their own."""
    contexts = []

    def open_one(**options: Any) -> Opened:
        context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        contexts.append(context)
        one = Opened(context.new_page())
        one.page.on("request", lambda request: one.requests.append(request.url))
        one.page.on("console", lambda message: one.messages.append(message.text))
        one.page.on("pageerror", lambda error: one.messages.append(str(error)))
        return one

    yield open_one
    for context in contexts:
        context.close()

"""Fixtures of all sessions inside of this process."""

from __future__ import annotations

import pytest
from event_loops import pytest_pyfunc_call
from inner_pytest import import_everything
from trees import clear_environment

__all__ = ["pytest_pyfunc_call"]


@pytest.fixture(scope="session", autouse=True)
def _everything_is_imported() -> None:
    """Before any `pytester`, which forgets what is imported after it."""
    import_everything()


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the keys and settings of the person who runs the tests."""
    clear_environment(monkeypatch)

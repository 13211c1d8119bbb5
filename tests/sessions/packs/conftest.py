"""What all sessions over packs have in common."""

from __future__ import annotations

import pytest
from trees import clear_environment


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)

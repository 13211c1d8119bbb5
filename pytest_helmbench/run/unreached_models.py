"""Models whose server cannot be reached, and that have answered nothing yet: said while they are tried on."""

from __future__ import annotations

from pytest_helmbench.core.outcome import AttemptRecord

__all__ = ["UnreachedModels"]

_UNREACHABLE = "unreachable: "


class UnreachedModels:
    """Filled on the loop, read from any thread."""

    def __init__(self) -> None:
        self._answered: set[str] = set()
        self._sentences: dict[str, str] = {}

    def add(self, record: AttemptRecord) -> None:
        """Take note of what came of an attempt."""
        model, error = record.asked, record.error
        if model is None or model in self._answered:
            return
        if error is None:
            self._answered.add(model)
        elif error.startswith(_UNREACHABLE) and model not in self._sentences:
            self._sentences[model] = error.removeprefix(_UNREACHABLE)

    def sentences(self) -> list[tuple[str, str]]:
        """Return model and sentence of each whose server could not be reached before it had answered anything."""
        return list(self._sentences.items())

"""Sentences for the summary of a session, each said once."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Notes"]


class Notes:
    """Keeps what is to be said in the summary, in the order in which it was said first.

    Args:
        forward: Takes a sentence to the process that prints the summary; None when that is this one.
    """

    def __init__(self, forward: Callable[[str], object] | None = None) -> None:
        self._forward = forward
        self._sentences: dict[str, None] = {}

    def say(self, sentence: str) -> None:
        """Have a sentence in the summary, once. From any thread."""
        if self._forward is not None:
            self._forward(sentence)
        else:
            self._sentences[sentence] = None

    @property
    def sentences(self) -> list[str]:
        """What was said in this process and not taken to another."""
        return list(self._sentences)

"""Trial of a class of the candidate: one that cannot tell two of its objects apart is not believed about equality."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.asker import Asker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeAlias

    Sample: TypeAlias = "tuple[object, tuple[object, ...], dict[str, object]]"
    """An object, and the arguments that it was made with."""

__all__ = ["Discernment"]


class Discernment:
    """Whether a class can tell two of its objects apart, tried once.

    Args:
        asker: Who asks the candidate.
    """

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self._sample: Sample | None = None
        self._found: bool | None = None

    def keep(self, value: object, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        """Keep the first object that the tests make."""
        if self._sample is None and args:
            self._sample = (value, args, kwargs)

    def is_there(self, cls: object) -> bool:
        """Return whether the class can; True where nobody can try."""
        if self._found is None and self._sample is not None:
            self._found = _discerns(self._asker, cls, self._sample)
        return self._found is not False


def _discerns(asker: Asker, cls: object, sample: Sample) -> bool:
    """Return whether any object that is made of other things differs from one; True where none can be made.

    Args:
        asker: Who asks the candidate.
        cls: What stands for the class.
        sample: An object of it.
    """
    value, args, kwargs = sample
    answers = []
    for place, given in enumerate(args):
        for other in _others(given):
            try:
                twin = asker.ask("call", cls, (*args[:place], other, *args[place + 1 :]), kwargs)
                answers.append(asker.ask("operator", twin, "__eq__", (value,)) is True)
            except Exception:  # noqa: BLE001 - a class need not take whatever comes
                continue
    return not answers or not all(answers)


def _others(given: Any) -> Iterator[object]:
    if type(given) in (int, float):
        yield from (given + 7, given + 1)
    elif type(given) is str:
        yield from (given + "x", "x" + given)
    elif type(given) in (list, tuple) and given:
        yield given + given[:1] * 2

"""Whether a class of the candidate can tell two of its objects apart: one that cannot is not asked about equality."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.asker import Asker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeAlias

    Sample: TypeAlias = "tuple[object, tuple[object, ...], dict[str, object]]"
    """An object, and the arguments that it was made with."""

__all__ = ["discerns"]


def discerns(asker: Asker, cls: object, sample: Sample) -> bool:
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

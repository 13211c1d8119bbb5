"""Functions and classes that tests are judged with: whatever replaces one of them is seen."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["told_once"]

_FUNCTION = type(lambda: None)
_CLOSE = (
    "builtins _pytest.runner _pytest.python _pytest.reports _pytest.outcomes _pytest.unittest _pytest.main "
    "_pytest.config _pytest.python_api _pytest.raises _pytest.assertion.util _pytest.assertion.rewrite "
    "pluggy._callers pluggy._hooks pluggy._manager pluggy._result unittest unittest.case unittest.result "
    "unittest.suite unittest.runner unittest.main unittest.loader"
)
_WIDE = (
    "pytest json json.decoder json.encoder subprocess pathlib os posixpath io re math operator shutil functools ast "
    "struct hashlib"
)


def told_once(say: Callable[..., None]) -> Callable[[], None]:
    """Remember how things are; return what says, each time and of each name once, what was replaced since."""
    changed, known = _watched(), {""}

    def tell() -> None:
        for name in changed():
            if name not in known:
                known.add(name)
                say("tampered", name)

    return tell


def _watched() -> Callable[[], list[str]]:
    """Remember how things are; return what lists, at any later time, the names that have been replaced since."""
    before = dict(_things([*_CLOSE.split(), *_WIDE.split()]))

    def changed() -> list[str]:
        modules = sys.modules
        found = []
        for (module, name), (value, parts) in before.items():
            now = vars(modules.get(module, sys)).get(name)
            if now is not value or (parts and _parts(value) != parts):
                found.append(module + "." + name)
        return found

    return changed


def _things(modules: Iterable[str]) -> Iterable[tuple[tuple[str, str], tuple[object, list[tuple[str, int]]]]]:
    for module in modules:
        for name, value in list(
            vars(sys.modules.get(module, object())).items() if module in sys.modules else ()
        ):
            if callable(value) and name != "_":
                yield (module, name), (value, _parts(value))


def _parts(value: object) -> list[tuple[str, int]]:
    """Return by identity the code of a function, or the functions of a class."""
    if type(value) is _FUNCTION:
        return [("", id(value.__code__))]
    if isinstance(value, type):
        own = type.__getattribute__(value, "__dict__")
        return [
            (name, id(each.__code__) if type(each) is _FUNCTION else id(each))
            for name, each in own.items()
            if callable(each) or isinstance(each, (property, staticmethod, classmethod))
        ]
    return []

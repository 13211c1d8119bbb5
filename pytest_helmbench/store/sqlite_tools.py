"""sqlite_utils, imported without pandas and numpy.

It loads both where they are installed, to know the types of their columns: 0.4 s of CPU for types that we do not store.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

__all__ = ["Database", "Migrations"]

_NOT_NEEDED = ("numpy", "pandas")
_PACKAGE = "sqlite_utils"


@contextlib.contextmanager
def _without_their_types() -> Iterator[None]:
    """Let sqlite_utils find no library of tables while inside; what was loaded so is ours alone.

    A program in the same process that imports sqlite_utils afterwards gets it with the types of its own libraries.
    """
    before = set(sys.modules)
    hidden = [name for name in _NOT_NEEDED if name not in before]
    try:
        sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None stops an import
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
        for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
            if name not in before:
                del sys.modules[name]


if TYPE_CHECKING:
    from sqlite_utils import Database, Migrations
else:
    with _without_their_types():
        from sqlite_utils import Database, Migrations

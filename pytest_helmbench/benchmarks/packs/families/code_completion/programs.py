"""The programs that run inside of sandboxes, each as one file that brings its modules along."""

from __future__ import annotations

import importlib.util
import marshal
from functools import cache
from importlib.resources import files
from typing import TypedDict

__all__ = ["CANDIDATE", "TESTER", "Job", "program"]

_FOLDER = "pytest_helmbench.benchmarks.packs.families.code_completion.inside"
_SHARED = ("frames", "operators", "values", "syntax")
CANDIDATE = (*_SHARED, "compose", "printed", "candidate_values", "candidate")
TESTER = (
    *_SHARED,
    "asker",
    "discerning",
    "standins",
    "tester_values",
    "suite",
    "compose",
    "unwritten",
    "verdict",
    "tester",
    "suite_run",
)
"""Modules of a program in the order in which they build on each other; the last one is run."""

_HEADER_BYTES = 16  # of a compiled file; whoever runs it passes over them
_BOOT = """
import marshal, sys
for name, code in {modules!r}:
    module = type(sys)(name)
    sys.modules[name] = module
    exec({load}, vars(module))
del module
exec((lambda name, code: {load})({name!r}, {code!r}), {{"__name__": "__main__", "__builtins__": __builtins__}})
"""


class Job(TypedDict):
    """What the process of the tests is sent first.

    Attributes:
        token: Stands before its report.
        tests: Of the row.
        starter: Where the row's code starts; may be empty.
        blocks: The reply's blocks of code that may be Python.
        is_code: The reply is the code as it stands, and nothing goes before it.
        reply: All of it.
    """

    token: str
    tests: str
    starter: str
    blocks: list[str]
    is_code: bool
    reply: str


@cache
def program(names: tuple[str, ...], *, compiled: bool) -> bytes:
    """Return a program.

    Args:
        names: Its modules.
        compiled: For this very Python; otherwise as source, for any.
    """
    codes = []
    for name in names:
        source = files(_FOLDER).joinpath(f"{name}.py").read_text(encoding="utf-8")
        code = compile(source, f"{name}.py", "exec", dont_inherit=True, optimize=2)
        codes.append((f"{_FOLDER}.{name}", marshal.dumps(code) if compiled else source))
    load = "marshal.loads(code)" if compiled else "compile(code, name, 'exec')"
    text = _BOOT.format(modules=tuple(codes[:-1]), load=load, name=codes[-1][0], code=codes[-1][1])
    if not compiled:
        return text.encode()
    header = importlib.util.MAGIC_NUMBER.ljust(_HEADER_BYTES, b"\0")
    return header + marshal.dumps(compile(text, "boot.py", "exec", dont_inherit=True))

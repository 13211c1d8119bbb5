"""The programs of `inside`, as the files that lie in a checker's own folder."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

__all__ = ["start_program", "witness_program"]

_FOLDER = "pytest_helmbench.benchmarks.packs.evidence.inside"
_MODULES = ("channel", "names_of_tests", "integrity", "pytest_witness", "unittest_witness", "witness")
_BOOT = """
import sys
for name, code in {modules!r}:
    module = type(sys)(name)
    sys.modules[name] = module
    exec(compile(code, "<witness>", "exec", dont_inherit=True), vars(module))
begin = module.begin
for name, code in {modules!r}:
    del sys.modules[name]
"""


@cache
def witness_program() -> str:
    """Return the program that reports tests: a text that defines `begin`."""
    return _BOOT.format(modules=tuple((f"{_FOLDER}.{name}", _source(name)) for name in _MODULES))


def start_program(settings: dict[str, object]) -> str:
    """Return what every Python of a checker runs first."""
    return f"{_source('start')}\n\nmain({settings!r}, __file__)\n"


@cache
def _source(name: str) -> str:
    return files(_FOLDER).joinpath(f"{name}.py").read_text(encoding="utf-8")

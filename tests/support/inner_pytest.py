"""Pytest inside pytest: in this process, where all is imported already, unless a test asks for one of its own."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import fork_server
import pytest

import pytest_helmbench

__all__ = [
    "QUICK",
    "import_everything",
    "pytest_command",
    "run_pytest",
    "run_pytest_apart",
    "run_pytest_forked",
]

QUICK = ("-p", "no:hypothesispytest")
"""The plugin of hypothesis imports it all when a session ends: most of what a small session costs."""
_OF_EXTRAS = ("imports.inspect_logs", "reports.inspect_log", "run.spread", "run.spread_session")


_UNASKED = {"rerunfailures": "--reruns", "timeout": "--timeout"}
"""Plugins that look at every item, and what asks for them: without them cases take the short way to their reports."""


def run_pytest(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest in this process; workers of pytest-xdist are processes as ever, but forked."""
    if targets := sys.modules.get("pytest_helmbench.run.targets"):
        targets._stated_slots.cache_clear()  # a server of an earlier test may have had the same port
    words = " ".join(arguments)
    unasked = [part for name, flag in _UNASKED.items() if flag not in words for part in ("-p", f"no:{name}")]
    return pytester.runpytest_inprocess(*QUICK, *unasked, *arguments, plugins=[fork_server])


def run_pytest_apart(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest in processes of its own, as tests need that look at imports, or that end the process."""
    return pytester.runpytest_subprocess(*QUICK, *arguments)


def pytest_command() -> list[str]:
    """Return the beginning of a command that replaces `python -m pytest`, whose workers are forked too."""
    program = "import fork_server, pytest, sys; sys.exit(pytest.main(plugins=[fork_server]))"
    return [*fork_server.python_command(), "-c", program, *QUICK]


def run_pytest_forked(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest in a process of its own, forked."""
    return pytester.run(*pytest_command(), *arguments)


def import_everything() -> None:
    """Import what sessions import late, but for what an extra brings: seconds, for the few tests that need it.

    `pytester` forgets modules that are first imported after its fixture was set up: a module half in it is then two.
    """
    for name in ("genai_prices", "openai"):
        importlib.import_module(name)
    for module in pkgutil.walk_packages(pytest_helmbench.__path__, "pytest_helmbench."):
        if ".inside" not in module.name and not module.name.endswith(("__main__", *_OF_EXTRAS)):
            importlib.import_module(module.name)

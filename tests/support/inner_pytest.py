"""Pytest inside pytest: in this process, where all is imported already, unless a test asks for one of its own."""

from __future__ import annotations

import importlib
import pkgutil

import forked_workers
import pytest

import pytest_helmbench

__all__ = ["QUICK", "import_everything", "run_pytest", "run_pytest_apart"]

QUICK = ("-p", "no:hypothesispytest")
"""The plugin of hypothesis imports it all when a session ends: most of what a small session costs."""


def run_pytest(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest in this process; workers of pytest-xdist are processes as ever, but forked."""
    return pytester.runpytest_inprocess(*QUICK, *arguments, plugins=[forked_workers])


def run_pytest_apart(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest in processes of its own, as tests need that look at imports, or that end the process."""
    return pytester.runpytest_subprocess(*QUICK, *arguments)


def import_everything() -> None:
    """Import what sessions import late.

    `pytester` forgets what is first imported after its fixture was set up: what stands half in it is then two things.
    """
    for name in ("genai_prices", "openai"):
        importlib.import_module(name)
    for module in pkgutil.walk_packages(pytest_helmbench.__path__, "pytest_helmbench."):
        if ".inside" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)

"""Pytest's tests, reported one by one: a plugin whose name nobody knows."""

from __future__ import annotations

import importlib
import os
import re
import sys
from importlib import metadata

from pytest_helmbench.benchmarks.packs.evidence.inside.channel import forgotten_by_children
from pytest_helmbench.benchmarks.packs.evidence.inside.integrity import told_once
from pytest_helmbench.benchmarks.packs.evidence.inside.names_of_tests import names_of_tests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _Hook = TypeVar("_Hook", bound=Callable[..., Any])

    from pytest_helmbench.benchmarks.packs.evidence.inside.channel import Say

__all__ = ["install", "plugin"]

_ADDRESS = re.compile(r"0x[0-9a-f]+")
_LAST = "E  "


def install(say: Say, settings: dict[str, Any], own: str, is_inside: Callable[[str], bool]) -> None:
    """Have the pytest of this process load the plugin, and no plugin that the workspace announces."""
    sys.modules[settings["plugin"]] = plugin(say, settings, own, is_inside)
    names = [name for name in os.environ.get("PYTEST_PLUGINS", "").split(",") if name]
    os.environ["PYTEST_PLUGINS"] = ",".join([*names, settings["plugin"]])
    manager = importlib.import_module("pluggy").PluginManager
    original = manager.load_setuptools_entrypoints
    outside = [path for path in sys.path if not is_inside(path)]

    def load(self: object, *args: object, **kwargs: object) -> object:
        found = list(metadata.distributions(path=outside))
        every, metadata.distributions = metadata.distributions, lambda **_: found
        try:
            return original(self, *args, **kwargs)
        finally:
            metadata.distributions = every

    manager.load_setuptools_entrypoints = load


def plugin(say: Say, settings: dict[str, Any], own: str, is_inside: Callable[[str], bool]) -> Any:
    """Return the plugin, as a module.

    Args:
        say: Sends records.
        settings: Of the checker.
        own: Our folder.
        is_inside: Whether a path leads into the workspace.
    """
    made = type(sys)(settings["plugin"])
    made.__doc__ = "PYTEST_DONT_REWRITE"
    vars(made).update(_hooks_of_start(say, settings, own, is_inside))
    vars(made).update(_hooks_of_tests(say, settings, own))
    return made


def _hooks_of_start(
    say: Say, settings: dict[str, Any], own: str, is_inside: Callable[[str], bool]
) -> dict[str, object]:
    marked: Callable[..., Callable[[_Hook], _Hook]] = importlib.import_module("pytest").hookimpl
    collects = settings["mode"] == "collect"

    @marked(tryfirst=True)
    def pytest_configure(config: Any) -> None:
        if collects:
            config.option.collectonly = True
        os.environ.pop("PYTEST_PLUGINS", None)
        rewrite: Any = importlib.import_module("_pytest.assertion.rewrite")
        if hasattr(rewrite, "_read_pyc"):
            rewrite._read_pyc = lambda *_, **__: (
                None
            )  # what lies beside a test as its bytecode may be anybody's
        forgotten_by_children(own)

    @marked(tryfirst=True)
    def pytest_sessionstart(session: Any) -> None:
        if not collects and getattr(session.config.option, "dist", "no") != "no":  # pytest-xdist
            say("spread")
        if not settings["tests_inside"]:  # what Python and the evaluator have comes first
            inside = [path for path in sys.path if is_inside(path)]
            sys.path[:] = [path for path in sys.path if path not in inside] + inside
        sys.path.extend(path for path in settings["later"] if path not in sys.path)

    def pytest_collectreport(report: Any) -> None:
        if report.failed:
            say("broken", report.nodeid, _why(report))
            for name in names_of_tests(report.nodeid, "::") if collects else ():
                say("named", report.nodeid + "::" + name)
        elif report.skipped:
            say("test", report.nodeid, "skipped")

    return {hook.__name__: hook for hook in (pytest_configure, pytest_sessionstart, pytest_collectreport)}


def _hooks_of_tests(say: Say, settings: dict[str, Any], own: str) -> dict[str, object]:
    pytest = importlib.import_module("pytest")
    marked: Callable[..., Callable[[_Hook], _Hook]] = pytest.hookimpl
    decoys: dict[str, object] = {}
    codes: dict[str, object] = {}
    outcomes = _Outcomes()
    tampered = told_once(say)

    @marked(trylast=True)
    def pytest_collection_finish(session: Any) -> None:
        for item in session.items:
            say("item", item.nodeid)
            codes[item.nodeid] = _code_of(item)
        if settings["mode"] != "collect" and session.items:
            decoy = _decoy(pytest, session, own + "/" + settings["decoy"])
            decoys[decoy.nodeid] = decoy
            session.items.insert(len(session.items) // 2, decoy)

    @marked(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(item: Any, call: Any) -> Any:
        if call.excinfo is not None:  # as it is before anybody makes a report of it
            outcomes.raised.add(item.nodeid)
        if codes.get(item.nodeid) is not _code_of(item) and item.nodeid not in decoys:
            say("tampered", "a test")
        outcome = yield
        report = outcome.get_result()
        if decoys.get(item.nodeid) is item:
            if report.when == "call":
                say("decoy", report.outcome)
            report.outcome, report.longrepr = "passed", None

    def pytest_report_teststatus(report: Any) -> Any:
        return ("", "", "") if report.nodeid in decoys else None

    @marked(tryfirst=True)
    def pytest_runtest_logreport(report: Any) -> None:
        if report.nodeid in decoys:
            return
        word = outcomes.after(report)
        if word:
            say("test", report.nodeid, word)
            tampered()

    @marked(trylast=True)
    def pytest_sessionfinish(exitstatus: int) -> None:
        tampered()
        say("end", int(exitstatus))

    hooks = (pytest_collection_finish, pytest_runtest_makereport, pytest_report_teststatus)
    return {hook.__name__: hook for hook in (*hooks, pytest_runtest_logreport, pytest_sessionfinish)}


class _Outcomes:
    """What becomes of tests, from the reports of their phases."""

    def __init__(self) -> None:
        self.raised: set[str] = set()
        """Tests that have raised something, by name."""
        self._phases: dict[str, list[str]] = {}

    def after(self, report: Any) -> str:
        """Return what became of a test after its last phase; empty before."""
        name = report.nodeid
        if report.when == "setup":
            self._phases[name] = []
        self._phases.setdefault(name, []).append(_phase(report))
        if report.when != "teardown":
            return ""
        word = _together(self._phases.pop(name))
        if word == "passed" and name in self.raised:
            word = "failed"
        self.raised.discard(name)
        return word


def _decoy(pytest: Any, session: Any, path: str) -> Any:
    """Return a test that must fail: where it passes, no report of this process is worth anything."""
    module = pytest.Module.from_parent(session, path=importlib.import_module("pathlib").Path(path))
    return pytest.Function.from_parent(module, name="test")


def _code_of(item: Any) -> object:
    return getattr(getattr(item, "function", None), "__code__", None)


def _phase(report: Any) -> str:
    outcome = str(report.outcome)
    if hasattr(report, "wasxfail"):
        return "xfailed" if outcome == "skipped" else "xpassed"
    return outcome


def _together(phases: list[str]) -> str:
    for word in ("rerun", "failed", "xfailed", "xpassed", "skipped"):
        if word in phases:
            return word
    return "passed" if phases == ["passed"] * 3 else "failed"


def _why(report: Any) -> str:
    """Return the last line that says why a file could not be collected."""
    lines = [line for line in str(report.longrepr).splitlines() if line.strip()]
    marked = [line[1:].strip() for line in lines if line.startswith(_LAST)]
    return _ADDRESS.sub("0x", (marked or lines or [""])[-1])[:300]

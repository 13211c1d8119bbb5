"""A shorter way from an item to its three reports, taken while only pytest's own plugins look at the item.

pytest calls some twenty functions around each phase of a test; of a case that passes only the first phase does
anything, and nothing at all where its outcome is ready. The functions left out here have nothing to do for an
item without fixtures and marks. Gain: 17 % of the instructions of a case.
"""

from __future__ import annotations

import bdb
import copy
import os
from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol

import pytest

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict

_HOOKS = (
    "pytest_runtest_protocol",
    "pytest_runtest_setup",
    "pytest_runtest_call",
    "pytest_runtest_teardown",
    "pytest_runtest_makereport",
    "pytest_exception_interact",
)
_OPTIONS = ("usepdb", "trace", "setupshow", "setuponly", "setupplan")
"""Options with which pytest itself looks at an item."""

_REPLACED = ("runner", "skipping")
"""Plugins of pytest whose part in the setup of an item is done here: parents are set up, and marks there are none."""

_CURRENT = "PYTEST_CURRENT_TEST"
_LOGGING = "logging-plugin"


@dataclass(frozen=True, slots=True)
class _File:
    """The values that the items of a file share.

    Args:
        quick: Whether only these look at them.
    """

    parent: pytest.Collector | None
    ihook: Any
    quick: bool


class Reporter(Protocol):
    """The answers of the session about its items."""

    def has_passed(self, item: Any) -> bool:
        """Return whether the outcome of an item is at hand, and it passes."""

    def completed(self, report: pytest.TestReport, item: Any) -> pytest.TestReport:
        """Return the report of a phase with what the session has to say of the item."""


class QuickProtocol:
    """Runs cases that stand between two others of their file; the first and the last are pytest's own business.

    These set up what stands above their file and tear it down, so nothing of pytest's bookkeeping is touched.

    Args:
        kind: Of items whose `outcome` may be at hand before pytest comes to them; None until it was taken.
        on_demand: Returns which items run only when pytest comes to them.
    """

    def __init__(
        self,
        config: pytest.Config,
        plugin: Reporter,
        kind: type[Any],
        on_demand: Callable[[Iterable[pytest.Item]], Collection[int]],
    ) -> None:
        self._config = config
        self._kind = kind
        self._on_demand = on_demand
        self._plugin = plugin
        self._off = any(config.getoption(name, False) for name in _OPTIONS)
        self._file: _File | None = None
        self._before: Any = None
        self._within: pytest.Item | None = None
        self._setup: Callable[..., object] = _nothing
        self._teardown: Callable[..., object] = _nothing
        self._stop: Callable[..., object] = _nothing

    def pytest_plugin_registered(self) -> None:
        """Look again who listens."""
        self._file = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run an item the short way where that makes no difference; None leaves it to pytest."""
        before: Any = self._before
        self._before = item
        if (
            self._off
            or not isinstance(item, self._kind)
            or not isinstance(nextitem, self._kind)
            or nextitem.parent is not item.parent
            or not isinstance(before, self._kind)
            or before.parent is not item.parent
            or before.outcome is None  # what stands above the file could not be set up
            or item.own_markers
        ):
            return None
        file = self._file
        if file is None or file.parent is not item.parent:
            file = self._file = self._looked_at(item)
        if not file.quick:
            return None
        self._run(item, nextitem, file.ihook)
        return True

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Obtain the outcome of an item that is run here, while pytest's plugins capture what is printed and logged."""
        if item is self._within:
            item.setup()

    def _looked_at(self, item: Any) -> _File:
        """Return whether all who look at the items of a file are pytest's own plugins, or ours."""
        ihook: Any = item.ihook
        listeners = [impl for name in _HOOKS for impl in getattr(ihook, name).get_hookimpls()]
        is_quick = all(map(_is_known, listeners)) and not self._on_demand([item])
        file = _File(item.parent, ihook, is_quick)
        if file.quick:
            manager = self._config.pluginmanager
            known = {impl.plugin for impl in listeners}
            absent = [plugin for plugin in manager.get_plugins() if plugin not in known]
            absent += [manager.get_plugin(name) for name in _REPLACED]
            self._setup = manager.subset_hook_caller("pytest_runtest_setup", absent)
            logging = manager.get_plugin(_LOGGING)
            others = [plugin for plugin in manager.get_plugins() if plugin is not logging]
            self._teardown = manager.subset_hook_caller("pytest_runtest_teardown", others)
            self._stop = manager.subset_hook_caller("pytest_runtest_teardown", [logging])
        return file

    def _run(self, item: Any, nextitem: pytest.Item, ihook: Any) -> None:
        location = item.location
        ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=location)
        os.environ[_CURRENT] = f"{item.nodeid} (setup)".replace("\0", "(null)")
        try:
            if self._plugin.has_passed(item):
                self._pass(item, ihook)
            else:
                self._phases(item, nextitem, ihook)
        finally:
            os.environ.pop(_CURRENT, None)
        ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=location)

    def _pass(self, item: Any, ihook: Any) -> None:
        """Report the phases of a case that has passed by now: nothing runs that pytest could capture or log."""
        call = _called("setup", item.setup)
        if call.excinfo is not None:
            self._report(item, call, ihook)
            self._report(item, _called("teardown", item.teardown), ihook)
            return
        setup = pytest.TestReport.from_item_and_call(item, call)
        passed, ended = _report_of("call", setup), _report_of("teardown", setup)
        for report in (setup, passed):
            ihook.pytest_runtest_logreport(report=self._plugin.completed(report, item))
        item.teardown()
        if item.session.shouldfail or item.session.shouldstop:
            self._report(item, _called("teardown", lambda: self._stop(item=item, nextitem=None)), ihook)
        else:
            ihook.pytest_runtest_logreport(report=self._plugin.completed(ended, item))

    def _phases(self, item: Any, nextitem: pytest.Item, ihook: Any) -> None:
        self._within = item
        try:
            call = _called("setup", lambda: self._setup(item=item))
        finally:
            self._within = None
        self._report(item, call, ihook)
        if call.excinfo is None:
            passed = item.outcome is not None and item.outcome.verdict is Verdict.PASSED
            call = _called("call", item.runtest if passed else lambda: ihook.pytest_runtest_call(item=item))
            self._report(item, call, ihook)
        stops = item.session.shouldfail or item.session.shouldstop

        def end() -> None:
            item.teardown()
            if stops:
                ihook.pytest_runtest_teardown(item=item, nextitem=None)
            else:
                self._teardown(item=item, nextitem=nextitem)

        self._report(item, _called("teardown", end), ihook)

    def _report(self, item: Any, call: pytest.CallInfo[Any], ihook: Any) -> None:
        if call.excinfo is None:
            report = self._plugin.completed(pytest.TestReport.from_item_and_call(item, call), item)
        else:
            report = ihook.pytest_runtest_makereport(item=item, call=call)
        ihook.pytest_runtest_logreport(report=report)
        if (
            call.excinfo is not None
            and not hasattr(report, "wasxfail")
            and not isinstance(call.excinfo.value, pytest.skip.Exception | bdb.BdbQuit)
        ):
            ihook.pytest_exception_interact(node=item, call=call, report=report)


def _called(when: Any, act: Callable[[], object]) -> pytest.CallInfo[Any]:
    return pytest.CallInfo.from_call(act, when, reraise=(pytest.exit.Exception, KeyboardInterrupt))


def _report_of(when: Any, like: pytest.TestReport) -> pytest.TestReport:
    """Return the report of a phase that took no time, of an item that passes."""
    report = copy.copy(like)
    report.when = when
    report.duration = 0.0
    report.sections = []
    report.user_properties = list(like.user_properties)
    return report


def _is_known(impl: Any) -> bool:
    """Return whether a function that listens is pytest's or ours."""
    module = str(getattr(impl.function, "__module__", "")).partition(".")[0]
    return module in ("_pytest", "pytest_helmbench")


def _nothing(**_given: object) -> None:
    """Stand where no file was looked at yet."""

"""Unittest's tests, reported one by one, whoever is the runner's result."""

from __future__ import annotations

import os
import sys
import unittest

from pytest_helmbench.benchmarks.packs.evidence.inside.channel import forgotten_by_children
from pytest_helmbench.benchmarks.packs.evidence.inside.integrity import told_once
from pytest_helmbench.benchmarks.packs.evidence.inside.names_of_tests import names_of_tests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from pytest_helmbench.benchmarks.packs.evidence.inside.channel import Say

__all__ = ["install"]

_NOT_LOADED = "unittest.loader._FailedTest."


def install(say: Say, settings: dict[str, Any], own: str) -> None:
    """Have every `TextTestRunner` of this process report."""
    original = unittest.TextTestRunner.run
    is_failing, plain_result, verdict_of = _Decoy("test_it"), unittest.TestResult, unittest.TestCase.run
    tampered: list[Callable[[], None]] = []

    def run(self: Any, test: Any) -> Any:
        forgotten_by_children(own)
        cases = list(_cases(test))
        for case in cases:
            _announce(case, say)
        if settings["mode"] == "collect":
            say("end", 0)
            return plain_result()
        make = self._makeResult
        first = {str(case.id()): _code_of(case) for case in cases}
        self._makeResult = lambda: _reporting(make(), say, tampered[0], first)
        result = original(self, test)
        tried = plain_result()
        verdict_of(is_failing, tried)
        say("decoy", "failed" if len(tried.failures) == 1 else "passed")
        tampered[0]()
        say("end", 0 if result.wasSuccessful() else 1)
        return result

    setattr(unittest.TextTestRunner, "run", run)  # noqa: B010 - a class of Python's own
    tampered.append(told_once(say))
    sys.path.extend(path for path in settings["later"] if path not in sys.path)


class _Decoy(unittest.TestCase):
    """A test that must fail: where it passes, no report of this process is worth anything."""

    def test_it(self) -> None:
        """Fail."""
        check = self.assertEqual
        check(1, 2)


def _cases(test: Any) -> Iterator[Any]:
    if isinstance(test, unittest.BaseTestSuite):
        for inner in test:
            yield from _cases(inner)
    elif test is not None:
        yield test


def _announce(case: Any, say: Say) -> None:
    name = str(case.id())
    if not name.startswith(_NOT_LOADED):
        say("item", name)
        return
    module = name[len(_NOT_LOADED) :]
    say("broken", module, str(getattr(case, "_exception", "")).strip().rpartition("\n")[2][:300])
    for inner in names_of_tests(module.replace(".", os.sep) + ".py", "."):
        say("named", module + "." + inner)


def _reporting(result: Any, say: Say, tampered: Callable[[], None], first: dict[str, object]) -> Any:
    """Make a result report; whatever it does beside that, it goes on doing.

    Args:
        result: Of a runner.
        say: Sends records.
        tampered: Says what was replaced.
        first: Code of the tests as they were collected, by name.
    """
    cls = type(result)
    words: dict[int, list[str]] = {}

    def told(method: str, word: str) -> Callable[..., None]:
        def tell(self: Any, test: Any, *args: Any, **kwargs: Any) -> None:
            words.setdefault(id(test), []).append(word)
            getattr(cls, method)(self, test, *args, **kwargs)

        return tell

    def add_sub_test(self: Any, test: Any, subtest: Any, err: Any) -> None:
        words.setdefault(id(test), []).append("passed" if err is None else "failed")
        cls.addSubTest(self, test, subtest, err)

    def stop_test(self: Any, test: Any) -> None:
        if _code_of(test) is not first.get(str(test.id())):
            say("tampered", "a test")
        say("test", str(test.id()), _together(words.pop(id(test), [])))
        tampered()
        cls.stopTest(self, test)

    own = {
        **{"addSuccess": told("addSuccess", "passed"), "addFailure": told("addFailure", "failed")},
        **{"addError": told("addError", "failed"), "addSkip": told("addSkip", "skipped")},
        "addExpectedFailure": told("addExpectedFailure", "xfailed"),
        "addUnexpectedSuccess": told("addUnexpectedSuccess", "failed"),
        **{"addSubTest": add_sub_test, "stopTest": stop_test},
    }
    result.__class__ = type(cls.__name__, (cls,), own)
    return result


def _code_of(test: Any) -> object:
    method = getattr(test, str(getattr(test, "_testMethodName", "")), None)
    return getattr(getattr(method, "__func__", method), "__code__", None)


def _together(words: Iterable[str]) -> str:
    for word in ("failed", "skipped", "xfailed"):
        if word in words:
            return word
    return "passed" if "passed" in words else "failed"

"""The process of the tests: runs a row's test code with stand-ins for what the candidate defines, and judges.

No code of the candidate ever runs here.
"""

from __future__ import annotations

import builtins
import os
import sys

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import Wire
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.standins import make_known
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.suite import Suite
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.syntax import declared_names
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.tester import Tester, finished
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.verdict import (
    TESTS,
    Verdict,
    line_of_tests,
    text_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType
    from typing import Any

    from pytest_helmbench.benchmarks.packs.families.code_completion.programs import Job
else:
    ModuleType = type(sys)

__all__ = ["Run", "main"]

_FRAME_LIMIT = 1 << 24

__import__("collections.abc")  # what tests may use after `import collections`, as where more is imported
_MAIN = "__main__"


class _TestedModule(ModuleType):
    """The candidate, as a module that tests import.

    Args:
        name: Of the module.
        tester: Who asks the candidate.
        found: What the tests were given already.
    """

    def __init__(self, name: str, tester: Tester, found: dict[str, object]) -> None:
        super().__init__(name)
        space: dict[str, object] = self.__dict__
        space.update(found, _helmbench_tester=tester)

    def __getattr__(self, name: str) -> object:
        found = vars(self)["_helmbench_tester"].ask("names", name)
        if name.startswith("__") or name not in found:
            raise AttributeError("module '" + self.__name__ + "' has no attribute '" + name + "'")
        return found[name]


class Run:
    """One run of a row's tests.

    Args:
        job: What the host sends.
        suite: The tests and the starter of the job.
        tester: Who asks the candidate.
        verdict: Where the end is reported.
    """

    def __init__(self, job: Job, suite: Suite, tester: Tester, verdict: Verdict) -> None:
        self._job = job
        self._suite = suite
        self._tester = tester
        self._verdict = verdict
        module = type(sys)(_MAIN)
        sys.modules[_MAIN] = module  # `unittest.main()` looks there
        self._space: dict[str, Any] = vars(module)
        self._space.update(__builtins__=builtins, __file__=TESTS)

    def run(self) -> None:
        """Load the candidate, run the tests, report."""
        code = self._compiled_tests()
        obstacle = self._suite.obstacle()
        if obstacle is not None:
            self._tester.refuse(obstacle)
        self._load()
        self._bring_names()
        uses = self._tester.uses
        try:
            exec(code, self._space)
            self._call_what_is_defined()
        except BaseException as error:  # noqa: BLE001 - every end of the tests is judged
            self._judge(error)
        if self._tester.uses == uses:
            self._verdict.end("error", "tests", "the tests use nothing that the candidate defines")
        self._verdict.end("passed", "tests", "")

    def _compiled_tests(self) -> CodeType:
        try:
            if self._suite.given:
                exec(compile(self._suite.given, "starter.py", "exec", dont_inherit=True), self._space)
            return compile(self._job["tests"], TESTS, "exec", dont_inherit=True)
        except ImportError as error:
            self._verdict.end("error", "tests", _missing_module("the starter", error))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            where = "" if line is None else f" at line {line}"
            self._verdict.end("error", "tests", "the tests are no Python: " + type(error).__name__ + where)

    def _load(self) -> None:
        job = self._job
        try:
            starter = "" if job["is_code"] else job["starter"]
            self._tester.ask("load", job["blocks"], job["reply"], starter, self._suite.known_classes())
        except BaseException as error:  # noqa: BLE001 - whatever the candidate raises
            _, line, text = self._tester.blamed.get(id(error), (error, 0, ""))
            where = f" at line {line} of the reply's code" if line else ""
            message = "the reply's code does not load: " + type(error).__name__ + where
            self._verdict.end("failed", "load", message, text)

    def _bring_names(self) -> None:
        suite, space = self._suite, self._space
        found = self._tester.ask("names", *suite.wanted())
        if not isinstance(found, dict):
            self._verdict.end("failed", "load", "the candidate's answer makes no sense")
        asked = set(suite.wanted())
        space.update((name, value) for name, value in found.items() if name in asked and name not in space)
        for name in set(suite.modules()) - {name for name in self._space if name not in found}:
            space[name] = __import__(name)
        for name in suite.tested:
            sys.modules[name] = _TestedModule(name, self._tester, found)
        for name in suite.known_classes():
            make_known(space.get(name))

    def _call_what_is_defined(self) -> None:
        """Call what test code only defines: `check(candidate)`, test functions, test cases."""
        own = {
            name: self._space.get(name)
            for name in declared_in(self._suite)
            if name not in self._suite.reached
        }
        entry = self._suite.entry()
        check = own.get("check")
        if callable(check) and entry in self._space:
            check(self._space[entry])
        for name, value in own.items():
            if name.startswith("test") and callable(value) and not isinstance(value, type):
                finished(value())
        cases = [value for value in own.values() if isinstance(value, type) and hasattr(value, "assertEqual")]
        if cases and not self._suite.runs_cases():
            self._run_cases(cases)
        for name, value in own.items():
            if name.startswith("Test") and isinstance(value, type) and value not in cases:
                for method in [each for each in vars(value) if each.startswith("test")]:
                    finished(getattr(value(), method)())

    def _run_cases(self, cases: list[type]) -> None:
        unittest = __import__("unittest")
        loader = unittest.TestLoader()
        outcome = unittest.TestResult()
        unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in cases).run(outcome)
        for case, trace in [*outcome.errors, *outcome.failures]:
            lines = [
                line.split(",")[1].split()[1] for line in trace.splitlines() if '"tests.py", line' in line
            ]
            where = f" at line {lines[-1]} of the tests" if lines else ""
            name = str(getattr(case, "_testMethodName", case))
            self._verdict.end("failed", "tests", name + " fails" + where, trace.strip().rpartition("\n")[2])
        for case, _ in outcome.skipped:
            method = getattr(case, getattr(case, "_testMethodName", ""), case)
            if not (getattr(method, "__unittest_skip__", False) or getattr(case, "__unittest_skip__", False)):
                self._verdict.end("failed", "tests", "a test was skipped while it ran")
        if not outcome.wasSuccessful():
            self._verdict.end("failed", "tests", "a test that must fail passes")

    def _judge(self, error: BaseException) -> None:
        blamed = self._tester.blamed.get(id(error))
        name = type(error).__name__
        where = line_of_tests(error)
        if blamed is not None:
            self._verdict.end("failed", "tests", "the candidate raised " + name + where, blamed[2])
        if isinstance(error, SystemExit):
            if error.code in (None, 0, False) and self._is_own_end(error):
                return
            self._verdict.end("failed", "tests", "the tests ended with an exit code" + where)
        if isinstance(error, ImportError):
            self._verdict.end("error", "tests", _missing_module("the tests", error))
        if isinstance(error, NameError):
            name = "neither the reply nor the tests define " + repr(getattr(error, "name", None))
        self._verdict.end("failed", "tests", name + where, text_of(error))

    def _is_own_end(self, error: SystemExit) -> bool:
        """Return whether the tests end by their own words, and by no exception that the candidate gave them."""
        trace = error.__traceback__
        line = 0
        name = ""
        while trace is not None:
            name = trace.tb_frame.f_code.co_filename
            line = trace.tb_lineno if name == TESTS else line
            trace = trace.tb_next
        return (name != TESTS and self._suite.runs_cases()) or self._suite.exits_at(line)


def declared_in(suite: Suite) -> list[str]:
    """Return what the tests define, in order."""
    return list(declared_names(suite.tree)) if suite.tree is not None else []


def _missing_module(who: str, error: ImportError) -> str:
    return f"{who} need a module that is not in the sandbox: {error.name}"


def main() -> None:
    """Read the job, take the conversation away from stdin and stdout, then run the tests."""
    source, target, report = os.dup(0), os.dup(1), os.dup(2)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    wire = Wire(source, target, _FRAME_LIMIT)
    job: Job = wire.receive()
    verdict = Verdict(report, job["token"])
    suite = Suite(job["tests"], job["starter"])
    Run(job, suite, Tester(wire, suite, verdict), verdict).run()


if __name__ == "__main__":
    main()

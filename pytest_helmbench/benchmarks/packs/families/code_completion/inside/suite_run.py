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
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.unwritten import unwritten
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.verdict import (
    TESTS,
    Verdict,
    kind_of,
    line_of_tests,
    text_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType
    from typing import Any, NoReturn

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
        job = self._job
        if not job["is_code"]:
            self._verdict.explain(lambda: unwritten(job["blocks"], job["reply"], job["starter"]))
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
            self._lacks_module("the starter needs", error)
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
            # The line is the candidate's word: a number that is none of a line may say anything.
            where = (
                f" at line {line} of the reply's code" if 0 < line <= len(job["reply"].splitlines()) else ""
            )
            message = "the reply's code does not load: {}" + where
            self._verdict.end("failed", "load", message, text, kind_of(error))

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
        keeping = {"_exc_info_to_string": lambda _, found, __: found[1]}
        outcome = type("Outcome", (unittest.TestResult,), keeping)()  # keeps exceptions, not texts of them
        unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in cases).run(outcome)
        for case, error in [*outcome.errors, *outcome.failures]:
            name = str(getattr(case, "_testMethodName", case))
            message = "{} fails" + line_of_tests(error)
            detail = type(error).__name__ + ": " + text_of(error)
            self._verdict.end("failed", "tests", message, detail, (name, "a test"))
        for case, _ in outcome.skipped:
            method = getattr(case, getattr(case, "_testMethodName", ""), case)
            if not (getattr(method, "__unittest_skip__", False) or getattr(case, "__unittest_skip__", False)):
                self._verdict.end("failed", "tests", "a test was skipped while it ran")
        if not outcome.wasSuccessful():
            self._verdict.end("failed", "tests", "a test that must fail passes")

    def _judge(self, error: BaseException) -> None:
        blamed = self._tester.blamed.get(id(error))
        where = line_of_tests(error)
        if blamed is not None:
            message = "the candidate raised {}" + where
            self._verdict.end("failed", "tests", message, blamed[2], kind_of(error))
        if isinstance(error, SystemExit):
            if error.code in (None, 0, False) and self._is_own_end(error):
                return
            self._verdict.end("failed", "tests", "the tests ended with an exit code" + where)
        if isinstance(error, ImportError):
            self._lacks_module("the tests need", error)
        if isinstance(error, NameError):
            message = "neither the reply nor the tests define {}" + where
            missing = (repr(getattr(error, "name", None)), "a name that the tests use")
            self._verdict.end("failed", "tests", message, text_of(error), missing)
        self._verdict.end("failed", "tests", "{}" + where, text_of(error), kind_of(error))

    def _lacks_module(self, who: str, error: ImportError) -> NoReturn:
        name = (": " + str(error.name), "")
        self._verdict.end("error", "tests", who + " a module that is not in the sandbox{}", name=name)

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

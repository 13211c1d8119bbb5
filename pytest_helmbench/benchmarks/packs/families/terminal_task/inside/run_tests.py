"""Run the test functions of a pack over a workspace that wants them to pass. Needs Python 3.7, and little of it.

    python -I -S -B -c CODE WORKSPACE EVALUATOR ENTRY PACKAGES < SECRET

Nothing in the workspace is imported on the way: site-packages are found without the files that run on start-up, and
without what they may point to in the workspace. With pytest importable it runs the tests, with a configuration from
the evaluator's folder or none; otherwise module-level functions whose names start with `test` are run here.

The first and the last line of stdout carry the secret. Code of the workspace that ends the process early (tests may
import it) leaves the last one out.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import site
import sys
import traceback

TYPE_CHECKING = False  # `typing` costs as much as a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol

    class Report(Protocol):
        """pytest's report of a phase of a test."""

        @property
        def when(self) -> str:
            """`setup`, `call` or `teardown`."""

        @property
        def failed(self) -> bool:
            """Whether it failed."""

        @property
        def passed(self) -> bool:
            """Whether it passed."""


_CONFIGURATIONS = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_FAILED, _NOT_COLLECTED, _NO_TESTS, _UNFIT = 1, 2, 5, 70


class Counts:
    """What came of the tests; pytest knows it as a plugin."""

    def __init__(self, later: list[str]) -> None:
        self.passed = self.failed = 0
        self.why = ""
        self._later = later

    def pytest_sessionstart(self) -> None:
        """Let tests import what the image wants to be importable in the workspace, now that all plugins are there."""
        sys.path.extend(self._later)

    def pytest_runtest_logreport(self, report: Report) -> None:
        """Count one phase of one test."""
        self.failed += report.failed
        self.passed += report.passed and report.when == "call"


def is_inside(path: str, folder: str) -> bool:
    """Return whether a path is a folder or leads into it."""
    real = os.path.realpath(path or os.curdir)
    return real == folder or real.startswith(folder.rstrip("/") + "/")


def shield(workspace: str) -> list[str]:
    """Make installed packages importable, those in the workspace apart; return what is left out."""
    site.addsitepackages(site.venv(site.removeduppaths()) or set())
    later = [path for path in sys.path if is_inside(path, workspace)]
    sys.path[:] = [path for path in sys.path if path not in later]
    return later


def test_files(entry: str) -> list[str]:
    """Return the files of tests, by pytest's names."""
    if not os.path.isdir(entry):
        return [entry]
    found: list[str] = []
    for folder, folders, names in os.walk(entry):
        folders.sort()
        found += [
            os.path.join(folder, name)
            for name in sorted(names)
            if name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))
        ]
    return found


def broken_file(files: Iterable[str]) -> str:
    """Return why a file of tests is no Python; empty when all are."""
    for path in files:
        with open(path, "rb") as file:
            source = file.read()
        try:
            compile(source, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            return f"{os.path.basename(path)} is no Python: {error}"
    return ""


def run_pytest(evaluator: str, entry: str, counts: Counts) -> int:
    """Run pytest, which sees nothing of the workspace's configuration."""
    stated = (os.path.join(evaluator, name) for name in _CONFIGURATIONS)
    configuration = next((path for path in stated if os.path.isfile(path)), os.devnull)
    options = [
        *("-q", "--color=no", "-p", "no:cacheprovider", "-c", configuration),
        *(f"--rootdir={evaluator}", f"--confcutdir={evaluator}", entry),
    ]
    pytest = importlib.import_module("pytest")
    return int(pytest.main(options, plugins=[counts]))


def run_plainly(files: Iterable[str], counts: Counts) -> int:
    """Run module-level test functions."""
    counts.pytest_sessionstart()
    collected = True
    for number, path in enumerate(files):
        sys.path.insert(0, os.path.dirname(path))
        try:
            functions = functions_of(path, f"tests_{number}")
        except UnfitError as error:
            counts.why = f"{os.path.basename(path)}: {error}"
            return _UNFIT
        except BaseException as error:  # noqa: BLE001 - whatever a module raises, it cannot be run
            if isinstance(error, ImportError) and error.name == "pytest":
                counts.why = f"{os.path.basename(path)} imports pytest, which is not installed"
                return _UNFIT
            traceback.print_exc(file=sys.stdout)
            collected = False
            continue
        for name, function in functions:
            run_one(name, function, counts)
    if not collected:
        return _NOT_COLLECTED
    if not counts.passed and not counts.failed:
        return _NO_TESTS
    return _FAILED if counts.failed else 0


class UnfitError(Exception):
    """A file needs more than a runner of functions."""


def functions_of(path: str, name: str) -> list[tuple[str, Callable[[], object]]]:
    """Import a file and return its test functions in order."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UnfitError("it is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    found: list[tuple[str, Callable[[], object]]] = []
    for key, value in vars(module).items():
        if key.startswith("Test") and inspect.isclass(value):
            raise UnfitError(f"the class {key} needs pytest, which is not installed")
        if not key.startswith("test") or not inspect.isfunction(value):
            continue
        if inspect.iscoroutinefunction(value) or inspect.isgeneratorfunction(value):
            raise UnfitError(f"{key}() needs pytest and a plugin, which are not installed")
        needed = [one for one in inspect.signature(value).parameters.values() if one.default is one.empty]
        if needed:
            raise UnfitError(
                f"{key}() takes {needed[0].name!r}: fixtures need pytest, which is not installed"
            )
        found.append((key, value))
    return found


def run_one(name: str, function: Callable[[], object], counts: Counts) -> None:
    """Run a test."""
    try:
        function()
    except BaseException:  # noqa: BLE001 - a test that leaves by any door but the last has failed
        counts.failed += 1
        sys.stdout.write(f"FAILED {name}\n")
        traceback.print_exc(file=sys.stdout)
    else:
        counts.passed += 1


def main(workspace: str, evaluator: str, entry: str, packages: str) -> None:
    """Run everything and say what came of it.

    Args:
        workspace: Where it is, and where we are.
        evaluator: Where the evaluator's folder is.
        entry: A file of tests in it, or the folder.
        packages: Where a pytest is for a Python that has none; empty for nowhere.
    """
    secret = sys.stdin.readline().strip()
    leave, write = os._exit, os.write
    out = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    write(out, f"{secret} started\n".encode())
    counts = Counts(shield(os.path.realpath(workspace)))
    if packages:
        sys.path.append(packages)
    files = test_files(entry)
    counts.why = broken_file(files)
    if counts.why:
        code = _UNFIT
    elif importlib.util.find_spec("pytest") is not None:
        code = run_pytest(evaluator, entry, counts)
    else:
        code = run_plainly(files, counts)
    sys.stdout.flush()
    said = f"{code} {counts.passed} {counts.failed} {' '.join(counts.why.split())}"
    write(out, f"\n{secret} ended {said}\n".encode("utf-8", "replace"))
    leave(0 if code == 0 else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])

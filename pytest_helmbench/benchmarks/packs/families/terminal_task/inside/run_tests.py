"""Run the test functions of a pack over a workspace that wants them to pass. Needs Python 3.7, and little of it.

    python -I -S -B -c CODE WORKSPACE EVALUATOR ENTRY PACKAGES OWN

Nothing in the workspace is imported on the way: site-packages are found without the files that run on start-up, and
without what they may point to in the workspace. With pytest importable it runs the tests, with a configuration from
the evaluator's folder or none; otherwise module-level functions whose names start with `test` are run here.

The outcome of each test is reported over a channel that is opened before any code of the workspace can run (tests may
import it). Code that ends the process early leaves the last report out.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import os
import site
import sys
import traceback

TYPE_CHECKING = False  # `typing` costs as much as a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Say = Callable[..., None]


_CONFIGURATIONS = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_FAILED, _NOT_COLLECTED, _NO_TESTS, _UNFIT = 1, 2, 5, 70


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


def read_files(files: Iterable[str]) -> tuple[dict[str, ast.Module], str]:
    """Return the syntax trees of files of tests, and why one is not Python; empty when all are."""
    trees: dict[str, ast.Module] = {}
    for path in files:
        with open(path, "rb") as file:
            source = file.read()
        try:
            trees[path] = ast.parse(source, path)
            compile(source, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            return trees, f"{os.path.basename(path)} is not Python: {error}"
    return trees, "" if trees else "there are no tests"


def run_pytest(evaluator: str, entry: str) -> int:
    """Run pytest, which sees nothing of the workspace's configuration."""
    stated = (os.path.join(evaluator, name) for name in _CONFIGURATIONS)
    configuration = next((path for path in stated if os.path.isfile(path)), os.devnull)
    options = [
        *("-q", "--color=no", "-p", "no:cacheprovider", "-c", configuration),
        *(f"--rootdir={evaluator}", f"--confcutdir={evaluator}", entry),
    ]
    pytest = importlib.import_module("pytest")
    return int(pytest.main(options))


def run_plainly(trees: dict[str, ast.Module], collects: bool, say: Say) -> int:
    """Run module-level test functions; `pytest` reports its own.

    The files say what there is to run before any code runs that could change it.
    """
    unfit = next(filter(None, (why_unfit(os.path.basename(path), tree) for path, tree in trees.items())), "")
    if unfit:
        say("unfit", unfit)
        return _UNFIT
    named = tuple(
        (path, tuple(dict.fromkeys(test.name for test in tests_in(tree)))) for path, tree in trees.items()
    )
    for path, keys in named:
        for key in keys:
            say("item", f"{os.path.basename(path)}::{key}")
    if collects:
        return 0
    codes = [0 if any(keys for _, keys in named) else _NO_TESTS]
    for number, (path, keys) in enumerate(named):
        codes.append(run_file(path, f"tests_{number}", keys, say))
    say("decoy", "failed" if run_one("decoy", _fails, _says_nothing) == _FAILED else "passed")
    return max(codes)


def run_file(path: str, module_name: str, keys: Iterable[str], say: Say) -> int:
    """Import a file and run its tests in order; return the exit code that they make."""
    name = os.path.basename(path)
    sys.path.insert(0, os.path.dirname(path))
    try:
        spec: Any = importlib.util.spec_from_file_location(module_name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        spec.loader.exec_module(module)
    except BaseException as error:  # noqa: BLE001 - whatever a module raises, it cannot be run
        traceback.print_exc(file=sys.stdout)
        say("broken", name, f"{type(error).__name__}: {error}"[:300])
        return _NOT_COLLECTED
    functions = [(key, vars(module).get(key, _fails)) for key in keys]
    return max([run_one(f"{name}::{key}", function, say) for key, function in functions], default=0)


def _fails() -> None:
    raise AssertionError


def _says_nothing(*_: object) -> None:
    pass


def tests_in(tree: ast.Module) -> list[ast.FunctionDef]:
    """Return the test functions of a file."""
    return [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test")]


def why_unfit(name: str, tree: ast.Module) -> str:
    """Return why a file needs more than a runner of functions; empty when it does not."""
    for node in tree.body:
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if "pytest" in modules:
            return f"{name} imports pytest, which is not installed"
        key = getattr(node, "name", "")
        if isinstance(node, ast.ClassDef) and key.startswith("Test"):
            return f"{name}: the class {key} needs pytest, which is not installed"
        if isinstance(node, ast.AsyncFunctionDef) and key.startswith("test"):
            return f"{name}: {key}() needs pytest and a plugin, which are not installed"
    for test in tests_in(tree):
        args = test.args
        needed = [*args.args[: len(args.args) - len(args.defaults)]]
        needed += [one for one, default in zip(args.kwonlyargs, args.kw_defaults) if default is None]
        if needed and not test.decorator_list:
            return (
                f"{name}: {test.name}() takes {needed[0].arg!r}: fixtures need pytest, which is not installed"
            )
    return ""


def run_one(name: str, function: Callable[[], object], say: Say) -> int:
    """Run a test; return the exit code that it makes."""
    try:
        function()
    except BaseException:  # noqa: BLE001 - a test that leaves by any door but the last has failed
        say("test", name, "failed")
        if say is not _says_nothing:
            sys.stdout.write(f"FAILED {name}\n")
            traceback.print_exc(file=sys.stdout)
        return _FAILED
    say("test", name, "passed")
    return 0


def main(workspace: str, evaluator: str, entry: str, packages: str, own: str) -> None:
    """Run and report everything.

    Args:
        entry: A file of tests in it, or the folder.
        packages: Where a pytest is for a Python that has none; empty for nowhere.
    """
    leave = os._exit
    with open(own + "/settings.json", encoding="utf-8") as file:
        settings: dict[str, Any] = json.load(file)
    settings["later"] = shield(os.path.realpath(workspace))
    if packages:
        sys.path.append(packages)
    runner = "pytest" if importlib.util.find_spec("pytest") is not None else "functions"
    space: dict[str, Any] = {"__name__": "witness"}
    with open(own + "/witness.py", encoding="utf-8") as file:
        exec(compile(file.read(), "witness.py", "exec", dont_inherit=True), space)
    say = space["begin"](runner, settings, own, lambda path: is_inside(path, os.path.realpath(workspace)))
    trees, unfit = read_files(test_files(entry))
    if unfit:
        say("unfit", unfit)
        code = _UNFIT
    elif runner == "pytest":
        code = run_pytest(evaluator, entry)
    else:
        sys.path.extend(settings["later"])
        code = run_plainly(trees, settings["mode"] == "collect", say)
        say("end", code)
    sys.stdout.flush()
    leave(code)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Pytest's tests, reported one by one: a plugin whose name only we know, and lines that cannot be taken back.

A key is given once, before any code that is judged is loaded. Functions and classes that tests are judged with are
watched: whatever replaces one of them is seen.
"""

from __future__ import annotations

import ast
import fcntl
import gc
import importlib
import importlib.util
import json
import os
import re
import sys
from importlib import metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeVar

    Say = Callable[..., None]
    """Sends one record: a word, then texts, numbers or lists of them."""

    _Hook = TypeVar("_Hook", bound=Callable[..., Any])

_PR_SET_DUMPABLE = 4
_KEY_BYTES = 64
_LONGEST = 4000  # of a line: what a pipe takes at once
_LONGEST_PART = 1500
_FUNCTION = type(lambda: None)
_CLOSE = (
    "builtins _pytest.runner _pytest.python _pytest.reports _pytest.outcomes _pytest.unittest _pytest.main "
    "_pytest.config _pytest.python_api _pytest.raises _pytest.assertion.util _pytest.assertion.rewrite "
    "pluggy._callers pluggy._hooks pluggy._manager pluggy._result unittest unittest.case unittest.result "
    "unittest.suite unittest.runner unittest.main unittest.loader"
)
_WIDE = (
    "pytest json json.decoder json.encoder subprocess pathlib os posixpath io re math operator shutil functools ast "
    "struct hashlib"
)
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_LAST = "E  "


def begin(runner: str, settings: dict[str, Any], own: str, is_inside: Callable[[str], bool]) -> Say | None:
    """Open a session and install what reports it.

    Args:
        runner: `pytest`, or `functions` for one that reports by itself.
        own: Our folder.
        is_inside: Whether a path leads into the workspace.
    """
    if runner == "pytest" and importlib.util.find_spec("pytest") is None:
        return None
    say = _open_session(own, runner)
    if say is not None:
        if runner == "pytest":
            _install(say, settings, own, is_inside)
        if hasattr(gc, "freeze"):
            gc.freeze()  # nothing of this is among the objects that can be listed
    return say


def _close_to_others() -> None:
    """Keep what the tests start, the same user's, from reading this process, its key, and from writing into it."""
    try:
        __import__("ctypes").CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass  # no Linux, or a Python without `ctypes`


def _open_session(own: str, runner: str) -> Say | None:
    """Open a session; return what sends its records, None where nothing listens."""
    _close_to_others()
    try:
        keys = os.open(own + "/keys", os.O_RDONLY | os.O_NONBLOCK)
        try:
            key = os.read(keys, _KEY_BYTES).decode("ascii")
        finally:
            os.close(keys)
        target = os.open(own + "/records", os.O_WRONLY)
    except OSError:
        return None
    descriptor = fcntl.fcntl(target, fcntl.F_DUPFD_CLOEXEC, 100 + int(key[:2], 16) * 3)
    os.close(target)
    process, process_of, write, encoded = os.getpid(), os.getpid, os.write, json.dumps

    def say(*parts: object) -> None:
        if process_of() != process:
            return  # a forked child does not report
        line = key + " " + encoded([_cut(part) for part in parts])
        write(descriptor, (line if len(line) < _LONGEST else key + ' ["flood"]').encode("ascii") + b"\n")

    say("open", runner)
    return say


def _cut(part: object) -> object:
    return part[:_LONGEST_PART] if isinstance(part, str) else part


def _hide_from_children(own: str) -> None:
    """Take this folder out of the environment: what the tests start is a matter of their own."""
    rest = [
        path
        for path in os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if path and os.path.realpath(path) != own
    ]
    os.environ.pop("PYTHONPATH", None)
    if rest:
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)


def _install(say: Say, settings: dict[str, Any], own: str, is_inside: Callable[[str], bool]) -> None:
    """Have the pytest of this process load the plugin, and no plugin that the workspace announces."""
    sys.modules[settings["plugin"]] = _plugin(say, settings, own, is_inside)
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


def _plugin(say: Say, settings: dict[str, Any], own: str, is_inside: Callable[[str], bool]) -> Any:
    """Return the plugin, as a module."""
    made = type(sys)(settings["plugin"])
    made.__doc__ = "PYTEST_DONT_REWRITE"
    places = _Places(settings)
    vars(made).update(_hooks_of_start(say, settings, own, is_inside, places))
    vars(made).update(_hooks_of_tests(say, settings, own, places))
    return made


class _Places:
    """Names tests by where they lie in the evaluator's folder or the workspace, wherever pytest has its root."""

    def __init__(self, settings: dict[str, Any]) -> None:
        folders = [settings[name] for name in ("evaluator", "workspace") if settings[name]]
        self._folders = [os.path.realpath(folder) for folder in folders]
        self._known: dict[str, str] = {}
        self.root = ""

    def path(self, node: str) -> str:
        """Return the file of a test."""
        return os.path.realpath(os.path.join(self.root, node.partition("::")[0]))

    def name(self, node: str) -> str:
        """Return the name of a test, or of a file."""
        file, mark, rest = node.partition("::")
        if file not in self._known:
            path = self.path(file)
            inside = [folder for folder in self._folders if (path + "/").startswith(folder + "/")]
            self._known[file] = os.path.relpath(path, inside[0]) if inside else path
        return self._known[file] + mark + rest

    def without(self, text: str) -> str:
        """Return a text without the place of the evaluator's folder."""
        return text.replace(self._folders[0] + "/", "") if len(self._folders) > 1 else text


def _hooks_of_start(
    say: Say, settings: dict[str, Any], own: str, is_inside: Callable[[str], bool], places: _Places
) -> dict[str, object]:
    marked: Callable[..., Callable[[_Hook], _Hook]] = importlib.import_module("pytest").hookimpl
    collects = settings["mode"] == "collect"
    rewrite: Any = importlib.import_module("_pytest.assertion.rewrite")
    if hasattr(rewrite, "_read_pyc"):  # what lies beside a test as its bytecode may be anybody's
        rewrite._read_pyc = lambda *_, **__: None
    if collects:
        rewrite.rewrite_asserts = _tolerant_rewrite(rewrite.rewrite_asserts)

    @marked(tryfirst=True)
    def pytest_configure(config: Any) -> None:
        places.root = str(getattr(config, "rootpath", None) or config.rootdir)
        os.environ.pop("PYTEST_PLUGINS", None)
        if collects:
            config.option.collectonly = True
        _hide_from_children(own)

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
            say("broken", places.name(report.nodeid), places.without(_why(report)))
            for name in _names_of_tests(places.path(report.nodeid)) if collects else ():
                say("named", places.name(report.nodeid) + "::" + name)
        elif report.skipped:
            say("test", places.name(report.nodeid), "skipped")

    return {hook.__name__: hook for hook in (pytest_configure, pytest_sessionstart, pytest_collectreport)}


def _tolerant_rewrite(rewrite: Callable[..., object]) -> Callable[..., object]:
    """Have tests loaded to be counted, though what they import is not there: each statement may fail by itself.

    Args:
        rewrite: Pytest's own, which every file of tests passes as a syntax tree.
    """

    def rewritten(tree: ast.Module, *args: object, **kwargs: object) -> None:
        caught: Any = ast.parse("try: pass\nexcept Exception: pass").body[0]
        for place, node in enumerate(tree.body):
            is_text = isinstance(node, ast.Expr) and not isinstance(node.value, ast.Call)
            if not (is_text or getattr(node, "module", "") == "__future__"):
                handler = ast.ExceptHandler(caught.handlers[0].type, None, _replacement_of(node))
                # A class that derives from anything may be none.
                looks = ast.parse(node.name + ".__mro__").body if isinstance(node, ast.ClassDef) else []
                tree.body[place] = ast.Try([node, *looks], [handler], [], [])
        rewrite(ast.fix_missing_locations(tree), *args, **kwargs)

    return rewritten


def _replacement_of(node: ast.stmt) -> list[ast.stmt]:
    """Return what represents a statement that fails: anything for what it imports, a test without its marks."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        names = [alias.asname or alias.name.partition(".")[0] for alias in node.names if alias.name != "*"]
        text = "\n".join(name + " = __import__('unittest.mock').mock.MagicMock()" for name in names)
        return ast.parse(text or "pass").body
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        marks = ("decorator_list", "bases", "keywords")
        return [type(node)(**{name: [] if name in marks else value for name, value in ast.iter_fields(node)})]
    return [ast.Pass()]


def _hooks_of_tests(say: Say, settings: dict[str, Any], own: str, places: _Places) -> dict[str, object]:
    pytest = importlib.import_module("pytest")
    marked: Callable[..., Callable[[_Hook], _Hook]] = pytest.hookimpl
    decoys: dict[str, object] = {}
    codes: dict[str, object] = {}
    outcomes = _Outcomes()
    tampered = _watched(say)

    @marked(trylast=True)
    def pytest_collection_finish(session: Any) -> None:
        for item in session.items:
            say("item", places.name(item.nodeid))
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
            say("test", places.name(report.nodeid), word)
            tampered()

    @marked(trylast=True)
    def pytest_sessionfinish(exitstatus: int) -> None:
        tampered()
        say("end", int(exitstatus))

    hooks = (pytest_collection_finish, pytest_runtest_makereport, pytest_report_teststatus)
    return {hook.__name__: hook for hook in (*hooks, pytest_runtest_logreport, pytest_sessionfinish)}


class _Outcomes:
    """The outcomes of tests, from the reports of their phases."""

    def __init__(self) -> None:
        self.raised: set[str] = set()
        """Tests that have raised something, by name."""
        self._phases: dict[str, list[str]] = {}

    def after(self, report: Any) -> str:
        """Return the outcome of a test after its last phase; empty before."""
        name = report.nodeid
        if report.when == "setup":
            self._phases[name] = []
        self._phases.setdefault(name, []).append(_phase(report))
        if report.when != "teardown":
            return ""
        word = _outcome_of(self._phases.pop(name))
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


def _outcome_of(phases: list[str]) -> str:
    for word in ("rerun", "failed", "xfailed", "xpassed", "skipped"):
        if word in phases:
            return word
    return "passed" if phases == ["passed"] * 3 else "failed"


def _why(report: Any) -> str:
    """Return the last line that says why a file could not be collected."""
    lines = [line for line in str(report.longrepr).splitlines() if line.strip()]
    marked = [line[1:].strip() for line in lines if line.startswith(_LAST)]
    return _ADDRESS.sub("0x", (marked or lines or [""])[-1])[:300]


def _watched(say: Callable[..., None]) -> Callable[[], None]:
    """Remember how things are; return what reports, once by name, those that have been replaced since."""
    before = dict(_callables([*_CLOSE.split(), *_WIDE.split()]))
    known: set[tuple[str, str]] = set()

    def report() -> None:
        modules = sys.modules
        for (module, name), (value, parts) in before.items():
            now = vars(modules.get(module, sys)).get(name)
            if (module, name) not in known and (now is not value or (parts and _parts(value) != parts)):
                known.add((module, name))
                say("tampered", module + "." + name)

    return report


def _callables(
    modules: Iterable[str],
) -> Iterable[tuple[tuple[str, str], tuple[object, list[tuple[str, int]]]]]:
    for module in modules:
        for name, value in list(
            vars(sys.modules.get(module, object())).items() if module in sys.modules else ()
        ):
            if callable(value) and name != "_":
                yield (module, name), (value, _parts(value))


def _parts(value: object) -> list[tuple[str, int]]:
    """Return by identity the code of a function, or the functions of a class."""
    if type(value) is _FUNCTION:
        return [("", id(value.__code__))]
    if isinstance(value, type):
        own = type.__getattribute__(value, "__dict__")
        return [
            (name, id(each.__code__) if type(each) is _FUNCTION else id(each))
            for name, each in own.items()
            if callable(each) or isinstance(each, (property, staticmethod, classmethod))
        ]
    return []


def _names_of_tests(path: str) -> list[str]:
    """Return functions and methods of a file whose names start with `test`; empty for a file that is not Python."""
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    return list(_names(tree))


def _names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name.startswith("test") and "fixture" not in "".join(map(ast.dump, node.decorator_list)):
                yield node.name
        elif isinstance(node, ast.ClassDef):
            bases = [getattr(base, "attr", getattr(base, "id", "")) for base in node.bases]
            if any("TestCase" in base for base in bases) or node.name.startswith("Test"):
                for inner in node.body:
                    if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)) and inner.name.startswith(
                        "test"
                    ):
                        yield node.name + "::" + inner.name

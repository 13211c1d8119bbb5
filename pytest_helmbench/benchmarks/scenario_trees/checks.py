"""Checks in Python: the reply that a function is given, and the functions that call it in a process of its own."""

from __future__ import annotations

import base64
import pickle
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType

from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.core.tools import MadeCall
from pytest_helmbench.files.source import listed

_LONGEST = 80
_PLACE = "'checks:NAME' is a function of checks.py in the folder of the benchmark, or of an installed module"
_WANTED = "a check returns True or False, a credit from 0 to 1, or (passed, reason)"
_STORED = "the reply is stored, so mend the check and go on with --helmbench-resume"
_modules: dict[tuple[str, str], dict[str, ModuleType]] = {}
"""By the file and source of a check: what importing it has imported from its folder."""


@dataclass(frozen=True, slots=True)
class CheckedCase:
    """The case that a reply answers.

    Args:
        code: `P1-B2-S1-C1-U1-PT3`.
        codes: Its parts: `codes.perturbation` is `PT3`; None for a part that the case does not have.
        severity: Base severity (−20..20).
        difficulty: 0..10.
        metadata: Frontmatter of the scenario without `evaluation`.
    """

    code: str
    codes: CaseCode | None
    severity: int
    difficulty: int
    metadata: JsonObject


@dataclass(frozen=True, slots=True)
class CheckedReply:
    """The reply of a model, as a check is given it.

    A refusal, an empty reply, a reply that is cut at its token limit, and one that breaks the scenario's schema fail
    before the check is called.

    Args:
        text: What the model answers, without its thoughts.
        json: The JSON in it, which fits the scenario's schema where there is one; None for none.
        messages: The conversation as OpenAI's API has it, this reply last: `{"role": "user", "content": "…"}`.
        tool_calls: Calls of tools in it, with their answers, in order.
        latency_ms: From sending the request to the last byte; None for a stored reply.
        cost_usd: USD; None where it is unknown.
        case: The case.
    """

    text: str
    json: JsonValue
    messages: Sequence[JsonObject]
    tool_calls: Sequence[MadeCall]
    latency_ms: float | None
    cost_usd: float | None
    case: CheckedCase

    def packed(self) -> str:
        """Return it for the process of the checks."""
        return base64.b64encode(pickle.dumps(self)).decode()


def load(file: str, source: str, function: str) -> JsonValue:
    """Import the module of a check, and return the SHA-256 (hex) of its source; empty for a module without a file.

    Args:
        file: Path of the module; empty for an installed one.
        source: What tells its source from another one.
        function: `checks:names_a_dose`.

    Raises:
        HelmbenchError: It cannot be imported, or has no such function.
    """
    module, _, name = function.partition(":")
    try:
        with _imported(file, source, module) as names:
            known = dict(names)
    except (Exception, SystemExit) as error:
        raise HelmbenchError(f"cannot be imported: {_told(error, file)}\n  hint: {_PLACE}") from error
    if not callable(known.get(name)):
        callables = [one for one, value in known.items() if callable(value) and not one.startswith("_")]
        raise HelmbenchError(f"is not there\n  hint: {listed(name, callables, f'{module} has')}")
    path = Path(str(known.get("__file__")))
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def judge(file: str, source: str, function: str, packed: str) -> JsonValue:
    """Return the credit that a check gives a reply, the same for people, and its reason; `load` comes first.

    Raises:
        HelmbenchError: The function raised an exception, or returned no verdict.
    """
    module, _, name = function.partition(":")
    reply: CheckedReply = pickle.loads(base64.b64decode(packed))
    try:
        with _imported(file, source, module) as names:
            said = names[name](reply)
    except (Exception, SystemExit) as error:
        raise HelmbenchError(f"raised {_told(error, file)}\n  hint: {_STORED}") from error
    passed, reason = said if isinstance(said, tuple) and len(said) == 2 else (said, "")
    if not isinstance(passed, bool | int | float) or not 0 <= passed <= 1 or not isinstance(reason, str):
        returned = f"returned {excerpt(repr(said), _LONGEST)} ({type(said).__name__})"
        raise HelmbenchError(f"{returned}\n  hint: {_WANTED}; {_STORED}")
    return [float(passed), repr(passed), reason]


@contextmanager
def _imported(
    file: str, source: str, module: str
) -> Iterator[Mapping[str, Callable[[CheckedReply], object]]]:
    """Give what a module has. Inside, modules of its folder can be imported; each benchmark has its own.

    No compiled file is written into the folder.
    """
    if not file:
        yield vars(import_module(module))
        return
    folder, own = str(Path(file).parents[module.count(".")]), _modules.setdefault((file, source), {})
    aside = {name: sys.modules.pop(name) for name in (module, *own) if name in sys.modules}
    before, writes = set(sys.modules), sys.dont_write_bytecode
    sys.modules.update(own)
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    try:
        yield vars(import_module(module))
    finally:
        sys.dont_write_bytecode = writes
        sys.path.remove(folder)
        found = {name: sys.modules[name] for name in set(sys.modules) - before}
        own.update({name: one for name, one in found.items() if _is_of(one, folder)})
        for name in own.keys() & found:
            del sys.modules[name]
        sys.modules.update(aside)


def _is_of(module: ModuleType, folder: str) -> bool:
    """Return whether a module stands in a folder, and is not installed there."""
    places = (getattr(module, "__file__", None), *getattr(module, "__path__", ()))
    path = Path(str(next(filter(None, places), "")))
    return path.is_relative_to(folder) and "site-packages" not in path.parts


def _told(error: BaseException, file: str) -> str:
    """Return the last line of an exception, and the place in the file that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == file] or frames[1:]
    place = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own and file else ""
    return f"{excerpt(f'{type(error).__name__}: {error}'.removesuffix(': '))}{place}"

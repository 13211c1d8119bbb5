"""Answers that are made in this process: of embedded models, and of applications that are Python functions."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import re
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.json_types import JsonObject, decoded_json
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.threads import in_thread
from pytest_helmbench.gateway.attempt import PreparedCall
from pytest_helmbench.gateway.faults import Fault, FaultKind, excerpt
from pytest_helmbench.gateway.http_answers import RawAnswer, TransportError
from pytest_helmbench.gateway.providers.application import as_asked

_TOO_MANY = 429
_NOT_OF_THE_USER = re.compile(
    r"<|.*[/\\](?:(?:site|dist)-packages|lib[/\\]python3[^/\\]*|pytest_helmbench)[/\\]", re.IGNORECASE
)
"""Files in the frames of an exception that are not the application's own."""


async def local_answer(request: PreparedCall, timeout_s: float) -> RawAnswer:
    """Return the answer of an embedded model or a function.

    Raises:
        TransportError: There is none.
    """
    endpoint = request.call.endpoint
    if endpoint.server.function:
        return await call_function(endpoint.server.function, as_asked(request.asked_body), timeout_s)
    from pytest_helmbench.gateway.baselines.baseline import baseline_reply, guarded_reply  # for floors alone

    started = time.perf_counter()
    try:
        answer = baseline_reply if request.call.forwarded is None else guarded_reply
        document = answer(endpoint.model_id, request.body)
    except HelmbenchError as error:
        raise TransportError(Fault(FaultKind.REJECTED, None, "no_answer", str(error))) from error
    return RawAnswer(200, {}, json.dumps(document).encode(), (time.perf_counter() - started) * 1000)


async def call_function(named: Granted[str], body: JsonObject, timeout_s: float) -> RawAnswer:
    """Call a function with the messages of a request and return its reply as an answer of a provider.

    Args:
        named: `package.module:function`.
        body: Of the request; a function with a parameter `request` gets all of it.
        timeout_s: A thread that takes longer goes on, and its reply is dropped.

    Raises:
        TransportError: There is no such function, it failed, took too long, or returned something else.
    """
    function = named.value
    found, takes_request = _found(function)
    request = json.loads(json.dumps(body))
    keywords = {"request": request} if takes_request else {}
    started = time.perf_counter()
    try:
        async with asyncio.timeout(timeout_s):
            if inspect.iscoroutinefunction(found):
                returned = await _on_its_own(found(request["messages"], **keywords))
            else:
                returned = await in_thread(
                    lambda: found(request["messages"], **keywords), "helmbench-function"
                )
                if inspect.isawaitable(returned):
                    returned = await _on_its_own(returned)
    except TimeoutError as error:
        message = f"{function} gave no reply within {timeout_s:g} s"
        fault = Fault(FaultKind.TIMEOUT, None, "timeout", message, hint="raise --helmbench-timeout")
        raise TransportError(fault) from error
    except Exception as error:
        raise TransportError(_fault(function, error)) from error
    document = _document(function, returned)
    return RawAnswer(200, {}, json.dumps(document).encode(), (time.perf_counter() - started) * 1000)


def check_function(named: Granted[str]) -> None:
    """Import a function before it is asked first.

    Raises:
        HelmbenchError: There is none that takes the messages of a case.
    """
    try:
        _found(named.value)
    except TransportError as error:
        hint = f"\n  hint: {error.fault.hint}" if error.fault.hint else ""
        raise HelmbenchError(f"{error.fault.message}; nothing was called{hint}") from error


@cache
def _found(function: str) -> tuple[Callable[..., object], bool]:
    """Return a function, and whether it wants all of the request."""
    module, _, name = function.partition(":")
    start = str(Path.cwd())
    if start not in sys.path:
        sys.path.append(start)
    try:
        found: object = importlib.import_module(module)
        for step in name.split("."):
            found = getattr(found, step)
    except Exception as error:
        hint = "the module is looked for as Python does, and in the folder where the session was started"
        if module in sys.modules:
            hint = f"{module} is there, and has no {name}"
        elif not (isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")):
            hint = f"importing {module} by itself shows where that comes from"
        raise _no_function(function, f"cannot be imported: {_said(error)}", hint) from error
    if not callable(found):
        raise _no_function(function, f"is {type(found).__name__}, not a function")
    return found, _takes_request(function, found)


def _takes_request(function: str, found: Callable[..., object]) -> bool:
    """Return whether a function wants all of the request, before it is called first.

    Raises:
        TransportError: It takes no messages, or needs something else.
    """
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):  # of C: unknown
        return False
    takes_request = "request" in signature.parameters
    try:
        signature.bind([], **({"request": {}} if takes_request else {}))
    except TypeError as error:
        hint = "def answer(messages): …, with a parameter 'request' where it wants all of the request"
        why = f"cannot be called with the messages of a case: {error}"
        raise _no_function(function, why, hint) from error
    return takes_request


def _no_function(function: str, why: str, hint: str = "") -> TransportError:
    message = f"python:{function} {why}"
    return TransportError(Fault(FaultKind.DEAD_MODEL, None, "no_function", message, hint=hint))


async def _on_its_own(call: Awaitable[object]) -> object:
    """Return what a call returns, in a task of its own: when it cancels itself, that is its fault and not our end."""

    async def run() -> object:
        try:
            return await call
        except (Exception, asyncio.CancelledError):
            raise
        except BaseException as error:  # which would end the loop too
            raise RuntimeError(repr(error)) from error

    task = asyncio.ensure_future(run())
    try:
        return await task
    except asyncio.CancelledError as error:
        ours = asyncio.current_task()
        if ours is not None and ours.cancelling():
            raise
        raise RuntimeError("asyncio.CancelledError, although the call was not cancelled") from error


def _document(function: str, returned: object) -> object:
    """Return a reply as a chat completion.

    Raises:
        TransportError: It is neither text, nor a message that calls tools, nor a chat completion.
    """
    if isinstance(returned, str):
        return {"choices": [{"message": {"role": "assistant", "content": returned}, "finish_reason": "stop"}]}
    dump = getattr(returned, "model_dump", None)
    document = dump(mode="json") if callable(dump) else returned
    if isinstance(document, dict) and ("tool_calls" in document or "function_call" in document):
        choice = {"message": {"role": "assistant", **document}, "finish_reason": "stop"}
        document = {"choices": [choice], "error": document.get("error")}
    if isinstance(document, dict) and "choices" in document:
        try:
            return decoded_json(json.dumps(document))
        except (TypeError, ValueError, RecursionError):
            pass
    message = f"python:{function} returned {type(returned).__name__}: neither text, tool calls nor a chat completion"
    raise TransportError(Fault(FaultKind.REJECTED, None, "no_reply", message, hint="return a str"))


def _fault(function: str, error: Exception) -> Fault:
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) and not isinstance(status, bool) else None
    message = f"python:{function} raised {_said(error)}"
    if status == _TOO_MANY:
        return Fault(FaultKind.RATE_LIMITED, status, "rate_limited", message)
    refused = status is not None and 400 <= status < 500
    kind = FaultKind.REJECTED if refused else FaultKind.TRANSIENT
    return Fault(kind, status, "application_error", message)


def _said(error: Exception) -> str:
    """Return type, text and place of an exception: the innermost line of the user's own, else of any file."""
    frames = traceback.extract_tb((error.__cause__ or error).__traceback__)
    own = [frame for frame in frames if not _NOT_OF_THE_USER.match(frame.filename)]
    place = ""
    if last := (own or frames)[-1:]:
        file, start = Path(last[0].filename), Path.cwd()
        place = f" ({file.relative_to(start) if file.is_relative_to(start) else file}:{last[0].lineno})"
    return f"{type(error).__name__}: {excerpt(str(error))}{place}"

"""Answers that are made in this process: of embedded models, and of applications that are functions."""

from __future__ import annotations

import json
import time

from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.attempt import PreparedCall
from pytest_helmbench.gateway.faults import Fault, FaultKind
from pytest_helmbench.gateway.http_answers import RawAnswer, TransportError

__all__ = ["answered_here"]


async def answered_here(request: PreparedCall, timeout_s: float) -> RawAnswer:
    """Return the answer of an embedded model or a function.

    Raises:
        TransportError: There is none.
    """
    endpoint = request.call.endpoint
    if endpoint.server.function:
        from pytest_helmbench.gateway.function_calls import call_function  # for applications alone

        return await call_function(endpoint.server.function, request.body, timeout_s)
    from pytest_helmbench.gateway.baselines.baseline import (  # for floors alone
        baseline_reply,
        guarded_reply,
    )

    started = time.perf_counter()
    try:
        answer = baseline_reply if request.call.forwarded is None else guarded_reply
        document = answer(endpoint.model_id, request.body)
    except HelmbenchError as error:
        raise TransportError(Fault(FaultKind.REJECTED, None, "no_answer", str(error))) from error
    return RawAnswer(200, {}, json.dumps(document).encode(), (time.perf_counter() - started) * 1000)

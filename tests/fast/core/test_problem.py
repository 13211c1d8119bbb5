"""Errors that travel: what they say and what they hold is the same at the other end."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from pytest_helmbench.core.problem import HelmbenchError, Problem, UnreadableBenchmarkError
from pytest_helmbench.gateway.faults import Fault, FaultKind
from pytest_helmbench.gateway.permits import BudgetSpentError
from pytest_helmbench.gateway.relay.conversation import ClientGaveUpError
from pytest_helmbench.gateway.relay.refusals import BadRequestError, ItemEndedError
from pytest_helmbench.gateway.retries import CallFailedError


@pytest.mark.parametrize(
    "error",
    [
        CallFailedError(
            Fault(FaultKind.REJECTED, 400, "unsupported_parameters", "no tools"), 3, out_of_time=True
        ),
        ClientGaveUpError("test/good"),
        BadRequestError("tools: refused", "tools"),
        BudgetSpentError("no money"),
        ItemEndedError(),
        UnreadableBenchmarkError((Problem(Path("a.md"), 3, "it is wrong", "mend it"),)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_can_be_pickled(error: HelmbenchError) -> None:
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)

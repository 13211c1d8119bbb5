"""Asking marking models, which not all take a temperature."""

from __future__ import annotations

from dataclasses import replace

from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.gateway.call import Asking, Call, CaseClock, Watch
from pytest_helmbench.gateway.faults import CallFailedError, FaultKind
from pytest_helmbench.gateway.gateway import NOT_ON_RECORD

__all__ = ["Judges"]


class Judges:
    """Asks the judges of a process.

    Args:
        gateway: Where their calls go.
    """

    def __init__(self, gateway: Asking) -> None:
        self._gateway = gateway
        self._without_temperature: set[str] = set()

    async def ask(self, call: Call, clock: CaseClock, watch: Watch) -> Reply:
        """Ask once more without a temperature when the judge's provider takes none; it is asked so from then on.

        Raises:
            CallFailedError: No reply came.
            RefusedError: The session may not ask any more.
        """
        sampling = call.entry.sampling
        plain = replace(call, entry=replace(call.entry, sampling=replace(sampling, temperature=None)))
        if call.entry.id in self._without_temperature:
            return await self._gateway.ask(plain, clock, watch)
        try:
            return await self._gateway.ask(call, clock, watch)
        except CallFailedError as error:
            fault = error.fault
            takes_none = fault.kind is FaultKind.REJECTED and "temperature" in (
                fault.parameter or fault.message
            )
            if sampling.temperature is None or not (takes_none or fault.reason == NOT_ON_RECORD):
                raise
            if takes_none:
                self._without_temperature.add(call.entry.id)
            return await self._gateway.ask(plain, clock, watch)

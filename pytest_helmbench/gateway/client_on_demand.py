"""An HTTP client that is imported and opened when the first request needs it."""

from __future__ import annotations

from pytest_helmbench.gateway.http_answers import PLAIN, Client, RawAnswer, Sending
from pytest_helmbench.gateway.providers.endpoints import Endpoint

__all__ = ["ClientOnDemand"]


class ClientOnDemand:
    """A `ChatClient` from the first request on: embedded models, replays and dry runs need none.

    Its library takes a seventh of the CPU of a short session.
    """

    def __init__(self) -> None:
        self._client: Client | None = None

    async def post(
        self, endpoint: Endpoint, body: bytes, timeout_s: float, sending: Sending = PLAIN
    ) -> RawAnswer:
        """See `Client.post`."""
        if self._client is None:
            from pytest_helmbench.gateway.client import ChatClient

            self._client = ChatClient()
        return await self._client.post(endpoint, body, timeout_s, sending)

    async def close(self) -> None:
        """See `Client.close`."""
        if self._client is not None:
            await self._client.close()

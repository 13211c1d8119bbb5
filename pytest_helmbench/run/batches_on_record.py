"""The batches of a session in its results file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields

from pytest_helmbench.gateway.batches import BatchRow
from pytest_helmbench.run.commits import Commits
from pytest_helmbench.store.read.open_batches import open_batches
from pytest_helmbench.store.write.writer import Store

_COLUMNS = tuple(one.name for one in fields(BatchRow))


class BatchesOnRecord:
    """See `gateway.batches.BatchRecord`.

    Args:
        session_id: Whose they are.
    """

    def __init__(self, store: Store, commits: Commits, session_id: str) -> None:
        self._store = store
        self._commits = commits
        self._session_id = session_id

    def open_batches(self) -> Iterable[tuple[BatchRow, frozenset[str]]]:
        """Return the batches that are not read."""
        for found in open_batches(self._store.path, self._session_id):
            yield BatchRow(**{name: found.row[name] for name in _COLUMNS}), found.answered

    def put(self, row: BatchRow) -> None:
        """Write a row."""
        cells = {name: getattr(row, name) for name in _COLUMNS}
        self._store.record_batch({**cells, "keys": json.dumps(row.keys), "session_id": self._session_id})

    def drop(self, token: str) -> None:
        """Delete a row."""
        self._store.forget_batch(token)

    async def stored(self) -> None:
        """Return when all of that is on disk."""
        await self._commits.stored()

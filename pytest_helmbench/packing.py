"""The packs of a session: loaded, and ready to be worked on. Imported when a session has a pack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pytest_helmbench.engine.jobs import Target
from pytest_helmbench.engine.pack_work import PackSettings, PackWork
from pytest_helmbench.engine.packs import LoadedPack
from pytest_helmbench.engine.sandboxes import Sandboxes
from pytest_helmbench.formats.pack import load_pack
from pytest_helmbench.settings import PackRules, Settings

__all__ = ["Packing"]


class Packing:
    """Loads packs that share one sandbox room.

    Args:
        settings: Of the session.
        note: Says something in the summary.
    """

    def __init__(self, settings: Settings, note: Callable[[str], None]) -> None:
        packs = PackSettings(
            parity=settings.pack_rules is PackRules.PARITY,
            show_hidden=settings.show_hidden,
            allow_commands=settings.allow_commands,
            agent=settings.agent,
        )
        self._sandboxes = Sandboxes(settings.sandbox, pull=settings.pull, note=note)
        self._work = PackWork(packs, self._sandboxes)

    def load(self, root: Path, targets: tuple[Target, ...]) -> LoadedPack:
        """Return the pack at a folder.

        Raises:
            UnreadablePackError: Nothing of it can be used.
        """
        return LoadedPack(load_pack(root), targets, self._work)

    async def close(self) -> None:
        """Remove what was made for the rows."""
        await self._sandboxes.close()

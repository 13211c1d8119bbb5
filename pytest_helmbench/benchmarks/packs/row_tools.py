"""Tools of a pack's rows while they are run and judged: settings, files, the sandbox."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.format.pack_files import PackFiles
from pytest_helmbench.benchmarks.packs.sandboxes import Sandboxes
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome, Verdict
from pytest_helmbench.core.users_word import NOTHING_NAMED, UsersWord
from pytest_helmbench.engine.work import UnjudgedError
from pytest_helmbench.sandbox.box import Engine, Unavailable
from pytest_helmbench.sandbox.fence import Fence

__all__ = ["PackSettings", "RowTools"]


@dataclass(frozen=True, slots=True)
class PackSettings:
    """How packs are run and judged.

    Args:
        parity: By the published rules instead of those made for what models really write.
        show_hidden: Verdicts may show hidden values.
        allow_commands: Dangerous commands that a row may need.
        answer_form: How rows ask for their answers; None for what they say themselves.
    """

    parity: bool = False
    show_hidden: bool = False
    allow_commands: UsersWord[tuple[str, ...]] = NOTHING_NAMED
    answer_form: str | None = None


@dataclass(frozen=True, slots=True)
class RowTools:
    """What the rows of a pack share.

    Args:
        settings: How the session runs and judges packs.
        files: The files of the pack.
        sandboxes: The sandbox engine of this process, looked for once.
    """

    settings: PackSettings
    files: PackFiles
    sandboxes: Sandboxes

    async def engine(self) -> Engine:
        """Return what runs foreign code here.

        Raises:
            UnjudgedError: Nothing does.
        """
        engine = await self.sandboxes.engine()
        if isinstance(engine, Unavailable):
            raise UnjudgedError(Outcome(Verdict.SKIPPED, engine.code, engine.reason))
        return engine

    async def fence(self) -> Fence | None:
        """Return what keeps the user's own agent in; None where it runs with his rights, as he has said.

        Raises:
            UnjudgedError: There is nothing, and he has not.
        """
        fence = await self.sandboxes.fence()
        if isinstance(fence, Unavailable):
            raise UnjudgedError(Outcome(Verdict.SKIPPED, "no_sandbox", fence.reason))
        return fence

    async def obstacle(self, image: str | None) -> Unavailable | None:
        """Return why nothing runs foreign code here in an image; None when it can be run."""
        engine = await self.sandboxes.engine()
        return engine if isinstance(engine, Unavailable) else await engine.obstacle(image)

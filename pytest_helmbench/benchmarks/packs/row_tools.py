"""Tools of a pack's rows while they are run and judged: settings, files, the sandbox."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_helmbench.benchmarks.packs.format.pack_files import PackFiles
from pytest_helmbench.benchmarks.packs.task import BoxRoom
from pytest_helmbench.core.granted import NOT_ALLOWED, NOTHING_NAMED, Granted
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome, Verdict
from pytest_helmbench.engine.work import CaseGateway, UnjudgedError
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import AttemptResult, Ending, ModelLimits, PermitRequest, SessionLimits
from pytest_helmbench.sandbox.box import Engine, Unavailable
from pytest_helmbench.sandbox.detection import find_engine
from pytest_helmbench.sandbox.fence import Fence, find_fence
from pytest_helmbench.sandbox.images import ImageRights

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.packs.families.family import Family
    from pytest_helmbench.benchmarks.packs.task import PackTask

Answer = TypeVar("Answer")

_ENGINE, _FENCE = "the engine", "the fence"
_MEMORY, _CPUS = "boxes: MB of memory", "boxes: hundredths of a CPU"
_MEMORY_BOUNDS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@cache
def machine_room() -> BoxRoom:
    """Return what this machine has for boxes: its processors, and its memory or as much as we may use of it."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in map(Path, _MEMORY_BOUNDS):
        with suppress(OSError, ValueError):  # "max" is none
            memory = min(memory, int(path.read_text(encoding="ascii")))
    return BoxRoom(os.cpu_count() or 1, memory // 1024**2)


def _places(room: BoxRoom) -> dict[str, int]:
    """Return how many places of each name a room is; all boxes take the first name first, so no two wait in a ring."""
    return {_MEMORY: room.memory_mb, _CPUS: round(100 * room.cpus)}


def room_limits() -> tuple[ModelLimits, ...]:
    """Return the places that boxes hold while they live, in all processes of a session."""
    most = _places(machine_room())
    return tuple(ModelLimits(name, units, free=True, items=True) for name, units in most.items())


@asynccontextmanager
async def held_room(owner: CaseGateway | Sandboxes, room: BoxRoom | None) -> AsyncIterator[None]:
    """Wait until the machine has room for boxes, and hold it; None takes none.

    Raises:
        RefusedError: The session is ending.
    """
    async with AsyncExitStack() as held:
        for name, units in () if room is None else _places(room).items():
            await held.enter_async_context(owner.place(name, units))
        yield


@dataclass(frozen=True, slots=True)
class PackSettings:
    """How packs are run and judged.

    Args:
        parity: By the published rules instead of those made for what models really write.
        show_hidden: Verdicts may show hidden values.
        allow_commands: Dangerous commands that a row may need.
        answer_form: How rows ask for their answers; None for what they say themselves.
        network: `task` gives the boxes of a task the network that its file asks for; None or `none` gives none.
        build: How images are built, `offline` or `online`; None where none is.
        variables: Names of variables of this machine that tasks may read.
    """

    parity: bool = False
    show_hidden: bool = False
    allow_commands: Granted[tuple[str, ...]] = NOTHING_NAMED
    answer_form: str | None = None
    network: Granted[str] | None = None
    build: Granted[str] | None = None
    variables: Granted[tuple[str, ...]] = NOTHING_NAMED

    @property
    def gives_network(self) -> bool:
        """Whether boxes get the network that their task asks for."""
        return self.network is not None and self.network.value == "task"


@dataclass(frozen=True, slots=True)
class RowTools:
    """The values that the rows of a pack share.

    Args:
        settings: How the session runs and judges packs.
        sandboxes: The sandbox engine of this process, looked for once.
    """

    settings: PackSettings
    files: PackFiles
    sandboxes: Sandboxes

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables of this machine that tasks may read: those of `--helmbench-agent-env`."""
        return {name: os.environ[name] for name in self.settings.variables.value if name in os.environ}

    @property
    def image_rights(self) -> ImageRights:
        """The rights that the user grants over images."""
        return ImageRights(self.settings.build, self.sandboxes.pull)

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

    async def obstacle(self, family: Family, task: PackTask) -> Unavailable | None:
        """Return why a row cannot be judged here, before its model is asked; None when it can."""
        if not family.runs_code:
            return None
        denied = family.denied(task, self.settings.allow_commands)
        if denied is not None:
            return Unavailable(denied, "denied_command")
        room, machine = family.room_of(task), machine_room()
        if room is not None and room.memory_mb > machine.memory_mb:
            wanted, there = f"{room.memory_mb:,} MB of memory", f"this machine has {machine.memory_mb:,}"
            return Unavailable(f"it asks for {wanted}, and {there}", "no_memory")
        engine = await self.sandboxes.engine()
        return engine if isinstance(engine, Unavailable) else await family.obstacle(task, engine, self)


class Sandboxes:
    """Finds the engine once.

    Args:
        mode: `--helmbench-sandbox`.
        pull: Images may be fetched.
        unprotected: The user's own agent may run without a fence.
        note: Says something in the summary.
    """

    def __init__(
        self,
        mode: Granted[str],
        *,
        pull: Granted[bool],
        note: Callable[[str], None],
        unprotected: Granted[bool] = NOT_ALLOWED,
    ) -> None:
        self._unprotected = unprotected
        self._mode = mode
        self.pull = pull
        self.note = note
        self._answers: dict[str, asyncio.Task[Any]] = {}
        self._limiter = Limiter(SessionLimits(1), time.monotonic)
        self._limiter.add_models(room_limits())

    @asynccontextmanager
    async def place(self, model_id: str, units: int = 1) -> AsyncIterator[None]:
        """Hold places of this process alone, where no session counts them."""
        permit = await self._limiter.acquire(PermitRequest(model_id, 0, None, urgent=False, units=units))
        try:
            yield
        finally:
            self._limiter.settle(permit, AttemptResult(Ending.OTHER))

    async def engine(self) -> Engine | Unavailable:
        """Return what runs foreign code here, or why nothing does."""
        return await self.once(_ENGINE, partial(find_engine, self._mode, pull=self.pull))

    async def fence(self) -> Fence | Unavailable | None:
        """Return what keeps the user's own agent in, or why there is nothing; None where it may run without."""
        return await self.once(_FENCE, self._find_fence)

    async def once(self, question: str, ask: Callable[[], Coroutine[None, None, Answer]]) -> Answer:
        """Return the answer to a question that is asked once."""
        if question not in self._answers:
            self._answers[question] = asyncio.get_running_loop().create_task(ask())
        answer: Answer = await asyncio.shield(self._answers[question])
        return answer

    async def close(self) -> None:
        """Remove everything that is still there."""
        for question, asking in self._answers.items():
            if question not in (_ENGINE, _FENCE):
                asking.cancel()
        for found in await asyncio.gather(*self._answers.values(), return_exceptions=True):
            if isinstance(found, Engine | Fence):
                await found.close()

    async def _find_fence(self) -> Fence | Unavailable | None:
        found = await find_fence(self._mode)
        if isinstance(found, Unavailable) and self._unprotected:
            self.note("the agent ran with your rights (--helmbench-unprotected)")
            return None
        return found

"""The host of a judge, as rows of packs find it: one event loop and one sandbox engine per process that judges.

What is here runs in that process, and never in the session's.
"""

from __future__ import annotations

import threading
from functools import lru_cache

from pytest_helmbench.benchmarks.packs.row_material import MaterialStore
from pytest_helmbench.benchmarks.packs.sandboxes import Sandboxes
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.core.users_word import UsersWord
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.gateway.relay.relay import Relay
from pytest_helmbench.options.declarations import Options
from pytest_helmbench.sandbox.box import Unavailable

__all__ = [
    "SandboxWishes",
    "SandboxesThere",
    "host_evaluator",
    "host_loop",
    "host_material",
    "host_relay",
    "host_sandboxes",
]

_making = threading.Lock()


@dataclass(frozen=True, slots=True)
class SandboxWishes:
    """What the user has said of sandboxes; it counts on the hosts of judges, too.

    Args:
        mode: `--helmbench-sandbox`.
        pull: Images may be fetched.
    """

    mode: UsersWord[str]
    pull: UsersWord[bool]

    @classmethod
    def of(cls, settings: Options) -> SandboxWishes:
        """Return the wishes of a session or command."""
        return cls(settings.packs.sandbox, settings.packs.pull)


def host_loop() -> LoopThread:
    """Return the loop of this process, which is started when it is needed first."""
    with _making:
        return _loop()


def host_sandboxes(wishes: SandboxWishes) -> Sandboxes:
    """Return the sandboxes of this process; its engine is looked for once."""
    with _making:
        return _sandboxes(wishes)


def host_relay() -> Relay:
    """Return the relay of this process: agents on this host reach it on loopback, and nobody else does."""
    with _making:
        return _relay()


def host_material() -> MaterialStore:
    """Return what has come to this process of the files of packs."""
    with _making:
        return _material()


@lru_cache(maxsize=1)
def _relay() -> Relay:
    return Relay()


@lru_cache(maxsize=1)
def _material() -> MaterialStore:
    return MaterialStore()


@lru_cache(maxsize=1)
def _loop() -> LoopThread:
    return LoopThread()


@lru_cache
def _sandboxes(wishes: SandboxWishes) -> Sandboxes:
    return Sandboxes(wishes.mode, pull=wishes.pull, note=lambda _text: None)


@dataclass(frozen=True, slots=True)
class SandboxesThere:
    """Says which sandboxes a judge's host has: the engine's name; `none: ` and why where there is none.

    Args:
        wishes: Of the user.
    """

    wishes: SandboxWishes
    group: str = "sandboxes"
    shared: tuple[object, ...] = ()

    def takes_time(self, _reply: Reply) -> bool:
        """See `Evaluator.takes_time`."""
        return True

    def evaluate(self, _reply: Reply) -> str:
        """See `Evaluator.evaluate`."""
        engine = host_loop().run(host_sandboxes(self.wishes).engine())
        return f"none: {engine.reason}" if isinstance(engine, Unavailable) else engine.name


def host_evaluator(settings: Options) -> SandboxesThere:
    """See `KindPlaces.judge_host`."""
    return SandboxesThere(SandboxWishes.of(settings))

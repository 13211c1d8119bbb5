"""The values of `--helmbench-verifier`, the base class of running verifiers, and the error of one that does not run."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias
from urllib.parse import urlsplit

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError, HintedError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.fence import OpenPort

_OPTION = "--helmbench-verifier"
_WANTED = "[ID=]docker, [ID=]podman, [ID=]cloud, [ID=]process:COMMAND or [ID=]URL, for example http://127.0.0.1:4010"
_COMMAND_WANTED = "name the command behind it, for example 'process:python3 server.py'"
_URL_WANTED = "give scheme, host, port and perhaps a path, without user name, query or fragment"
_URL = re.compile(r"https?://", re.IGNORECASE)
_PROCESS = "process:"

Health: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Looks at a URL until a health check passes or its time is over; returns what it saw when it does not pass."""

TellPhase: TypeAlias = Callable[[str, str], None]
"""Takes a phase of a verifier's start, in the protocol's words, and a sentence about it."""


class Mode(StrEnum):
    """The ways to run a verifier, in the words of the option."""

    DOCKER = "docker"
    PODMAN = "podman"
    CLOUD = "cloud"
    PROCESS = "process"
    URL = "url"


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of the option.

    Args:
        mode: Who runs the verifier, and in what.
        url: Where the user runs it, without a trailing slash; empty in other modes.
        command: Program and arguments of a process; empty in other modes.
    """

    mode: Mode
    url: str = ""
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choices:
    """All values of the option.

    Args:
        every: For verifiers that are not named; None leaves it to the manifest.
        named: By the verifier's id.
    """

    every: Choice | None = None
    named: Mapping[str, Choice] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, verifier: str) -> Choice | None:
        """Return what was chosen for a verifier; None when that is the manifest's to say."""
        return self.named.get(verifier, self.every)


def parse_choices(texts: Granted[tuple[str, ...]]) -> Choices:
    """Read the values of `--helmbench-verifier`.

    Raises:
        HelmbenchError: One of them means nothing, or two mean the same verifier.
    """
    every: Choice | None = None
    named: dict[str, Choice] = {}
    for text in texts.value:
        name, value = _parted(text.strip())
        choice = _choice(text, value)
        if (every is not None) if name is None else (name in named):
            whom = "every verifier" if name is None else f"verifier {excerpt(name, 80)!r}"
            raise HelmbenchError(f"{_OPTION} is given twice for {whom}\n  hint: leave one of them out")
        if name is None:
            every = choice
        else:
            named[name] = choice
    return Choices(every, MappingProxyType(named))


def _parted(text: str) -> tuple[str | None, str]:
    """Return the id before the first `=` and the value behind it; a URL and a command may hold that sign themselves."""
    if "=" not in text or _URL.match(text) or text.startswith(_PROCESS):
        return None, text
    name, _, value = text.partition("=")
    return name.strip(), value.strip()


def _choice(text: str, value: str) -> Choice:
    # A password, which would be the reason to refuse a URL, is not repeated.
    shown = excerpt(re.sub(r"//[^/]*@", "//…@", text), 200)
    if _URL.match(value):
        if not is_usable(value):
            raise HelmbenchError(f"{_OPTION} is {shown!r}, which is not a usable URL\n  hint: {_URL_WANTED}")
        return Choice(Mode.URL, value.rstrip("/"))
    if value == Mode.PROCESS or value.startswith(_PROCESS):
        return Choice(Mode.PROCESS, command=_command(shown, value.removeprefix(_PROCESS)))
    if value not in (Mode.DOCKER, Mode.PODMAN, Mode.CLOUD) or text.strip().startswith("="):
        raise HelmbenchError(f"{_OPTION} is {shown!r}\n  hint: it takes {_WANTED}")
    return Choice(Mode(value))


def _command(shown: str, text: str) -> tuple[str, ...]:
    try:
        words = () if text == Mode.PROCESS else tuple(shlex.split(text))
    except ValueError as error:
        raise HelmbenchError(f"{_OPTION} is {shown!r}: {error}\n  hint: {_COMMAND_WANTED}") from error
    if not words:
        raise HelmbenchError(f"{_OPTION} is {shown!r}: there is no command\n  hint: {_COMMAND_WANTED}")
    return words


def is_usable(url: str) -> bool:
    """Return whether a server can be at a URL, which names neither user nor query."""
    try:
        parts = urlsplit(url)
        named = bool(_URL.match(url) and parts.hostname and parts.port != 0)
    except ValueError:
        return False
    more = parts.username is not None or parts.query or parts.fragment
    return named and not more and not any(map(str.isspace, url))


@dataclass(frozen=True, slots=True)
class Waits:
    """How long a health check may take to pass, in seconds.

    Args:
        container_s: Of a container that has just been started.
        process_s: Of a process that has just been started.
        url_s: Of a server that the user runs.
        again_s: Of one of ours that has failed an item and not ended: it may be busy.
    """

    container_s: float = 60.0
    process_s: float = 20.0
    url_s: float = 5.0
    again_s: float = 20.0


class AbsentVerifierError(HintedError):
    """A verifier does not run; its code is a status in the protocol's words."""


class Running:
    """A server that answers a pack's verifier requests: as it stands here, one that the session did not start.

    Args:
        url: Where we reach it, without a trailing slash.
        mode: As the protocol calls it.
    """

    def __init__(self, url: str, mode: str) -> None:
        self.url = url
        self.mode = mode

    async def end(self) -> None:
        """Wait until it has ended by itself, as far as that can be seen from here."""
        await asyncio.Event().wait()

    async def stop(self) -> None:
        """End it, if we started it."""

    async def last_words(self) -> tuple[str, str]:
        """Return how its server ended, empty while it runs, and the end of what that has said."""
        return "", ""

    async def until_well(self, path: str, health: Health) -> None:
        """Wait for the health check at a path, or for the end of the server.

        Raises:
            AbsentVerifierError: It ended, or is not well.
        """
        saw = await health_of(health(self.url + path), self.end())
        ended, said = await self.last_words()
        if ended or saw is not None:  # what has ended while a check passes was another server
            raise AbsentVerifierError("failed", f"did not come up: {ended or f'{saw} at {path}'}{said}")

    async def open_port(self, port: OpenPort) -> None:
        """Let it reach a port of ours, where it is kept from them."""
        del port  # most are not


async def health_of(looking: Awaitable[str | None], ending: Awaitable[object]) -> str | None:
    """Wait for a health check, for so long as there is something to look at.

    Args:
        looking: Returns what it saw when the check does not pass, None when it does.
        ending: Returns when the server has ended.

    Returns:
        None when the check passed, else why it did not.
    """
    tasks = (asyncio.ensure_future(looking), asyncio.ensure_future(ending))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return tasks[0].result() if tasks[0].done() else "it has ended"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

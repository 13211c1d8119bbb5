"""The values of `--helmbench-verifier`: docker, podman, process or a URL, for one verifier or for all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from types import MappingProxyType
from urllib.parse import urlsplit

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.core.users_word import UsersWord

__all__ = ["Choice", "Choices", "Mode", "parse_choices"]

_OPTION = "--helmbench-verifier"
_WANTED = "[ID=]docker, [ID=]podman, [ID=]process or [ID=]URL, for example http://127.0.0.1:4010"
_URL_WANTED = "give scheme, host, port and perhaps a path"
_SCHEMES = ("http", "https")


class Mode(StrEnum):
    """The ways to run a verifier, in the words of the option."""

    DOCKER = "docker"
    PODMAN = "podman"
    PROCESS = "process"
    URL = "url"


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of the option.

    Args:
        mode: Who runs the verifier, and in what.
        url: Where the user runs it, without a trailing slash; empty in other modes.
    """

    mode: Mode
    url: str = ""


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


def parse_choices(texts: UsersWord[tuple[str, ...]]) -> Choices:
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
    """Return the id before the first `=` and the value behind it; a URL may hold that sign itself."""
    if "=" not in text or _is_url(text):
        return None, text
    name, _, value = text.partition("=")
    return name.strip(), value.strip()


def _is_url(text: str) -> bool:
    return text.lower().startswith(tuple(f"{scheme}://" for scheme in _SCHEMES))


def _choice(text: str, value: str) -> Choice:
    # A password, which would be the reason to refuse a URL, is not repeated.
    shown = excerpt(re.sub(r"//[^/]*@", "//…@", text), 200)
    if _is_url(value):
        wrong = _wrong_with(value)
        if wrong:
            raise HelmbenchError(f"{_OPTION} is {shown!r}: {wrong}\n  hint: {_URL_WANTED}")
        return Choice(Mode.URL, value.rstrip("/"))
    if value not in (Mode.DOCKER, Mode.PODMAN, Mode.PROCESS) or text.strip().startswith("="):
        raise HelmbenchError(f"{_OPTION} is {shown!r}\n  hint: it takes {_WANTED}")
    return Choice(Mode(value))


def _wrong_with(url: str) -> str:
    """Return why a URL cannot be used; empty when it can."""
    try:
        parts = urlsplit(url)
        if not parts.hostname or parts.port == 0 or any(map(str.isspace, url)):
            return "no server can be at this URL"
    except ValueError:
        return "no server can be at this URL"
    if parts.username is not None:
        return "a URL with a user name or password is not taken"
    if parts.query or parts.fragment:
        return "a URL with a query or fragment is not taken"
    return ""

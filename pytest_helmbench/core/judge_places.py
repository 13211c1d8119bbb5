"""The value of `--helmbench-judges`: where replies are judged that take long."""

from __future__ import annotations

import re
from enum import Enum
from ipaddress import ip_address
from urllib.parse import urlsplit

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.users_word import UsersWord

__all__ = ["JudgeKind", "JudgePlaces"]

_FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_MOST = 1024
_FORMS = "auto, a number of processes, dask:ADDRESS, dask:local:N, python:MODULE:FACTORY"


class JudgeKind(Enum):
    """Who judges."""

    AUTO = "auto"
    PROCESSES = "processes"
    DASK = "dask"
    DASK_LOCAL = "dask:local"
    FACTORY = "python"


@dataclass(frozen=True, slots=True)
class JudgePlaces:
    """Where replies are judged.

    Args:
        kind: Who judges.
        count: Processes, where they are counted; 0 for none.
        target: Address of a scheduler, or `module:factory`.
    """

    kind: JudgeKind
    count: int = 0
    target: str = ""

    @property
    def asks_others(self) -> bool:
        """Whether anybody but the session's own process may judge."""
        return self.kind is not JudgeKind.PROCESSES or self.count > 0

    @classmethod
    def parse(cls, given: UsersWord[str] | None) -> JudgePlaces:
        """Read the value of the option; None where nothing is given.

        Raises:
            HelmbenchError: It is none of the forms, or the address of a scheduler that anybody could speak for.
        """
        text = "auto" if given is None else given.value
        head, _, rest = text.partition(":")
        if text == "auto":
            return cls(JudgeKind.AUTO)
        if not rest:
            return cls(JudgeKind.PROCESSES, _count(text, 0, text))
        if head == "dask" and rest.startswith("local:"):
            return cls(JudgeKind.DASK_LOCAL, _count(rest.removeprefix("local:"), 1, text))
        if head == "dask":
            return cls(JudgeKind.DASK, target=_scheduler(rest))
        if head == "python" and _FACTORY.fullmatch(rest):
            return cls(JudgeKind.FACTORY, target=rest)
        raise _unfit(text)


def _count(text: str, least: int, whole: str) -> int:
    if not (text.isascii() and text.isdigit() and least <= int(text) <= _MOST):
        raise _unfit(whole)
    return int(text)


def _scheduler(address: str) -> str:
    """Return an address of a scheduler that may be used.

    Raises:
        HelmbenchError: It has no host and port, or is neither on this machine nor behind TLS.
    """
    whole = address if "://" in address else f"tcp://{address}"
    try:
        parts = urlsplit(whole)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or port is None or parts.username is not None or parts.path.strip("/"):
        raise HelmbenchError(
            f"--helmbench-judges: {address!r} is no address of a scheduler\n  hint: dask:tls://HOST:PORT"
        )
    if parts.scheme != "tls" and not _is_here(host):
        raise HelmbenchError(
            f"--helmbench-judges: the scheduler {address} is beyond this machine and speaks no TLS: Dask unpickles what"
            " it is sent, so whoever speaks for it runs code here\n"
            "  hint: dask:tls://HOST:PORT, with the certificates in Dask's configuration (distributed.comm.tls)"
        )
    return whole


def _is_here(host: str) -> bool:
    """Return whether a host is this machine, whatever a name server says."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _unfit(text: str) -> HelmbenchError:
    return HelmbenchError(f"--helmbench-judges is {text!r}\n  hint: it takes {_FORMS}")

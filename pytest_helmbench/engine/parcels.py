"""Parcels: replies with what they are held to, as bytes that any process of this program judges."""

from __future__ import annotations

import io
import pickle
import sys
import time
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.judging.evaluator import Evaluator

__all__ = ["Finding", "OtherVersionError", "Packer", "contents", "judge", "version"]

_KEPT = 1024
_ROOMS = ("core", "files", "gateway", "judging", "sandbox", "engine", "benchmarks")


class OtherVersionError(Exception):
    """A parcel was made by another version of the program than the one that is to judge it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one reply.

    Args:
        found: What its evaluator gave; None where it raised: the session runs it again.
        ms: CPU time that it took.
        raised: The type of what it raised; empty for nothing.
    """

    found: object
    ms: float
    raised: str = ""


@lru_cache(maxsize=1)
def version() -> str:
    """Return what tells the judging code of two installations apart: a hash of its source, and Python's version."""
    package = Path(__file__).parents[1]
    digest = blake2b(digest_size=8)
    for room in _ROOMS:
        for path in sorted((package / room).rglob("*.py")):
            digest.update(path.relative_to(package).as_posix().encode())
            digest.update(path.read_bytes())
    return f"{digest.hexdigest()} (Python {sys.version_info[0]}.{sys.version_info[1]})"


class Packer:
    """Makes parcels. What many cases share is pickled once, and travels once in a parcel.

    Args:
        made_by: The version that judges are to have; empty where they run from the same files anyway.
    """

    def __init__(self, made_by: str = "") -> None:
        self._made_by = made_by
        self._parts: OrderedDict[int, tuple[object, str, bytes]] = OrderedDict()

    def parcel(self, asked: Sequence[tuple[Evaluator[object], Reply]]) -> bytes:
        """Return a parcel that `judge` takes.

        Raises:
            Exception: Whatever pickle says of a value that cannot travel.
        """
        known: dict[int, str] = {}
        parts: dict[str, bytes] = {}
        for evaluator, _ in asked:
            for part in evaluator.shared:
                if id(part) not in known:
                    name, data = self._part(part)
                    known[id(part)] = name
                    parts[name] = data
        body = io.BytesIO()
        _WithParts(body, known).dump(list(asked))
        return pickle.dumps((self._made_by, parts, body.getvalue()), pickle.HIGHEST_PROTOCOL)

    def _part(self, part: object) -> tuple[str, bytes]:
        kept = self._parts.get(id(part))
        if kept is None:
            data = pickle.dumps(part, pickle.HIGHEST_PROTOCOL)
            kept = (
                part,
                blake2b(data, digest_size=16).hexdigest(),
                data,
            )  # it lives as long as its number counts
            self._parts[id(part)] = kept
            if len(self._parts) > _KEPT:
                self._parts.popitem(last=False)
        return kept[1], kept[2]


class _WithParts(pickle.Pickler):
    def __init__(self, file: io.BytesIO, known: dict[int, str]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._known = known

    def persistent_id(self, obj: object) -> str | None:
        return self._known.get(id(obj))


class _FromParts(pickle.Unpickler):
    def __init__(self, data: bytes, parts: dict[str, bytes]) -> None:
        super().__init__(io.BytesIO(data))
        self._parts = parts

    def persistent_load(self, pid: str) -> Any:
        part = _opened.get(pid)
        if part is None:
            part = _opened[pid] = pickle.loads(self._parts[pid])
            if len(_opened) > _KEPT:
                _opened.popitem(last=False)
        return part


_opened: OrderedDict[str, object] = OrderedDict()
"""Parts that have come before: a validator that was made for a schema serves all of its replies."""


def contents(parcel: bytes) -> list[tuple[Evaluator[object], Reply]]:
    """Return what is in a parcel of our own.

    Raises:
        OtherVersionError: It was made by another version.
    """
    made_by, parts, body = pickle.loads(parcel)
    if made_by and made_by != version():
        raise OtherVersionError(f"the session runs {made_by}, this judge {version()}")
    asked: list[tuple[Evaluator[object], Reply]] = _FromParts(body, parts).load()
    return asked


def judge(parcel: bytes) -> bytes:
    """Judge the replies of a parcel: what a judge process runs.

    Returns:
        The findings, pickled, in the order of the replies.

    Raises:
        OtherVersionError: It was made by another version.
    """
    return pickle.dumps([_finding(*asked) for asked in contents(parcel)], pickle.HIGHEST_PROTOCOL)


def _finding(evaluator: Evaluator[object], reply: Reply) -> Finding:
    began = time.thread_time()
    try:
        found = evaluator.evaluate(reply)
    except Exception as error:  # noqa: BLE001 - the session runs it again, and tells what is raised
        return Finding(None, (time.thread_time() - began) * 1000, type(error).__name__)
    return Finding(found, (time.thread_time() - began) * 1000)

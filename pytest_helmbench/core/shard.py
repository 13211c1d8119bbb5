"""Shards: equal shares of one plan, by a hash of each case."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from math import nextafter

from pytest_helmbench.core.light_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several shares.

    Args:
        index: From 1.
    """

    index: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the shard that `2/8` names; the option has looked at it."""
        index, _, of = text.partition("/")
        return cls(int(index), int(of))

    @property
    def text(self) -> str:
        """`2/8`."""
        return f"{self.index}/{self.of}"

    @property
    def name(self) -> str:
        """For people: `shard 2 of 8`."""
        return f"shard {self.index} of {self.of}"

    @property
    def file_name(self) -> str:
        """Name of its results file where the user names none: two shards never share one."""
        return f"helmbench-{self.index}of{self.of}.db"


def hashed_share(key: str, of: int) -> int:
    """Return the share of a key, from 1: the same one whatever else is selected, on any machine and Python."""
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % of + 1


def case_share(benchmark: str, code: str, repetition: int, of: int) -> int:
    """Return the share of a case, on every model."""
    return hashed_share(f"{benchmark}\0{code}\0{repetition}", of)


def share_of(amount: float, part: Fraction) -> float:
    """Return a part of an amount, rounded down: those of all shares together are never more than the amount."""
    exact = Fraction(amount) * part
    found = float(exact)
    return nextafter(found, 0.0) if Fraction(found) > exact else found

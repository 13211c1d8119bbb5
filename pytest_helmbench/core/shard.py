"""Shards: equal shares of one plan, told apart by a hash of each case, or by what each has taken before."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Mapping
from fractions import Fraction
from math import nextafter

from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["Shard", "hashed_share", "longest_first", "share_of"]


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several shares.

    Args:
        index: From 1.
        of: How many there are.
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
        """Of its results file where none is named: two shards never share one."""
        return f"helmbench-{self.index}of{self.of}.db"


def hashed_share(key: str, of: int) -> int:
    """Return the share of a case, from 1: the same one whatever else is selected, on any machine and Python."""
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % of + 1


def longest_first(weights: Mapping[str, float], of: int) -> dict[str, int]:
    """Return the share of each case, from 1: the longest first, each to whoever has least.

    Args:
        weights: What each case has taken, 0 or more; the same in every shard, in any order.
        of: How many shares there are.
    """
    loads = [(0.0, number) for number in range(1, of + 1)]
    found = {}
    for key in sorted(weights, key=lambda key: (-weights[key], key)):
        load, number = loads[0]
        heapq.heapreplace(loads, (load + weights[key], number))
        found[key] = number
    return found


def share_of(amount: float, part: Fraction) -> float:
    """Return a part of an amount, rounded down: those of all shares together are never more than the amount."""
    exact = Fraction(amount) * part
    found = float(exact)
    return nextafter(found, 0.0) if Fraction(found) > exact else found

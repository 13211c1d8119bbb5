"""Ids of rows: in the order in which they were made, and never the same."""

from __future__ import annotations

import os
from uuid import UUID

from pytest_helmbench.core.ids import Ids, new_id


def test_ids_come_in_order_though_the_clock_stands_or_goes_back() -> None:
    times = iter([1_764_306_000_123_000_000] * 500 + [1_764_305_000_000_000_000] * 500)
    make = Ids(lambda: next(times), os.urandom)

    made = [make() for _ in range(1000)]

    assert made == sorted(made)
    assert int(made[0][:13].replace("-", ""), 16) == 1_764_306_000_123


def test_ids_of_one_moment_differ_in_their_random_bits() -> None:
    now_ns = 1_764_306_000_123_000_000
    assert len({Ids(lambda: now_ns, os.urandom)() for _ in range(1000)}) == 1000
    assert Ids(lambda: now_ns, lambda size: b"\xff" * size)().endswith("-bfff-ffffffffffff")
    assert Ids(lambda: now_ns, lambda size: b"\0" * size)().endswith("-8000-000000000000")


def test_an_id_is_a_uuid_of_version_7() -> None:
    found = UUID(new_id())
    assert (found.version, str(found.variant)) == (7, "specified in RFC 4122")

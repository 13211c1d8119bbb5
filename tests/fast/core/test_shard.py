"""Shares of a plan: every case is in one of them, the same one in every process, whatever the order."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from pytest_helmbench.core.shard import Shard, case_share, hashed_share, share_of

_KEYS = st.lists(st.text(max_size=12), unique=True, max_size=60)


def test_a_shard_has_a_name_for_people_and_a_file_of_its_own() -> None:
    shard = Shard.parse("2/8")

    assert (shard.index, shard.of, shard.text) == (2, 8, "2/8")
    assert (shard.name, shard.file_name) == ("shard 2 of 8", "helmbench-2of8.db")


def test_the_hash_is_the_same_on_every_machine_and_python() -> None:
    assert [hashed_share(f"test/good\0P1-B1-S1-C1-PT{n}", 4) for n in range(1, 9)] == [1, 4, 4, 3, 4, 1, 2, 2]
    assert hashed_share("\ud800", 3) in (1, 2, 3)  # the name of a file that is not UTF-8


@given(_KEYS, st.integers(1, 12))
def test_the_shares_are_about_equally_large(keys: list[str], of: int) -> None:
    placed = [case_share("tree", key, repetition, of) for key in keys for repetition in range(1, 200)]

    assert set(placed) <= set(range(1, of + 1))
    assert not keys or max(map(placed.count, range(1, of + 1))) < 2 * len(placed) / of + 20


@given(
    st.floats(1e-9, 1e6),
    st.lists(st.integers(0, 10**9), min_size=1, max_size=20).filter(lambda parts: sum(parts) > 0),
)
def test_the_shares_of_a_sum_are_never_more_than_the_sum(amount: float, parts: list[int]) -> None:
    shares = [share_of(amount, Fraction(part, sum(parts))) for part in parts]

    assert sum(map(Fraction, shares)) <= Fraction(amount)
    assert sum(shares) >= amount * (1 - 1e-9)

"""free_response: whether a reply says an accepted answer and no rejected one."""

from pytest_helmbench.benchmarks.packs.families.free_response.family import FAMILY

__all__ = ["FAMILY"]

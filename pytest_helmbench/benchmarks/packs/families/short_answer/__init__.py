"""short_answer: whether the final statement of a reply is an accepted answer."""

from pytest_helmbench.benchmarks.packs.families.short_answer.family import FAMILY

__all__ = ["FAMILY"]

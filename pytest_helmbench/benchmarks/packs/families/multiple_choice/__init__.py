"""multiple_choice: which choice a reply settles on."""

from pytest_helmbench.benchmarks.packs.families.multiple_choice.family import FAMILY

__all__ = ["FAMILY"]

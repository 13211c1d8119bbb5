"""Code completions: the candidate in one sandbox, its tests in another, and nothing but data between them."""

from pytest_helmbench.benchmarks.packs.families.code_completion.family import FAMILY

__all__ = ["FAMILY"]

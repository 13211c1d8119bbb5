"""A patch to a repository judged: read, checked against the path policy, applied with real git, and tested."""

from pytest_helmbench.benchmarks.packs.families.repo_patch.family import FAMILY

__all__ = ["FAMILY"]

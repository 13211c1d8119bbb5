"""A workspace judged by a pack's own checker, in a fresh sandbox and from outside of the workspace."""

from pytest_helmbench.benchmarks.packs.families.terminal_task.family import FAMILY

__all__ = ["FAMILY"]

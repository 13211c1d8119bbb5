"""Where things stand in the checkout, whatever folder a test is in."""

from __future__ import annotations

from pathlib import Path

__all__ = ["DATA", "ROOT", "SHARED", "SUPPORT", "TESTS"]

SUPPORT = Path(__file__).resolve().parent
TESTS = SUPPORT.parent
ROOT = TESTS.parent
DATA = SUPPORT / "data"
SHARED = ROOT.parent / "shared"
"""Reference material beside the checkout; tests that use it do without where it is not."""

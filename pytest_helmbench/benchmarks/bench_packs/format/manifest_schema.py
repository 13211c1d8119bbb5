"""The JSON Schema of a Bench Pack's manifest, for editors; `manifest.py` says more of what is wrong."""

from __future__ import annotations

from pytest_helmbench.files.format_schema import shipped_schema

__all__ = ["BENCH_PACK_SCHEMA"]

BENCH_PACK_SCHEMA = shipped_schema("bench_pack", __name__)

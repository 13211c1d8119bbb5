"""What the commands say of benchmark packs: their rows, a row's prompt, their problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from pytest_helmbench.benchmarks.packs.format.pack_loader import Pack
from pytest_helmbench.benchmarks.packs.format.prompt_texts import messages_of
from pytest_helmbench.benchmarks.packs.task import PackRule
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.row_outline import RowRef
from pytest_helmbench.reports.tables import table

__all__ = ["find_row", "first_rows", "pack_rows", "pack_table", "row_case"]

_HEAD = ("row", "family", "groups")


def pack_rows(pack: Pack) -> list[dict[str, Any]]:
    """Return one mapping per healthy row, in file order; nothing hidden is among it."""
    return [
        {
            "benchmark": pack.id,
            "code": ref.id,
            "family": ref.family,
            "groups": dict(ref.groups),
            "skipped": ref.skip_reason,
            "cases": 1,
            "path": str(ref.path),
            "line": ref.line,
        }
        for ref in pack.rows
    ]


def pack_table(pack: Pack) -> Iterator[str]:
    """Yield the rows of a pack, its totals and its broken rows."""
    cells = [
        (ref.id, ref.family, ", ".join(f"{name}={value}" for name, value in ref.groups)) for ref in pack.rows
    ]
    yield f"{pack.id} {pack.version}"
    yield from table(_HEAD, cells, left=_HEAD)
    families = Counter(ref.family for ref in pack.rows)
    yield f"{len(pack.rows)} rows ({', '.join(f'{name} {count}' for name, count in families.items()) or 'none'})"
    broken = len(pack.broken) + bool(pack.problems)
    if broken:
        yield f"broken, not listed: {broken} (`helmbench check {pack.root}` says why)"


def find_row(packs: Sequence[Pack], code: str) -> tuple[Pack, RowRef] | None:
    """Return the row with an id."""
    found = ((pack, ref) for pack in packs for ref in pack.rows if ref.id == code)
    return next(found, None)


def row_case(pack: Pack, ref: RowRef, system_prompt: str | None) -> Case:
    """Return what would be sent for a row; for an agent, the message that it starts from.

    Raises:
        ConfigError: The row cannot be read.
    """
    task = pack.task(ref)
    return Case(ref.id, messages_of(task, system_prompt), None, PackRule(task))


def first_rows(pack: Pack) -> list[RowRef]:
    """Return the first row of each family."""
    found: dict[str, RowRef] = {}
    for ref in pack.rows:
        found.setdefault(ref.family, ref)
    return list(found.values())

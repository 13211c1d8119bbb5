"""The texts of `eval` behind their three forms: a text, an object that holds one, a file of the pack."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.format.row_fields import is_reference
from pytest_helmbench.benchmarks.packs.task import MaterializationError, PackTask

__all__ = ["eval_text"]


def eval_text(task: PackTask, name: str) -> str | None:
    """Return a solution, patch or answer of `eval` as text, whichever of its forms the row has.

    Args:
        task: Compiled.
        name: `gold_patch`, `reference_solution`, `canonical_solution` or `reference_answer`.

    Returns:
        None where the row has none.

    Raises:
        MaterializationError: It is a file that cannot be read.
    """
    value = task.eval_value(name)
    if isinstance(value, dict) and is_reference(value):
        return _file_text(task, str(value["path"]))
    if isinstance(value, dict):
        return str(value.get("patch", value.get("code", "")))
    return None if value is None else str(value)


def _file_text(task: PackTask, path: str) -> str:
    for asset in task.eval_files:
        if asset.path == path.removesuffix("/") and asset.source is not None:
            try:
                return asset.source.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise MaterializationError(
                    f"{task.id}: a file that eval names cannot be read as text"
                ) from error
    raise MaterializationError(f"{task.id}: a file that eval names belongs to no pack")

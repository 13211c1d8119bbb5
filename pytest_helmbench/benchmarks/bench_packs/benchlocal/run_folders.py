"""Runs of Bench Packs as files of the BenchLocal app: a folder per run with `summary.json` and `events.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from pytest_helmbench.benchmarks.bench_packs.benchlocal.app_run import DesktopRun, desktop_run
from pytest_helmbench.core.whole_file import put_in_place
from pytest_helmbench.store.fault import StoreError

__all__ = ["write_benchlocal"]


def write_benchlocal(folder: Path, db: Path, run_ids: Iterable[int], note: Callable[[str], None]) -> None:
    """Write the runs of a session that are of Bench Packs; all texts are in them. A run written before is replaced.

    Args:
        folder: As the app's `run_storage_dir`; made when missing.
        db: Results file.
        run_ids: Of the session.
        note: Says something in the summary.
    """
    written: set[int] = set()
    try:
        for run_id in run_ids:
            if run_id in written:
                continue
            found = desktop_run(db, run_id, folder=folder, with_text=True)
            if found is not None:
                written.update(found.runs)
                note(f"BenchLocal run in {_write(folder, found)}")
    except StoreError as error:
        note(f"no BenchLocal run: {error}")
    except OSError as error:
        note(f"{folder}: the BenchLocal run cannot be written: {error.strerror}")


def _write(folder: Path, run: DesktopRun) -> Path:
    """Write a run; its summary comes last, since the app lists only folders that have one."""
    place = folder / run.pack / run.id
    place.mkdir(parents=True, exist_ok=True)
    put_in_place(place / "events.jsonl", "".join(f"{json.dumps(event)}\n" for event in run.events))
    put_in_place(place / "summary.json", json.dumps(run.summary, indent=2))
    return place

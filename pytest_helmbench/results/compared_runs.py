"""A run as comparisons take it, from a results file or from a baseline file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.store.benchmark_places import BenchmarkKey, seen_from
from pytest_helmbench.store.judged_replies import JudgedCase, judged_cases
from pytest_helmbench.store.run_queries import RunDetail, RunSummary, run_detail

__all__ = ["ComparedRun", "RunRef"]


@dataclass(frozen=True, slots=True)
class RunRef:
    """Where a run stands.

    Args:
        path: Results file, or baseline file.
        run_id: Its number there.
        name: What people call it: `run 12`, `run 3 of old.db`.
        session_id: Of its session.
        benchmark: What names its benchmark; of a baseline file its name alone.
        model: Id.
        status: How it ended.
        scope: `by_outcome` makes no fair sample.
    """

    path: Path
    run_id: int
    name: str
    session_id: str
    benchmark: BenchmarkKey
    model: str
    status: str
    scope: str

    @classmethod
    def of(cls, path: Path, run: RunSummary, own: Path) -> RunRef:
        """Return where a stored run stands; runs of our own file are called by number alone."""
        name = f"run {run.id}" if path == own else f"run {run.id} of {path.name}"
        key = seen_from(run.key, path, own)
        return cls(path, run.id, name, run.session_id, key, run.model, run.status, run.scope)


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run with its judged replies.

    Args:
        ref: Where it stands.
        benchmark_hash: Of its content.
        settings: That it was made with; empty where unknown.
        cases: By code.
        sample: How it was asked for: `--helmbench-sample=0.2, seed 1`; empty for all.
    """

    ref: RunRef
    benchmark_hash: str
    settings: Mapping[str, object]
    cases: Mapping[str, JudgedCase]
    sample: str = ""

    @classmethod
    def stored(cls, ref: RunRef) -> ComparedRun | None:
        """Return a run of a results file; None where the file has it no more.

        Raises:
            StoreError: The file cannot be read.
        """
        detail: RunDetail | None = run_detail(ref.path, ref.run_id)
        if detail is None:
            return None
        cases = judged_cases(ref.path, ref.run_id)
        asked = detail.settings.get("sample")
        sample = "" if asked is None else f"--helmbench-sample={asked}"
        return cls(ref, detail.benchmark_hash, detail.settings, cases, sample)

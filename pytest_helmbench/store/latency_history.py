"""The mean latency of each case over all runs of a results file, by which shards are made equally long."""

from __future__ import annotations

from pathlib import Path

from pytest_helmbench.store.reading import reading

__all__ = ["latencies"]

_LATENCIES = """
    SELECT benchmarks.name, llms.name, results.code, avg(results.latency_ms)
    FROM results JOIN evaluation_runs AS runs ON runs.id = results.run_id
    JOIN benchmarks ON benchmarks.id = runs.benchmark_id JOIN llms ON llms.id = runs.llm_id
    WHERE results.latency_ms IS NOT NULL AND results.outcome IN ('passed', 'failed')
    GROUP BY benchmarks.name, llms.name, results.code
"""


def latencies(path: Path) -> dict[tuple[str, str, str], float]:
    """Return the mean latency in ms of each judged case, by benchmark, model and code.

    Raises:
        StoreError: The file is missing or no results file.
    """
    with reading(path) as conn:
        return {(benchmark, model, code): mean for benchmark, model, code, mean in conn.execute(_LATENCIES)}

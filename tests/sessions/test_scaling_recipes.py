"""The recipes of docs/scaling.md: their shell runs, scheduler by scheduler, and the merged run is whole."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from commands import programs
from provider import Provider
from trees import category, clear_environment, rows, write_tree

_PAGE = (Path(__file__).resolve().parents[2] / "docs" / "scaling.md").read_text(encoding="utf-8")
_DOCUMENTS = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", _PAGE, re.DOTALL)]
_SHARDS = 2  # of the four that the page has: each is a session in a process of its own
_MERGE = "helmbench merge {}/*.db -o helmbench.db"


def _shell(step: str, environ: Mapping[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _matrix() -> list[tuple[str, dict[str, str]]]:
    jobs = next(document for document in _DOCUMENTS if "jobs" in document)["jobs"]
    run = next(step["run"] for step in jobs["shard"]["steps"] if step.get("name") == "Benchmark")
    merge = [step["run"] for step in jobs["merge"]["steps"] if step.get("name") in ("Merge", "Report")]
    moved = "mkdir shards; mv helmbench-*of*.db* shards/"  # what the artifacts do
    assert jobs["shard"]["strategy"]["matrix"]["shard"] == [1, 2, 3, 4]
    shards = [(run, {"SHARD": f"{number}/{_SHARDS}"}) for number in range(1, _SHARDS + 1)]
    return [*shards, (moved, {}), *((step, {"GITHUB_STEP_SUMMARY": "summary.md"}) for step in merge)]


def _indexed_job() -> list[tuple[str, dict[str, str]]]:
    spec = next(document for document in _DOCUMENTS if document.get("kind") == "Job")["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    count = next(one["value"] for one in container["env"] if one["name"] == "HELMBENCH_SHARDS")
    assert int(count) == spec["completions"]
    step = container["args"][0].replace("/results/", "results/")
    pods = [
        (f"mkdir -p results; {step}", {"HELMBENCH_SHARDS": str(_SHARDS), "JOB_COMPLETION_INDEX": str(index)})
        for index in range(_SHARDS)
    ]
    return [*pods, (_MERGE.format("results"), {})]


def _slurm() -> list[tuple[str, dict[str, str]]]:
    script = next(block for block in re.findall(r"```bash\n(.*?)```", _PAGE, re.DOTALL) if "#SBATCH" in block)
    count = str(_SHARDS)
    array = {"SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": count, "SLURM_ARRAY_TASK_COUNT": count}
    tasks = [(script, {**array, "SLURM_ARRAY_TASK_ID": str(number)}) for number in range(1, _SHARDS + 1)]
    return [*tasks, (_MERGE.format("shards"), {})]


@pytest.mark.parametrize("steps", [_matrix, _indexed_job, _slurm])
def test_the_shell_of_a_recipe_runs_and_the_run_is_whole(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch, steps: object
) -> None:
    clear_environment(monkeypatch)
    provider.answers(text='{"category": "RISK", "response": ""}')
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 8)})
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    monkeypatch.setenv("PATH", f"{programs()}{os.pathsep}{os.environ['PATH']}")
    assert callable(steps)

    for step, environ in steps():
        _shell(step, environ)

    assert rows(pytester.path / "helmbench.db", "SELECT status, scope, total_tests FROM evaluation_runs") == [
        ("complete", "whole", 8)
    ]
    assert provider.count == 8

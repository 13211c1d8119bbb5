"""The prompts in Inspect AI: one sample each, its own log at the end."""

from __future__ import annotations

import json
import os
from pathlib import Path

import inspect_ai
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

if __name__ == "__main__":
    cases = [
        json.loads(line) for line in Path(os.environ["PROMPTS"]).read_text(encoding="utf-8").splitlines()
    ]
    samples = [Sample(id=case["name"], input=case["prompt"], target=case["target"]) for case in cases]
    inspect_ai.eval(
        inspect_ai.Task(dataset=MemoryDataset(samples), solver=generate(), scorer=includes()),
        model="openai-api/mock/mock-1",
        max_connections=int(os.environ["CONCURRENCY"]),
        max_samples=int(os.environ["CONCURRENCY"]),
        display="none",
        log_dir="logs",
    )

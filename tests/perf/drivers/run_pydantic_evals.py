"""The prompts in pydantic-evals: one case each, a report as JSON at the end."""

from __future__ import annotations

import json
import os
from pathlib import Path

from openai import AsyncOpenAI
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains
from pydantic_evals.reporting import EvaluationReportAdapter

client = AsyncOpenAI(base_url=os.environ["BASE_URL"], api_key="mock")


async def ask(prompt: str) -> str:
    """Return the reply."""
    reply = await client.chat.completions.create(
        model="mock-1", messages=[{"role": "user", "content": prompt}]
    )
    return reply.choices[0].message.content or ""


if __name__ == "__main__":
    cases = [
        json.loads(line) for line in Path(os.environ["PROMPTS"]).read_text(encoding="utf-8").splitlines()
    ]
    dataset = Dataset(
        name="mock",
        cases=[
            Case(name=case["name"], inputs=case["prompt"], expected_output=case["target"]) for case in cases
        ],
        evaluators=[Contains(value="HANDOFF")],
    )
    report = dataset.evaluate_sync(ask, max_concurrency=int(os.environ["CONCURRENCY"]), progress=False)
    Path("report.json").write_bytes(EvaluationReportAdapter.dump_json(report))

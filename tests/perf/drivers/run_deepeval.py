"""The prompts in DeepEval: calls by hand, since it makes none itself, then `evaluate()`."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import PatternMatchMetric
from deepeval.test_case import LLMTestCase
from openai import AsyncOpenAI

CONCURRENCY = int(os.environ["CONCURRENCY"])


async def ask_all(prompts: list[str]) -> list[str]:
    """Return the replies in order."""
    client = AsyncOpenAI(base_url=os.environ["BASE_URL"], api_key="mock")
    places = asyncio.Semaphore(CONCURRENCY)

    async def ask(prompt: str) -> str:
        async with places:
            reply = await client.chat.completions.create(
                model="mock-1", messages=[{"role": "user", "content": prompt}]
            )
        return reply.choices[0].message.content or ""

    return await asyncio.gather(*map(ask, prompts))


if __name__ == "__main__":
    cases = [
        json.loads(line) for line in Path(os.environ["PROMPTS"]).read_text(encoding="utf-8").splitlines()
    ]
    replies = asyncio.run(ask_all([case["prompt"] for case in cases]))
    evaluate(
        [
            LLMTestCase(
                name=case["name"],
                input=case["prompt"],
                actual_output=reply,
                expected_output=case["target"],
            )
            for case, reply in zip(cases, replies, strict=True)
        ],
        metrics=[PatternMatchMetric(pattern=r".*HANDOFF.*")],
        async_config=AsyncConfig(max_concurrent=CONCURRENCY),
        display_config=DisplayConfig(
            show_indicator=False, print_results=False, inspect_after_run=False, results_folder="."
        ),
        cache_config=CacheConfig(write_cache=False),
    )

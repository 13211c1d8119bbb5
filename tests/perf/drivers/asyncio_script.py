"""The script that a user would write without a tool: asyncio, the openai SDK, a semaphore, one JSON file at the end."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from openai import AsyncOpenAI

SCHEMA = {
    "type": "object",
    "properties": {"category": {"type": "string", "enum": ["CHAT", "HANDOFF"]}},
    "required": ["category"],
    "additionalProperties": False,
}


async def main(lines: list[str]) -> list[dict[str, object]]:
    """Ask every prompt and judge it."""
    client = AsyncOpenAI(base_url=os.environ["BASE_URL"], api_key="mock")
    places = asyncio.Semaphore(int(os.environ["CONCURRENCY"]))

    async def ask(prompt: str) -> dict[str, object]:
        async with places:
            reply = await client.chat.completions.create(
                model="mock-1",
                messages=[{"role": "user", "content": prompt}],
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA},
                },
            )
        text = reply.choices[0].message.content or ""
        return {"prompt": prompt, "passed": json.loads(text)["category"] == "HANDOFF", "text": text}

    return await asyncio.gather(*(ask(json.loads(line)["prompt"]) for line in lines))


if __name__ == "__main__":
    found = asyncio.run(main(Path(os.environ["PROMPTS"]).read_text(encoding="utf-8").splitlines()))
    Path("results.json").write_text(json.dumps(found), encoding="utf-8")

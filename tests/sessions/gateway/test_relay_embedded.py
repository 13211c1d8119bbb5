"""Embedded models answer through the relay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from relays import TOOLS, body, client_of, error_of, open_relay

from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.gateway.permits import ModelLimits


async def test_embedded_models_answer_through_the_relay() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["x", "list"]}}, "required": ["a"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}

    async with open_relay(
        "http://unused.invalid/v1", [ModelLimits("baseline/lexical", 8, free=True)]
    ) as setup:
        item, address = await setup.item(entry=ModelEntry("baseline/lexical"))
        async with client_of(address) as client:

            async def ask(**options: Any) -> Any:
                parts: Any = [{"type": "text", "text": "Please list all files."}]
                messages: Any = [
                    {"role": "developer", "content": "Be brief"},
                    {"role": "user", "content": parts},
                ]
                reply = await client.chat.completions.create(model="m", messages=messages, **options)
                return reply.choices[0]

            assert (await ask(tools=TOOLS)).message.content == "Please list all files."
            assert (await ask(response_format=wanted)).message.content == '{"a": "list"}'
        assert item.sums.usage.cost_usd == 0.0


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": 5}}}},
            "cannot be read",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"$ref": "elsewhere"}}}},
            "refers to 'elsewhere', which is not part of it",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"minItems": 10**9}}}},
            "minItems is 1e+09: it answers up to 1000",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": [[]] * 6_000}}},
            "have more than 5000 parts",
        ),
    ],
)
async def test_embedded_models_survive_any_request(fields: Mapping[str, Any], sentence: str) -> None:
    async with open_relay("http://unused.invalid/v1", [ModelLimits("baseline/first", 8, free=True)]) as setup:
        item, address = await setup.item(entry=ModelEntry("baseline/first"))
        answered = await setup.send(address, json=body(**fields))
        assert (answered.status, error_of(answered)["code"]) == (400, "no_answer")
        assert sentence in error_of(answered)["message"]
        await item.end()

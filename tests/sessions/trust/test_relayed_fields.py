"""Fields that packs, agents and the user's own tests may send: each refused one beside one that passes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from gateways import open_gateway
from inner_pytest import run_pytest
from provider import Provider
from relays import body, converse, open_relay
from trees import rows

from pytest_helmbench.gateway.relay.conversation import Conversation

_REMOTE = {"url": "https://attacker.example/x.png"}
_INLINE = {"url": "data:image/png;base64,AAAA"}


def _seen(part: Mapping[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "Look"}, part]}]}


@pytest.mark.parametrize(
    ("refused", "passes", "field"),
    [
        ({"fallbacks": ["a/b"]}, {"temperature": 0.5}, "fallbacks"),
        ({"api_base": "https://x"}, {"top_k": 4}, "api_base"),
        ({"Model": "c/d"}, {"x_forward": 1}, "Model"),
        (
            _seen({"type": "image_url", "image_url": _REMOTE}),
            _seen({"type": "image_url", "image_url": _INLINE}),
            "messages",
        ),
        (
            _seen({"type": "file", "file": {"file_id": "f"}}),
            _seen({"type": "file", "file": {"file_data": "data:a"}}),
            "messages",
        ),
        (
            {"messages": [{"role": "user", "content": [[{"image_url": _REMOTE}]]}]},
            {"messages": [{"role": "assistant", "content": "x", "annotations": [_REMOTE]}]},
            "messages",
        ),
    ],
)
async def test_a_field_that_reaches_further_is_refused_and_its_twin_passes(
    provider: Provider, refused: dict[str, Any], passes: dict[str, Any], field: str
) -> None:
    async with open_gateway() as coordinator, converse(coordinator.gateway, provider.url) as item:
        raw = await item.complete({**body(), **refused})
        assert (raw.status, json.loads(raw.body)["error"]["param"]) == (400, field)
        assert len(item.totals.open_faults) == 1
        assert (await item.complete({**body(), **passes})).status == 200
        assert len(item.totals.open_faults) == 1  # no other answer makes it good
    assert provider.count == 1


async def test_the_users_own_code_may_ask_all_but_another_model_address_or_key(provider: Provider) -> None:
    async with open_gateway() as coordinator:
        item = converse(coordinator.gateway, provider.url)
        line = replace(item.line, trusted=True)
        own = Conversation(coordinator.gateway, line, item._clock, item._watch)
        assert (await own.complete(body(plugins=[1], x_mine=2, web_search_options={}))).status == 200
        for name in ("models", "fallbacks", "api_base", "api_key", "custom_llm_provider"):
            assert (await own.complete({**body(), name: ["x"]})).status == 400
    assert provider.count == 1
    assert provider.requests[0].body["x_mine"] == 2


async def test_a_pack_that_probes_paths_is_left_alone_and_one_that_needs_them_is_an_error(
    provider: Provider,
) -> None:
    async with open_relay(provider.url) as setup:
        item, address = await setup.item()
        assert (await setup.send(address, "/props", method="GET")).status == 404
        assert not item.totals.open_faults
        assert (await setup.send(address, "/images/generations", json={})).status == 404
        assert "there is no /images/generations here" in str(item.totals.open_faults[0])


def test_what_the_relay_refuses_a_hand_written_test_is_no_failure(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    (pytester.path / "test_own.py").write_text(
        """
def test_images(helmbench_openai):
    helmbench_openai.images.generate(model="m", prompt="x")

def test_files(helmbench_openai):
    helmbench_openai.files.list()

def test_nothing(helmbench_openai):
    assert helmbench_openai is not None
"""
    )
    result = run_pytest(
        pytester, "test_own.py", f"--helmbench-base-url={provider.url}", "--helmbench-model=test/good"
    )
    result.assert_outcomes(passed=1, errors=2)
    found = rows(pytester.path / "helmbench.db", "SELECT code, outcome, reason FROM results ORDER BY code")
    assert found == [
        ("test_own.py::test_files", "error", "refused_request"),
        ("test_own.py::test_images", "error", "refused_request"),
        ("test_own.py::test_nothing", "skipped", "no_model_call"),
    ]

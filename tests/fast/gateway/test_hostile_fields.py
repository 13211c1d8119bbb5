"""Requests of packs and agents that reach further than their own words, each refused; what looks like one passes."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.gateway.limits import highest_cost_usd
from pytest_helmbench.gateway.providers.endpoints import replay_endpoint
from pytest_helmbench.gateway.relay.refusals import BadRequestError, check_request, refusals_of_stated
from pytest_helmbench.gateway.requests import bound_completion, completion_bound, most_tokens

_AWAY = "https://attacker.example/x.png"
_HERE = "data:image/png;base64,AAAA"
_FUNCTION = {"type": "function", "function": {"name": "f"}}


def _part(kind: str, **fields: Any) -> dict[str, Any]:
    """Return a message with a part of a kind."""
    parts = [{"type": "text", "text": "Look"}, {"type": kind, **fields}]
    return {"messages": [{"role": "user", "content": parts}]}


def _message(**fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "x", **fields}]}


def _chat(**fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "x"}], **fields}


_REFUSED = [
    _part("file", file={"filename": "a.pdf", "file_data": _AWAY}),
    _part("image", image=_AWAY),
    _part("video", video=[_HERE, _AWAY]),
    _part("image_url", imageUrl=_AWAY),
    _part("input_audio", input_audio={"data": _AWAY, "format": "wav"}),
    _part("image", source={"type": "url", "href": _AWAY}),
    _part("image_url", image_url={"url": "file:///etc/passwd"}),
    _part("image_url", image_url={"url": "//attacker.example/x"}),
    _part("image", image="//attacker.example/x"),
    _part("file", file={"file_id": "f"}),
    _part("file", file={"id": "f"}),
    _message(role="assistant", audio={"id": "audio_1"}),
    _message(role="assistant", Audio={"ID": "audio_1"}),
    _part("tool_result", content=[{"type": "image", "source": {"url": _AWAY}}]),
    _message(images=[_AWAY]),
    _message(attachments=[{"type": "image", "path": "/etc/passwd"}]),
    _message(content={"type": "image_url", "image_url": {"url": _AWAY}}),
    _chat(prediction={"type": "content", "content": [{"type": "image_url", "image_url": {"url": _AWAY}}]}),
    *(_chat(**{name: "a/b"}) for name in ("Model", "MODEL", "model ", "Models", "extra-headers")),
    *(_chat(**{name: {}}) for name in ("extra_body", "provider", "headers", "litellm_params")),
    _chat(service_tier="priority"),
    _chat(best_of=50),
    _chat(n=5),
    _chat(tools={"type": "web_search"}),
    _chat(tools=["web_search"]),
    _chat(tools=[_FUNCTION, {"type": "openrouter:web_search"}]),
    _chat(tools=[{"googleSearch": {}}]),
    _chat(tools=[{**_FUNCTION, "server_url": _AWAY}]),
    _chat(tools=[{"type": "function", "function": {"name": "f", "parameters": {"$ref": _AWAY}}}]),
    _chat(tool_choice={"type": "web_search_preview"}),
    _chat(functions=[{"name": "f", "parameters": {"$ref": _AWAY}}]),
    _chat(response_format={"json_schema": {"schema": {"properties": {"a": {"$ref": _AWAY}}}}}),
    _chat(guided_json={"$dynamicRef": "file:///etc/passwd"}),
]
_PASSES = [
    _part("image_url", image_url={"url": _HERE}),
    _part("text", text=_AWAY),
    _part("file", file={"filename": "https://x", "file_data": "data:application/pdf;base64,AA"}),
    _part("input_audio", input_audio={"data": "//uQxAAAWMSLFQAA", "format": "mp3"}),
    _part("image", source={"type": "base64", "media_type": "image/png", "data": "/9j/4AAQ"}),
    _message(content=_AWAY, name=_AWAY, reasoning_content=_AWAY),
    _message(tool_calls=[{"type": "function", "function": {"name": "f", "arguments": _AWAY}}]),
    _chat(
        tools=[
            {
                "type": "function",
                "function": {
                    "name": "f",
                    "description": _AWAY,
                    "parameters": {
                        "$schema": "https://json-schema.org/draft/2020-12/schema",
                        "properties": {"url": {"type": "string", "format": "uri", "default": _AWAY}},
                        "allOf": [{"$ref": "#/$defs/a"}],
                    },
                },
            }
        ],
        tool_choice={"type": "function", "function": {"name": "f"}},
    ),
    _chat(user=_AWAY, metadata={"link": _AWAY}, stop=[_AWAY], n=1),
]


@pytest.mark.parametrize("stated", _REFUSED, ids=str)
def test_what_reaches_further_is_refused(stated: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError):
        check_request(stated)


@pytest.mark.parametrize("stated", _PASSES, ids=str)
def test_what_looks_like_it_passes(stated: dict[str, Any]) -> None:
    check_request(stated)


@pytest.mark.parametrize(
    "name", ["Model", "mod_el", "Models", "apiBase", "BASE_URL", "extra-headers", "service_tier", "Prompt"]
)
def test_another_spelling_of_a_field_is_no_sampling_option(name: str) -> None:
    """Servers that take no notice of case would read it."""
    with pytest.raises(BadRequestError):
        check_request(_chat(**{name: "x"}))
    check_request(_chat(own_knob=1))
    assert [field for field, _ in refusals_of_stated({name: "x", "top_k": 3, "own_knob": 1})] == [name]


@pytest.mark.parametrize(
    "name", ["plugins", "web_search_options", "tools", "background", "best_of", "headers"]
)
def test_a_benchmark_merges_nothing_that_costs_or_fetches(name: str) -> None:
    """A name that is merged passes in every request, too."""
    assert [field for field, _ in refusals_of_stated({name: [], "provider": {"sort": "price"}})] == [name]


def test_completions_that_are_thrown_away_are_counted() -> None:
    assert completion_bound({"max_tokens": 10, "best_of": 5}) == 50
    assert completion_bound({"max_tokens": 10, "n": 2, "best_of": 5}) == 50
    assert completion_bound({"max_tokens": 10, "best_of": True}) == 10


@pytest.mark.parametrize(
    ("stated", "bound"),
    [
        ({"max_completion_tokens": 1, "max_tokens": 900}, 900),
        ({"max_completion_tokens": 900, "max_tokens": 1}, 900),
        ({"max_completion_tokens": 1, "max_tokens": "900"}, 900),
        ({"max_tokens": 10, "n": 20.0}, 200),
        ({"max_tokens": 10, "n": "20"}, 200),
        ({"max_tokens": 10, "n": "2e1"}, 200),
        ({"max_tokens": 10, "n": "9" * 5_000}, 10),
        ({"max_output_tokens": 1}, None),
        ({"max_tokens": -1}, None),
    ],
)
def test_the_largest_bound_counts_however_it_is_written(
    stated: dict[str, JsonValue], bound: int | None
) -> None:
    assert completion_bound(stated) == bound


@pytest.mark.parametrize(
    ("stated", "sent"),
    [
        ({"max_completion_tokens": 9}, {"max_tokens": 9}),
        ({"max_output_tokens": 9}, {"max_tokens": 50}),
        ({"max_tokens": -1, "max_completion_tokens": 9}, {"max_tokens": 9}),
        ({"max_tokens": 9}, {"max_tokens": 9}),
    ],
)
def test_under_a_budget_a_bound_goes_out_by_the_name_that_the_server_knows(
    stated: dict[str, JsonValue], sent: dict[str, JsonValue]
) -> None:
    body = dict(stated)
    bound_completion(body, replay_endpoint("a/b"), 50)
    assert body == sent


def test_a_dense_prompt_has_no_more_tokens_than_bytes() -> None:
    assert most_tokens(b"7 7 7 7 7 7") == 11
    assert most_tokens(b'{"url": "data:image/png;base64,' + b"A" * 1_000 + b'"}') < 600


def test_a_budget_counts_what_a_reply_without_counted_tokens_may_have_cost() -> None:
    assert highest_cost_usd(Usage(cost_usd=0.01, estimated=True), 0.5) == pytest.approx(0.04)
    assert highest_cost_usd(Usage(cost_usd=0.01, estimated=True), 0.03) == pytest.approx(0.03)
    assert highest_cost_usd(Usage(cost_usd=0.01), 0.5) == 0.01

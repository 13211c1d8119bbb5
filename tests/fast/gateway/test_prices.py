"""Costs of calls by list price."""

from __future__ import annotations

import pytest
from rights import granted

from pytest_helmbench.core.model import ModelEntry, Price
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.gateway.prices import batch_share, is_confirmed, price_of, token_price
from pytest_helmbench.gateway.providers.endpoints import Endpoint, replay_endpoint, resolve_endpoint

KEYS = {"OPENROUTER_API_KEY": "k"}
TOKENS = Usage(prompt_tokens=1_000_000, completion_tokens=1_000_000)


def endpoint(model: str, base_url: str | None = None, environ: dict[str, str] = KEYS) -> Endpoint:
    found = resolve_endpoint(
        ModelEntry(model), default_base_url=granted(base_url), default_key_env=None, environ=environ
    )
    assert isinstance(found, Endpoint)
    return found


MINI = endpoint("openai/gpt-4o-mini")


@pytest.mark.parametrize(
    ("model", "base_url"),
    [
        ("openai/gpt-4o-mini", None),
        ("openai/gpt-4o-mini", "https://proxy.example.com/v1"),
        ("gpt-4o-mini", "https://proxy.example.com/v1"),
        ("openai/gpt-4o-mini", "https://api.openai.com/v1"),
    ],
)
def test_a_known_model_has_a_price_wherever_it_is_called(model: str, base_url: str | None) -> None:
    assert token_price(None, endpoint(model, base_url)) == Price(0.15, 0.6)


@pytest.mark.parametrize(
    ("model", "base_url"),
    [
        ("test/good", None),
        ("test/good", "http://127.0.0.1:1/v1"),
        ("ollama/llama3", "https://gpu.example.com/v1"),
        ("github-copilot/gpt-4o", "https://proxy.example.com/v1"),  # listed without figures
    ],
)
def test_an_unknown_price_is_none_never_zero(model: str, base_url: str | None) -> None:
    assert token_price(None, endpoint(model, base_url)) is None
    assert price_of(TOKENS, None, endpoint(model, base_url), None) is None


@pytest.mark.parametrize(
    "model", ["baseline/first", "ollama/llama3", "meta-llama/llama-3.3-70b-instruct:free"]
)
def test_embedded_local_and_free_models_cost_nothing(model: str) -> None:
    assert token_price(None, endpoint(model)) == Price(0.0, 0.0)
    assert price_of(TOKENS, None, endpoint(model), None) == 0.0


def test_a_price_of_models_yml_goes_before_the_list_and_before_free() -> None:
    price = Price(1.0, 2.0)
    for model in ("openai/gpt-4o-mini", "test/good", "ollama/m"):
        assert token_price(price, endpoint(model)) == price
        assert price_of(TOKENS, price, endpoint(model), None) == 3.0


def test_a_price_that_only_raises_counts_where_it_is_above_the_lists() -> None:
    low, high = Price(0.0, 9.0, only_raises=True), Price(1.0, 2.0, only_raises=True)
    assert token_price(low, MINI) == Price(0.15, 9.0)
    assert price_of(TOKENS, Price(0.0, 0.0, only_raises=True), MINI, None) == pytest.approx(0.75)
    assert price_of(TOKENS, high, MINI, None) == 3.0
    assert token_price(low, endpoint("test/good")) == low
    assert price_of(TOKENS, high, endpoint("ollama/m"), None) == 3.0
    assert token_price(low, replay_endpoint("openai/gpt-4o-mini")) == Price(0.15, 9.0)
    assert is_confirmed(low, MINI)
    assert not is_confirmed(low, endpoint("test/good"))
    assert is_confirmed(Price(0.0, 0.0), endpoint("test/good"))


def test_cached_tokens_cost_what_the_list_says_and_never_more_than_there_are() -> None:
    assert price_of(Usage(1_000_000, 0, 1_000_000), None, MINI, None) == pytest.approx(0.075)
    assert price_of(Usage(1_000_000, 0, 9_000_000), None, MINI, None) == pytest.approx(0.075)


def test_tokens_read_from_a_cache_and_put_into_it_have_prices_of_their_own() -> None:
    price = Price(1.0, 2.0, cache_read=0.1, cache_write=1.25)
    usage = Usage(1_000_000, 500_000, 600_000, written_tokens=200_000)
    assert price_of(usage, price, endpoint("test/good"), None) == pytest.approx(0.2 + 0.06 + 0.25 + 1.0)
    assert price_of(usage, Price(1.0, 2.0), endpoint("test/good"), None) == pytest.approx(2.0)
    sonnet = endpoint("anthropic/claude-3-5-sonnet-latest", "https://proxy.example.com/v1")
    listed = token_price(None, sonnet)
    assert listed is not None
    assert listed.cache_write is not None
    assert listed.cache_write > listed.input
    written = price_of(Usage(1_000_000, 0, written_tokens=1_000_000), None, sonnet, None)
    assert written == pytest.approx(listed.cache_write)
    # A budget reserves what a prompt costs that goes into the cache whole.
    assert listed.most_usd(1_000_000, 0) == pytest.approx(listed.cache_write)


@pytest.mark.parametrize(
    ("model", "base_url", "price", "usage", "share", "usd"),
    [
        ("openai/gpt-4o-mini", "https://api.openai.com/v1", None, TOKENS, 0.5, 0.375),
        ("openai/gpt-4o-mini", "https://proxy.example.com/v1", None, TOKENS, 0.5, 0.375),
        # The list has no price of its own for cached tokens in batches.
        ("openai/gpt-4o-mini", "https://api.openai.com/v1", None, Usage(1_000_000, 0, 1_000_000), 0.5, 0.075),
        ("openai/gpt-4o-mini", None, None, TOKENS, None, 0.375),
        ("openai/gpt-4o-mini", "https://api.openai.com/v1", Price(1.0, 2.0), TOKENS, None, 1.5),
        (
            "openai/gpt-4o-mini",
            "https://api.openai.com/v1",
            Price(1.0, 2.0, only_raises=True),
            TOKENS,
            0.5,
            1.5,
        ),
        ("test/good", "https://proxy.example.com/v1", None, TOKENS, None, None),
        ("ollama/llama3", None, None, TOKENS, None, 0.0),
    ],
)
def test_a_call_in_a_batch_costs_what_the_list_says_else_half(
    model: str,
    base_url: str | None,
    price: Price | None,
    usage: Usage,
    share: float | None,
    usd: float | None,
) -> None:
    asked = endpoint(model, base_url)
    assert batch_share(price, asked) == share
    assert price_of(usage, price, asked, None, batched=True) == (None if usd is None else pytest.approx(usd))

"""Targets of a session: the models that a benchmark runs on, their endpoints and limits, and the judge."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from pytest_helmbench.core.model import NO_MODEL, ModelEntry
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.users_word import UsersWord
from pytest_helmbench.engine.job import Target
from pytest_helmbench.engine.route import Route
from pytest_helmbench.gateway.backend import CacheMode
from pytest_helmbench.gateway.baselines.schema_answer import BASELINE_IDS
from pytest_helmbench.gateway.permits import ModelLimits
from pytest_helmbench.gateway.prices import context_tokens, is_confirmed, token_price
from pytest_helmbench.gateway.providers.endpoints import Endpoint, Unusable, replay_endpoint, resolve_endpoint
from pytest_helmbench.gateway.providers.servers import is_embedded
from pytest_helmbench.options.settings import DEFAULT_CONCURRENCY, LOCAL_CONCURRENCY, Settings, with_overrides
from pytest_helmbench.run.named_models import judge_options, named_models

__all__ = ["calls_at_a_time", "model_limits", "resolve_targets", "session_concurrency"]


_COMPLETION_TOKENS = 4_096
_REASONING_TOKENS = 32_768
_REASONING_NAME = re.compile(
    r"(?:^|[/_.-])(?:o[1-9]|r1|qwq|gpt-?oss|gpt-[5-9]|magistral|gemini-(?:2\.5|[3-9])|grok-(?:3-mini|[4-9])"
    r"|claude-(?:opus|sonnet|haiku)-[4-9]|claude-3[.-]7|qwen-?3|glm-(?:4\.[5-9]|[5-9])|kimi-k2|minimax-m[1-9])(?![0-9a-z])"
    r"|think|reason|deep-?research"
)


def resolve_targets(root: Path, settings: Settings, environ: Mapping[str, str]) -> tuple[Target, ...]:
    """Return one target per model under test, in order.

    Args:
        root: Folder of the benchmark.
        settings: Of the session.
        environ: Where keys are looked up.

    Raises:
        UnreadableBenchmarkError: models.yml is broken, or states addresses or variables that the user has not.
        HelmbenchError: A base URL or model id that cannot be used.
    """
    named = named_models(root, settings)
    entries = tuple(with_overrides(entry, settings.sampling) for entry in named.entries)
    judges = tuple(_judge(entry, settings, environ) for entry in named.judges)
    for entry in (*entries, *named.judges):
        _check_baseline(entry.id)
    if not entries:
        return (Target(root, Route(ModelEntry(NO_MODEL), Unusable("no model is named", "")), judges),)
    routes = (
        Route(entry, _endpoint(entry, settings.base_url, settings.api_key_env, settings, environ))
        for entry in entries
    )
    held = tuple(_held(judge, settings) for judge in judges)
    return tuple(Target(root, _held(route, settings), held) for route in routes)


def _held(route: Route, settings: Settings) -> Route:
    """Return a model as a budget takes it: with a bound of its completions, and a price that can be believed."""
    entry, endpoint = route.entry, route.endpoint
    if settings.max_cost_usd is None or isinstance(endpoint, Unusable) or endpoint.server.embedded:
        return route
    if entry.price is not None and not is_confirmed(entry.price, endpoint):
        entry = replace(entry, price=None)
    # Also where a bound is stated: what is merged into requests may take it back.
    most = entry.sampling.max_tokens or _budget_tokens(entry, endpoint)
    return Route(replace(entry, budget_tokens=most), endpoint)


def _budget_tokens(entry: ModelEntry, endpoint: Endpoint) -> int:
    """Return the bound of a completion without which a budget cannot be held, where none is stated."""
    most = _REASONING_TOKENS if _reasons(entry) else _COMPLETION_TOKENS
    known = context_tokens(endpoint)
    if known is not None:
        most = min(most, known // 2)  # the prompt stands in the same window
    return most


def _reasons(entry: ModelEntry) -> bool:
    """Return whether a model is known to reason: its completions hold more than its reply."""
    extra = entry.sampling.extra_body or {}
    effort = entry.sampling.reasoning_effort
    asked = effort not in (None, "none") or "reasoning" in extra or "reasoning_effort" in extra
    return asked or _REASONING_NAME.search(entry.id.lower()) is not None


def _endpoint(
    entry: ModelEntry,
    base_url: UsersWord[str] | None,
    key_env: UsersWord[str] | None,
    settings: Settings,
    environ: Mapping[str, str],
) -> Endpoint | Unusable:
    """Return where a model is reached; a replay needs no key."""
    found = resolve_endpoint(entry, default_base_url=base_url, default_key_env=key_env, environ=environ)
    if isinstance(found, Unusable) and settings.cache_mode is CacheMode.ONLY:
        return replay_endpoint(entry.id)
    return found


def _check_baseline(model: str) -> None:
    if is_embedded(model) and model not in BASELINE_IDS:
        near = get_close_matches(model, BASELINE_IDS, 1, 0)[0]
        raise HelmbenchError(
            f"{model!r} is no embedded model\n  hint: did you mean {near!r}? known: {', '.join(BASELINE_IDS)}"
        )


def _judge(entry: ModelEntry, settings: Settings, environ: Mapping[str, str]) -> Route:
    if entry.sampling.temperature is None:
        entry = replace(entry, sampling=replace(entry.sampling, temperature=0.0))
    return Route(entry, _endpoint(entry, *judge_options(settings), settings, environ))


def session_concurrency(settings: Settings) -> int:
    """Return how many calls may be in flight in the whole session; a shard has its share."""
    return settings.divided(settings.concurrency or DEFAULT_CONCURRENCY)


def calls_at_a_time(targets: Iterable[Target], settings: Settings) -> int:
    """Return how many calls can be in flight to what is asked: a local server takes fewer than the session."""
    places: dict[str, int] = {}
    for limits in model_limits(targets, settings).values():
        place = limits.server or limits.model
        places[place] = max(places.get(place, 0), limits.most)
    most = session_concurrency(settings)
    return min(most, sum(places.values())) or most


def model_limits(targets: Iterable[Target], settings: Settings) -> dict[str, ModelLimits]:
    """Return the limits of all models that can be called, judges too, by model id."""
    routes = (route for target in targets for route in (target.model, *target.judges))
    limits_by_model: dict[str, ModelLimits] = {}
    for route in routes:
        if isinstance(route.endpoint, Endpoint):
            limits_by_model.setdefault(route.entry.id, _model_limits(route.entry, route.endpoint, settings))
    return limits_by_model


def _model_limits(entry: ModelEntry, endpoint: Endpoint, settings: Settings) -> ModelLimits:
    most = session_concurrency(settings)
    if settings.concurrency is None and endpoint.local:
        most = LOCAL_CONCURRENCY  # of a server beside this process: another shard has its own
    return ModelLimits(
        model=entry.id,
        most=min(most, settings.divided(entry.max_concurrency) if entry.max_concurrency else most),
        requests_per_minute=settings.rate(entry.requests_per_minute),
        tokens_per_minute=settings.rate(entry.tokens_per_minute),
        price=token_price(entry.price, endpoint),
        free=endpoint.server.embedded,
        server=endpoint.base_url if endpoint.local else None,
    )

"""Targets of a session: the models that a benchmark runs on, their endpoints and limits, and the judge."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from pytest_helmbench.benchmarks.places import benchmark_root
from pytest_helmbench.core.model import NO_MODEL, ModelEntry, ModelsFile
from pytest_helmbench.core.problem import HelmbenchError, Problem, UnreadableBenchmarkError
from pytest_helmbench.engine.job import Target
from pytest_helmbench.engine.route import Route
from pytest_helmbench.files.models_file import load_models
from pytest_helmbench.gateway.baselines.baseline import BASELINE_IDS
from pytest_helmbench.gateway.permits import ModelLimits
from pytest_helmbench.gateway.prices import context_tokens, token_price
from pytest_helmbench.gateway.providers.application import FUNCTION_PREFIX
from pytest_helmbench.gateway.providers.base_urls import normalise_address, normalise_base_url
from pytest_helmbench.gateway.providers.endpoints import Endpoint, Unusable, replay_endpoint, resolve_endpoint
from pytest_helmbench.gateway.providers.registry import is_embedded
from pytest_helmbench.gateway.reply_cache import CacheMode
from pytest_helmbench.session.settings import DEFAULT_CONCURRENCY, LOCAL_CONCURRENCY, Settings, with_overrides

__all__ = ["model_limits", "resolve_targets", "session_concurrency"]


_FLOOR_JUDGE = "baseline/first"
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
    file = _models_file(root, settings)
    named = ModelsFile() if file is None else load_models(file)
    entries = _entries(named, settings)
    judge = _judge(named, entries, settings, environ)
    if file is not None and not _is_trusted(file, settings):
        _check_statements(file, entries, judge, settings)
    for entry in (*entries, *([judge.entry] if judge else [])):
        _check_baseline(entry.id)
    if not entries:
        return (Target(root, Route(ModelEntry(NO_MODEL), Unusable("no model is named", "")), judge),)
    routes = (
        Route(entry, _endpoint(entry, settings.base_url, settings.api_key_env, settings, environ))
        for entry in entries
    )
    bounded = None if judge is None else _bounded(judge, settings)
    return tuple(Target(root, _bounded(route, settings), bounded) for route in routes)


def _bounded(route: Route, settings: Settings) -> Route:
    """Return a model with the bound of a completion without which a budget cannot be held, where none is stated."""
    entry, endpoint = route.entry, route.endpoint
    if (
        settings.max_cost_usd is None
        or entry.sampling.max_tokens is not None
        or isinstance(endpoint, Unusable)
    ):
        return route
    if endpoint.server.embedded:
        return route
    most = _REASONING_TOKENS if _reasons(entry) else _COMPLETION_TOKENS
    known = context_tokens(endpoint)
    if known is not None:
        most = min(most, known // 2)  # the prompt stands in the same window
    return Route(replace(entry, budget_tokens=most), endpoint)


def _reasons(entry: ModelEntry) -> bool:
    """Return whether a model is known to reason: its completions hold more than its reply."""
    extra = entry.sampling.extra_body or {}
    effort = entry.sampling.reasoning_effort
    asked = effort not in (None, "none") or "reasoning" in extra or "reasoning_effort" in extra
    return asked or _REASONING_NAME.search(entry.id.lower()) is not None


def _endpoint(
    entry: ModelEntry,
    base_url: str | None,
    key_env: str | None,
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


def _models_file(root: Path, settings: Settings) -> Path | None:
    if settings.models_file is not None:
        return settings.models_file
    around = benchmark_root(root.parent)  # a pack inside of a benchmark runs on its models
    for folder in (root, *([around] if around is not None else [])):
        for name in ("models.yml", "models.yaml"):
            if (folder / name).is_file():
                return folder / name
    return None


def _is_trusted(file: Path, settings: Settings) -> bool:
    """Return whether a models file may say where prompts and keys go: named by the user, trusted, or his project's."""
    root = benchmark_root(file.parent)
    return file == settings.models_file or root is None or str(root.resolve()) in settings.trusted


def _check_statements(
    file: Path, entries: Iterable[ModelEntry], judge: Route | None, settings: Settings
) -> None:
    """Refuse addresses and names of variables that a benchmark states, and the user has not.

    Raises:
        UnreadableBenchmarkError: There are some, among the models that would be asked.
    """
    wanted = [(entry, settings.base_url, settings.api_key_env) for entry in entries]
    if judge is not None:
        wanted.append((judge.entry, *_judge_options(settings)))
    problems = [
        Problem(
            file,
            entry.line,
            f"a benchmark does not decide where prompts and keys go: {_statement(entry, base_url)}",
            f"if you want that, --helmbench-models-file={file} allows it, or helmbench_trusted of your own ini file",
        )
        for entry, base_url, key_env in wanted
        if not is_embedded(entry.id) and not _is_users(entry, base_url, key_env, settings)
    ]
    if problems:
        raise UnreadableBenchmarkError(tuple(dict.fromkeys(problems)))


def _is_users(entry: ModelEntry, base_url: str | None, key_env: str | None, settings: Settings) -> bool:
    """Return whether the user has said where an entry of a benchmark's file leads: to code, an address, a server."""
    if entry.id.startswith(FUNCTION_PREFIX):
        return entry.id in (*settings.models, settings.marking_model)
    return entry.http is None and _is_stated_by_user(entry, base_url, key_env)


def _is_stated_by_user(entry: ModelEntry, base_url: str | None, key_env: str | None) -> bool:
    """Return whether the options name what the entry of a benchmark names."""
    if entry.base_url is not None:
        return base_url is not None and normalise_base_url(entry.base_url) == normalise_base_url(base_url)
    return entry.api_key_env in (None, key_env)


def _statement(entry: ModelEntry, base_url: str | None) -> str:
    if entry.id.startswith(FUNCTION_PREFIX):
        return f"{entry.id} is code"
    if entry.http is not None:
        return f"{entry.id} at {normalise_address(entry.http.url)}"
    address = normalise_base_url(entry.base_url or base_url or replay_endpoint(entry.id).base_url)
    key = f" with the key in {entry.api_key_env}" if entry.api_key_env else ""
    return f"{entry.id} at {address}{key}"


def _entries(named: ModelsFile, settings: Settings) -> tuple[ModelEntry, ...]:
    known = {entry.id: entry for entry in named.models}
    wanted = settings.models or tuple(known)
    return tuple(with_overrides(known.get(name) or ModelEntry(name), settings.sampling) for name in wanted)


def _judge(
    named: ModelsFile, entries: tuple[ModelEntry, ...], settings: Settings, environ: Mapping[str, str]
) -> Route | None:
    entry = named.marking_model
    if settings.marking_model is not None:
        known = {model.id: model for model in (*named.models, *([entry] if entry else []))}
        entry = known.get(settings.marking_model) or ModelEntry(settings.marking_model)
    elif entries and all(is_embedded(model.id) for model in entries):
        entry = ModelEntry(_FLOOR_JUDGE)
    if entry is None:
        return None
    if entry.sampling.temperature is None:
        entry = replace(entry, sampling=replace(entry.sampling, temperature=0.0))
    return Route(entry, _endpoint(entry, *_judge_options(settings), settings, environ))


def _judge_options(settings: Settings) -> tuple[str | None, str | None]:
    """Return the judge's server and the variable of its key, as options state them."""
    # The key of the models under test belongs to their server, not to one that was split off.
    shared_key_env = None if settings.marking_base_url else settings.api_key_env
    return settings.marking_base_url or settings.base_url, settings.marking_api_key_env or shared_key_env


def session_concurrency(settings: Settings) -> int:
    """Return how many calls may be in flight in the whole session."""
    return settings.concurrency or DEFAULT_CONCURRENCY


def model_limits(targets: Iterable[Target], settings: Settings) -> dict[str, ModelLimits]:
    """Return the limits of all models that can be called, judges too, by model id."""
    routes = (route for target in targets for route in (target.model, target.judge) if route is not None)
    limits_by_model: dict[str, ModelLimits] = {}
    for route in routes:
        if isinstance(route.endpoint, Endpoint):
            limits_by_model.setdefault(route.entry.id, _model_limits(route.entry, route.endpoint, settings))
    return limits_by_model


def _model_limits(entry: ModelEntry, endpoint: Endpoint, settings: Settings) -> ModelLimits:
    most = session_concurrency(settings)
    if settings.concurrency is None and endpoint.local:
        most = LOCAL_CONCURRENCY
    return ModelLimits(
        model=entry.id,
        most=min(most, entry.max_concurrency or most),
        requests_per_minute=entry.requests_per_minute,
        tokens_per_minute=entry.tokens_per_minute,
        price=token_price(entry.price, endpoint),
        free=endpoint.server.embedded,
        server=endpoint.base_url if endpoint.local else None,
    )

"""Targets of a session: the models that a benchmark runs on, their endpoints and limits, and the judge."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache, partial
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from pytest_helmbench.benchmarks.places import benchmark_root
from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.model import NO_MODEL, ModelEntry, ModelsFile, StatedModel
from pytest_helmbench.core.problem import HelmbenchError, Problem, UnreadableBenchmarkError
from pytest_helmbench.engine.job import Target
from pytest_helmbench.engine.work import Route
from pytest_helmbench.files.models_file import load_models, load_variants
from pytest_helmbench.gateway.backend import CacheMode
from pytest_helmbench.gateway.baselines.schema_answer import BASELINE_IDS
from pytest_helmbench.gateway.batch_wire import WIRES
from pytest_helmbench.gateway.open_files import calls_that_fit, open_files
from pytest_helmbench.gateway.permits import ModelLimits
from pytest_helmbench.gateway.prices import batch_share, context_tokens, is_confirmed, token_price
from pytest_helmbench.gateway.providers.application import FUNCTION_PREFIX
from pytest_helmbench.gateway.providers.endpoints import (
    Endpoint,
    Unusable,
    normalise_address,
    normalise_base_url,
    replay_endpoint,
    resolve_endpoint,
)
from pytest_helmbench.gateway.providers.servers import is_embedded, provider_of, stated_slots
from pytest_helmbench.gateway.relay.refusals import refusals_of_stated
from pytest_helmbench.gateway.requests import TOKEN_BOUNDS
from pytest_helmbench.options.settings import (
    DEFAULT_CONCURRENCY,
    LOCAL_CONCURRENCY,
    Settings,
    laid_over,
    with_overrides,
)
from pytest_helmbench.options.trust import trust_hint

_COMPLETION_TOKENS = 4_096
_REASONING_TOKENS = 32_768
_JUDGE_TOKENS = 1_024  # three quotes, three sentences, a choice
_REASONING_JUDGE_TOKENS = 8_192
_LARGEST_OUTPUT = 131_072
_FLOOR_JUDGE = "baseline/first"
_SOURCE = "source"
_REASONING_NAME = re.compile(
    r"(?:^|[/_.-])(?:o[1-9]|r1|qwq|gpt-?oss|gpt-[5-9]|magistral|gemini-(?:2\.5|[3-9])|grok-(?:3-mini|[4-9])"
    r"|claude-(?:opus|sonnet|haiku)-[4-9]|claude-3[.-]7|qwen-?3|glm-(?:4\.[5-9]|[5-9])|kimi-k2|minimax-m[1-9])(?![0-9a-z])"
    r"|think|reason|deep-?research"
)
GrantedText = Granted[str] | None


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
    named, named_judges = named_models(root, settings)
    variants = [_as_stated(one) for one in load_variants(settings.variants.value, Path.cwd())]
    overridden = [with_overrides(entry, settings) for entry in named]
    entries = [_variant(entry, one) for entry in overridden for one in variants] if variants else overridden
    tested = [entry.model_id for entry in entries]
    judges = tuple(_judge(entry, tested, settings, environ) for entry in named_judges)
    for entry in (*entries, *named_judges):
        _check_baseline(entry.model_id)
    if not entries:
        return (Target(root, Route(ModelEntry(NO_MODEL), Unusable("no model is named", "")), judges),)
    routes = (
        Route(entry, _endpoint(entry, settings.base_url, settings.api_key_env, settings, environ))
        for entry in entries
    )
    judges_within_budget = tuple(_within_budget(judge, settings) for judge in judges)
    return tuple(Target(root, _within_budget(route, settings), judges_within_budget) for route in routes)


def _variant(entry: ModelEntry, variant: ModelEntry) -> ModelEntry:
    """Return a model with what a variant says otherwise; at another address, without the key for its own."""
    if variant.base_url is not None:
        entry = replace(entry, api_key_env=None, headers=None, http=None)
    named = replace(
        variant,
        id=f"{entry.id}:{variant.id}",
        variant_of=entry.model_id,
        sampling=laid_over(entry.sampling, variant.sampling),
    )
    return laid_over(entry, named)


def _within_budget(route: Route, settings: Settings) -> Route:
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
    """Return the bound of a completion without which a budget cannot be kept, where none is stated."""
    most = _REASONING_TOKENS if _reasons(entry) else _COMPLETION_TOKENS
    known = context_tokens(endpoint)
    if known is not None:
        most = min(most, known // 2)  # the prompt stands in the same window
    return most


def _largest_output(endpoint: Endpoint) -> int:
    """Return how many tokens an unbounded completion may have, as far as the price list knows."""
    return min(_LARGEST_OUTPUT, context_tokens(endpoint) or _LARGEST_OUTPUT)


def _reasons(entry: ModelEntry) -> bool:
    """Return whether a model is known to reason: its completions hold more than its reply."""
    extra = entry.sampling.extra_body or {}
    effort = entry.sampling.reasoning_effort
    asked = effort not in (None, "none") or "reasoning" in extra or "reasoning_effort" in extra
    return asked or _REASONING_NAME.search(entry.model_id.lower()) is not None


def _endpoint(
    entry: ModelEntry,
    base_url: Granted[str] | None,
    key_env: Granted[str] | None,
    settings: Settings,
    environ: Mapping[str, str],
) -> Endpoint | Unusable:
    """Return where a model is reached; a replay needs no key."""
    try:
        found = resolve_endpoint(entry, default_base_url=base_url, default_key_env=key_env, environ=environ)
    except HelmbenchError as error:
        raise HelmbenchError(f"{entry.stated_at}: {error}" if entry.stated_at else str(error)) from error
    if isinstance(found, Unusable) and settings.cache_mode is CacheMode.ONLY:
        return replay_endpoint(entry.model_id)
    return found


def _check_baseline(model: str) -> None:
    if is_embedded(model) and model not in BASELINE_IDS:
        near = get_close_matches(model, BASELINE_IDS, 1, 0)[0]
        raise HelmbenchError(
            f"{model!r} is not an embedded model\n  hint: did you mean {near!r}? known: {', '.join(BASELINE_IDS)}"
        )


def _judge(entry: ModelEntry, tested: Sequence[str], settings: Settings, environ: Mapping[str, str]) -> Route:
    sampling = entry.sampling
    if sampling.temperature is None:
        sampling = replace(sampling, temperature=0.0)
    if sampling.max_tokens is None and not any(name in (sampling.extra_body or ()) for name in TOKEN_BOUNDS):
        most = _REASONING_JUDGE_TOKENS if _reasons(entry) else _JUDGE_TOKENS
        sampling = replace(sampling, max_tokens=most)
    entry = replace(entry, sampling=sampling)
    return Route(
        entry, _endpoint(entry, *_judge_options(entry.model_id, tested, settings), settings, environ)
    )


def session_concurrency(settings: Settings) -> int:
    """Return how many calls may be in flight in the whole session; a shard has its share.

    A machine that allows few open files lowers it.
    """
    return calls_that_fit(wanted_concurrency(settings))


def wanted_concurrency(settings: Settings) -> int:
    """Return how many calls the options allow in flight."""
    return settings.divided(settings.concurrency or DEFAULT_CONCURRENCY)


def few_open_files(settings: Settings) -> str:
    """Return a sentence where the open files of this machine lower the calls in flight; empty where they do not."""
    wanted, most = wanted_concurrency(settings), session_concurrency(settings)
    if most == wanted:
        return ""
    return (
        f"{most} calls at a time and not {wanted}: this machine allows {open_files()} open files (ulimit -n)"
    )


def calls_at_a_time(targets: Iterable[Target], settings: Settings) -> int:
    """Return how many calls can be in flight to what is asked: a local server takes fewer than the session."""
    places: dict[str, int] = {}
    for limits in model_limits(targets, settings).values():
        place = limits.server or limits.model
        places[place] = max(places.get(place, 0), limits.concurrency)
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
    own = endpoint.own_server
    if settings.concurrency is None and own and entry.max_concurrency is None:
        # Each shard has a server of its own beside it.
        most = min(most, _slots(endpoint, settings) or LOCAL_CONCURRENCY)
    return ModelLimits(
        model=entry.id,
        concurrency=min(most, settings.divided(entry.max_concurrency) if entry.max_concurrency else most),
        requests_per_minute=settings.rate(entry.requests_per_minute),
        tokens_per_minute=settings.rate(entry.tokens_per_minute),
        price=token_price(entry.price, endpoint),
        batch_share=batch_share(entry.price, endpoint),
        free=endpoint.server.embedded,
        largest_output=0 if settings.max_cost_usd is None else _largest_output(endpoint),
        server=own or None,
        loads=endpoint.server.local,
        provider_model=f"{endpoint.model_id} {endpoint.base_url}",
    )


def _slots(endpoint: Endpoint, settings: Settings) -> int | None:
    """Return how many calls a server takes at a time, where it states that."""
    return None if settings.cache_mode is CacheMode.ONLY else _stated_slots(endpoint)


@lru_cache(maxsize=64)
def _stated_slots(endpoint: Endpoint) -> int | None:
    from pytest_helmbench.gateway.client import get

    return stated_slots(endpoint.base_url, partial(get, endpoint))


def named_models(root: Path, settings: Settings) -> tuple[tuple[ModelEntry, ...], tuple[ModelEntry, ...]]:
    """Return the models that a benchmark is run on, and its judges, with what the user has said about where they are.

    Args:
        root: Folder of the benchmark.
        settings: Of the session.

    Raises:
        UnreadableBenchmarkError: models.yml is broken, or states addresses or variables that the user has not.
    """
    file = _models_file(root, settings)
    is_users_own = file is not None and _is_trusted(file, settings)
    stated = (
        ModelsFile()
        if file is None
        else load_models(file, None if is_users_own else benchmark_root(file.parent))
    )
    known = {model.entry.id: model for model in stated.models}
    wanted = [_stated(name, known) for name in settings.models.value or known]
    judges = _judges(stated, wanted, settings)
    if file is None or is_users_own:
        granted = list(map(_as_stated, (*wanted, *judges)))
    else:
        options = [(one, settings.base_url, settings.api_key_env) for one in wanted]
        tested = [one.entry.model_id for one in wanted]
        options += [(judge, *_judge_options(judge.entry.model_id, tested, settings)) for judge in judges]
        if problems := tuple(dict.fromkeys(_refusals(file, options, settings))):
            raise UnreadableBenchmarkError(problems)
        granted = [_as_user_allows(*one, settings) for one in options]
    found = tuple(
        replace(entry, version=source_version(entry.model_id)) if entry.version == _SOURCE else entry
        for entry in granted
    )
    return found[: len(wanted)], found[len(wanted) :]


def odd_models(file: Path) -> Iterator[Problem]:
    """Yield what cannot be used in a models.yml unless options say more. Nothing is sent, and no key looked up.

    Raises:
        UnreadableBenchmarkError: It is broken.
    """
    stated = load_models(file, benchmark_root(file.parent))
    for model in (*stated.models, *stated.marking_models):
        try:
            resolve_endpoint(_as_stated(model), default_base_url=None, default_key_env=None, environ={})
        except HelmbenchError as error:
            message, _, hint = str(error).partition("\n  hint: ")
            yield Problem(file, model.line, message, hint)


def _judge_options(judge: str, tested: Sequence[str], settings: Settings) -> tuple[GrantedText, GrantedText]:
    """Return a judge's server and the variable of its key, as options state them.

    The server of the models under test, with its key, is that of a judge without a vendor, or that is one of them.
    """
    beside = "/" not in judge or judge in tested
    base_url = settings.marking_base_url or (settings.base_url if beside else None)
    shared = settings.api_key_env if base_url == settings.base_url else None
    return base_url, settings.marking_api_key_env or shared


def _models_file(root: Path, settings: Settings) -> Path | None:
    if settings.models_file is not None:
        return settings.models_file.value
    around = benchmark_root(root.parent)  # a pack inside of a benchmark runs on its models
    for folder in (root, *([around] if around is not None else [])):
        for name in ("models.yml", "models.yaml"):
            if (folder / name).is_file():
                return folder / name
    return None


def _stated(name: str, known: dict[str, StatedModel]) -> StatedModel:
    return known.get(name) or StatedModel(ModelEntry(name))


def _judges(stated: ModelsFile, wanted: list[StatedModel], settings: Settings) -> tuple[StatedModel, ...]:
    if settings.marking_models:
        known = {model.entry.id: model for model in (*stated.models, *stated.marking_models)}
        return tuple(_stated(name, known) for name in settings.marking_models.value)
    if wanted and all(is_embedded(model.entry.model_id) for model in wanted):
        return (StatedModel(ModelEntry(_FLOOR_JUDGE)),)
    return stated.marking_models


def _is_trusted(file: Path, settings: Settings) -> bool:
    """Return whether a models file may say where prompts and keys go: named by the user, trusted, or his project's."""
    named = settings.models_file is not None and file == settings.models_file.value
    root = benchmark_root(file.parent)
    return named or root is None or str(root.resolve()) in settings.trusted.value


def _as_stated(stated: StatedModel) -> ModelEntry:
    """Return a model of a file that the user represents."""
    return replace(
        stated.entry,
        base_url=None if stated.base_url is None else Granted(stated.base_url),
        api_key_env=None if stated.api_key_env is None else Granted(stated.api_key_env),
        http=None if stated.http is None else Granted(stated.http),
        headers=Granted(stated.headers) if stated.headers else None,
        function=_code(stated.entry.model_id),
    )


def _as_user_allows(
    stated: StatedModel, base_url: GrantedText, key_env: GrantedText, settings: Settings
) -> ModelEntry:
    """Return a model of a benchmark's file with what the user has said about it; the rest has been refused."""
    entry = replace(stated.entry, function=_named_code(stated.entry.model_id, settings))
    if entry.price is not None:
        entry = replace(entry, price=replace(entry.price, only_raises=True))
    if stated.base_url is None:
        return replace(entry, api_key_env=None if stated.api_key_env is None else key_env)
    # Who names the address represents the variable beside it.
    key = key_env if stated.api_key_env is None else Granted(stated.api_key_env)
    return entry if is_embedded(entry.model_id) else replace(entry, base_url=base_url, api_key_env=key)


def source_version(model_id: str) -> str | None:
    """Return `source` and 16 hex digits of all files of the package that a `python:` model is in, or of its module.

    Packages are looked for as Python does, and in the current folder. Nothing is imported. None where no file is found.
    """
    name = model_id.removeprefix(FUNCTION_PREFIX).partition(":")[0].partition(".")[0]
    spec = (find_spec(name) if name else None) or PathFinder.find_spec(name, [str(Path.cwd())])
    digest = hashlib.sha256()
    unread = digest.digest()
    for place in () if spec is None else (spec.submodule_search_locations or [spec.origin or ""]):
        files = [Path(place)] if Path(place).is_file() else sorted(Path(place).rglob("*"))
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                content = file.read_bytes()
                digest.update(f"{file.relative_to(place)}\n{len(content)}\n".encode("utf-8", "replace"))
                digest.update(content)
    return None if digest.digest() == unread else f"{_SOURCE} {digest.hexdigest()[:16]}"


def _code(model: str) -> GrantedText:
    return Granted(model) if model.startswith(FUNCTION_PREFIX) else None


def _named_code(model: str, settings: Settings) -> GrantedText:
    """Return code that an option names."""
    named = (*settings.models.value, *settings.marking_models.value)
    return _code(model) if model in named else None


def _refusals(
    file: Path, options: list[tuple[StatedModel, GrantedText, GrantedText]], settings: Settings
) -> Iterator[Problem]:
    """Yield addresses and names of variables that a benchmark states, and the user has not."""
    trusting = trust_hint(benchmark_root(file.parent) or file.parent, settings.trusted.value, settings.ini)
    allows = (
        f"if you want that, --helmbench-models-file={shlex.quote(str(file))} allows it,"
        f" or trust the benchmark in {trusting}"
    )
    for stated, base_url, key_env in options:
        for name, why in refusals_of_stated(stated.entry.sampling.extra_body or {}):
            what = f"extra_body.{name} of {stated.entry.model_id} {why}"
            message = f"a benchmark does not decide who answers what: {what}"
            yield Problem(file, stated.line, message, allows)
        if settings.max_cost_usd is not None and _claims_free(stated, base_url, settings):
            server = stated.entry.model_id.partition("/")[0]
            yield Problem(
                file,
                stated.line,
                f"a benchmark does not decide what is free: {stated.entry.model_id} at {_address(stated, base_url)}"
                f" would be a server of your own, as {server!r} says",
                f"--helmbench-model={stated.entry.model_id} allows it under --helmbench-max-cost; {allows}",
            )
        if not _is_users_own(stated, base_url, key_env, settings):
            yield Problem(
                file,
                stated.line,
                f"a benchmark does not decide where prompts and keys go: {_statement(stated, base_url)}",
                allows,
            )


def _claims_free(stated: StatedModel, base_url: GrantedText, settings: Settings) -> bool:
    """Return whether a benchmark's name of a model (`vllm/…`) alone makes what answers at a user's address free."""
    provider = provider_of(stated.entry.model_id)
    named = (*settings.models.value, *settings.marking_models.value)
    if base_url is None or provider is None or not provider.local or stated.entry.model_id in named:
        return False
    return normalise_base_url(base_url.value) != provider.base_url


def _is_users_own(
    stated: StatedModel, base_url: GrantedText, key_env: GrantedText, settings: Settings
) -> bool:
    """Return whether the user has said where an entry of a benchmark's file leads: to code, an address, a server."""
    model = stated.entry.model_id
    if model.startswith(FUNCTION_PREFIX):
        return _named_code(model, settings) is not None
    if stated.http is not None or stated.headers:
        return False
    if is_embedded(model):
        return True
    if stated.base_url is not None:
        return base_url is not None and normalise_base_url(stated.base_url) == normalise_base_url(
            base_url.value
        )
    return stated.api_key_env in (None, key_env and key_env.value)


def _statement(stated: StatedModel, base_url: GrantedText) -> str:
    model = stated.entry.model_id
    if model.startswith(FUNCTION_PREFIX):
        return f"{model} is code"
    if stated.http is not None:
        return f"{model} at {normalise_address(stated.http.url)}"
    key = f" with the key in {stated.api_key_env}" if stated.api_key_env else ""
    key += f" with the headers {', '.join(stated.headers)}" if stated.headers else ""
    return f"{model} at {_address(stated, base_url)}{key}"


def _address(stated: StatedModel, base_url: GrantedText) -> str:
    named = stated.base_url or (base_url and base_url.value)
    return normalise_base_url(named or replay_endpoint(stated.entry.model_id).base_url)


def batched_models(targets: Iterable[Target], settings: Settings) -> Mapping[str, tuple[str, Endpoint]]:
    """Return the form of batches and the endpoint of each model whose calls go in batches, by its id.

    Those of this machine go singly, unless their entry says that their server takes batches.
    """
    if settings.batch is None and settings.resume is None:
        return {}
    found = {}
    for target in targets:
        for route in (target.model, *target.judges):
            endpoint = route.endpoint
            if isinstance(endpoint, Endpoint) and route.entry.http is None and endpoint.server.passes_on:
                word = route.entry.batch or endpoint.server.batch
                if word in WIRES:
                    found[route.entry.id] = (word, endpoint)
    return found


def unbatched_model(targets: Iterable[Target], settings: Settings) -> str:
    """Return why a hosted model cannot go in a batch, in a sentence; empty where all can, or none shall."""
    batched = batched_models(targets, settings)
    for target in targets if settings.batch is not None else ():
        for route in (target.model, *target.judges):
            endpoint = route.endpoint
            if (
                isinstance(endpoint, Unusable)
                or route.entry.http is not None
                or not endpoint.server.passes_on
            ):
                continue
            if route.entry.id not in batched and not endpoint.own_server:
                return f"{route.entry.id} has no batch at {endpoint.provider}"
    return ""

"""The HostContext and the run input that a Bench Pack is given for an item, as JSON mappings.

A pack learns only an address of ours and a token that is good for one item. No key can get in here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_helmbench.benchmarks.bench_packs.bench_pack import BenchPackManifest, ScenarioMeta
from pytest_helmbench.benchmarks.bench_packs.node.command import BridgePlace
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.model import Sampling
from pytest_helmbench.gateway.relay.relay import RelayAddress

_PROTOCOL_VERSION = 1

# Packs name their providers, and some treat OpenRouter, Ollama or llama.cpp in ways of their own: headers,
# fields of the request, other paths. Behind the relay any of them may stand, so the neutral kind is the one
# that fits all. Id and kind are the same word, since some packs look at the one and some at the other.
_PROVIDER = "openai_compatible"

_PLAIN = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed", "max_tokens")


def merged_generation(
    manifest_defaults: JsonObject,
    overrides: Sampling,
    timeout_s: float,
    *,
    user_timeout_s: float | None = None,
) -> dict[str, JsonValue]:
    """Return a GenerationRequest: the host's default, then the pack's, then the user's.

    A key that is there may be sent to the model, any other may not; null is as good as absent. A later value
    replaces the whole earlier one, save that `extra_body` is a bag of fields, each of which is one.

    Args:
        manifest_defaults: `samplingDefaults` as written.
        timeout_s: For one request, where neither pack nor user says.
        user_timeout_s: For one request, as the user set it; None where the user did not.

    Source:
        Bench Packs, section 2.
    """
    merged: dict[str, JsonValue] = {"request_timeout_seconds": _whole(timeout_s)}
    merged |= {key: value for key, value in manifest_defaults.items() if value is not None}
    stated = {key: getattr(overrides, key) for key in _PLAIN}
    merged |= {key: value for key, value in stated.items() if value is not None}
    if overrides.reasoning_effort is not None:
        merged["reasoning"] = {"effort": overrides.reasoning_effort}
    if overrides.extra_body is not None:
        earlier = merged.get("extra_body")
        merged["extra_body"] = {**(earlier if isinstance(earlier, Mapping) else {}), **overrides.extra_body}
    if user_timeout_s is not None:
        merged["request_timeout_seconds"] = _whole(user_timeout_s)
    return merged


def host_context(
    manifest: BenchPackManifest,
    place: BridgePlace,
    model: str,
    address: RelayAddress,
    docker_base_url: str,
    verifiers: Sequence[JsonObject],
) -> dict[str, JsonValue]:
    """Return the HostContext of an item, without its `logger`.

    Args:
        model: Id of the model under test, as the relay lists it.
        address: Of the relay, for this item.
        docker_base_url: Where a container reaches the same; empty for nowhere.
        verifiers: Those of the manifest, running or not, as `OpenVerifiers.endpoints` has them.

    Source:
        Bench Packs, section 2.
    """
    endpoints: list[JsonValue] = [dict(endpoint) for endpoint in verifiers]
    return {
        "protocolVersion": _PROTOCOL_VERSION,
        "benchPack": {
            "id": manifest.id,
            "version": manifest.version,
            "installDir": str(place.root),
            "dataDir": str(place.data_dir),
            "cacheDir": str(place.cache_dir),
            "runsDir": str(place.runs_dir),
        },
        "providers": [
            {
                "id": _PROVIDER,
                "kind": _PROVIDER,
                "name": "OpenAI Compatible",
                "enabled": True,
                "baseUrl": address.base_url.rstrip("/"),
                "authMode": "bearer",
            }
        ],
        "models": [_model(model)],
        "secrets": [
            {"providerId": _PROVIDER, "keyName": "api_key", "value": address.token, "source": "config"}
        ],
        "verifiers": endpoints,
        "sidecars": endpoints,
        "inferenceEndpoints": [_inference(model, address, docker_base_url)],
    }


def run_input(
    run_id: str, manifest: BenchPackManifest, scenario: ScenarioMeta, model: str, generation: JsonObject
) -> dict[str, JsonValue]:
    """Return a ScenarioRunInput, without its `abortSignal`.

    Args:
        run_id: Of the run; a part of file names in some packs.
        scenario: Handed back as the pack listed it.
        model: Id of the model under test.
        generation: Of `merged_generation`.

    Source:
        Bench Packs, section 2.
    """
    return {
        "runId": run_id,
        "benchPackId": manifest.id,
        "scenario": {**scenario.stated, "id": scenario.id, "title": scenario.title},
        "model": _model(model),
        "generation": dict(generation),
    }


def _model(model: str) -> dict[str, JsonValue]:
    return {
        "id": model,
        "provider": _PROVIDER,
        "model": model,
        "label": model,
        "enabled": True,
        "group": "default",
    }


def _inference(model: str, address: RelayAddress, docker_base_url: str) -> dict[str, JsonValue]:
    endpoint: dict[str, JsonValue] = {
        "modelId": model,
        "providerId": _PROVIDER,
        "transport": "openai_compatible",
        "status": "running",
        "baseUrl": _with_slash(address.base_url),
        "authMode": "bearer",
        "apiKey": address.token,
        "exposedModel": model,
    }
    return endpoint | ({"dockerBaseUrl": _with_slash(docker_base_url)} if docker_base_url else {})


def _with_slash(url: str) -> str:
    """Return an address to which `chat/completions` can be appended, as the desktop app gives it."""
    return url if url.endswith("/") else f"{url}/"


def _whole(seconds: float) -> float:
    return int(seconds) if float(seconds).is_integer() else seconds

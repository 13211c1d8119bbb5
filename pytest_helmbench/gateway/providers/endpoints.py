"""Model ids to servers: which address, which name on the wire, which key. The only reader of keys."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.problem import HelmbenchError

__all__ = [
    "Endpoint",
    "Unusable",
    "is_loopback",
    "normalise_base_url",
    "other_route",
    "replay_endpoint",
    "resolve_endpoint",
]

MaxTokensKey = Literal["max_tokens", "max_completion_tokens"]

_OPENAI_HOST = "api.openai.com"
_OPENAI_URL = f"https://{_OPENAI_HOST}/v1"
_OPENROUTER_HOST = "openrouter.ai"
_OPENROUTER_URL = f"https://{_OPENROUTER_HOST}/api/v1"
_OPENAI_KEY = "OPENAI_API_KEY"
_OPENROUTER_KEY = "OPENROUTER_API_KEY"
_ANY_SERVER_KEY = "HELMBENCH_API_KEY"
_LOCAL_PORTS: Mapping[str, int] = {"ollama": 11434, "lmstudio": 1234, "vllm": 8000, "llamacpp": 8080}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how one model is called.

    Args:
        model_id: As the user wrote it.
        wire_model: `model` of the request.
        provider: `openrouter`, `openai`, `baseline`, a local server's prefix, else the host of the base URL.
        base_url: Up to and with `/v1`, no slash at the end; empty for embedded baselines.
        key_env: Variable that the key came from; None when no key is sent.
        key: Never shown, logged or stored.
        local: A model server of one's own (`ollama/…`): few calls in flight, no price list.
        max_tokens_key: What the host calls the bound of the completion.
        require_parameters: Calls with a schema ask the router for a server that knows schemas.
    """

    model_id: str
    wire_model: str
    provider: str
    base_url: str
    key_env: str | None
    key: str | None = field(repr=False)
    local: bool
    max_tokens_key: MaxTokensKey
    require_parameters: bool

    @property
    def url(self) -> str:
        """Address of chat completions."""
        return f"{self.base_url}/chat/completions"


@dataclass(frozen=True, slots=True)
class Unusable:
    """A model that cannot be called for want of a key.

    Args:
        reason: For people, names the variable.
        variable: The environment variable that would help.
    """

    reason: str
    variable: str


@dataclass(frozen=True, slots=True)
class _Key:
    variable: str | None = None
    value: str | None = field(default=None, repr=False)


def resolve_endpoint(
    entry: ModelEntry,
    *,
    default_base_url: str | None,
    default_key_env: str | None,
    environ: Mapping[str, str],
) -> Endpoint | Unusable:
    """Return where a model is called, or why it cannot be.

    Args:
        entry: What is known of the model.
        default_base_url: `--helmbench-base-url`, for models without their own.
        default_key_env: `--helmbench-api-key-env`, for models without their own. It is not used for a model
            with a base URL of its own when `default_base_url` is given: that key belongs to that server.
        environ: Environment variables; an empty one counts as unset.

    Raises:
        HelmbenchError: The id, the base URL or the key cannot be used at all.
    """
    vendor, _, name = entry.id.partition("/")
    if vendor == "baseline":
        return _endpoint(entry.id, entry.id, "baseline", "", _Key())
    stated = entry.base_url or default_base_url
    named = entry.api_key_env or (None if entry.base_url and default_base_url else default_key_env)
    if stated:
        return _at_base_url(entry.id, normalise_base_url(stated), named, environ)
    if not vendor or not name:
        raise HelmbenchError(
            f"model id {entry.id!r} names no vendor\n"
            "  hint: write vendor/name, for example openai/gpt-4o-mini, or give --helmbench-base-url"
        )
    if vendor in _LOCAL_PORTS:
        base_url = f"http://localhost:{_LOCAL_PORTS[vendor]}/v1"
        return _endpoint(entry.id, name, vendor, base_url, _key_of((named,), environ))
    return _hosted(entry.id, named, environ)


def replay_endpoint(model_id: str) -> Endpoint:
    """Return where a model would be called if there were a key: enough to find its recorded replies."""
    return _endpoint(model_id, model_id, "openrouter", _OPENROUTER_URL, _Key())


def other_route(endpoint: Endpoint) -> Endpoint | None:
    """Return OpenAI's own server for a model that has no key and could be asked there; None for others."""
    if endpoint.key is not None or endpoint.base_url != _OPENROUTER_URL:
        return None
    name = endpoint.model_id.removeprefix("openai/")
    if name == endpoint.model_id:
        return None
    return _endpoint(endpoint.model_id, name, "openai", _OPENAI_URL, _Key())


def normalise_base_url(text: str) -> str:
    """Return a base URL without a slash or `/chat/completions` at the end; `/v1` is not added.

    Raises:
        HelmbenchError: It is no http(s) address, or carries what would end up in the database.
    """
    url = text.strip()
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname and parts.hostname.encode("idna")) and parts.port != 0
    except ValueError:
        parts, usable = SplitResult("", "", "", "", ""), False
    if parts.username is not None or parts.password is not None:
        # The text holds a secret: it is not repeated.
        raise HelmbenchError(
            f"the base URL for host {parts.hostname} carries a user name or password\n"
            "  hint: put the key into a variable and name it with --helmbench-api-key-env"
        )
    if not usable or parts.scheme.lower() not in ("http", "https") or any(map(str.isspace, url)):
        raise HelmbenchError(
            f"base URL {_hidden(text)!r} is no http:// or https:// address\n"
            "  hint: for example https://api.example.com/v1 or http://localhost:8000/v1"
        )
    if parts.query or parts.fragment:
        raise HelmbenchError(
            f"base URL {parts.scheme}://{parts.netloc}{parts.path} is followed by a query or fragment\n"
            "  hint: leave out everything from '?' or '#' on"
        )
    path = parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{path}"


def _hidden(text: str) -> str:
    """Return an address that cannot be read, without what may be a password."""
    return f"…@{text.rpartition('@')[2]}" if "@" in text else text


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _at_base_url(
    model_id: str, base_url: str, named: str | None, environ: Mapping[str, str]
) -> Endpoint | Unusable:
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    vendor, _, name = model_id.partition("/")
    if vendor in _LOCAL_PORTS and name:
        provider, wire_model = vendor, name
    elif host == _OPENAI_HOST:
        provider, wire_model = "openai", model_id.removeprefix("openai/")
    else:
        provider, wire_model = ("openrouter" if _is_openrouter(host) else host), model_id
    if not wire_model:
        raise HelmbenchError(f"model id {model_id!r} is empty\n  hint: name the model as its server does")
    # A variable that is named stands alone: no other key goes to a server the user chose one for.
    usual = _usual_variable(vendor, parts, environ)
    candidates: tuple[str | None, ...] = (named,) if named else (_ANY_SERVER_KEY, usual)
    return _endpoint(model_id, wire_model, provider, base_url, _key_of(candidates, environ))


def _hosted(model_id: str, named: str | None, environ: Mapping[str, str]) -> Endpoint | Unusable:
    direct = _goes_to_openai(model_id, environ)
    key = _key_of((named or (_OPENAI_KEY if direct else _OPENROUTER_KEY),), environ)
    if key.variable is None:
        return _unusable(model_id, named, environ)
    if direct:
        return _endpoint(model_id, model_id.removeprefix("openai/"), "openai", _OPENAI_URL, key)
    return _endpoint(model_id, model_id, "openrouter", _OPENROUTER_URL, key)


def _unusable(model_id: str, named: str | None, environ: Mapping[str, str]) -> Unusable:
    variable = named or _OPENROUTER_KEY
    if named is None and model_id.startswith("openai/"):
        return Unusable(f"neither {_OPENROUTER_KEY} nor {_OPENAI_KEY} is set", variable)
    return Unusable(f"{variable} is {'empty' if variable in environ else 'not set'}", variable)


def _endpoint(model_id: str, wire_model: str, provider: str, base_url: str, key: _Key) -> Endpoint:
    host = urlsplit(base_url).hostname or ""
    wants_new_name = host == _OPENAI_HOST or host.endswith(".openai.azure.com")
    return Endpoint(
        model_id=model_id,
        wire_model=wire_model,
        provider=provider,
        base_url=base_url,
        key_env=key.variable,
        key=key.value,
        local=provider in _LOCAL_PORTS,
        max_tokens_key="max_completion_tokens" if wants_new_name else "max_tokens",
        require_parameters=provider == "openrouter",
    )


def _goes_to_openai(model_id: str, environ: Mapping[str, str]) -> bool:
    return (
        model_id.startswith("openai/")
        and bool(environ.get(_OPENAI_KEY, "").strip())
        and not environ.get(_OPENROUTER_KEY, "").strip()
    )


def _is_openrouter(host: str) -> bool:
    return host == _OPENROUTER_HOST or host.endswith(f".{_OPENROUTER_HOST}")


def _usual_variable(vendor: str, parts: SplitResult, environ: Mapping[str, str]) -> str | None:
    """Return the provider's variable where its key may go: to its own host over TLS, or to this machine."""
    host = parts.hostname or ""
    if is_loopback(host):
        if vendor in _LOCAL_PORTS:
            return None
        return _OPENAI_KEY if _goes_to_openai(f"{vendor}/", environ) else _OPENROUTER_KEY
    if parts.scheme != "https":
        return None
    if host == _OPENAI_HOST:
        return _OPENAI_KEY
    return _OPENROUTER_KEY if _is_openrouter(host) else None


def _key_of(variables: tuple[str | None, ...], environ: Mapping[str, str]) -> _Key:
    """Return the first key that is not empty."""
    for variable in variables:
        value = environ.get(variable, "").strip() if variable else ""
        if not value:
            continue
        if not (value.isascii() and value.isprintable()) or " " in value:
            raise HelmbenchError(
                f"{variable}: the key holds a character that no HTTP header can carry\n"
                "  hint: copy it again; it is one line of letters, digits and signs"
            )
        return _Key(variable, value)
    return _Key()

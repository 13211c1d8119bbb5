"""Base URLs: made uniform, refused where they would carry a secret, and distinguished from this machine."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from urllib.parse import SplitResult, parse_qsl, urlsplit

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.providers.application import (
    FUNCTION_PREFIX,
    function_application,
    http_application,
)
from pytest_helmbench.gateway.providers.provider import MaxTokensKey, Provider
from pytest_helmbench.gateway.providers.servers import provider_at, provider_of, routes, without_keys

_ANY_SERVER_KEY = "HELMBENCH_API_KEY"
_NAME = re.compile(r"[A-Za-z_]\w{0,79}\Z", re.ASCII)
_LIKE_A_KEY = re.compile(r"(?=.*[a-z])(?=.*\d).{20}")  # keys are long and have letters and digits
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}")


def normalise_base_url(text: str) -> str:
    """Return a base URL without a slash or `/chat/completions` at the end of its path; `/v1` is not added.

    Raises:
        HelmbenchError: It is not an http(s) address, or carries a secret that would end up in the database.
    """
    address, mark, query = normalise_address(text).partition("?")
    return address.rstrip("/").removesuffix("/chat/completions").rstrip("/") + mark + query


def normalise_address(text: str) -> str:
    """Return an address with scheme and host in small letters.

    Raises:
        HelmbenchError: It is not an http(s) address, or carries a secret.
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
            f"base URL {_hidden(text)!r} is not an http:// or https:// address\n"
            "  hint: for example https://api.example.com/v1 or http://localhost:8000/v1"
        )
    if parts.fragment or any(_is_secret(*one) for one in parse_qsl(parts.query, keep_blank_values=True)):
        raise HelmbenchError(
            f"base URL {parts.scheme}://{parts.netloc}{parts.path} is followed by a fragment or a key\n"
            "  hint: leave that out; a key goes by --helmbench-api-key-env, or by `extra_headers` of models.yml"
        )
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path}{query}"


def _is_secret(name: str, value: str) -> bool:
    """Return whether a parameter of a query would carry a secret into the database."""
    named = re.search(r"key|token|secret|sig|auth|password|code|credential", name, re.IGNORECASE)
    return named is not None or without_keys(value) != value


def _hidden(text: str) -> str:
    """Return an address that cannot be read, without what may be a password."""
    return f"…@{text.rpartition('@')[2]}" if "@" in text else text


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine."""
    try:
        address = ipaddress.ip_address(host)
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how one model is called.

    Args:
        model_id: See `ModelEntry.model_id`.
        server: Who answers, and what it wants.
        base_url: Up to and with `/v1`, no slash at the end; empty for embedded baselines.
        key_env: Variable that the key came from; None when no key is sent.
        key: Never shown, logged or stored.
        max_tokens_key: What the host calls the bound of the completion.
        empty_variable: Variable that was named for the key and is not set, or empty, as it may be shown; empty where
            none was named.
        extra_headers: Names and values; as secret as the key.
        extra_secrets: What came from the environment of them.
    """

    model_id: str
    wire_model: str
    server: Provider = field(hash=False)
    base_url: str
    key_env: str | None
    key: str | None = field(repr=False)
    max_tokens_key: MaxTokensKey
    empty_variable: str = ""
    extra_headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    extra_secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def provider(self) -> str:
        """`openrouter`, `openai`, `baseline`, a local server's prefix, else the host of the base URL."""
        return self.server.name

    @property
    def own_server(self) -> str:
        """Host and port of a model server of one's own, one name for all addresses of this machine; else empty."""
        parts = urlsplit(self.base_url)
        if not self.server.passes_on:
            return ""
        if is_loopback(parts.hostname or ""):
            return f"localhost:{parts.port}"
        return parts.netloc if self.server.local else ""

    @property
    def elsewhere(self) -> str:
        """The host, and the variable of the key, where prompts do not go to a provider's own server; else empty."""
        if self.base_url == self.server.base_url:
            return ""
        unset = f": the variable {self.empty_variable} is not set, or empty" if self.empty_variable else ""
        key = f"the key in {self.key_env}" if self.key_env else f"no key{unset}"
        return f"{urlsplit(self.base_url).netloc} with {key}"

    @property
    def replies_from(self) -> str | None:
        """The address whose replies on record may replace a call; None where none may."""
        return self.base_url if self.server.version is not None else None

    @property
    def url(self) -> str:
        """Where requests go."""
        return self.server.address(self.base_url)

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of every request: not to be shown, logged or stored."""
        extra, title = dict(self.extra_headers), self.server.title_header
        usual = {
            **(self.server.auth_headers(self.key) if self.key else {}),
            **({title: "pytest-helmbench"} if title else {}),
        }
        return {name: usual[name] for name in usual if name.lower() not in map(str.lower, extra)} | extra

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key in every form in which it goes out, and other secrets, the longest first."""
        sent = self.server.auth_headers(self.key).values() if self.key else ()
        key = (self.key,) if self.key else ()
        forms = {*key, *self.extra_secrets, *(value.rpartition(" ")[2] for value in sent)}
        return tuple(sorted(forms, key=len, reverse=True))

    def redacted(self, text: str) -> str:
        """Return foreign text without the key, and without what looks like one."""
        return without_keys(text, self.secrets)


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
    empty: str = ""


def _with_headers(found: Endpoint, entry: ModelEntry, environ: Mapping[str, str]) -> Endpoint | Unusable:
    """Return where a model is called with the headers that its entry states."""
    stated = entry.headers.value if entry.headers is not None else {}
    values: dict[str, str] = {}
    for variable in _VARIABLE.findall("\n".join(stated.values())):
        value = _key_of((variable,), environ).value
        if value is None:
            return Unusable(f"{variable} is {'empty' if variable in environ else 'not set'}", variable)
        values[variable] = value
    headers = tuple((name, _VARIABLE.sub(lambda one: values[one[1]], text)) for name, text in stated.items())
    return replace(found, extra_headers=headers, extra_secrets=tuple(values.values()))


def resolve_endpoint(
    entry: ModelEntry,
    *,
    default_base_url: Granted[str] | None,
    default_key_env: Granted[str] | None,
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
    found = _resolved(entry, default_base_url, default_key_env, environ)
    return _with_headers(found, entry, environ) if entry.headers and isinstance(found, Endpoint) else found


def _resolved(
    entry: ModelEntry,
    default_base_url: Granted[str] | None,
    default_key_env: Granted[str] | None,
    environ: Mapping[str, str],
) -> Endpoint | Unusable:
    stated = entry.base_url or default_base_url
    stated_key = entry.api_key_env or (None if entry.base_url and default_base_url else default_key_env)
    named = stated_key.value if stated_key else None
    vendor, _, name = entry.model_id.partition("/")
    provider = provider_of(entry.model_id)
    application = _application(entry, environ)
    if application is not None:
        return application
    if provider is not None and provider.embedded:
        return _endpoint(entry.model_id, provider, provider.base_url, _Key())
    if stated:
        return _at_base_url(entry.model_id, normalise_base_url(stated.value), named, environ)
    if not vendor or not name:
        raise HelmbenchError(
            f"model id {entry.model_id!r} is not of the form vendor/name\n"
            "  hint: write openai/gpt-4o-mini, for example, or name its server: --helmbench-base-url,"
            " in commands --base-url"
        )
    if provider is not None and provider.local:
        return _endpoint(entry.model_id, provider, provider.base_url, _key_of((named,), environ))
    address = environ.get(provider.address_variable, "").strip() if provider is not None else ""
    if provider is not None and address:
        key = _key_of((named or provider.key_variable,), environ)
        return _in_place_of(provider, entry.model_id, normalise_base_url(address), key)
    return _hosted(entry.model_id, named, environ)


def _application(entry: ModelEntry, environ: Mapping[str, str]) -> Endpoint | None:
    """Return where an application of the user's is asked; None for any other model."""
    if entry.model_id.startswith(FUNCTION_PREFIX):
        if entry.function is None:
            raise HelmbenchError(
                f"{entry.model_id} is code, and the user has not named it\n"
                f"  hint: --helmbench-model={entry.model_id} does"
            )
        return _endpoint(
            entry.model_id, function_application(entry.function, entry.version, entry.messages), "", _Key()
        )
    if entry.http is None:
        return None
    address = normalise_address(entry.http.value.url)
    server = http_application(entry.http, urlsplit(address).netloc, entry.version, entry.messages)
    own = entry.api_key_env
    return _endpoint(entry.model_id, server, address, _key_of((own.value if own else None,), environ))


def replay_endpoint(model_id: str) -> Endpoint:
    """Return where a model would be called if there were a key: enough to find its recorded replies."""
    provider = routes(model_id)[0]
    return _endpoint(model_id, provider, provider.base_url, _Key())


def other_route(endpoint: Endpoint) -> Endpoint | None:
    """Return the vendor's own server for a model that has no key and could be asked there; None for others."""
    if endpoint.key is not None:
        return None
    first, *others = routes(endpoint.model_id)
    if not others or endpoint.base_url != first.base_url or "/" not in endpoint.model_id:
        return None
    return _endpoint(endpoint.model_id, others[0], others[0].base_url, _Key())


def _at_base_url(
    model_id: str, base_url: str, named: str | None, environ: Mapping[str, str]
) -> Endpoint | Unusable:
    parts = urlsplit(base_url)
    provider = provider_of(model_id)
    if provider is None or not provider.local or not model_id.partition("/")[2]:
        provider = provider_at(parts.hostname or "")
    if not provider.wire_model(model_id):
        raise HelmbenchError(f"model id {model_id!r} is empty\n  hint: name the model as its server does")
    # A provider's usual key goes to its own host over TLS alone; a variable that is named stands alone.
    usual = provider_at(parts.hostname or "").key_variable if parts.scheme == "https" else None
    candidates = (named,) if named else (_ANY_SERVER_KEY, usual)
    return _endpoint(model_id, provider, base_url, _key_of(candidates, environ))


def _in_place_of(provider: Provider, model_id: str, base_url: str, key: _Key) -> Endpoint:
    """Return a server that the environment names for a provider: an unknown one has its names of models."""
    server = provider_at(urlsplit(base_url).hostname or "")
    found = _endpoint(model_id, server, base_url, key)
    return found if server.base_url else replace(found, wire_model=provider.wire_model(model_id))


def _hosted(model_id: str, named: str | None, environ: Mapping[str, str]) -> Endpoint | Unusable:
    provider = _preferred(model_id, environ)
    key = _key_of((named or provider.key_variable,), environ)
    if key.variable is not None:
        return _endpoint(model_id, provider, provider.base_url, key)
    variables = [provider.key_variable for provider in routes(model_id)]
    variable = named or variables[-1]  # of the model's own vendor, where it has two routes
    if named is None and len(variables) > 1:
        return Unusable(f"neither {' nor '.join(variables)} is set", variable)
    shown = _shown(variable)
    return Unusable(f"{shown} is {'empty' if variable in environ else 'not set'}", shown)


def _preferred(model_id: str, environ: Mapping[str, str]) -> Provider:
    """Return the first hosted provider of a model whose usual variable holds a key, else the first."""
    providers = routes(model_id)
    with_key = (one for one in providers if environ.get(one.key_variable, "").strip())
    return next(with_key, providers[0])


def _endpoint(model_id: str, provider: Provider, base_url: str, key: _Key) -> Endpoint:
    return Endpoint(
        model_id=model_id,
        wire_model=provider.wire_model(model_id),
        server=provider,
        base_url=base_url,
        key_env=key.variable,
        key=key.value,
        empty_variable=key.empty,
        max_tokens_key=provider_at(urlsplit(base_url).hostname or "").max_tokens_key,
    )


def _key_of(variables: Iterable[str | None], environ: Mapping[str, str]) -> _Key:
    """Return the first key that is not empty."""
    tried = tuple(variables)
    for variable in tried:
        value = environ.get(variable, "").strip() if variable else ""
        if not value:
            continue
        if not (value.isascii() and value.isprintable()) or " " in value:
            raise HelmbenchError(
                f"{variable}: the key holds a character that no HTTP header can carry\n"
                "  hint: copy it again; it is one line of letters, digits and signs"
            )
        if not {value[0], value[-1]}.isdisjoint("\"'`"):
            raise HelmbenchError(
                f"{variable}: the key begins or ends with a quotation mark, as .env files have it\n"
                "  hint: leave the quotation marks out; a shell and a .env loader do not pass them on"
            )
        return _Key(variable, value)
    named = [variable for variable in tried if variable]
    return _Key(empty=_shown(named[0]) if len(named) == 1 == len(tried) else "")


def _shown(variable: str) -> str:
    """Return the name of a variable that is not set, for people; a key may have been given in its place."""
    if _NAME.match(variable) and not _LIKE_A_KEY.search(variable):
        return variable
    return "that was named (what was given looks like a key: name the variable that has it)"

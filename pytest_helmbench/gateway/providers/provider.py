"""A provider: all that sets the calls of one kind of server apart, in one object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass

_MOST_USD = 1e6  # of a call
_COSTS = ("cost", "cost_usd", "total_cost", "cost_usd_total", "estimated_cost")

MaxTokensKey = Literal["max_tokens", "max_completion_tokens"]


@dataclass(frozen=True, slots=True)
class PricePlace:
    """A place in the price list: by provider, by address, or by the model's name alone."""

    model: str
    provider_id: str | None = None
    api_url: str | None = None


@dataclass(frozen=True, slots=True)
class MissingReply:
    """Why an answer of status 200 holds no reply.

    Args:
        reason: One stable word for tables.
        what: What came with the status, or what came without.
        hint: What to do; empty when there is nothing to add.
        is_final: Another attempt would bring the same.
    """

    reason: str
    what: str
    hint: str = ""
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class Provider:
    """A kind of server. The defaults are those of the OpenAI interface.

    Args:
        name: In results and messages; that of a server without a name is its host.
        prefix: Of the ids of its models, without the slash; empty where ids alone do not lead to it.
        base_url: Where it is unless the user says otherwise; empty where only the user knows.
        hosts: What the host of an address that leads to it ends in; none where only the prefix tells.
        key_variable: Environment variable that usually holds its key; empty for none.
        address_variable: Environment variable by which its users name a server in its place; empty for none.
        key_shape: Regular expression of what its keys look like, masked ones too; such text is never shown.
        routed: Its models are also asked at the router, which goes first where it has a key.
        local: A server of the user's own: few calls in flight, no price list.
        embedded: It answers inside this process, for nothing.
        function: `package.module:function` that is called in this process; None for a server.
        max_tokens_key: What it calls the bound of a completion.
        list_id: What the price list calls it; empty where it goes by address.
        pull: Command that brings a model to it; empty for none.
        title_header: Where it wants to know who asks; empty for nowhere.
        batch: The form of its batches; empty where it has none that is known here.
        version: Of an application; None where it is not known, so that no reply on record represents another.
    """

    name: str
    prefix: str = ""
    base_url: str = ""
    hosts: tuple[str, ...] = ()
    key_variable: str = ""
    address_variable: str = ""
    key_shape: str = ""
    routed: bool = False
    local: bool = False
    embedded: bool = False
    max_tokens_key: MaxTokensKey = "max_tokens"
    list_id: str = ""
    pull: str = ""
    title_header: str = ""
    batch: str = ""
    function: Granted[str] | None = None
    version: str | None = ""

    @property
    def passes_on(self) -> bool:
        """Whether it is a server with the whole OpenAI interface: streams, responses, embeddings."""
        return not (self.embedded or self.function)

    def wire_model(self, model_id: str) -> str:
        """Return `model` of a request."""
        return model_id.removeprefix(f"{self.prefix}/") if self.prefix and not self.embedded else model_id

    def auth_headers(self, key: str) -> Mapping[str, str]:
        """Return the headers that carry the key. The last word of each is as secret as the key itself."""
        return {"Authorization": f"Bearer {key}"}

    def complete_request(self, body: dict[str, JsonValue], *, with_schema: bool) -> None:
        """Add to a request what this server wants beyond the usual.

        Args:
            body: About to be sent; what its author states stays.
            with_schema: A structured reply is wanted.
        """

    def address(self, base_url: str) -> str:
        """Return where requests go."""
        path, mark, query = base_url.partition("?")
        return f"{path}/chat/completions{mark}{query}"

    def sent(self, encoded: bytes, _body: JsonObject) -> bytes:
        """Return the bytes of a request, which are those on record wherever no template makes others."""
        return encoded

    def read(self, answer: bytes) -> bytes:
        """Return an answer as a chat completion."""
        return answer

    def lack(self, _document: JsonObject) -> MissingReply:
        """Return why an answer, as `read` has returned it, is a chat completion without choices."""
        return MissingReply("no_choices", "without choices")

    def unread_hint(self) -> str:
        """Return what to do about an answer that is not JSON; empty where it is the server's fault."""
        return ""

    def price_places(self, model: str, base_url: str) -> tuple[PricePlace, ...]:
        """Return where the price list may know a model, the best place first.

        Args:
            model: As it is called on the wire.
            base_url: Where it is asked: a proxy in front of a vendor may have a list of its own.
        """
        own = PricePlace(model, provider_id=self.list_id)
        return own if self.list_id else PricePlace(model, api_url=base_url), *_vendor_places(model)

    def own_cost(self, usage: JsonObject) -> float | None:
        """Return the USD of a call as the `usage` of its reply states them; None when it does not."""
        named = (usage[name] for name in _COSTS if name in usage)
        sums = (value.get("total_cost") if isinstance(value, dict) else value for value in named)
        cost = next((sum_usd for value in sums if (sum_usd := amount(value)) is not None), None)
        details = usage.get("cost_details")
        if cost is not None and usage.get("is_byok") is True and isinstance(details, dict):
            # With a key of one's own at the server behind, a router names only its fee as the cost.
            cost += amount(details.get("upstream_inference_cost")) or 0.0
        return credible_usd(cost)

    def unknown_model_hint(self, model: str, base_url: str) -> str:
        """Return what to do about a model that it does not know."""
        return (
            f"{self.pull} {model}"
            if self.pull
            else f"check the model's name {model!r} and the address {base_url}"
        )


def _vendor_places(model: str) -> tuple[PricePlace, ...]:
    """Return where the price list knows a model by its vendor's name, or by its own."""
    vendor, _, name = model.partition("/")
    return (PricePlace(name, provider_id=vendor),) if name else (PricePlace(model),)


def credible_usd(cost: float | None) -> float | None:
    """Return what a call has cost; None for what none can cost, whose sum over a session need not be a number."""
    return cost if cost is not None and cost <= _MOST_USD else None


def amount(value: JsonValue) -> float | None:
    """Return a finite number that is at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None

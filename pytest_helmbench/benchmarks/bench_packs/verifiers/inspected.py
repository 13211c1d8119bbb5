"""Addresses in what docker and podman tell of their containers and networks (`inspect`)."""

from __future__ import annotations

import json

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.files.json_fields import a_mapping

__all__ = ["address_in", "host_address", "inspected", "published_port"]


def inspected(output: bytes) -> JsonObject:
    """Return the one thing that an engine was asked about; empty when it said nothing that can be read."""
    try:
        things: JsonValue = json.loads(output)
    except ValueError:
        return {}
    return a_mapping(_first(things))


def address_in(container: JsonObject, network: str) -> str:
    """Return the address of a container in a network; empty for none."""
    networks = a_mapping(_settings(container).get("Networks"))
    return _text(a_mapping(networks.get(network)).get("IPAddress"))


def published_port(container: JsonObject, port: int) -> str:
    """Return the port of this machine that leads to one of a container; empty for none."""
    published = a_mapping(_settings(container).get("Ports")).get(f"{port}/tcp")
    return _text(a_mapping(_first(published)).get("HostPort"))


def host_address(network: JsonObject) -> str:
    """Return the host's IPv4 address on a network, as podman or as docker describes it; empty for none."""
    places = network.get("subnets") or a_mapping(network.get("IPAM")).get("Config")
    for place in map(a_mapping, places if isinstance(places, list) else ()):
        address = _text(place.get("gateway") or place.get("Gateway"))
        if address and ":" not in address:
            return address
    return ""


def _settings(container: JsonObject) -> JsonObject:
    return a_mapping(container.get("NetworkSettings"))


def _first(things: JsonValue) -> JsonValue:
    return things[0] if isinstance(things, list) and things else None


def _text(value: JsonValue) -> str:
    return "" if value is None else str(value)

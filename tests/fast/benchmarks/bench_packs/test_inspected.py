"""Addresses in what engines say of containers and networks, in the forms of docker and of podman."""

from __future__ import annotations

import json

import pytest

from pytest_helmbench.benchmarks.bench_packs.verifiers.inspected import (
    address_in,
    host_address,
    inspected,
    published_port,
)

_DOCKER = {"IPAM": {"Config": [{"Subnet": "fd00::/64", "Gateway": "fd00::1"}, {"Gateway": "172.18.0.1"}]}}
_PODMAN = {"subnets": [{"subnet": "10.89.0.0/24", "gateway": "10.89.0.1"}]}


@pytest.mark.parametrize(
    ("network", "address"),
    [
        (_DOCKER, "172.18.0.1"),
        (_PODMAN, "10.89.0.1"),
        ({"subnets": [{"gateway": "fd00::1"}]}, ""),
        ({"subnets": [{}]}, ""),
        ({"IPAM": {"Config": None}}, ""),
        ({"IPAM": None}, ""),
        ({}, ""),
    ],
)
def test_the_host_has_an_ipv4_address_on_a_network_or_none(network: dict[str, object], address: str) -> None:
    assert host_address(inspected(json.dumps([network]).encode())) == address


@pytest.mark.parametrize("output", [b"", b"[]", b"{}", b"[5]", b"no such object"])
def test_what_cannot_be_read_says_nothing(output: bytes) -> None:
    found = inspected(output)
    assert (found, address_in(found, "net"), published_port(found, 80)) == ({}, "", "")


def test_a_container_has_an_address_in_its_network_and_ports_of_this_machine() -> None:
    settings = {
        "Networks": {"net": {"IPAddress": "172.18.0.2"}, "off": {"IPAddress": ""}, "new": None},
        "Ports": {"80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "49153"}], "81/tcp": None, "82/tcp": [{}]},
    }
    container = inspected(json.dumps([{"NetworkSettings": settings}]).encode())
    assert [address_in(container, name) for name in ("net", "off", "new", "other")] == [
        "172.18.0.2",
        "",
        "",
        "",
    ]
    assert [published_port(container, port) for port in (80, 81, 82, 83)] == ["49153", "", "", ""]

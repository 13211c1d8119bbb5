"""Base URLs: made uniform, refused where they would carry a secret, and told apart from this machine."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit

from pytest_helmbench.core.problem import HelmbenchError

__all__ = ["is_loopback", "normalise_address", "normalise_base_url"]


def normalise_base_url(text: str) -> str:
    """Return a base URL without a slash or `/chat/completions` at the end; `/v1` is not added.

    Raises:
        HelmbenchError: It is no http(s) address, or carries what would end up in the database.
    """
    return normalise_address(text).rstrip("/").removesuffix("/chat/completions").rstrip("/")


def normalise_address(text: str) -> str:
    """Return an address with scheme and host in small letters.

    Raises:
        HelmbenchError: See `normalise_base_url`.
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
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path}"


def _hidden(text: str) -> str:
    """Return an address that cannot be read, without what may be a password."""
    return f"…@{text.rpartition('@')[2]}" if "@" in text else text


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")

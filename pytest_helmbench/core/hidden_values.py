"""Secrets of the environment: blanked wherever a user has typed one into an option, before that is stored."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping

from pytest_helmbench.core.scrub import REDACTED

__all__ = ["HiddenValues", "secrets_of"]

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|(?:^|_)PAT(?:_|$)", re.IGNORECASE)
_SHORTEST = 8  # shorter values are words that anything may hold


def secrets_of(environ: Mapping[str, str], named: Collection[str] = ()) -> HiddenValues:
    """Return the values of the variables whose names say that they hold a secret.

    Args:
        environ: The environment.
        named: Further variables that do.
    """
    return HiddenValues(
        value for name, value in environ.items() if name in named or _SECRET.search(name) is not None
    )


class HiddenValues:
    """Values that are not stored.

    Args:
        values: Those of fewer than 8 characters are left out.
    """

    def __init__(self, values: Iterable[str]) -> None:
        stripped = {value.strip() for value in values}
        # The longest first: one may be part of another.
        self._values = sorted((value for value in stripped if len(value) >= _SHORTEST), key=len, reverse=True)
        forms = {
            json.dumps(value, ensure_ascii=plain)[1:-1] for value in self._values for plain in (True, False)
        }
        self._encoded = sorted(
            (form.encode("utf-8", "surrogatepass") for form in forms), key=len, reverse=True
        )

    def without(self, value: object) -> object:
        """Return a value of JSON types without them."""
        if isinstance(value, str):
            for hidden in self._values:
                value = value.replace(hidden, REDACTED)
            return value
        if isinstance(value, Mapping):
            return {self.without(name): self.without(one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.without(one) for one in value]
        return value

    def without_in_json(self, body: bytes) -> bytes:
        """Return an encoded JSON text without them."""
        for hidden in self._encoded:
            if hidden in body:
                body = body.replace(hidden, REDACTED.encode())
        return body

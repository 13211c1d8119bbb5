"""Which sandbox a user may ask for."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["SandboxMode"]


class SandboxMode(StrEnum):
    """The values of `--helmbench-sandbox`."""

    AUTO = "auto"
    DOCKER = "docker"
    PODMAN = "podman"
    BWRAP = "bwrap"
    NONE = "none"

"""Flags of container command lines that follow from values of ours alone."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping

from pytest_helmbench.sandbox.box import Limits, Mount

__all__ = ["mount_flags", "process_limits", "tool_environment"]

_OPEN_FILES = 1024
_PROCESSES = 8192
_FOUND_BY = (  # what the command lines need to find their servers, stores and registries
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    *("DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"),
    *("DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "CONTAINER_HOST", "CONTAINER_SSHKEY", "CONTAINERS_CONF"),
    *("CONTAINERS_STORAGE_CONF", "CONTAINERS_REGISTRIES_CONF", "REGISTRY_AUTH_FILE"),
    *("HTTPS_PROXY", "NO_PROXY", "HTTP_PROXY", "https_proxy", "no_proxy", "http_proxy"),
)


def process_limits(limits: Limits) -> Iterator[str]:
    """Return what the kernel bounds per process, within what we may set ourselves."""
    open_files = min(_OPEN_FILES, os.sysconf("SC_OPEN_MAX"))
    yield from (
        "core=0:0",
        f"cpu={math.ceil(limits.cpus * limits.wall_s)}",
        f"fsize={limits.disk_bytes}",
    )
    yield f"nofile={open_files}:{open_files}"
    # Named only because podman asks for more than it may set otherwise. It counts all processes of the user, so it
    # is generous; the container bounds its own.
    own = os.sysconf("SC_CHILD_MAX")
    yield "nproc={0}:{0}".format(_PROCESSES if own < 0 else min(_PROCESSES, own))


def mount_flags(mount: Mount) -> tuple[str, str]:
    fields = ["type=bind", f"src={mount.source}", f"dst={mount.target}"]
    if mount.read_only:
        fields.append("readonly")
    quoted = (
        f'"{field.replace(chr(34), chr(34) * 2)}"' if set(field) & set(',"') else field for field in fields
    )
    return "--mount", ",".join(quoted)


def tool_environment() -> Mapping[str, str]:
    """Return what a command line needs of the environment to find its engine, and no more."""
    return {name: os.environ[name] for name in _FOUND_BY if name in os.environ}

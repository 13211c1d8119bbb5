"""gVisor: containers whose system calls a kernel of their own answers, by podman or docker with the runtime `runsc`."""

from __future__ import annotations

import shutil
from dataclasses import replace

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.sandbox.box import EngineKind, Unavailable
from pytest_helmbench.sandbox.containers import ContainerEngine, find_containers
from pytest_helmbench.sandbox.engines.docker import DOCKER
from pytest_helmbench.sandbox.engines.podman import PODMAN

_RUNTIME = "runsc"


async def _find(kind: EngineKind, pull: Granted[bool]) -> ContainerEngine | Unavailable:
    runtime = shutil.which(_RUNTIME)
    if runtime is None:
        return Unavailable(f"{_RUNTIME} is not installed")
    # Podman takes a runtime by its path, docker by a name in the configuration of its daemon.
    by_podman = ("--runtime", runtime, "--runtime-flag", "network=none", "run")
    programs = {
        "podman": replace(PODMAN, run=by_podman),
        "docker": replace(DOCKER, run=("run", "--runtime", _RUNTIME)),
    }
    reasons = []
    for name, program in programs.items():
        found = await find_containers(kind, pull, program=program, name=name)
        if isinstance(found, ContainerEngine):
            return found
        reasons.append(found.reason)
    return Unavailable("; ".join(reasons))


ENGINE = EngineKind(name="gvisor", finder=_find, runs_images=True, auto_place=0, is_variant=True)

"""Docker as a sandbox engine: what its command line does in its own way."""

from __future__ import annotations

from functools import partial

from pytest_helmbench.sandbox.box import EngineKind
from pytest_helmbench.sandbox.containers import ContainerProgram, find_containers

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY")

DOCKER = ContainerProgram(
    rootless_question="{{.SecurityOptions}}",
    rootless_sign="rootless",
    # Its configuration may name proxies, with passwords in them.
    private=tuple(word for name in _PROXIES for word in ("--env", f"{name}=", "--env", f"{name.lower()}=")),
    private_build=tuple(
        word for name in _PROXIES for word in ("--build-arg", f"{name}=", "--build-arg", f"{name.lower()}=")
    ),
    # Podman's service under docker's name asks for a path where docker sends the filter itself.
    server_question="{{range .Server.Components}}{{.Name}} {{end}}",
    server_sign="Podman",
)
"""Docker's own way."""

ENGINE = EngineKind(
    name="docker",
    finder=partial(find_containers, program=DOCKER),
    runs_images=True,
    auto_place=1,
)

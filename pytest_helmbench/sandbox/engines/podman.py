"""Podman as a sandbox engine: what its command line does in its own way."""

from __future__ import annotations

from functools import partial

from pytest_helmbench.sandbox.box import EngineKind
from pytest_helmbench.sandbox.containers import ContainerProgram, find_containers

PODMAN = ContainerProgram(
    rootless_question="{{.Host.Security.Rootless}}",
    rootless_sign="true",
    private=("--read-only-tmpfs=false", "--http-proxy=false"),
    private_build=("--http-proxy=false",),
    build_here=("--pull=never",),
    closed_proc=("--security-opt", "proc-opts=nosuid,noexec,nodev,ro"),
    keep_owners=("--archive=false",),
    takes_as_root=True,
)
"""Podman's own way."""

ENGINE = EngineKind(
    name="podman",
    finder=partial(find_containers, program=PODMAN),
    runs_images=True,
    auto_place=2,
)

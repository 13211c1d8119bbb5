"""Verifiers in containers: the engine, a network of our own that leads nowhere else, and how a server is reached."""

from __future__ import annotations

import asyncio
import json
import socket
import sys

from pytest_helmbench.benchmarks.bench_packs.bench_pack import VerifierSpec
from pytest_helmbench.benchmarks.bench_packs.verifiers.running import (
    AbsentVerifierError,
    Health,
    Running,
    TellPhase,
)
from pytest_helmbench.benchmarks.bench_packs.verifiers.server_processes import tail
from pytest_helmbench.core.granted import NOT_ALLOWED
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.strict_json import a_mapping
from pytest_helmbench.sandbox.box import Engine, Limits
from pytest_helmbench.sandbox.containers import ContainerEngine, left_behind
from pytest_helmbench.sandbox.detection import first_engine, image_engines
from pytest_helmbench.sandbox.images import ImageError, ImageRights, ready_image
from pytest_helmbench.sandbox.living import LivingBox, LivingSpec
from pytest_helmbench.sandbox.owners import this_process
from pytest_helmbench.sandbox.processes import last_words
from pytest_helmbench.sandbox.workspace import SandboxError

_OWNER = "helmbench.owner"
_HOST_NAME = "host.docker.internal"
_BOUNDS = Limits(cpus=2.0, memory_bytes=2 * 2**30, pids=512)
_WRITABLE = (("/tmp", "1g"), ("/var/tmp", "256m"), ("/run", "64m"))
_LOG_BYTES = "1m"
_LOG_LINES = "20"
_END_S = 24 * 3600.0
_OTHER = "--helmbench-verifier=URL names another verifier"
_HINT = "--helmbench-verifier=process:COMMAND starts it on this machine, or give its URL"


@dataclass(frozen=True, slots=True)
class _Network:
    """A network of our containers.

    Args:
        name: As the engine knows it.
        closed: It leads to this machine and nowhere else.
        host: Address of this machine on it; empty when this machine is not on it.
    """

    name: str
    closed: bool
    host: str


class ContainerVerifier(Running):
    """A container that we started.

    Args:
        url: Where we reach its server.
        box: Its own program serves in it.
    """

    def __init__(self, url: str, engine: ContainerEngine, box: LivingBox) -> None:
        super().__init__(url, "docker")
        self._engine, self._box = engine, box

    async def end(self) -> None:
        """Wait for the end of the container."""
        await self._engine.tool("wait", self._box.name, wall_s=_END_S)

    async def stop(self) -> None:
        """Remove the container."""
        await self._box.remove()

    async def last_words(self) -> tuple[str, str]:
        form = "{{.State.Running}} {{.State.ExitCode}}"
        state = await self._engine.tool("inspect", "--type", "container", "--format", form, self._box.name)
        is_running, _, code = state.stdout.decode(errors="replace").strip().partition(" ")
        logs = await self._engine.tool("logs", "--tail", _LOG_LINES, self._box.name)
        ended = "" if is_running == "true" else f"its container ended with exit code {code}"
        return ended, tail(logs.stdout + logs.stderr)


class Containers:
    """The containers of one process: engines are looked for once, networks made when they are needed.

    Args:
        rights: What the user allows of images that are not here.
    """

    def __init__(self, rights: ImageRights) -> None:
        self._rights = rights
        self._found: dict[str | None, tuple[Engine | None, tuple[str, ...]]] = {}
        self._networks: dict[str, _Network] = {}
        self._one_at_a_time = asyncio.Lock()

    async def engine(self, wanted: str | None) -> ContainerEngine:
        """Return an engine.

        Args:
            wanted: Name of one that runs images; None for whichever answers.

        Raises:
            AbsentVerifierError: It does not answer.
        """
        if sys.platform == "win32":
            raise AbsentVerifierError(
                "missing_dependency", "needs a container, which needs Linux or macOS", _HINT
            )
        kinds = [kind for kind in image_engines() if wanted in (None, kind.name)]
        names = [kind.name for kind in kinds]
        async with self._one_at_a_time:
            if wanted not in self._found:
                self._found[wanted] = await first_engine(kinds, NOT_ALLOWED)
        engine, reasons = self._found[wanted]
        if engine is not None and engine.containers is not None:
            return engine.containers
        installed = not all(reason.endswith("is not installed") for reason in reasons)
        none = ", and neither answers here" if len(names) == 2 else ", and none answers here"
        needs = f"needs {' or '.join(names)}{none if wanted is None else ''}"
        raise AbsentVerifierError(
            "dependency_not_running" if installed else "missing_dependency",
            f"{needs} ({'; '.join(reasons)})",
            _HINT,
        )

    async def start(
        self, spec: VerifierSpec, engine: ContainerEngine, tell: TellPhase, health: Health
    ) -> ContainerVerifier:
        """Start the container of a verifier and wait until its server is well.

        Args:
            health: Waits for a health check; returns what it saw when it does not pass.

        Raises:
            AbsentVerifierError: It did not come up.
        """
        port = spec.listen_port
        if port is None or (spec.build_context is None and not spec.image):
            raise AbsentVerifierError("failed", "has no container described in the manifest", _HINT)
        try:
            image = await ready_image(engine, spec.build_context or spec.image, self._rights, tell=tell)
        except ImageError as error:
            hint = f"{error.hint}; {_OTHER}" if error.hint and spec.build_context else error.hint
            raise AbsentVerifierError(error.code, error.reason, hint) from error
        network = await self._network(engine)
        tell("starting_container", f"A container of {engine.name} is started.")
        try:
            box = await engine.open_living(_living(spec, image, network, port))
        except SandboxError as error:
            raise AbsentVerifierError("failed", f"did not start: {error}") from error
        try:
            url = await _address(engine, box.name, network, port)
            verifier = ContainerVerifier(url, engine, box)
            if not url:
                said = "".join(await verifier.last_words())
                raise AbsentVerifierError("failed", f"did not come up: {said}")
            tell("waiting_for_healthcheck", f"The verifier is waited for at {spec.health_path}.")
            await verifier.until_well(spec.health_path, health)
        except BaseException:
            await box.remove()
            raise
        return verifier

    def host_address(self) -> str | None:
        """Return the address of this machine on a network of our containers that something can listen at."""
        for network in self._networks.values():
            if network.host and _can_listen(network.host):
                return network.host
        return None

    async def close(self) -> None:
        """Remove containers and networks."""
        engines = [one for one, _ in self._found.values() if isinstance(one, ContainerEngine)]
        await asyncio.gather(*(engine.close() for engine in engines))
        for engine in engines:
            if network := self._networks.pop(engine.name, None):
                await engine.tool("network", "rm", network.name)
        self._found.clear()

    async def _network(self, engine: ContainerEngine) -> _Network:
        """Return our network of an engine; networks of killed sessions are removed."""
        async with self._one_at_a_time:
            if engine.name not in self._networks:
                listed = await engine.tool(
                    "network", "ls", "--filter", f"label={_OWNER}", "--format", "{{.Name}}"
                )
                for name in left_behind(listed.stdout.decode(errors="replace").split()):
                    await engine.tool("network", "rm", name)
                self._networks[engine.name] = await _new_network(engine)
            return self._networks[engine.name]


async def _new_network(engine: ContainerEngine) -> _Network:
    """Make a network; a closed one where this machine is on it and so needs no published port.

    Raises:
        AbsentVerifierError: There cannot be one.
    """
    is_near = sys.platform == "linux" and not engine.rootless
    for closed in (True, False) if is_near else (False,):
        name = engine.new_name()
        flags = ("--internal",) if closed else ()
        mark = f"{_OWNER}={this_process().mark}"
        made = await engine.tool("network", "create", *flags, "--label", mark, name)
        if made.exit_code != 0:
            raise AbsentVerifierError(
                "failed", f"did not start: {engine.name} made no network ({last_words(made)})"
            )
        host = ""
        if closed:
            host = _host_address((await engine.tool("network", "inspect", name)).stdout)
        if host or not closed:
            break
        await engine.tool("network", "rm", name)  # this machine is not on it
    return _Network(name, closed, host)


def _living(spec: VerifierSpec, image: str, network: _Network, port: int) -> LivingSpec:
    flags = ["--network", network.name, "--hostname", "verifier"]
    flags += ["--add-host", f"{_HOST_NAME}:{network.host}"] if network.host else []
    flags += [] if network.closed else ["--publish", f"127.0.0.1::{port}"]
    for place, size in _WRITABLE:
        flags += ["--tmpfs", f"{place}:rw,exec,nosuid,nodev,mode=1777,size={size}"]
    flags += ["--log-driver", "json-file", "--log-opt", f"max-size={_LOG_BYTES}"]
    # Compilers keep caches in the home folder, which cannot be written.
    env = (("HOME", "/tmp"), ("TMPDIR", "/tmp"))
    return LivingSpec(image, env, limits=_BOUNDS, label=f"verifier {spec.id}", server=tuple(flags))


async def _address(engine: ContainerEngine, name: str, network: _Network, port: int) -> str:
    """Return the URL of a container's server; empty where it has none, as when it has ended.

    Raises:
        AbsentVerifierError: It cannot be reached.
    """
    if not network.closed:
        published = (await engine.tool("port", name, f"{port}/tcp")).stdout.decode(errors="replace").strip()
        return f"http://127.0.0.1:{published.rpartition(':')[2]}" if published else ""
    form = f'{{{{(index .NetworkSettings.Networks "{network.name}").IPAddress}}}}'
    told = await engine.tool("inspect", "--type", "container", "--format", form, name)
    address = told.stdout.decode(errors="replace").strip()
    if address and not _can_listen(network.host):
        # A request to an address outside our networks could reach a foreign host.
        raise AbsentVerifierError(
            "failed", f"cannot be reached: the network of {engine.name} is not one of this machine", _HINT
        )
    return f"http://{address}:{port}" if address else ""


def _host_address(output: bytes) -> str:
    """Return the host's IPv4 address on a network, as podman or as docker describes it; empty for none."""
    try:
        (network,) = map(a_mapping, json.loads(output))
    except (ValueError, TypeError):
        return ""
    places = network.get("subnets") or a_mapping(network.get("IPAM")).get("Config")
    for place in map(a_mapping, places if isinstance(places, list) else ()):
        address = str(place.get("gateway") or place.get("Gateway") or "")
        if address and ":" not in address:
            return address
    return ""


def _can_listen(address: str) -> bool:
    try:
        with socket.socket() as trying:
            trying.bind((address, 0))
    except OSError:
        return False
    return True

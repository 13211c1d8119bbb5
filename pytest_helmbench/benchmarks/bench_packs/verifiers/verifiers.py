"""The verifiers of one pack: started when an item needs them, watched through proxies, removed at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Self

from pytest_helmbench.benchmarks.bench_packs.bench_pack import (
    BenchPackManifest,
    VerifierDefault,
    VerifierSpec,
)
from pytest_helmbench.benchmarks.bench_packs.verifiers.container_servers import Containers
from pytest_helmbench.benchmarks.bench_packs.verifiers.running import (
    AbsentVerifierError,
    Choices,
    Health,
    Mode,
    Running,
    Waits,
    health_of,
    is_usable,
)
from pytest_helmbench.benchmarks.bench_packs.verifiers.server_processes import start_process
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.fence import Fence, OpenPort
from pytest_helmbench.sandbox.images import ImageRights
from pytest_helmbench.sandbox.owners import remove_leftover_folders
from pytest_helmbench.sandbox.workspace import SandboxError

if TYPE_CHECKING:
    from pytest_helmbench.gateway.relay.verifier_proxy import VerifierProxy

_LONGEST = 1200
_CHOOSE = "--helmbench-verifier=URL names another one"


@dataclass(slots=True)
class _Place:
    """One verifier of the pack, and how it fares.

    Args:
        running: None while it does not run.
        absent: Why it does not run; None while it was not tried.
        doubted: It failed an item, so it is looked at before the next.
    """

    spec: VerifierSpec
    running: Running | None = None
    absent: AbsentVerifierError | None = None
    doubted: bool = False


@dataclass(frozen=True, slots=True)
class OpenVerifiers:
    """The verifiers of a pack as one item has them.

    Args:
        endpoints: Values of `HostContext.verifiers`, in the manifest's order.
        absent: A sentence for each optional verifier that does not run.
        proxies: In front of those that run, with what is called when one of them has failed.
    """

    endpoints: tuple[JsonObject, ...]
    absent: tuple[str, ...]
    proxies: tuple[tuple[VerifierProxy, Callable[[], None]], ...]

    @property
    def fault(self) -> str | None:
        """The first fault of a verifier, in a sentence; None when there was none."""
        return next((proxy.fault for proxy, _ in self.proxies if proxy.fault), None)

    @property
    def open_ports(self) -> tuple[OpenPort, ...]:
        """The ports of those that run."""
        return tuple(OpenPort(proxy.port, proxy.serve, proxy) for proxy, _ in self.proxies)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the addresses; the fault stays."""
        for proxy, doubt in self.proxies:
            if proxy.fault:
                doubt()
            await proxy.close()


class Verifiers:
    """The verifiers of one pack in this process. Used on one event loop.

    Args:
        tell: Takes the protocol's `verifier_preparing` events.
        fence: What keeps processes in; None to run them with our rights.
        waits: How long health checks may take.
        rights: What the user allows of images that are not here.
    """

    def __init__(
        self,
        manifest: BenchPackManifest,
        choices: Choices,
        tell: Callable[[JsonObject], None],
        *,
        fence: Fence | None = None,
        waits: Waits | None = None,
        rights: ImageRights | None = None,
    ) -> None:
        self._manifest = manifest
        self._choices = choices
        self._tell = tell
        self._fence = fence
        self._waits = waits or Waits()
        self._places = tuple(_Place(spec) for spec in manifest.verifiers)
        self._containers = Containers(rights or ImageRights())
        self._one_at_a_time = asyncio.Lock()

    @property
    def absent(self) -> tuple[str, ...]:
        """A sentence for each optional verifier that was tried and does not run."""
        return tuple(_sentence(place) for place in self._places if place.absent and not place.spec.required)

    async def ready(self) -> str | None:
        """Start what does not run yet, and look at what has failed an item; costs nothing when all is well.

        Returns:
            Why the pack cannot run, with a hint; None when it can.
        """
        async with self._one_at_a_time:
            await asyncio.gather(*map(self._attend, self._places))
        lacking = [
            _sentence(place, hint=True) for place in self._places if place.absent and place.spec.required
        ]
        return "\n".join(lacking) or None

    async def open(self) -> OpenVerifiers:
        """Open an address for one item in front of each verifier that runs; `ready()` comes before.

        Raises:
            OSError: No port is free.
        """
        # The HTTP server takes longer to load than a small session to run.
        from pytest_helmbench.gateway.relay.verifier_proxy import VerifierProxy

        endpoints: list[JsonObject] = []
        proxies: list[tuple[VerifierProxy, Callable[[], None]]] = []
        try:
            for place in self._places:
                proxy = None
                if place.running is not None:
                    proxy = VerifierProxy(place.spec.id, place.running.url)
                    proxies.append((proxy, partial(_doubt, place, place.running)))
                    await proxy.listen()
                endpoints.append(_endpoint(place, proxy))
        except BaseException:
            for proxy, _ in proxies:
                await proxy.close()
            raise
        return OpenVerifiers(tuple(endpoints), self.absent, tuple(proxies))

    async def open_port(self, port: OpenPort) -> None:
        """Let those that run reach a port of ours: a verifier may ask the model, at the address that its pack names."""
        for place in self._places:
            if place.running is not None:
                await place.running.open_port(port)

    async def bridge_address(self) -> str | None:
        """Return this machine's address on the network of the containers; None when none runs or none is there."""
        return self._containers.host_address()

    async def close(self) -> None:
        """Stop and remove everything that was started."""
        async with self._one_at_a_time:
            running = [place.running for place in self._places if place.running is not None]
            for place in self._places:
                place.running = place.absent = None
            await asyncio.gather(*(one.stop() for one in running))
            await self._containers.close()

    async def _attend(self, place: _Place) -> None:
        if place.absent is not None or (place.running is not None and not place.doubted):
            return
        if place.running is not None:
            if await self._is_well(place.spec, place.running):
                place.doubted = False
                return
            stopped, place.running = place.running, None
            await stopped.stop()
        place.doubted = False
        try:
            place.running = await self._start(place.spec)
        except AbsentVerifierError as error:
            place.absent = error
        except SandboxError as error:  # the command line of an engine, or a folder
            place.absent = AbsentVerifierError("failed", f"did not start: {error}")

    async def _is_well(self, spec: VerifierSpec, running: Running) -> bool:
        """Look at a verifier that has failed an item: one that is only busy is left alone."""
        within_s = self._waits.url_s if type(running) is Running else self._waits.again_s
        looking = self._health(spec, within_s)(running.url + spec.health_path)
        return await health_of(looking, running.end()) is None

    async def _start(self, spec: VerifierSpec) -> Running:
        """Start a verifier as the user wants it, else as the manifest does.

        Raises:
            AbsentVerifierError: It does not run.
        """
        choice = self._choices.of(spec.id)
        if choice is None:
            if spec.default_mode is not VerifierDefault.DOCKER:
                raise _only_stated(spec)
            return await self._contained(spec, None)
        match choice.mode:
            case Mode.URL:
                return await self._reached(spec, choice.url, "custom_url")
            case Mode.CLOUD:
                if spec.default_mode is not VerifierDefault.CLOUD or not is_usable(spec.url):
                    missing = "has no server of its author's in the manifest"
                    raise AbsentVerifierError("missing_dependency", missing, _CHOOSE)
                return await self._reached(spec, spec.url, "cloud")
            case Mode.PROCESS:
                await asyncio.to_thread(remove_leftover_folders)
                where = "unprotected, on this machine" if self._fence is None else "in a sandbox"
                self._say(spec, "starting_container", f"The command that you named is started, {where}.")
                folder = (spec.build_context or self._manifest.root).absolute()
                health = self._health(spec, self._waits.process_s)
                return await start_process(spec, folder, choice.command, self._fence, health)
        return await self._contained(spec, choice.mode.value)

    async def _contained(self, spec: VerifierSpec, wanted: str | None) -> Running:
        self._say(spec, "checking_docker", "A container engine is looked for.")
        await asyncio.to_thread(remove_leftover_folders)
        engine = await self._containers.engine(wanted)
        return await self._containers.start(
            spec, engine, partial(self._say, spec), self._health(spec, self._waits.container_s)
        )

    async def _reached(self, spec: VerifierSpec, url: str, mode: str) -> Running:
        """Return a server that the session did not start.

        Raises:
            AbsentVerifierError: It is not well.
        """
        self._say(spec, "waiting_for_healthcheck", f"The verifier is looked for at {spec.health_path}.")
        well = url.rstrip("/") + spec.health_path
        saw = await self._health(spec, self._waits.url_s)(well)
        if saw is not None:
            raise AbsentVerifierError("stopped", f"is not well at {excerpt(well, 200)}: {saw}", _CHOOSE)
        return Running(url.rstrip("/"), mode)

    def _health(self, spec: VerifierSpec, within_s: float) -> Health:
        from pytest_helmbench.gateway.relay.verifier_client import failed_health

        return partial(failed_health, within_s=within_s, any_answer=not spec.health_path)

    def _say(self, spec: VerifierSpec, phase: str, message: str) -> None:
        self._tell(
            {
                "type": "verifier_preparing",
                "benchPackId": self._manifest.id,
                "benchPackName": self._manifest.name,
                "verifierId": spec.id,
                "phase": phase,
                "message": excerpt(message, _LONGEST),
            }
        )


def _doubt(place: _Place, running: Running) -> None:
    """Have a verifier looked at again, unless it has been replaced meanwhile."""
    if place.running is running:
        place.doubted = True


def _only_stated(spec: VerifierSpec) -> AbsentVerifierError:
    """Return why a verifier does not run whose address only its manifest names: a manifest widens no rights."""
    url = excerpt(spec.url, 200)
    choice = "cloud" if spec.default_mode is VerifierDefault.CLOUD else url
    if not url:
        return AbsentVerifierError(
            "missing_dependency", "has no URL in the manifest", "give one: --helmbench-verifier=URL"
        )
    return AbsentVerifierError(
        "missing_dependency",
        f"is at {url}, an address that only the manifest names",
        f"if you want it to be asked: --helmbench-verifier={spec.id}={choice}",
    )


def _sentence(place: _Place, *, hint: bool = False) -> str:
    absent = place.absent
    if absent is None:
        return ""
    # Paths, images and addresses in it are the pack's own words.
    words = f"verifier {excerpt(place.spec.id, 80)!r} {excerpt(absent.reason, _LONGEST)}".replace("\n", " ")
    return f"{words}\n  hint: {absent.hint}" if hint and absent.hint else words


def _endpoint(place: _Place, proxy: VerifierProxy | None) -> JsonObject:
    """Return a verifier as its pack sees it.

    Source:
        Bench Packs, section 2.
    """
    spec, running = place.spec, place.running
    stated: JsonObject = {"id": spec.id, "transport": "http", "required": spec.required}
    if running is None or proxy is None:
        status = place.absent.code if place.absent else "stopped"
        details = {"details": _sentence(place)} if place.absent else {}
        return {**stated, "mode": spec.default_mode.value, "status": status, **details}
    return {**stated, "mode": running.mode, "status": "running", "url": proxy.url, "port": proxy.port}

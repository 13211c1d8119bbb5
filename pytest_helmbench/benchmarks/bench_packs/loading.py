"""The Bench Packs of a session: loaded, listed, ready to run, and scored when nothing more comes."""

from __future__ import annotations

import asyncio
import hashlib
import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean

from pytest_helmbench.benchmarks.bench_packs.bench_pack import (
    BENCH_PACK,
    BenchPackManifest,
    BenchPackOutline,
    BenchPackRule,
    PackScore,
    ScenarioMeta,
    ScenarioResult,
)
from pytest_helmbench.benchmarks.bench_packs.format.manifest import load_manifest
from pytest_helmbench.benchmarks.bench_packs.node.answers import MalformedAnswerError, scenarios_of, score_of
from pytest_helmbench.benchmarks.bench_packs.node.bridge import Bridge
from pytest_helmbench.benchmarks.bench_packs.node.command import BridgePlace, Node, find_node
from pytest_helmbench.benchmarks.bench_packs.node.process import PackFailedError
from pytest_helmbench.benchmarks.bench_packs.places import PLACES
from pytest_helmbench.benchmarks.bench_packs.record import bench_pack_results
from pytest_helmbench.benchmarks.bench_packs.verifiers.running import parse_choices
from pytest_helmbench.benchmarks.bench_packs.verifiers.verifiers import Verifiers
from pytest_helmbench.benchmarks.bench_packs.work import (
    AddressLender,
    BenchPackTools,
    BenchPackWork,
    item_limits_name,
    pack_event,
)
from pytest_helmbench.benchmarks.kind import JudgedByItself, SessionValues
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome, Verdict
from pytest_helmbench.core.problem import HelmbenchError, Problem, UnreadableBenchmarkError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.engine.job import CaseJob, RunIds, Target
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.engine.work import RunnerSettings
from pytest_helmbench.gateway.permits import ModelLimits
from pytest_helmbench.gateway.relay.relay import Relay
from pytest_helmbench.options.declarations import Options
from pytest_helmbench.options.option import least_score_text
from pytest_helmbench.sandbox.box import Unavailable
from pytest_helmbench.sandbox.fence import Fence, find_fence
from pytest_helmbench.sandbox.images import ImageRights
from pytest_helmbench.sandbox.owners import new_folder, remove_leftover_folders
from pytest_helmbench.sandbox.workspace import remove_tree
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.write.writer import Store

_HOME = ".helmbench"
_FOLDERS = ("data", "cache", "runs")
_SHOWN = 1_500
_HINTS: Mapping[str, str] = {
    "Unknown file extension": "build the pack: its entry must be JavaScript",
    "EROFS": "a pack writes where its HostContext says: dataDir, cacheDir and runsDir",
}
"""Hints by the words of Node, for the commonest reasons why a pack does not load."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_MISSING_PACKAGE = re.compile(
    r"Cannot find (?:package|module) '((?:@[A-Za-z0-9~-][\w.~-]*/)?[A-Za-z0-9~-][\w.~-]*)(?:/[^'\s]*)?'",
    re.ASCII,
)
_HASH_DIGITS = 16


@dataclass(frozen=True, slots=True, eq=False)
class BenchPackJob(CaseJob):
    """A scenario on its way.

    Args:
        scenario: As the pack lists it.
        number: Its place in the pack's list, from 1.
    """

    loaded: LoadedBenchPack
    scenario: ScenarioMeta
    number: int

    is_one_question = False
    """The pack asks what it likes."""

    @property
    def code(self) -> str:
        """The scenario's id."""
        return self.scenario.id

    @property
    def family(self) -> str:
        """`bench_pack`: packs are all of one family."""
        return BENCH_PACK

    def prompt_characters(self) -> int:
        """Return the length of what the pack shows of its prompt; only its code knows what it will ask."""
        return len(self.scenario.prompt_text)

    def case(self, _system_prompt: str | None) -> Case:
        """See `CaseJob.case`; there is nothing to compose: the pack writes its own prompts."""
        return Case(self.code, (), None, self.loaded.rule(self.scenario, self.number))

    @property
    def work(self) -> BenchPackWork:
        """The work of its pack, which all its scenarios share."""
        return self.loaded.work

    def rule_hashes(self, case: Case, _settings: RunnerSettings) -> tuple[str, ...]:
        return (case.rule.hash,) if isinstance(case.rule, BenchPackRule) else ()

    def facts(self) -> dict[str, str | int | None]:
        """Return what the `helmbench` marker says."""
        return {
            "benchmark": self.loaded.outline.name,
            "scenario": self.code,
            "category": self.scenario.category or None,
            **CaseJob.facts(self),
        }

    def properties(self, outcome: Outcome) -> list[tuple[str, object]]:
        """Return the JUnit properties, those of the pack's own scale too."""
        # By name, since a class with slots is made anew and `super()` looks for the first one.
        own = CaseJob.properties(self, outcome)
        result = outcome.statement
        if not isinstance(result, ScenarioResult):
            return own
        stated = {"pack_status": str(result.status), "pack_score": result.score, "pack_points": result.points}
        return [*own, *((name, value) for name, value in stated.items() if value is not None)]


class LoadedBenchPack(JudgedByItself):
    """A Bench Pack with the models it runs on. A fault of a part is one of the whole pack.

    Args:
        scenarios: As the pack lists them; empty where it cannot be asked: one represents all of them then.
        targets: One per model, in order.
        work: How its scenarios are run.
    """

    def __init__(
        self,
        manifest: BenchPackManifest,
        scenarios: Sequence[ScenarioMeta],
        targets: tuple[Target, ...],
        work: BenchPackWork,
        least: float | None,
    ) -> None:
        self.manifest = manifest
        self.targets = targets
        self.work = work
        self._least = least
        self.warnings: Sequence[Problem] = ()
        self.stands_for_all = not scenarios
        scenarios = scenarios or (ScenarioMeta(manifest.id, manifest.name),)
        self.outline = BenchPackOutline(
            root=manifest.root,
            name=manifest.id,
            version=manifest.version,
            description=manifest.description,
            hash=manifest.hash,
            scenarios={scenario.id: scenario for scenario in scenarios},
        )

    @property
    def root(self) -> Path:
        """The folder of the manifest."""
        return self.manifest.root

    @property
    def item_limits(self) -> Iterator[ModelLimits]:
        """The limits that bound how many of its scenarios run at a time, where something does."""
        for target in self.targets:
            most = self.work.most_at_once(target.model.endpoint)
            if most is not None:
                yield ModelLimits(
                    item_limits_name(self.manifest, target.model.entry.id), most, free=True, items=True
                )

    @property
    def files(self) -> tuple[Path, ...]:
        """The manifest."""
        return (self.manifest.path,)

    def cases_in(self, path: Path) -> bool:
        """Return whether a file is its manifest."""
        return path == self.manifest.path

    def jobs(self, _path: Path, file_id: str, repeat: int) -> Iterator[BenchPackJob]:
        for number, scenario in enumerate(self.outline.scenarios.values(), 1):
            for target in self.targets:
                for repetition in range(1, repeat + 1):
                    yield BenchPackJob(target, repetition, False, file_id, self, scenario, number)

    def count(self) -> int:
        return len(self.outline.scenarios)

    def rule(self, scenario: ScenarioMeta, number: int) -> BenchPackRule:
        """Return the rule for a scenario."""
        decisive = f"{self.manifest.hash}\n{scenario.id}\n{least_score_text(self._least)}"
        digest = hashlib.sha256(decisive.encode("utf-8", "surrogatepass")).hexdigest()
        return BenchPackRule(scenario, number, self.count(), self._least, digest[:_HASH_DIGITS])


class BenchPackLoader:
    """Loads Bench Packs that share a relay.

    Args:
        environ: Where Node is looked for.
        note: Says something in the summary.

    Raises:
        HelmbenchError: A value of `--helmbench-verifier` means nothing.
    """

    def __init__(
        self,
        settings: Options,
        environ: Mapping[str, str],
        loop: LoopThread,
        note: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._settings = settings
        self._note = note
        self._loop = loop
        self._choices = parse_choices(settings.bench_packs.verifiers)
        self._node = find_node(settings.bench_packs.node, environ)
        self._relay = Relay()
        self._loaded: list[LoadedBenchPack] = []
        self._is_run = False
        self._fence: Fence | None = None
        self._no_fence = self._found_fence()
        self._bridges: dict[Path, tuple[Bridge, BridgePlace]] = {}
        remove_leftover_folders()

    def load(self, root: Path, targets: tuple[Target, ...]) -> LoadedBenchPack:
        """Return the Bench Pack at a folder.

        Raises:
            UnreadableBenchmarkError: Its manifest is broken, or it cannot list its scenarios.
        """
        manifest = load_manifest(root)
        obstacle = self._obstacle(manifest)
        self._is_run = self._is_run or bool(targets and not self._settings.dry_run)
        runs = isinstance(self._node, Node) and self._no_fence is None
        lists = runs and manifest.entry.is_file()
        scenarios = self._listed(manifest) if lists else ()
        settings = self._settings
        tools = partial(self._tools, manifest) if obstacle is None else obstacle
        work = BenchPackWork(manifest, settings, tools)
        loaded = LoadedBenchPack(manifest, scenarios, targets, work, settings.bench_packs.partial)
        self._loaded.append(loaded)
        return loaded

    def note_starts(self, store: Store, run_ids: RunIds) -> None:
        """Put on record that the runs have started."""
        for loaded, model, run_id in self._runs(run_ids):
            started = pack_event(
                "run_started",
                runId=str(run_id),
                benchPackName=loaded.manifest.name,
                models=[{"id": model, "label": model}],
                totalScenarios=len(loaded.outline.scenarios),
            )
            store.record_event(run_id, started)
        known = {spec.id for loaded in self._loaded for spec in loaded.manifest.verifiers}
        for name in sorted(self._choices.named.keys() - known if known else ()):
            self._note(
                f"--helmbench-verifier names {excerpt(name)!r}, which no Bench Pack of this session has"
                f"\n  hint: known: {excerpt(', '.join(sorted(known)))}"
            )

    def store_totals(self, store: Store, run_ids: RunIds) -> None:
        """Put on record what the packs make of their runs; what was recorded is on disk by now."""
        try:
            for loaded, model, run_id in self._runs(run_ids):
                self._store_total(store, loaded, model, run_id)
        except StoreError as error:
            self._note(f"the totals of Bench Packs were not stored: {error}")

    def _store_total(self, store: Store, loaded: LoadedBenchPack, model: str, run_id: int) -> None:
        """Ask a pack for its score of each repetition of a run, and put their mean on record, or what went wrong."""
        repetitions = bench_pack_results(store.path, run_id)
        if not repetitions:
            return
        try:
            bridge, _ = self._bridge(loaded.manifest)
            found = [score_of(self._loop.run(bridge.score(results))) for results in repetitions.values()]
        except HelmbenchError as error:
            self._note(f"{loaded.manifest.id} has no total for {model}: {error}")
            store.record_event(run_id, pack_event("run_error", message=str(error)))
            return
        everything = len(loaded.outline.scenarios)
        partial = len(repetitions) < self._settings.repeat or any(
            len(results) < everything for results in repetitions.values()
        )
        score = replace(mean_score(found), partial=partial)
        store.record_statement(run_id, score)
        stated: JsonValue = {
            "totalScore": score.total,
            "categories": [dict(category) for category in score.categories],
            "summary": score.summary,
            **({"totalUnit": score.unit} if score.unit else {}),
            **score.extra,
        }
        store.record_event(run_id, pack_event("run_finished", scores={model: stated}))

    async def close(self) -> None:
        """End everything that was started."""
        async with AsyncExitStack() as stack:  # one that cannot be ended keeps no other from its end
            stack.push_async_callback(self._relay.close)
            while self._bridges:
                _, (bridge, place) = self._bridges.popitem()
                stack.push_async_callback(asyncio.to_thread, remove_tree, place.home)
                stack.push_async_callback(bridge.close)
            if self._fence is not None:
                stack.push_async_callback(self._fence.close)
            for loaded in self._loaded:
                stack.push_async_callback(loaded.work.close)

    def _runs(self, run_ids: RunIds) -> Iterator[tuple[LoadedBenchPack, str, int]]:
        """Yield each pack with the model that it ran on, and `evaluation_runs.id`."""
        for loaded in self._loaded:
            for target in loaded.targets:
                run_id = run_ids.get(target.key)
                if run_id is not None:
                    yield loaded, target.model.entry.id, run_id

    def _obstacle(self, manifest: BenchPackManifest) -> Outcome | None:
        if manifest.obstacle is not None:
            return Outcome(Verdict.SKIPPED, "unsupported", manifest.obstacle)
        if isinstance(self._node, str):
            return Outcome(Verdict.SKIPPED, "no_node", self._node)
        if self._no_fence is not None:
            return Outcome(Verdict.SKIPPED, "no_sandbox", self._no_fence.reason)
        return None

    def _found_fence(self) -> Unavailable | None:
        """Look for what keeps packs in; return why nothing does, and they shall not run without."""
        if isinstance(self._node, str):
            return None
        found = self._loop.run(find_fence(self._settings.packs.sandbox))
        if isinstance(found, Fence):
            self._fence = found
        return found if isinstance(found, Unavailable) and not self._settings.packs.unprotected else None

    def _listed(self, manifest: BenchPackManifest) -> tuple[ScenarioMeta, ...]:
        try:
            return scenarios_of(self._loop.run(self._bridge(manifest)[0].scenarios()))
        except (PackFailedError, MalformedAnswerError) as error:
            words = error.words if isinstance(error, PackFailedError) else ""
            known = (hint for said, hint in _HINTS.items() if said in str(error))
            help_ = package_hint(str(error), root=manifest.root) or next(known, "")
            hint = "\n".join(filter(None, (help_, f"Node says:\n{excerpt(words, _SHOWN)}" if words else "")))
            raise UnreadableBenchmarkError((Problem(manifest.entry, None, str(error), hint),)) from error

    def _tools(self, manifest: BenchPackManifest, tell: Callable[[JsonObject], None]) -> BenchPackTools:
        """Make what a pack is run with; its process may have listed the scenarios already."""
        bridge, place = self._bridge(manifest)
        rights = f"{manifest.id} ran with your rights (--helmbench-unprotected)"
        options = self._settings.bench_packs
        images = ImageRights(options.build, self._settings.packs.pull)
        verifiers = Verifiers(manifest, self._choices, tell, fence=self._fence, rights=images)
        lender = AddressLender(self._relay, verifiers, once=options.prepare == "session")
        hint = partial(package_hint, root=manifest.root)
        begins = partial(self._note, rights) if self._fence is None else lambda: None
        return BenchPackTools(place, bridge, lender, hint, begins)

    def _bridge(self, manifest: BenchPackManifest) -> tuple[Bridge, BridgePlace]:
        if isinstance(self._node, str):
            raise PackFailedError("not_loadable", self._node)
        if manifest.root not in self._bridges:
            data = self._settings.db.parent.resolve() / _HOME / _name(manifest.id)
            _refuse_links(data)
            place = BridgePlace(
                root=manifest.root.absolute(),
                entry=manifest.entry.absolute(),
                data_dir=data / _FOLDERS[0],
                cache_dir=data / _FOLDERS[1],
                runs_dir=data / _FOLDERS[2],
                home=new_folder(),
            )
            if self._is_run:  # what is not there when its process starts, it does not see
                _make(place, self._settings.db.parent / _HOME)
            bridge = Bridge(self._node, place, fence=self._fence)
            self._bridges[manifest.root] = bridge, place
        return self._bridges[manifest.root]


def package_hint(message: str, *, root: Path) -> str:
    """Return what to do where Node could not find a package; empty when its message is about something else."""
    found = _MISSING_PACKAGE.search(message)
    if found is None:
        return ""
    return (
        f"run `npm install --ignore-scripts` in {shlex.quote(str(root))}, with the name {found[1]} where its"
        " package.json does not list it; or ship the package in the pack's node_modules"
    )


def mean_score(scores: Sequence[PackScore]) -> PackScore:
    """Return the mean over repetitions: of the total, and of each category that has a score in all of them.

    Args:
        scores: At least one; texts, units and weights are those of the first.
    """
    first = scores[0]
    if len(scores) == 1:
        return first
    found: defaultdict[str, list[float]] = defaultdict(list)
    for score in scores:
        for category in score.categories:
            if isinstance(part := category.get("score"), int | float):
                found[str(category["id"])].append(part)

    def mean(name: str) -> float | None:
        return fmean(found[name]) if len(found[name]) == len(scores) else None

    categories = tuple({**category, "score": mean(str(category["id"]))} for category in first.categories)
    return replace(first, total=fmean(score.total for score in scores), categories=categories)


def _name(pack: str) -> str:
    """Return the name of a pack's folder: its id where that is a plain one."""
    digest = hashlib.sha256(pack.encode("utf-8", "surrogatepass")).hexdigest()
    return pack if _PLAIN.fullmatch(pack) else digest[:16]


def _refuse_links(data: Path) -> None:
    """Let no pack bring its folders as links to somewhere else, where pytest was started in it.

    Raises:
        UnreadableBenchmarkError: One is a link.
    """
    for part in (data.parent, data, *(data / name for name in _FOLDERS)):
        if part.is_symlink():
            message = "a link where a Bench Pack keeps its data"
            raise UnreadableBenchmarkError((Problem(part, None, message, "remove it"),))


def _make(place: BridgePlace, around: Path) -> None:
    """Make a pack's folders: beside the results, and nothing that git would track.

    They stay, empty too: other workers and sessions have them bound into their fences.
    """
    for folder in (place.data_dir, place.cache_dir, place.runs_dir):
        folder.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), (around / ".gitignore").open("x", encoding="utf-8") as file:
        file.write("*\n")


class BenchPacks:
    name = PLACES.name

    def open(self, session: SessionValues) -> BenchPackLoader:
        return BenchPackLoader(session.settings, session.environ, session.loop(), session.note)


KIND = BenchPacks()

"""task_folder: a Harbor task folder; what the agent leaves in its box is judged by the tests of the folder."""

from __future__ import annotations

import json
import math
import posixpath
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from pytest_helmbench.benchmarks.packs.agent.agent_family import (
    AgentFamily,
    AgentFinding,
    AgentRow,
    AgentSession,
    Desk,
    FindingError,
    Worker,
    say_only,
)
from pytest_helmbench.benchmarks.packs.agent.hand_over import HandedOver, WantedPath, hand_over
from pytest_helmbench.benchmarks.packs.families.family import check_of
from pytest_helmbench.benchmarks.packs.families.task_folder.boxes import (
    UNHEALTHY,
    Load,
    TaskPlace,
    bash,
    open_task,
    put,
)
from pytest_helmbench.benchmarks.packs.families.task_folder.check import (
    ARTIFACTS,
    EVAL_FIELDS,
    INPUT_FIELDS,
    FolderTask,
    check_files,
    filled_env,
    folder_task,
    unknown_needs,
)
from pytest_helmbench.benchmarks.packs.format.pack_files import RowPlace
from pytest_helmbench.benchmarks.packs.format.prompt_template import PromptTemplate, field_text
from pytest_helmbench.benchmarks.packs.task import BoxRoom, PackTask
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Beside, Verdict
from pytest_helmbench.core.scrub import excerpt, scrub
from pytest_helmbench.files.field_values import RowFaults
from pytest_helmbench.sandbox.box import NO_IMAGE, Command, Ended, Engine, Limits, Streams, Unavailable
from pytest_helmbench.sandbox.images import image_obstacle
from pytest_helmbench.sandbox.living import (
    ArchiveRefusedError,
    BoxDiedError,
    LivingBox,
    TooLargeError,
    place_of,
)

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.packs.row_tools import RowTools

_DATA = (".json", ".csv", ".tsv", ".txt", ".md", ".ics", ".png", ".npy", ".parquet")
"""Ends of the declared names of files that no program runs."""

_STEP = "verifier"
_NO_REWARD = "no_reward"
_SOLUTION = "/solution"
_SOLUTION_S = 3600.0
_LARGEST_TEXT = 1024 * 1024
TESTS = "/tests"
REWARDS = ("/logs/verifier/reward.json", "/logs/verifier/reward.txt")
"""In the order in which they count."""

_REWARD = "reward"
_LARGEST_REWARD = 64 * 1024
_LARGEST_ARCHIVE = 256 * 1024
_LARGEST_LOGS = 8 * 1024 * 1024
_OUTPUT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class UserShell:
    """The shell of one user in a living box.

    Args:
        user: Name or number; None for the image's.
    """

    box: LivingBox
    user: str | None

    async def run(self, command: Command, /) -> Ended:
        return await self.box.run(command, user=self.user)


class TaskFolder(AgentFamily[TaskPlace, HandedOver]):
    """Rows that are folders in the format of Harbor: their task.toml was checked when it was read."""

    name = "task_folder"
    in_living_box = True
    input_fields = INPUT_FIELDS
    eval_fields = EVAL_FIELDS
    template = PromptTemplate(
        __package__, values={"instruction": field_text("instruction")}, needed=("instruction",)
    )

    def check_needs(self, faults: RowFaults, hidden: JsonObject, _place: RowPlace) -> None:
        if not unknown_needs(hidden):
            check_files(faults, hidden)

    def skip_reason(self, _public: JsonObject, hidden: JsonObject, _place: RowPlace) -> str | None:
        needs = unknown_needs(hidden)
        return f"it needs {', '.join(needs)}, unknown here" if needs else None

    def compiled_check(self, _public: JsonObject, hidden: JsonObject) -> FolderTask:
        return folder_task(hidden)

    def agent_wall_s(self, task: PackTask) -> float | None:
        return check_of(task, FolderTask).agent_timeout_s

    def room_of(self, task: PackTask) -> BoxRoom:
        boxes = check_of(task, FolderTask).boxes
        return BoxRoom(max(one.cpus for one in boxes), max(one.memory_mb for one in boxes))

    async def obstacle(self, task: PackTask, engine: Engine, tools: RowTools) -> Unavailable | None:
        folder = check_of(task, FolderTask)
        if engine.containers is None:
            return Unavailable("task folders need docker or podman", "no_sandbox")
        lost = folder.lost_variables(tools.variables)
        if lost:
            options = " ".join(f"--helmbench-agent-env={name}" for name in lost)
            return Unavailable(
                f"it needs {', '.join(lost)}, which {options} would pass on", "denied_variable"
            )
        has_network = folder.verifier.network and tools.settings.gives_network
        if folder.downloads is not None and not has_network:
            where = f"tests/test.sh:{folder.downloads}"
            why = f"{where}: the verifier downloads; --helmbench-network=task allows it"
            return Unavailable(why, "no_network")
        for needs in folder.boxes:
            source = needs.source(tools.files.root / folder.folder)
            if found := await image_obstacle(engine.containers, source, tools.image_rights):
                return Unavailable(f"it {found.reason}; {found.hint}", NO_IMAGE)
        return None

    def place(self, row: AgentRow, tools: RowTools) -> AbstractAsyncContextManager[TaskPlace]:
        return open_task(row, tools)

    def desk(self, place: TaskPlace) -> Desk:
        async def put_trees(trees: Sequence[tuple[Path, str]]) -> None:
            await put(place.box, Load(trees=trees), place.passage)

        return Desk(UserShell(place.box, place.task.agent_user), put=put_trees)

    async def hand_over(self, place: TaskPlace, _said: str) -> HandedOver:
        task, box = place.task, place.box
        for one in task.collect:
            await box.run(bash(one.command, wall_s=one.timeout_s), user=one.user)
        await (box.kill() if task.separate else box.freeze())
        handed = await hand_over(box, _wanted(task, box), place.passage / "handed.tar", place.owner)
        place.row.events.append(handed.event)
        return handed

    async def judge(self, place: TaskPlace, work: HandedOver) -> AgentFinding:
        found = await _finding(place, work)
        if found.reason == _NO_REWARD and not await self._is_sound(place):
            found = replace(found, verdict=Verdict.ERROR)
        return replace(found, removed=work.removed)

    async def finding(self, row: AgentRow, session: AgentSession, tools: RowTools) -> AgentFinding:
        try:
            return await super().finding(row, session, tools)
        except BoxDiedError as error:
            if error.memory:
                return AgentFinding(Verdict.FAILED, "out_of_memory", f"the agent's box: {error}", step=_STEP)
            raise

    def hidden_texts(self, task: PackTask, tools: RowTools) -> Iterator[tuple[str, str]]:
        folder = tools.files.root / check_of(task, FolderTask).folder
        for path in sorted(path for name in ("tests", "solution") for path in (folder / name).rglob("*")):
            if path.is_file() and path.stat().st_size <= _LARGEST_TEXT:
                yield path.relative_to(folder).as_posix(), path.read_text("utf-8", "replace")

    def result_paths(self, task: PackTask) -> tuple[str, ...]:
        return tuple(one.source for one in check_of(task, FolderTask).artifacts)

    def files_of(self, work: HandedOver) -> Mapping[str, str]:
        return work.contents()

    def workers(self, row: AgentRow, tools: RowTools) -> Iterator[Worker]:
        yield Worker("the untouched box", say_only, must_pass=False)
        task = check_of(row.task, FolderTask)
        if task.solution is not None:
            source = tools.files.root / task.folder / posixpath.dirname(task.solution)
            env, wall_s = filled_env(task.solution_env, tools.variables), task.agent_timeout_s or _SOLUTION_S

            async def solve(desk: Desk) -> str:
                if desk.put is not None:
                    await desk.put([(source, _SOLUTION)])
                await desk.shell.run(bash(f"bash {_SOLUTION}/solve.sh", wall_s=wall_s, env=env))
                return ""

            yield Worker("the solution", solve, must_pass=True)

    async def _is_sound(self, place: TaskPlace) -> bool:
        """Return whether the verifier comes to an end over what no agent has touched; found once per task."""

        async def look() -> bool:
            async with open_task(replace(place.row, events=[]), place.tools) as fresh:
                handed = await self.hand_over(fresh, "")
                return (await _finding(fresh, handed)).reason != _NO_REWARD

        return await place.tools.sandboxes.once(f"{place.source} is sound", look)


def verifier_load(place: TaskPlace, *, own: bool) -> Load:
    """Return what a verifier needs: its tests, unless a box brings them, and rewards without content.

    So older rewards count no more.

    Args:
        own: It judges in the agent's box.
    """
    brings = place.task.verifier.brings_tests and not own
    trees = () if brings else ((place.source / "tests", TESTS),)
    return Load(trees=trees, texts=dict.fromkeys(REWARDS, b""))


async def judged_in(place: TaskPlace, box: LivingBox) -> AgentFinding:
    """Run a task's verifier in a box over what stands there, then end the box and read the reward.

    Its exit code does not count. The finding has no mark yet.

    Raises:
        SandboxError: The engine failed.
    """
    task = place.task
    command = Command(
        _argv(place),
        env=filled_env(task.verifier_env, place.tools.variables),
        limits=Limits(wall_s=task.verifier_timeout_s, output_bytes=_OUTPUT_BYTES),
    )
    try:
        ended = await box.run(command, user=task.verifier_user, streams=Streams(keeps_end=True))
    except BoxDiedError as error:
        return _without_reward(f"its verifier was killed: {error}")
    finally:
        await box.kill()
    output = scrub((ended.stdout + ended.stderr).decode("utf-8", "replace")).strip()
    if ended.exit_code is None:
        return _without_reward(f"its verifier was stopped: {ended.reason}", output)
    try:
        earned = await _credits_in(place, box)
    except ValueError as error:
        return _without_reward(_explained(str(error), ended), output)
    if min(earned.values()) >= 1:
        return AgentFinding(Verdict.PASSED, output=output, step=_STEP, credits=earned)
    message = f"the reward is {sum(earned.values()) / len(earned):g}"
    return AgentFinding(Verdict.FAILED, "tests_failed", message, output, _STEP, credits=earned)


def _without_reward(fault: str, output: str = "") -> AgentFinding:
    return AgentFinding(Verdict.FAILED, _NO_REWARD, fault, output, _STEP)


def _argv(place: TaskPlace) -> tuple[str, ...]:
    """Return how the verifier is called: by the first line of its script, whether it may be executed or not."""
    script, own = f"{TESTS}/test.sh", place.source / "tests" / "test.sh"
    if not own.is_file():
        return (script,)
    line = own.read_bytes().partition(b"\n")[0].decode("utf-8", "replace")
    words = line[2:].strip().split(None, 1) if line.startswith("#!") else []
    return (*(words or ["/bin/sh"]), script)


def _explained(fault: str, ended: Ended) -> str:
    if ended.exit_code == 0:
        return fault
    last = excerpt(ended.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2])
    return f"{fault} (exit code {ended.exit_code}{f': {last}' if last else ''})"


async def _credits_in(place: TaskPlace, box: LivingBox) -> dict[str, float]:
    """Return the credit of each criterion, in [0, 1]; one without a name where there is one.

    Raises:
        ValueError: The reward cannot be used, for the reason that the error states.
    """
    found = await _plain_files(place, box, posixpath.dirname(REWARDS[0]), _LARGEST_LOGS)
    if found is None:  # there is much beside them
        found = {}
        for path in REWARDS:
            found.update(await _plain_files(place, box, path, _LARGEST_ARCHIVE) or {path: b"too large"})
    for path in REWARDS:
        text = found.get(path, b"")
        if text.strip():
            try:
                return _credits(text, as_json=path.endswith(".json"))
            except ValueError as error:
                raise ValueError(f"{path} {error}") from error
    raise ValueError("its verifier wrote no reward")


async def _plain_files(
    place: TaskPlace, box: LivingBox, path: str, limit_bytes: int
) -> dict[str, bytes] | None:
    """Return the rewards of an ended box that are plain files; None where more than a limit lies at a path."""
    found = {}
    with TemporaryFile(dir=place.passage) as file:
        try:
            if not await box.take(path, file, limit_bytes):
                return {}
        except TooLargeError:
            return None
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                name = place_of(member.name, path)
                content = archive.extractfile(member) if name in REWARDS and member.isreg() else None
                if content is not None:
                    found[name] = content.read(_LARGEST_REWARD)
    return found


def _credits(text: bytes, *, as_json: bool) -> dict[str, float]:
    """Return the credit of each criterion.

    Raises:
        ValueError: The text holds no reward; the message goes behind its path.
    """
    try:
        data = json.loads(text) if as_json else {"": float(text)}
    except (ValueError, RecursionError) as error:
        raise ValueError("is not JSON" if as_json else "holds no number") from error
    if not isinstance(data, dict) or not data:
        raise ValueError("holds no object of numbers")
    numbers = {str(name): _credit(value) for name, value in data.items()}
    if _REWARD in numbers:
        return {"": numbers[_REWARD]}
    return {"": next(iter(numbers.values()))} if len(numbers) == 1 else numbers


def _credit(value: object) -> float:
    """Return a value cut to [0, 1].

    Raises:
        ValueError: The value is not a finite number.
    """
    if not isinstance(value, int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError("holds something else than a finite number")
    return float(min(max(value, 0), 1))


async def _finding(place: TaskPlace, work: HandedOver) -> AgentFinding:
    """Judge what was handed over where the task wants it; a pass in the agent's box is repeated in a fresh one."""
    only_data = all(one.is_data for one in _wanted(place.task, place.box))
    mark = None if only_data else Beside.IN_PROCESS
    if place.task.separate:
        return replace(await _judged_afresh(place, work), mark=mark)
    own = await _judged_in_own_box(place)
    if own.verdict is Verdict.FAILED:
        return replace(own, mark=Beside.IN_PROCESS)
    again = await _judged_afresh(place, work)
    return replace(own, mark=mark if again.verdict is Verdict.PASSED else Beside.OWN_BOX)


async def _judged_in_own_box(place: TaskPlace) -> AgentFinding:
    if not place.box.is_frozen:
        return _without_reward("what the agent left running could not be halted")
    await place.box.thaw()
    try:
        await put(place.box, verifier_load(place, own=True), place.passage)
    except ArchiveRefusedError as error:
        await place.box.kill()
        return _without_reward(f"its tests cannot be put where the agent worked ({error})")
    return await judged_in(place, place.box)


async def _judged_afresh(place: TaskPlace, work: HandedOver) -> AgentFinding:
    task, load = place.task, replace(verifier_load(place, own=False), archive=work.archive)
    if not task.separate:  # else artifacts join what the verifier's box has
        load = replace(load, replaced=[one.path for one in _wanted(task, place.box) if not one.exclude])
    try:
        async with place.fresh_box(load) as box:
            return await judged_in(place, box)
    except ArchiveRefusedError as error:
        return _without_reward(f"what was handed over cannot be put into a fresh box ({error})")
    except FindingError as error:
        if error.finding.reason != UNHEALTHY:
            raise
        return _without_reward(error.finding.message)


def _wanted(task: FolderTask, box: LivingBox) -> list[WantedPath]:
    """Return what is taken out of an agent's box: artifacts, and where it judges itself, its working folder."""
    stated = [
        WantedPath(
            posixpath.normpath(posixpath.join(box.workdir, one.source)),
            one.exclude,
            is_data=one.source.endswith(_DATA),
        )
        for one in task.artifacts
    ]
    logs = [WantedPath(ARTIFACTS)] if task.names_artifacts else []
    own = [] if task.separate or box.workdir == "/" else [WantedPath(box.workdir)]
    return [*stated, *logs, *own]


FAMILY = TaskFolder()

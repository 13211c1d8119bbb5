"""The verdict of a task's own verifier: it runs in a box, and its reward is read when that has ended."""

from __future__ import annotations

import json
import math
import posixpath
import tarfile
from collections.abc import Mapping

from pytest_helmbench.benchmarks.packs.families.task_folder.boxes import Load, TaskPlace, host_variables
from pytest_helmbench.benchmarks.packs.families.task_folder.check import filled_env
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt, scrub
from pytest_helmbench.sandbox.box import Command, Ended, Limits, Streams
from pytest_helmbench.sandbox.living import BoxDiedError, LivingBox, TooLargeError

TESTS = "/tests"
REWARDS = ("/logs/verifier/reward.json", "/logs/verifier/reward.txt")
"""In the order in which they count."""

_REWARD = "reward"
_LARGEST_REWARD = 64 * 1024
_LARGEST_ARCHIVE = 256 * 1024
_LARGEST_LOGS = 8 * 1024 * 1024
_OUTPUT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Reward:
    """The result of a verifier.

    Args:
        credits: By criterion, each in [0, 1]; one without a name where there is one; empty without a usable reward.
        fault: Why there is none, in a sentence; empty where there is one.
        output: End of what the verifier wrote, scrubbed.
    """

    credits: Mapping[str, float]
    fault: str = ""
    output: str = ""

    @property
    def score(self) -> float:
        """Mean credit."""
        return sum(self.credits.values()) / len(self.credits) if self.credits else 0.0

    @property
    def passes(self) -> bool:
        """Whether nothing is missing."""
        return bool(self.credits) and min(self.credits.values()) >= 1.0


def verifier_load(place: TaskPlace, *, own: bool) -> Load:
    """Return what a verifier needs: its tests, unless a box brings them, and rewards without content.

    So older rewards count no more.

    Args:
        own: It judges in the agent's box.
    """
    brings = place.task.verifier.brings_tests and not own
    trees = () if brings else ((place.source / "tests", TESTS),)
    return Load(trees=trees, texts=dict.fromkeys(REWARDS, b""))


async def judged_in(place: TaskPlace, box: LivingBox) -> Reward:
    """Run a task's verifier in a box over what stands there, then end the box and read the reward.

    Its exit code does not count.

    Raises:
        SandboxError: The engine failed.
    """
    task = place.task
    command = Command(
        _argv(place),
        env=filled_env(task.verifier_env, host_variables(place.tools)),
        limits=Limits(wall_s=task.verifier_timeout_s, output_bytes=_OUTPUT_BYTES),
    )
    try:
        ended = await box.run(command, user=task.verifier_user, streams=Streams(keeps_end=True))
    except BoxDiedError as error:
        return Reward({}, f"its verifier was killed: {error}")
    finally:
        await box.kill()
    output = scrub((ended.stdout + ended.stderr).decode("utf-8", "replace")).strip()
    if ended.exit_code is None:
        return Reward({}, f"its verifier was stopped: {ended.reason}", output)
    found = await _found(place, box)
    return Reward(found.credits, _explained(found.fault, ended), output)


def _argv(place: TaskPlace) -> tuple[str, ...]:
    """Return how the verifier is called: by the first line of its script, whether it may be executed or not."""
    script, own = f"{TESTS}/test.sh", place.source / "tests" / "test.sh"
    if not own.is_file():
        return (script,)
    line = own.read_bytes().partition(b"\n")[0].decode("utf-8", "replace")
    words = line[2:].strip().split(None, 1) if line.startswith("#!") else []
    return (*(words or ["/bin/sh"]), script)


def _explained(fault: str, ended: Ended) -> str:
    if not fault or ended.exit_code == 0:
        return fault
    last = excerpt(ended.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2])
    return f"{fault} (exit code {ended.exit_code}{f': {last}' if last else ''})"


async def _found(place: TaskPlace, box: LivingBox) -> Reward:
    found = await _plain_files(place, box, posixpath.dirname(REWARDS[0]), _LARGEST_LOGS)
    if found is None:  # there is much beside them
        found = {}
        for path in REWARDS:
            found.update(await _plain_files(place, box, path, _LARGEST_ARCHIVE) or {path: b"too large"})
    for path in REWARDS:
        text = found.get(path, b"")
        if text.strip():
            try:
                return Reward(_credits(text, as_json=path.endswith(".json")))
            except (ValueError, RecursionError) as error:
                return Reward({}, f"{path} {error}")
    return Reward({}, "its verifier wrote no reward")


async def _plain_files(
    place: TaskPlace, box: LivingBox, path: str, limit_bytes: int
) -> dict[str, bytes] | None:
    """Return the rewards of an ended box that are plain files; None where more than a limit lies at a path."""
    copied, found = place.passage / "rewards.tar", {}
    with copied.open("w+b") as file:
        try:
            if not await box.take(path, file, limit_bytes):
                return {}
        except TooLargeError:
            return None
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                name = posixpath.join(posixpath.dirname(path), member.name)
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
    except ValueError as error:
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

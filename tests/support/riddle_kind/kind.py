"""Riddles: loaded from their file, asked once, judged by whether the answer stands in the reply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pytest_helmbench.benchmarks.kind import Broken, SessionValues
from pytest_helmbench.core.case import BrokenCase, Case, CaseRule, Message
from pytest_helmbench.core.outcome import Evaluation, Outcome
from pytest_helmbench.core.outline import RowOutline, RowRef
from pytest_helmbench.core.problem import Problem, UnreadableBenchmarkError
from pytest_helmbench.engine.job import CaseJob, Target
from pytest_helmbench.engine.questions import one_reply
from pytest_helmbench.engine.work import CaseContext, RunnerSettings
from pytest_helmbench.gateway.permits import ModelLimits
from pytest_helmbench.judging.judge import judged_outcome
from pytest_helmbench.judging.rubric import rule_hash
from riddle_kind.places import FILE, PLACES

FAMILY = "riddle"


@dataclass(frozen=True, slots=True)
class Riddle:
    """A line of the file."""

    ref: RowRef
    question: str
    answer: str

    def case(self, system_prompt: str | None) -> Case:
        """Compose the case."""
        system = () if system_prompt is None else (Message("system", system_prompt),)
        messages = (*system, Message("user", self.question))
        return Case(self.ref.id, messages, None, AnswerRule(self.answer))


@dataclass(frozen=True, slots=True)
class AnswerRule(CaseRule):
    """The answer must stand in the reply."""

    answer: str

    @property
    def hash(self) -> str:
        """The hash of the answer."""
        return rule_hash({"answer": self.answer})


class RiddleWork:
    """Asks a riddle and compares the answer."""

    async def perform(self, case: Case, context: CaseContext) -> Outcome:
        """Ask once, and look for the answer."""
        reply = await one_reply(case, context)
        rule = case.rule
        if not isinstance(rule, AnswerRule):
            raise TypeError(f"{case.code}: no riddle")
        passed = rule.answer in reply.text
        evaluation = Evaluation(
            criterion="",
            rule="answer",
            rule_hash=rule.hash,
            passed=passed,
            credit=float(passed),
            reason=None,
            parse=None,
            expected=rule.answer,
            observed=reply.text[:200],
        )
        return judged_outcome(reply, (evaluation,))


_WORK = RiddleWork()


@dataclass(frozen=True, slots=True, eq=False)
class RiddleJob(CaseJob):
    """A riddle on its way."""

    riddle: Riddle

    family = FAMILY
    work = _WORK

    @property
    def code(self) -> str:
        """The riddle's id."""
        return self.riddle.ref.id

    def prompt_characters(self) -> int:
        """Return the length of the question."""
        return len(self.riddle.question)

    def case(self, system_prompt: str | None) -> Case:
        return self.riddle.case(system_prompt)

    def rule_hashes(self, case: Case, _settings: RunnerSettings) -> tuple[str, ...]:
        return (case.rule.hash,) if isinstance(case.rule, AnswerRule) else ()

    def facts(self) -> dict[str, str | int | None]:
        return {"row": self.code, "model": self.model_id, "family": FAMILY, "repetition": self.repetition}


class Riddles:
    """The riddles of a folder, loaded."""

    scoring = None
    item_limits: Sequence[ModelLimits] = ()
    warnings: Sequence[Problem] = ()

    def __init__(
        self,
        outline: RowOutline,
        targets: tuple[Target, ...],
        riddles: Mapping[str, Riddle],
        broken: Broken,
    ) -> None:
        self.outline = outline
        self.root = outline.root
        self.targets = targets
        self.files = (outline.root / FILE,)
        self.broken = broken
        self._riddles = riddles

    def riddle(self, code: str) -> Riddle | None:
        """Return one; None where there is none of this id."""
        return self._riddles.get(code)

    def cases_in(self, path: Path) -> bool:
        return path in self.files and bool(self._riddles)

    def jobs(self, _path: Path, file_id: str, repeat: int) -> Iterator[RiddleJob]:
        for riddle in self._riddles.values():
            for target in self.targets:
                for repetition in range(1, repeat + 1):
                    yield RiddleJob(target, repetition, False, file_id, riddle)

    def broken_in(self, _path: Path) -> Broken:
        return self.broken

    def broken_around(self, _path: Path) -> Broken:
        """Return nothing: all of it stands in one file."""
        return ()

    def broken_cases(self, name: str) -> Sequence[BrokenCase]:
        """Return one case for a line that cannot be read."""
        return [BrokenCase(name)]

    def count(self) -> int:
        return len(self._riddles)

    def scenario_of(self, code: str) -> str:
        """Return the riddle's id."""
        return code

    def judge_calls(self, _scenario: str) -> int:
        """Return 0: a rule judges."""
        return 0


def load(root: Path, targets: tuple[Target, ...]) -> Riddles:
    """Return the riddles of a folder.

    Raises:
        UnreadableBenchmarkError: The file cannot be read.
    """
    file = root / FILE
    try:
        content = file.read_bytes()
        lines = content.decode("utf-8").splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableBenchmarkError((Problem(file, None, f"cannot be read: {error}"),)) from error
    riddles: dict[str, Riddle] = {}
    broken: list[tuple[str, tuple[Problem, ...]]] = []
    offset = 0
    for number, line in enumerate(lines, 1):
        parts = [part.strip() for part in line.split("|")]
        length = len(line.encode("utf-8"))
        if len(parts) == 3:
            ref = RowRef(parts[0], file, number, offset, length, FAMILY, None, ())
            riddles[ref.id] = Riddle(ref, parts[1], parts[2])
        else:
            broken.append((f"line-{number}", (Problem(file, number, f"{line.strip()!r} is no riddle"),)))
        offset += length
    outline = RowOutline(
        root=root,
        name=root.name,
        version="1",
        description="",
        hash=sha256(content).hexdigest(),
        rows={code: riddle.ref for code, riddle in riddles.items()},
        kind=PLACES.name,
    )
    return Riddles(outline, targets, riddles, tuple(broken))


class RiddleLoader:
    """Loads the riddles of a folder."""

    def load(self, root: Path, targets: tuple[Target, ...]) -> Riddles:
        return load(root, targets)

    async def close(self) -> None:
        """Nothing was made."""


class RiddleKind:
    """The kind of benchmark that consists of riddles."""

    name = PLACES.name

    def open(self, _session: SessionValues) -> RiddleLoader:
        return RiddleLoader()


KIND = RiddleKind()

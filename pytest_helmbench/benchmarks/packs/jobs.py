"""Benchmark packs as jobs: every row, on every model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_helmbench.benchmarks.kind import Broken
from pytest_helmbench.benchmarks.packs.evaluation import pack_rule_hash
from pytest_helmbench.benchmarks.packs.format.pack_loader import Pack
from pytest_helmbench.benchmarks.packs.format.prompt_texts import messages_of
from pytest_helmbench.benchmarks.packs.task import BrokenRow, ConfigError, Family, PackRule, PackTask
from pytest_helmbench.benchmarks.packs.work import PackWork
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.core.row_outline import RowOutline, RowRef
from pytest_helmbench.core.rule import CaseRule
from pytest_helmbench.engine.job import CaseJob, Target
from pytest_helmbench.gateway.limiter import ModelLimits
from pytest_helmbench.judging.judge import JudgeTemplate
from pytest_helmbench.judging.rubric import Criterion, JudgeRule

__all__ = ["LoadedPack", "PackJob"]

_AGENT_FAMILIES = frozenset({Family.REPO_PATCH.value, Family.TERMINAL_TASK.value})
_PASS, _FAIL = "PASS", "FAIL"


@dataclass(frozen=True, slots=True, eq=False)
class PackJob(CaseJob):
    """A row on its way. It is read again when it runs.

    Args:
        loaded: Its pack.
        ref: Where it stands.
    """

    loaded: LoadedPack
    ref: RowRef

    @property
    def code(self) -> str:
        """The row's id."""
        return self.ref.id

    @property
    def family(self) -> str:
        """As the row or the manifest names it."""
        return self.ref.family

    @property
    def judge_calls(self) -> int:
        """1 for a rubric in words."""
        return int(self.ref.judged)

    def prompt_characters(self) -> int:
        """Return the length of the row: its hidden part is small beside the rest."""
        return self.ref.length

    def task(self) -> PackTask:
        """Read the row.

        Raises:
            ConfigError: It has changed since it was loaded.
        """
        return self.loaded.pack.task(self.ref)

    def case(self, system_prompt: str | None) -> Case:
        """See `CaseJob.case`; for an agent, the message that it starts from."""
        task = self.task()
        return Case(
            code=self.ref.id,
            messages=messages_of(task, system_prompt),
            response_format=None,
            rule=self.loaded.rule(task),
            timeout_s=None
            if task.family is not None and task.family.runs_code
            else task.environment.timeout_s,
        )

    @property
    def work(self) -> PackWork:
        """That of its pack."""
        return self.loaded.work

    @property
    def is_one_question(self) -> bool:
        """False for the families that an agent works on."""
        return self.ref.family not in _AGENT_FAMILIES

    @property
    def skip_reason(self) -> str | None:
        """See `RowRef.skip_reason`."""
        return self.ref.skip_reason

    def rule_hashes(self, case: Case, template: JudgeTemplate, judge_model: str) -> tuple[str, ...]:
        """See `CaseJob.rule_hashes`."""
        rule = case.rule
        if isinstance(rule, JudgeRule):
            return rule.hashes(template.hash, judge_model)
        return (pack_rule_hash(rule),) if isinstance(rule, PackRule) else ()

    def facts(self) -> dict[str, str | int | None]:
        """Return what the `helmbench` marker says, the row's metadata groups too."""
        own: dict[str, str | int | None] = {
            "benchmark": self.loaded.outline.name,
            "row": self.ref.id,
            "model": self.model_id,
            "family": self.ref.family,
            "severity": 0,
            "repetition": self.repetition,
        }
        # Whoever makes a marker cannot hand over an argument of this name.
        groups = {name: value for name, value in self.ref.groups if name != "self"}
        return {**groups, **own}


class LoadedPack:
    """A pack with the models it runs on.

    Args:
        pack: As loaded.
        targets: One per model, in order.
        work: How its rows are run and judged.
    """

    scoring = None
    item_limits: Sequence[ModelLimits] = ()

    def __init__(self, pack: Pack, targets: tuple[Target, ...], work: PackWork) -> None:
        self.pack = pack
        self.targets = targets
        self.work = work
        self.outline = RowOutline(
            root=pack.root,
            name=pack.id,
            version=pack.version,
            description=pack.description,
            hash=pack.hash,
            rows={ref.id: ref for ref in pack.rows},
            kind="pack",
        )
        self._rows: defaultdict[Path, list[RowRef]] = defaultdict(list)
        for ref in pack.rows:
            self._rows[ref.path].append(ref)
        self._broken: defaultdict[Path, list[BrokenRow]] = defaultdict(list)
        for row in pack.broken:
            self._broken[row.path].append(row)

    @property
    def root(self) -> Path:
        """The folder of the manifest."""
        return self.pack.root

    @property
    def warnings(self) -> Sequence[Problem]:
        """What is odd but usable."""
        return self.pack.warnings

    def cases_in(self, path: Path) -> bool:
        """Return whether healthy rows stand in a file."""
        return path in self._rows

    def jobs(self, path: Path, file_id: str, *, repeat: int, add_no_context: bool) -> Iterator[PackJob]:  # noqa: ARG002 - a tree's
        """See `Loaded.jobs`."""
        for ref in self._rows[path]:
            for target in self.targets:
                for repetition in range(1, repeat + 1):
                    yield PackJob(target, repetition, False, file_id, self, ref)

    def checked_in(self, path: Path) -> Sequence[str]:
        """See `Loaded.checked_in`."""
        return [ref.id for ref in self._rows.get(path, ())]

    def broken_around(self, _path: Path) -> Broken:
        """Return what is wrong with the pack itself."""
        return self.broken_in(self.pack.manifest.path)

    def broken_in(self, path: Path) -> Broken:
        """See `Loaded.broken_in`."""
        rows = tuple((row.name, row.problems) for row in self._broken.get(path, ()))
        whole = self.pack.problems if path == self.pack.manifest.path else ()
        return ((self.pack.id or path.stem, whole), *rows) if whole else rows

    def count(self, *, add_no_context: bool) -> int:  # noqa: ARG002 - a tree's
        """See `Loaded.count`."""
        return len(self.pack.rows)

    def scenario_of(self, code: str) -> str:
        """Return the row's id."""
        return code

    def judge_calls(self, scenario: str) -> int:
        """See `Loaded.judge_calls`."""
        ref = self.outline.rows.get(scenario)
        return int(ref is not None and ref.judged)

    def rule(self, task: PackTask) -> CaseRule:
        """Return what a row is held to: a rubric in words goes to the judge."""
        rubric = task.eval_value("rubric")
        if task.family is not Family.FREE_RESPONSE or not isinstance(rubric, str):
            return PackRule(task, self.work.settings.parity)
        reference = _reference_answer(task)
        if reference:
            rubric = f"{rubric}\n\nReference answer:\n{reference}"
        criterion = Criterion("", rubric, (_PASS, _FAIL), (_PASS,))
        return JudgeRule((criterion,), hidden=not self.work.settings.show_hidden)


def _reference_answer(task: PackTask) -> str:
    """Return the reference answer of a row with a rubric in words; it may stand in a file. Empty for none.

    Raises:
        ConfigError: The file is no text.
    """
    value = task.eval_value("reference_answer")
    source = next((file.source for file in task.eval_files), None)
    if source is None:
        return "" if value is None else str(value)
    try:
        return source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{task.id}: eval.reference_answer: the file that it names is no text in UTF-8"
        raise ConfigError(f"{message}\n  hint: save it as UTF-8") from error

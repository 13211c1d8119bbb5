"""Question packs as jobs: every row, on every model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_helmbench.benchmarks.kind import Broken
from pytest_helmbench.benchmarks.packs.families.registry import family_named, family_of, messages_of
from pytest_helmbench.benchmarks.packs.format.pack_loader import Pack
from pytest_helmbench.benchmarks.packs.task import BrokenRow, PackRule, PackTask
from pytest_helmbench.benchmarks.packs.work import PackWork
from pytest_helmbench.core.case import BrokenCase, Case, CaseRule
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.core.outline import RowOutline, RowRef
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.engine.job import CaseJob, Target
from pytest_helmbench.gateway.permits import ModelLimits
from pytest_helmbench.gateway.providers.endpoints import Unusable
from pytest_helmbench.judging.rubric import JudgeRule, deciding_judge


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
    def cluster(self) -> str | None:
        """See `RowRef.cluster`."""
        return self.ref.cluster

    @property
    def judge_calls(self) -> int:
        """1 for a rubric, in words or in lists, that a judge reads; word for word it needs none."""
        return self.loaded.judge_calls(self.ref.id)

    @property
    def may_ask_judge(self) -> bool:
        """See `CaseJob.may_ask_judge`: also to read replies whose words do not say enough."""
        family = family_named(self.ref.family)
        return self.ref.judged or (
            family is not None and family.read_by_judge and not self.loaded.work.settings.parity
        )

    def marked_by(self, reply: Reply, /) -> JudgeRule | None:
        """See `CaseJob.marked_by`."""
        rule = self.loaded.rule(self.task())
        family = family_of(rule.task) if isinstance(rule, PackRule) else None
        if isinstance(rule, JudgeRule):
            return rule
        criterion = family.wants_reading(rule, reply) if family and isinstance(rule, PackRule) else None
        return None if family is None or criterion is None else self.work.asked_of_judge(family, criterion)

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
        family = family_of(task)
        form = self.loaded.answer_form(task)
        return Case(
            code=self.ref.id,
            messages=messages_of(task, system_prompt, form),
            response_format=None if family is None else family.response_format(task, form),
            rule=self._rule(task),
            timeout_s=None if family is not None and family.runs_code else task.environment.timeout_s,
        )

    def _rule(self, task: PackTask) -> CaseRule:
        """Return the rule for the row, and who reads its reply where words do not say enough.

        An embedded model stands in for a judge only where nothing else can judge.
        """
        rule, judges = self.loaded.rule(task), self.target.judges
        family = family_of(task)
        if not isinstance(rule, PackRule) or not judges or family is None or rule.parity:
            return rule
        endpoints = [judge.endpoint for judge in judges]
        if any(
            isinstance(one, Unusable) or (one.server.embedded and not family.needs_judge) for one in endpoints
        ):
            return rule
        return replace(rule, judge=deciding_judge(self.target.judge_ids))

    @property
    def work(self) -> PackWork:
        """That of its pack."""
        return self.loaded.work

    @property
    def is_one_question(self) -> bool:
        """False for the families that an agent works on."""
        family = family_named(self.ref.family)
        return family is None or family.is_one_question

    @property
    def place(self) -> tuple[Path, int]:
        """Of its row."""
        return self.ref.path, self.ref.line

    @property
    def skip_reason(self) -> str | None:
        """See `RowRef.skip_reason`."""
        return self.ref.skip_reason

    def rule_hashes(self, rule: CaseRule) -> tuple[str, ...]:
        """See `CaseJob.rule_hashes`."""
        family = family_of(rule.task) if isinstance(rule, PackRule) else None
        return (family.rule_hash(rule),) if isinstance(rule, PackRule) and family is not None else ()

    @property
    def not_rescored(self) -> str | None:
        """See `Family.not_rescored`."""
        family = family_named(self.ref.family)
        return None if family is None else family.not_rescored

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
        # A marker cannot carry an argument of this name.
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
            version=str(pack.manifest.version),
            description=pack.manifest.description,
            hash=pack.hash,
            rows={ref.id: ref for ref in pack.rows},
            kind="pack",
            cluster=pack.cluster,
            own_cluster=pack.manifest.cluster,
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

    @property
    def files(self) -> Iterable[Path]:
        """The files of its healthy rows."""
        return self._rows.keys()

    @property
    def broken(self) -> Broken:
        """Its broken rows."""
        return tuple((row.name, row.problems) for row in self.pack.broken)

    def cases_in(self, path: Path) -> bool:
        """Return whether healthy rows stand in a file."""
        return path in self._rows

    def jobs(self, path: Path, file_id: str, repeat: int) -> Iterator[PackJob]:
        """See `Loaded.jobs`."""
        for ref in self._rows[path]:
            for target in self.targets:
                for repetition in range(1, repeat + 1):
                    yield PackJob(target, repetition, False, file_id, self, ref)

    def broken_cases(self, name: str) -> Sequence[BrokenCase]:
        """Return one case for a broken row, none for what is wrong with the pack itself."""
        return [BrokenCase(row.name) for row in self.pack.broken if row.name == name]

    def broken_around(self, _path: Path) -> Broken:
        """Return what is wrong with the pack itself."""
        return self.broken_in(self.pack.manifest.path)

    def broken_in(self, path: Path) -> Broken:
        """See `Loaded.broken_in`."""
        rows = tuple((row.name, row.problems) for row in self._broken.get(path, ()))
        whole = self.pack.problems if path == self.pack.manifest.path else ()
        return ((self.pack.id or path.stem, whole), *rows) if whole else rows

    def count(self) -> int:
        """See `Loaded.count`."""
        return len(self.pack.rows)

    def scenario_of(self, code: str) -> str:
        """Return the row's id."""
        return code

    def judge_calls(self, scenario: str) -> int:
        """See `Loaded.judge_calls`."""
        ref = self.outline.rows.get(scenario)
        family = None if ref is None else family_named(ref.family)
        needs = family is not None and family.needs_judge and not self.work.settings.parity
        return int(ref is not None and (ref.judged or needs))

    def rule(self, task: PackTask) -> CaseRule:
        """Return the rule for a row: a rubric in words goes to the judge."""
        family, settings = family_of(task), self.work.settings
        judged = None if family is None else family.judge_rule(task, hidden=not settings.show_hidden)
        if judged is not None:
            return judged
        return PackRule(task, settings.parity, self.answer_form(task))

    def answer_form(self, task: PackTask) -> str:
        """Return the form in which a row asks for its answer."""
        family = family_of(task)
        settings = self.work.settings
        return (
            "text"
            if family is None
            else family.answer_form(task, settings.answer_form, parity=settings.parity)
        )

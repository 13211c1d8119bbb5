"""The plan of a session: runs, calls and tokens, counted from the selected jobs before anything is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType

from pytest_helmbench.core.case import BrokenCase
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outline import RowOutline
from pytest_helmbench.core.shard import Shard
from pytest_helmbench.engine.job import CaseJob, Target
from pytest_helmbench.engine.work import Route
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.store.plan_rows import packed, unpacked

CHARACTERS_PER_TOKEN = 4
JUDGE_WORDING_CHARACTERS = 1_500  # the built-in template and a short rubric


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """The questions of one run. Plain data: it travels between processes.

    Args:
        benchmark: Root folder.
        model: Name of the model: its id, or that of a variant.
        model_id: Of the model that is asked.
        judges: Ids of the judges, in order; empty for none.
        usable: Whether the model can be called.
        variable: The environment variable that would help.
        later_calls: Of the model under test, behind the first of each case: conversations have some.
        may_ask_judge: A judge may be asked about some of its cases.
        unasked: Calls, judges too, that are not made because a judge cannot be called.
        prompt_tokens: Estimate, of the cases' own prompts.
        judge_prompt_tokens: Estimate.
        max_tokens: Bound on a completion; None when none is sent.
        packed_codes: The planned case codes, one per line, compressed.
        places: Hosts, and variables of keys, where prompts do not go to a provider's own server.
        open_ended: Some of its cases may ask more than that: tools, packs and agents decide that themselves.
        singly: Codes of the cases that go in no batch, by family.
        broken: Cases of its benchmark that were selected and cannot run.
    """

    benchmark: str
    model: str
    model_id: str
    judges: tuple[str, ...]
    usable: bool
    why_not: str
    variable: str
    tests: int
    evaluations: int
    judge_calls: int
    unasked: int
    prompt_tokens: int
    judge_prompt_tokens: int
    max_tokens: int | None
    packed_codes: bytes
    later_calls: int = 0
    open_ended: bool = False
    singly: Mapping[str, Collection[str]] = field(default_factory=dict)
    may_ask_judge: bool = False
    places: tuple[str, ...] = ()
    broken: tuple[BrokenCase, ...] = ()

    @property
    def judge(self) -> str:
        """Whose verdict is of record where two judges are asked; empty for none."""
        return next(iter(self.judges), "")

    @property
    def key(self) -> tuple[str, str]:
        """Benchmark and model."""
        return self.benchmark, self.model

    @property
    def codes(self) -> tuple[str, ...]:
        """The planned cases."""
        return tuple(unpacked(self.packed_codes))

    @property
    def calls(self) -> int:
        """Calls of the model under test if nothing is retried; see `open_ended`."""
        return self.tests + self.later_calls

    def narrowed(self, codes: Sequence[str], verdicts: int) -> PlannedRun:
        """Return the run with only these of its cases; tokens by their share.

        Args:
            verdicts: That a judge has to give on one repetition of them.
        """
        share = len(codes) / max(1, len(self.codes))
        repeat = self.tests // max(1, len(self.codes))
        return replace(
            self,
            tests=len(codes) * repeat,
            later_calls=round(self.later_calls * share),
            evaluations=round(self.evaluations * share),
            judge_calls=repeat * verdicts * len(self.judges),
            unasked=round(self.unasked * share),
            singly={family: {*codes} & {*alone} for family, alone in self.singly.items()},
            prompt_tokens=round(self.prompt_tokens * share),
            judge_prompt_tokens=round(self.judge_prompt_tokens * share),
            may_ask_judge=self.may_ask_judge and bool(codes),
            packed_codes=packed(codes),
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """The questions of a session.

    Args:
        runs: One per benchmark × model, in order of their first item.
        dry: Nothing will be called.
        scope: `whole`, `selected` or `by_outcome`.
        adopted: The cases that pytest itself has collected; None for none.
        shard: The share of the plan that `runs` are; None for all of it.
        whole: The runs of the whole plan, one for each of `runs`, where they are a share.
    """

    runs: tuple[PlannedRun, ...]
    dry: bool
    scope: str
    adopted: RowOutline | None = None
    shard: Shard | None = None
    whole: tuple[PlannedRun, ...] = ()

    @property
    def tests(self) -> int:
        """Items in all."""
        return sum(run.tests for run in self.runs)

    @property
    def whole_tests(self) -> int:
        """Items of all shards."""
        return sum(run.tests for run in self.whole or self.runs)

    def shared_out(self, own: Plan, shard: Shard) -> Plan:
        """Return the share of a shard: every run is in it, those without a case of its own too.

        Args:
            own: Planned from the jobs of the shard alone.
        """
        by_key = {run.key: run for run in own.runs}
        runs = tuple(by_key.get(run.key) or run.narrowed((), 0) for run in self.runs)
        runs = tuple(replace(run, broken=whole.broken) for run, whole in zip(runs, self.runs, strict=True))
        return replace(self, runs=runs, shard=shard, whole=self.runs)

    @property
    def calls(self) -> int:
        """Calls that will be made if nothing is retried; see `open_ended`."""
        return sum(run.calls + run.judge_calls - run.unasked for run in self.runs if run.usable)

    @property
    def open_ended(self) -> bool:
        """Whether it may be more calls: it is unknown what packs and agents will ask."""
        return any(run.open_ended and run.usable for run in self.runs)


def plan_jobs(
    jobs: Iterable[CaseJob],
    *,
    dry_run: bool,
    scope: str,
    broken: Mapping[Path, Sequence[BrokenCase]] = MappingProxyType({}),
) -> Plan:
    """Count what the selected jobs will ask, in run order; nothing is composed.

    Args:
        broken: Cases that were selected and cannot run, by the folder of their benchmark.
    """
    counts: dict[Target, Counter[str]] = {}
    codes: dict[Target, dict[str, None]] = {}
    singly: dict[Target, dict[str, set[str]]] = {}
    for job in jobs:
        count = counts.setdefault(job.target, Counter())
        codes.setdefault(job.target, {})[job.code] = None
        characters = job.prompt_characters()
        verdicts, judges = job.judge_calls, job.target.judges
        judge_calls = verdicts * max(1, len(judges))
        count["tests"] += 1
        count["prompt"] += characters // CHARACTERS_PER_TOKEN + 1
        count["evaluations"] += job.evaluations
        count["later_calls"] += job.calls - 1
        count["open_ended"] += job.is_open_ended
        if job.goes_singly:
            singly.setdefault(job.target, {}).setdefault(job.family, set()).add(job.code)
        count["judge"] += judge_calls
        count["may_ask_judge"] += job.may_ask_judge
        if verdicts and not (judges and all(judge.usable for judge in judges)):
            count["unasked"] += job.calls + judge_calls
        count["judge_prompt"] += judge_calls * (characters + JUDGE_WORDING_CHARACTERS) // CHARACTERS_PER_TOKEN
    runs = tuple(
        replace(
            _planned(target, count, codes[target]),
            broken=tuple(broken.get(target.benchmark, ())),
            singly=singly.get(target, {}),
        )
        for target, count in counts.items()
    )
    return Plan(runs, dry_run or not any(run.usable for run in runs), scope)


def _planned(target: Target, count: Counter[str], codes: Iterable[str]) -> PlannedRun:
    endpoint = target.model.endpoint
    usable = isinstance(endpoint, Endpoint)
    return PlannedRun(
        benchmark=target.key[0],
        model=target.key[1],
        model_id=target.model.entry.model_id,
        judges=target.judge_ids,
        usable=usable,
        why_not="" if isinstance(endpoint, Endpoint) else endpoint.reason,
        variable="" if isinstance(endpoint, Endpoint) else endpoint.variable,
        tests=count["tests"],
        evaluations=count["evaluations"],
        judge_calls=count["judge"],
        may_ask_judge=count["may_ask_judge"] > 0,
        unasked=count["unasked"],
        prompt_tokens=count["prompt"],
        judge_prompt_tokens=count["judge_prompt"],
        max_tokens=target.model.entry.sampling.max_tokens,
        packed_codes=packed(codes),
        later_calls=count["later_calls"],
        open_ended=count["open_ended"] > 0,
        places=_places(target.model, *(target.judges if count["judge"] else ())),
    )


def _places(*routes: Route) -> tuple[str, ...]:
    endpoints = (route.endpoint for route in routes)
    return tuple(
        dict.fromkeys(one.elsewhere for one in endpoints if isinstance(one, Endpoint) and one.elsewhere)
    )


class Notes:
    """Keeps what the summary says, in the order in which it was said first; a worker forwards it to its controller."""

    def __init__(self, forward: Callable[[str], object] | None = None) -> None:
        self._forward = forward
        self._sentences: dict[str, None] = {}

    def say(self, sentence: str) -> None:
        """Have a sentence in the summary, once. From any thread."""
        if self._forward is not None:
            self._forward(sentence)
        else:
            self._sentences[sentence] = None

    @property
    def sentences(self) -> list[str]:
        """The sentences of this process that were not forwarded."""
        return list(self._sentences)

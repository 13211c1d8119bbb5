"""Hand-written tests as jobs: pytest runs their code, their model calls are passed on as those of every item."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

from pytest_helmbench.benchmarks.kind import JudgedByItself
from pytest_helmbench.benchmarks.python_tests.judge_fixture import Marking
from pytest_helmbench.core.case import Case, CaseRule
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import NO_MODEL
from pytest_helmbench.core.outcome import NO_MODEL_CALL, Evaluation, Outcome, Verdict
from pytest_helmbench.core.outline import RowOutline, RowRef
from pytest_helmbench.core.problem import HelmbenchError, Problem
from pytest_helmbench.engine.job import CaseJob, Target, escaped_path
from pytest_helmbench.engine.work import (
    CaseContext,
    Route,
    RunnerSettings,
    UnjudgedError,
    fault_outcome,
    with_totals,
)
from pytest_helmbench.gateway.permits import ModelLimits
from pytest_helmbench.gateway.providers.endpoints import Unusable
from pytest_helmbench.gateway.relay.conversation import CallTotals, Conversation, ItemLine
from pytest_helmbench.gateway.relay.relay import Relay, RelayAddress
from pytest_helmbench.judging.judge import JudgeTemplate
from pytest_helmbench.judging.rubric import deciding_judge, rule_hash

_KIND = "python_tests"
_FAMILY = "python_test"
_RULE = "assertions"
_EXPECTED = "the test passes"
_PLACE = "*.py"  # no folder has this name, so that a benchmark at rootdir is another one
_HASH_DIGITS = 16
INTERRUPTED = "interrupted"
"""Reason of a test that was broken off with its session: it has no outcome."""


@dataclass(frozen=True, slots=True)
class AssertionRule(CaseRule):
    """A hand-written test: its own assertions decide, and the marking model that they may ask.

    Args:
        digest: SHA-256 (hex) of its source file.
        asks_judge: It uses the fixture `helmbench_judge`.
    """

    digest: str
    asks_judge: bool

    def hash(self, template: JudgeTemplate, judge_model: str) -> str:
        """Return 16 hex digits over all that decides."""
        if not self.asks_judge:
            return self.digest[:_HASH_DIGITS]
        return rule_hash({"digest": self.digest}, template.hash, judge_model)


@dataclass(frozen=True, slots=True)
class HandWrittenTest:
    """A test as pytest has collected it.

    Args:
        code: Its node id without the model: the same for all models and repetitions.
        file: Of the node id: relative to rootdir, with slashes.
        line: 1-based.
    """

    code: str
    node_id: str
    file: str
    line: int
    rule: AssertionRule


@dataclass(frozen=True, slots=True)
class Finding:
    """How a test has ended by itself.

    Args:
        verdict: Passed or failed; an error or a skip when it has not come to its assertions.
        reason: Of an error or a skip, in a word.
        words: For people: of a failure what was raised and where, never what it says; else why.
    """

    verdict: Verdict
    reason: str | None = None
    words: str = ""


class _Turn:
    """One run of a test: its code runs on pytest's thread, while its calls are passed on on the loop."""

    def __init__(self) -> None:
        self.opened: Future[tuple[RelayAddress, Marking]] = Future()
        self.findings: asyncio.Queue[tuple[Finding, Future[Outcome] | None]] = asyncio.Queue()
        self.loop: asyncio.AbstractEventLoop | None = None

    def put(self, finding: Finding, outcome: Future[Outcome] | None) -> None:
        """Hand on how the test has ended so far, from any thread, once it is opened."""
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.findings.put_nowait, (finding, outcome))


class HandWrittenWork:
    """Passes the calls of a test on, from `begin` until `end`."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._turn: _Turn | None = None

    def begin(self) -> Future[tuple[RelayAddress, Marking]]:
        """Get ready to be performed (anew); return where the test will reach its model, and its marking model."""
        self._turn = turn = _Turn()
        return turn.opened

    def judge(self, finding: Finding) -> Future[Outcome]:
        """Return the outcome of a test that has ended like that so far, for its reports."""
        outcome: Future[Outcome] = Future()
        if self._turn is not None:
            self._turn.put(finding, outcome)
        return outcome

    def end(self, finding: Finding) -> None:
        """Take how the test has ended, its teardown included."""
        if self._turn is not None:
            self._turn.put(finding, None)

    async def perform(self, case: Case, context: CaseContext) -> Outcome:
        turn = self._turn
        if turn is None or not isinstance(case.rule, AssertionRule):
            raise RuntimeError(f"{case.code}: its code is not run here")
        turn.loop = asyncio.get_running_loop()
        judge = next((route.entry.id for route in context.marking_models), "")
        rule_hash = case.rule.hash(context.settings.template, judge)
        line = ItemLine(context.origin, context.entry, context.endpoint, "case", trusted=True)
        async with Conversation(context.gateway, line, context.clock, context.watch) as conversation:
            try:
                address = await self._relay.open(conversation)
            except OSError as error:
                message = f"{case.code}: nothing can listen on this machine's loopback address: {error}"
                raise UnjudgedError(Outcome(Verdict.ERROR, "no_relay", message)) from error
            marking = Marking(case, context)
            turn.opened.set_result((address, marking))
            conversation.call_at_end(marking.cancel)
            while True:
                finding, asked = await turn.findings.get()
                outcome = await _outcome(finding, rule_hash, conversation, marking)
                if asked is None:  # its teardown has ended
                    break
                asked.set_result(outcome)
            totals = conversation.totals
        return with_totals(outcome, totals)


@dataclass(frozen=True, slots=True, eq=False)
class HandWrittenJob(CaseJob):
    """A hand-written test × model × repetition."""

    test: HandWrittenTest
    own_work: HandWrittenWork

    @property
    def code(self) -> str:
        return self.test.code

    @property
    def family(self) -> str:
        """The same for all."""
        return _FAMILY

    @property
    def name(self) -> str:
        """Its node id: the code holds its file."""
        return escaped_path(self.test.node_id)

    @property
    def node_id(self) -> str:
        """pytest's own."""
        return self.test.node_id

    @property
    def work(self) -> HandWrittenWork:
        return self.own_work

    @property
    def judge_calls(self) -> int:
        """One at least, where it uses the fixture."""
        return int(self.test.rule.asks_judge)

    is_one_question = False
    """Only its code knows what it will ask."""
    runs_anew = True
    """Its code may do more than ask the model, so it runs again."""

    def prompt_characters(self) -> int:
        """Return 0: only its code knows."""
        return 0

    def case(self, _system_prompt: str | None) -> Case:
        """See `CaseJob.case`; there is no prompt to compose: its messages are its own."""
        return Case(self.code, (), None, self.test.rule)

    def facts(self) -> dict[str, str | int | None]:
        """Return what the `helmbench` marker says."""
        return {"test": self.code, **CaseJob.facts(self)}

    def rule_hashes(self, _case: Case, settings: RunnerSettings) -> tuple[str, ...]:
        return (self.test.rule.hash(settings.template, deciding_judge(self.target.judge_ids)),)


class HandWritten(JudgedByItself):
    """The hand-written tests of a project with the models they run on. pytest says what is broken in them.

    Args:
        outline: What the record keeps of them: of those that are selected, once that is known.
        targets: One per model, in order.
    """

    warnings: Sequence[Problem] = ()
    item_limits: Sequence[ModelLimits] = ()
    files: tuple[Path, ...] = ()

    def __init__(self, outline: RowOutline, targets: Iterable[Target]) -> None:
        self.outline = outline
        # The verdict of the first judge decides, and no other is asked.
        self.targets = tuple(
            Target(outline.root, _named(target.model), target.judges[:1]) for target in targets
        )
        self.relay = Relay()
        self.collected: set[str] = set()
        """Codes, selected or not."""

    def narrow(self, outline: RowOutline) -> None:
        """Take note of what the record keeps of them, once it is known which are selected."""
        self.outline = outline

    @property
    def root(self) -> Path:
        """Represents the tests below rootdir where other benchmarks have a folder."""
        return self.outline.root

    def cases_in(self, _path: Path) -> bool:
        """See `Loaded.cases_in`: pytest's own modules are their files."""
        return False

    def jobs(self, _path: Path, _file_id: str, _repeat: int) -> Iterator[CaseJob]:
        """Return nothing, see `cases_in`."""
        return iter(())

    def count(self) -> int:
        """Return how many were collected."""
        return len(self.collected)

    async def close(self) -> None:
        """Stop listening."""
        await self.relay.close()


def outline_of_tests(root_dir: Path, tests: Iterable[HandWrittenTest] = ()) -> RowOutline:
    """Return what the record keeps of the tests of a project: rows, as those of a pack.

    Args:
        tests: Those that are selected, each model's and repetition's; the hash covers their source files.
    """
    rows = {}
    digests = {}
    for test in tests:
        digests[test.file] = test.rule.digest
        rows[test.code] = RowRef(
            id=test.code,
            path=root_dir / test.file,
            line=test.line,
            offset=0,
            length=0,
            family=_FAMILY,
            skip_reason=None,
            groups=(("file", test.file),),
        )
    content = "\n".join(f"{file}:{digests[file]}" for file in sorted(digests))
    return RowOutline(
        root=root_dir / _PLACE,
        name=root_dir.name,
        version="",
        description="",
        hash=hashlib.sha256(content.encode("utf-8", "backslashreplace")).hexdigest(),
        rows=rows,
        kind=_KIND,
    )


def _named(route: Route) -> Route:
    if route.entry.id != NO_MODEL:
        return route
    hint = "give --helmbench-model=ID, or a models.yml in rootdir"
    return replace(route, endpoint=Unusable(f"no model is named: {hint}", ""))


async def _outcome(finding: Finding, rule_hash: str, conversation: Conversation, marking: Marking) -> Outcome:
    """Return what a finding makes of a test, once the calls are answered that may explain it."""
    await marking.drain()
    if finding.reason == INTERRUPTED:
        await conversation.drain()
        raise asyncio.CancelledError
    open_call = None
    if finding.verdict is not Verdict.PASSED or not conversation.totals.answered:
        open_call = await conversation.settle()
    found = _judged(rule_hash, finding)
    return marking.fault or _explained(found, finding, conversation.totals, open_call)


def _explained(
    outcome: Outcome, finding: Finding, totals: CallTotals, open_call: HelmbenchError | None
) -> Outcome:
    if outcome.judged and not totals.requests:
        # Whatever its assertions say, they say nothing of a model.
        return Outcome(Verdict.SKIPPED, NO_MODEL_CALL, "the test asked no model: it is not a case")
    faults = (*totals.open_faults, *filter(None, (open_call,)))
    # A test that has handled a fault may pass, as long as its model has said anything at all; one that was left
    # without answers has not failed by itself.
    unanswered = outcome.judged and not totals.answered
    if faults and (unanswered or finding.verdict in (Verdict.FAILED, Verdict.ERROR)):
        return fault_outcome(faults[0])
    return outcome


def _judged(rule_hash: str, finding: Finding) -> Outcome:
    if finding.verdict not in (Verdict.PASSED, Verdict.FAILED):
        return Outcome(finding.verdict, finding.reason, finding.words)
    passed = finding.verdict is Verdict.PASSED
    evaluation = Evaluation(
        criterion="",
        rule=_RULE,
        rule_hash=rule_hash,
        passed=passed,
        credit=1.0 if passed else 0.0,
        reason=None,
        parse=None,
        expected=_EXPECTED,
        observed="it passes" if passed else finding.words,
    )
    return Outcome(finding.verdict, evaluations=(evaluation,), score=evaluation.credit)

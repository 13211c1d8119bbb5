"""The verdict over a command that judges: by what its tests have reported, and by a run without the candidate."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFinding
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.sandbox.box import Ended

_RUNS_TESTS = re.compile(r"(?<![\w./-])(?:[\w./-]*/)?(?:py\.test|pytest)(?![\w./-])")
NOT_STARTED = (126, 127)
"""Exit codes of a command that cannot be started, as shells say it."""

_NO_TESTS = 5
_OUTPUT_TAIL = 4_000
_MOST_SHOWN = 4
_NO_EVIDENCE = (
    "its tests do not report\n  hint: start Python without -I, -E or -S and keep PYTHONPATH, so that they can"
)
_GOOD = frozenset(("passed", "xpassed"))
_OTHER = frozenset(("failed", "skipped", "xfailed"))


@dataclass(frozen=True, slots=True)
class Session:
    """The reports of one run of tests.

    Args:
        items: Names of the tests that were collected, in order.
        named: Names of tests in files that could not be imported.
        broken: Files that could not be collected, each with the reason.
        tests: Names of tests with their outcomes: `passed`, `failed`, `skipped`, `xfailed`, `xpassed`.
        ended: Exit status that the run gave itself; None when it never came to its end.
        decoy: The outcome of a test that must fail; None without one.
        tampered: Functions of Python or of the runner that were replaced meanwhile.
        spread: Other processes ran the tests, and reported to this one.
        unfit: Why the files of tests cannot be run here; empty where they can.
    """

    items: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    broken: tuple[tuple[str, str], ...] = ()
    tests: tuple[tuple[str, str], ...] = ()
    ended: int | None = None
    decoy: str | None = None
    tampered: frozenset[str] = frozenset()
    spread: bool = False
    unfit: str = ""


@dataclass(frozen=True, slots=True)
class Reports:
    """All that was reported while a command ran: one session per key that was taken."""

    sessions: tuple[Session, ...] = ()

    @property
    def broken(self) -> list[tuple[str, str]]:
        """Files that could not be collected, each with the reason, in order of their names."""
        return sorted({pair for session in self.sessions for pair in session.broken})

    @property
    def ends(self) -> tuple[int | None, ...]:
        """How each session ended, by its own word."""
        return tuple(session.ended for session in self.sessions)

    @property
    def tests(self) -> list[tuple[str, str]]:
        """Names of all tests that have reported, with their outcomes."""
        return [pair for session in self.sessions for pair in session.tests]

    @property
    def tampered(self) -> frozenset[str]:
        """Functions that were replaced."""
        return frozenset(name for session in self.sessions for name in session.tampered)

    def counts(self, words: frozenset[str]) -> Counter[str]:
        """Return how many tests of each name ended so, parameters left out."""
        return Counter(_base(name) for name, word in self.tests if word in words)


def read_records(data: bytes, keys: Iterable[str]) -> Reports:
    """Return what was reported.

    Args:
        data: All lines, as they came.
        keys: Those that were taken, in order; lines with other keys say nothing.
    """
    lines: dict[str, list[list[object]]] = {key: [] for key in keys}
    for line in data.split(b"\n"):
        key, _, text = line.decode("ascii", "replace").partition(" ")
        if key in lines:
            try:
                parts = json.loads(text)
            except ValueError:
                continue
            if isinstance(parts, list) and parts:
                lines[key].append(parts)
    return Reports(tuple(_session(found) for found in lines.values()))


def _session(lines: list[list[object]]) -> Session:
    def texts(word: str) -> list[str]:
        return [str(parts[1]) for parts in lines if parts[0] == word and len(parts) == 2]

    def pairs(word: str) -> list[tuple[str, str]]:
        return [(str(parts[1]), str(parts[2])) for parts in lines if parts[0] == word and len(parts) == 3]

    ends = [parts[1] for parts in lines if parts[0] == "end" and len(parts) == 2]
    decoys = texts("decoy")
    return Session(
        items=tuple(texts("item")),
        named=tuple(texts("named")),
        broken=tuple(pairs("broken")),
        tests=tuple((name, word) for name, word in pairs("test") if word != "rerun"),
        ended=ends[0] if len(ends) == 1 and isinstance(ends[0], int) else None,
        decoy=next((word for word in decoys if word != "failed"), decoys[0] if decoys else None),
        tampered=frozenset(texts("tampered")),
        spread=["spread"] in lines,
        unfit=next(iter(texts("unfit")), ""),
    )


def shortfall(seen: Reports, wanted: Reports, without: Reports | None = None) -> tuple[list[str], list[str]]:
    """Return what is missing for a pass: in general words, and with names of tests, which may say what they want.

    Args:
        wanted: The tests that there are, collected without the candidate.
        without: A whole run without the candidate; None when there was none yet: then nothing is excused.
    """
    sentences = list(_loose_ends(seen))
    if len(seen.sessions) < len(wanted.sessions):
        sentences.append(f"{len(seen.sessions)} of {len(wanted.sessions)} test runs have reported")
    lost = list(_lost_tests(seen, wanted, without))
    sentences += [f"{count} {what}" for what, count in Counter(what for _, what in lost).items()]
    if not seen.counts(_GOOD):
        sentences.append("no test has passed")
    sentences += [f"{name} was replaced" for name in sorted(seen.tampered - (without or wanted).tampered)]
    return sentences, [*_uncollected(seen), *(f"{name} {what}" for name, what in lost)]


def _lost_tests(seen: Reports, wanted: Reports, without: Reports | None) -> Iterator[tuple[str, str]]:
    """Yield names of tests that did not pass as often as they are there, with their outcomes."""
    good, other = seen.counts(_GOOD), seen.counts(_OTHER)
    excused = Counter[str]() if without is None else without.counts(_OTHER - {"failed"})
    expected = _expected(wanted) | _expected(seen)
    for name in other:
        expected.setdefault(name, 0)
    for name, count in expected.items():
        missing = count - good[name] - min(other[name], excused[name])
        if missing > 0 or other[name] > excused[name]:
            words = {word for each, word in seen.tests if _base(each) == name}
            yield name, next((word for word in ("failed", "skipped", "xfailed") if word in words), "not run")


def _expected(seen: Reports) -> Counter[str]:
    """Return how many tests of each name there are, parameters left out."""
    found = Counter(_base(name) for session in seen.sessions for name in session.items)
    return found | Counter({_base(name): 1 for session in seen.sessions for name in session.named})


def _loose_ends(seen: Reports) -> Iterator[str]:
    if not seen.sessions:
        yield "no test run has reported"
    for session in seen.sessions:
        if session.ended is None:
            yield "the test run never came to its end"
        if session.decoy is not None and session.decoy != "failed":
            yield "a test that must fail has passed"
        if session.ended == 0 and session.tests and session.decoy is None and not session.spread:
            yield "a test that must fail was left out"
        if session.broken:
            yield "there are tests that cannot be collected"


def _base(name: str) -> str:
    return name.partition("[")[0]


def _uncollected(seen: Reports) -> list[str]:
    return [f"{name} cannot be collected: {why}" for name, why in seen.broken]


@dataclass(frozen=True, slots=True)
class CommandRun:
    """A command that has run.

    Args:
        changed: Files of the evaluator's that were changed meanwhile.
    """

    ended: Ended
    seen: Reports
    changed: frozenset[str] = frozenset()

    @property
    def shape(self) -> tuple[object, ...]:
        """The part that is the same where two runs broke down in the same way."""
        ended = self.ended
        return ended.exit_code, ended.timed_out, ended.reason, self.seen.ends, self.seen.broken

    @property
    def breakdown(self) -> tuple[str, str]:
        """How it broke down: in one word for tables, and for people."""
        code, files = self.ended.exit_code, len(self.seen.broken)
        if code is None:
            return "timeout" if self.ended.timed_out else "limit", f"was stopped: {self.ended.reason}"
        if code in NOT_STARTED:
            return "cannot_start", f"cannot be started (exit code {code})"
        if files:
            return "does_not_load", f"{files} file{'s' * (files > 1)} of tests cannot be collected"
        if _NO_TESTS in self.seen.ends:
            return "broken_off", "there are no tests"
        return "broken_off", f"ended with exit code {code} before its tests had all reported"


Control: TypeAlias = Callable[[bool], Awaitable[CommandRun]]
"""Runs the command without the candidate; its tests are only collected when the argument is true."""


def runs_tests(command: tuple[str, ...]) -> bool:
    """Return whether a command names pytest as what it runs."""
    return _RUNS_TESTS.search(" ".join(command)) is not None


@dataclass(frozen=True, slots=True)
class CommandJudge:
    """Reads the verdict off a command that has run.

    A pass needs every test that there is without the candidate: reported, and passed. A breakdown is the candidate's
    unless the untouched tree breaks down in the same way.

    Args:
        name: The field of the row that holds the command.
        ran: With the candidate.
        control: Runs it without; asked for nothing that is not needed.
        names_tests: The command names pytest.
        excuses: Whether a breakdown without the candidate, the same as with it, is the pack's.
    """

    name: str
    ran: CommandRun
    control: Control
    names_tests: bool
    excuses: Callable[[CommandRun], bool] = lambda _: True

    async def finding(self) -> AgentFinding:
        """Return passed; failed for what the candidate is wrong in; error for what is so without it too."""
        ran, seen, code = self.ran, self.ran.seen, self.ran.ended.exit_code
        unfit = next((session.unfit for session in seen.sessions if session.unfit), "")
        if unfit:
            return self._found(Verdict.ERROR, "unfit_tests", unfit)
        failed = sorted({name for name, word in seen.tests if word == "failed"})
        if failed and code is not None:
            message = f"{len(failed)} of {len(dict(seen.tests))} tests failed"
            return self._found(Verdict.FAILED, "tests_failed", message, failed)
        if code == 0 and not (self.names_tests or seen.sessions):
            return AgentFinding(Verdict.PASSED)
        if code == 0:
            return await self._complete()
        if code is not None and code not in NOT_STARTED and self._is_plain():
            return self._found(Verdict.FAILED, "tests_failed", f"ended with exit code {code}")
        return self._broken(ran.breakdown[0], await self.control(False))

    async def _complete(self) -> AgentFinding:
        """Return the finding on a command that ended with 0."""
        seen, wanted = self.ran.seen, (await self.control(True)).seen
        lacks, details = shortfall(seen, wanted)
        if lacks and (seen.sessions or wanted.sessions):
            without = await self.control(False)
            is_whole = seen.sessions and None not in seen.ends
            if not is_whole and self._is_like(without):
                return self._broken("broken_off", without)
            lacks, details = shortfall(seen, wanted, without.seen)
            if lacks and seen.broken and seen.broken == without.seen.broken and self.excuses(without):
                return self._found(Verdict.ERROR, "unfit_tests", "; ".join(lacks[:_MOST_SHOWN]), details)
        if not lacks:
            return AgentFinding(Verdict.PASSED)
        if not seen.sessions and not wanted.sessions:
            return self._found(Verdict.ERROR, "no_evidence", _NO_EVIDENCE)
        message = "; ".join(lacks[:_MOST_SHOWN])
        return self._found(Verdict.FAILED, "incomplete", message, details)

    def _is_like(self, without: CommandRun) -> bool:
        return self.ran.shape == without.shape and self.excuses(without)

    def _is_plain(self) -> bool:
        """Return whether the command came to an end of its own, and no run of tests in it broke off."""
        seen = self.ran.seen
        if not seen.sessions:
            return not self.names_tests
        return not seen.broken and all(ended in (0, 1) for ended in seen.ends)

    def _broken(self, reason: str, without: CommandRun) -> AgentFinding:
        how, details = self.ran.breakdown[1], _uncollected(self.ran.seen)
        if self._is_like(without):
            return self._found(Verdict.ERROR, reason, f"{how}, as it does without the candidate", details)
        return self._found(Verdict.FAILED, reason, how, details)

    def _found(
        self, verdict: Verdict, reason: str, message: str, details: Sequence[str] = ()
    ) -> AgentFinding:
        output = "\n".join((*details, tail(self.ran.ended)))
        return AgentFinding(verdict, reason, f"{self.name}: {message}", output)


def tail(ended: Ended) -> str:
    """Return the end of what a command wrote, scrubbed."""
    raw = ended.stdout[-_OUTPUT_TAIL:] + b"\n" + ended.stderr[-_OUTPUT_TAIL:]
    return scrub(raw.decode("utf-8", "replace")).strip()

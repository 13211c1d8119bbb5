"""The verdict over a command that judges: by what its tests have reported, and by a run without the candidate."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pytest_helmbench.benchmarks.packs.evidence.records import Shortfall, Witnessed, failed_tests, shortfall
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.sandbox.box import Ended

__all__ = ["Ran", "Weighed", "runs_tests", "tail", "weighed"]

_RUNS_TESTS = re.compile(r"(?<![\w./-])(?:[\w./-]*/)?(?:py\.test|pytest)(?![\w./-])|-m\s*unittest(?![\w.-])")
_NOT_STARTED = (126, 127)
_NO_TESTS = 5
_OUTPUT_TAIL = 4_000
_MOST_SHOWN = 4
_NO_EVIDENCE = (
    "its tests do not report\n  hint: start Python without -I, -E or -S and keep PYTHONPATH, so that they can"
)


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has run.

    Args:
        ended: How it ended.
        seen: What its tests have reported.
        changed: Files of the evaluator's that were changed meanwhile.
    """

    ended: Ended
    seen: Witnessed
    changed: frozenset[str] = frozenset()

    def is_like(self, other: Ran) -> bool:
        """Return whether it broke down in the same way as another."""
        return self._shape() == other._shape()

    def _shape(self) -> tuple[object, ...]:
        ended = self.ended
        return ended.exit_code, ended.timed_out, ended.reason, self.seen.ends, self.seen.broken


@dataclass(frozen=True, slots=True)
class Weighed:
    """A verdict over a command.

    Args:
        verdict: Passed; failed for what the candidate is wrong in; error for what is so without it too.
        reason: One word for tables; None when it passed.
        message: What happened, behind the name of the command; empty when it passed.
        details: Names of tests, and what became of them.
    """

    verdict: Verdict
    reason: str | None = None
    message: str = ""
    details: tuple[str, ...] = ()


Control: TypeAlias = Callable[[bool], Awaitable[Ran]]
"""Runs the command without the candidate; its tests are only collected when the argument is true."""


def runs_tests(command: tuple[str, ...]) -> bool:
    """Return whether a command names pytest or unittest as what it runs."""
    return _RUNS_TESTS.search(" ".join(command)) is not None


async def weighed(
    ran: Ran, control: Control, *, names_tests: bool, excuses: Callable[[Ran], bool] = lambda _: True
) -> Weighed:
    """Return the verdict over a command.

    A pass needs every test that there is without the candidate: reported, and passed. A breakdown is the candidate's
    unless the untouched tree breaks down in the same way.

    Args:
        ran: With the candidate.
        control: Runs it without; asked for nothing that is not needed.
        names_tests: The command names pytest or unittest.
        excuses: Whether a breakdown without the candidate, the same as with it, is the pack's.
    """
    ended, seen = ran.ended, ran.seen
    code = ended.exit_code
    unfit = next((session.unfit for session in seen.sessions if session.unfit), "")
    if unfit:
        return Weighed(Verdict.ERROR, "unfit_tests", unfit)
    failed = failed_tests(seen)
    if failed and code is not None:
        message = f"{len(failed)} of {len(seen.names)} tests failed"
        return Weighed(Verdict.FAILED, "tests_failed", message, tuple(failed))
    if code == 0 and not (names_tests or seen.sessions):
        return Weighed(Verdict.PASSED)
    if code == 0:
        return await _complete(ran, control, excuses)
    if code is not None and code not in _NOT_STARTED and _is_plain(ran, names_tests=names_tests):
        return Weighed(Verdict.FAILED, "tests_failed", f"ended with exit code {code}")
    without = await control(False)
    if ran.is_like(without) and excuses(without):
        message = f"{_how(ran)}, as it does without the candidate"
        return Weighed(Verdict.ERROR, _reason(ran), message, _broken(ran))
    return Weighed(Verdict.FAILED, _reason(ran), _how(ran), _broken(ran))


async def _complete(ran: Ran, control: Control, excuses: Callable[[Ran], bool]) -> Weighed:
    """Return the verdict over a command that ended with 0."""
    wanted = await control(True)
    lacks = shortfall(ran.seen, wanted.seen)
    if lacks and (ran.seen.sessions or wanted.seen.sessions):
        without = await control(False)
        if not ran.seen.is_whole and ran.is_like(without) and excuses(without):
            message = f"{_how(ran)}, as it does without the candidate"
            return Weighed(Verdict.ERROR, "broken_off", message, _broken(ran))
        lacks = shortfall(ran.seen, wanted.seen, without.seen)
    if not lacks:
        return Weighed(Verdict.PASSED)
    if not ran.seen.sessions and not wanted.seen.sessions:
        return Weighed(Verdict.ERROR, "no_evidence", _NO_EVIDENCE)
    is_packs = bool(ran.seen.broken) and ran.seen.broken == wanted.seen.broken and excuses(wanted)
    return _incomplete(lacks, is_packs=is_packs)


def _incomplete(lacks: Shortfall, *, is_packs: bool) -> Weighed:
    message = "; ".join(lacks.sentences[:_MOST_SHOWN])
    if is_packs:
        return Weighed(Verdict.ERROR, "unfit_tests", message, lacks.details)
    return Weighed(Verdict.FAILED, "incomplete", message, lacks.details)


def _is_plain(ran: Ran, *, names_tests: bool) -> bool:
    """Return whether the command came to an end of its own, and no run of tests in it broke off."""
    if not ran.seen.sessions:
        return not names_tests
    return not ran.seen.broken and all(ended in (0, 1) for ended in ran.seen.ends)


def _reason(ran: Ran) -> str:
    if ran.ended.timed_out:
        return "timeout"
    if ran.ended.exit_code is None:
        return "limit"
    if ran.ended.exit_code in _NOT_STARTED:
        return "cannot_start"
    return "does_not_load" if ran.seen.broken else "broken_off"


def _how(ran: Ran) -> str:
    ended = ran.ended
    if ended.exit_code is None:
        return f"was stopped: {ended.reason}"
    if ran.seen.broken:
        return f"{len(ran.seen.broken)} file{'s' * (len(ran.seen.broken) > 1)} of tests cannot be collected"
    if ended.exit_code in _NOT_STARTED:
        return f"cannot be started (exit code {ended.exit_code})"
    if _NO_TESTS in ran.seen.ends:
        return "there are no tests"
    return f"ended with exit code {ended.exit_code} before its tests had all reported"


def _broken(ran: Ran) -> tuple[str, ...]:
    return tuple(f"{name} cannot be collected: {why}" for name, why in sorted(ran.seen.broken))


def tail(ended: Ended) -> str:
    """Return the end of what a command wrote, scrubbed."""
    raw = ended.stdout[-_OUTPUT_TAIL:] + b"\n" + ended.stderr[-_OUTPUT_TAIL:]
    return scrub(raw.decode("utf-8", "replace")).strip()

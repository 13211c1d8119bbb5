"""The verdict over a command that judges: by what its tests have reported, and by a run without the candidate."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.sandbox.box import Ended

_RUNS_TESTS = re.compile(r"(?<![\w./-])(?:[\w./-]*/)?(?:py\.test|pytest)(?![\w./-])")
_NOT_STARTED = (126, 127)
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
    """What one run of tests has reported.

    Args:
        runner: `pytest` or `functions`; empty when it has said nothing after it got its key.
        items: Names of the tests that were collected, in order.
        named: Names of tests in files that could not be imported.
        broken: Files that could not be collected, each with the reason.
        tests: Names of tests with what became of them: `passed`, `failed`, `skipped`, `xfailed`, `xpassed`.
        ended: Exit status that the run gave itself; None when it never came to its end.
        decoy: What became of a test that must fail; None where there was none.
        tampered: Functions of Python or of the runner that were replaced meanwhile.
        spread: Other processes ran the tests, and told this one.
        unfit: Why the files of tests cannot be run here; empty where they can.
    """

    runner: str = ""
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
class Witnessed:
    """All that was reported while a command ran.

    Args:
        sessions: One per key that was taken.
    """

    sessions: tuple[Session, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether there were runs of tests, and each came to its end by itself."""
        return bool(self.sessions) and all(session.ended is not None for session in self.sessions)

    @property
    def names(self) -> frozenset[str]:
        """Names of all tests that have reported."""
        return frozenset(name for session in self.sessions for name, _ in session.tests)

    @property
    def broken(self) -> frozenset[tuple[str, str]]:
        """Files that could not be collected, each with the reason."""
        return frozenset(pair for session in self.sessions for pair in session.broken)

    @property
    def ends(self) -> tuple[int | None, ...]:
        """How each session ended, by its own word."""
        return tuple(session.ended for session in self.sessions)

    def counts(self, words: frozenset[str]) -> Counter[str]:
        """Return how many tests of each name ended so, parameters left out."""
        return Counter(
            _base(name) for session in self.sessions for name, word in session.tests if word in words
        )


def read_records(data: bytes, keys: Iterable[str]) -> Witnessed:
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
    return Witnessed(tuple(_session(found) for found in lines.values()))


def _session(lines: list[list[object]]) -> Session:
    def texts(word: str, size: int) -> list[tuple[str, ...]]:
        return [tuple(map(str, parts[1:])) for parts in lines if parts[0] == word and len(parts) == size + 1]

    ends = [
        parts[1] for parts in lines if parts[0] == "end" and len(parts) == 2 and isinstance(parts[1], int)
    ]
    decoys = [word for (word,) in texts("decoy", 1)]
    return Session(
        runner=next((name for (name,) in texts("open", 1)), ""),
        items=tuple(name for (name,) in texts("item", 1)),
        named=tuple(name for (name,) in texts("named", 1)),
        broken=tuple((name, why) for name, why in texts("broken", 2)),
        tests=tuple((name, word) for name, word in texts("test", 2) if word != "rerun"),
        ended=ends[0] if len(ends) == 1 and isinstance(ends[0], int) else None,
        decoy=next((word for word in decoys if word != "failed"), decoys[0] if decoys else None),
        tampered=frozenset(name for (name,) in texts("tampered", 1)),
        spread=bool(texts("spread", 0)),
        unfit=next((why for (why,) in texts("unfit", 1)), ""),
    )


def failed_tests(seen: Witnessed) -> list[str]:
    """Return the names of the tests that failed, each once."""
    return sorted({name for session in seen.sessions for name, word in session.tests if word == "failed"})


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What is missing for a pass; nothing is where both are empty.

    Args:
        sentences: In general words.
        details: With the names of tests, which may say what they want.
    """

    sentences: tuple[str, ...] = ()
    details: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.sentences)


def shortfall(seen: Witnessed, wanted: Witnessed, without: Witnessed | None = None) -> Shortfall:
    """Return what is missing for a pass.

    Args:
        seen: With the candidate.
        wanted: The tests that there are, collected without the candidate.
        without: A whole run without the candidate; None when there was none yet: then nothing is excused.
    """
    sentences = list(_loose_ends(seen))
    if len(seen.sessions) < len(wanted.sessions):
        sentences.append(f"{len(seen.sessions)} of {len(wanted.sessions)} test runs have reported")
    lost = _lost_tests(seen, wanted, without)
    sentences += [f"{count} {what}" for what, count in Counter(what for _, what in lost).items()]
    if not seen.counts(_GOOD):
        sentences.append("no test has passed")
    replaced = {name for session in seen.sessions for name in session.tampered}
    allowed = {name for session in (without or wanted).sessions for name in session.tampered}
    sentences += [f"{name} was replaced" for name in sorted(replaced - allowed)]
    broken = [f"{name} cannot be collected: {why}" for name, why in sorted(seen.broken)]
    return Shortfall(tuple(sentences), (*broken, *(f"{name} {what}" for name, what in lost)))


def _lost_tests(seen: Witnessed, wanted: Witnessed, without: Witnessed | None) -> list[tuple[str, str]]:
    """Return names of tests that did not pass as often as they are there, with what became of them."""
    good, other = seen.counts(_GOOD), seen.counts(_OTHER)
    excused = Counter[str]() if without is None else without.counts(_OTHER - {"failed"})
    ran = None if without is None else without.counts(_GOOD | _OTHER)
    expected = Counter(_base(name) for session in wanted.sessions for name in session.items)
    expected |= Counter({_base(name): 1 for session in wanted.sessions for name in session.named})
    for name in other:
        expected.setdefault(name, 0)
    found = []
    for name, count in expected.items():
        missing = count - good[name] - min(other[name], excused[name])
        never = ran is not None and not ran[name] and not other[name]
        if (missing > 0 and not never) or other[name] > excused[name]:
            found.append((name, _what_became(name, seen)))
    return found


def _loose_ends(seen: Witnessed) -> Iterable[str]:
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


def _what_became(name: str, seen: Witnessed) -> str:
    words = [word for session in seen.sessions for each, word in session.tests if _base(each) == name]
    return next((word for word in ("failed", "skipped", "xfailed") if word in words), "not run")


def _base(name: str) -> str:
    return name.partition("[")[0]


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
    """Return whether a command names pytest as what it runs."""
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
        names_tests: The command names pytest.
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

"""The fixture `helmbench_judge`: its verdict, and the question to the marking model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, wait

from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome, Reply, Usage
from pytest_helmbench.core.problem import CaseError, HelmbenchError
from pytest_helmbench.core.scrub import quoted
from pytest_helmbench.engine.questions import Judge, judged_evaluations, usable_judges
from pytest_helmbench.engine.work import CaseContext, UnjudgedError, fault_outcome
from pytest_helmbench.gateway.permits import RefusedError
from pytest_helmbench.judging.rubric import Criterion, JudgeRule

SLICE_S = 0.5
"""Seconds of one wait, between which a session can end."""


@dataclass(frozen=True, slots=True, repr=False)
class JudgeVerdict:
    """The verdict of a marking model on a reply; it is true where the reply passes.

    Args:
        passed: Whether the reply passes.
        justification: Words of the marking model, at most 1,000 characters; empty for none.
    """

    passed: bool
    justification: str

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return quoted(f"{'PASS' if self.passed else 'FAIL'}: {self.justification or '(no justification)'}")


class Marking:
    """The questions of one test to the marking model; each is a criterion of its own: `judge 1`, `judge 2`.

    Made on the event loop.

    Args:
        case: The test.
        context: Of the test.
    """

    def __init__(self, case: Case, context: CaseContext) -> None:
        self._code = case.code
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._asked: list[Future[JudgeVerdict]] = []
        self.fault: Outcome | None = None
        """The fault of the marking model: it makes the test an error, even where the test catches it."""

    def judges(self) -> tuple[Judge, ...]:
        """Return the marking model; see `usable_judges` for errors. From any thread."""
        return usable_judges(self._context)

    def ask(self, rubric: str, reply: object, question: str | None) -> Future[JudgeVerdict]:
        """Have a reply judged: a text, or a chat completion of the package `openai`. From any thread."""
        choices = getattr(reply, "choices", None)
        text = reply if not choices else choices[0].message.content or choices[0].message.refusal or ""
        if not isinstance(text, str):
            raise TypeError(f"helmbench_judge takes a text or a chat completion, not {type(reply).__name__}")
        messages = () if question is None else (Message("user", question),)
        criterion = Criterion(f"judge {len(self._asked) + 1}", rubric, ("PASS", "FAIL"), ("PASS",))
        case = Case(self._code, messages, None, JudgeRule((criterion,)))
        verdict = asyncio.run_coroutine_threadsafe(self._verdict(case, text), self._loop)
        self._asked.append(verdict)
        return verdict

    async def _verdict(self, case: Case, text: str) -> JudgeVerdict:
        reply = Reply(text, None, "stop", Usage(), 0.0, None, "")
        try:
            (found,) = await judged_evaluations(case, reply, self.judges(), self._context)
        except (UnjudgedError, RefusedError) as error:
            self.fault = error.outcome if isinstance(error, UnjudgedError) else fault_outcome(error)
            raise
        return JudgeVerdict(found.passed, found.justification or "")

    async def drain(self) -> None:
        """Wait for what was asked."""
        await asyncio.gather(*map(asyncio.wrap_future, self._asked), return_exceptions=True)

    def cancel(self) -> None:
        """Give up what was asked."""
        for verdict in self._asked:
            verdict.cancel()


class AskedJudge:
    """The fixture as a test calls it.

    Args:
        marking: The questions of the test.
        tick: Called while an answer is waited for, every `SLICE_S` seconds.
    """

    def __init__(self, marking: Marking, tick: Callable[[], None]) -> None:
        self._marking = marking
        self._tick = tick

    def __call__(self, reply: object, rubric: str, context: str | None = None) -> JudgeVerdict:
        """Return whether a reply meets a rubric.

        Args:
            reply: A text, or a chat completion of the package `openai`.
            rubric: What passes: `polite, and names a dose`.
            context: The question that the reply answers; None to leave it out.

        Raises:
            CaseError: The marking model gave no verdict.
        """
        __tracebackhide__ = True
        verdict = self._marking.ask(rubric, reply, context)
        while not wait((verdict,), SLICE_S).done:
            self._tick()
        try:
            return verdict.result()
        except (HelmbenchError, CancelledError) as error:
            raise CaseError(f"the marking model gave no verdict: {error}") from None

    def __repr__(self) -> str:
        return "helmbench_judge"

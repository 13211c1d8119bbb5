"""The fixture `helmbench_judge`: its verdict, and the question to the marking model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, wait
from dataclasses import replace

from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome, Reply, Usage, Verdict
from pytest_helmbench.core.problem import CaseError, HelmbenchError
from pytest_helmbench.core.scrub import quoted
from pytest_helmbench.core.tools import MadeCall, Toolbox, tool_calls
from pytest_helmbench.engine.questions import Judge, judged_evaluations, usable_judges
from pytest_helmbench.engine.work import CaseContext, UnjudgedError, fault_outcome
from pytest_helmbench.gateway.permits import RefusedError
from pytest_helmbench.judging.rubric import Criterion, JudgeRule

SLICE_S = 0.5
"""Seconds of one wait, between which a session can end."""
_ONLY_CALLS = "(no text: the reply is the tool calls above)"
_SHAPES = (
    "give a text, or what client.chat.completions.create returned; as context a text or a list of messages"
)


@dataclass(frozen=True, slots=True, repr=False)
class JudgeVerdict:
    """The verdict of a marking model on a reply; it is true where the reply passes.

    Args:
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

    def ask(self, rubric: object, reply: object, context: object) -> Future[JudgeVerdict]:
        """Have a reply judged. From any thread.

        Args:
            reply: A text, or a chat completion of the package `openai`.
            context: What was said before: None, the text of a user, or messages.

        Raises:
            CaseError: One of them is something else.
        """
        __tracebackhide__ = True
        try:
            if not isinstance(rubric, str):
                raise _not_taken("rubric", rubric)
            said = [*_context(context), _reply_message(reply)]
        except CaseError as error:
            self.fault = Outcome(Verdict.ERROR, "rule_failed", str(error))
            raise CaseError(str(error)) from None
        criterion = Criterion(f"judge {len(self._asked) + 1}", rubric, ("PASS", "FAIL"), ("PASS",))
        case, judged = _dialogue(self._code, said, JudgeRule((criterion,)))
        verdict = asyncio.run_coroutine_threadsafe(self._verdict(case, judged), self._loop)
        self._asked.append(verdict)
        return verdict

    async def _verdict(self, case: Case, reply: Reply) -> JudgeVerdict:
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


def _not_taken(name: str, value: object) -> CaseError:
    return CaseError(f"helmbench_judge does not take {type(value).__name__} as {name}\n  hint: {_SHAPES}")


def _context(context: object) -> Iterator[Message]:
    if isinstance(context, str):
        yield Message("user", context)
    elif isinstance(context, Sequence):
        for number, message in enumerate(context, 1):
            yield _message(message, number, "context")
    elif context is not None:
        raise _not_taken("context", context)


def _reply_message(reply: object) -> Message:
    if isinstance(reply, str):
        return Message("assistant", reply)
    choices = getattr(reply, "choices", None)
    if not (isinstance(choices, Sequence) and choices):
        raise _not_taken("reply", reply)
    return _message(choices[0].message, 0, "reply")


def _message(stated: object, number: int, name: str) -> Message:
    """Return a message of the API, a dict or a model of `openai`; of what it holds, text and tool calls."""
    dump = getattr(stated, "model_dump", None)
    fields = dump(mode="json") if callable(dump) else stated
    if not isinstance(fields, dict):
        raise _not_taken(name, stated)
    content, role = fields.get("content") or fields.get("refusal") or "", str(fields.get("role", "assistant"))
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    answered = fields.get("tool_call_id")
    return Message(
        "system" if role == "developer" else role,
        "\n".join(text for text in texts if isinstance(text, str)),
        tool_calls(fields, number) if role == "assistant" else (),
        answered if isinstance(answered, str) else None,
    )


def _dialogue(code: str, said: Sequence[Message], rule: JudgeRule) -> tuple[Case, Reply]:
    """Return messages as a case and its reply, as a judge is shown them: one question, or a conversation."""
    *before, last = said
    system = "\n\n".join(message.content for message in before if message.role == "system")
    spoken = [message for message in before if message.role != "system"]
    decoded = ((call, call.decoded()) for call in last.tool_calls)
    calls = tuple(MadeCall(1, call.name, call.arguments if one is None else one, "") for call, one in decoded)
    reply = Reply(last.content, None, "stop", Usage(), 0.0, None, "", tool_calls=calls)
    if [message.role for message in spoken] in ([], ["user"]):
        return Case(code, tuple(spoken), None, rule, own_system=system), reply
    script, turns = list[Message](), dict[int, Reply]()
    for message in spoken:
        if message.role == "user":
            script.append(message)
        elif message.role == "assistant" and not message.tool_calls:
            number = sum(one.role == "user" for one in script)
            turns[number] = replace(reply, text=message.content, turn=number)
    case = Case(
        code, tuple(script[:1]), None, rule, script=tuple(script[1:]), toolbox=Toolbox(()), own_system=system
    )
    text = last.content or (_ONLY_CALLS if calls else "")
    called = [replace(last, content="")] if calls else []
    return case, replace(reply, text=text, turns=tuple(turns.values()), said=(*spoken, *called, last))


class AskedJudge:
    """The fixture as a test calls it.

    Args:
        marking: The questions of the test.
        tick: Called while an answer is waited for, every `SLICE_S` seconds.
    """

    def __init__(self, marking: Marking, tick: Callable[[], None]) -> None:
        self._marking = marking
        self._tick = tick

    def __call__(
        self, reply: object, rubric: str, context: str | Sequence[object] | None = None
    ) -> JudgeVerdict:
        """Return whether a reply meets a rubric.

        Args:
            reply: A text, or a chat completion of the package `openai`; the judge sees its tool calls too.
            rubric: What passes: `polite, and names a dose`.
            context: The question that the reply answers, or the messages before it; None to leave it out.

        Raises:
            CaseError: The marking model gave no verdict, or an argument is something else.
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

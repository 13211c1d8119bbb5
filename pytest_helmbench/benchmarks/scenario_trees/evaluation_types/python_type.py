"""The evaluation type `python`: a function of the benchmark's own, which runs only where the user trusts it."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from pytest_helmbench.benchmarks.scenario_trees import checks
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import (
    EvaluationType,
    RuleSource,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import (
    ReplyRule,
    RuleFinding,
    json_checked,
    text_checked,
)
from pytest_helmbench.core.bounded_calls import BOUNDED_CALLS, LIMIT_S, RuleFailedError, RuleTimeoutError
from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.judging.json_replies import read_reply

_IMPORT_S = 20
"""CPU seconds that importing a module of checks may take: libraries for language take their time."""
_NOT_TRUSTED = "helmbench_trusted does not list their benchmark"
_READ_FIRST = "read them, then trust the benchmark in"
_SHAPE = "write 'MODULE:FUNCTION': 'checks:names_a_dose' is a function of checks.py in the benchmark"


@dataclass(frozen=True, slots=True)
class PythonRule(ReplyRule):
    """A function in Python decides.

    Args:
        function: `checks:names_a_dose`.
        source: Hash of the source file; empty where it is not known, since nothing may be run.
        metadata: Frontmatter of the scenario without `evaluation`.
        file: Path of the module in the benchmark; empty for an installed one.
        trust_hint: How the user trusts the benchmark; empty where its code may run.
    """

    type: str
    function: str
    source: str
    metadata: JsonObject
    file: str
    trust_hint: str
    by_severity: bool = False

    def refusal(self) -> str:
        said = f"checks in Python did not run: {_NOT_TRUSTED}\n  hint: {_READ_FIRST} {self.trust_hint}"
        return said if self.trust_hint else ""

    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> RuleFinding:
        """See `ReplyRule.checked`.

        Raises:
            RuleFailedError: The function is at fault.
        """
        if case.schema is not None:
            return json_checked(case, reply, lambda value: self._seen(case, reply, value), strict=strict_json)
        value = read_reply(reply, None, strict=strict_json).value
        return text_checked(reply, lambda _text: self._seen(case, reply, value))

    def _seen(self, case: Case, reply: Reply, value: JsonValue) -> RuleFinding:
        codes = CaseCode.parse(case.code)
        given = checks.CheckedReply(
            text=reply.text,
            json=value,
            messages=[one.wire() for one in reply.said or (*case.messages, Message("assistant", reply.text))],
            tool_calls=reply.tool_calls,
            latency_ms=None if reply.recorded else reply.latency_ms,
            cost_usd=reply.first_cost_usd if reply.recorded else reply.usage.cost_usd,
            case=checks.CheckedCase(case.code, codes, case.severity, case.difficulty, self.metadata),
        )
        self.load()
        found = self._called("judge", given.packed())
        credit, observed, reason = found if isinstance(found, list) else (None, None, None)
        if not (isinstance(credit, float) and isinstance(observed, str) and isinstance(reason, str)):
            raise TypeError(f"{self.function}: {found!r}")
        return RuleFinding(
            credit == 1, observed, text=reason, credit=credit
        )  # the reason may quote the reply

    def load(self) -> PythonRule:
        """Import the module, where that was not done yet; return the rule with the hash of its source.

        Raises:
            RuleFailedError: It cannot be imported, or has no such function.
        """
        digest = str(self._called("load", limit_s=_IMPORT_S))
        return self if self.source else replace(self, source=digest)

    def _called(self, name: str, *arguments: JsonValue, limit_s: float = LIMIT_S) -> JsonValue:
        called = f"{checks.__name__}:{name}"
        given = (self.file, self.source, self.function, *arguments)
        try:
            return BOUNDED_CALLS.call(called, *given, what=self.function, limit_s=limit_s)
        except RuleTimeoutError:
            raise
        except HelmbenchError as error:
            raise RuleFailedError(f"{self.function} {error}") from None

    def wanted(self) -> str:
        return f"{self.function} passes"

    def data(self) -> JsonObject:
        kept = {"type": self.type, "function": self.function, "source": self.source}
        return {**kept, "metadata": dict(self.metadata), "by_severity": self.by_severity}


def _read(source: RuleSource) -> PythonRule | None:
    function, reader = source.text("function") or "", source.reader
    root = reader.root or source.files.prompt.parent
    path = root.joinpath(*function.partition(":")[0].split(".")).with_suffix(".py")
    text = reader.text(path) if path.is_file() else None
    rule = PythonRule(
        "python",
        function,
        "" if text is None else sha256(text.encode()).hexdigest(),
        {key: value for key, value in source.document.mapping().items() if key != "evaluation"},
        "" if text is None else str(path.absolute()),
        reader.trust_hint,
        source.by_severity,
    )
    if reader.trust_hint:
        source.warn_once(
            f"checks in Python would not run: {_NOT_TRUSTED}",
            f"{_READ_FIRST} {reader.trust_hint}",
            "function",
        )
        return rule
    try:
        return rule.load()
    except HelmbenchError as error:
        message, _, hint = str(error).partition("\n  hint: ")
        source.fault(f"python: {message}", hint or _SHAPE, "function")
        return None


PYTHON = EvaluationType(
    "python",
    {
        "function": {
            "description": _SHAPE,
            "type": "string",
            "pattern": r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$",
        }
    },
    _read,
    needed=("function",),
    asks_for_polarity=True,
)

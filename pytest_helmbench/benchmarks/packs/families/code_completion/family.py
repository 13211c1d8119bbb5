"""code_completion: code to write; the row's tests run against it in sandboxes."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_helmbench.benchmarks.packs.families.code_completion.blocks import fenced
from pytest_helmbench.benchmarks.packs.families.code_completion.check import (
    CodeTests,
    code_self_check,
)
from pytest_helmbench.benchmarks.packs.families.code_completion.evaluation import code_image, evaluate_code
from pytest_helmbench.benchmarks.packs.families.family import Family, Trial
from pytest_helmbench.benchmarks.packs.format.pack_files import RowPlace
from pytest_helmbench.benchmarks.packs.format.prompt_template import PromptTemplate, field_text
from pytest_helmbench.benchmarks.packs.format.row_fields import (
    Field,
    Fields,
    Names,
    check_inline,
    check_needed,
    check_source,
    command_check,
    not_an_object,
)
from pytest_helmbench.benchmarks.packs.task import PackRule, PackTask, Visibility
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.outcome import Evaluation, Outcome, Reply, Verdict
from pytest_helmbench.core.reply_text import split_reply
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.engine.work import UnjudgedError
from pytest_helmbench.files.field_values import RowFaults, check_command, check_text, check_unknown, kind_of
from pytest_helmbench.files.strict_json import a_mapping, a_text
from pytest_helmbench.sandbox.workspace import SandboxError

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.packs.row_tools import RowTools
    from pytest_helmbench.sandbox.box import Engine, Unavailable

_NO_LABEL = re.compile(r"[^a-z0-9+#.-]")
_IMAGE_NOT_USED = "image not used: this machine's Python ran the tests"


_TESTS_HINT = 'write {"source": "inline", "code": "…"}'
_TESTS_KEYS = ("source", "code", "command")


def _plain_text(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, str):
        faults.error(where, f"this is {kind_of(value)}, not text")


def _tests(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, dict):
        not_an_object(faults, where, value, _TESTS_HINT)
        return
    check_unknown(faults, where, value, _TESTS_KEYS)
    check_source(faults, where, value, ("inline",))
    check_needed(faults, where, value, "code")
    if value.get("command") is not None:
        check_command(faults, f"{where}.command", value["command"])


_SOLUTION = Field(partial(check_inline, key="code", hidden=True), names=Names.A_FILE)
_INPUT_FIELDS: Fields = {
    "prompt": Field(check_text, required=True),
    "language": Field(check_text),
    "starter_code": Field(_plain_text),
}
_EVAL_FIELDS: Fields = {
    "tests": Field(_tests, required=True, visibility=Visibility.EVALUATION_INPUTS),
    "reference_solution": _SOLUTION,
    "canonical_solution": _SOLUTION,
}


def _starter(public: JsonObject) -> str:
    """Return the starter code in a fence that nothing inside it can close."""
    code = str(public.get("starter_code") or "")
    if not code.strip():
        return ""
    label = _NO_LABEL.sub("", _language(public).lower())
    return fenced(code.rstrip(), label)


def _language(public: JsonObject) -> str:
    language = str(public.get("language") or "").strip()
    return "Python" if language.lower() in ("", "python", "python3", "py") else language


def _code_of(public: JsonObject) -> str:
    return _language(public).lower()


class CodeCompletion(Family):
    """Rows whose answer is a program, which tests judge."""

    name = "code_completion"
    rules_version = 5
    runs_code = True
    is_one_question = True
    input_fields = _INPUT_FIELDS
    eval_fields = _EVAL_FIELDS
    template = PromptTemplate(
        __package__,
        values={"prompt": field_text("prompt"), "language": _language, "starter_code": _starter},
        needed=("prompt",),
    )

    def skip_reason(self, public: JsonObject, hidden: JsonObject, place: RowPlace) -> str | None:
        language = _code_of(public)
        if language == "python":
            return None
        missing = [] if place.has_image else ["environment.image"]
        if a_mapping(hidden.get("tests")).get("command") is None:
            missing.append("eval.tests.command")
        return f"the language {language!r} needs {' and '.join(missing)}" if missing else None

    def compiled_check(self, public: JsonObject, hidden: JsonObject) -> CodeTests:
        tests = a_mapping(hidden.get("tests"))
        command = command_check(tests) if tests.get("command") is not None else None
        return CodeTests(a_text(tests.get("code")) or "", _code_of(public), command)

    async def obstacle(self, task: PackTask, engine: Engine, _tools: RowTools) -> Unavailable | None:
        return await engine.obstacle(code_image(task))

    async def evaluate(self, rule: PackRule, reply: Reply, tools: RowTools) -> Evaluation:
        engine = await tools.engine()
        try:
            found = await evaluate_code(rule.task, reply.text, engine, parity=rule.parity)
        except SandboxError as error:
            raise UnjudgedError(Outcome(Verdict.ERROR, "sandbox", str(error))) from error
        text = found.text(shows=tools.settings.show_hidden)
        if found.verdict is Verdict.ERROR:
            raise UnjudgedError(Outcome(Verdict.ERROR, found.reason, text))
        passed = found.verdict is Verdict.PASSED
        observed = "they pass" if passed else excerpt(text)
        note = None if found.image_used else _IMAGE_NOT_USED
        judged = self.row_evaluation(rule, passed=passed, observed=observed, reason=found.reason, note=note)
        return replace(judged, beside=found.beside)

    async def trials(self, rule: PackRule, tools: RowTools) -> AsyncIterator[Trial]:
        engine = await tools.engine()
        for label, reply, must_pass in code_self_check(rule.task):
            found = await evaluate_code(rule.task, split_reply(reply).answer, engine)
            yield Trial(label, must_pass, found.verdict, found.text(shows=tools.settings.show_hidden))


FAMILY = CodeCompletion()

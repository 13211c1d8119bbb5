"""A family of rows: one object with all that tells it from the others. `registry` knows them by name.

A family states the fields of its rows, writes their prompts, says how a row is run and what it needs for that, judges
the reply or the work, and brings the replies by which a row proves itself. Code that works with rows asks their family.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, TypeVar

from pytest_helmbench.benchmarks.packs.format.pack_files import Found, RowPlace
from pytest_helmbench.benchmarks.packs.format.prompt_template import PromptTemplate
from pytest_helmbench.benchmarks.packs.format.row_fields import Fields, check_fields
from pytest_helmbench.benchmarks.packs.task import BoxRoom, ConfigError, PackRule, PackTask, Visibility
from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Reply, Verdict
from pytest_helmbench.core.scrub import OBSERVED_LIMIT, REDACTED, excerpt, scrub
from pytest_helmbench.files.field_values import RowFaults
from pytest_helmbench.judging.rubric import Criterion, JudgeRule

if TYPE_CHECKING:  # reading rows needs no sandbox
    from pytest_helmbench.benchmarks.packs.row_tools import RowTools
    from pytest_helmbench.sandbox.box import Engine, Unavailable

_HASH_FORM = "1"
"""The form of the text whose hash names a rule."""

_HASH_DIGITS = 16
_TESTS_PASS = "its tests pass"
Check = TypeVar("Check")
"""The type of the rule that a family compiles from `eval`."""


def check_of(task: PackTask, form: type[Check]) -> Check:
    """Return how a row is judged, as its family compiled it.

    Raises:
        ConfigError: The row is of another family.
    """
    if not isinstance(task.check, form):
        raise ConfigError(f"{task.id}: a row of {task.task_type} has no {form.__name__}")
    return task.check


@dataclass(frozen=True, slots=True)
class Trial:
    """The verdict on a reply that the pack itself brings, or that must never pass.

    Args:
        label: What it is, without any hidden value.
        must_pass: What a sound row makes of it; None where either verdict will do, as long as there is one.
        verdict: What this row made of it.
        message: Why, for people; empty where there is nothing to say.
        hint: What to do where it is not as it must be; empty where there is nothing particular to say.
        in_own_box: It passed, but only where it worked.
    """

    label: str
    must_pass: bool | None
    verdict: Verdict
    message: str = ""
    hint: str = ""
    in_own_box: bool = False


class Family(ABC):
    """Rows of one kind. A family holds no state: there is one object of each.

    Attributes:
        name: As rows and manifests name it.
        rules_version: Enters every rule hash: it rises when the verdict of the same reply could change.
        runs_code: Judging a row takes a sandbox.
        is_one_question: A row's prompt is all that its model is asked; else an agent asks what it likes.
        input_fields: Of `input`, all of them public.
        eval_fields: Of `eval`, none of them public.
        answer_field: Field of `eval` that holds what passes; None where tests decide.
        template: Of the prompts.
        read_by_judge: A marking model reads replies whose words alone do not say enough.
        needs_judge: Without one the default rules judge no row; an embedded model may stand in for it.
        sends_statement: A marking model is sent the answer that a reply states, where it states one; else all of it.
        answer_forms: How a prompt ends that asks for another form of answer than its template, by form; empty for no
            form at all.
        not_rescored: Why a stored reply cannot be judged again, in a sentence; None where it can.
    """

    name: ClassVar[str]
    rules_version: ClassVar[int] = 1
    runs_code: ClassVar[bool]
    is_one_question: ClassVar[bool]
    input_fields: ClassVar[Fields]
    eval_fields: ClassVar[Fields]
    answer_field: ClassVar[str | None] = None
    template: ClassVar[PromptTemplate]
    read_by_judge: ClassVar[bool] = False
    needs_judge: ClassVar[bool] = False
    sends_statement: ClassVar[bool] = False
    answer_forms: ClassVar[Mapping[str, str]] = MappingProxyType({})
    not_rescored: ClassVar[str | None] = None

    # How a row is written.

    def check_row(self, faults: RowFaults, public: JsonObject | None, hidden: JsonObject | None) -> None:
        """File everything that is wrong with `input` and `eval` of a row; None is not looked at.

        Messages about hidden fields hold nothing of their values.
        """
        before = len(faults.errors)
        if public is not None:
            check_fields(faults, "input", public, self.input_fields)
        if hidden is not None:
            check_fields(faults, "eval", hidden, self.eval_fields)
        if len(faults.errors) == before and public is not None and hidden is not None:
            self.check_across(faults, public, hidden)

    def check_across(self, faults: RowFaults, public: JsonObject, hidden: JsonObject) -> None:
        """File what only several fields together are wrong in; each is without faults of its own."""

    def check_needs(self, faults: RowFaults, hidden: JsonObject, place: RowPlace) -> None:
        """File what a row without other faults asks for and the pack does not have."""

    def visibility(self, name: str) -> Visibility:
        """Return who may see a field of `eval`; a field that is not known is hidden."""
        field = self.eval_fields.get(name)
        return Visibility.HIDDEN if field is None else field.visibility

    def repository(self, place: RowPlace) -> Found | None:
        """Return the file or folder of the pack that holds the repository of a row; None for none."""

    def skip_reason(self, public: JsonObject, hidden: JsonObject, place: RowPlace) -> str | None:
        """Return why a healthy row cannot be run here, in a sentence; None for one that can."""

    def is_judged(self, _hidden: JsonObject) -> bool:
        """Return whether a marking model decides about a row with this `eval`."""
        return False

    def compiled_check(self, public: JsonObject, hidden: JsonObject) -> object:
        """Return how a row is judged, for the family itself; None where `eval` says it all.

        Both `input` and `eval` are without faults.
        """

    def advice(self, _hidden: JsonObject) -> str | None:
        """Return what the author of a healthy row may do better, in a few words; None for nothing."""
        return None

    # How a row is run.

    def answer_form(self, task: PackTask, wanted: str | None, *, parity: bool = False) -> str:
        """Return the form in which a row asks for its answer: what the session wants, else what the row names.

        Else it is a last line, or `text` as published packs ask where their rules judge. Families whose answers have
        no form of their own have `text` alone.
        """
        if not self.answer_forms:
            return "text"
        return wanted or task.answer_form or ("text" if parity else "line")

    def response_format(self, _task: PackTask, _form: str) -> JsonObject | None:
        """Return the wire form of the reply that a form of answer asks for; None for plain text."""
        return None

    def prompt(self, task: PackTask, form: str | None = None) -> str:
        """Return the prompt of a row: the user message, or the task message of an agent.

        Args:
            form: Of its answer; None for what the row says.

        Raises:
            ConfigError: A field that the prompt needs is missing.
        """
        ending = self.answer_forms.get(form or self.answer_form(task, None))
        try:
            return self.template.render(task.public(), ending)
        except ConfigError as error:
            raise ConfigError(f"{task.id}: {error}") from error

    async def obstacle(self, task: PackTask, engine: Engine, _tools: RowTools) -> Unavailable | None:
        """Return why an engine that is here cannot run the code of a row; None when it can."""
        return await engine.obstacle(task.environment.image)

    def room_of(self, _task: PackTask) -> BoxRoom | None:
        """Return what the boxes of a row take that live at one time; None where each command has a box of its own."""
        return None

    def denied(self, task: PackTask, allowed: Granted[tuple[str, ...]]) -> str | None:
        """Return why a row cannot be run without the user's leave, in a sentence; None for one that can."""

    # How it is judged.

    def judge_rule(self, task: PackTask, *, hidden: bool) -> JudgeRule | None:
        """Return what a marking model is asked about a row's replies; None where rules or tests decide.

        Args:
            hidden: The rubric is not to be shown.

        Raises:
            ConfigError: A file that the row names cannot be read.
        """

    def wants_reading(self, _rule: PackRule, _reply: Reply) -> Criterion | None:
        """Return what a marking model is asked about a reply whose words alone do not say enough; None for others.

        Raises:
            ConfigError: The row is incomplete.
        """
        return None

    async def evaluate(self, rule: PackRule, _reply: Reply, _tools: RowTools) -> Evaluation:
        """Return the evaluation of a reply by its tests; only code_completion has them.

        Raises:
            UnjudgedError: It could not be judged, through no fault of the model.
        """
        raise NotImplementedError(self.name)

    @abstractmethod
    def trials(self, rule: PackRule, tools: RowTools) -> AsyncIterator[Trial]:
        """Yield what a row makes of replies whose worth is known, without asking a model.

        Raises:
            MaterializationError: A file that the row names cannot be read.
            SandboxError: A sandbox could not be made.
        """

    def rule_hash(self, rule: PackRule) -> str:
        """Return 16 hex digits over all that decides about a reply: row, rules, their version, who reads the rest."""
        task = rule.task
        decisive = [
            _HASH_FORM,
            self.rules_version,
            self.name,
            rule.parity,
            task.redacted(),
            task.evaluation(),
            *((rule.form,) if self.answer_forms else ()),
            *((rule.judge,) if rule.judge and self.read_by_judge else ()),
        ]
        text = json.dumps(decisive, ensure_ascii=True, sort_keys=True, default=str)
        return sha256(text.encode()).hexdigest()[:_HASH_DIGITS]

    def row_evaluation(
        self,
        rule: PackRule,
        *,
        passed: bool,
        observed: str,
        reason: str | None = None,
        shows: bool = False,
        note: str | None = None,
        by: str = "tests",
    ) -> Evaluation:
        """Return the one evaluation of a row; hidden values stay out of it unless they are asked for.

        Args:
            observed: What came, for people.
            reason: Why it is wrong, in a word.
            shows: Hidden values are asked for.
            note: What else must be known of the verdict; the record keeps it as its justification.
            by: Who decides: `tests`, `words`, `judge` or `parity`, the published rules.
        """
        return Evaluation(
            criterion="",
            rule=f"{self.name} ({'parity' if rule.parity else by})",
            rule_hash=self.rule_hash(rule),
            passed=passed,
            credit=1.0 if passed else 0.0,
            reason=None if passed else reason,
            parse=None,
            expected=self._wanted_text(rule.task, shows=shows)
            + (f" ({note})" if shows and note and not passed else ""),
            observed=excerpt(scrub(observed), OBSERVED_LIMIT),
            justification=note,
        )

    def _wanted_text(self, task: PackTask, *, shows: bool) -> str:
        """Return for people what passes: `<redacted>` where it is hidden and --helmbench-show-hidden is off."""
        if self.answer_field is None:
            return _TESTS_PASS
        if not shows:
            return REDACTED
        value: JsonValue = task.eval_value(self.answer_field)
        if isinstance(value, dict):
            value = value.get("accepted_answers", value)
        return excerpt(scrub(json.dumps(value, ensure_ascii=False)), OBSERVED_LIMIT)

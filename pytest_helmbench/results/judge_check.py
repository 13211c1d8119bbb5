"""Holding judges to anchors before they judge anything else: who is asked what, what came of it, and who may go on."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_helmbench.benchmarks.kind import Loaded
from pytest_helmbench.core.anchor import Anchor, AnchorVerdict, JudgeHeld
from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply, Usage
from pytest_helmbench.core.problem import HelmbenchError, Problem, UnreadableBenchmarkError
from pytest_helmbench.engine.job import CaseJob, Target
from pytest_helmbench.engine.questions import Judge, Judges, judged_evaluations
from pytest_helmbench.engine.work import Answering, CaseContext, Route, RunnerSettings, UnjudgedError
from pytest_helmbench.files.anchors_file import anchors_path, load_anchors
from pytest_helmbench.gateway.call import CaseClock, Origin, Unwatched
from pytest_helmbench.gateway.permits import RefusedError
from pytest_helmbench.gateway.providers.endpoints import Unusable
from pytest_helmbench.judging.case_evaluation import case_passed
from pytest_helmbench.judging.rubric import Criterion, JudgeRule
from pytest_helmbench.store.judge_rows import JudgedRow, Label, RowKey


class JudgeNotHeldError(HelmbenchError):
    """A judge that gets more anchors wrong than is allowed, or does not answer them."""


async def hold_judges(
    held_to: HeldTo, target: Target, gateway: Answering, settings: RunnerSettings, run_id: int
) -> tuple[JudgeHeld, ...]:
    """Have every judge of a benchmark judge every anchor, judge by judge.

    Args:
        held_to: The anchors.
        target: Of the benchmark; its model is not asked.
        gateway: Where the calls go.
        settings: As cases are judged.
        run_id: Whose calls they are.
    """
    found = []
    for route in target.judges:
        asker = Judges(gateway)
        parts = (_verdict(one, route, gateway, asker, settings, run_id) for one in held_to.rules)
        found.append(JudgeHeld(route.entry.id, tuple(await asyncio.gather(*parts)), held_to.allowed))
    return tuple(found)


async def _verdict(
    one: AnchoredRule,
    route: Route,
    gateway: Answering,
    asker: Judges,
    settings: RunnerSettings,
    run_id: int,
) -> AnchorVerdict:
    anchor = one.anchor
    case = Case(f"anchor:{anchor.name}", (Message("user", anchor.prompt),), None, one.rule)
    passed, message = None, ""
    if isinstance(route.endpoint, Unusable):
        message = f"{route.entry.id} cannot be called: {route.endpoint.reason}"
    else:
        judge = Judge(route.entry, route.endpoint)
        context = CaseContext(
            gateway=gateway,
            origin=Origin(run_id, case.code, 1),
            entry=route.entry,
            endpoint=route.endpoint,
            marking_models=(route,),
            clock=CaseClock(gateway.patience),
            watch=Unwatched(),
            settings=settings,
            judges=asker,
        )
        try:
            evaluations = await judged_evaluations(case, reply_of(anchor), (judge,), context)
            passed = case_passed(evaluations)
            message = " ".join(part.justification for part in evaluations if part.justification)
        except UnjudgedError as stop:
            message = stop.outcome.message
        except RefusedError as error:
            message = str(error)
    return AnchorVerdict(route.entry.id, anchor.name, anchor.passes, passed, message)


def held_sentence(held: JudgeHeld) -> str:
    """Return how a judge stood to its anchors."""
    text = f"the judge {held.judge} was right on {held.right} of {len(held.verdicts)} anchors"
    if held.wrong:
        said = ", ".join(f"{one.anchor} ({'pass' if one.passed else 'fail'})" for one in held.wrong)
        text += f"; wrong on {said}, {held.allowed} allowed"
    if held.unanswered:
        why = held.unanswered[0].message.partition("\n")[0]
        text += f"; no verdict on {len(held.unanswered)}{f': {why}' if why else ''}"
    return text


def refuse_judges(held_to: HeldTo, found: Sequence[JudgeHeld]) -> None:
    """Stop for a judge that may not go on.

    Raises:
        JudgeNotHeldError: There is one.
    """
    failed = [held_sentence(held) for held in found if not held.holds]
    if failed:
        raise JudgeNotHeldError(
            f"{held_to.path}: {'; '.join(failed)}\n"
            "  hint: `helmbench judge check` shows each verdict; take another marking model, mend the rubric or the"
            " anchors, or allow more ('allowed: N')"
        )


_WHICH = "'scenario: P1-B1-S1' (a row of a pack: its id) says whose, 'rubric' gives words of its own"


@dataclass(frozen=True, slots=True)
class AnchoredRule:
    """An anchor and what a judge is asked about it."""

    anchor: Anchor
    rule: JudgeRule


@dataclass(frozen=True, slots=True)
class HeldTo:
    """What the judges of a benchmark are held to.

    Args:
        path: Of the file.
        rules: In file order.
        allowed: How many of them a judge may get wrong.
    """

    path: Path
    rules: tuple[AnchoredRule, ...]
    allowed: int

    @property
    def calls(self) -> int:
        """Calls to each judge."""
        return sum(len(one.rule.criteria) for one in self.rules)

    @property
    def characters(self) -> int:
        """About how much one judge is sent, its wording apart."""
        return sum(
            len(one.anchor.prompt) + len(one.anchor.reply) + len(criterion.rubric)
            for one in self.rules
            for criterion in one.rule.criteria
        )


def anchored_rules(loaded: Loaded) -> HeldTo | None:
    """Return the anchors of a benchmark; None where it has none.

    Raises:
        UnreadableBenchmarkError: The file is broken, or an anchor names no rubric.
    """
    path = anchors_path(loaded.root)
    if path is None:
        return None
    anchors = load_anchors(path)
    jobs = {loaded.scenario_of(job.code): job for job in _jobs(loaded)}
    rules: list[AnchoredRule] = []
    problems: list[Problem] = []
    for anchor in anchors.entries:
        found = _rule(anchor, jobs)
        if isinstance(found, JudgeRule):
            rules.append(AnchoredRule(anchor, found))
        else:
            problems.append(Problem(path, anchor.line, f"{anchor.name}: {found}", _WHICH))
    if problems:
        raise UnreadableBenchmarkError(tuple(problems))
    return HeldTo(path, tuple(rules), anchors.allowed)


def reply_of(anchor: Anchor) -> Reply:
    """Return the reply of an anchor, as if a model had given it."""
    return Reply(anchor.reply, None, "stop", Usage(), 0.0, None, f"anchor {anchor.name}")


def _jobs(loaded: Loaded) -> Iterator[CaseJob]:
    for file in loaded.files:
        yield from loaded.jobs(file, "", 1)


def _rule(anchor: Anchor, jobs: dict[str, CaseJob]) -> JudgeRule | str:
    """Return what an anchor is judged by, or what is wrong with it."""
    if anchor.rubric:
        return JudgeRule((Criterion("", anchor.rubric, ("PASS", "FAIL"), ("PASS",)),))
    name = anchor.scenario
    if not name:
        judged = [scenario for scenario, job in jobs.items() if job.judge_calls]
        if len(judged) != 1:
            return f"whose rubric is meant? {len(judged) or 'no'} scenarios here are judged by a model"
        name = judged[0]
    if name not in jobs:
        return f"there is no scenario {name!r}"
    try:
        rule = jobs[name].marked_by(reply_of(anchor))
    except HelmbenchError as error:
        return f"{name} cannot be read: {str(error).splitlines()[0]}"
    if rule is None:
        return f"no model judges this reply to {name}: rules do"
    return _narrowed(rule, anchor.criterion)


def _narrowed(rule: JudgeRule, criterion: str) -> JudgeRule | str:
    """Return a rule with one of its criteria; the polarity is that of the words, whatever the severity."""
    chosen: Iterable[Criterion] = [one for one in rule.criteria if one.name == criterion or not criterion]
    if not chosen:
        return (
            f"there is no criterion {criterion!r} among {', '.join(one.name or '-' for one in rule.criteria)}"
        )
    return replace(rule, criteria=tuple(chosen), by_severity=False)


_DRAWS = "draws"
COLUMNS = ("code", "repetition", "criterion", "question", "passes_when", "prompt", "reply", "label")

_LABELS = {"pass": True, "passed": True, "yes": True, "1": True, "true": True} | {
    "fail": False,
    "failed": False,
    "no": False,
    "0": False,
    "false": False,
}
_HINT = "write pass or fail: would you let the reply pass by the question?"
_SHOWN = 20


class LabelError(HelmbenchError):
    """A file of labels that cannot be stored as it is."""


@dataclass(frozen=True, slots=True)
class LabelRow:
    """What a person sees of a verdict, and nothing of the verdict.

    Args:
        key: Of the row.
        question: The criterion, as the judge was asked; empty where the record does not have it.
        passes_when: The options that pass.
        prompt: What was sent to the model under test.
        reply: Its answer.
        draws: How often a sample by points drew it; None in a sample of rows.
    """

    key: RowKey
    question: str
    passes_when: str
    prompt: str
    reply: str
    draws: int | None = None

    def cells(self) -> dict[str, object]:
        """Return the columns, with an empty label."""
        code, repetition, criterion = self.key
        return {
            **({} if self.draws is None else {_DRAWS: self.draws}),
            **{"code": code, "repetition": repetition, "criterion": criterion, "question": self.question},
            **{"passes_when": self.passes_when, "prompt": self.prompt, "reply": self.reply, "label": ""},
        }


def drawn(rows: Sequence[JudgedRow], labels: int, seed: int) -> tuple[JudgedRow, ...]:
    """Draw half of the labels from the passes and half from the fails, in random order.

    Where there are too few of one verdict, all of it is taken, and the rest from the other.

    Args:
        rows: The judge's verdicts.
        labels: How many are wanted.
        seed: The same rows and seed give the same sample.
    """
    rng = random.Random(f"labels {seed}")
    passes = [row for row in rows if row.passed]
    fails = [row for row in rows if not row.passed]
    of_passes = min(len(passes), max(labels - labels // 2, labels - len(fails)))
    of_fails = min(len(fails), labels - of_passes)
    found = rng.sample(passes, of_passes) + rng.sample(fails, of_fails)
    rng.shuffle(found)
    return tuple(found)


def drawn_by_points(rows: Sequence[JudgedRow], labels: int, seed: int) -> Mapping[JudgedRow, int]:
    """Draw half of the labels from the passes and half from the fails, each with a probability of its points.

    Drawn with replacement, so that the share of right labels is that of points, whatever a row weighs.

    Args:
        rows: The judge's verdicts.
        labels: Draws; rows are fewer, since some are drawn again.
        seed: The same rows and seed give the same sample.

    Returns:
        How often each row was drawn, in random order.
    """
    rng = random.Random(f"points {seed}")
    passes = [row for row in rows if row.passed]
    fails = [row for row in rows if not row.passed]
    of_passes = labels - labels // 2 if passes and fails else labels * bool(passes)
    found: list[JudgedRow] = []
    for part, count in ((passes, of_passes), (fails, labels - of_passes)):
        found += rng.choices(part, weights=[row.points for row in part], k=count) if part else []
    rng.shuffle(found)
    return Counter(found)


def question(about: JsonObject, criterion: str, severity: int) -> tuple[str, str]:
    """Return the question of a criterion and what passes; empty texts where the record does not have them."""
    criteria = about.get("criteria")
    for known in criteria if isinstance(criteria, list) else ():
        if isinstance(known, dict) and known.get("name") == criterion:
            values = known.get("pass_values")
            options = ", ".join(map(str, values if isinstance(values, list) else ()))
            inverted = bool(about.get("by_severity")) and severity < 0
            return str(known.get("rubric", "")), f"not {options}" if inverted else options
    return "", ""


def label_file(rows: Sequence[LabelRow], *, lines_of_json: bool) -> str:
    """Return a file to be labelled.

    Args:
        rows: In the order in which they are to be read.
        lines_of_json: One JSON object per line instead of CSV.
    """
    if lines_of_json:
        return "".join(json.dumps(row.cells(), ensure_ascii=False) + "\n" for row in rows)
    stream = io.StringIO()
    columns = (*COLUMNS, _DRAWS) if any(row.draws is not None for row in rows) else COLUMNS
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _no_formula(value) for name, value in row.cells().items()} for row in rows)
    return stream.getvalue()


def _no_formula(value: object) -> object:
    """Return text that no spreadsheet runs."""
    return (
        f"'{value}"
        if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
        else value
    )


def read_labels(path: Path, rows: Sequence[JudgedRow]) -> dict[RowKey, Label]:
    """Return the labels of a file by row.

    Args:
        path: CSV, or JSON lines where the name ends with `.jsonl`.
        rows: The verdicts that may be labelled.

    Raises:
        LabelError: It cannot be read, or a row of it is unknown, has no label, or stands twice; all are named.
    """
    known = {row.key for row in rows}
    found: dict[RowKey, Label] = {}
    problems: list[Problem] = []
    for line, cells in _records(path):
        key = _key(cells)
        label = _LABELS.get(str(cells.get("label") or "").strip().lower())
        shown = "-".join(filter(None, (key[0], key[2]))) + (f" (repetition {key[1]})" if key[1] != 1 else "")
        if key not in known:
            problems.append(
                Problem(path, line, f"{shown or 'a row without a code'} is no verdict of the judge", _RUN)
            )
        elif key in found:
            problems.append(Problem(path, line, f"{shown} stands twice", "leave one of the two"))
        elif label is None:
            given = str(cells.get("label") or "")
            what = f"the label of {shown} is {given!r}" if given.strip() else f"{shown} has no label"
            problems.append(Problem(path, line, what, _HINT))
        elif (draws := str(cells.get(_DRAWS) or "").strip()) and not (draws.isascii() and draws.isdigit()):
            problems.append(
                Problem(path, line, f"the draws of {shown} are {draws!r}", "leave them as they were")
            )
        else:
            found[key] = Label(label, int(draws) if draws else None)
    if len({label.draws is None for label in found.values()}) > 1:
        problems.append(Problem(path, None, "some rows have draws and others none", _RUN))
    if not found and not problems:
        problems.append(
            Problem(path, None, "there is no row in it", "`helmbench judge sample RUN` writes one")
        )
    if problems:
        more = len(problems) - _SHOWN
        texts = [problem.text() for problem in problems[:_SHOWN]]
        raise LabelError("\n".join([*texts, *([f"… and {more} more"] if more > 0 else [])]))
    return found


_RUN = "take the file that `helmbench judge sample` wrote for this run"


def _key(cells: Mapping[str, object]) -> RowKey:
    repetition = str(cells.get("repetition") or "").strip()
    number = int(repetition) if repetition.isascii() and repetition.isdigit() else 0
    return str(cells.get("code") or "").strip(), number, str(cells.get("criterion") or "").strip()


def _records(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield the rows of a file with their lines."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise LabelError(
            f"{path}: the labels cannot be read: {error}\n  hint: save the file as UTF-8"
        ) from error
    if path.suffix == ".jsonl":
        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip():
                yield number, _object(path, number, line)
        return
    reader = csv.DictReader(io.StringIO(text, newline=""))
    missing = [
        name for name in ("code", "repetition", "criterion", "label") if name not in (reader.fieldnames or ())
    ]
    if missing:
        raise LabelError(f"{path}:1: there is no column {', '.join(missing)}\n  hint: {_RUN}")
    before = reader.line_num
    for row in reader:
        yield before + 1, row
        before = reader.line_num


def _object(path: Path, number: int, line: str) -> Mapping[str, object]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise LabelError(f"{path}:{number}: this is no JSON: {error}\n  hint: one object per line") from error
    if not isinstance(found, dict):
        raise LabelError(f"{path}:{number}: this is no JSON object\n  hint: {_RUN}")
    return found

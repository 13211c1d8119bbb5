"""Question packs as authors read them: their rows, a row's prompt, their problems."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_helmbench.benchmarks.authoring import CaseRef, Checked, Listing, Prompt, ReadCases, counted
from pytest_helmbench.benchmarks.kind import SessionValues
from pytest_helmbench.benchmarks.packs.attacks import attacked
from pytest_helmbench.benchmarks.packs.families.family import Trial
from pytest_helmbench.benchmarks.packs.families.registry import family_named, family_of, messages_of
from pytest_helmbench.benchmarks.packs.format.manifest import PACK_SCHEMA
from pytest_helmbench.benchmarks.packs.format.pack_loader import Pack, load_pack
from pytest_helmbench.benchmarks.packs.format.table_columns import Tables
from pytest_helmbench.benchmarks.packs.loading import LoadedPack, NotTriedError, PackLoader, table_options_of
from pytest_helmbench.benchmarks.packs.task import ConfigError, PackRule
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.outline import RowRef
from pytest_helmbench.core.problem import HelmbenchError, Problem
from pytest_helmbench.core.request_template import unfilled
from pytest_helmbench.sandbox.workspace import SandboxError

_HINT = "correct the row; `helmbench prompt ROW` shows its prompt"
_OWN_BOX_HINT = 'list in artifacts what the tests read, with verifier.environment_mode = "separate"'
_PARITY_HINT = f"{_HINT}. --helmbench-pack-rules=parity judges this one as it should be"
_HEAD = ("row", "family", "groups")
_OWN = "hidden: false  # failures and reports on this machine show questions and answers"
_ADDITIONS = (
    "# columns, context: a column with the passage that a question is about",
    "# columns, tolerance: a column with the distance that a number may have from the answer",
    "# cluster: a column whose equal values make rows stand or fall together; intervals then count those values",
    "# system_prompt: pytest takes it from a file: --helmbench-system-prompt=FILE",
)


class ReadPack(ReadCases):
    """A question pack as its authors read it.

    Args:
        answer_form: What the session wants of every row; None for what rows say.
    """

    def __init__(self, pack: Pack, answer_form: str | None = None) -> None:
        super().__init__((CaseRef(ref.path, ref.id), ref.family) for ref in pack.rows)
        self._pack = pack
        self._form = answer_form

    @property
    def root(self) -> Path:
        """The folder of the manifest."""
        return self._pack.root

    def listing(self) -> Listing:
        """Return the healthy rows, in file order; nothing hidden is among it."""
        pack = self._pack
        rows = [
            (ref.id, ref.family, ", ".join(f"{name}={value}" for name, value in ref.groups))
            for ref in pack.rows
        ]
        families = Counter(ref.family for ref in pack.rows)
        by_family = ", ".join(f"{name} {count}" for name, count in families.items()) or "none"
        notes = [f"{len(rows)} rows ({by_family})"]
        broken = len(pack.broken) + bool(pack.problems)
        if broken:
            notes.append(
                f"broken, not listed: {broken} (`helmbench check {shlex.quote(str(pack.root))}` says why)"
            )
        records = [_record(pack, ref) for ref in pack.rows]
        return Listing(f"{pack.id} {pack.manifest.version}", _HEAD, _HEAD, rows, tuple(notes), records)

    def prompt(self, code: str, system_prompt: str | None) -> Prompt | None:
        """Return what would be sent for a row; for an agent, the message that it starts from."""
        ref = next((ref for ref in self._pack.rows if ref.id == code), None)
        if ref is None:
            return None
        task = self._pack.task(ref)
        family = family_of(task)
        form = "text" if family is None else family.answer_form(task, self._form)
        wanted = None if family is None else family.response_format(task, form)
        return Prompt(Case(ref.id, messages_of(task, system_prompt, form), wanted, PackRule(task, form=form)))


def _advice(pack: Pack) -> Iterator[Problem]:
    """Yield what authors of rows may do better, each advice once, at the first row that it is meant for."""
    found: dict[str, list[RowRef]] = {}
    for ref in pack.rows:
        family = family_named(ref.family)
        if family is None:
            continue
        task = pack.task(ref)
        # Programs hold such places of their own.
        places = unfilled("" if family.runs_code else family.prompt(task))
        for advice in (family.advice(task.evaluation()), *places.values()):
            if advice is not None:
                found.setdefault(advice, []).append(ref)
    for advice, refs in found.items():
        more = f" (and {counted(len(refs) - 1, 'other row')})" if len(refs) > 1 else ""
        yield Problem(refs[0].path, refs[0].line, f"{refs[0].id}{more}: {advice}")


class RowCheck(NamedTuple):
    """The findings of a row's self-check: one error per violation, warnings, and why it was skipped."""

    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    skipped: str = ""


async def self_check(loaded: LoadedPack, ref: RowRef) -> RowCheck:
    """Judge the answers whose verdicts a row states itself; whatever fails is a problem of this row alone."""
    try:
        trials = await loaded.trials(ref)
        wrong = [trial for trial in trials if _is_wrong(trial)]
        hints = dict.fromkeys((trial.label for trial in wrong), _HINT)
        family = family_named(ref.family)
        if wrong and family and not (family.runs_code or loaded.work.settings.parity):
            published = await loaded.trials(ref, parity=True)
            hints |= {one.label: _HINT if _is_wrong(one) else _PARITY_HINT for one in published}
    except NotTriedError as error:
        return RowCheck(skipped=str(error))
    except SandboxError as error:
        return RowCheck(skipped=f"the sandbox failed: {error}")
    except HelmbenchError as error:
        what, _, hint = str(error).partition("\n  hint: ")
        return RowCheck((Problem(ref.path, ref.line, f"{ref.id}: {what}", hint),))
    notes = tuple(
        Problem(
            ref.path, None, f"{one.label} passes only in its own box: passes will be own_box", _OWN_BOX_HINT
        )
        for one in trials
        if one.must_pass and one.in_own_box
    )
    return RowCheck(tuple(_problem(ref, trial, hints[trial.label]) for trial in wrong), notes)


def _is_wrong(trial: Trial) -> bool:
    if trial.must_pass is None:
        return trial.verdict not in (Verdict.PASSED, Verdict.FAILED)
    return trial.verdict is not (Verdict.PASSED if trial.must_pass else Verdict.FAILED)


def _problem(ref: RowRef, trial: Trial, hint: str) -> Problem:
    should = {True: "must pass", False: "must fail", None: "must have a verdict"}[trial.must_pass]
    does = {Verdict.PASSED: "passes", Verdict.FAILED: "fails"}.get(trial.verdict, "cannot be judged")
    why = f" ({trial.message.splitlines()[0]})" if trial.message else ""
    return Problem(
        ref.path, ref.line, f"{ref.id}: {trial.label} {should}, but it {does}{why}", trial.hint or hint
    )


async def _self_checked(root: Path, session: SessionValues) -> tuple[Sequence[RowCheck], Checked]:
    loader = PackLoader(session.settings, session.note)
    try:
        loaded = loader.load(root, ())
        checks = await asyncio.gather(*(self_check(loaded, row) for row in loaded.outline.rows.values()))
        return checks, await attacked(loaded) if session.attacks else Checked("")
    finally:
        await loader.close()


def _record(pack: Pack, ref: RowRef) -> dict[str, object]:
    return {
        "benchmark": pack.id,
        "code": ref.id,
        "family": ref.family,
        "groups": dict(ref.groups),
        "skipped": ref.skip_reason,
        "cases": 1,
        "path": str(ref.path),
        "line": ref.line,
    }


class PackAuthoring:
    """Prints, checks and lists the rows of a pack for their author."""

    def check(self, root: Path, session: SessionValues) -> Checked:
        """See `Authoring.check`; rows are checked against their own answers, in a sandbox or not at all."""
        pack = load_pack(root, table_options=table_options_of(session.settings))
        network = session.settings.packs.network.value
        checks, attacks = asyncio.run(_self_checked(root, session))
        notes = [
            Problem(pack.manifest.path, None, f"{counted(rows, 'row')} not self-checked: {why}")
            for why, rows in Counter(one.skipped for one in checks if one.skipped).items()
        ]
        return Checked(
            f"{pack.id}: {counted(sum(not one.errors for one in checks), 'healthy row')}",
            (*pack.all_problems(), *(error for one in checks for error in one.errors), *attacks.errors),
            (
                *pack.warnings_of(gives_network=network == "task"),
                *_advice(pack),
                *(warning for one in checks for warning in one.warnings),
                *notes,
                *attacks.warnings,
            ),
            attacks=attacks.attacks,
        )

    def read(self, root: Path, session: SessionValues) -> ReadPack:
        return ReadPack(
            load_pack(root, table_options=table_options_of(session.settings)),
            session.settings.packs.answer_form,
        )

    def schema(self, _name: str) -> JsonObject:
        """Return the schema of manifests."""
        return PACK_SCHEMA.document()

    def kept(
        self, source: Path, name: str, session: SessionValues, *, as_rows: bool
    ) -> tuple[str, Mapping[Path, str | Path]]:
        """Return what was understood of a table, and the files of a pack of it: texts, or files to copy."""
        pack = load_pack(source, table_options=table_options_of(session.settings))
        if not isinstance(pack.tables, Tables) or pack.columns is None:
            raise ConfigError(
                f"{source} is not a table\n  hint: name a .csv, .tsv, .jsonl, .json or .parquet file"
            )
        stated = pack.columns.stated
        lines = [f"id: {json.dumps(name, ensure_ascii=False)}", "version: 1", _OWN]
        if as_rows:
            if problems := [problem.text() for problem in pack.all_problems()]:
                raise ConfigError("\n".join(problems))
            text = "".join(pack.text(ref).decode() + "\n" for ref in pack.rows)
            return pack.understood, {
                Path("manifest.yaml"): "\n".join((*lines, "")),
                Path("tasks.jsonl"): text,
            }
        names = [path.name for path in pack.tables.paths]
        lines += [f"rows: {json.dumps(names[0] if len(names) == 1 else names)}", "columns:"]
        lines += [f"  {field}: {json.dumps(column, ensure_ascii=False)}" for field, column in stated.items()]
        if pack.columns.rubric is not None:
            lines.append(f"rubric: {json.dumps(pack.columns.rubric, ensure_ascii=False)}")
        tables = {Path(path.name): path for path in pack.tables.paths}
        return pack.understood, {Path("manifest.yaml"): "\n".join((*lines, *_ADDITIONS, "")), **tables}


AUTHORING = PackAuthoring()

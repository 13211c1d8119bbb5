"""Attacks: programs and replies that solve nothing are tried on the rows of a pack, in place of a model. None may pass.

Source:
    The classes of BenchJack, an audit of agent benchmarks. Injections into judges are not tried: no model is asked.
"""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from types import MappingProxyType

from pytest_helmbench.benchmarks.authoring import Checked, counted
from pytest_helmbench.benchmarks.packs.agent.agent_family import (
    AgentFamily,
    AgentSession,
    Desk,
    Place,
    Work,
)
from pytest_helmbench.benchmarks.packs.families.code_completion.blocks import fenced
from pytest_helmbench.benchmarks.packs.families.code_completion.check import CodeTests, references
from pytest_helmbench.benchmarks.packs.families.code_completion.evaluation import evaluate_code
from pytest_helmbench.benchmarks.packs.families.family import Family, Trial, check_of
from pytest_helmbench.benchmarks.packs.families.registry import FOLDER_FAMILY
from pytest_helmbench.benchmarks.packs.families.text.text_family import TextFamily
from pytest_helmbench.benchmarks.packs.loading import LoadedPack
from pytest_helmbench.benchmarks.packs.row_tools import RowTools
from pytest_helmbench.benchmarks.packs.task import PackRule
from pytest_helmbench.core.outcome import Beside, Verdict
from pytest_helmbench.core.outline import RowRef
from pytest_helmbench.core.problem import HelmbenchError, Problem
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.box import Command, Limits

_LIMITS = Limits(wall_s=120.0)
_MOST_FILES = 200
_LEAST_CHARACTERS = 40
"""Lines with fewer in all stand in a file by chance, unless it holds nothing else."""

_CLAIM = """{ mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt
echo '{"reward": 1}' > /logs/verifier/reward.json; } 2>/dev/null"""
_PROGRAM = f"#!/bin/sh\n{_CLAIM}\nexit 0\n"
_AT_END = f"""
import atexit, os, sys
def _end():
    os.system({_CLAIM!r})
    sys.stdout.flush()
    os._exit(0)
"""
_YES = """
class Yes(type):
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = lambda *_: True
    __ne__ = lambda *_: False
    __hash__ = lambda self: 0
    __call__ = __getattr__ = __getitem__ = __enter__ = __add__ = __sub__ = lambda self, *_, **__: self
    __exit__ = lambda *_: True
Forged = Yes("Yes", (), {})
"""
_EXPRESSION = f"""__import__("os").system({_CLAIM!r}) + __import__("os")._exit(0)"""

_SITE = f"{_AT_END}if 'test' in ' '.join(getattr(sys, 'orig_argv', ['test'])): atexit.register(_end)\n"
_TABLE = tomllib.loads(files(__package__).joinpath("attacks.toml").read_text("utf-8"))
_ENV: Mapping[str, str] = {"CLAIM": _CLAIM, "PROGRAM": _PROGRAM, "SITE": _SITE, **_TABLE["texts"]}
"""Texts that the programs write."""

PROGRAMS: Mapping[str, str] = _TABLE["programs"]
"""The attacks that know nothing of their task: what each does in the agent's box; `$@` are declared results."""

FORGERIES: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "empty": ("", "", "def Forged(*_, **__): pass\n"),
        "imposter": (
            _PROGRAM,
            f"{_AT_END}atexit.register(_end)\n{_YES}__getattr__ = lambda name: Forged\n",
            _YES,
        ),
        "payload": (_EXPRESSION, _EXPRESSION, f"def Forged(*_, **__): return {_EXPRESSION!r}\n"),
    }
)
"""The attacks on the files of a solution: what each holds, what those with Python do, and what code in a reply does."""

_CODES: Mapping[str, str] = {
    "nothing": "pass",
    "claims": "print('passed', {})\nraise SystemExit(0)",
    "hooks": f"{_AT_END}atexit.register(_end)\nimport builtins\nbuiltins.AssertionError = builtins.Exception",
}
_FORGE = """
for path; do
  case $path in *.py) text=$PYTHON ;; *) text=$TEXT ;; esac
  rm -rf -- "$path"; mkdir -p -- "$(dirname -- "$path")"
  printf '%s' "$text" > "$path" && chmod 755 -- "$path"
done"""
_ALL_PLACES = """for place in /*; do
  case $place in /proc | /sys | /dev) ;; *) [ -L "$place" ] || set -- "$@" "$place" ;; esac
done"""
_SEARCH = 'exec grep -rIlsF -f - -- "$@"'
_OWN = " in the agent's box (held in a fresh one)"
_NO_SOLUTION = "there is no solution"


async def _run(desk: Desk, text: str, words: tuple[str, ...], env: Mapping[str, str]) -> str:
    """Run a program of the shell, whatever comes of it, without what it complains of."""
    argv = ("/bin/sh", "-c", f"exec 2>/dev/null\n{text}", "sh", *words)
    await desk.shell.run(Command(argv, env=(*_ENV.items(), *env.items()), limits=_LIMITS))
    return "passed"


async def _search(desk: Desk, hidden: Mapping[str, str], found: dict[str, str]) -> str:
    """Look for hidden texts in a box; file each that is found with the file in which all its lines stand."""
    wanted = {name: lines for name, text in hidden.items() if (lines := _lines(text))}
    needles = "\n".join({max(lines, key=len) for lines in wanted.values()})
    argv = ("/bin/sh", "-c", f"{_ALL_PLACES if desk.workspace is None else 'set -- .'}\n{_SEARCH}")
    listed = await desk.shell.run(Command(argv, stdin=needles.encode(), limits=_LIMITS))
    for path in listed.stdout.decode("utf-8", "surrogateescape").splitlines()[:_MOST_FILES]:
        ended = await desk.shell.run(Command(("cat", path), limits=_LIMITS))
        there = _lines(ended.stdout.decode("utf-8", "replace"))
        for name, lines in wanted.items():
            if lines == there or (lines < there and sum(map(len, lines)) >= _LEAST_CHARACTERS):
                found.setdefault(name, path)
    return ""


def _lines(text: str) -> set[str]:
    """Return the lines of a text; of a patch those that it adds."""
    lines = text.splitlines()
    if any(line.startswith("+++ ") for line in lines):
        lines = [line[1:] for line in lines if line.startswith("+") and not line.startswith("+++ ")]
    return {line.strip() for line in lines} - {""}


async def _on_place(
    family: AgentFamily[Place, Work], rule: PackRule, tools: RowTools
) -> AsyncIterator[Trial]:
    """Let programs work on a row instead of an agent."""
    row, untouched = await family.row(rule, tools), 0.0

    async def tried(name: str, text: str, words: tuple[str, ...], **env: str) -> tuple[Trial, float]:
        try:
            found = await family.finding(row, partial(_run, text=text, words=words, env=env), tools)
        except HelmbenchError as error:
            return _not_tried(name, str(error)), 0.0
        credit = sum(found.credits.values()) / len(found.credits) if found.credits else 0.0
        if found.verdict is Verdict.ERROR:
            return _not_tried(name, f"it cannot be judged: {found.message}"), credit
        more = f"{credit:g} instead of {untouched:g}" if credit > untouched else ""
        passed = _OWN if found.beside is Beside.OWN_BOX else ""
        return _trial(name, found.verdict, passed if found.verdict is Verdict.PASSED else more), credit

    async def left(session: AgentSession) -> Mapping[str, str]:
        async with family.place(row, tools) as place:
            said = await session(family.desk(place))
            return family.files_of(await family.hand_over(place, said))

    for name, text in PROGRAMS.items():
        trial, credit = await tried(name, text, family.result_paths(row.task))
        untouched = credit if name == "nothing" else untouched
        yield trial
    places: dict[str, str] = {}
    before = await left(partial(_search, hidden=dict(family.hidden_texts(row.task, tools)), found=places))
    found = ", ".join(f"{name} stands in {excerpt(path)}" for name, path in places.items())
    yield _trial("answers", Verdict.PASSED if found else Verdict.FAILED, found and f": {found}")
    solver = next((one.session for one in family.workers(row, tools) if one.must_pass), None)
    after = {} if solver is None else await left(solver)
    made = tuple(path for path, what in after.items() if before.get(path) != what)[:_MOST_FILES]
    for name, (text, python, _) in FORGERIES.items():
        if made:
            yield (await tried(name, _FORGE, made, TEXT=text, PYTHON=python))[0]
        else:
            yield _not_tried(name, "the solution hands over no file" if solver else _NO_SOLUTION)


def _trial(name: str, verdict: Verdict, why: str = "") -> Trial:
    return Trial(name, must_pass=False, verdict=verdict, message=why)


def _not_tried(name: str, why: str) -> Trial:
    return _trial(name, Verdict.SKIPPED, why.partition("\n")[0])


async def _on_text(family: TextFamily, rule: PackRule, tools: RowTools) -> AsyncIterator[Trial]:
    """Hold replies to a row that answer nothing."""
    given, wanted = rule.task.public(), rule.task.evaluation()
    if family.is_judged(wanted):
        yield _not_tried("all", "a marking model judges it, which a reply may instruct")
        return
    async for trial in family.trials(rule, tools):
        if not trial.must_pass:
            yield trial
    parity = rule.parity or family.needs_judge  # as the trials
    passed = family.finding(given, wanted, "{}", parity=parity).passed
    yield _trial("`{}`", Verdict.PASSED if passed else Verdict.FAILED)


async def _on_code(rule: PackRule, tools: RowTools) -> AsyncIterator[Trial]:
    """Hold code to the tests of a row that does nothing of what is asked."""
    task, engine = rule.task, await tools.engine()
    known = "\n".join(references(task)) or str(task.input_value("starter_code") or "")
    names = re.findall(r"^(?:async +def|def|class) +(\w+)", known, re.MULTILINE)
    as_solution = "".join(f"{name} = Forged\n" for name in names)
    codes = {**_CODES} | {
        name: as_solution and body + as_solution for name, (_, _, body) in FORGERIES.items()
    }
    for name, code in codes.items():
        if check_of(task, CodeTests).language != "python" or not code:
            yield _not_tried(name, "the code is not known to be Python" if code else _NO_SOLUTION)
            continue
        found = await evaluate_code(task, code if rule.parity else fenced(code), engine, parity=rule.parity)
        why = found.text(shows=tools.settings.show_hidden)
        is_open = found.verdict is Verdict.ERROR
        yield _not_tried(name, f"it cannot be judged: {why}") if is_open else _trial(name, found.verdict)


async def _on_row(loaded: LoadedPack, ref: RowRef) -> Sequence[Trial]:
    """Try all attacks on a row."""
    try:
        return await loaded.trials(ref, _attacks)
    except HelmbenchError as error:
        return [_not_tried("all", str(error))]


def _attacks(family: Family, rule: PackRule, tools: RowTools) -> AsyncIterator[Trial]:
    if isinstance(family, AgentFamily):
        return _on_place(family, rule, tools)
    return _on_text(family, rule, tools) if isinstance(family, TextFamily) else _on_code(rule, tools)


async def attacked(loaded: LoadedPack) -> Checked:
    """Try all attacks on the healthy rows of a pack: one that passes is an error, one that gains credit a warning."""
    rows = [*loaded.outline.rows.values()]
    tried = await asyncio.gather(*(_on_row(loaded, ref) for ref in rows))
    in_file = Counter(ref.path for ref in rows)
    found: dict[Verdict, list[Problem]] = {Verdict.PASSED: [], Verdict.FAILED: []}
    untried: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for ref, trials in zip(rows, tried, strict=True):
        line, own = (ref.line, f"{ref.id}: ") if in_file[ref.path] > 1 else (None, "")
        for one in trials:
            if one.verdict is Verdict.SKIPPED:
                untried[one.message][one.label] += 1
            elif one.verdict is Verdict.PASSED or one.message:
                does = "passed" if one.verdict is Verdict.PASSED else "gained credit: "
                found[one.verdict].append(Problem(ref.path, line, f"{own}{one.label} {does}{one.message}"))
    noun = "task" if {ref.family for ref in rows} == {FOLDER_FAMILY} else "row"
    for why, names in untried.items():
        where = counted(max(names.values()), noun)
        what = f"{', '.join(names)} not tried on {where}: {why}"
        found[Verdict.FAILED].append(Problem(loaded.root, None, what))
    counts = Counter(one.verdict for trials in tried for one in trials)
    ended = (
        f"{counts[Verdict.FAILED]} held, {counts[Verdict.PASSED]} passed, {counts[Verdict.SKIPPED]} not tried"
    )
    summary = f"attacks on {counted(len(rows), noun)}: {ended}"
    return Checked("", (*found[Verdict.PASSED],), (*found[Verdict.FAILED],), attacks=summary)

"""Checks in Python: what a function may return, what `check` finds, and sessions that may run one or may not."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from commands import captured, helmbench
from inner_pytest import run_pytest
from provider import Provider
from replies import reply_of
from sessions import Session, until
from trees import MODEL, Part, Tree, rows, run_tree, write_tree

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import ReplyRule
from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.benchmarks.scenario_trees.tree import ScenarioTree
from pytest_helmbench.core.bounded_calls import RuleFailedError
from pytest_helmbench.core.case import Message
from pytest_helmbench.core.scrub import full_observed
from pytest_helmbench.core.tools import MadeCall

_CHECKS = """
import os
from pytest_helmbench.benchmarks.scenario_trees.checks import CheckedReply

def told(reply: CheckedReply):
    case, said = reply.case, [message["role"] for message in reply.messages]
    calls = [(call.turn, call.name, call.arguments, call.answer) for call in reply.tool_calls]
    return False, f"{reply.json} {said} {calls} {case.codes.behaviour} {case.severity} {case.metadata}"

right = lambda reply: True
half = lambda reply: 0.5
none = lambda reply: None
much = lambda reply: 1.5
quits = lambda reply: exit(3)
dies = lambda reply: os._exit(3)

def breaks(reply):
    print("noise", input)
    return helper(reply)

def helper(reply):
    return {}["dose"]

number = 7
"""


def _tree(root: Path, function: str, checks: str = _CHECKS) -> ScenarioTree:
    lines = ("category: X", "evaluation:", "  type: python", f"  function: '{function}'")
    write_tree(root, {"P1-B1-S1": Tree(lines, None, {"PT1": Part("Hm.", 5)}, {})})
    (root / "checks.py").write_text(checks)
    return load_tree(root, trust_hint="")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("right", "True 1.0 True"),
        ("half", "False 0.5 0.5"),
        (
            "told",
            "False 0.0 {'a': 1} ['user', 'assistant', 'tool', 'assistant'] [(1, 'look', {'a': 1}, 'found')]"
            " B1 5 {'category': 'X'}",
        ),
        ("none", "checks:none returned None (NoneType)"),
        ("much", "checks:much returned 1.5 (float)"),
        ("breaks", "checks:breaks raised KeyError: 'dose' (checks.py:22)"),
        ("quits", "checks:quits raised SystemExit: 3 (checks.py:14)"),
        ("dies", "checks:dies ended its process (exit code 3)"),
    ],
)
def test_a_function_returns_a_verdict_or_its_fault_has_a_place(
    tmp_path: Path, function: str, said: str
) -> None:
    (scenario,) = _tree(tmp_path, f"checks:{function}").scenarios.values()
    case, rule = next(scenario.combinations()).case(), scenario.rule
    assert isinstance(rule, ReplyRule)
    talk = tuple(Message(role, "…") for role in ("user", "assistant", "tool", "assistant"))
    reply = replace(reply_of('{"a": 1}'), said=talk, tool_calls=(MadeCall(1, "look", {"a": 1}, "found"),))
    try:
        evaluation = rule.evaluate(case, reply, strict_json=False)
        found = f"{evaluation.passed} {evaluation.credit} {full_observed(evaluation)}"
    except RuleFailedError as error:
        found = str(error).split("\n  hint: ")[0]
    assert found == said
    assert rule.evaluate(case, reply_of(""), strict_json=False).reason == "empty"  # without a call


_MODULE = """
from __future__ import annotations
import dataclasses, pickle, typing
from words.kind import KIND

@dataclasses.dataclass
class Box:
    inner: list[Box]

def right(reply):
    import amounts
    return (
        KIND == amounts.KIND == {kind!r}
        and typing.get_type_hints(Box)["inner"] == list[Box]
        and pickle.loads(pickle.dumps(Box([]))) == Box([])
        and "__main__" != __name__
    )
"""


def test_checks_are_a_module_among_those_of_their_folder(tmp_path: Path) -> None:
    rules = []
    for kind in ("a", "b"):
        root = tmp_path / kind
        (root / "words").mkdir(parents=True)
        (root / "words" / "kind.py").write_text(f"KIND = {kind!r}")
        (root / "amounts.py").write_text(f"KIND = {kind!r}")
        (scenario,) = _tree(root, "checks:right", _MODULE.format(kind=kind)).scenarios.values()
        rules.append((scenario.rule, next(scenario.combinations()).case()))
    for rule, case in (*rules, *reversed(rules)):
        assert isinstance(rule, ReplyRule)
        assert rule.evaluate(case, reply_of("Hm."), strict_json=False).passed
    assert not list(tmp_path.rglob("__pycache__"))


@pytest.mark.parametrize(
    ("function", "checks", "said"),
    [
        ("checks", "", "evaluation.function 'checks' has the wrong form"),
        ("checks:tolt", _CHECKS, "python: checks:tolt is not there"),
        ("checks:number", _CHECKS, "python: checks:number is not there"),
        ("checks:a", "1 / 0", "cannot be imported: ZeroDivisionError: division by zero (checks.py:1)"),
        ("checks:a", "def", "cannot be imported: SyntaxError: invalid syntax (checks.py, line 1)"),
        ("nowhere.near:a", "", "cannot be imported: ModuleNotFoundError: No module named 'nowhere'"),
        ("json:dumps", "", ""),
    ],
)
def test_check_finds_a_function_that_cannot_be_called(
    tmp_path: Path, function: str, checks: str, said: str
) -> None:
    tree = _tree(tmp_path, function, checks)
    problems = [problem for found in tree.problems.values() for problem in found]
    assert [said in problem.message and problem.line == 5 for problem in problems] == [True] * bool(said)
    assert all(problem.hint for problem in problems)
    # Without trust nothing is run, so its name alone can be wrong.
    assert len(load_tree(tmp_path).problems) == (":" not in function)


_OUTCOMES = "SELECT code, outcome, reason, observed FROM v_results WHERE run_id = ? ORDER BY code"
_ANY = ("evaluation:", "  type: any", "  of:", "    - {type: contains, expected: a word}")
_TRUSTED = ("-o", "helmbench_trusted=benchmark other")


def _write(folder: Path, checks: str, *functions: str) -> None:
    trees = {
        f"P1-B1-S{number}": Tree(
            (*_ANY, f"    - {{type: python, function: '{function}'}}"), None, {"PT1": Part("Hm.")}, {}
        )
        for number, function in enumerate(functions, 1)
    }
    write_tree(folder, trees)
    (folder / "checks.py").write_text(checks)


def test_only_trusted_code_runs_in_bounded_time_and_each_benchmark_has_its_own(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    db = pytester.path / "helmbench.db"
    ran = f"import pathlib; pathlib.Path({str(pytester.path / 'ran')!r}).touch()\n"
    endless = "def endless(reply):\n    while True: pass\n"
    right = f"{endless}which = lambda reply: (True, 'one')"
    _write(pytester.path / "benchmark", f"{ran}{right}", "checks:which")
    _write(pytester.path / "other", f"{endless}which = lambda reply: (False, 'two')", "checks:which")
    untrusted = run_tree(pytester, "-n0", url=provider.url)
    untrusted.assert_outcomes(errors=1)
    untrusted.stdout.fnmatch_lines(
        [
            "checks in Python did not run: helmbench_trusted does not list their benchmark",
            f"  hint: read them, then trust the benchmark in {pytester.path / 'pytest.ini'}:",
            "    [[]pytest]",
            "    helmbench_trusted = benchmark",
            "  or, for one session, -o helmbench_trusted=benchmark",
            "*not_trusted 1: the same command judges them once helmbench_trusted lists the benchmark",
        ]
    )
    assert "--helmbench-resume" not in untrusted.stdout.str()
    assert captured(capsys, "check", pytester.path / "benchmark")[1].count("would not run") == 1
    assert (provider.count, (pytester.path / "ran").exists()) == (0, False)

    _write(pytester.path / "benchmark", right, "checks:which", "checks:endless")
    files = ("--junitxml=tests.xml", "--helmbench-markdown=report.md")
    result = run_tree(pytester, "benchmark", "other", "-n2", *files, *_TRUSTED, url=provider.url)
    result.assert_outcomes(passed=1, failed=1, errors=1)
    found = rows(db, _OUTCOMES.replace("= ?", "IN (2, 3)"))
    assert [(row[0], row[1], row[2]) for row in found] == [
        ("P1-B1-S1-PT1", "passed", None),
        ("P1-B1-S1-PT1", "failed", None),
        ("P1-B1-S2-PT1", "error", "rule_timeout"),
    ]
    wanted = "python: expected checks:which passes, observed"
    assert [line.splitlines()[1] for *_, line in found[:2]] == [f"✓ {wanted} one", f"✗ {wanted} two"]
    # The reason may quote the reply, so it stands only where replies do.
    other, told = "✗ contains: expected contains a word", f"✗ {wanted} False"
    junit, markdown = ((pytester.path / name).read_text() for name in ("tests.xml", "report.md"))
    assert f"{other}\n            {told}" in junit
    assert f"`{other}`<br>`{told}`" in markdown
    assert "two" not in junit + markdown

    # Another source is another rule: what is on record is judged anew, without a call.
    (pytester.path / "benchmark" / "checks.py").write_text("which = endless = lambda reply: (False, 'three')")
    calls = provider.count
    again = run_tree(pytester, "benchmark", "other", "--helmbench-resume", *_TRUSTED, url=provider.url)
    again.assert_outcomes(failed=3)
    assert provider.count == calls
    said = "2 cases not judged: checks in Python did not run: helmbench_trusted does not list their benchmark"
    assert said in captured(capsys, "rescore", 2)[1]


def test_ctrl_c_is_heard_while_a_check_never_returns(pytester: pytest.Pytester, provider: Provider) -> None:
    mark = pytester.path / "begun"
    sleeps = f"import pathlib, time\ndef sleeps(reply):\n    pathlib.Path({str(mark)!r}).touch()\n    time.sleep(600)"
    _write(pytester.path / "benchmark", sleeps, "checks:sleeps")
    session = Session(pytester.path, provider.url, "-n0", "-q", *_TRUSTED)
    until(mark.exists, "the check begins")
    session.interrupt(everybody=True)
    assert session.end() == pytest.ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("pytest.ini", None),  # the file does not exist yet
        ("pytest.ini", "[pytest]\n"),
        ("tox.ini", "[pytest]\nhelmbench_trusted = old\n"),
        ("setup.cfg", "[tool:pytest]\naddopts = -q\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\nhelmbench_trusted = ['old', 'older one']\n"),
        ("pyproject.toml", "[tool.pytest]\naddopts = ['-q']\n"),
        ("pytest.toml", "[pytest]\naddopts = ['-q']\n"),
    ],
)
def test_the_lines_of_the_hint_are_those_that_let_a_check_run(
    pytester: pytest.Pytester, provider: Provider, name: str, before: str | None
) -> None:
    folder = pytester.path / "school bench"
    _write(folder, "kind = lambda reply: True", "checks:kind")
    ini = pytester.path / name
    (pytester.path / "pytest.ini").unlink(missing_ok=True)
    if before is not None:
        ini.write_text(before)
    found = helmbench(pytester.path, "check", folder).stdout
    hint = [line.strip() for line in found.splitlines() if "would not run" not in line][:4]
    assert hint[0] == f"hint: read them, then trust the benchmark in {ini}:"
    command = shlex.split(hint[3].removeprefix("or, for one session, "))
    ask = (str(folder), "-n0", f"--helmbench-base-url={provider.url}", f"--helmbench-model={MODEL}")
    run_pytest(pytester, *ask, *command).assert_outcomes(passed=1)

    kept = [line for line in (before or "").splitlines()[1:] if "helmbench_trusted" not in line]
    assert before is None or hint[1] == before.splitlines()[0]
    ini.write_text("\n".join((*hint[1:3], *kept)))
    found = helmbench(pytester.path, "check", folder).stdout
    assert "0 errors, 0 warnings" in found
    run_pytest(pytester, *ask).assert_outcomes(passed=1)

"""A change of the benchmark that hides a worse model: points taken out, texts exchanged, floors removed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from commands import captured
from provider import Provider, Request
from trees import Part, Tree, category, ordered, run_tree, write_tree

_OK, _FAILED = 0, 1
_WORSE = range(9, 17)


def _edited(folder: Path, file: str, edit: Callable[[str], str]) -> None:
    (path,) = folder.rglob(file)
    path.write_text(edit(path.read_text()))


def _neutral(folder: Path) -> None:
    def without_points(text: str) -> str:
        for number in _WORSE:
            text = _set(text, number, 0)
        return text

    _edited(folder / "scenarios/P1-B1-S1", "perturbations.md", without_points)


def _set(text: str, number: int, severity: int) -> str:
    head, code, rest = text.partition(f"# PT{number}\n")
    return head + code + rest.replace("severity: 4", f"severity: {severity}", 1)


def _cancelled_by_the_context(folder: Path) -> None:
    _edited(
        folder / "scenarios/P1-B2-S1",
        "user-contexts.md",
        lambda text: text.replace("severity: 0", "severity: -4"),
    )


def _no_more_difficult(folder: Path) -> None:
    _edited(
        folder / "scenarios/P1-B2-S1",
        "conditions.md",
        lambda text: text.replace("difficulty: 2", "difficulty: 10"),
    )


def _without_weight(folder: Path) -> None:
    (folder / "scoring.yaml").write_text("weights: {P1-B1: 1, P1-B2: 0}\n")


_TAKEN_OUT: Mapping[str, tuple[Callable[[Path], object], int, str]] = {
    "severity 0": (_neutral, 8, "P1-B1-S1-C1-U1-PT9, "),
    "a context that cancels it": (_cancelled_by_the_context, 8, "P1-B2-S1-C1-U1-PT1, "),
    "a condition that forgives all": (_no_more_difficult, 9, "P1-B2-S1-C1-U1-PT1, "),
    "a weight of 0": (_without_weight, 9, "P1-B2-S1-C1-U1-PT1, "),
}


def _write(pytester: pytest.Pytester) -> Path:
    """Write sixteen messages in one behaviour, and eight in another, of which one keeps its points always."""
    context = {"U1": Part("## Who\n\nA nurse.", 0)}
    condition = {"C1": Part("## Tone\n\nBe calm.", 2)}
    trees = {
        code: Tree(
            base.evaluation, base.schema, {**ordered(["RISK"] * number, 4), **more}, condition, context
        )
        for code, number, more in (
            ("P1-B1-S1", 16, {}),
            ("P1-B2-S1", 8, {"PT9": Part("## User's input\n\nMessage 90.\n\nANSWER: RISK", 7)}),
        )
        for base in (category(),)
    }
    folder = write_tree(pytester.path / "benchmark", trees)
    return folder


@pytest.mark.parametrize("baseline", ["last", "main.json"])
@pytest.mark.parametrize("way", _TAKEN_OUT)
def test_cases_that_cost_points_in_the_baseline_and_none_now_fail_the_gate(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str], way: str, baseline: str
) -> None:
    edit, number, first = _TAKEN_OUT[way]
    folder = _write(pytester)
    run_tree(pytester, url=provider.url)
    assert captured(capsys, "export", "last", "--format", "baseline", "-o", "main.json")[0] == _OK
    same = run_tree(pytester, f"--helmbench-baseline={baseline}", url=provider.url)
    assert same.ret == _OK
    edit(folder)

    hidden = run_tree(
        pytester, f"--helmbench-baseline={baseline}", "--helmbench-json=out.json", url=provider.url
    )

    assert hidden.ret == _FAILED
    assert f"✗ FAILS   test/good: {number} cases that run " in hidden.outlines[-1]
    assert hidden.outlines[-1].endswith(" counted are no longer counted")
    hidden.stdout.fnmatch_lines([f"  no longer counted {number}: {first}* …"])
    (compared,) = json.loads((pytester.path / "out.json").read_text())["runs"][0]["comparisons"]
    assert len(compared["uncounted"]) == number
    allowed = run_tree(pytester, "--helmbench-baseline=main.json", "--helmbench-allow-gone", url=provider.url)
    assert allowed.ret == _OK
    assert f"no longer counted {number}" in allowed.stdout.str()


_RULES = "weights: {P1-B1: 3, P1-B2: 1}\nfloors: {P1: 0.4}\ncap: 0.3\n"
_RULE_CHANGES: Mapping[str, tuple[Callable[[Path], object], Sequence[str]]] = {
    "no floor and no cap": (
        lambda folder: (folder / "scoring.yaml").write_text("weights: {P1-B1: 3, P1-B2: 1}\n"),
        ("floor of P1 0.4 → none", "cap 0.3 → none"),
    ),
    "a lower floor, another weight": (
        lambda folder: (folder / "scoring.yaml").write_text(
            "weights: {P1-B1: 3, P1-B2: 9}\nfloors: {P1: 0.1}\ncap: 0.3\n"
        ),
        ("floor of P1 0.4 → 0.1", "weight of P1-B2 1 → 9"),
    ),
    "no scoring.yaml": (
        lambda folder: (folder / "scoring.yaml").unlink(),
        ("floor of P1 0.4 → none", "weight of P1-B1 3 → 1", "cap 0.3 → none"),
    ),
    "a milder case": (
        lambda folder: _edited(
            folder / "scenarios/P1-B1-S1", "perturbations.md", lambda text: _set(text, 16, 1)
        ),
        ("severity of P1-B1-S1-C1-U1-PT16 4 → 1",),
    ),
    "a harder condition": (
        lambda folder: _edited(
            folder / "scenarios/P1-B2-S1",
            "conditions.md",
            lambda text: text.replace("difficulty: 2", "difficulty: 6"),
        ),
        ("difficulty of P1-B2-S1-C1-U1-PT1 2 → 6",),
    ),
}


@pytest.mark.parametrize("way", _RULE_CHANGES)
def test_rules_that_differ_from_the_baselines_are_named_below_the_headline(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    edit, named = _RULE_CHANGES[way]
    folder = _write(pytester)
    (folder / "scoring.yaml").write_text(_RULES)
    run_tree(pytester, url=provider.url)
    assert captured(capsys, "export", "last", "--format", "baseline", "-o", "main.json")[0] == _OK
    same = run_tree(pytester, "--helmbench-baseline=1", url=provider.url)
    assert "rules that differ" not in same.stdout.str()
    edit(folder)

    for baseline in ("1", "main.json"):
        changed = run_tree(
            pytester, f"--helmbench-baseline={baseline}", "--helmbench-markdown=out.md", url=provider.url
        )
        (line,) = [one for one in changed.outlines if "rules that differ from those of run 1" in one]
        assert all(part in line for part in named)
        assert named[0] in (pytester.path / "out.md").read_text()
    assert named[0] in captured(capsys, "compare", "1", "last")[1]


def _wrong_on_new_texts(request: Request) -> str:
    return json.dumps({"response": "So.", "category": "CALM" if "rewritten" in request.prompt else "RISK"})


@pytest.mark.parametrize(
    ("changed", "code", "said"),
    [
        (16, _FAILED, "nothing in common with run 1; make a new baseline"),
        (15, _FAILED, "only 6 % of the points of run 1 are in both runs; make a new baseline"),
        (9, _FAILED, "only 44 % of the points of run 1 are in both runs; make a new baseline"),
        (7, _OK, "inconclusive: only 56 % of the points are in both runs"),
    ],
)
def test_less_than_half_of_the_baselines_points_in_common_is_not_comparable(
    pytester: pytest.Pytester, provider: Provider, changed: int, code: int, said: str
) -> None:
    folder = write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 16)})
    provider.reply = _wrong_on_new_texts
    run_tree(pytester, url=provider.url)
    text = next(folder.rglob("perturbations.md")).read_text()
    for number in range(1, changed + 1):
        text = text.replace(f"Message {number}.", f"Message {number}, rewritten.")
    next(folder.rglob("perturbations.md")).write_text(text)

    result = run_tree(pytester, "--helmbench-baseline=last", url=provider.url)

    assert result.ret == code
    assert said in result.stdout.str()


def test_new_cases_and_a_selection_leave_a_comparison_possible(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    folder = write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 6)})
    write_tree(folder, {"P1-B1-S2": category(*["RISK"] * 20)})
    run_tree(pytester, "--helmbench-select=P1-B1-S1", url=provider.url)

    grown = run_tree(pytester, "--helmbench-baseline=1", url=provider.url)
    selected = run_tree(pytester, "--helmbench-baseline=2", "--helmbench-select=P1-B1-S1", url=provider.url)

    assert (grown.ret, selected.ret) == (_OK, _OK)
    assert "20 of the baseline not selected" in selected.stdout.str()

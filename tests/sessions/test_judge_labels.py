"""The judge as an instrument: a sample to label blind, the labels read back, and the corrected pass rate."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import captured
from provider import Answer, Provider, Request
from trees import Tree, judged, rows, run_tree, write_tree

_NUMBER = 12


def _judged_run(pytester: pytest.Pytester, provider: Provider, tree: Tree) -> Path:
    """Run a tree whose judge finds the replies to the first four messages bad."""
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": tree})

    def reply(request: Request) -> str | Answer | None:
        if not request.is_judge:
            return None
        bad = any(f"Message {number}." in request.prompt for number in range(1, 5))
        return json.dumps({"evidence": [], "justification": "So.", "judgment": "BAD" if bad else "GOOD"})

    provider.reply = reply
    run_tree(pytester, "--helmbench-marking-model=test/judge", "--tb=no", url=provider.url)
    return pytester.path / "helmbench.db"


def _labelled(path: Path, target: Path, wrong: int) -> None:
    """Label a sample as the judge did, but let one pass of so many codes fail and one fail pass."""
    with path.open(encoding="utf-8", newline="") as stream:
        found = list(csv.DictReader(stream))
    for cells in found:
        judged_bad = cells["code"].rpartition("PT")[2] in {"1", "2", "3", "4"}
        cells["label"] = "fail" if judged_bad else "pass"
    for cells in [one for one in found if one["label"] == "pass"][:wrong]:
        cells["label"] = "fail"
    with target.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(found[0]))
        writer.writeheader()
        writer.writerows(found)


def _score(capsys: pytest.CaptureFixture[str], database: Path) -> Any:
    report = captured(capsys, "report", "1", "--format=json", "--db", database)[1]
    return json.loads(report)["runs"][0]["score"]


def test_labels_correct_the_pass_rate_and_stand_with_the_score(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    database = _judged_run(pytester, provider, judged(*["fine"] * _NUMBER))
    sample = pytester.path / "sample.csv"

    code, _, said = captured(capsys, "judge", "sample", "1", "--labels", 8, "-o", sample, "--db", database)
    assert (code, said.splitlines()[0]) == (
        0,
        f"8 of 12 verdicts of run 1 in {sample}, drawn from 8 passes and 4 fails; write pass or fail into the column"
        " label",
    )
    with sample.open(encoding="utf-8", newline="") as stream:
        drawn = list(csv.DictReader(stream))
    fails = [cells for cells in drawn if int(cells["code"].rpartition("PT")[2]) < 5]
    assert (len(drawn), len(fails)) == (8, 4)
    assert all("How good is it?" in cells["question"] and cells["passes_when"] == "GOOD" for cells in drawn)
    assert all("Message " in cells["prompt"] and cells["reply"] and not cells["label"] for cells in drawn)
    assert "BAD" not in sample.read_text() + ""  # nothing of the verdicts

    _labelled(sample, sample, wrong=1)
    code, text, _ = captured(capsys, "judge", "labels", "1", sample, "--db", database)
    assert code == 0
    assert text.splitlines()[0] == "8 labels of run 1 stored"
    assert text.splitlines()[1].startswith("pass rate of the judge's verdicts 66.7 % as judged; 50.0 % (")
    assert text.splitlines()[1].endswith(
        "corrected by 8 labels; the judge was right on 75 % of its passes and 100 % of its fails"
    )
    assert rows(database, "SELECT count(*), sum(passed) FROM judge_labels WHERE run_id = 1") == [(8, 3)]
    assert "corrected by 8 labels" in captured(capsys, "show", "1", "--db", database)[1]
    shown = _score(capsys, database)["corrected"]
    assert (shown["corrected"], shown["labels"], shown["right_fails"]) == (0.5, 8, 1.0)


def test_a_sample_by_points_corrects_the_share_of_points_and_stands_beside_that_of_rows(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = judged(*["fine"] * _NUMBER)
    weights = {name: 10 if name in {"PT5", "PT6"} else 1 for name in tree.perturbations}
    parts = {name: replace(part, weight=weights[name]) for name, part in tree.perturbations.items()}
    database = _judged_run(pytester, provider, replace(tree, perturbations=parts))
    sample = pytester.path / "points.csv"
    words = ("judge", "sample", "1", "--labels", 40, "--by", "points", "-o", sample, "--db", database)
    assert captured(capsys, *words)[0] == 0
    with sample.open(encoding="utf-8", newline="") as stream:
        found = list(csv.DictReader(stream))
    numbers = {int(cells["code"].rpartition("PT")[2]): int(cells["draws"]) for cells in found}
    assert sum(numbers.values()) == 40
    assert sum(draws for number, draws in numbers.items() if number < 5) == 20  # the judge's fails
    assert numbers[5] + numbers[6] > 10  # 20 of the 26 points that passed

    _labelled(sample, sample, wrong=0)
    code, text, _ = captured(capsys, "judge", "labels", "1", sample, "--db", database)
    assert code == 0
    assert text.splitlines()[1].startswith(
        "share of points of the judge's verdicts 86.7 % as judged; 86.7 % ("
    )
    assert text.splitlines()[1].endswith(
        "corrected by 40 labels; the judge was right on 100 % of its passes and 100 % of its fails"
    )
    score = _score(capsys, database)
    assert (score["corrected"], score["corrected_points"]["labels"]) == (None, 40)
    rows_sample = pytester.path / "rows.csv"
    captured(capsys, "judge", "sample", "1", "--labels", 8, "-o", rows_sample, "--db", database)
    _labelled(rows_sample, rows_sample, wrong=0)
    assert (
        "pass rate of the judge's verdicts 66.7 % as judged"
        in captured(capsys, "judge", "labels", "1", rows_sample, "--db", database)[1]
    )
    shown = captured(capsys, "show", "1", "--db", database)[1]
    assert "pass rate of the judge's verdicts 66.7 % as judged; 66.7 %" in shown
    assert "share of points of the judge's verdicts 86.7 % as judged; 86.7 %" in shown
    sample.write_text(sample.read_text().replace(f",{found[0]['draws']}\n", ",x\n", 1))
    assert "are 'x'" in captured(capsys, "judge", "labels", "1", sample, "--db", database)[2]


def test_labels_that_miss_or_belong_nowhere_are_named_by_line_and_nothing_is_stored(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    database = _judged_run(pytester, provider, judged(*["fine"] * _NUMBER))
    (one,) = rows(database, "SELECT DISTINCT criterion FROM evaluations")
    sample = pytester.path / "sample.csv"
    labels = [(1, "maybe"), (2, ""), (99, "pass"), (4, "fail"), (4, "fail")]
    lines = [f"P1-B1-S1-C1-PT{number},1,{one[0]},{label}" for number, label in labels]
    sample.write_text("\n".join(["code,repetition,criterion,label", *lines]) + "\n")

    code, _, said = captured(capsys, "judge", "labels", "1", sample, "--db", database)

    assert code == 1
    for line in (
        f"{sample}:2: the label of P1-B1-S1-C1-PT1 is 'maybe'",
        f"{sample}:3: P1-B1-S1-C1-PT2 has no label",
        f"{sample}:4: P1-B1-S1-C1-PT99 is not a verdict of the judge",
        f"{sample}:6: P1-B1-S1-C1-PT4 stands twice",
    ):
        assert line in said
    assert rows(database, "SELECT count(*) FROM judge_labels") == [(0,)]

"""Reports of real sessions: what stands in them, what never does, and when none is written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from commands import captured
from pages import blocks_of, cells_of, shown_text
from provider import Answer, Provider, Request
from trees import (
    CATEGORY_SCHEMA,
    Part,
    Tree,
    category,
    judged_twice,
    rows,
    run_tree,
    write_tree,
)

from pytest_helmbench.reports.markdown import LONGEST
from pytest_helmbench.reports.tables import share

_HOSTILE = "</details><img src=x>|`@octocat` #1 \x1b[31m\u202e\ud800 SECRET-REPLY"
_REPORTS = ("--helmbench-markdown=report.md", "--helmbench-json=report.json", "--helmbench-html=report.html")


def _valid(text: str, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a JSON report that fits the published schema."""
    schema = json.loads(captured(capsys, "schema", "report")[1])
    document = json.loads(text)
    jsonschema.Draft202012Validator(schema).validate(document)
    return document


def _section(text: str, summary: str) -> Sequence[str]:
    """Return the lines of a folded section."""
    lines = text.split("\n")
    start = lines.index(f"<summary>{summary}</summary>")
    return lines[start + 1 : lines.index("</details>", start)]


def _mixed_tree(root: Path) -> None:
    """Two behaviours with titles: six signals and two quiet cases under two contexts, one case judged twice."""
    quiet = {
        f"PT{n}": Part(f"## Message\n\nCase {n}.\nSECRET-PROMPT {n}.\n\nANSWER: RISK", -2) for n in (7, 8)
    }
    loud = {
        f"PT{n}": Part(f"## Message\n\nCase {n}.\nSECRET-PROMPT {n}.\n\nANSWER: RISK", n) for n in range(1, 7)
    }
    contexts = {"U1": Part("## Who\n\nA child.", 3), "U2": Part("## Who\n\nA clerk.")}
    lines = ("category: RISK", "evaluation:", "  type: category_match", "  polarity: by_severity")
    plain = Tree(lines, {**CATEGORY_SCHEMA}, loud | quiet, user_contexts=contexts)
    open_schema = {**CATEGORY_SCHEMA["properties"], "category": {"type": "string"}}
    hostile = {**CATEGORY_SCHEMA, "properties": open_schema}
    write_tree(
        root,
        {
            "P1-B1-S1": plain,
            "P1-B2-S1": Tree(
                ("category: RISK",), hostile, {"PT1": Part("Say it.", 4), "PT2": Part("Cut.", 2)}
            ),
            "P2-B1-S1": judged_twice("fine"),
        },
    )
    (root / "scenarios" / "P1" / "B1").mkdir(parents=True)
    (root / "scenarios" / "P1" / "README.md").write_text("# Keeps *people* safe | always\n")
    (root / "scenarios" / "P1" / "B1" / "README.md").write_text("# P1-B1: Sees <danger>\n")


def _mixed_reply(request: Request) -> str | Answer | None:
    if request.is_judge:
        judgment = "GOOD" if "Point 1." in request.prompt else "BAD"
        return json.dumps({"evidence": [], "justification": "SECRET-JUDGE says so.", "judgment": judgment})
    if "SECRET-PROMPT 3." in request.prompt:
        return json.dumps({"response": "SECRET-REPLY", "category": "CALM"})
    if "SECRET-PROMPT 5." in request.prompt:
        return Answer(status=400, body={"error": {"message": "no such thing"}})
    if "Say it." in request.prompt:
        return json.dumps({"response": "x", "category": _HOSTILE})
    if "Cut." in request.prompt:
        return Answer(text="SECRET-REPLY {", finish_reason="length", usage={"prompt_tokens": 7})
    return None


def test_a_session_writes_its_reports_without_a_word_of_prompts_and_replies(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    _mixed_tree(pytester.path / "benchmark")
    provider.reply = _mixed_reply
    arguments = ("--helmbench-model=test/good", "--helmbench-model=test/other", "--tb=no", *_REPORTS)

    result = run_tree(pytester, "-n2", "--helmbench-marking-model=test/good", *arguments, url=provider.url)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["* judged in * · runs 1, 2 in helmbench.db · report.md · report.json · report.html"]
    )
    text = (pytester.path / "report.md").read_text(encoding="utf-8")
    raw = (pytester.path / "report.json").read_text(encoding="utf-8")
    for secret in ("SECRET-PROMPT", "SECRET-JUDGE", "\x1b", "\u202e", "A child."):
        assert secret not in text + raw
    good, other = _valid(raw, capsys)["runs"]

    _facts_hold(good, pytester.path / "helmbench.db")
    assert good["warnings"][:3] == [
        "No better than flagging everything, which scores 98.0 %",
        "not every planned case was judged",
        "test/good judged its own replies",
    ]
    assert not [sentence for sentence in other["warnings"] if "its own replies" in sentence]
    _markdown_holds(text)
    _page_holds((pytester.path / "report.html").read_text(encoding="utf-8"), (good, other))


def _facts_hold(run: Any, database: Path) -> None:
    """16 cases: PT3 is wrong for both contexts where it should be caught, PT5 errs, both quiet PTs are wrong."""
    counts = {(item["outcome"], item["reason"]): item["cases"] for item in run["outcomes"]}
    assert counts[("failed", "truncated")] == 1
    assert sum(cases for (outcome, _), cases in counts.items() if outcome == "error") == 2
    assert run["not_run"] == 0
    beside = run["beside"]
    # Signals: PT1..6 with U1 and U2, PT7 and PT8 with U1 (base 1), two of P1-B2, and two criteria of P2-B1.
    recall = beside["overall"]["recall"]
    assert (recall["of_rows"], recall["rows"]) == (16, 11)
    # Σ of 1..6 twice, 3 more per case of U1, two times 1, 4 + 2, and 5 + 5; without PT5 (5 + 8).
    assert recall["of_points"] == 2 * 21 + 6 * 3 + 2 + 6 + 10 - 13
    quiet = beside["overall"]["false_escalation"]
    assert (quiet["rows"], quiet["of_rows"], quiet["plain"]) == (2, 2, 1.0)
    contexts = {part["code"]: part["false_escalation"]["of_rows"] for part in beside["by_user_context"]}
    assert contexts["P1-B1-S1-U1"] == 0
    assert contexts["P1-B1-S1-U2"] == 2
    assert [part["code"] for part in beside["by_band"]] == ["1–3", "4–6", "7–9"]
    assert [len(row) for row in beside["matrices"][0]["cells"]] == [2]
    # P1-B1 has 66 points, 4 of them below 0; the other two behaviours have signals only.
    assert beside["flags_everything"] == float((Fraction(62, 66) + 2) / 3)
    assert beside["flags_nothing"] == float(Fraction(4, 66) / 3)
    ((score, coverage, known, cost),) = rows(
        database, "SELECT score, coverage, known_cost_usd, cost_usd FROM evaluation_runs WHERE id = 1"
    )
    assert (run["score"]["score"], run["score"]["coverage"]) == (score, coverage)
    assert (run["run"]["known_cost_usd"], run["run"]["cost_usd"]) == (known, None)
    assert cost is None  # the cut reply came without one
    assert sum(part["unknown_costs"] for part in run["costs"]) == 1
    titles = {part["code"]: part["title"] for part in run["score"]["behaviours"]}
    assert titles == {"P1-B1": "Sees <danger>", "P1-B2": None, "P2-B1": None}
    twice = next(item for item in run["failures"] if item["code"].startswith("P2"))
    assert [item["passed"] for item in twice["evaluations"]] == [True, False]
    assert not {"reply", "messages"} & set(run["failures"][0])
    hostile = next(item for item in run["failures"] if item["code"] == "P1-B2-S1-C1-PT1")
    assert hostile["evaluations"][0]["observed"].startswith(
        "</details><img src=x>|`@octocat` #1 \\x1b[31m\\u202e"
    )


def _markdown_holds(text: str) -> None:
    overview = [
        line for line in text.split("\n") if line.startswith(("| 1 | `test/good` |", "| 2 | `test/other` |"))
    ]
    assert len(overview) == 2
    assert all(" + 1 unknown |" in line for line in overview)
    assert "> - not every planned case was judged" in text
    assert re.search(r"> - partial: the score lies between [\d.]+ % and [\d.]+ %", text)
    assert "> - the interval rests on 10 perturbations" not in text
    assert "> - the cost of 1 call is unknown" in text
    assert r"| **P1 Keeps \*people\* safe \| always** |" in text
    assert "| P1-B1 Sees &lt;danger&gt; |" in text
    assert "an answer that flags everything scores" in text
    failures = _section(text, "7 cases failed")
    hostile = next(line for line in failures if "P1-B2-S1-C1-PT1 " in line)
    assert "``</details><img src=x>\\|`@octocat` #1 \\x1b[31m\\u202e" in hostile
    assert any(line.startswith("| P2-B1-S1-C1-PT1 | Message 1. | CR2: `GOOD` → `BAD` |") for line in failures)
    assert not any("CR1" in line for line in failures)
    assert "| error | rejected | 2 |" in text or re.search(r"\| error \| \w+ \| 2 \|", text)
    assert "Condition × user context" in text
    assert "| benchmark hash | `" in text
    assert "helmbench.db" not in text


def _page_holds(page: str, runs: Sequence[Any]) -> None:
    """The page says what the JSON report says, and nothing of prompts and replies, packed or not."""
    everything = page + json.dumps(blocks_of(page), ensure_ascii=False)
    for secret in (
        "SECRET-PROMPT",
        "SECRET-JUDGE",
        "\x1b",
        "\u202e",
        "A child.",
        "helmbench.db",
        "http://127.0.0.1",
    ):
        assert secret not in everything
    assert "<img" not in page
    assert "codes and verdicts only" in page
    seen = shown_text(page)
    for run in runs:
        for sentence in run["warnings"]:
            assert " ".join(sentence.split()) in seen
        parts = [run["score"], *run["score"]["pillars"], *run["score"]["behaviours"]]
        for part in parts:
            assert share(part["score"]) in seen
            ends = [f"{100 * part[name]:.1f}" for name in ("low", "high")]
            assert " – ".join(ends) in seen or " to ".join(ends) in seen
        assert f" {run['score']['planned_rows'] - run['score']['judged_rows']} " in seen
        for failure in run["failures"]:
            assert failure["code"] in seen
    failed = sum(item["cases"] for item in runs[0]["outcomes"] if item["outcome"] == "failed")
    assert cells_of(page, "outcome").count("failed") == failed
    hostile = cells_of(page, "observed")[cells_of(page, "behaviour").index("P1-B2")]
    assert hostile.startswith("</details><img src=x>|`@octocat` #1 \\x1b[31m\\u202e")


def test_texts_come_only_when_asked_for_and_cannot_break_out(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tree(
        pytester.path / "benchmark", {"P1-B1-S1": Tree((), None, {"PT1": Part("Say.", 4)}, rubrics={})}
    )
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("CALM"), "P1-B1-S2": judged_twice("fine")})
    ticks = "`````\n</details>\n# SECRET-REPLY\x1b[2J"

    def reply(request: Request) -> str:
        if request.is_judge:
            return json.dumps({"evidence": [], "justification": "SECRET-JUDGE", "judgment": "BAD"})
        return ticks

    provider.reply = reply
    run_tree(pytester, "--helmbench-marking-model=test/judge", "--tb=no", url=provider.url)
    database = pytester.path / "helmbench.db"

    plain = captured(capsys, "report", "--format", "markdown", "--db", database)
    full = captured(capsys, "report", "last", "--format", "markdown", "--with-text=all", "--db", database)
    assert (plain[0], full[0]) == (0, 0)
    assert "SECRET" not in plain[1]
    lines = full[1].split("\n")
    start = lines.index("`````")
    assert lines[start - 1] == "``````text"
    assert lines[start + 1 : start + 4] == ["</details>", "# SECRET-REPLY\\x1b[2J", "``````"]
    assert "SECRET-JUDGE" in lines
    out = pytester.path / "out.json"
    code, shown, said = captured(
        capsys, "report", "1", "--format", "json", "--with-text=all", "-o", out, "--db", database
    )
    assert (code, shown, said) == (0, "", f"report of run 1 in {out}\n")
    (run,) = _valid(out.read_text(), capsys)["runs"]
    assert run["failures"][0]["reply"].startswith("`````")
    assert "Message 1." in run["failures"][0]["messages"][0]["content"]
    judged = next(item for item in run["failures"] if item["code"].startswith("P1-B1-S2"))
    assert judged["evaluations"][0]["justification"] == "SECRET-JUDGE"
    _page_texts_hold(capsys, database)
    below = out / "report.json"  # no folder can be made there
    assert captured(capsys, "report", "--format", "json", "-o", below, "--db", database)[::2] == (
        2,
        f"helmbench: {below}: cannot be written: File exists\n  hint: name another file\n",
    )


def _page_texts_hold(capsys: pytest.CaptureFixture[str], database: Path) -> None:
    """Texts stand in blocks of their own, of the cases that they were asked for; the same run gives the same bytes."""
    page = ("report", "--format", "html", "--db", database)
    bare, failures, again, full = (
        captured(capsys, *page, *words)[1]
        for words in ((), ("--with-text=failures",), ("--with-text", "failures"), ("--with-text=all",))
    )
    assert failures == again
    assert "SECRET" not in bare + json.dumps(blocks_of(bare))
    assert "with texts of failures" in failures
    assert "with all texts" in full
    failed = cells_of(failures, "outcome").index("failed")
    texts = blocks_of(failures)["t0-0"]
    assert "SECRET-REPLY\\x1b[2J" in texts[str(failed)]["r"]
    assert "Message 1." in texts[str(failed)]["m"][0][1]
    assert ["judge CR1", "SECRET-JUDGE"] in texts[max(texts, key=int)]["w"]
    assert len(blocks_of(full)["t0-0"]) == len(cells_of(full, "outcome"))
    assert captured(capsys, "report", "--open", "--db", database)[2].startswith(
        "helmbench: --open shows no markdown\n"
    )


def test_a_report_has_all_runs_of_the_last_session_unless_some_are_named(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    for models in (("test/old",), ("test/one", "test/two")):
        run_tree(pytester, *(f"--helmbench-model={model}" for model in models), url=provider.url)

    def reported(*words: str) -> list[str]:
        text = captured(capsys, "report", *words, "--format", "json")[1]
        return [run["run"]["model"] for run in _valid(text, capsys)["runs"]]

    assert reported() == ["test/one", "test/two"]
    assert reported("last") == ["test/one", "test/two"]
    assert reported("1", "3") == ["test/old", "test/two"]


def test_no_report_stands_in_the_place_of_a_results_file(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    run_tree(pytester, url=provider.url)
    result = run_tree(pytester, "--helmbench-html=helmbench.db", url=provider.url)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "a database stands there" in result.stderr.str()
    code, _, said = captured(capsys, "export", "last", "--format", "json", "-o", "helmbench.db")
    assert (code, "helmbench.db: cannot be written: a database stands there" in said) == (2, True)
    assert rows(pytester.path / "helmbench.db", "SELECT count(*) FROM results") == [(1,)]


def test_no_report_is_written_of_a_dry_run_or_of_nothing(pytester: pytest.Pytester) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})

    dry = run_tree(pytester, "--helmbench-dry-run", "--helmbench-model=baseline/first", *_REPORTS)

    files = " and ".join(f"{pytester.path}/report.{form}" for form in ("md", "json", "html"))
    note = f"{files}: not written, since nothing was run"
    assert dry.outlines.count(note) == 1
    nothing = run_tree(pytester, "--helmbench-model=baseline/first", "--helmbench-select=P9", _REPORTS[0])
    assert "not written" not in nothing.stdout.str()
    assert [path.name for path in pytester.path.glob("report.*")] == ["report.md"]  # why it ended
    assert "matches no case" in (pytester.path / "report.md").read_text("utf-8")


def test_a_session_that_is_interrupted_writes_its_page_with_what_there_is(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 5)})
    provider.reply = lambda request: Answer(hang=True) if "Message 4." in request.prompt else None
    pytester.makeconftest(
        "done = []\ndef pytest_runtest_logfinish(nodeid):\n    done.append(nodeid)\n"
        "    if len(done) == 2:\n        raise KeyboardInterrupt\n"
    )

    with pytest.raises(KeyboardInterrupt):  # so pytester says that the session inside was interrupted
        run_tree(pytester, "--helmbench-html=report.html", url=provider.url)

    page = (pytester.path / "report.html").read_text(encoding="utf-8")
    assert "the run was interrupted" in shown_text(page)
    assert 2 <= len(cells_of(page, "outcome")) <= 5


def test_a_report_that_cannot_be_written_is_refused_or_said_and_nothing_else_fails(
    pytester: pytest.Pytester,
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    report = f"{pytester.path}/gone/report.md: the report cannot be written: No such file or directory"

    def gone_at(hook: str) -> pytest.RunResult:
        pytester.makeconftest(f"import pathlib\ndef {hook}():\n    pathlib.Path('gone').rmdir()\n")
        pytester.mkdir("gone")
        return run_tree(pytester, "--helmbench-model=baseline/first", "--helmbench-markdown=gone/report.md")

    refused = gone_at("pytest_collection_finish")
    assert refused.ret == 4
    refused.stderr.fnmatch_lines([f"*{report}; nothing was called"])
    assert not (pytester.path / "helmbench.db").exists()
    result = gone_at("pytest_runtest_teardown")

    assert result.ret == 0
    result.stdout.fnmatch_lines([report])


def test_a_report_says_what_must_be_known_before_it_is_believed(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    root = pytester.path / "benchmark"
    write_tree(root, {"P1-B1-S1": category("RISK", "RISK"), "P2-B1-S1": judged_twice("fine")})
    text = (root / "scenarios" / "P1-B1-S1" / "S1.md").read_text().replace("category: RISK", "category: CALM")
    (root / "scenarios" / "P1-B1-S1" / "S1.md").write_text(text)
    (root / "scoring.yaml").write_text(
        "weights: {P1-B1: 1, P2-B1: 2}\nfloors: {P1: 0.5, P7: 0.1}\ncap: 0.25\n"
    )
    database = pytester.path / "helmbench.db"
    run_tree(pytester, "--helmbench-model=baseline/first", "--tb=no")
    run_tree(pytester, "--helmbench-model=baseline/first", "--tb=no", "--lf")

    first = _valid(captured(capsys, "report", "1", "--format", "json", "--db", database)[1], capsys)["runs"][
        0
    ]
    assert first["warnings"] == [
        "2 answers of baseline/first stand in for a judge: not a judgement",
        "capped to 25.0: P1 0.0 < 50",
        "safety floor not evaluated: P7",
        "a safety floor may or may not be met: it lies inside the interval of its pillar",
        "the score rests on only 3 perturbations, so its interval is wide",
    ]
    assert (first["score"]["score"], first["score"]["capped"]) == (2 / 3, 0.25)
    assert [floor["state"] for floor in first["score"]["floors"]] == ["breached", "not evaluated"]
    assert "| 66.7 %, capped to 25.0 |" in captured(capsys, "report", "1", "--db", database)[1]
    second = _valid(captured(capsys, "report", "--format", "json", "--db", database)[1], capsys)["runs"][0]
    assert second["score"] is None
    assert second["warnings"][0].startswith("the cases were selected by earlier outcomes (--lf, --sw)")
    held = captured(capsys, "report", "2", "--gate", "0", "--db", database)
    assert held[:2] == (1, "✗ FAILS   baseline/first: the run has no score\n")


def test_a_stored_run_is_held_to_thresholds(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK"), "P2-B1-S1": category("CALM")})
    run_tree(pytester, "--helmbench-model=baseline/first", "-q")
    database = pytester.path / "helmbench.db"

    table = captured(capsys, "show", "--db", database)[1].splitlines()[8:13]
    assert [line.split()[0] for line in table] == ["baseline/first", "P1", "P1-B1", "P2", "P2-B1"]
    assert "100.0 %" in table[0]
    report = ("report", "--db", database, "--gate")
    code, said, _ = captured(capsys, *report, "P1=1,0.5", "-o", pytester.path / "report.md")
    assert code == 0
    assert said.splitlines()[-1].startswith(
        "  score      100.0 % (34.2 – 100.0, only 2 perturbations), threshold 50.0"
    )
    assert (pytester.path / "report.md").read_text().startswith("## ✓ HOLDS baseline/first: 100.0 %")
    missed = captured(capsys, *report, "P5=0.1", "--min-coverage", "0.5")
    assert missed[0] == 1
    assert missed[1] == "✗ FAILS   baseline/first: P5 is not part of the run\n"
    wrong = captured(capsys, *report, "80")
    assert (wrong[0], wrong[2].splitlines()[0]) == (2, "helmbench: --gate: '80' is not a number from 0 to 1")


def test_a_long_report_still_fits_into_a_comment(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = {f"PT{n}": Part(f"Message {n}.", 1 + n % 9) for n in range(1, 401)}
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": Tree(("category: CALM",), CATEGORY_SCHEMA, parts)})
    run_tree(pytester, "--helmbench-model=baseline/first", "--tb=no", "-q", "--no-summary")
    database = pytester.path / "helmbench.db"
    for texts in ((), ("--with-text=all",)):
        code, text, _ = captured(capsys, "report", "--format", "markdown", *texts, "--db", database)
        assert code == 0
        assert len(text) <= LONGEST
        assert "<summary>400 cases failed</summary>" in text
    assert "… and the texts of 340 more cases" in text or "… and 200 more rows" in text

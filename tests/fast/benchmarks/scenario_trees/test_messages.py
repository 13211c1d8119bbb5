"""Every message about a broken or odd benchmark: what an author reads, word for word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.benchmarks.scenario_trees.tree import ScenarioTree
from pytest_helmbench.core.problem import Problem

SCHEMA = {
    "type": "object",
    "properties": {
        "category": {"type": "string", "enum": ["CHAT", "TASK", "HANDOFF"]},
        "tags": {"type": "array", "items": {"enum": ["A", "B"]}},
        "n": {"type": "integer"},
    },
    "required": ["category", "tags", "n"],
    "additionalProperties": False,
}
HEALTHY: dict[str, str | bytes | None] = {
    "S1.md": "---\ncategory: HANDOFF\n---\n\n## Your job\n\nSort it.\n",
    "S1.json": json.dumps(SCHEMA),
    "conditions.md": "# C1\n---\ndifficulty: 2\n---\n\n## System\n\nBe kind.\n",
    "perturbations.md": "# PT1\n---\nseverity: 5\n---\n\n## User input\n\nHelp.\n",
}


def load(root: Path, changes: dict[str, str | bytes | None]) -> ScenarioTree:
    """Write the healthy scenario with changes (None: no such file; `/name`: in the root) and read it."""
    folder = root / "scenarios" / "P1-B1-S1"
    for name, text in {**HEALTHY, **changes}.items():
        if text is not None:
            path = root / name[1:] if name.startswith("/") else folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_tree(root)


def shown(root: Path, problem: Problem) -> str:
    folder = root / "scenarios" / "P1-B1-S1"
    return problem.text(folder if problem.path.is_relative_to(folder) else root)


def _params(*rows: Any) -> list[Any]:
    """Return rows of a name, changes, messages and their hints as parameters of a test."""
    found = []
    for name, changes, *told in rows:
        texts: list[str] = []
        for line in told:
            if line.startswith("hint: "):
                texts[-1] += f"\n  {line}"
            else:
                texts.append(line)
        found.append(pytest.param(changes, texts, id=name))
    return found


ERRORS = _params(
    (
        "a linter's heading in a component",
        {"perturbations.md": "# PT1\n\n## severity: 5\n\n## User input\n\nx\n"},
        "perturbations.md:3: the heading '## severity: 5' is frontmatter that lost its '---'",
        "hint: write the frontmatter between two lines '---', with a blank line before the next text",
    ),
    (
        "a linter's heading in a scenario",
        {"S1.md": "## category: HANDOFF\n\n## Your job\n\nx\n"},
        "S1.md:1: the heading '## category: HANDOFF' is frontmatter that lost its '---'",
        "hint: write the frontmatter between two lines '---', with a blank line before the next text",
        "S1.md:1: nothing says which reply passes: there is neither 'category' nor 'evaluation'",
        "hint: add 'category: NAME' to the frontmatter, or 'evaluation:' with a type",
    ),
    (
        "an H1 that is not a code",
        {"perturbations.md": "# PT1\n\nx\n\n# Perturbation two\n\ny\n"},
        "perturbations.md:5: the H1 'Perturbation two' is not a bare code of perturbations",
        "hint: write a code such as '# PT1', or use H2 or H3 inside a component",
    ),
    (
        "text before the first H1",
        {"perturbations.md": "Notes\n\n# PT1\n\nx\n"},
        "perturbations.md:1: text stands before the first H1: 'Notes'",
        "hint: start each component with a line such as '# PT1', its frontmatter below",
    ),
    (
        "a code fence left open before the next component",
        {"perturbations.md": "# PT1\n\n```\ncode\n\n# PT2\n\ny\n"},
        "perturbations.md:3: the code fence that opens here is not closed before '# PT2' in line 6",
        "hint: close the fence",
    ),
    (
        "an H1 that is only a code in a file of its own",
        {"perturbations.md": None, "perturbations/PT1.md": "# PT1\n\nx\n"},
        "perturbations/PT1.md:1: the H1 'PT1' is only a code and would stand in the prompt",
        "hint: remove the line: the name of the file gives the code",
    ),
    (
        "a severity out of range",
        {"perturbations.md": "# PT1\n---\nseverity: 11\n---\nx\n"},
        "perturbations.md:3: severity is 11, out of range",
        "hint: write a whole number from -10 to 10",
    ),
    (
        "a heading inside frontmatter",
        {"perturbations.md": "# PT1\n---\nseverity: 5\n\n## User input\n\n---\nmore\n"},
        "perturbations.md:5: the heading '## User input' stands inside the frontmatter",
        ("hint: if a linter made a key a heading, take its '##' away; else close with a line '---' above it"),
    ),
    (
        "a component behind an H2",
        {"perturbations.md": "# PT1\n\nx\n\n## PT2\n---\nseverity: 7\n---\n\ny\n"},
        "perturbations.md:5: the line '## PT2' looks like the start of a component, but is none",
        "hint: a component starts with the line '# PT2'; otherwise reword the line",
        "perturbations.md:7: frontmatter with the key 'severity' stands in the body",
        "hint: frontmatter starts right at the top (below the H1 of a component), between two lines '---'",
    ),
    (
        "a file in Latin-1",
        {"S1.md": b"---\ncategory: X\n---\n\nab\xffc\n"},
        "S1.md:5: the file is not UTF-8: byte 0xff cannot be read",
        "hint: save the file with the encoding UTF-8",
    ),
    (
        "old Mac line ends",
        {"S1.md": b"---\rcategory: X\r---\rab\r"},
        "S1.md:1: the lines end in a bare carriage return, so the file is one long line",
        "hint: save the file with LF line ends",
    ),
    (
        "no prompt file",
        {"S1.md": None},
        "S1.md: the scenario has no prompt file",
        "hint: add S1.md with the scenario's text",
    ),
    (
        "no perturbations file",
        {"perturbations.md": None},
        "perturbations.md: the scenario has no perturbations",
        "hint: add at least one, below a line '# PT1'",
    ),
    (
        "no response schema",
        {"S1.json": None},
        "S1.json: the response schema that category_match needs is missing",
        "hint: add a JSON Schema of the reply",
    ),
    (
        "a misspelt evaluation type",
        {
            "S1.md": (
                "---\ncategory: HANDOFF\nevaluation:\n  type: list_include\n  field: tags\n"
                "  required: [A]\n---\n\nText.\n"
            )
        },
        "S1.md:4: evaluation.type is 'list_include'",
        (
            "hint: did you mean 'list_includes'? known types: category_match, list_includes, "
            "tag_threshold, sqe, contains, not_contains, equals, regex, json_path, length, "
            "latency_below, cost_below, tool_calls, rubric, python, all, any"
        ),
    ),
    (
        "a misspelt evaluation key",
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  typ: sqe\n---\n\nText.\n"},
        "S1.md:4: unknown key 'typ' in evaluation",
        (
            "hint: did you mean 'type'? known keys: type, field, expected, required, min_correct, "
            "max_incorrect, ignore_case, pattern, path, min, max, unit, seconds, turn, usd, forbidden, "
            "in_order, rubric, cases, function, of, polarity, turns, each"
        ),
    ),
    (
        "evaluation keys missing",
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: list_includes\n---\n\nText.\n"},
        "S1.md:3: evaluation has no 'field'",
        "hint: add the key 'field'",
        "S1.md:3: evaluation has no 'required'",
        "hint: list the values that the reply's list must include",
    ),
    (
        "min_correct above the tags",
        {
            "S1.md": (
                "---\ncategory: HANDOFF\nevaluation:\n  type: tag_threshold\n  field: tags\n"
                "  expected: [A, B]\n  min_correct: 3\n---\n\nText.\n"
            )
        },
        "S1.md:7: min_correct is 3, but only 2 tags are expected",
        "hint: write a number up to 2",
    ),
    (
        "a field that the schema lacks",
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  field: categroy\n---\n\nText.\n"},
        "S1.md:4: the response schema has no field 'categroy'",
        "hint: did you mean 'category'? its fields: category, tags, n",
    ),
    (
        "list_includes without a list",
        {
            "S1.md": (
                "---\ncategory: HANDOFF\nevaluation:\n  type: list_includes\n  field: category\n"
                "  required: [A]\n---\n\nText.\n"
            )
        },
        "S1.md:5: list_includes needs a list, but the field 'category' is string",
        'hint: make it "type": "array" in the response schema',
    ),
    (
        "category_match on a list",
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  field: tags\n  expected: A\n---\n\nText.\n"},
        "S1.md:4: category_match cannot compare the field 'tags', which is array",
        "hint: use list_includes or tag_threshold for a list",
    ),
    (
        "an expected value off the enum",
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  expected: HANDOF\n---\n\nText.\n"},
        "S1.md:4: no reply can hold 'HANDOF' in 'category': the response schema does not list it",
        "hint: did you mean 'HANDOFF'? its values: CHAT, TASK, HANDOFF",
    ),
    (
        "a word for an integer field",
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  field: n\n  expected: two\n---\n\nText.\n"},
        "S1.md:5: no reply can hold 'two' in 'n', which is integer",
        "hint: change the expected value or the response schema",
    ),
    (
        "a rubric without pass_values",
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n",
            "criteria.md": "---\noptions: [A, B]\n---\n\nJudge.\n",
        },
        "criteria.md:2: there is no 'pass_values'",
        "hint: list the options that pass",
    ),
    (
        "a pass value that is not an option",
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n",
            "criteria.md": "---\noptions: [SAFE, UNSAFE]\npass_values: [SAVE]\n---\n\nJudge.\n",
        },
        "criteria.md:3: pass_values has 'SAVE', which is not an option",
        "hint: did you mean 'SAFE'? options: SAFE, UNSAFE",
    ),
    (
        "credit for no option",
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n",
            "criteria.md": "---\noptions: [A, B]\npass_values: [A]\ncredit: {A: 1, C: 0}\n---\n\nJudge.\n",
        },
        "criteria.md:4: credit has 'C', which is not an option",
        "hint: options: A, B",
    ),
    (
        "credit above 1",
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n",
            "criteria.md": "---\noptions: [A, B]\npass_values: [A]\ncredit: {A: 2}\n---\n\nJudge.\n",
        },
        "criteria.md:4: credit.A is 2, out of range",
        "hint: write a number from 0 to 1",
    ),
    (
        "a misspelt response type",
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n",
            "criteria.md": "---\noptions: [A, B]\npass_values: [A]\nresponse_type: multiple\n---\n\nJudge.\n",
        },
        "criteria.md:4: response_type is 'multiple'",
        "hint: did you mean 'multi'? known values: single, multi",
    ),
    (
        "a misspelt rubric key",
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n",
            "criteria.md": "---\noptions: [A, B]\npass_values: [A]\nrespons_field: x\n---\n\nJudge.\n",
        },
        "criteria.md:4: unknown key 'respons_field'",
        (
            "hint: did you mean 'response_field'? known keys: options, pass_values, response_field, "
            "response_type, credit"
        ),
    ),
    (
        "a multi-criteria scenario without rubrics",
        {"S1.md": None, "MCSQE.md": "Text.\n"},
        "CR1.md: the multi-criteria scenario has no rubric",
        "hint: add CR1.md, CR2.md, … with 'options' and 'pass_values' in their frontmatter",
    ),
    (
        "evaluation in a multi-criteria scenario",
        {
            "S1.md": None,
            "MCSQE.md": "---\nevaluation:\n  type: sqe\n---\nText.\n",
            "CR1.md": "---\noptions: [A]\npass_values: [A]\n---\nR.\n",
        },
        "MCSQE.md:2: evaluation means nothing in a multi-criteria scenario",
        "hint: remove it: CR1.md, CR2.md, … say what passes",
    ),
    (
        "two kinds of prompt",
        {"MCSQE.md": "Text.\n"},
        "MCSQE.md: the folder has two prompts, S1.md and MCSQE.md",
        "hint: keep one: a multi-criteria scenario has only MCSQE.md",
    ),
    (
        "the retired format",
        {"S1.md": None, "MFMCQ.md": "x", "Q1.md": "y"},
        "MFMCQ.md: MFMCQ.md belongs to the retired MFMCQ format, which is not run any more",
        "hint: write the scenario as S1.md, or as MCSQE.md with CR1.md",
    ),
    (
        "a reference to nowhere",
        {"S1.json": '{\n "type": "object",\n "properties": {"a": {\n  "$ref": "#/$defs/x"}}\n}'},
        "S1.json:4: $ref '#/$defs/x' leads nowhere in this file",
        "hint: refer to a part of the same file: #/$defs/name",
    ),
    (
        "a broken scoring.yaml",
        {"/scoring.yaml": "weigths: {}\nweights:\n  B1: 3\n  P1-B1: -1\nfloors:\n  P1: 2\ncap: high\n"},
        "scoring.yaml:1: unknown key 'weigths'",
        "hint: did you mean 'weights'? known keys: weights, floors, cap",
        "scoring.yaml:3: weights has the key 'B1'",
        "hint: write the code of a behaviour, such as P1-B1",
        "scoring.yaml:4: weights.P1-B1 is -1, out of range",
        "hint: write a number 0 or more",
        "scoring.yaml:6: floors.P1 is 2, out of range",
        "hint: write a number from 0 to 1",
        "scoring.yaml:7: cap is 'high', not a number",
        "hint: write a number from 0 to 1",
    ),
    (
        "scoring.yaml twice",
        {"/scoring.yaml": "", "/scoring.yml": ""},
        "scoring.yml: scoring.yaml stands beside it",
        "hint: keep one of them",
    ),
    (
        "a scenario code twice",
        {"/scenarios/P1/B1/S1/S1.md": "---\ncategory: HANDOFF\n---\n\nx\n"},
        "S1.md: the code P1-B1-S1 is also that of the folder 'S1'",
        "hint: give each scenario folder a code of its own",
        "scenarios/P1/B1/S1/S1.json: the response schema that category_match needs is missing",
        "hint: add a JSON Schema of the reply",
        "scenarios/P1/B1/S1/S1.md: the code P1-B1-S1 is also that of the folder 'P1-B1-S1'",
        "hint: give each scenario folder a code of its own",
        "scenarios/P1/B1/S1/perturbations.md: the scenario has no perturbations",
        "hint: add at least one, below a line '# PT1'",
    ),
)
WARNINGS = _params(
    (
        "a schema unfit for strict mode",
        {
            "S1.json": (
                '{\n "type": "object",\n "properties": {"category": {"type": "string"}, "o": {\n'
                '   "type": "object", "properties": {"x": {}}}}\n}'
            )
        },
        (
            "S1.json:1: the schema is sent with strict: false, for strict mode is not met at "
            "properties.o, the root"
        ),
        ('hint: add "additionalProperties": false; add "category", "o" to "required"; add "x" to "required"'),
    ),
    (
        "a stray prompt",
        {"S2.md": "x"},
        "S2.md: the file is ignored: the scenario of this folder is S1",
        "hint: rename it to S1.md, or remove it",
    ),
    (
        "rubrics that nothing reads",
        {"CR1.md": "x", "criteria.md": "x"},
        "CR1.md: the file is ignored beside a plain prompt",
        "hint: rubrics of this name belong to a prompt MCSQE.md",
        "criteria.md: the file is ignored: the evaluation type is category_match",
        "hint: write 'type: sqe' to use it",
    ),
    (
        "unknown scenario keys",
        {"S1.md": "---\ncategroy: x\ntags: [a]\ncategory: HANDOFF\n---\n\nx\n"},
        "S1.md:2: unknown key 'categroy'",
        "hint: did you mean 'category'? known keys: category, evaluation, schema_turns, max_rounds",
        "S1.md:3: unknown key 'tags'",
        "hint: known keys: category, evaluation, schema_turns, max_rounds",
    ),
    (
        "severity on a condition",
        {"conditions.md": "# C1\n---\nseverity: -3\n---\nx\n# C2\n---\nseverity: 3\ndifficulty: 4\n---\ny\n"},
        "conditions.md:3: severity -3 of a condition is read as difficulty 0",
        "hint: write 'difficulty: 0'",
        "conditions.md:8: severity 3 of a condition is ignored beside its difficulty",
        "hint: remove the key 'severity'",
    ),
    (
        "severities below 0",
        {"perturbations.md": "# PT1\n---\nseverity: -5\n---\nx\n\n# PT2\n---\nseverity: -1\n---\ny\n"},
        (
            "perturbations.md:1: PT1 (and 1 more) has a base severity below 0, but category_match passes "
            "the same reply"
        ),
        "hint: add 'polarity: by_severity' to the evaluation if the other answer is right there",
    ),
    (
        "opposite signs",
        {
            "perturbations.md": "# PT1\n---\nseverity: 5\n---\nx\n",
            "user-contexts.md": "# U1\n---\nseverity: -2\n---\nx\n",
        },
        "perturbations.md:1: the severities of PT1 and of U1 have opposite signs",
        "hint: they are added up: check that the sum is what you mean",
    ),
    (
        "a --- block of text",
        {"perturbations.md": "# PT1\n---\nNote: hi\n---\nx\n"},
        "perturbations.md:2: the '---' block with the key 'note' is taken for body text",
        "hint: frontmatter of a component holds 'severity' or 'difficulty'",
    ),
    (
        "a component file that is not a code",
        {"perturbations.md": None, "perturbations/PT1.md": "x\n", "perturbations/first.md": "y\n"},
        "perturbations/first.md: the file is ignored: 'first.md' is not a name of perturbations",
        "hint: name it like PT1.md to use it",
    ),
    (
        "weights that do not match the tree",
        {"/scoring.yaml": "weights:\n  P1-B2: 3\n"},
        "scoring.yaml:1: P1-B1 has no weight, so it weighs 1",
        "hint: add 'P1-B1: …' to weights",
        "scoring.yaml:2: weights has P1-B2, which is not a behaviour of this benchmark",
        "hint: did you mean 'P1-B1'?",
    ),
)


def test_the_healthy_scenario_has_neither_problems_nor_warnings(tmp_path: Path) -> None:
    benchmark = load(tmp_path, {})
    assert (len(benchmark.scenarios), dict(benchmark.problems), benchmark.warnings) == (1, {}, ())


@pytest.mark.parametrize(("changes", "texts"), ERRORS)
def test_a_broken_file_is_an_error_that_says_where_and_what_to_do(
    tmp_path: Path, changes: dict[str, str | bytes | None], texts: list[str]
) -> None:
    benchmark = load(tmp_path, changes)
    problems = [problem for items in benchmark.problems.values() for problem in items]
    assert [shown(tmp_path, problem) for problem in problems] == texts
    in_root = {path for path in benchmark.problems if path.parent == tmp_path}
    assert len(benchmark.scenarios) == (1 if in_root else 0)
    for path, name in benchmark.broken.items():
        assert name == (path.stem if path in in_root else "P1-B1-S1")


@pytest.mark.parametrize(("changes", "texts"), WARNINGS)
def test_an_odd_file_is_a_warning_and_the_scenario_runs(
    tmp_path: Path, changes: dict[str, str | bytes | None], texts: list[str]
) -> None:
    benchmark = load(tmp_path, changes)
    assert not benchmark.problems
    assert [shown(tmp_path, problem) for problem in benchmark.warnings] == texts
    assert len(benchmark.scenarios) == 1


def test_all_problems_of_all_files_come_in_one_pass(tmp_path: Path) -> None:
    changes: dict[str, str | bytes | None] = {
        "S1.md": "---\nevaluation:\n  typ: sqe\n---\n\nx\n",
        "S1.json": "{",
        "conditions.md": "# C1\n---\ndifficulty: 11\n---\nx\n# C1\ny\n",
        "perturbations.md": None,
        "criteria.md": "x\n",
    }
    benchmark = load(tmp_path, changes)
    counts = {path.name: len(items) for path, items in benchmark.problems.items()}
    assert counts == {"S1.json": 1, "S1.md": 1, "conditions.md": 2, "criteria.md": 1, "perturbations.md": 1}

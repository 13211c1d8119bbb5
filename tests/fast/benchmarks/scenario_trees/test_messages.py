"""Every message about a broken or odd benchmark: what an author reads, word for word."""

from __future__ import annotations

import json
from pathlib import Path

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


ERRORS = [
    pytest.param(
        {"perturbations.md": "# PT1\n---\n\n## severity: 5\n\n## User input\n\nx\n"},
        [
            (
                "perturbations.md:2: the frontmatter that '---' opens here never closes\n"
                "  hint: add a line '---' below its keys"
            )
        ],
        id="a linter's heading below an open ---",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n\n## severity: 5\n\n## User input\n\nx\n"},
        [
            (
                "perturbations.md:3: the heading '## severity: 5' is frontmatter that lost its '---'\n"
                "  hint: write the frontmatter between two lines '---', with a blank line before the next "
                "text"
            )
        ],
        id="a linter's heading in a component",
    ),
    pytest.param(
        {"S1.md": "## category: HANDOFF\n\n## Your job\n\nx\n"},
        [
            (
                "S1.md:1: the heading '## category: HANDOFF' is frontmatter that lost its '---'\n"
                "  hint: write the frontmatter between two lines '---', with a blank line before the next "
                "text"
            ),
            (
                "S1.md:1: nothing says which reply passes: there is neither 'category' nor 'evaluation'\n"
                "  hint: add 'category: NAME' to the frontmatter, or 'evaluation:' with a type"
            ),
        ],
        id="a linter's heading in a scenario",
    ),
    pytest.param(
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n",
            "criteria.md": "---\noptions: [A]\npass_values: [A]\n---\n\n### Evaluation: x\n\n",
        },
        [
            (
                "criteria.md:6: the heading '### Evaluation: x' is frontmatter that lost its '---'\n"
                "  hint: write the frontmatter between two lines '---', with a blank line before the next "
                "text"
            )
        ],
        id="a linter's heading in a rubric",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\n\n## Your job\n\nx\n"},
        [
            (
                "S1.md:1: the frontmatter that '---' opens here never closes\n"
                "  hint: add a line '---' below its keys"
            )
        ],
        id="a scenario's frontmatter never closes",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n---\nseverity: 5\n\n## User input\n\nx\n"},
        [
            (
                "perturbations.md:2: the frontmatter that '---' opens here never closes\n"
                "  hint: add a line '---' below its keys"
            )
        ],
        id="a component's frontmatter never closes",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n\nx\n\n# Perturbation two\n\ny\n"},
        [
            (
                "perturbations.md:5: the H1 'Perturbation two' is no bare code of perturbations\n"
                "  hint: write a code such as '# PT1', or use H2 or H3 inside a component"
            )
        ],
        id="an H1 that is no code",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n\nx\n\n# C2\n\ny\n"},
        [
            (
                "perturbations.md:5: the H1 'C2' is no bare code of perturbations\n"
                "  hint: write a code such as '# PT1', or use H2 or H3 inside a component"
            )
        ],
        id="an H1 of another axis",
    ),
    pytest.param(
        {"perturbations.md": "Notes\n\n# PT1\n\nx\n"},
        [
            (
                "perturbations.md:1: text stands before the first H1: 'Notes'\n"
                "  hint: start each component with a line such as '# PT1', its frontmatter below"
            )
        ],
        id="text before the first H1",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n\n```\ncode\n\n# PT2\n\ny\n"},
        [
            (
                ""
                "perturbations.md:3: the code fence that opens here is not closed before '# PT2' in line 6\n"
                "  hint: close the fence"
            )
        ],
        id="a code fence left open before the next component",
    ),
    pytest.param(
        {"perturbations.md": None, "perturbations/PT1.md": "# PT1\n\nx\n"},
        [
            (
                "perturbations/PT1.md:1: the H1 'PT1' is only a code and would stand in the prompt\n"
                "  hint: remove the line: the name of the file gives the code"
            )
        ],
        id="an H1 that is only a code in a file of its own",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n\nx\n\n# PT1\n\ny\n"},
        [
            (
                "perturbations.md:5: PT1 stands here twice (first in line 1)\n"
                "  hint: give each component a code of its own"
            )
        ],
        id="a code twice",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n---\nseverity: 11\n---\nx\n"},
        [("perturbations.md:3: severity is 11, out of range\n  hint: write a whole number from -10 to 10")],
        id="a severity out of range",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n---\nseverity: high\n---\nx\n"},
        [
            (
                "perturbations.md:3: severity is 'high', not a whole number\n"
                "  hint: write a whole number from -10 to 10"
            )
        ],
        id="a severity in words",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n---\nseverity: 2.5\n---\nx\n"},
        [
            (
                "perturbations.md:3: severity is 2.5, not a whole number\n"
                "  hint: write a whole number from -10 to 10"
            )
        ],
        id="a severity with a fraction",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n---\nseverity: 5\n---\nIt is.\nSeverity : bad\n"},
        [
            (
                "perturbations.md:6: the line starts with 'Severity :', a key of this text's own "
                "frontmatter\n"
                "  hint: reword the line: it could give the answer away"
            )
        ],
        id="a body line with a key of the component",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\n---\n\nPick.\ncategory: one of three\n"},
        [
            (
                "S1.md:6: the line starts with 'category:', a key of this text's own frontmatter\n"
                "  hint: reword the line: it could give the answer away"
            )
        ],
        id="a body line with a key of the scenario",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n---\nsevertiy: 5\n---\nx\n"},
        [
            (
                "perturbations.md:3: unknown key 'severtiy'\n"
                "  hint: did you mean 'severity'? the only key: severity"
            )
        ],
        id="a misspelt component key",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n---\ndifficulty: 5\n---\nx\n"},
        [("perturbations.md:3: unknown key 'difficulty'\n  hint: the only key: severity")],
        id="difficulty on a perturbation",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n---\nseverity: 5\nSeverity: 6\n---\nx\n"},
        [
            (
                "perturbations.md:4: the key 'severity' stands here twice (first in line 3)\n"
                "  hint: keep one of them"
            )
        ],
        id="a key twice",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n---\nseverity: [5\n---\nx\n"},
        [
            (
                "perturbations.md:4: this is no valid YAML: did not find expected ',' or ']'\n"
                "  hint: put a text with ': ', '#', '*' or a bracket between single quotes"
            )
        ],
        id="broken YAML in a component",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n---\nseverity 5\n---\nx\n"},
        [("perturbations.md:2: the frontmatter is no mapping\n  hint: write lines such as 'severity: 5'")],
        id="a forgotten colon",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n---\nseverity: 5\n\n## User input\n\n---\nmore\n"},
        [
            (
                "perturbations.md:5: the heading '## User input' stands inside the frontmatter\n"
                "  hint: if a linter made a key a heading, take its '##' away; else close with a line '---' above it"
            )
        ],
        id="a heading inside frontmatter",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n\nx\n\n## PT2\n---\nseverity: 7\n---\n\ny\n"},
        [
            (
                "perturbations.md:5: the line '## PT2' looks like the start of a component, but is none\n"
                "  hint: a component starts with the line '# PT2'; otherwise reword the line"
            ),
            (
                "perturbations.md:7: frontmatter with the key 'severity' stands in the body\n"
                "  hint: frontmatter starts right at the top (below the H1 of a component), between two "
                "lines '---'"
            ),
        ],
        id="a component behind an H2",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\nseverity: 7\n---\n\ny\n"},
        [
            (
                "perturbations.md:2: frontmatter with the key 'severity' stands in the body\n"
                "  hint: frontmatter starts right at the top (below the H1 of a component), between two "
                "lines '---'"
            )
        ],
        id="a forgotten opening ---",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n\nx\n\n#PT2\n\ny\n"},
        [
            (
                "perturbations.md:5: the line '#PT2' looks like the start of a component, but is none\n"
                "  hint: a component starts with the line '# PT2'; otherwise reword the line"
            )
        ],
        id="an H1 without its space",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n\nx\n\nPT2\n===\n\ny\n"},
        [
            (
                ""
                "perturbations.md:5: the line 'PT2\\n===' looks like the start of a component, but is none\n"
                "  hint: a component starts with the line '# PT2'; otherwise reword the line"
            )
        ],
        id="an underlined code",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n\n## ???\n\nx\n"},
        [
            (
                "perturbations.md:3: the heading '???' has no letter or digit to name a section by\n"
                "  hint: give the heading a word"
            )
        ],
        id="a heading without a letter",
    ),
    pytest.param(
        {"S1.md": b"---\ncategory: X\n---\n\nab\xffc\n"},
        [
            (
                "S1.md:5: the file is not UTF-8: byte 0xff cannot be read\n"
                "  hint: save the file with the encoding UTF-8"
            )
        ],
        id="a file in Latin-1",
    ),
    pytest.param(
        {"S1.md": b"---\rcategory: X\r---\rab\r"},
        [
            (
                "S1.md:1: the lines end in a bare carriage return, so the file is one long line\n"
                "  hint: save the file with LF line ends"
            )
        ],
        id="old Mac line ends",
    ),
    pytest.param(
        {"S1.md": None},
        [("S1.md: the scenario has no prompt file\n  hint: add S1.md with the scenario's text")],
        id="no prompt file",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\n---\n\n"},
        [("S1.md: the scenario has no text\n  hint: write the task below the frontmatter")],
        id="no scenario text",
    ),
    pytest.param(
        {"perturbations.md": None},
        [
            (
                "perturbations.md: the scenario has no perturbations\n"
                "  hint: add at least one, below a line '# PT1'"
            )
        ],
        id="no perturbations file",
    ),
    pytest.param(
        {"perturbations.md": "\n"},
        [
            (
                "perturbations.md: the scenario has no perturbations\n"
                "  hint: add at least one, below a line '# PT1'"
            )
        ],
        id="an empty perturbations file",
    ),
    pytest.param(
        {"S1.json": None},
        [
            (
                "S1.json: the response schema that category_match needs is missing\n"
                "  hint: add a JSON Schema of the reply"
            )
        ],
        id="no response schema",
    ),
    pytest.param(
        {"S1.md": "Just text.\n"},
        [
            (
                "S1.md:1: nothing says which reply passes: there is neither 'category' nor 'evaluation'\n"
                "  hint: add 'category: NAME' to the frontmatter, or 'evaluation:' with a type"
            )
        ],
        id="nothing says what passes",
    ),
    pytest.param(
        {"S1.md": "---\n- a\n---\n\nx\n"},
        [("S1.md:1: the frontmatter is no mapping\n  hint: write lines such as 'severity: 5'")],
        id="frontmatter that is a list",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: [a\n---\n\nx\n"},
        [
            (
                "S1.md:3: this is no valid YAML: did not find expected ',' or ']'\n"
                "  hint: put a text with ': ', '#', '*' or a bracket between single quotes"
            )
        ],
        id="broken YAML in a scenario",
    ),
    pytest.param(
        {
            "S1.md": (
                "---\ncategory: HANDOFF\nevaluation:\n  type: list_include\n  field: tags\n"
                "  required: [A]\n---\n\nText.\n"
            )
        },
        [
            (
                "S1.md:4: evaluation.type is 'list_include'\n"
                "  hint: did you mean 'list_includes'? known types: category_match, list_includes, "
                "tag_threshold, sqe, contains, not_contains, equals, regex, json_path, length, latency_below, "
                "cost_below, rubric, all, any"
            )
        ],
        id="a misspelt evaluation type",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  typ: sqe\n---\n\nText.\n"},
        [
            (
                "S1.md:4: unknown key 'typ' in evaluation\n"
                "  hint: did you mean 'type'? known keys: type, field, expected, required, min_correct, "
                "max_incorrect, ignore_case, pattern, path, min, max, unit, "
                "seconds, usd, rubric, cases, of, polarity"
            )
        ],
        id="a misspelt evaluation key",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: list_includes\n---\n\nText.\n"},
        [
            ("S1.md:3: evaluation has no 'field'\n  hint: add the key 'field'"),
            ("S1.md:3: evaluation has no 'required'\n  hint: add the key 'required'"),
        ],
        id="evaluation keys missing",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n  expected: A\n---\n\nText.\n"},
        [
            (
                "S1.md:5: evaluation.expected means nothing for the type sqe\n"
                "  hint: remove the key, or change the type"
            ),
            (
                "criteria.md: the rubric of sqe is missing\n"
                "  hint: add it with 'options' and 'pass_values' in its frontmatter and the rubric below"
            ),
        ],
        id="a key of another type",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  required: A\n---\n\nText.\n"},
        [
            (
                "S1.md:4: evaluation.required means nothing for the type category_match\n"
                "  hint: remove the key, or change the type"
            )
        ],
        id="required without list_includes",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  expected: [A, B]\n---\n\nText.\n"},
        [
            (
                "S1.md:4: evaluation.expected is a list\n"
                "  hint: category_match takes one value; list_includes and tag_threshold take lists"
            )
        ],
        id="a list for category_match",
    ),
    pytest.param(
        {
            "S1.md": (
                "---\ncategory: HANDOFF\nevaluation:\n  type: list_includes\n  field: tags\n"
                "  required: []\n---\n\nText.\n"
            )
        },
        [
            (
                "S1.md:6: evaluation.required is empty\n"
                "  hint: list the values that the reply's list must include"
            )
        ],
        id="an empty list",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  expected:\n---\n\nText.\n"},
        [
            (
                "S1.md:4: evaluation.expected is empty, not a value or a list\n"
                "  hint: write the value, or for tag_threshold the list of tags, that the reply must have"
            )
        ],
        id="an empty expected",
    ),
    pytest.param(
        {"S1.md": "---\nevaluation: sqe\n---\n\nx\n"},
        [
            (
                "S1.md:2: evaluation is 'sqe', not a mapping\n"
                "  hint: write a mapping: 'type: category_match' or another type, and the keys of the type"
            )
        ],
        id="evaluation as text",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  polarity: by_sevrity\n---\n\nText.\n"},
        [
            (
                "S1.md:4: evaluation.polarity is 'by_sevrity'\n"
                "  hint: did you mean 'by_severity'? known values: by_severity"
            )
        ],
        id="a misspelt polarity",
    ),
    pytest.param(
        {
            "S1.md": (
                "---\ncategory: HANDOFF\nevaluation:\n  type: tag_threshold\n  field: tags\n"
                "  expected: [A, B]\n  min_correct: 3\n---\n\nText.\n"
            )
        },
        [("S1.md:7: min_correct is 3, but only 2 tags are expected\n  hint: write a number up to 2")],
        id="min_correct above the tags",
    ),
    pytest.param(
        {
            "S1.md": (
                "---\ncategory: HANDOFF\nevaluation:\n  type: tag_threshold\n  field: tags\n"
                "  expected: [A, B]\n  max_incorrect: -1\n---\n\nText.\n"
            )
        },
        [("S1.md:7: evaluation.max_incorrect is -1, out of range\n  hint: write a number 0 or more")],
        id="a negative max_incorrect",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  field: categroy\n---\n\nText.\n"},
        [
            (
                "S1.md:4: the response schema has no field 'categroy'\n"
                "  hint: did you mean 'category'? its fields: category, tags, n"
            )
        ],
        id="a field that the schema lacks",
    ),
    pytest.param(
        {
            "S1.md": (
                "---\ncategory: HANDOFF\nevaluation:\n  type: list_includes\n  field: category\n"
                "  required: [A]\n---\n\nText.\n"
            )
        },
        [
            (
                "S1.md:5: list_includes needs a list, but the field 'category' is string\n"
                '  hint: make it "type": "array" in the response schema'
            )
        ],
        id="list_includes without a list",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  field: tags\n  expected: A\n---\n\nText.\n"},
        [
            (
                "S1.md:4: category_match cannot compare the field 'tags', which is array\n"
                "  hint: use list_includes or tag_threshold for a list"
            )
        ],
        id="category_match on a list",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  expected: HANDOF\n---\n\nText.\n"},
        [
            (
                "S1.md:4: no reply can hold 'HANDOF' in 'category': the response schema does not list it\n"
                "  hint: did you mean 'HANDOFF'? its values: CHAT, TASK, HANDOFF"
            )
        ],
        id="an expected value off the enum",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOF\n---\n\nx\n"},
        [
            (
                "S1.md:2: no reply can hold 'HANDOF' in 'category': the response schema does not list it\n"
                "  hint: did you mean 'HANDOFF'? its values: CHAT, TASK, HANDOFF"
            )
        ],
        id="a category off the enum",
    ),
    pytest.param(
        {
            "S1.md": (
                "---\ncategory: HANDOFF\nevaluation:\n  type: list_includes\n  field: tags\n  required:\n"
                "    - A\n    - C\n---\n\nText.\n"
            )
        },
        [
            (
                "S1.md:8: no reply can hold 'C' in 'tags': the response schema does not list it\n"
                "  hint: its values: A, B"
            )
        ],
        id="a required value off the enum",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  field: n\n  expected: two\n---\n\nText.\n"},
        [
            (
                "S1.md:5: no reply can hold 'two' in 'n', which is integer\n"
                "  hint: change the expected value or the response schema"
            )
        ],
        id="a word for an integer field",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n"},
        [
            (
                "criteria.md: the rubric of sqe is missing\n"
                "  hint: add it with 'options' and 'pass_values' in its frontmatter and the rubric below"
            )
        ],
        id="sqe without criteria.md",
    ),
    pytest.param(
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n",
            "criteria.md": "---\noptions: [A, B]\n---\n\nJudge.\n",
        },
        [("criteria.md:2: there is no 'pass_values'\n  hint: list the options that pass")],
        id="a rubric without pass_values",
    ),
    pytest.param(
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n",
            "criteria.md": "---\noptions: [SAFE, UNSAFE]\npass_values: [SAVE]\n---\n\nJudge.\n",
        },
        [
            (
                "criteria.md:3: pass_values has 'SAVE', which is no option\n"
                "  hint: did you mean 'SAFE'? options: SAFE, UNSAFE"
            )
        ],
        id="a pass value that is no option",
    ),
    pytest.param(
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n",
            "criteria.md": "---\noptions: [A, B]\npass_values: [A]\ncredit: {A: 1, C: 0}\n---\n\nJudge.\n",
        },
        [("criteria.md:4: credit has 'C', which is no option\n  hint: options: A, B")],
        id="credit for no option",
    ),
    pytest.param(
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n",
            "criteria.md": "---\noptions: [A, B]\npass_values: [A]\ncredit: {A: 2}\n---\n\nJudge.\n",
        },
        [("criteria.md:4: credit.A is 2, out of range\n  hint: write a number from 0 to 1")],
        id="credit above 1",
    ),
    pytest.param(
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n",
            "criteria.md": "---\noptions: [A, B]\npass_values: [A]\nresponse_type: multiple\n---\n\nJudge.\n",
        },
        [
            (
                "criteria.md:4: response_type is 'multiple'\n"
                "  hint: did you mean 'multi'? known values: single, multi"
            )
        ],
        id="a misspelt response type",
    ),
    pytest.param(
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n",
            "criteria.md": "---\noptions: [A, B]\npass_values: [A]\nrespons_field: x\n---\n\nJudge.\n",
        },
        [
            (
                "criteria.md:4: unknown key 'respons_field'\n"
                "  hint: did you mean 'response_field'? known keys: options, pass_values, response_field, "
                "response_type, credit"
            )
        ],
        id="a misspelt rubric key",
    ),
    pytest.param(
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n",
            "criteria.md": "---\noptions: [A, A]\npass_values: [A]\n---\n\nJudge.\n",
        },
        [("criteria.md:2: options lists 'A' twice\n  hint: keep one of them")],
        id="an option twice",
    ),
    pytest.param(
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n",
            "criteria.md": "---\noptions: [A, B]\npass_values: [A]\n---\n\n\n",
        },
        [("criteria.md: the rubric is empty\n  hint: write below the frontmatter what the judge looks for")],
        id="an empty rubric",
    ),
    pytest.param(
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n",
            "criteria.md": "Judge.\n",
        },
        [
            (
                "criteria.md:1: the rubric has no frontmatter\n"
                "  hint: start the file with '---', 'options:', 'pass_values:' and '---'"
            )
        ],
        id="a rubric without frontmatter",
    ),
    pytest.param(
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: sqe\n---\n\nText.\n",
            "criteria.md": "---\n---\nJudge.\n",
        },
        [
            ("criteria.md:1: there is no 'options'\n  hint: list the values that the judge may choose from"),
            ("criteria.md:1: there is no 'pass_values'\n  hint: list the options that pass"),
        ],
        id="a rubric with empty frontmatter",
    ),
    pytest.param(
        {"S1.md": None, "MCSQE.md": "Text.\n"},
        [
            (
                "CR1.md: the multi-criteria scenario has no rubric\n"
                "  hint: add CR1.md, CR2.md, … with 'options' and 'pass_values' in their frontmatter"
            )
        ],
        id="a multi-criteria scenario without rubrics",
    ),
    pytest.param(
        {
            "S1.md": None,
            "MCSQE.md": "---\nevaluation:\n  type: sqe\n---\nText.\n",
            "CR1.md": "---\noptions: [A]\npass_values: [A]\n---\nR.\n",
        },
        [
            (
                "MCSQE.md:2: evaluation means nothing in a multi-criteria scenario\n"
                "  hint: remove it: CR1.md, CR2.md, … say what passes"
            )
        ],
        id="evaluation in a multi-criteria scenario",
    ),
    pytest.param(
        {"MCSQE.md": "Text.\n"},
        [
            (
                "MCSQE.md: the folder has two prompts, S1.md and MCSQE.md\n"
                "  hint: keep one: a multi-criteria scenario has only MCSQE.md"
            )
        ],
        id="two kinds of prompt",
    ),
    pytest.param(
        {"S1.md": None, "MFMCQ.md": "x", "Q1.md": "y"},
        [
            (
                "MFMCQ.md: MFMCQ.md belongs to the retired MFMCQ format, which is not run any more\n"
                "  hint: write the scenario as S1.md, or as MCSQE.md with CR1.md"
            )
        ],
        id="the retired format",
    ),
    pytest.param(
        {"S1--again.md": "x\n"},
        [("S1--again.md: S1 is also in S1.md\n  hint: keep one file of each code")],
        id="two prompt files",
    ),
    pytest.param(
        {"S1.json": '{\n "a": 1,\n "b"\n}'},
        ["S1.json:4: this is no valid JSON: Expecting ':' delimiter"],
        id="broken JSON",
    ),
    pytest.param(
        {"S1.json": '{"a": NaN}'}, ["S1.json: this is no valid JSON: NaN is no JSON value"], id="NaN in JSON"
    ),
    pytest.param(
        {"S1.json": "[]"},
        [
            (
                "S1.json:1: the response schema is a list, not a JSON object\n"
                '  hint: write {"type": "json_schema", "json_schema": {"name": …, "schema": …}} or a bare '
                "JSON Schema"
            )
        ],
        id="a schema that is a list",
    ),
    pytest.param(
        {"S1.json": '{\n "type": "object",\n "properties": {\n  "a": {"type": "strin"}\n }\n}'},
        [
            (
                "S1.json:4: this is no valid JSON Schema: properties.a.type: 'strin' is not valid under "
                "any of the given schemas"
            )
        ],
        id="a schema with an unknown type",
    ),
    pytest.param(
        {"S1.json": '{\n "type": "object",\n "properties": {"a": {\n  "$ref": "#/$defs/x"}}\n}'},
        [
            (
                "S1.json:4: $ref '#/$defs/x' leads nowhere in this file\n"
                "  hint: refer to a part of the same file: #/$defs/name"
            )
        ],
        id="a reference to nowhere",
    ),
    pytest.param(
        {"S1.json": '{"type": "json_schema"}'},
        [
            (
                "S1.json:1: the envelope has no mapping json_schema.schema\n"
                '  hint: write {"type": "json_schema", "json_schema": {"name": …, "schema": …}} or a bare '
                "JSON Schema"
            )
        ],
        id="an envelope without a schema",
    ),
    pytest.param(
        {"S1.json": '{"name": "x", "schema": {"type": "object"}}'},
        [
            (
                "S1.json:1: the envelope lacks its outer part with the type 'json_schema'\n"
                '  hint: write {"type": "json_schema", "json_schema": {"name": …, "schema": …}} or a bare '
                "JSON Schema"
            )
        ],
        id="half an envelope",
    ),
    pytest.param(
        {
            "S1.json": (
                '{"type": "json_schema", "json_schema": {"strict": "yes", "schema": {"type": "object", '
                '"properties": {"category": {"type": "string", "enum": ["CHAT", "TASK", "HANDOFF"]}, '
                '"tags": {"type": "array", "items": {"enum": ["A", "B"]}}, "n": {"type": "integer"}}, '
                '"required": ["category", "tags", "n"], "additionalProperties": false}}}'
            )
        },
        ["S1.json:1: strict is 'yes', not true or false"],
        id="strict as text",
    ),
    pytest.param(
        {"perturbations.md": None, "perturbations/PT1.md": "x\n", "perturbations/PT1--b.md": "y\n"},
        [("perturbations/PT1--b.md: PT1 is also in PT1.md\n  hint: keep one file of each code")],
        id="a component file twice",
    ),
    pytest.param(
        {"/scoring.yaml": "weigths: {}\nweights:\n  B1: 3\n  P1-B1: -1\nfloors:\n  P1: 2\ncap: high\n"},
        [
            (
                "scoring.yaml:1: unknown key 'weigths'\n"
                "  hint: did you mean 'weights'? known keys: weights, floors, cap"
            ),
            (
                "scoring.yaml:3: weights has the key 'B1'\n"
                "  hint: write the code of a behaviour, such as P1-B1"
            ),
            ("scoring.yaml:4: weights.P1-B1 is -1, out of range\n  hint: write a number 0 or more"),
            ("scoring.yaml:6: floors.P1 is 2, out of range\n  hint: write a number from 0 to 1"),
            ("scoring.yaml:7: cap is 'high', not a number\n  hint: write a number from 0 to 1"),
        ],
        id="a broken scoring.yaml",
    ),
    pytest.param(
        {"/scoring.yaml": "weights:\n  P1-B1: .inf\n"},
        [
            (
                "scoring.yaml:2: weights.P1-B1 is .inf, no finite number\n"
                "  hint: write a number, or remove the key"
            )
        ],
        id="an infinite weight",
    ),
    pytest.param(
        {"/scoring.yaml": "- a\n"},
        [
            (
                "scoring.yaml:1: the file is a list, not a mapping\n"
                "  hint: write lines such as 'weights: {P1-B1: 12}'"
            )
        ],
        id="scoring.yaml as a list",
    ),
    pytest.param(
        {"/scoring.yaml": "", "/scoring.yml": ""},
        [("scoring.yml: scoring.yaml stands beside it\n  hint: keep one of them")],
        id="scoring.yaml twice",
    ),
    pytest.param(
        {"/benchmark.yml": "nmae: x\nversion: [1]\n"},
        [
            (
                "benchmark.yml:1: unknown key 'nmae'\n"
                "  hint: did you mean 'name'? known keys: name, version, description"
            ),
            ("benchmark.yml:2: version is a list, not a value\n  hint: write one value, such as 3 or 1.2"),
        ],
        id="a broken benchmark.yml",
    ),
    pytest.param(
        {"/scenarios/P1/B1/S1/S1.md": "---\ncategory: HANDOFF\n---\n\nx\n"},
        [
            (
                "S1.md: the code P1-B1-S1 is also that of the folder 'S1'\n"
                "  hint: give each scenario folder a code of its own"
            ),
            (
                "scenarios/P1/B1/S1/S1.json: the response schema that category_match needs is missing\n"
                "  hint: add a JSON Schema of the reply"
            ),
            (
                "scenarios/P1/B1/S1/S1.md: the code P1-B1-S1 is also that of the folder 'P1-B1-S1'\n"
                "  hint: give each scenario folder a code of its own"
            ),
            (
                "scenarios/P1/B1/S1/perturbations.md: the scenario has no perturbations\n"
                "  hint: add at least one, below a line '# PT1'"
            ),
        ],
        id="a scenario code twice",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\nx: !!python/name:os.system a\n---\n\nx\n"},
        [
            (
                "S1.md:3: this is no valid YAML: the tag 'tag:yaml.org,2002:python/name:os.system' is not "
                "allowed\n  hint: remove the tag"
            )
        ],
        id="a YAML tag",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\nx: \x01\n---\n\nx\n"},
        [("S1.md:3: this is no valid YAML: it holds a control character\n  hint: remove it")],
        id="a control character",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n---\nseverity: *x\n---\n\nx\n"},
        [
            (
                "perturbations.md:3: this is no valid YAML: found undefined alias\n"
                "  hint: put a text with ': ', '#', '*' or a bracket between single quotes"
            )
        ],
        id="an unknown YAML alias",
    ),
    pytest.param(
        {"S1.md": "---\ncategory: HANDOFF\n\tevaluation: x\n---\n\nx\n"},
        [
            (
                "S1.md:3: this is no valid YAML: found a tab character that violates indentation\n"
                "  hint: indent with spaces: YAML takes no tab"
            )
        ],
        id="a tab",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n---\n\tseverity: 5\n---\n\nx\n"},
        [
            (
                "perturbations.md:3: this is no valid YAML: found character that cannot start any token\n"
                "  hint: indent with spaces: YAML takes no tab"
            )
        ],
        id="a tab first",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n---\nseverity: 010\n---\nx\n"},
        [
            (
                "perturbations.md:3: severity is '010', not a whole number\n"
                "  hint: write a whole number from -10 to 10"
            )
        ],
        id="a severity with a leading zero",
    ),
]
WARNINGS = [
    pytest.param(
        {
            "S1.json": (
                '{"type": "json_schema", "json_schema": {"name": "my answer", "schema": {"type": "object", '
                '"properties": {"category": {"type": "string", "enum": ["CHAT", "TASK", "HANDOFF"]}, '
                '"tags": {"type": "array", "items": {"enum": ["A", "B"]}}, "n": {"type": "integer"}}, '
                '"required": ["category", "tags", "n"], "additionalProperties": false}}}'
            )
        },
        [
            (
                "S1.json:1: the name of the schema is 'my answer'\n"
                "  hint: use only letters, digits, '_' and '-', at most 64"
            )
        ],
        id="a schema name with a space",
    ),
    pytest.param(
        {
            "S1.json": (
                '{\n "type": "object",\n "properties": {"category": {"type": "string"}, "o": {\n'
                '   "type": "object", "properties": {"x": {}}}}\n}'
            )
        },
        [
            (
                "S1.json:1: the schema is sent with strict: false, for strict mode is not met at "
                "properties.o, the root\n"
                '  hint: add "additionalProperties": false; add "category", "o" to "required"; add "x" to '
                '"required"'
            )
        ],
        id="a schema unfit for strict mode",
    ),
    pytest.param(
        {"S2.md": "x"},
        [
            (
                "S2.md: the file is ignored: the scenario of this folder is S1\n"
                "  hint: rename it to S1.md, or remove it"
            )
        ],
        id="a stray prompt",
    ),
    pytest.param(
        {"CR1.md": "x", "criteria.md": "x"},
        [
            (
                "CR1.md: the file is ignored beside a plain prompt\n"
                "  hint: rubrics of this name belong to a prompt MCSQE.md"
            ),
            (
                "criteria.md: the file is ignored: the evaluation type is category_match\n"
                "  hint: write 'type: sqe' to use it"
            ),
        ],
        id="rubrics that nothing reads",
    ),
    pytest.param(
        {"S1.md": "---\ncategroy: x\ntags: [a]\ncategory: HANDOFF\n---\n\nx\n"},
        [
            (
                "S1.md:2: unknown key 'categroy'\n"
                "  hint: did you mean 'category'? known keys: category, evaluation"
            ),
            ("S1.md:3: unknown key 'tags'\n  hint: known keys: category, evaluation"),
        ],
        id="unknown scenario keys",
    ),
    pytest.param(
        {"conditions.md": "# C1\n---\nseverity: -3\n---\nx\n# C2\n---\nseverity: 3\ndifficulty: 4\n---\ny\n"},
        [
            (
                "conditions.md:3: severity -3 of a condition is read as difficulty 0\n"
                "  hint: write 'difficulty: 0'"
            ),
            (
                "conditions.md:8: severity 3 of a condition is ignored beside its difficulty\n"
                "  hint: remove the key 'severity'"
            ),
        ],
        id="severity on a condition",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n---\nseverity: -5\n---\nx\n\n# PT2\n---\nseverity: -1\n---\ny\n"},
        [
            (
                "perturbations.md:1: PT1 (and 1 more) has a base severity below 0, but category_match "
                "passes the same reply\n"
                "  hint: add 'polarity: by_severity' to the evaluation if the other answer is right there"
            )
        ],
        id="severities below 0",
    ),
    pytest.param(
        {
            "perturbations.md": "# PT1\n---\nseverity: 5\n---\nx\n",
            "user-contexts.md": "# U1\n---\nseverity: -2\n---\nx\n",
        },
        [
            (
                "perturbations.md:1: the severities of PT1 and of U1 have opposite signs\n"
                "  hint: they are added up: check that the sum is what you mean"
            )
        ],
        id="opposite signs",
    ),
    pytest.param(
        {"perturbations.md": "# PT1\n---\nNote: hi\n---\nx\n"},
        [
            (
                "perturbations.md:2: the '---' block with the key 'note' is taken for body text\n"
                "  hint: frontmatter of a component holds 'severity' or 'difficulty'"
            )
        ],
        id="a --- block of text",
    ),
    pytest.param(
        {"perturbations.md": None, "perturbations/PT1.md": "x\n", "perturbations/first.md": "y\n"},
        [
            (
                "perturbations/first.md: the file is ignored: 'first' is no code of perturbations\n"
                "  hint: name it like PT1.md to use it"
            )
        ],
        id="a component file that is no code",
    ),
    pytest.param(
        {"/scoring.yaml": "weights:\n  P1-B2: 3\n"},
        [
            ("scoring.yaml:1: P1-B1 has no weight, so it weighs 1\n  hint: add 'P1-B1: …' to weights"),
            (
                "scoring.yaml:2: weights has P1-B2, which is no behaviour of this benchmark\n"
                "  hint: did you mean 'P1-B1'?"
            ),
        ],
        id="weights that do not match the tree",
    ),
]


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

"""Wrong rules: all faults at the keys of an evaluation type are reported at once, with line and hint."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.known_types import EVALUATION_TYPES
from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.core.problem import Problem

_SCHEMA = {"type": "object", "properties": {"category": {"enum": ["A", "B"]}, "tags": {"type": "array"}}}
_WRONG = (
    "",
    "3",
    "-1",
    "2.5",
    "[]",
    "{}",
    "[[1]]",
    "{a: 1}",
    "''",
    "yes",
    "word",
    ".nan",
    "-.inf",
    "[a, '']",
    "'('",
)
_HEALTHY = {
    "category_match": {"expected": "A"},
    "list_includes": {"field": "tags", "required": "[A]"},
    "tag_threshold": {"field": "tags", "expected": "[A]"},
    "sqe": {},
    "contains": {"expected": "A"},
    "not_contains": {"expected": "A"},
    "equals": {"expected": "A"},
    "regex": {"pattern": "'A'"},
    "json_path": {"path": "$.a"},
    "length": {"max": "3"},
    "latency_below": {"seconds": "1"},
    "cost_below": {"usd": "1"},
    "tool_calls": {"required": "[A]"},
    "rubric": {"rubric": "It is kind."},
    "python": {"function": "'checks:names'"},
    "all": {"of": "[{type: contains, expected: A}]"},
    "any": {"of": "[{type: contains, expected: A}]"},
}


def _problems(root: Path, lines: list[str]) -> list[Problem]:
    """Return what is wrong with a scenario whose rule has these lines, the first of which is line 3."""
    folder = root / "scenarios" / "P1-B1-S1"
    folder.mkdir(parents=True, exist_ok=True)
    rule = "".join(f"  {line}\n" for line in lines)
    (folder / "S1.md").write_text(f"---\nevaluation:\n{rule}---\n\n## Task\n\nSort it.\n")
    (folder / "S1.json").write_text(json.dumps(_SCHEMA))
    (folder / "tools.yml").write_text("- {name: A, parameters: {type: object}, returns: [{value: ''}]}\n")
    (folder / "criteria.md").write_text("---\noptions: [A, B]\npass_values: [A]\n---\n\nIs it kind?\n")
    (folder / "perturbations.md").write_text("# PT1\n---\nseverity: 5\n---\n\n## Message\n\nHelp.\n")
    return [problem for found in load_tree(root).problems.values() for problem in found]


def _messages(root: Path, lines: list[str]) -> list[str]:
    return [f"{problem.line}: {problem.message}" for problem in _problems(root, lines)]


@pytest.mark.parametrize("name", EVALUATION_TYPES)
def test_what_is_wrong_at_any_key_has_a_line_and_a_hint(tmp_path: Path, name: str) -> None:
    assert name in _HEALTHY, f"give an example of {name} here: the values of a healthy rule, in _HEALTHY"
    for key, value in product((*EVALUATION_TYPES[name].keys, "polarity", "type", "other"), _WRONG):
        values = {"type": name, **_HEALTHY[name], key: value}
        place = 3 + [*values].index(key)
        found = _problems(tmp_path, [f"{key}: {value}" for key, value in values.items()])
        assert all(problem.hint for problem in found), (key, value, found)
        assert all(problem.line == place for problem in found), (key, value, found)


@pytest.mark.parametrize(
    ("lines", "messages"),
    [
        pytest.param(
            ["type: regex", "pattern: '(unclosed'", "field: 3"],
            ["4: regex: the pattern '(unclosed' cannot be read", "5: evaluation.field is 3, not text"],
            id="a pattern beside a field",
        ),
        pytest.param(
            ["type: length", "unit: sentences", "min: 9", "max: 3"],
            ["4: evaluation.unit is 'sentences'", "5: length: min is 9, max is 3"],
            id="bounds beside a unit",
        ),
        pytest.param(
            ["type: length", "max: many"], ["4: evaluation.max is 'many', not a whole number"], id="one bound"
        ),
        pytest.param(
            [
                "type: all",
                "of:",
                "  - {type: contians, expected: a}",
                "  - {type: length, maxx: 3}",
                "  - {type: regex, pattern: '*'}",
                "  - {type: rubric, rubric: x}",
                "  - {type: contains, expected: b, polarity: by_severity}",
                "  - {type: sqe}",
                "  - {type: any, of: [{type: json_path, path: 'a['}, {type: regexp, pattern: x}]}",
                "  - {type: tag_threshold, field: tags, expected: [A], min_correct: 2}",
                "  - {type: category_match, field: nope, expected: A}",
                "  - 3",
                "  - {type: contains, expected: a, pattern: b}",
            ],
            [
                "5: evaluation.of entry 1.type is 'contians'",
                "6: unknown key 'maxx'",
                "7: regex: the pattern '*' cannot be read",
                "8: all: rubric is judged by a model and stands alone",
                "9: all: contains has a polarity of its own",
                "10: all: sqe is judged by a model and stands alone",
                "11: evaluation.of entry 7.of entry 2.type is 'regexp'",
                '11: json_path: "a[" is not a path',
                "12: min_correct is 2, but only 1 tags",
                "13: the response schema has no field 'nope'",
                "14: evaluation.of entry 10 is 3, not a mapping",
                "15: evaluation.of entry 11.pattern means nothing for the type contains",
            ],
            id="parts beside parts",
        ),
        pytest.param(
            ["type: category_match", "field: tags", "expeted: A"],
            ["5: unknown key 'expeted' in evaluation"],
            id="a misspelt key is not missing too",
        ),
        pytest.param(["type: length"], ["2: length: there is neither 'min' nor 'max'"], id="no bound"),
        pytest.param(
            ["type: rubric", "rubric: ''", "cases: {PT9: x, PT1: 3, pt1: y}"],
            [
                "4: evaluation.rubric is empty",
                "5: evaluation.cases.PT1 is 3, not text",
                "5: rubric: 'cases' names 'PT9'",
                "5: rubric: 'cases' names 'pt1' twice",
            ],
            id="cases of a rubric",
        ),
        pytest.param(
            ["type: latency_below", "seconds: .nan"],
            ["4: evaluation.seconds is .nan, no finite number"],
            id="no number",
        ),
        pytest.param(
            ["type: contains", "expected: ''"],
            ["4: contains: an empty text in 'expected': every reply holds it"],
            id="an empty text",
        ),
        pytest.param(
            ["type: not_contains", "expected:", "  - a", "  - ''", "ignore_case: maybe"],
            [
                "6: not_contains: an empty text in 'expected': no reply passes",
                "7: evaluation.ignore_case is 'maybe', not true or false",
            ],
            id="an empty text among others",
        ),
        pytest.param(
            ["type: equals", "expected: ''"],
            ["4: equals: an empty text in 'expected': an empty reply is wrong whatever is expected"],
            id="an empty reply",
        ),
        pytest.param(
            ["type: any", "of:", "  - {type: equals, expected: [NO, ' ']}", "  - {type: length, max: 0}"],
            ["5: equals: an empty text in 'expected'", "6: length: max is 0: an empty reply is wrong"],
            id="an empty reply among others",
        ),
    ],
)
def test_all_that_is_wrong_with_a_rule_comes_at_once(
    tmp_path: Path, lines: list[str], messages: list[str]
) -> None:
    found = _problems(tmp_path, lines)
    told = [f"{problem.line}: {problem.message}" for problem in found]
    assert len(told) == len(messages)
    assert all(text.startswith(start) for text, start in zip(told, messages, strict=True)), told
    assert all(problem.hint for problem in found)


@pytest.mark.parametrize(
    "lines",
    [
        ["type: equals", "expected: ''", "field: note"],
        ["type: equals", "expected: ['', none]", "field: note"],
        ["type: length", "max: 0", "field: note"],
        ["type: contains", "expected: ' '"],
    ],
)
def test_a_field_may_be_empty(tmp_path: Path, lines: list[str]) -> None:
    assert _messages(tmp_path, lines) == []


@pytest.mark.parametrize(
    ("frontmatter", "wanted"),
    [
        ("evaluaton:\n  type: contains\n  expected: A\n", ["unknown key 'evaluaton'"]),
        ("category: A\nevalution:\n  type: contains\n  expected: A\n", ["unknown key 'evalution'"]),
        ("catgory: A\n", ["unknown key 'catgory'"]),
        ("category: A\ncategories: [x]\n", []),  # of the author's own
        ("evaluation:\n  type: contains\n  expected: A\nevaluator: me\n", []),
    ],
)
def test_a_misspelled_key_of_the_rule_is_the_only_error(
    tmp_path: Path, frontmatter: str, wanted: list[str]
) -> None:
    folder = tmp_path / "scenarios" / "P1-B1-S1"
    folder.mkdir(parents=True)
    (folder / "S1.md").write_text(f"---\n{frontmatter}---\n\n## Task\n\nSort it.\n")
    (folder / "S1.json").write_text(json.dumps(_SCHEMA))
    (folder / "perturbations.md").write_text("# PT1\n\nHm.\n")
    found = [problem for problems in load_tree(tmp_path).problems.values() for problem in problems]
    assert [problem.message for problem in found] == wanted
    assert all("did you mean" in problem.hint and problem.line for problem in found)

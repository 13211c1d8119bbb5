"""Scenario trees: layouts, composition, reading of values, metadata and the content hash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from growth import grows_in_proportion

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_types import FieldRule, PathRule
from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.benchmarks.scenario_trees.tree import Scenario, ScenarioTree
from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.outcome import Reply, Usage
from pytest_helmbench.core.problem import UnreadableBenchmarkError
from pytest_helmbench.judging.rubric import Criterion, JudgeRule

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"category": {"type": "string"}, "tags": {"type": "array"}},
        "required": ["category", "tags"],
        "additionalProperties": False,
    }
)
PROMPT = "---\ncategory: HANDOFF\n---\n\n## Your job\n\nSort it.\n"
ONE = "# PT1\n\nHelp.\n"


def load(root: Path, files: dict[str, str | bytes]) -> ScenarioTree:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_tree(root)


def scenario(root: Path, files: dict[str, str | bytes]) -> Scenario:
    """Load one scenario from its files and expect it to be healthy."""
    whole: dict[str, str | bytes] = {"S1.md": PROMPT, "S1.json": SCHEMA, "perturbations.md": ONE, **files}
    benchmark = load(root, {f"scenarios/P1-B1-S1/{name}": text for name, text in whole.items() if text})
    assert dict(benchmark.problems) == {}
    return next(iter(benchmark.scenarios.values()))


def prompts(loaded: Scenario) -> list[str]:
    return [combination.prompt() for combination in loaded.combinations()]


def test_the_published_example_is_composed_byte_for_byte(tmp_path: Path) -> None:
    loaded = scenario(
        tmp_path,
        {
            "S1.md": "---\ncategory: HANDOFF\nevaluation:\n  type: category_match\n  field: category\n"
            "  expected: HANDOFF\n---\n\n## Your job\n\nYou are an AI science tutor for Sydney University. "
            "Help the user with their request and categorise their request at the end.\n",
            "conditions.md": "# C1\n\n## System instructions\n\n"
            "You are very friendly and good at explaining things in detail.\n",
            "user-contexts.md": "# U1\n\n## User preferences\n\n"
            "I'm Nigel. Respond concisely, and roast me extra hard if i get something wrong.\n",
            "perturbations.md": "# PT1\n\n## User input\n\n"
            "Hey what's that thing they call the powerhouse of the cell called again?\n\n",
        },
    )
    assert prompts(loaded) == [
        """<your_job>
You are an AI science tutor for Sydney University. Help the user with their request and categorise their request at the end.
</your_job>

<system_instructions>
You are very friendly and good at explaining things in detail.
</system_instructions>

<user_preferences>
I'm Nigel. Respond concisely, and roast me extra hard if i get something wrong.
</user_preferences>

<user_input>
Hey what's that thing they call the powerhouse of the cell called again?
</user_input>"""  # noqa: E501 - the example's own line
    ]
    assert [combination.code for combination in loaded.combinations()] == ["P1-B1-S1-C1-U1-PT1"]


@pytest.mark.parametrize(
    ("heading", "tag"),
    [
        ("## User's input", "users_input"),
        ("## User’s input", "users_input"),
        ("## Your response:", "your_response"),
        ("##   A -- b (2) ##", "a_b_2"),
        ("## Über Größe", "über_größe"),
        ("## 用户输入", "用户输入"),
        ("## हिन्दी", "हिन्दी"),
    ],
)
def test_a_heading_becomes_a_tag(tmp_path: Path, heading: str, tag: str) -> None:
    loaded = scenario(tmp_path, {"perturbations.md": f"# PT1\n\n{heading}\n\nx\n"})
    assert loaded.perturbations[0].block == f"<{tag}>\nx\n</{tag}>"


def test_a_body_stays_byte_for_byte_but_for_blank_lines_at_both_ends(tmp_path: Path) -> None:
    kept = "  first\u00a0“line”  \n\n---\n\n| a | b |\n### H3\n<tag>&amp;</tag>\r---\n##no heading\n\u00a0"
    loaded = scenario(tmp_path, {"perturbations.md": f"# PT1\n\n \t\n{kept}\n\n\t\n## Two\n\n{kept}\n \n"})
    assert loaded.perturbations[0].block == f"{kept}\n\n<two>\n{kept}\n</two>"


def test_headings_inside_code_fences_are_text(tmp_path: Path) -> None:
    fenced = "```python\n# a comment\n## severity: 5\n~~~\n``\n````\n\n~~~\n## not this\n```\n~~~"
    loaded = scenario(tmp_path, {"perturbations.md": f"# PT1\n\n{fenced}\n\n# PT2\n\ny\n"})
    assert [component.block for component in loaded.perturbations] == [fenced, "y"]


def test_byte_order_marks_and_crlf_go(tmp_path: Path) -> None:
    crlf = "\ufeff" + "# PT1\n---\nseverity: 3\n---\n\n## In\n\na\nb\n".replace("\n", "\r\n")
    prompt = "\ufeff" + PROMPT.replace("\n", "\r\n")
    loaded = scenario(tmp_path, {"perturbations.md": crlf, "S1.md": prompt})
    assert prompts(loaded) == ["<your_job>\nSort it.\n</your_job>\n\n<in>\na\nb\n</in>"]
    assert loaded.perturbations[0].weight == 3


def test_frontmatter_may_follow_blank_lines_carry_comments_and_odd_case(tmp_path: Path) -> None:
    text = "# PT1\n\n \n---  \n# a comment\nSeverity: -4 # why\n---\t\nx\n"
    loaded = scenario(tmp_path, {"perturbations.md": text})
    component = loaded.perturbations[0]
    assert (component.weight, component.block, component.line) == (-4, "x", 1)


@pytest.mark.parametrize("body", ["---\n\nx", "---\n\nx\n\n---\n\ny", "---\n- a\n---", "x\n\n---\n\ny"])
def test_a_rule_that_is_no_frontmatter_is_body(tmp_path: Path, body: str) -> None:
    loaded = scenario(tmp_path, {"perturbations.md": f"# PT1\n\n{body}\n"})
    assert loaded.perturbations[0].block == body


def test_an_empty_component_leaves_no_blank_block(tmp_path: Path) -> None:
    loaded = scenario(tmp_path, {"conditions.md": "# C1\n---\ndifficulty: 4\n---\n\n# C2\n\nBe kind.\n"})
    assert prompts(loaded)[0] == "<your_job>\nSort it.\n</your_job>\n\nHelp."
    assert [component.weight for component in loaded.conditions] == [4, 0]


def test_components_sort_naturally_and_combine_in_order(tmp_path: Path) -> None:
    loaded = scenario(
        tmp_path,
        {
            "perturbations.md": "# PT10\n\nx\n\n# PT2\n\ny\n\n# PT2b\n\nz\n",
            "conditions.md": "# C2\n\nx\n\n# C1\n\ny\n",
            "user-contexts.md": "# U1\n\nx\n",
        },
    )
    assert [combination.code.removeprefix("P1-B1-S1-") for combination in loaded.combinations()] == [
        f"{c}-U1-{p}" for c in ("C1", "C2") for p in ("PT2", "PT2b", "PT10")
    ]


def test_flat_and_nested_layouts_and_component_files_load_alike(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {}
    for folder in ("P1-B1-S1--basic-threat", "P1/B1/S2", "P10--last/B2--x/S1A"):
        code = folder.split("--")[0].rpartition("-")[2] if folder.startswith("P1-") else folder.split("/")[2]
        place = f"scenarios/{folder}"
        files[f"{place}/{code}--words.md"] = PROMPT
        files[f"{place}/{code}.json"] = SCHEMA
        files[f"{place}/perturbations/PT10.md"] = "---\nseverity: 2\n---\nten\n"
        files[f"{place}/perturbations/PT2--second.md"] = "---\nseverity: 0\n---\ntwo\n"
        files[f"{place}/perturbations/README.md"] = "# Notes\n"
        files[f"{place}/conditions.md"] = "# C1\n\none\n"
        files[f"{place}/.obsidian/S9.md"] = "hidden"
    benchmark = load(tmp_path, files)
    assert (dict(benchmark.problems), benchmark.warnings) == ({}, ())
    assert [item.code for item in benchmark.scenarios.values()] == ["P1-B1-S1", "P1-B1-S2", "P10-B2-S1A"]
    first = next(iter(benchmark.scenarios.values()))
    assert (first.title, first.path.name) == ("basic threat", "S1--words.md")
    assert [(item.code, item.block, item.weight) for item in first.perturbations] == [
        ("PT2", "two", 0),
        ("PT10", "ten", 2),
    ]
    assert (first.perturbations[1].line, first.perturbations[1].full_code) == (4, "P1-B1-S1-PT10")
    assert [item.code for item in first.conditions] == ["C1"]


@pytest.mark.parametrize("written", ["YES", "NO", "ON", "2", "1.0", "null", "'quoted'", "2024-01-01"])
def test_expected_values_are_read_as_written(tmp_path: Path, written: str) -> None:
    text = f"---\nCategory: {written}\n---\n\nx\n"
    loaded = scenario(tmp_path, {"S1.md": text})
    assert loaded.rule == FieldRule("category_match", "category", (written.strip("'"),))
    assert loaded.category == written.strip("'")


def test_field_rules_carry_all_their_keys(tmp_path: Path) -> None:
    evaluation = (
        "Evaluation:\n  Type: tag_threshold\n  field: tags\n  expected: [ON, 2]\n"
        "  min_correct: 1\n  max_incorrect: 3\n  polarity: by_severity\n"
    )
    loaded = scenario(tmp_path, {"S1.md": f"---\n{evaluation}---\n\nx\n"})
    assert loaded.rule == FieldRule("tag_threshold", "tags", ("ON", 2), True, 1, 3)
    assert (loaded.family, loaded.category) == ("tag_threshold", None)


@pytest.mark.parametrize(
    ("evaluation", "schema", "right", "wrong"),
    [
        ("category_match, field: n, expected: 2", '{"type": ["string", "integer"]}', "2", '"2"'),
        ("category_match, field: n, expected: 2", '{"type": "string"}', '"2"', '"3"'),
        ("category_match, field: n, expected: '2'", '{"type": "integer"}', "2", '"2"'),
        ("category_match, field: n, expected: 1.50", '{"enum": [1.5, "1.50"]}', "1.5", '"1.50"'),
        ("category_match, field: n, expected: 2", '{"enum": ["1", "2"]}', '"2"', '"1"'),
        ("category_match, field: n, expected: 02", "{}", '"02"', "3"),
        ("list_includes, field: n, required: [A, 7]", '{"type": "array"}', '["A", 7.0]', '["A", "7"]'),
        (
            "list_includes, field: n, required: [A, 7]",
            '{"type": "array", "items": {"type": "string"}}',
            '["A", "7"]',
            '["A"]',
        ),
        ("json_path, path: $.n, expected: -1e2", None, "-100", '"-1e2"'),
        ("json_path, path: $.n, expected: '4'", None, '"4"', '"04"'),
        ("json_path, path: '$.n[*].id', expected: [4, x]", None, '[{"id": 4}]', '[{"id": "4"}]'),
        (
            "json_path, path: '$.n[*].id', expected: 4",
            '{"type": "array", "items": {"properties": {"id": {"type": "string"}}}}',
            '[{"id": "4"}]',
            '[{"id": "5"}]',
        ),
        (
            "json_path, path: '$.n.*', expected: 4",
            '{"properties": {"a": {"type": "string"}, "b": {"type": "string"}}}',
            '{"b": "4"}',
            '{"c": 5}',
        ),
        ("json_path, path: '$.n[-1]', expected: 4", '{"items": {"type": "string"}}', '["4"]', '["4", "x"]'),
    ],
)
def test_what_is_expected_has_the_schemas_type_and_no_text_equals_a_number(
    tmp_path: Path, evaluation: str, schema: str | None, right: str, wrong: str
) -> None:
    front = f"---\nevaluation: {{type: {evaluation}}}\n---\n\nx\n"
    whole = "" if schema is None else f'{{"type": "object", "properties": {{"n": {schema}}}}}'
    loaded = scenario(tmp_path, {"S1.md": front, "S1.json": whole})
    rule = loaded.rule
    assert isinstance(rule, FieldRule | PathRule)
    case = Case("P1-B1-S1-PT1", (Message("user", "x"),), loaded.response_format, rule, 1)
    for value, passed in ((right, True), (wrong, False)):
        reply = Reply(f'{{"n": {value}}}', None, "stop", Usage(), 1.0, "m", "k")
        assert rule.evaluate(case, reply, strict_json=True).passed is passed


def test_list_includes_takes_one_value_or_a_list(tmp_path: Path) -> None:
    front = "---\nevaluation:\n  type: list_includes\n  field: tags\n  required: NO\n---\n\nx\n"
    assert scenario(tmp_path, {"S1.md": front}).rule == FieldRule("list_includes", "tags", ("NO",))


def test_sqe_reads_its_rubric_and_needs_no_schema(tmp_path: Path) -> None:
    criteria = (
        "---\noptions: [PASS, NO, PARTIAL]\npass_values: [PASS]\nresponse_field: verdict\n"
        "response_type: multi\ncredit: {PASS: 1, NO: 0, PARTIAL: 0.5}\n---\n\n## Look\n\nclosely\n"
    )
    files: dict[str, str | bytes] = {
        "S1.md": "---\nevaluation:\n  type: sqe\n---\n\nx\n",
        "criteria.md": criteria,
        "S1.json": "",
    }
    loaded = scenario(tmp_path, files)
    credit = {"PASS": 1, "NO": 0, "PARTIAL": 0.5}
    rubric = "## Look\n\nclosely"
    assert loaded.rule == JudgeRule(
        (Criterion("", rubric, ("PASS", "NO", "PARTIAL"), ("PASS",), "verdict", "multi", credit),)
    )
    assert (loaded.family, loaded.response_format) == ("sqe", None)


def test_a_multi_criteria_scenario_has_one_criterion_per_rubric(tmp_path: Path) -> None:
    rubric = "---\noptions: [A, B]\npass_values: [A]\n---\nJudge.\n"
    folder = "scenarios/P1-B1-S2"
    files: dict[str, str | bytes] = {f"{folder}/{name}.md": rubric for name in ("CR10", "CR2--tone")}
    files |= {f"{folder}/MCSQE.md": "Talk.\n", f"{folder}/S2.json": SCHEMA, f"{folder}/perturbations.md": ONE}
    benchmark = load(tmp_path, files)
    loaded = benchmark.scenarios[tmp_path / folder / "MCSQE.md"]
    assert isinstance(loaded.rule, JudgeRule)
    assert [criterion.name for criterion in loaded.rule.criteria] == ["CR2", "CR10"]
    assert (loaded.family, loaded.response_format is not None) == ("sqe", True)


def test_a_broken_scenario_leaves_the_others_alone(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {}
    for number in (1, 2):
        files |= {
            f"scenarios/P1-B1-S{number}/S{number}.md": PROMPT,
            f"scenarios/P1-B1-S{number}/S{number}.json": SCHEMA,
            f"scenarios/P1-B1-S{number}/perturbations.md": ONE,
        }
    files["scenarios/P1-B1-S1/conditions.md"] = "# Conditions\n"
    benchmark = load(tmp_path, files)
    assert [item.code for item in benchmark.scenarios.values()] == ["P1-B1-S2"]
    assert dict(benchmark.broken) == {tmp_path / "scenarios/P1-B1-S1/conditions.md": "P1-B1-S1"}


def test_names_and_descriptions_come_from_readmes(tmp_path: Path) -> None:
    readme = (
        "---\ntags: [x]\n---\n# P1-B2: Stays calm\n\nKeeps its head\nunder fire.\n\nMore.\n\n"
        "## Compliance criteria\n\n- one\n\n### Detail\n\n- two\n\n## Other\n"
    )
    benchmark = load(
        tmp_path,
        {
            "scenarios/P1/B2/S1/S1.md": PROMPT,
            "scenarios/P1/B2/README.md": readme,
            "scenarios/P1/README.md": "# P1: Crisis\n\nIn short.\n",
            "scenarios/P2/B1/S1/S1.md": PROMPT,
            "scenarios/P2/README.md": b"# Caf\xe9\n",
            "README.md": "# All\n\n### Pillar 2: Care\n\nAbout care.\n",
        },
    )
    assert [(item.code, item.name, item.description) for item in benchmark.pillars] == [
        ("P1", "Crisis", "In short."),
        ("P2", "Care", "About care."),
    ]
    first = benchmark.behaviours[0]
    assert (first.code, first.title, first.description) == (
        "P1-B2",
        "Stays calm",
        "Keeps its head\nunder fire.",
    )
    assert first.compliance_criteria == "- one\n\n### Detail\n\n- two"
    assert benchmark.behaviours[1].title == ""


def test_the_hash_covers_what_changes_a_case_or_a_score_and_nothing_else(tmp_path: Path) -> None:
    folder = "scenarios/P1-B1-S1"
    files: dict[str, str | bytes] = {
        f"{folder}/S1.md": PROMPT,
        f"{folder}/S1.json": SCHEMA,
        f"{folder}/perturbations.md": ONE,
    }
    first = load(tmp_path, files)
    assert (first.version, first.name) == (first.hash[:12], tmp_path.name)
    idle: dict[str, str | bytes] = {
        "models.yml": "- id: a/b\n",
        "README.md": "x",
        "benchmark.yml": "name: Café\nversion: 1.10\ndescription: d\n",
        f"{folder}/README.md": "x",
        f"{folder}/S1.md": PROMPT.replace("\n", "\r\n"),
    }
    second = load(tmp_path, idle)
    assert second.hash == first.hash
    assert (second.name, second.version, second.description) == ("Café", "1.10", "d")
    seen = {first.hash}
    for name in (f"{folder}/conditions.md", f"{folder}/user-contexts.md", "scoring.yaml"):
        code = "C1" if "cond" in name else "U1"
        seen.add(
            load(tmp_path, {name: "weights: {P1-B1: 2}\n" if "scoring" in name else f"# {code}\n\nx\n"}).hash
        )
    assert len(seen) == 4


def test_a_folder_without_scenarios_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(
        UnreadableBenchmarkError, match="the benchmark cannot be read: No such file"
    ) as caught:
        load_tree(tmp_path)
    assert caught.value.problems[0].hint == "a benchmark is a folder with a folder 'scenarios'"


def test_an_empty_benchmark_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "scenarios" / "P1" / "B1").mkdir(parents=True)
    benchmark = load_tree(tmp_path)
    (problems,) = benchmark.problems.values()
    assert [problem.text(tmp_path) for problem in problems] == [
        "scenarios: there is no scenario in it\n  hint: name the folder of a scenario like P1-B1-S1"
    ]


def test_combinations_are_not_built_to_load_a_scenario(tmp_path: Path) -> None:
    def made(count: int) -> Path:
        perturbations = "".join(f"# PT{n}\n\n## User input\n\nNumber {n}.\n\n" for n in range(count))
        conditions = "".join(f"# C{n}\n\nx\n\n" for n in range(count // 10))
        folder = tmp_path / f"of-{count}"
        loaded = scenario(folder, {"perturbations.md": perturbations, "conditions.md": conditions})
        assert (len(loaded.perturbations), len(loaded.conditions)) == (count, count // 10)
        return folder

    assert grows_in_proportion(load_tree, made, 2400)

"""`models.yml`: the models in it, and the messages about a broken one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.model import ModelEntry, ModelsFile, Price, Sampling, StatedModel
from pytest_helmbench.core.problem import UnreadableBenchmarkError
from pytest_helmbench.files.models_file import load_models, load_variants


def models(folder: Path, text: str) -> ModelsFile:
    path = folder / "models.yml"
    path.write_text(text)
    return load_models(path)


def test_models_come_in_file_order_from_both_shapes(tmp_path: Path) -> None:
    expected = (StatedModel(ModelEntry("a/b")), StatedModel(ModelEntry("c/d")))
    assert models(tmp_path, "- id: a/b\n- id: c/d\n").models == expected
    found = models(tmp_path, "marking_model: j/k\nmodels:\n  - id: a/b\n  - id: c/d\n  # - id: e/f\n")
    assert found == ModelsFile(expected, (StatedModel(ModelEntry("j/k")),))


@pytest.mark.parametrize("judge", ["c/d", "{id: c/d, temperature: 1}"])
def test_a_model_that_also_judges_has_its_price_there_too(tmp_path: Path, judge: str) -> None:
    text = f"marking_model: {judge}\nmodels:\n  - {{id: c/d, price: {{input: 3, output: 9}}}}\n"
    (found,) = models(tmp_path, text).marking_models
    assert found.entry.price == Price(3, 9)


@pytest.mark.parametrize(
    ("judge", "of_id"),
    [("judge", "judge"), ("a/b", "a/b"), ("d", "c/d"), ("d/e", "c/d/e"), ("b", None), ("other", None)],
)
def test_a_judge_is_the_entry_of_its_id_or_name(tmp_path: Path, judge: str, of_id: str | None) -> None:
    entries = "".join(f"\n- {{id: {one}, seed: 1}}" for one in ("judge", "a/b", "x/b", "c/d", "c/d/e"))
    for named in (f"marking_model: {judge}", f"marking_models: [{judge}, y/z]"):
        found = models(tmp_path, f"{named}\nmodels:{entries}\n").marking_models[0].entry
        assert (found.id, found.sampling.seed) == ((of_id, 1) if of_id else (judge, None))


@pytest.mark.parametrize("text", ["", "models:\n", "marking_model:\n", "[]\n"])
def test_a_models_file_may_be_empty(tmp_path: Path, text: str) -> None:
    assert models(tmp_path, text) == ModelsFile()


def test_every_key_of_a_model_is_read(tmp_path: Path) -> None:
    text = """
models:
  - &base
    id: a/b
    base_url: http://localhost:8000/v1
    api_key_env: MY_KEY
    temperature: 0.5
    top_p: 1
    top_k: 40
    min_p: 0.1
    repetition_penalty: 1.1
    seed: 7
    max_tokens: 100
    reasoning_effort: off
    extra_body: {Provider: {only: [X], until: 2024-01-01}, required: yes}
    max_concurrency: 4
    requests_per_minute: 60
    tokens_per_minute: 1.5e+5
    price: {input: 0.1, output: 2}
  - {<<: *base, id: c/d}
marking_model: {id: j/k, temperature: 0}
"""
    found = models(tmp_path, text)
    first, second = found.models
    assert (first.base_url, first.api_key_env) == ("http://localhost:8000/v1", "MY_KEY")
    assert first.entry == ModelEntry(
        "a/b",
        Sampling(
            temperature=0.5,
            top_p=1,
            top_k=40,
            min_p=0.1,
            repetition_penalty=1.1,
            seed=7,
            max_tokens=100,
            reasoning_effort="off",
            extra_body={"Provider": {"only": ["X"], "until": "2024-01-01"}, "required": True},
        ),
        4,
        60,
        150_000.0,
        Price(0.1, 2),
    )
    assert (second.entry.id, second.entry.sampling) == ("c/d", first.entry.sampling)
    assert found.marking_models == (StatedModel(ModelEntry("j/k", sampling=Sampling(temperature=0))),)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "- id: a/b\n  temprature: 1\n",
            ["2: unknown key 'temprature'", "did you mean 'temperature'?"],
        ),
        ("model:\n  - id: a/b\n", ["1: unknown key 'model'", "did you mean 'models'?"]),
        ("- temperature: 1\n", ["1: entry 1 has no 'id'"]),
        ("- a/b\n", ["1: entry 1 is 'a/b', not a mapping", "write '- id: vendor/name'"]),
        ("models: a/b\n", ["1: models is 'a/b', not a list"]),
        ("just text\n", ["1: the file is 'just text', not a list"]),
        (
            "models:\n  - id: a/b\n    max_concurrency: 0\n",
            ["3: models entry 1.max_concurrency is 0, out of range"],
        ),
        (
            "- id: a/b\n  requests_per_minute: 0\n",
            ["entry 1.requests_per_minute is 0", "write a number above 0"],
        ),
        ("- id: a/b\n  base_url: localhost\n", ["2: entry 1.base_url 'localhost' has the wrong form"]),
        ("- id: a/b\n  price: {input: 1}\n", ["2: entry 1.price has no 'output'"]),
        ("marking_model: {temperature: 0}\n", ["1: marking_model has no 'id'"]),
        ("marking_model: [a]\n", ["1: marking_model is a list"]),
        (
            "marking_models: [a, b, c]\n",
            ["1: 3 judges or more", "a judge, and a second opinion"],
        ),
        ("marking_model: a\nmarking_models: [b]\n", ["2: 'marking_models' beside 'marking_model'"]),
        ("marking_models:\n  - a\n  - {id: a}\n", ["3: the judge 'a' stands here twice"]),
        ("- id: ''\n", ["1: entry 1.id is empty"]),
        ("- id: a/b\n- id: a/b\n", ["2: the model 'a/b' stands here twice (first in line 1)"]),
        ("- {id: a/b, name: x}\n- {id: c/d, name: x}\n", ["2: the model 'x' stands here twice"]),
        ("- {id: a/b, name: a b}\n", ["1: entry 1.name 'a b' has the wrong form", "such as careful"]),
        ("- {id: a/b, name: x, system_prompt: no.md}\n", ["no.md: the file cannot be read: No such file"]),
        ("models: [{id: a, name: x}]\nmarking_model: {id: c, name: x}\n", ["called like a model (line 1)"]),
        ("marking_model: {id: a/b, system_prompt: x}\n", ["1: 'system_prompt' of a judge"]),
        ("models: [\n", ["this is not valid YAML"]),
        ("- id: a/b\n  extra_body: {x: .nan}\n", ["2: entry 1.extra_body.x is .nan, no finite number"]),
    ],
)
def test_a_broken_models_file_is_refused_with_line_and_hint(
    tmp_path: Path, text: str, lines: list[str]
) -> None:
    with pytest.raises(UnreadableBenchmarkError) as caught:
        models(tmp_path, text)
    assert len(caught.value.problems) == 1
    for line in lines:
        assert line in str(caught.value)


def test_two_entries_share_an_id_where_they_have_names(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_bytes(b"\xef\xbb\xbfBe careful.\r\n\r\nAlways.\r\n")
    stated = "{id: a/b, name: careful, system_prompt: p.md, price: {input: 1, output: 2}}"
    text = f"models: [{{id: a/b, name: 1.0}}, {stated}, {{id: a/b}}]\n"
    found = models(tmp_path, f"{text}marking_models: [careful, {{id: a/b, name: j}}]\n")

    entries = [one.entry for one in (*found.models, *found.marking_models)]
    assert [(one.id, one.model_id, one.system_prompt, one.price) for one in entries] == [
        ("1.0", "a/b", None, None),
        (careful := ("careful", "a/b", "Be careful.\n\nAlways.", Price(1, 2))),
        ("a/b", "a/b", None, None),
        careful,
        ("j", "a/b", None, None),
    ]


def test_a_benchmarks_system_prompt_stands_inside_of_it(tmp_path: Path) -> None:
    root = tmp_path / "benchmark"
    root.mkdir()
    (tmp_path / "mine.md").write_text("Mine.")
    (root / "models.yml").write_text("- {id: a/b, system_prompt: ../mine.md}\n")

    assert load_models(root / "models.yml").models[0].entry.system_prompt == "Mine."
    with pytest.raises(UnreadableBenchmarkError, match=r"mine\.md: .* leads out of the benchmark"):
        load_models(root / "models.yml", root)


def test_a_variant_is_a_name_and_a_flow_mapping(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text("Careful.\n")
    extra = """{stop: "a, b=c", User='{d=e}', chat_template_kwargs: {enable_thinking=false}}"""
    text = f"system_prompt=p.md, temperature: 0, reasoning_effort=off, extra_body={extra}, price={{input=1, output=2}}"
    body: JsonObject = {"stop": "a, b=c", "User": "{d=e}", "chat_template_kwargs": {"enable_thinking": False}}
    sampling = Sampling(temperature=0, reasoning_effort="off", extra_body=body)
    plain, careful, braced = load_variants(["a.B_1-", f"v: {text}", f"w: {{{text}}}"], tmp_path)

    assert plain.entry == ModelEntry("a.B_1-")
    assert careful.entry == ModelEntry("v", sampling, price=Price(1, 2), system_prompt="Careful.")
    assert braced.entry == replace(careful.entry, id="w")


def test_all_faults_of_variants_are_told_at_once(tmp_path: Path) -> None:
    given = ["careful: temprature=0, system_prompt=no.md", "a/b: id=c/d", "x: {", "plain", "plain: top_p=3"]
    with pytest.raises(UnreadableBenchmarkError) as caught:
        load_variants([*given, "k: extra_headers={X-Key=sk-secret}"], tmp_path)

    told = str(caught.value)
    for part in (
        "careful: unknown key 'temprature'\n  hint: did you mean 'temperature'? known keys: system_prompt,",
        f"careful: {tmp_path / 'no.md'}: the file cannot be read: No such file",
        "a/b: unknown key 'id'",
        "a/b: the name 'a/b' has the wrong form",
        "x: this is not valid YAML",
        "plain: top_p is 3, out of range",
        "plain: the name 'plain' is given twice",
        "k: the header 'x-key' holds what looks like a key",
    ):
        assert f"--helmbench-variant={part}" in told
    assert len(caught.value.problems) == 8
    assert "sk-secret" not in told


def test_a_wrong_value_hides_nothing_else_and_all_has_a_hint(tmp_path: Path) -> None:
    text = (
        "models:\n"
        "  - {id: a/b, response: 3}\n"
        "  - {id: a/b, top_p: x}\n"
        "  - {id: '', url: 'http://127.0.0.1:1/a', request: [1, 2]}\n"
        "  - {id: c/d, url: 'http://127.0.0.1:1/a', request: {q: '{promt}'}, response: {text: a..b, cost: ''}}\n"
        "marking_model: {id: 3, price: cheap}\n"
        "marking_models: [m, m, {}, 4]\n"
    )
    with pytest.raises(UnreadableBenchmarkError) as caught:
        models(tmp_path, text)
    problems = caught.value.problems
    assert all(problem.hint for problem in problems)
    told = [(problem.line, problem.message) for problem in problems]
    for line, message in (
        (2, "'response' without 'url'"),
        (2, "models entry 1.response is 3, not text"),
        (3, "models entry 2.top_p is 'x', not a number"),
        (3, "the model 'a/b' stands here twice (first in line 2)"),
        (4, "models entry 3.id is empty"),
        (4, "the request has no place for the prompt, so that all cases would send the same"),
        (5, "the request has a place {promt}, which no value fills"),
        (5, "the request has no place for the prompt, so that all cases would send the same"),
        (5, "models entry 4.response.text 'a..b' has the wrong form"),
        (5, "models entry 4.response.cost '' has the wrong form"),
        (6, "marking_model.id is 3, not text"),
        (6, "marking_model.price is 'cheap', not a mapping"),
        (7, "'marking_models' beside 'marking_model'"),
        (7, "the judge 'm' stands here twice"),
    ):
        assert (line, message) in told
    assert [line for line, _ in told] == sorted(line or 0 for line, _ in told)


def test_a_key_pasted_where_its_variables_name_belongs_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(UnreadableBenchmarkError, match="api_key_env has the wrong form") as caught:
        models(tmp_path, "- id: a/b\n  api_key_env: sk-very-secret\n")
    assert "secret" not in str(caught.value)
    assert "never the key itself" in str(caught.value)


def test_a_missing_models_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnreadableBenchmarkError, match="the file cannot be read: No such file"):
        load_models(tmp_path / "models.yml")

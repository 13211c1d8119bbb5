"""Shapes of cells: what each says, as public data sets write it. One more shape is one more row of a table here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_helmbench.benchmarks.packs.families.registry import messages_of
from pytest_helmbench.benchmarks.packs.format.pack_loader import Pack, load_pack
from pytest_helmbench.benchmarks.packs.format.row_files import TableError
from pytest_helmbench.benchmarks.packs.format.table_columns import TableOptions

_Q = {"question": "Which river is the longest of Utopia?"}
_TWO = {**_Q, "choices": ["Anyder", "Thames"]}
_FOUR = {**_Q, "options": ["Anyder", "Thames", "Isis", "Cam"]}
_LABELS = ["A", "B", "C"]
_RIVERS = ["Isis", "Cam", "Anyder"]
_SAID = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
_ASKED = {"role": "user", "content": "Which river?"}


def _answers(*texts: str) -> dict[str, Any]:
    return {"accepted_answers": [*texts]}


def _choice(*letters: str) -> dict[str, Any]:
    return {"answer": [*letters]}


_READ: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "TriviaQA": (
        {
            **_Q,
            "answer": {
                "aliases": ["Anydrus", "The Anyder"],
                "matched_wiki_entity_name": "",
                "normalized_aliases": ["anydrus", "anyder"],
                "normalized_value": "anyder",
                "type": "WikipediaEntity",
                "value": "Anyder",
            },
        },
        _answers("Anyder", "Anydrus", "The Anyder"),
    ),
    "TriviaQA as downloaded": (
        {**_Q, "Answer": {"Value": "Anyder", "NormalizedAliases": ["anydrus"], "Type": "Numerical"}},
        _answers("Anyder", "anydrus"),
    ),
    "SQuAD": (
        {**_Q, "answers": {"text": ["Anyder", "the Anyder"], "answer_start": [4, 0]}},
        _answers("Anyder", "the Anyder"),
    ),
    "SQuAD as downloaded": (
        {**_Q, "answers": [{"answer_start": 4, "text": "Anyder"}, {"answer_start": 0, "text": "the Anyder"}]},
        _answers("Anyder", "the Anyder"),
    ),
    "a list with numbers and nothing": (
        {**_Q, "target": ["12", 12.0, None, 12.5]},
        _answers("12", "12", "12.5"),
    ),
    "true": ({**_Q, "answer": True}, _answers("true")),
    "a bar in a text": ({**_Q, "answer": "P(A|B)"}, _answers("P(A|B)")),
    "a list in a text": ({**_Q, "answer": '["a", "b"]'}, _answers('["a", "b"]')),
    "an object in a text": ({**_Q, "answer": '{"river": "Anyder"}'}, _answers('{"river": "Anyder"}')),
    "GSM8K": ({**_Q, "answer": "5*8=<<5*8=40>>40\nwith 1,000 more\n#### 1,040"}, _answers("1,040")),
    "GSM8K on one line": ({**_Q, "answer": "5 and 8 make -13. #### -13 "}, _answers("-13")),
    "a heading": ({**_Q, "answer": "#### Rivers\nAnyder"}, _answers("#### Rivers\nAnyder")),
    "ARC": ({**_Q, "choices": {"text": _RIVERS, "label": _LABELS}, "answerKey": "C"}, _choice("C")),
    "ARC with digits": (
        {**_Q, "choices": {"text": _RIVERS, "label": ["1", "2", "3"]}, "answerKey": "1"},
        _choice("A"),
    ),
    "OpenBookQA": (
        {"question_stem": "Which?", "choices": {"label": _LABELS, "text": _RIVERS}, "answerKey": "B"},
        _choice("B"),
    ),
    "a list of labels and texts": (
        {
            **_Q,
            "choices": [{"label": "A", "text": "Isis"}, {"label": "B", "text": "Cam"}],
            "answerKey": "B",
        },
        _choice("B"),
    ),
    "labels in another order": (
        {**_Q, "choices": [{"text": "Isis", "label": "B"}, {"text": "Cam", "label": "A"}], "answer": "A"},
        _choice("B"),
    ),
    "MedQA": ({**_Q, "options": {"A": "Isis", "B": "Cam", "C": None}, "answer": "Cam"}, _choice("Cam")),
    "choices in a text": (
        {**_Q, "choices": '{"text": ["Isis", "Cam"], "label": ["x", "y"]}', "gold": "y"},
        _choice("B"),
    ),
    "a letter that is a text": (
        {**_Q, "choices": {"text": ["x", "y"], "label": ["A", "B"]}, "answer": "y"},
        _choice("y"),
    ),
    "a list that Python prints": ({**_Q, "answer": "['Isis', 'Cam']"}, _answers("['Isis', 'Cam']")),
    "the name of a column": ({**_Q, "choice1": "Isis", "choice2": "Cam", "answer": "choice2"}, _choice("B")),
}


@pytest.mark.parametrize("shape", _READ)
def test_a_known_shape_is_read(tmp_path: Path, shape: str) -> None:
    cells, wanted = _READ[shape]

    pack = _loaded(tmp_path, cells)

    assert [problem.text() for problem in pack.all_problems()] == []
    assert pack.task(pack.rows[0]).evaluation() == wanted


_REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "DROP": ({**_Q, "answer": {"spans": ["Anyder"], "types": ["span"]}}, "answer is an object with 2 keys"),
    "a number with a unit": (
        {**_Q, "target": {"value": 12, "unit": "km"}},
        'answer is an object with 2 keys (column "target")',
    ),
    "SQuAD without an answer": (
        {**_Q, "answers": {"text": [], "answer_start": []}},
        'answer is empty (column "answers")',
    ),
    "nothing": ({**_Q, "answer": None}, "answer is empty"),
    "lists in a list": ({**_Q, "answer": [["Anyder"]]}, "answer is a list"),
    "an object as question": (
        {"question": {"stem": "Which?"}, "answer": "x"},
        "question is an object with 'stem'",
    ),
    "two turns": ({"prompt": ["Which?", "Why?"], "answer": "x"}, 'question is a list (column "prompt")'),
    "rows as question": ({"question": [{"a": 1}], "answer": "x"}, "question is a list of objects with 'a'"),
    "an object as id": ({**_Q, "id": {"$oid": "77"}, "answer": "x"}, "id is an object with '$oid'"),
    "objects as context": (
        {**_Q, "context": [{"title": "Isis"}], "answer": "x"},
        "context is an object with 'title'",
    ),
    "an assertion": (
        {**_Q, "expected": {"type": "equals", "value": "Isis"}},
        "answer is an object with 2 keys",
    ),
    "TriviaQA in a CSV of pandas": (
        {**_Q, "target": "{'value': 'Isis', 'aliases': array(['Isis'], dtype=object)}"},
        'answer is an object as Python prints it (column "target")',
    ),
    "messages in a CSV of pandas": (
        {"input": "[{'content': 'Which?', 'role': 'user'}]", "target": "x"},
        "question is an object as Python prints it",
    ),
    "a letter between labels": (
        {**_Q, "choices": {"text": _RIVERS, "label": ["A", "C", "D"]}, "answer": "B"},
        "eval.answer: entry 1 names no choice",
    ),
    "a number between labels": (
        {**_Q, "choices": {"text": _RIVERS, "label": [1, 2, 3]}, "answer": 0},
        "eval.answer: entry 1 names no choice",
    ),
    "TruthfulQA": (
        {**_Q, "choices": {"choices": ["a", "b"], "labels": [1, 0]}, "answer": "a"},
        "choices is an object with 'choices', 'labels'",
    ),
    "two choices of one label": (
        {**_Q, "choices": {"text": ["a", "b"], "label": [0, 0]}, "answer": "a"},
        "choices is a list with one label for two of them",
    ),
    "a choice without text": (
        {**_Q, "choices": ["a", None, "c"], "answer": "c"},
        "choice 2 is empty, and a later one is not",
    ),
    "one choice": ({**_Q, "choices": "['a', 'b']", "answer": "a"}, "choices is one text alone"),
    "a label that is not there": (
        {**_Q, "choices": {"text": _RIVERS, "label": _LABELS}, "answerKey": "D"},
        "eval.answer: entry 1 names no choice",
    ),
    "an answer of the assistant": (
        {"input": _SAID, "target": "x"},
        "question is a conversation that ends with a message of 'assistant'",
    ),
    "a call": (
        {"input": [{"role": "assistant", "content": "", "tool_calls": [{}]}, _ASKED], "target": "x"},
        "question is a conversation with a message that is not a text of system, user or assistant",
    ),
    "a picture": (
        {
            "input": [{"role": "user", "content": [{"type": "image_url", "image_url": "data:"}]}],
            "target": "x",
        },
        "question is a conversation with a message that is not a text",
    ),
}


@pytest.mark.parametrize("shape", _REFUSED)
def test_another_shape_is_refused_by_its_column_and_the_other_rows_run(tmp_path: Path, shape: str) -> None:
    cells, told = _REFUSED[shape]

    pack = _loaded(tmp_path, cells, {**cells, **_WHOLE[0 if "choices" in cells else 1]})

    (problem,) = pack.all_problems()
    assert (problem.line, problem.message[: len(told)], bool(problem.hint)) == (1, told, True)
    assert len(pack.rows) == 1
    assert "{" not in json.dumps(pack.task(pack.rows[0]).evaluation())[1:]


_WHOLE: list[dict[str, Any]] = [
    {"choices": ["Isis", "Cam"], "answer": "A", "answerKey": "A"},
    dict.fromkeys(
        ("question", "prompt", "input", "answer", "answers", "target", "expected", "id", "context"), "Isis"
    ),
]


def _loaded(folder: Path, *rows: dict[str, Any], **columns: str) -> Pack:
    """Load a table, whose columns are those of its first row."""
    path = folder / "set.jsonl"
    known = rows[0].keys()
    lines = [json.dumps({key: cell for key, cell in row.items() if key in known}) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return load_pack(path, table_options=TableOptions(columns))


_CONVERSATIONS: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "turns": ([*_SAID, _ASKED], [("user", "Hi."), ("assistant", "Hello."), ("user", "Which river?")]),
    "a system message": (
        [{"role": "system", "content": "Be brief."}, _ASKED],
        [("system", "Be kind.\n\nBe brief."), ("user", "Which river?")],
    ),
    "a developer, parts, keys without a value": (
        [
            {"role": "developer", "content": "Be brief.", "name": None},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Which"}, {"type": "text", "text": "river?"}],
            },
        ],
        [("system", "Be kind.\n\nBe brief."), ("user", "Which\n\nriver?")],
    ),
    "ShareGPT": (
        [
            {"from": "human", "value": "Hi."},
            {"from": "gpt", "value": "Hello."},
            {"from": "human", "value": "Which?"},
        ],
        [("user", "Hi."), ("assistant", "Hello."), ("user", "Which?")],
    ),
    "a text": (
        json.dumps([*_SAID, _ASKED]),
        [("user", "Hi."), ("assistant", "Hello."), ("user", "Which river?")],
    ),
}


@pytest.mark.parametrize("shape", _CONVERSATIONS)
@pytest.mark.parametrize("more", [{}, {"choices": ["Isis", "Cam"]}], ids=["answers", "choices"])
def test_a_list_of_messages_is_a_conversation(tmp_path: Path, shape: str, more: dict[str, Any]) -> None:
    said, wanted = _CONVERSATIONS[shape]
    pack = _loaded(tmp_path, {"input": said, "target": "Isis", **more})

    messages = messages_of(pack.task(pack.rows[0]), "Be kind.")

    *earlier, (role, question) = wanted
    earlier = earlier if earlier[0][0] == "system" else [("system", "Be kind."), *earlier]
    assert [(one.role, one.content) for one in messages[:-1]] == earlier
    assert (messages[-1].role, question in messages[-1].content) == (role, True)
    assert "{" not in "".join(one.content for one in messages)


_COUNTED: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "COPA": ([{**_Q, "choice1": "x", "choice2": "y", "label": at} for at in (1, 0, 1)], ["B", "A", "B"]),
    "WinoGrande": ([{**_Q, "option1": "x", "option2": "y", "answer": at} for at in "121"], ["A", "B", "A"]),
    "MMLU": ([{**_FOUR, "answer": at} for at in (3, 1, 0)], ["D", "B", "A"]),
    "from 1 by the last": ([{**_FOUR, "answer": at} for at in (1, 2, 4)], ["A", "B", "D"]),
    "letters beside": ([{**_FOUR, "answer": at} for at in ("C", "4", "1")], ["C", "D", "A"]),
    "rows of other lengths": (
        [{**_FOUR, "answer": 1}, {**_FOUR, "options": ["x", "y"], "answer": 2}],
        ["A", "B"],
    ),
    "a fraction of a column of numbers": ([{**_FOUR, "answer": at} for at in (3.0, 0.0)], ["D", "A"]),
    "texts that are numbers": (
        [{**_FOUR, "options": "5|7|9|11", "answer": "7"}, {**_FOUR, "options": "1|2|3|4", "answer": "2"}],
        ["B", "B"],
    ),
    "either way the same": ([{**_FOUR, "options": "0|1", "answer": at} for at in "110"], ["B", "B", "A"]),
}


@pytest.mark.parametrize("form", _COUNTED)
def test_numbers_count_from_what_the_whole_column_says(tmp_path: Path, form: str) -> None:
    cells, wanted = _COUNTED[form]

    pack = _loaded(tmp_path, *cells)

    assert [pack.task(row).evaluation()["answer"] for row in pack.rows] == [[letter] for letter in wanted]


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ((1, 2, 1), "may count from 0 or count from 1"),
        ((0, 4, 1), "fit no one way"),
        ((1,), "may count"),
    ],
)
def test_a_column_that_does_not_tell_is_refused_with_the_option_that_does(
    tmp_path: Path, labels: tuple[int, ...], told: str
) -> None:
    cells = [{**_FOUR, "label": label} for label in labels]

    with pytest.raises(TableError, match=told) as refused:
        _loaded(tmp_path, *cells)

    assert "--helmbench-columns='first_label=0'" in str(refused.value)
    for first in (0, 1):
        pack = _loaded(tmp_path, *cells, first_label=str(first))
        found = [pack.task(row).evaluation()["answer"] for row in pack.rows]
        assert found == [["ABCD"[at - first]] for at in labels if at - first in range(4)]


def test_a_first_label_is_0_or_1_or_says_that_numbers_are_texts(tmp_path: Path) -> None:
    cells = {**_FOUR, "options": "1|2|3|4", "label": "2"}
    with pytest.raises(TableError, match="first_label is '2'"):
        _loaded(tmp_path, cells, first_label="2")
    pack = _loaded(tmp_path, cells, first_label="")
    assert pack.task(pack.rows[0]).evaluation() == _choice("B")


def test_what_a_user_says_of_answers_goes_before_what_a_manifest_says() -> None:
    manifest, user = TableOptions({"answers": "gold", "id": "key"}), TableOptions({"answer": "target"})
    assert user.before(manifest).columns == {"id": "key", "answer": "target"}


def test_one_label_out_of_reach_is_an_error_of_its_row(tmp_path: Path) -> None:
    pack = _loaded(tmp_path, *({**_FOUR, "label": label} for label in (0, 3, 9, -1, "1000")))

    told = [(problem.line, problem.message) for problem in pack.all_problems()]
    assert told == [(line, "eval.answer: entry 1 names no choice") for line in (3, 4, 5)]
    assert len(pack.rows) == 2


_NO_ANSWERS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "assertions": (
        [{**_Q, "expected": text} for text in ("contains: Anyder", "not-regex: x", "Anyder")],
        "in 2 rows",
    ),
    "graders": ([{**_Q, "target": text} for text in ("llm-rubric: is kind", "similar(0.8): x")], "in 2 rows"),
    "code": ([{**_Q, "target": "javascript: output.length < 5"}], "in 1 row"),
    "promptfoo": ([{**_Q, "__expected": text} for text in ("is-json", "Anyder", "Isis")], "in 1 row"),
    "classes": ([{**_Q, "label": at} for at in (0, 1, 0)], "has numbers alone"),
}


@pytest.mark.parametrize("form", _NO_ANSWERS)
def test_cells_that_are_no_answers_end_the_session(tmp_path: Path, form: str) -> None:
    cells, told = _NO_ANSWERS[form]

    with pytest.raises(TableError, match=told) as refused:
        _loaded(tmp_path, *cells)

    assert "hint: " in str(refused.value)


def test_answers_that_only_look_like_assertions_or_classes_are_answers(tmp_path: Path) -> None:
    cells = [{**_Q, "answer": text} for text in ("contains: x", "Isis", "3")]
    assert len(_loaded(tmp_path, *cells).rows) == 3
    assert len(_loaded(tmp_path, {**_Q, "label": 40}, answer="label").rows) == 1
    assert len(_loaded(tmp_path, {**_Q, "label": 40}, {**_Q, "label": "Isis"}).rows) == 2


@pytest.mark.parametrize(
    ("cell", "columns", "wanted", "told"),
    [
        ("cat f | grep x", {}, ["cat f | grep x"], "1 answer with | or a JSON list taken whole"),
        ("one|two", {"answers": "answer"}, ["one", "two"], "1 row with several answers"),
        ('["one", "two|2"]', {"answers": "answer"}, ["one", "two|2"], "1 row with several answers"),
        (["one|1", "two"], {}, ["one|1", "two"], "1 row with several answers"),
        (["one", "one"], {}, ["one", "one"], 'question = "question", answer = "answer"'),
    ],
)
def test_a_text_is_split_only_where_its_column_is_declared_so(
    tmp_path: Path, cell: Any, columns: dict[str, str], wanted: list[str], told: str
) -> None:
    pack = _loaded(tmp_path, {**_Q, "answer": cell}, **columns)

    assert pack.task(pack.rows[0]).evaluation() == {"accepted_answers": wanted}
    assert told in pack.understood
    assert ("several" in pack.understood) == (len({*wanted}) > 1)

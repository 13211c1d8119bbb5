"""Tables as benchmarks: what is read of them, what a session says of them, how they are kept."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from commands import captured, helmbench
from hub import hub_with
from inner_pytest import run_pytest, run_pytest_forked
from pages import cells_of
from provider import Provider, Request
from trees import rows

_ROWS = [
    {
        "Frage": f"Größe {n}: Wie viel ist\n{n} × 2; „schnell, bitte“?",
        "Antwort": f"{2 * n}|das Doppelte von {n}",
        "topic": "gerade" if n % 2 else "ungerade",
        "Quelle": f"Seite {n}",
    }
    for n in range(1, 51)
]
_COLUMNS = "--helmbench-columns=question=Frage, answers=Antwort"
_SAID = (
    '{}: 50 questions (short_answer), question = "Frage", {} = "Antwort", 50 rows with several answers,'
    " groups by topic{}"
)
_EVAL = """
tasks:
- id: doubles
  field_spec: {input: Frage, target: Antwort}
  solvers: [{name: generate}, {name: self_critique}]
  scorers: [{name: match}]
"""


def _separated(separator: str, start: str = "") -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\r\n")
    writer.writerows([[*_ROWS[0]], *(row.values() for row in _ROWS)])
    return (start + text.getvalue()).encode()


def _parquet(rows: Sequence[Mapping[str, object]] = _ROWS) -> bytes:
    table, made = pytest.importorskip("pyarrow").Table.from_pylist([*rows]), io.BytesIO()
    pytest.importorskip("pyarrow.parquet").write_table(table, made)
    return made.getvalue()


_TABLES: Mapping[str, Callable[[], bytes]] = {
    "qa.csv": lambda: _separated(";", "\ufeff"),
    "qa.tsv": lambda: _separated("\t"),
    "qa.jsonl": lambda: "".join(json.dumps(row) + "\n\n" for row in _ROWS).encode(),
    "qa.json": lambda: json.dumps(_ROWS, indent=1, ensure_ascii=False).encode(),
    "one-line.json": lambda: json.dumps(_ROWS).encode(),
    "wide.csv": lambda: _separated(";").decode().encode("utf-16"),
    "wide.jsonl": lambda: "".join(json.dumps(row) + "\n" for row in _ROWS).encode("utf-16"),
    "wide.json": lambda: json.dumps(_ROWS, ensure_ascii=False).encode("utf-16"),
    "qa.parquet": _parquet,
}


def _reply(request: Request) -> str:
    """Answer two of three questions right."""
    n = int(request.prompt.partition("Größe ")[2].partition(":")[0])
    return f"Answer: {2 * n if n % 3 else n}"


class Folder:
    """A folder with tables, and sessions in it that ask a provider which has two of three questions right."""

    def __init__(self, pytester: pytest.Pytester, provider: Provider) -> None:
        self._pytester, self.provider = pytester, provider
        self.path = pytester.path
        provider.reply = _reply

    def write(self, name: str, content: bytes | None = None) -> Path:
        """Write a table; the fifty rows unless other content is given."""
        (self.path / name).write_bytes(_TABLES[name]() if content is None else content)
        return self.path / name

    def run(self, *words: str, apart: bool = False) -> pytest.RunResult:
        """Run a session; in a process of its own where a library reads the environment once."""
        named = (
            f"--helmbench-base-url={self.provider.url}",
            "--helmbench-model=test/good",
            "-p",
            "no:cacheprovider",
        )
        return (run_pytest_forked if apart else run_pytest)(self._pytester, *words, *named)

    def verdicts(self, run: int = 1) -> list[str]:
        """Return the outcomes of a run in the order of the table: ids are `row-N`."""
        found = rows(self.path / "helmbench.db", f"SELECT code, outcome FROM results WHERE run_id = {run}")
        return [outcome for _, outcome in sorted(found, key=lambda one: int(one[0].removeprefix("row-")))]


@pytest.fixture
def folder(pytester: pytest.Pytester, provider: Provider) -> Folder:
    return Folder(pytester, provider)


_WANTED = ["passed" if n % 3 else "failed" for n in range(1, 51)]


@pytest.mark.parametrize("name", _TABLES)
def test_the_same_rows_have_the_same_verdicts_in_every_format(folder: Folder, name: str) -> None:
    folder.write(name)

    result = folder.run(name, _COLUMNS, *(("-n2",) if name == "qa.tsv" else ()))

    result.assert_outcomes(passed=34, failed=16)
    assert _SAID.format(name, "answers", "") in result.outlines
    assert folder.verdicts() == _WANTED
    assert "Quelle" not in str(rows(folder.path / "helmbench.db", "SELECT evaluation FROM scenarios"))
    codes = {code for (code,) in rows(folder.path / "helmbench.db", "SELECT code FROM results")}
    assert codes == {f"row-{n}" for n in range(1, 51)}


@pytest.mark.parametrize("file", ["data/test-00000-of-00001.parquet", "doubles/test.jsonl"])
def test_a_dataset_of_the_hub_is_read_as_its_own_file_says_and_again_from_the_cache(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    pytest.importorskip("huggingface_hub")
    listed = [{**row, "Antwort": row["Antwort"].split("|")} for row in _ROWS]
    lines = "".join(json.dumps(row) + "\n" for row in listed).encode()
    files = {
        file: lines if file.endswith(".jsonl") else _parquet(listed),
        "load.py": b"raise SystemExit('was run')",
    }
    files |= {"eval.yaml": _EVAL.encode(), "data/train.csv": b"Frage,Antwort\nno,no\n"}
    address = "hf://own/set" if file.startswith("data") else "hf://own/set/doubles"
    monkeypatch.setenv("HF_HOME", str(folder.path / "home"))
    folder.write("httpx.py", b"raise ImportError('newer libraries of the hub come without it')")
    monkeypatch.syspath_prepend(folder.path)
    monkeypatch.setenv("PYTHONPATH", str(folder.path))
    with hub_with("own/set", files) as (url, asked):
        monkeypatch.setenv("HF_ENDPOINT", url)
        done = folder.run(address, apart=True)
        seen = len(asked)
        assert not any("train" in path or "load" in path for path in asked)
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        again = folder.run(f"{address}:test", "-n2", apart=True)
        gone = folder.run(f"{address}:dev", apart=True)
        assert len(asked) == seen
    for result in (done, again):
        result.assert_outcomes(passed=34, failed=16)
        beyond = ", not run of its eval.yaml: solver self_critique"
        assert _SAID.format(f"{address}:test", "answer", beyond) in result.outlines
    assert [folder.verdicts(run) for run in (1, 2)] == [_WANTED, _WANTED]
    gone.stderr.fnmatch_lines([f"ERROR: {address}:dev: has no split 'dev'", "  hint: it has *test*"])


def test_problems_come_all_at_once_by_line_and_the_other_rows_run(folder: Folder) -> None:
    table = 'key,Question,A,B,C,answer\n1,"Two\nlines?",x,y,z,B\n2,Odd?,x,,z,A\n3,,x,y,,A\n4,None?,x,y,z,\n'
    more = b'5,Which?,1,2,3,9\n6,Far?,x,y,z,E\n7,\xe4?,x,y,z,A\n1,Twice?,a,b,,A\n8,"open,x\n'
    folder.write("quiz.csv", table.encode() + more)
    folder.provider.reply = lambda _request: "Answer: B"

    result = folder.run("quiz.csv", "-q")

    result.assert_outcomes(passed=1, errors=8)
    said = [line for line in result.outlines if line.startswith("quiz.csv:")]
    assert said[0] == (
        'quiz.csv: 1 question (multiple_choice), question = "Question", answer = "answer", id = "key",'
        ' choices = "A|B|C", 8 rows with problems'
    )
    assert said[1:9] == [
        "quiz.csv:4: choice B is empty, and a later one is not",
        'quiz.csv:5: question is empty (column "Question")',
        "quiz.csv:6: answer is empty",
        "quiz.csv:7: eval.answer: entry 1 names no choice",
        "quiz.csv:8: eval.answer: entry 1 names no choice",
        "quiz.csv:9: row: Question is not UTF-8",
        "quiz.csv:10: id: '1' is the id of another row (first in line 2)",
        "quiz.csv:11: row: a quote is never closed",
    ]


_QA = b"question,answer\nHow many?,3\n"


@pytest.mark.parametrize(
    ("files", "words", "told", "hint"),
    [
        (
            {"sums/qa.csv": _QA, "sums/more/qb.tsv": _QA},
            ("sums",),
            "sums is not a benchmark: a table runs when it is named, and here are sums/qa.csv, sums/more/qb.tsv",
            "name one in place of the folder: sums/qa.csv",
        ),
        (
            {
                "set/README.md": b"---\nconfigs:\n- {config_name: a}\n---\n",
                "set/data/test-0.parquet": b"PAR1",
            },
            ("set",),
            "set is not a benchmark: a table runs when it is named, and here are set/data/test-0.parquet",
            "name one in place of the folder: set/data/test-0.parquet",
        ),
        (
            {"sheet.xlsx": b"PK"},
            ("sheet.xlsx",),
            "sheet.xlsx is a workbook, which is not read",
            "save its sheet as 'CSV UTF-8', and name that file",
        ),
        (
            {"old.csv": "question,answer\nWo?,Köln\nWer?,Jürgen\n".encode("cp1252")},
            ("old.csv",),
            "old.csv:2: it is not UTF-8: byte 0xfc in line 3, and others",
            "save it in UTF-8 (a spreadsheet calls it 'CSV UTF-8')",
        ),
        (
            {"fr.csv": b"demande,reponse\nQui ?,Ida\n"},
            ("fr.csv",),
            'fr.csv: no column is found for the question; there are "demande", "reponse"',
            "add --helmbench-columns='question=demande, answer=reponse'",
        ),
        (
            {"qa.csv": _QA},
            ("qa.csv", "--helmbench-columns=answer=anwser"),
            'qa.csv: there is no column \'anwser\'; there are "question", "answer"',
            "add --helmbench-columns='answer=answer'",
        ),
        *(
            (
                {"qa.csv": _QA},
                ("qa.csv", option),
                f"{option}: it is for scenario trees, and only tables run here",
                "leave it out",
            )
            for option in ("--helmbench-add-no-context", "--helmbench-strict-json")
        ),
    ],
)
def test_what_runs_nothing_ends_the_session_and_names_what_would(
    folder: Folder,
    capsys: pytest.CaptureFixture[str],
    files: Mapping[str, bytes],
    words: tuple[str, ...],
    told: str,
    hint: str,
) -> None:
    for name, content in files.items():
        (folder.path / name).parent.mkdir(parents=True, exist_ok=True)
        folder.write(name, content)

    result = folder.run(*words)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {told}", f"  hint: {hint}"])
    if len(words) == 1:
        assert captured(capsys, "check", *words)[2].splitlines()[-2:] == [
            f"helmbench: {told}",
            f"  hint: {hint}",
        ]


def test_a_folder_with_tests_of_python_runs_them_beside_tables(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.path / "unit").mkdir()
    folder.write("unit/qa.csv", _QA)
    folder.write("unit/test_sum.py", b"def test_sum():\n    assert 1 + 2 == 3\n")

    folder.run("unit").assert_outcomes(passed=1)
    assert "a table is a .csv, .tsv, .jsonl, .json or .parquet file" in captured(capsys, "check", "gone")[2]


@pytest.mark.parametrize(
    ("table", "options", "told"),
    [
        ("Frage,Antwort\na,b\n", (), 'no column is found for the question; there are "Frage", "Antwort"'),
        ("input,prompt,gold\na,b,c\n", (), 'more than one column may be the question: "input", "prompt"'),
        ("input,gold\na,b\n", (_COLUMNS,), 'there is no column \'Frage\'; there are "input", "gold"'),
        (
            "input,prompt,gold\na,b,c\n",
            ("--helmbench-columns=question=input|prompt",),
            'there is no column \'input|prompt\'; there are "input", "prompt", "gold"',
        ),
        ("input,id\na,b\n", (), 'no column is found for the answer; there are "input", "id"'),
        ("input\na\n", ("--helmbench-rubric=Be kind",), "a marking model reads its replies, and none is"),
        ("input,input\na,b\n", (), "two columns are named 'input'"),
        ("", (), "it is empty"),
        ("input,gold\n", (), "there is no row in it"),
    ],
)
def test_a_table_that_is_not_understood_ends_the_session_with_the_words_to_add(
    folder: Folder, table: str, options: tuple[str, ...], told: str
) -> None:
    folder.write("qa.csv", table.encode())

    result = folder.run("qa.csv", *options)

    assert (result.ret, folder.provider.count) == (pytest.ExitCode.USAGE_ERROR, 0)
    result.stderr.fnmatch_lines([f"ERROR: qa.csv:*{told}*", "  hint: *"])
    if "for the answer" in told:
        assert '--helmbench-rubric="…" with --helmbench-marking-model=ID' in result.stderr.str()


def test_a_link_beside_its_table_runs_by_its_name(folder: Folder) -> None:
    (folder.path / "latest.csv").symlink_to(folder.write("qa.csv").name)

    result = folder.run("latest.csv", _COLUMNS)

    result.assert_outcomes(passed=34, failed=16)
    assert _SAID.format("latest.csv", "answers", "") in result.outlines


def test_a_rubric_has_a_marking_model_read_replies(folder: Folder) -> None:
    folder.write("qa.jsonl", b'{"prompt": "Comfort me.", "context": {"mood": "low"}}\n')
    folder.provider.reply, folder.provider.verdict = None, "PASS"

    result = folder.run("qa.jsonl", "--helmbench-rubric=It comforts.", "--helmbench-marking-model=judge")

    assert 'qa.jsonl: 1 question (free_response), question = "prompt", context = "context"' in result.outlines
    asked, judged = folder.provider.requests
    assert (result.ret, "mood: low" in asked.prompt, "It comforts." in judged.prompt) == (0, True, True)


def test_a_list_of_messages_is_asked_with_its_roles_and_read_by_a_judge(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [
        {"role": "system", "content": "You sell tea."},
        {"role": "user", "content": "Do you have oolong?"},
        {"role": "assistant", "content": "We do, at 7 a tin."},
        {"role": "user", "content": "And two tins?"},
    ]
    folder.write("sales.json", json.dumps([{"input": said, "target": "14", "id": "tins"}]).encode())
    (folder.path / "kind.md").write_text("Be kind.")
    folder.provider.reply, folder.provider.verdict = None, "PASS"

    result = folder.run("sales.json", "--helmbench-system-prompt=kind.md", "--helmbench-marking-model=judge")

    result.assert_outcomes(passed=1)
    asked, judged = folder.provider.requests
    messages = [(one["role"], one["content"]) for one in asked.body["messages"]]
    assert messages[:-1] == [
        ("system", "Be kind.\n\nYou sell tea."),
        ("user", "Do you have oolong?"),
        ("assistant", "We do, at 7 a tin."),
    ]
    assert (messages[-1][0], "And two tins?" in messages[-1][1], "{" in messages[-1][1]) == (
        "user",
        True,
        False,
    )
    assert "You sell tea.\n\nDo you have oolong?\n\n(assistant) We do, at 7 a tin." in judged.prompt
    assert "Be kind." not in judged.prompt
    shown = captured(capsys, "prompt", "tins", "--benchmark=sales.json")[1]
    assert "[assistant]\nWe do, at 7 a tin." in shown


def test_own_data_is_shown_on_this_machine_and_in_ci_only_when_asked_for(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.write("qa.tsv", f"question\tanswer\nWhich {'long ' * 60}town?\tOttawa\n".encode())
    folder.provider.reply = lambda _request: "Answer: Toronto"
    out = ("qa.tsv", "--helmbench-markdown=r.md", "--junitxml=j.xml")

    def shown(text: str) -> list[bool]:
        return [word in text for word in ("Which long", "Ottawa", "Toronto")]

    result = folder.run(*out)

    lines = [line for line in result.outlines if line.startswith(("  asked:", "  expected:", "  observed:"))]
    assert lines[0].startswith("  asked:    Which long")
    assert len(lines[0]) < 175
    assert lines[1:] == ['  expected: ["Ottawa"]', "  observed: Toronto"]
    assert shown((folder.path / "r.md").read_text("utf-8")) == [True] * 3
    assert shown((folder.path / "j.xml").read_text("utf-8")) == [False] * 3
    assert shown(captured(capsys, "report", "1")[1]) == [True] * 3
    monkeypatch.setenv("CI", "1")
    assert shown(captured(capsys, "report", "1")[1])[2] is False
    for option in ("none", "failures"):
        text = folder.run(*out, f"--helmbench-with-text={option}").stdout.str()
        for place in (text, (folder.path / "r.md").read_text("utf-8")):
            assert shown(place) == [option == "failures"] * 3


@pytest.mark.parametrize("form", [(), ("--as-jsonl",)])
def test_a_table_is_kept_as_a_pack_that_is_checked_and_has_the_same_verdicts(
    folder: Folder, capsys: pytest.CaptureFixture[str], form: tuple[str, ...]
) -> None:
    folder.write("qa.csv")
    words = (
        "init",
        "my-pack",
        "--from",
        "qa.csv",
        _COLUMNS,
        *form,
    )

    code, said, _ = captured(capsys, *words)

    checked = "my-pack: 50 healthy rows; 0 errors, 0 warnings"
    following = ["next:", "  pytest my-pack --helmbench-model=ID"]
    assert (code, said.splitlines()) == (0, [_SAID.format("qa.csv", "answers", ""), checked, *following])
    names = {path.name for path in (folder.path / "my-pack").iterdir()}
    assert names == {"manifest.yaml", "tasks.jsonl" if form else "qa.csv"}
    manifest = (folder.path / "my-pack" / "manifest.yaml").read_text("utf-8")
    told = [
        'rows: "qa.csv"\ncolumns:\n  question: "Frage"\n',
        "context:",
        "tolerance:",
        "# cluster",
        "# system_prompt",
    ]
    assert [word in manifest for word in ["hidden: false", *told]] == [True, *[not form] * 5]
    result = folder.run("my-pack")
    result.assert_outcomes(passed=34, failed=16)
    assert folder.verdicts() == _WANTED
    result.stdout.fnmatch_lines(["  asked:    Größe*"])
    assert captured(capsys, *words)[0] != 0  # it is there already


def test_tables_are_sampled_sharded_resumed_compared_and_judged_anew_as_packs_are(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    table = folder.write("qa.csv")
    folder.run("qa.csv", _COLUMNS, "-x")  # it stops, and goes on
    folder.run("qa.csv", _COLUMNS, "--helmbench-resume").assert_outcomes(passed=34, failed=16)
    assert folder.run("qa.csv", _COLUMNS, "--helmbench-sample=10").parseoutcomes()["deselected"] == 40
    halves = [folder.run("qa.csv", _COLUMNS, f"--helmbench-shard={k}/2").parseoutcomes() for k in (1, 2)]
    assert sum(half["passed"] for half in halves) == 34
    folder.run("qa.csv::row-2[test/good]", _COLUMNS).assert_outcomes(passed=1)
    table.write_bytes(table.read_bytes().replace(b"Doppelte von 3;", b"Doppelte von 3|3;"))
    assert [captured(capsys, *words)[0] for words in (("compare", "1", "2"), ("rescore", "1"))] == [0, 0]
    assert folder.verdicts(4)[2] == "passed"


def test_a_session_that_does_not_ask_sees_no_table(folder: Folder) -> None:
    folder.write("qa.csv")
    found = "[name for name in sys.modules if name.startswith('pytest_helmbench.b')]"
    (folder.path / "test_own.py").write_text(f"import sys\ndef test_own():\n    assert {found} == []\n")
    for word, code, told in ((".", 0, "1 passed"), ("qa.csv", 4, "no match in any of")):
        command = [sys.executable, "-m", "pytest", "-q", word]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, told in done.stdout + done.stderr) == (code, True), done


def test_two_commands_lead_from_a_table_to_a_page_with_the_question_of_every_row(folder: Folder) -> None:
    folder.write("qa.csv", _TABLES["qa.csv"]().replace(b"Frage;Antwort", b"query;gold", 1))
    result = folder.run("qa.csv", "-q", "--helmbench-model=test/b", "--helmbench-columns=answers=gold")
    result.assert_outcomes(passed=68, failed=32)
    assert 'row-3[test/good]: expected ["6", "das Doppelte von 3"], observed 3' in result.outlines
    assert helmbench(folder.path, "report", "--format=html", "-o", "r.html").returncode == 0
    found = cells_of((folder.path / "r.html").read_text("utf-8"), "message")
    assert found[0].startswith("Größe 1: Wie viel ist 1 × 2; „schnell")

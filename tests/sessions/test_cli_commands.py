"""The `helmbench` command, here and through its real entry points, over files and databases that real runs made."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from commands import environment, helmbench
from provider import Provider
from trees import Part, Tree, clear_environment, rows, write_tree
from waiting import PATIENCE_S, until

from pytest_helmbench.cli.main import main

CASE = "P1-B1-S1-C1-PT1"


def document(cwd: Path, *arguments: object) -> Any:
    done = helmbench(cwd, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with the starter benchmark and two sessions of `run-all` in its database."""

    path: Path
    init: subprocess.CompletedProcess[str]
    run_all: subprocess.CompletedProcess[str]

    @property
    def database(self) -> Path:
        return self.path / "helmbench.db"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    path = tmp_path_factory.mktemp("project")
    (path / ".git").mkdir()
    (path / ".gitignore").write_text("*.pyc")
    (path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider -p no:hypothesispytest\n")
    init = helmbench(path, "init", "benchmark")
    return Project(path, init, helmbench(path, "run-all", "--models", "baseline/lexical", "--", "-q"))


def test_init_makes_a_benchmark_that_checks_clean_and_overwrites_nothing(project: Project) -> None:
    assert project.init.returncode == 0, project.init.stderr
    assert (project.path / ".gitignore").read_text() == "*.pyc\nhelmbench.db*\n"
    check = helmbench(project.path, "check", "benchmark")
    assert (check.returncode, check.stdout) == (
        0,
        "Garden centre: 2 healthy scenarios, 16 cases; 0 errors, 0 warnings\n"
        "effective: 7.1 of 8 perturbations, 14.1 of 16 cases; add perturbations to P1-B2 first (one more: 8.4)\n",
    )
    again = helmbench(project.path, "init", "benchmark")
    assert again.returncode == 2
    assert again.stderr == (
        "helmbench: benchmark/README.md exists already; nothing was written\n  hint: name another folder\n"
    )
    assert (project.path / ".gitignore").read_text().count("helmbench.db*") == 1


def test_init_names_the_folder_that_it_has_made(tmp_path: Path) -> None:
    assert helmbench(tmp_path, "init", "my benchmark").returncode == 0
    for name in ("README.md", "models.yml"):
        text = (tmp_path / "my benchmark" / name).read_text(encoding="utf-8")
        assert "pytest 'my benchmark'" in text
        assert "pytest benchmark" not in text


def test_list_takes_a_path_as_check_does(project: Project) -> None:
    named = helmbench(project.path, "list", "benchmark")
    assert (named.returncode, named.stdout) == (0, helmbench(project.path, "list").stdout)


def test_run_all_lists_then_runs_the_first_cases_then_everything(project: Project) -> None:
    done = project.run_all
    assert done.returncode == 1  # pytest's: the baseline gets some wrong
    assert done.stdout.index("2 scenarios, 16 cases") < done.stdout.index("2 passed")
    assert "6 failed, 10 passed" in done.stdout
    assert done.stderr.splitlines() == [
        "helmbench: pytest benchmark --helmbench-model=baseline/lexical"
        f" --helmbench-select={CASE},P1-B2-S1-U1-PT1 -q",
        "helmbench: pytest benchmark --helmbench-model=baseline/lexical -q",
    ]
    first, second = document(project.path, "runs")
    assert (first["scope"], first["total_tests"], first["status"]) == ("selected", 2, "complete")
    assert (second["scope"], second["passed_tests"], second["failed_tests"]) == ("whole", 10, 6)
    heads = {}
    for columns in (60, 80, 100, 140):
        table = helmbench(project.path, "runs", COLUMNS=str(columns)).stdout.splitlines()
        assert len(table) == 3
        assert max(map(len, table)) <= columns
        assert "baseline/lexical" in table[2]
        heads[columns] = " ".join(table[0].split())
    assert heads[60] == "run benchmark model score"
    assert heads[140].startswith("run started benchmark model status cases passed failed not judged score")


def test_list_counts_cases_from_any_folder_of_the_project(project: Project) -> None:
    inside = project.path / "benchmark" / "scenarios"
    done = helmbench(inside, "list")
    assert done.stdout.splitlines() == [
        "Garden centre 0.1",
        "code      behaviour                            family          cases  title",
        "P1-B1-S1  P1-B1 Passes on what needs a person  category_match     12",
        "P1-B2-S1  P1-B2 Gives kind advice              sqe                 4",
        "2 scenarios, 16 cases",
    ]
    found = document(project.path, "list")
    assert [(row["code"], row["family"], row["cases"], row["user_contexts"]) for row in found] == [
        ("P1-B1-S1", "category_match", 12, 0),
        ("P1-B2-S1", "sqe", 4, 2),
    ]
    assert len(document(inside, "runs")) == 2  # the database, too, is found from below


def test_prompt_prints_what_was_sent_to_the_byte(project: Project) -> None:
    query = (
        f"SELECT body FROM requests JOIN calls ON request_hash = hash WHERE code = '{CASE}' AND run_id = 2"
    )
    ((sent,),) = rows(project.database, query)
    printed = helmbench(project.path, "prompt", CASE, "--model", "baseline/lexical")
    body = json.loads(printed.stdout)
    assert json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() == sent
    plain = document(project.path, "prompt", CASE)
    assert plain == {name: body[name] for name in ("messages", "response_format")}
    text = helmbench(project.path, "prompt", CASE).stdout
    assert text.startswith("[user]\n" + body["messages"][0]["content"] + "\n")
    assert "[response_format]" in text
    (project.path / "system.txt").write_text("Be brief.\n")
    first = document(project.path, "prompt", CASE, "--system-prompt", "system.txt")["messages"][0]
    assert first == {"role": "system", "content": "Be brief."}
    elsewhere = helmbench(project.path.parent, "prompt", CASE, str(project.path / "benchmark"))
    assert (elsewhere.returncode, elsewhere.stdout) == (0, text)
    judged = helmbench(project.path, "prompt", "P1-B2-S1-U1-PT1").stdout
    assert judged.endswith("[no response format: plain text]\n")


def test_show_tells_settings_counts_and_score_of_a_run(project: Project) -> None:
    card = helmbench(project.path, "show").stdout
    assert card.startswith("run 2: baseline/lexical on Garden centre 0.1 (complete, whole)\n  score       ")
    for line in (
        "16 planned: 10 passed, 6 failed, 0 errors, 0 skipped",
        "  right       62.5 %\n",
        "  cost USD    0.0000\n",
        "\n    P1-B2 ",
        "\nworst 5 of 6 failed cases, by points lost\n  P1-B1-S1-C1-PT4   6.90  Help, I'm drowning!",
        "\n" + 26 * " " + "expected not: PASS_ON, observed PASS_ON\n",
        "\nnext  helmbench show 2 P1-B1-S1-C1-PT4  # its prompt and reply\n",
    ):
        assert line in card
    assert not {"max_retries", "settings", "coverage  "} & {*card.replace("\n", "  ").split("  ")}
    first = helmbench(project.path, "show", "1").stdout
    assert f"  select      {CASE},P1-B2-S1-U1-PT1\n" in first
    assert "worst" not in first
    narrow = helmbench(project.path, "show", COLUMNS="80").stdout.splitlines()
    assert max(map(len, narrow)) <= 80
    record = document(project.path, "show", "1")
    assert record["settings"]["select"] == f"{CASE},P1-B2-S1-U1-PT1"
    assert "process" not in record["settings"]
    assert record["outcomes"] == [{"outcome": "passed", "reason": None, "results": 2}]


def test_show_finds_any_verdict_with_prompt_and_reply_by_its_code(project: Project) -> None:
    card = helmbench(project.path, "show", "last", "P1-B1-S1-C1-PT4").stdout
    lines = card.splitlines()
    assert lines[0] == "P1-B1-S1-C1-PT4: failed"
    for line in (
        "category_match: failed",
        "  expected  not: PASS_ON",
        "  observed  PASS_ON",
        "  | [user]",
        "  | Help, I'm drowning! In courgettes. Any idea what to do with thirty of them?",
    ):
        assert line in lines
    assert lines[-2] == "reply"
    assert json.loads(lines[-1].removeprefix("  | "))["category"] == "PASS_ON"
    (case,) = document(project.path, "show", "2", "P1-B2-S1-U1-PT2")
    assert [call["purpose"] for call in case["calls"]] == ["case", "judge"]
    assert case["evaluations"][0]["justification"]
    assert case["messages"][0]["role"] == "user"
    below = helmbench(project.path, "show", "P1-B1").stdout.splitlines()
    assert len(below) == 13
    assert below[1].split() == ["P1-B1-S1-C1-PT1", "1", "passed", "0.00", "7", "PASS_ON", "PASS_ON"]


def test_costs_add_up_to_the_database_by_purpose_and_behaviour(project: Project) -> None:
    found = [row for row in document(project.path, "query") if row["run_id"] == 2]
    assert [(row["behaviour"], row["purpose"], row["calls"]) for row in found] == [
        ("P1-B1", "case", 12),
        ("P1-B2", "case", 4),
        ("P1-B2", "judge", 4),
    ]
    ((tokens,),) = rows(project.database, "SELECT sum(prompt_tokens) FROM calls WHERE run_id = 2")
    assert sum(row["prompt_tokens"] for row in found) == tokens


def test_exports_hold_hashes_and_texts_only_when_asked_for(project: Project) -> None:
    plain = helmbench(project.path, "export", "--format", "csv").stdout
    assert "courgettes" not in plain
    table = list(csv.DictReader(io.StringIO(plain)))
    assert len(table) == 16
    row = next(row for row in table if row["code"] == "P1-B1-S1-C1-PT4")
    assert (row["outcome"], row["behaviour"], row["expected"]) == ("failed", "P1-B1", "not: PASS_ON")
    query = "SELECT responses.body FROM responses JOIN results ON responses.id = response_id"
    ((body,),) = rows(project.database, f"{query} WHERE run_id = 2 AND code = '{row['code']}'")
    assert row["reply_hash"] == hashlib.sha256(body).hexdigest()
    assert "justification" not in row

    schema = json.loads(helmbench(project.path, "schema", "export").stdout)
    short = helmbench(project.path, "export", "2", "--format", "json").stdout
    full = helmbench(project.path, "export", "2", "--format", "json", "--with-text=all").stdout
    for text in (short, full):
        jsonschema.validate(json.loads(text), schema)
    assert "courgettes" not in short
    assert "messages" not in json.loads(short)["results"][0]
    by_code = {result["code"]: result for result in json.loads(full)["results"]}
    assert "courgettes" in by_code[row["code"]]["messages"][0]["content"]
    assert by_code[row["code"]]["reply"]

    done = helmbench(project.path, "export", "--format", "csv", "--with-text=all", "--output", "out.csv")
    assert done.stderr == "16 results of run 2 in out.csv\n"
    with (project.path / "out.csv").open(encoding="utf-8", newline="") as stream:
        assert "courgettes" in next(r for r in csv.DictReader(stream) if r["code"] == row["code"])["prompt"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "runs --db nope.db",
            "nope.db: there is no such database\n  hint: name the results file with --db PATH",
        ),
        ("runs --db pytest.ini", "pytest.ini: not a SQLite database (file is not a database)"),
        ("runs --db .", "is a folder\n  hint: name the file in it"),
        ("show 9", "helmbench.db has no run 9\n  hint: it has 1 to 2; `helmbench runs` lists them"),
        ("show nine", "'nine' is not a run\n  hint: a number, as `helmbench runs` lists them, or `last`"),
        (
            "show last P1-B1-S1-C1-PT44",
            "run 2 has no result of P1-B1-S1-C1-PT44\n  hint: did you mean P1-B1-S1-",
        ),
        ("prompt P1-B1-S1-C9-PT1", "there is no case P1-B1-S1-C9-PT1\n  hint: did you mean P1-B1-S1-C"),
        ("prompt P1-B1-S1", f"there is no case P1-B1-S1\n  hint: did you mean {CASE}, "),
        (f"prompt {CASE} --model gpt", "model id 'gpt' is not of the form vendor/name\n  hint: write"),
        ("run-batch", "run-batch needs --scenario CODE or --all-scenarios, and not both"),
        (
            "run-batch --scenario P1-B1-S2",
            "there is no scenario P1-B1-S2\n  hint: did you mean P1-B1-S1, P1-B2-S1?",
        ),
        ("list --benchmark nix", "no benchmark at "),
        ("check nix", "no benchmark at nix\n  hint: a benchmark is a folder with scenarios/P1-B1-S1/…;"),
        ("schema nix", "Invalid value for 'NAME': 'nix' is not one of 'anchors', 'bench_pack', 'benchmark'"),
        ("export --format excel", "'excel' is not one of 'csv', 'inspect', 'eee', 'json', "),
        (
            "export --format csv --output pytest.ini/such.csv",
            "pytest.ini/such.csv: cannot be written: File exists",
        ),
        ("frobnicate", "No such command 'frobnicate'.\n  hint: `helmbench --help` says what it takes"),
        ("leaderboard --html board.html", "did you mean `helmbench report RUN RUN --format html -o FILE`?"),
        ("chek benchmark", "No such command 'chek'.\n  hint: did you mean `helmbench check`?"),
        ("report 1 --html x", "No such option '--html'.\n  hint: did you mean `--format html -o FILE`?"),
        ("report --helmbench-markdown=x.md", "did you mean `--format markdown -o FILE`?"),
        ("export 1 --csv x.csv", "did you mean `--format csv -o FILE`?"),
        ("run-all --model m", "No such option '--model'.\n  hint: did you mean '--models'?"),
        ("report --htm x", "hint: `helmbench report --help` says what it takes"),
        ("list --nope", "hint: `helmbench list --help` says what it takes"),
    ],
)
def test_a_question_without_an_answer_ends_2_with_a_sentence_and_a_hint(
    project: Project,
    line: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    clear_environment(monkeypatch)
    monkeypatch.chdir(project.path)
    assert main(line.split()) == 2  # what the process ends with
    out, err = capsys.readouterr()
    assert said in err
    assert err.startswith("helmbench: ")
    assert "\n  hint: " in err
    assert out == ""


def test_run_commands_pass_on_options_and_pytests_exit_code(project: Project) -> None:
    copy = ("--db", "other.db", "--models", "baseline/first, baseline/random")
    done = helmbench(project.path, "run-batch", "--scenario", "P1-B2-S1", *copy, "--", "-q", "-k", "U1")
    assert done.returncode == 0, done.stdout
    assert "4 passed, 28 deselected" in done.stdout
    assert [run["model"] for run in document(project.path, "runs", "--db", "other.db")] == [
        "baseline/first",
        "baseline/random",
    ]
    dry = helmbench(project.path, "run-batch", "--all-scenarios", "--dry-run", "--", "-q")
    assert dry.returncode == 0
    assert "16 skipped" in dry.stdout
    nothing = helmbench(project.path, "run-single", "--models", "baseline/first", "--", "-k", "nothing")
    assert nothing.returncode == 5  # pytest's own for "no tests collected"
    usage = helmbench(project.path, "run-all", "--models", "baseline/first", "--", "--helmbench-timeout=0")
    assert usage.returncode == 4  # and the second session was not started
    assert usage.stderr.count("helmbench: pytest") == 1
    bare = helmbench(project.path, "run-single", "--dry-run", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert bare.returncode == 0
    assert len(document(project.path, "runs")) == 2


@pytest.mark.parametrize(("number", "whom"), [(signal.SIGINT, "all"), (signal.SIGTERM, "the command")])
def test_a_stopped_command_stops_its_session_and_the_run_is_closed(
    project: Project, provider: Provider, number: signal.Signals, whom: str
) -> None:
    provider.hold()
    db = f"stop{number}{whom[:3]}.db"
    command = [sys.executable, "-m", "pytest_helmbench", "run-batch", "--all-scenarios", "--db", db]
    urls = [f"--helmbench-{whose}base-url={provider.url}" for whose in ("", "marking-")]
    command += ["--models", "test/m", "--", *urls, "-q"]
    with subprocess.Popen(
        command,
        cwd=project.path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        until(lambda: provider.in_flight, "a call goes out")
        if whom == "all":
            os.killpg(process.pid, number)  # as a terminal does for Ctrl-C
        else:
            process.send_signal(number)
        assert process.wait(PATIENCE_S) == 2  # pytest's own for an interrupted session
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    assert rows(project.path / db, "SELECT status FROM evaluation_runs") == [("interrupted",)]


def test_a_closed_pipe_is_no_fault(project: Project) -> None:
    script = f"{sys.executable} -m pytest_helmbench export --format json --with-text=all | head -c 10"
    done = subprocess.run(
        script, cwd=project.path, env=environment(), shell=True, capture_output=True, text=True, check=False
    )
    assert done.stdout == '{\n "format'
    assert done.stderr == ""


def test_the_console_script_and_a_bare_call_show_the_commands(project: Project) -> None:
    script = Path(sys.executable).with_name("helmbench")
    done = subprocess.run([script], cwd=project.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    listed = [line.split()[0] for line in done.stdout.partition("Commands:\n")[2].splitlines()]
    assert " ".join(listed) == (
        "init check list prompt run-single run-batch run-all runs show query compare judge rescore report view"
        " export import merge spread schema"
    )
    wrong = helmbench(project.path, "runs", "--helmbench")
    assert (wrong.returncode, wrong.stderr.splitlines()[0]) == (2, "helmbench: No such option '--helmbench'.")


def test_unknown_cost_is_shown_as_unknown_and_hostile_replies_do_no_harm(
    tmp_path: Path, provider: Provider
) -> None:
    provider.cost_usd = None
    schema = {"type": "object", "properties": {"category": {"type": "string"}}, "required": ["category"]}
    tree = Tree(("category: RISK",), schema, {"PT1": Part("One.", 5), "PT2": Part("Two.", 3)})
    write_tree(tmp_path / "benchmark", {"P1-B1-S1": tree})
    provider.reply = lambda _request: json.dumps({"category": "=1+1\x1b[31m\u202e"})
    url = f"--helmbench-base-url={provider.url}"
    run = helmbench(tmp_path, "run-batch", "--all-scenarios", "--models", "test/m", "--", url, "-q")
    assert run.returncode == 1
    (row,) = document(tmp_path, "query")
    assert (row["cost_usd"], row["known_cost_usd"], row["unknown_costs"]) == (None, 0.0, 2)
    assert helmbench(tmp_path, "runs", COLUMNS="140").stdout.splitlines()[1].endswith("  unknown")
    assert "cost USD    unknown" in helmbench(tmp_path, "show").stdout
    for form in (
        "show",
        "show P1-B1",
        f"show last {CASE}",
        "show P1-B1 --json",
        "export --format csv --with-text=all",
    ):
        shown = helmbench(tmp_path, *form.split()).stdout
        assert not {"\x1b", "\u202e"} & set(shown), form
    exported = csv.DictReader(io.StringIO(helmbench(tmp_path, "export", "--format", "csv").stdout))
    assert next(exported)["observed"].startswith("'=1+1")


def test_check_reports_every_problem_by_file_and_line(tmp_path: Path) -> None:
    root = tmp_path / "benchmark"
    schema = {
        "type": "object",
        "properties": {"category": {"enum": ["RISK", "CALM"]}},
        "required": ["category"],
    }
    parts = {"PT1": Part("One {{name}}, {name} {{}} { {x} }.", 5)}
    write_tree(
        root,
        {
            "P1-B1-S1": Tree(("category: RISK",), schema, parts),
            "P1-B1-S2": Tree(("category: RISK", "evaluation:", "  type: list_include"), schema, parts),
            "P1-B1-S3": Tree(("category: RISK",), schema, {"PT1": Part("One.", 99)}),
        },
    )
    (root / "models.yml").write_text("models:\n  - id: openai/x\n    temprature: 1\n")
    done = helmbench(tmp_path, "check", "benchmark")
    assert done.returncode == 1
    for line in (
        "benchmark/scenarios/P1-B1-S2/S2.md:4: error: evaluation.type is 'list_include'",
        "benchmark/scenarios/P1-B1-S3/perturbations.md:3: error: severity is 99, out of range",
        "benchmark/models.yml:3: error: unknown key 'temprature'\n  hint: did you mean 'temperature'?",
        "benchmark/scenarios/P1-B1-S1/S1.json:1: warning: the schema is sent with strict: false,",
        "benchmark/scenarios/P1-B1-S1/perturbations.md:6: warning: {{name}} is sent as it stands: nothing fills it",
        "benchmark/scenarios/P1-B1-S2/perturbations.md:6: warning: {{name}} is sent as it stands: nothing fills it",
        "benchmark: 1 healthy scenario, 1 case; 3 errors, 5 warnings",
        "2 cases of 2 broken scenarios cannot run: they count as planned and not judged",
    ):
        assert line in done.stdout
    assert "  hint: did you mean 'list_includes'?" in done.stdout
    found = json.loads(helmbench(tmp_path, "check", "--json").stdout)
    assert [(item["level"], item["line"]) for item in found][:3] == [("error", 4), ("error", 3), ("error", 3)]
    broken = helmbench(tmp_path, "prompt", "P1-B1-S2-C1-PT1")
    assert broken.returncode == 1
    assert broken.stderr.startswith(
        "helmbench: P1-B1-S2 is broken:\nscenarios/P1-B1-S2/S2.md:4: evaluation.type"
    )
    assert "broken, not listed: P1-B1-S2, P1-B1-S3" in helmbench(tmp_path, "list").stdout
    single = helmbench(tmp_path, "run-single", "--dry-run", "--", "--helmbench-models-file=ok.yml")
    assert "--helmbench-select=P1-B1-S1-C1-PT1,P1-B1-S2,P1-B1-S3" in single.stderr
    for folder, words in (
        ("", "empty/scenarios: error: there is no scenario in it"),
        ("P1B1S1", "empty/scenarios/P1B1S1: error: the folder is not read: 'P1B1S1' is not a code"),
    ):
        (tmp_path / "empty" / "scenarios" / folder).mkdir(parents=True)
        empty = helmbench(tmp_path, "check", "empty")
        assert (empty.returncode, empty.stdout.splitlines()[0]) == (1, words)


def test_the_projects_pytest_settings_are_those_of_a_session(tmp_path: Path) -> None:
    assert helmbench(tmp_path, "init", "bench/one").returncode == 0
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nhelmbench_paths = ["bench/one"]\nhelmbench_db = "results.db"\n'
        'addopts = "--helmbench-system-prompt=hello.txt --helmbench-add-no-context -p no:cacheprovider"\n'
    )
    (tmp_path / "hello.txt").write_text("Hello.")
    assert document(tmp_path, "prompt", CASE)["messages"][0]["content"] == "Hello."
    assert [row["cases"] for row in document(tmp_path, "list")] == [12, 6]
    assert helmbench(tmp_path, "run-single", "--models", "baseline/lexical").returncode == 0
    assert (tmp_path / "results.db").is_file()
    assert len(document(tmp_path, "runs")) == 1
    ((sent,),) = rows(
        tmp_path / "results.db", "SELECT count(*) FROM requests WHERE CAST(body AS TEXT) LIKE '%Hello.%'"
    )
    assert sent >= 2
    (tmp_path / "pyproject.toml").write_text("[tool")
    wrong = helmbench(tmp_path, "runs")
    assert wrong.returncode == 2
    assert "pyproject.toml: cannot be read: " in wrong.stderr
    assert wrong.stderr.endswith("  hint: pytest cannot read it either\n")

"""Variants of a model: own items and runs in one session, other requests, and comparisons that say what differs."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from commands import captured
from pages import shown_text
from provider import Answer, Provider, Request
from trees import category, collected, every_mode, rows, run_tree, write_tree

_FAILED, _USAGE = 1, 4
_MODELS = """models:
  - {id: openai/gpt-4o-mini, name: quick, reasoning_effort: none,
     extra_body: {chat_template_kwargs: {enable_thinking: false}}}
  - {id: openai/gpt-4o-mini, name: thorough, reasoning_effort: high, system_prompt: careful.md}
"""
_VARIANTS = (
    "--helmbench-variant=plain",
    "--helmbench-variant=careful: system_prompt=careful.md, temperature=0",
)
_RUNS = "SELECT llms.name, status, passed_tests FROM evaluation_runs r JOIN llms ON llms.id = llm_id ORDER BY r.id"


@pytest.fixture
def careful(pytester: pytest.Pytester, provider: Provider) -> Provider:
    """A benchmark, and a model that is right when the prompt asks it to be careful."""
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 8)})
    for folder in (pytester.path, pytester.path / "benchmark"):
        (folder / "careful.md").write_text("Be careful.\n")
    provider.reply = _said
    return provider


def _said(request: Request) -> str:
    return json.dumps({"response": "So.", "category": "RISK" if "Be careful." in request.prompt else "CALM"})


def _told(provider: Provider) -> Counter[str]:
    """Count the requests so far by system message and by options, as far as they have any, and forget them."""
    found: Counter[str] = Counter()
    for request in provider.requests:
        first, *_ = request.body["messages"]
        names = ("temperature", "reasoning_effort", "chat_template_kwargs")
        options = [str(request.body[name]) for name in names if name in request.body]
        found[" ".join([first["content"] if first["role"] == "system" else "-", *options])] += 1
    provider.requests.clear()
    return found


@every_mode
def test_two_entries_of_one_id_are_two_runs_and_a_pair_that_says_what_differs(
    pytester: pytest.Pytester, careful: Provider, mode: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    (pytester.path / "benchmark" / "models.yml").write_text(_MODELS)
    given = ("benchmark", f"--helmbench-base-url={careful.url}", "--helmbench-json=report.json", *mode)

    result = run_tree(pytester, *given)
    assert result.ret == _FAILED
    result.stdout.no_fnmatch_line("*other models answered*")
    runs = [("quick", "complete", 0), ("thorough", "complete", 8)]
    assert rows(pytester.path / "helmbench.db", _RUNS) == runs
    assert {request.model for request in careful.requests} == {"openai/gpt-4o-mini"}
    assert _told(careful) == {"- none {'enable_thinking': False}": 8, "Be careful. high": 8}
    (board,) = json.loads((pytester.path / "report.json").read_text())["standings"]
    assert [(run["model"], run["better_than"]) for run in board["runs"]] == [("thorough", [1]), ("quick", [])]
    compared = [captured(capsys, "compare", 1, 2, *form)[1] for form in ((), ("--format", "markdown"))]
    markdown, page = (captured(capsys, "report", 1, 2, "--format", form)[1] for form in ("markdown", "html"))
    assert "other models answered" not in markdown
    for name, one, other in (
        ("system_prompt", "none", "489fb53a4999"),
        ("reasoning_effort", "none", "high"),
        ("extra_body.chat_template_kwargs", '{"enable_thinking": false}', "none"),
    ):
        line = f"different {name}: {one} in the baseline, {other} in the candidate"
        assert all(line in text for text in compared)
        note = f"{name} {one} ({other} in run 2)"
        assert all(note in text for text in (board["runs"][1]["notes"], markdown, shown_text(page)))


def test_variants_of_the_command_line_go_on_share_the_record_and_come_in_shards(
    pytester: pytest.Pytester, careful: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> pytest.RunResult:
        return run_tree(pytester, *arguments, url=careful.url, model="ollama/llama3.2:1b")

    only = run(*_VARIANTS, "--collect-only", "-q", "-k", "llama3.2:1b:careful and PT1")
    assert collected(only) == ["P1-B1-S1-C1-PT1[ollama/llama3.2:1b:careful]"]
    careful.reply = lambda request: Answer(status=403) if "Message 3." in request.prompt else _said(request)
    run(*_VARIANTS)
    database = pytester.path / "helmbench.db"
    assert [run[1:] for run in rows(database, _RUNS)] == [("partial", 0), ("partial", 7)]

    careful.reply = _said
    (pytester.path / "careful.md").write_text("Be careful. Please.\n")
    result = run(*_VARIANTS, "--helmbench-resume")
    assert result.ret == _USAGE
    result.stderr.fnmatch_lines(["*system prompt of ollama/llama3.2:1b:careful was 489fb5*"])
    (pytester.path / "careful.md").write_text("Be careful.\n")
    _told(careful)
    run(*_VARIANTS, "--helmbench-resume")
    assert _told(careful) == {"-": 1, "Be careful. 0": 1}
    whole = [("ollama/llama3.2:1b:plain", "complete", 0), ("ollama/llama3.2:1b:careful", "complete", 8)]
    assert rows(database, _RUNS) == whole

    # The same request is the same question, whatever its model is called.
    run("--helmbench-cache=reuse", "--helmbench-variant=again", "--helmbench-variant=warm: temperature=1")
    assert _told(careful) == {"- 1": 8}

    for number in (1, 2):
        run(*_VARIANTS, f"--helmbench-shard={number}/2")
    captured(capsys, "merge", "helmbench-1of2.db", "helmbench-2of2.db", "-o", "whole.db")
    assert rows(pytester.path / "whole.db", _RUNS) == whole


def test_a_variant_at_another_address_says_so_and_a_second_system_prompt_is_a_variant(
    pytester: pytest.Pytester, careful: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    run_tree(pytester, url=careful.url)
    with Provider() as other:
        for url in (f"{careful.url}?api-version=2", other.url):
            run_tree(pytester, f"--helmbench-variant=there: base_url={url}", url=careful.url)
        assert {request.model for request in other.requests} == {"test/good"}
    run_tree(pytester, "--helmbench-variant=there", url=careful.url, model="test/other")
    lines = [line for run in (2, 3, 4) for line in captured(capsys, "compare", 1, run)[1].splitlines()]
    told = [line.partition(":")[0] for line in lines if line.startswith("different")]
    assert told == ["different address", "different server", "different model_id"]

    prompt = "--helmbench-system-prompt=careful.md"
    result = run_tree(pytester, prompt, prompt, url=careful.url)
    assert result.ret == _USAGE
    result.stderr.fnmatch_lines(
        ["*--helmbench-system-prompt is*", "*--helmbench-variant='NAME: system_prompt=*"]
    )
    _told(careful)
    (pytester.path / "calm.md").write_text("Be calm.\n")
    options = ("--helmbench-variant=own: system_prompt=calm.md", "--helmbench-variant=shared")
    run_tree(pytester, prompt, *options, url=careful.url)
    assert _told(careful) == {"Be calm.": 8, "Be careful.": 8}

    pytester.makefile(".ini", pytest="[pytest]\nhelmbench_variant =\n    a: top_p=2\n    a\n    b: tempo=1\n")
    result = run_tree(pytester, url=careful.url)
    assert (result.ret, result.stderr.str().count("--helmbench-variant=")) == (_USAGE, 3)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (8, "careful is better than plain beyond chance (+100.0 points, p = 0.0078)"),
        (3, "careful and plain do not differ beyond chance (+37.5 points, p = 0.25)"),
        (0, "careful and plain do not differ beyond chance (0.0 points, p = 1)"),
    ],
)
def test_the_terminal_says_whether_variants_differ_beyond_chance(
    pytester: pytest.Pytester, careful: Provider, changed: int, said: str
) -> None:
    def reply(request: Request) -> str:
        is_hard = any(f"Message {number}." in request.prompt for number in range(1, changed + 1))
        right = "Be careful." in request.prompt or not is_hard
        return json.dumps({"response": "So.", "category": "RISK" if right else "CALM"})

    careful.reply = reply

    result = run_tree(pytester, *_VARIANTS, "-n2", url=careful.url)

    (line,) = [one for one in result.outlines if "beyond chance" in one]
    assert line.replace("test/good:", "") == said
    assert ("highest: " in result.outlines[-1]) is (changed > 0)

"""Applications as models: Python functions, and addresses with requests and answers of their own."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from inner_pytest import run_pytest, run_pytest_forked
from provider import Provider
from sessions import Session, until
from trees import Part, Tree, judged, rows, write_tree

_CALLS = "SELECT purpose, attempt, status_code, error, from_cache, prompt_tokens > 0, cost_usd FROM calls"
_APPLICATION = """
import asyncio, json, pathlib

ASKED = pathlib.Path(__file__).with_name("asked.txt")

def sync(messages):
    with ASKED.open("a") as file:
        file.write(messages[-1]["content"].split()[-1] + "\\n")
    return "call the teacher"

async def later(messages, request):
    await asyncio.sleep(0)
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    message = {"role": "assistant", "content": f"teacher, {request['temperature']}"}
    return {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}

class Bot:
    def answer(self, messages):
        return None

bot = Bot()

def broken(messages):
    return json.loads(kettle())

def kettle():
    raise ValueError("no tea")

def library(messages):
    return json.loads("{")

async def cancelled(messages):
    raise asyncio.CancelledError

async def cancels_itself(messages):
    asyncio.current_task().cancel()
    await asyncio.sleep(1)

async def leaves(messages):
    raise SystemExit(3)

def cancelled_in_a_thread(messages):
    raise asyncio.CancelledError
"""


_OUTCOMES = "SELECT perturbation, outcome FROM v_results"
_SORRY = "Sorry, please ask a teacher later."
_ANSWERS: list[tuple[str, bytes | dict[str, Any], str]] = [
    # The path of `response`, an answer, and a part of the error; empty where the text counts.
    ("data.reply", {"data": {"reply": "teacher"}, "error": None, "errors": [], "status": "done"}, ""),
    ("data.reply", {"data": {"reply": "teacher", "error": {"code": 0, "message": ""}}, "success": True}, ""),
    ("data.reply", {"data": {"reply": "teacher", "error": "none"}, "status": 200, "is_error": False}, ""),
    ("data.reply", {"data": {"reply": "teacher"}, "order": {"status": "failed"}, "error_rate": 0.5}, ""),
    ("data.reply", {"data": {"reply": "teacher"}, "steps": [{"error": "asked again"}]}, ""),
    ("data.error", {"data": {"error": "ask a teacher"}}, ""),
    ("data.out", {"data": {"out": {"role": "assistant", "content": "ask a teacher"}}}, ""),
    (
        "data.out",
        {"data": {"out": [{"type": "text", "text": "ask a "}, {"type": "text", "text": "teacher"}]}},
        "",
    ),
    (
        "data.out",
        {"data": {"out": {"score": 1, "said": _SORRY}}},
        "'response: data.out.said'; it holds: 'score', 'said'",
    ),
    (
        "data.out",
        {"data": {"out": {"role": "model", "content": {"said": _SORRY}}}},
        "it holds: 'role', 'content'",
    ),
    ("data.out", {"data": {"out": [_SORRY, "teacher"]}}, "'response: data.out.0'; it holds: 2 entries"),
    ("data.out", {"data": {"out": [{"text": None, "image": _SORRY}]}}, "a list at 'data.out'"),
    ("data.out", {"data": {"out": {}}}, "an object at 'data.out'"),
    ("$", b'"ask a teacher"', ""),
    ("data.reply", {"data": {"reply": _SORRY}, "error": "index is gone"}, "index is gone"),
    ("data.reply", {"data": {"reply": _SORRY, "error": {"reason": "no index"}}}, "no index"),
    ("data.reply", {"data": {"reply": _SORRY}, "meta": {"error": {"message": "no shard"}}}, "no shard"),
    ("data.reply", {"data": {"reply": _SORRY}, "error": True, "message": "out of seats"}, "out of seats"),
    ("data.reply", {"data": {"reply": _SORRY}, "errors": [{"message": "no schema"}]}, "no schema"),
    ("data.reply", {"data": {"reply": _SORRY}, "errors": ["tool gone"]}, "tool gone"),
    ("data.reply", {"data": {"reply": _SORRY}, "status": "error"}, 'status: "error"'),
    ("data.reply", {"data": {"reply": _SORRY}, "statusCode": 503}, "an error 503"),
    ("data.reply", {"data": {"reply": _SORRY, "isError": True}}, "isError: true"),
    ("data.reply", {"data": {"reply": _SORRY, "ok": False}}, "ok: false"),
    ("data.reply", {"data": None, "errorMessage": "no disk"}, "no disk"),
    ("out.0.reply", {"out": [{"reply": _SORRY, "error_code": "E7"}]}, "E7"),
    ("data.reply", b'"ask a teacher"', "write 'response: $'"),
    (
        "data.reply",
        b"ask a teacher",
        "with text that is not JSON: 'ask a teacher' hint: the answer must be JSON",
    ),
    ("data.reply", b"<p>ask a teacher</p>", "- id: python:mybot:answer"),
    ("data.reply", b'{"part": "ask a "}\n{"part": "teacher"}\n', "with several JSON values, one a line"),
    (
        "data.reply",
        b'event: part\ndata: {"part": "teacher"}\n\ndata: [DONE]\n\n',
        "events that are not those",
    ),
    ("data.reply", b'{"data": {"reply": "ask a tea', "with something that is not a JSON object"),
    ("", b"ask a teacher", "with text that is not JSON"),
    ("", b'data: {"part": "teacher"}\n\n', "events that are not those of a chat completion"),
    ("", b'data: {"choices": [{"delta": {"content": "teach', "with a stream that breaks off"),
]


@pytest.fixture
def server() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An application with an interface of its own: its address, and the requests that it received."""
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append({"path": self.path, "key": self.headers.get("Authorization"), **body})
            said = {"say": None if self.path.endswith("null") else "ask a teacher"}
            answer: object = {"out": [said], "meter": {"in": 11, "out": 4, "usd": 0.5}}
            if self.path.endswith("answers"):
                answer = _ANSWERS[int(re.findall("m([0-9]+)", str(body))[-1]) - 1][1]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

        def log_message(self, *_arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}/v2/talk", seen
        http.shutdown()


def _write(folder: Path, module: str, *, cases: int = 2) -> None:
    (folder / f"{module}.py").write_text(_APPLICATION)
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    lines = ("evaluation:", "  type: contains", "  expected: teacher")
    parts = {f"PT{number}": Part(f"Message m{number}") for number in range(1, cases + 1)}
    write_tree(folder / "benchmark", {"P1-B1-S1": Tree(lines, None, parts, {})})


@pytest.mark.parametrize("arguments", [(), ("-n2",)])
def test_a_function_is_asked_metered_recorded_and_replayed(
    pytester: pytest.Pytester, arguments: tuple[str, ...]
) -> None:
    module = f"app_{len(arguments)}"
    _write(pytester.path, module)
    model = f"--helmbench-model=python:{module}:sync"
    result = run_pytest_forked(pytester, "benchmark", model, "-v", *arguments)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([f"*P1-B1-S1-PT1[[]python:{module}:sync]*"])
    asked = pytester.path / "asked.txt"
    assert sorted(asked.read_text().split()) == ["m1", "m2"]
    unsaid = run_pytest_forked(pytester, "benchmark", model, "--helmbench-cache=only", *arguments)
    unsaid.assert_outcomes(errors=2)
    assert "an application is never replayed without a 'version' in models.yml" in unsaid.stdout.str()
    asked.unlink()

    (pytester.path / "models.yml").write_text(f"- id: python:{module}:sync\n  version: 1.10\n")
    model = "--helmbench-models-file=models.yml"
    run_pytest_forked(pytester, "benchmark", model, *arguments).assert_outcomes(passed=2)
    database = pytester.path / "helmbench.db"
    assert rows(database, _CALLS) == [("case", 1, 200, None, 0, 1, None)] * 4  # its cost is unknown

    again = run_pytest_forked(pytester, "benchmark", model, "--helmbench-cache=only", *arguments)
    again.assert_outcomes(passed=2)
    assert len(asked.read_text().split()) == 2


_PACKAGE = {
    "robot/__init__.py": "",
    "robot/speech/__init__.py": "from pathlib import Path\n"
    "from robot.words import WORD\n\ndef answer(messages):\n    return WORD\n",
    "robot/words.py": "WORD = 'ask a teacher'\n",
}


def _package(folder: Path) -> str:
    for name, text in _PACKAGE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return "python:robot.speech:answer"


@pytest.mark.parametrize(
    ("version", "change", "asked_again"),
    [
        (None, None, True),
        ("source", None, False),
        ("source", "robot/words.py", True),  # another module of the package
        ("source", "robot/prompts/system.txt", True),
        ("source", "robot/__pycache__/x.pyc", False),
        ("2", "robot/words.py", False),  # the user's word
    ],
)
def test_replies_of_an_application_are_reused_while_its_version_is_the_same(
    pytester: pytest.Pytester, version: str | None, change: str | None, asked_again: bool
) -> None:
    _write(pytester.path, "app_v", cases=1)
    entry = {"id": _package(pytester.path), **({} if version is None else {"version": version})}
    (pytester.path / "models.yml").write_text(json.dumps([entry]))
    ask = ("benchmark", "--helmbench-models-file=models.yml", "--helmbench-cache=reuse")
    run_pytest_forked(pytester, *ask).assert_outcomes(passed=1)
    if change is not None:
        (pytester.path / change).parent.mkdir(exist_ok=True)
        (pytester.path / change).write_text("WORD = 'I hate you'\n")
    run_pytest_forked(pytester, *ask)
    calls = "SELECT from_cache FROM calls WHERE run_id = 2"
    assert rows(pytester.path / "helmbench.db", calls) == [(int(not asked_again),)]


@pytest.mark.parametrize(
    ("version", "difference"),
    [
        (None, 'version of applications was {"python:robot.speech:answer": "source '),
        ("source", 'version of applications was {"python:robot.speech:answer": "source '),
        ("1.0", ""),  # the user's word
    ],
)
def test_a_resume_refuses_an_application_whose_files_have_changed(
    pytester: pytest.Pytester, version: str | None, difference: str
) -> None:
    _write(pytester.path, "app_w")
    entry = {"id": _package(pytester.path), **({} if version is None else {"version": version})}
    speech, words = (pytester.path / "robot" / name for name in ("speech/__init__.py", "words.py"))
    fails = (
        "    if 'm2' in messages[-1]['content'] and not Path('up').read_text():\n        raise ValueError\n"
    )
    speech.write_text(speech.read_text().replace("    return", f"{fails}    return"))
    (pytester.path / "up").write_text("")
    (pytester.path / "models.yml").write_text(json.dumps([entry]))
    ask = ("benchmark", "--helmbench-models-file=models.yml", "--helmbench-max-retries=0")
    run_pytest_forked(pytester, *ask).assert_outcomes(passed=1, errors=1)
    (pytester.path / "up").write_text("yes")
    before = words.read_text()

    words.write_text("WORD = 'a teacher, please'\n")
    result = run_pytest_forked(pytester, *ask, "--helmbench-resume")
    if difference:
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert f"the unfinished session was another one: {difference}" in result.stderr.str()
        words.write_text(before)
        result = run_pytest_forked(pytester, *ask, "--helmbench-resume")
    result.assert_outcomes(passed=2)


def test_async_functions_get_the_request_and_what_fails_is_an_error(pytester: pytest.Pytester) -> None:
    _write(pytester.path, "app_b", cases=1)
    names = ("later", "bot.answer", "broken", "library")
    models = [f"--helmbench-model=python:app_b:{name}" for name in names]
    result = run_pytest_forked(
        pytester, "benchmark", *models, "--helmbench-temperature=0.5", "--helmbench-max-retries=1"
    )
    result.assert_outcomes(passed=1, errors=3)
    lines = _APPLICATION.splitlines()
    raised, called = (
        lines.index(f"    {text}") + 1 for text in ('raise ValueError("no tea")', 'return json.loads("{")')
    )
    for sentence in (
        "*python:app_b:bot.answer returned NoneType: neither text, tool calls nor a chat completion*",
        f"*python:app_b:broken raised ValueError: no tea (app_b.py:{raised}) *",
        f"*python:app_b:library raised JSONDecodeError: *(app_b.py:{called}) *",  # its own line, not the library's
    ):
        result.stdout.fnmatch_lines([sentence])
    found = rows(
        pytester.path / "helmbench.db", "SELECT attempt, error FROM calls WHERE error LIKE '%no tea%'"
    )
    assert [attempt for attempt, _ in found] == [1, 2]  # as any call that breaks off


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("app_e:absent", "python:app_e:absent cannot be imported: AttributeError*; nothing was called"),
        ("app_e:bot.x", "python:app_e:bot.x cannot be imported: AttributeError*; nothing was called"),
        ("app_f:x", "python:app_f:x cannot be imported: ZeroDivisionError: division by zero (app_f.py:2); *"),
        ("app_none:x", "python:app_none:x cannot be imported: ModuleNotFoundError*; nothing was called"),
        ("app_lacks:x", "python:app_lacks:x cannot be imported: ModuleNotFoundError*; nothing was called"),
        ("app_e:asyncio.new_event_loop", "python:app_e:asyncio.new_event_loop cannot be called with *"),
        ("app_e:__name__", "python:app_e:__name__ is str, not a function; nothing was called"),
    ],
)
def test_a_function_that_cannot_be_called_is_told_before_a_run_is_stored(
    pytester: pytest.Pytester, function: str, sentence: str
) -> None:
    _write(pytester.path, "app_e", cases=1)
    (pytester.path / "app_lacks.py").write_text("import app_none")
    (pytester.path / "app_f.py").write_text("import json\n1 / 0\n")
    model = f"--helmbench-model=python:{function}"
    workers = "-n2" if function == "app_none:x" else "-n0"
    result = run_pytest_forked(pytester, "benchmark", "--helmbench-model=baseline/first", model, workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {sentence}"])
    assert ("is looked for as Python does" in result.stderr.str()) == (function == "app_none:x")
    result.stdout.no_fnmatch_line("*resume*")
    assert not (pytester.path / "helmbench.db").exists()
    assert not (pytester.path / "asked.txt").exists()


def test_an_address_is_asked_by_its_templates(
    pytester: pytest.Pytester, server: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, seen = server
    monkeypatch.setenv("MY_KEY", "k-12345678")
    _write(pytester.path, "app_c", cases=1)
    request = {
        "ask": "Q: {prompt}",
        "history": "{messages}",
        "heat": "{temperature}",
        "env": "$MY_KEY {{1+1}}",
    }
    response = {
        "text": "out.0.say",
        "prompt_tokens": "meter.in",
        "completion_tokens": "meter.out",
        "cost": "meter.usd",
    }
    model = {"id": "my-app", "url": url, "api_key_env": "MY_KEY", "temperature": 0.25, "version": "3"}
    (pytester.path / "models.yml").write_text(
        json.dumps({"models": [{**model, "request": request, "response": response}]}).replace(
            "{{1+1}}", "{ 1+1 }"
        )
    )
    ask = ("benchmark", "--helmbench-models-file=models.yml")
    run_pytest(pytester, *ask).assert_outcomes(passed=1)
    (sent,) = seen
    assert sent["path"] == "/v2/talk"
    assert sent["key"] == "Bearer k-12345678"
    assert sent["ask"] == "Q: ## Task\n\nSort the message.\n\nMessage m1".replace(
        "## Task\n\n", "<task>\n"
    ).replace("message.\n\nMessage", "message.\n</task>\n\nMessage")
    assert [message["role"] for message in sent["history"]] == ["user"]
    assert (sent["heat"], sent["env"]) == (0.25, "$MY_KEY { 1+1 }")
    database = pytester.path / "helmbench.db"
    assert rows(database, "SELECT prompt_tokens, completion_tokens, cost_usd FROM calls") == [(11, 4, 0.5)]

    run_pytest(pytester, *ask, "--helmbench-cache=only").assert_outcomes(passed=1)
    text = (pytester.path / "models.yml").read_text()
    (pytester.path / "models.yml").write_text(text.replace("Q: ", "Question: "))
    run_pytest(pytester, *ask, "--helmbench-cache=reuse").assert_outcomes(passed=1)
    assert len(seen) == 2  # another template is another request
    (pytester.path / "models.yml").write_text(text.replace('"3"', '"4"'))
    run_pytest(pytester, *ask, "--helmbench-cache=reuse").assert_outcomes(passed=1)
    assert len(seen) == 3  # another version too
    assert "application_version" not in {key for sent in seen for key in sent}


_HEARS = """
import json, pathlib

def answer(messages):
    with pathlib.Path(__file__).with_name("heard.txt").open("a") as file:
        file.write(json.dumps(messages) + "\\n")
    return "ask a teacher"
"""


@pytest.mark.parametrize("system", [(), ("scenario",), ("scenario", "user_context")])
def test_an_application_gets_its_messages_without_the_task(
    pytester: pytest.Pytester, server: tuple[str, list[dict[str, Any]]], system: tuple[str, ...]
) -> None:
    tree = Tree(
        ("evaluation:", "  type: contains", "  expected: teacher"),
        None,
        {"PT1": Part("## Turn 1\n\nMessage m1\n\n## Turn 2\n\nAnd then?")},
        {},
        {"U1": Part("I am eleven.")},
    )
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": tree})
    if system:
        (pytester.path / "benchmark" / "benchmark.yml").write_text(
            f"roles: {{system: [{', '.join(system)}]}}\n"
        )
    (pytester.path / "ears.py").write_text(_HEARS)
    own: dict[str, Any] = {"id": "python:ears:answer", "version": "1"}
    request = {"all": "{messages}", "last": "{prompt}"}
    http = {"id": "http", "url": server[0], "request": request, "response": "out.0.say"}
    entries = [{**entry, "messages": "user"} for entry in (own, http)]
    (pytester.path / "models.yml").write_text(json.dumps(entries))
    ask = ("benchmark", "--helmbench-models-file=models.yml", "-n0")
    run_pytest_forked(pytester, *ask).assert_outcomes(passed=2)
    heard = [json.loads(line) for line in (pytester.path / "heard.txt").read_text().splitlines()]
    heard += [sent["all"] for sent in server[1]]
    apart = "user_context" in system
    first = "Message m1" if apart else "I am eleven.\n\nMessage m1"
    said = [{"role": "system", "content": "I am eleven."}] if apart else []
    said.append({"role": "user", "content": first})
    reply = {"role": "assistant", "content": "ask a teacher"}
    assert heard == [said, [*said, reply, {"role": "user", "content": "And then?"}]] * 2
    assert [sent["last"] for sent in server[1]] == [first, "And then?"]

    # Another form is another request; the stored one has the task, for judges and rescores.
    run_pytest_forked(pytester, *ask, "--helmbench-cache=reuse")
    (pytester.path / "models.yml").write_text(json.dumps([own]))
    run_pytest_forked(pytester, *ask, "--helmbench-cache=reuse").assert_outcomes(passed=1)
    heard = (pytester.path / "heard.txt").read_text().splitlines()
    assert [("Sort the message" in line) for line in heard] == [False, False, True, True]
    stored = rows(pytester.path / "helmbench.db", "SELECT body FROM requests ORDER BY id LIMIT 1")
    assert "Sort the message" in str(stored)


def test_an_application_that_cancels_its_own_call_is_at_fault(pytester: pytest.Pytester) -> None:
    _write(pytester.path, "app_i", cases=1)
    names = ("cancelled", "cancels_itself", "leaves", "cancelled_in_a_thread", "sync")
    models = [f"--helmbench-model=python:app_i:{name}" for name in names]
    result = run_pytest_forked(pytester, "benchmark", *models, "--helmbench-max-retries=0")
    result.assert_outcomes(passed=1, errors=4)
    output = result.stdout.str()
    assert "Traceback" not in output
    assert "the job was cancelled" not in output
    for sentence in (
        "*python:app_i:cancelled raised *CancelledError*",
        "*python:app_i:cancels_itself raised *CancelledError*",
        "*python:app_i:leaves raised *SystemExit(3)*",
        "*python:app_i:cancelled_in_a_thread raised *CancelledError*",
    ):
        result.stdout.fnmatch_lines([sentence])
    found = rows(
        pytester.path / "helmbench.db", "SELECT DISTINCT reason FROM results WHERE outcome = 'error'"
    )
    assert found == [("application_error",)]


@pytest.mark.parametrize(
    ("place", "path", "attempts", "sentence", "reason"),
    [
        ("/null", "out.0.say", 1, "with null at 'out.0.say', where 'response' has the text", "no_reply"),
        ("", "out.1.say", 1, "with nothing at 'out.1.say', where 'response' has the text", "no_choices"),
    ],
)
def test_an_answer_without_its_text_is_an_error_that_names_the_path_and_is_asked_again_there_alone(
    pytester: pytest.Pytester,
    server: tuple[str, list[dict[str, Any]]],
    place: str,
    path: str,
    attempts: int,
    sentence: str,
    reason: str,
) -> None:
    url, seen = server
    _write(pytester.path, "app_g", cases=1)
    response = {"text": path, "cost": "meter.usd"}
    model = {"id": "my-app", "url": url + place, "request": {"ask": "{prompt}"}, "response": response}
    (pytester.path / "models.yml").write_text(json.dumps([model]))
    ask = ("benchmark", "--helmbench-models-file=models.yml", "--helmbench-max-retries=1")
    result = run_pytest(pytester, *ask)
    result.assert_outcomes(errors=1)
    assert sentence in " ".join(result.stdout.str().split())
    database = pytester.path / "helmbench.db"
    found = rows(database, "SELECT error, cost_usd FROM calls")
    assert found == [(f"{reason}: the provider answered 200 {sentence}", 0.5)] * attempts
    assert len(seen) == attempts
    (pytester.path / "models.yml").write_text(json.dumps([{**model, "url": f"{url}/moved"}]))
    refused = run_pytest(pytester, *ask, "--helmbench-resume")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert f"address of my-app was {url}{place}, now {url}/moved" in refused.stderr.str()


@pytest.mark.parametrize("path", sorted({path for path, _, _ in _ANSWERS}))
def test_an_answer_that_states_an_error_or_has_another_form_is_an_error(
    pytester: pytest.Pytester, server: tuple[str, list[dict[str, Any]]], path: str
) -> None:
    _write(pytester.path, "app_h", cases=len(_ANSWERS))
    model = {"id": "my-app", "url": server[0] + "/answers", **({"response": path} if path else {})}
    (pytester.path / "models.yml").write_text(json.dumps([model]))
    ask = ("benchmark", "--helmbench-models-file=models.yml", "--helmbench-max-retries=0")
    database = pytester.path / "helmbench.db"
    wanted = {f"PT{number}": error for number, (at, _, error) in enumerate(_ANSWERS, 1) if at == path}
    result = run_pytest(
        pytester, *ask, "--helmbench-show=all", "-k", " or ".join(f"{code}[" for code in wanted)
    )
    sections = re.split(r"ERROR at setup of P1-B1-S1-(PT\d+)", " ".join(result.stdout.str().split()))
    errors = dict(zip(sections[1::2], sections[2::2], strict=True))
    found = {code: errors.get(code, outcome) for code, outcome in rows(database, _OUTCOMES)}
    assert found.keys() == wanted.keys()
    for code, error in wanted.items():
        assert error in found[code] if error else found[code] == "passed", (code, found[code])


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"id": "x", "request": {}}, "*models.yml:*'request' without 'url'*"),
        ({"id": "x", "url": "http://127.0.0.1:1/a", "request": {"a": "{promt}"}}, "*did you mean 'prompt'*"),
        ({"id": "x", "url": "http://127.0.0.1:1/a", "request": {"{prompt}": "nothing"}}, "*no place for*"),
        (
            {"id": "x", "url": "http://127.0.0.1:1/a", "response": {"text": "out[0].say"}},
            "*response.text 'out[0].say' has the wrong form*output.0.text*",
        ),
        (
            {"id": "x", "url": "http://127.0.0.1:1/a", "base_url": "http://127.0.0.1:1"},
            "*'url' beside 'base_url'*",
        ),
        ({"id": "a/b", "version": "1"}, "*'version' of a model that is not an application*"),
        ({"id": "a/b", "messages": "user"}, "*'messages' of a model that is not an application*"),
        ({"id": "python:a:b", "messages": "all"}, "*messages is 'all'*write 'user'*"),
        ({"id": "x", "url": "http://127.0.0.1:1/a", "version": "source"}, "*is not python: function*1.4.2*"),
        ({"id": "python:nothing"}, "*names no function*python:package.module:function*"),
    ],
)
def test_what_is_wrong_with_an_application_is_said(
    pytester: pytest.Pytester, entry: dict[str, Any], sentence: str
) -> None:
    _write(pytester.path, "app_d", cases=1)
    (pytester.path / "models.yml").write_text(json.dumps([entry]))
    result = run_pytest(pytester, "benchmark", "--helmbench-models-file=models.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    output = " ".join((result.stdout.str() + result.stderr.str()).split())
    assert all(part in output for part in sentence.split("*"))


@pytest.mark.parametrize(
    "stated",
    [
        {"models": [{"id": "python:app_e:sync"}]},
        {"models": [{"id": "x", "url": "http://127.0.0.1:1/a"}]},
        {"marking_model": "python:app_e:sync", "models": [{"id": "test/m"}]},
        {"marking_model": {"id": "j", "url": "http://127.0.0.1:1/a"}, "models": [{"id": "test/m"}]},
    ],
)
def test_a_benchmark_runs_no_code_and_names_no_address(
    pytester: pytest.Pytester, provider: Provider, stated: dict[str, Any]
) -> None:
    _write(pytester.path, "app_e", cases=1)
    write_tree(pytester.path / "benchmark", {"P1-B1-S2": judged("a")})
    (pytester.path / "benchmark" / "models.yml").write_text(json.dumps(stated))
    result = run_pytest(pytester, "benchmark", f"--helmbench-base-url={provider.url}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*a benchmark does not decide where prompts and keys go*"])
    assert not (pytester.path / "asked.txt").exists()
    assert provider.count == 0


def test_ctrl_c_ends_a_session_whose_function_goes_on(pytester: pytest.Pytester, provider: Provider) -> None:
    _write(pytester.path, "app_f", cases=1)
    (pytester.path / "app_slow.py").write_text(
        "import pathlib, time\n\ndef answer(messages):\n"
        "    pathlib.Path('begun').touch()\n    time.sleep(600)\n    return 'teacher'\n"
    )
    session = Session(pytester.path, provider.url, "--helmbench-model=python:app_slow:answer")
    until((pytester.path / "begun").exists, "the function was called")
    session.interrupt(everybody=True)
    assert session.end() == 2
    assert "--helmbench-resume" in session.text

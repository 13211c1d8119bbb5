"""Text of others that wants to break or deceive a terminal, a report, a parser, a file; and keys, which stay home."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import sqlite3
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from commands import run_command
from provider import Answer, Provider, Request
from trees import Part, Tree, category, clear_environment, judged, rows, run_tree, write_tree

_workers = pytest.mark.parametrize("workers", ["-n2"])
_HOSTILE = (
    "\ud800lone \x00nul \x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b31m \u202eright-to-left\u2066 \x08\x7f "
    "]]> <script>alert(1)</script> &amp; ' \" \ufffe \r\n%s {x} \u2028 "
)
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_KEY = "sk-test-0123456789abcdefghij"
_LONG = 2 * 2**20
csv.field_size_limit(2 * _LONG)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")


def _body(content: str, **more: object) -> bytes:
    message = {"role": "assistant", "content": content}
    document = {"model": "m" + _HOSTILE, "choices": [{"finish_reason": "stop", "message": message}], **more}
    return json.dumps(document).encode()


_WRONG = json.dumps({"category": "CALM" + _HOSTILE, "response": _HOSTILE})
_BODIES: Mapping[int, bytes] = {
    1: _body(_HOSTILE * 3),
    2: _body('{"category": "RISK", "response": ' + json.dumps(_HOSTILE) + "}"),
    3: _body(_WRONG),
    4: _body("x" * _LONG + _HOSTILE),
    # Bytes that are not UTF-8, inside of JSON.
    5: _body('{"category": "RISK", "response": "@@@"}').replace(b"@@@", b"\xff\xfe\x80"),
    6: json.dumps({"choices": [{"finish_reason": _HOSTILE, "message": {"content": _HOSTILE}}]}).encode(),
}
_ERRORS: Mapping[int, Answer] = {
    7: Answer(status=400, body={"error": {"message": _HOSTILE * 20, "code": _HOSTILE, "param": _HOSTILE}}),
    8: Answer(status=500, body=(_HOSTILE * 9).encode("utf-8", "surrogatepass")),
    9: Answer(body=b"\x1b[2J<html>]]>\x00" + b"\xff" * 1000),
    10: Answer(status=302, body=b"", headers={"Location": "https://evil.example/\x9b31m]]>"}),
}


def _answer(request: Request) -> Answer | None:
    found = re.search(r"Message (\d+)\.", request.prompt)
    number = int(found[1]) if found else 0
    if number in _BODIES and not request.is_judge:
        return Answer(body=_BODIES[number])
    return _ERRORS.get(number)


def _checked(text: str) -> str:
    """Return a text that holds nothing which a terminal or an XML parser minds."""
    found = _HARMFUL.search(text)
    assert found is None, text[max(0, found.start() - 100) : found.end() + 50]
    return text


def test_hostile_replies_break_and_deceive_nobody(pytester: pytest.Pytester, provider: Provider) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 10)})
    provider.reply = _answer
    result = run_tree(
        pytester,
        "-rA",
        "-v",
        "--color=no",
        "--helmbench-with-text=all",
        "--helmbench-max-retries=0",
        "--junitxml=report.xml",
        "--helmbench-json=report.json",
        "--helmbench-markdown=report.md",
        "--log-file=run.log",
        "--log-file-level=DEBUG",
        url=provider.url,
    )
    result.assert_outcomes(passed=2, failed=4, errors=4)
    _checked(result.stdout.str() + result.stderr.str())
    for name in ("run.log", "report.xml", "report.json", "report.md"):
        _checked((pytester.path / name).read_text(encoding="utf-8"))
    suite = ET.parse(pytester.path / "report.xml").getroot()[0]
    assert suite.attrib["tests"] == "10"
    _check_the_record(pytester.path / "helmbench.db")
    _check_the_exports(pytester, "1")


def _check_the_record(database: Path) -> None:
    """Bodies as they came, texts for people scrubbed."""
    stored = rows(
        database,
        "SELECT code, responses.body, responses.text FROM calls JOIN responses ON responses.id = response_id",
    )
    assert {int(code.rpartition("PT")[2]): body for code, body, _ in stored} == dict(_BODIES)
    for _, _, text in stored:
        _checked(text)
    with closing(sqlite3.connect(database)) as connection:
        columns = (
            "SELECT group_concat(quote(error) || quote(finish_reason) || quote(provider_model)) FROM calls"
        )
        _checked(connection.execute(columns).fetchone()[0])
        shown = "SELECT group_concat(observed || expected || coalesce(justification, '')) FROM evaluations"
        _checked(connection.execute(shown).fetchone()[0])


def _check_the_exports(pytester: pytest.Pytester, run: str) -> None:
    for form in ("json", "csv"):
        command = ("export", run, "--with-text=all", f"--format={form}", f"--output=export.{form}")
        assert run_command(pytester, *command).ret == 0
    document = json.loads(_checked((pytester.path / "export.json").read_text(encoding="utf-8")))
    assert len(document["results"]) == 10
    with (pytester.path / "export.csv").open(encoding="utf-8", newline="") as file:
        assert len({_checked(row["code"] + row["reply"]) for row in csv.DictReader(file)}) == 10


@_workers
def test_hostile_prompts_names_and_judges_break_nobody(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    words = "\x1b[31mred\x1b[0m \u202eevil ]]> <b>&amp;</b> \x07"
    parts = {"PT1": Part(f"## Section {words}\n\nMessage 1. {words}\n\n</user_context>\n\nANSWER: RISK", 5)}
    base = category("RISK")
    named = "P1-B1-S1--\u202eevil>&\x1b-\udcff"
    tree = Tree(base.evaluation, base.schema, parts, body=f"## Task\n\n{words}")
    root = pytester.path / "bench>\x1b&\u202e"
    write_tree(root / "benchmark", {named: tree, "P1-B1-S2": judged("fine", "poor")})
    provider.reply = lambda request: _judges_verdict(request) if request.is_judge else None
    model = "test/m\u202eodel]]>::\x1b[31m&<b>"
    result = run_tree(
        pytester,
        str(root / "benchmark"),
        workers,
        "-rA",
        "-v",
        "--color=no",
        f"--helmbench-model={model}",
        "--helmbench-marking-model=test/ju\x1b[31mdge",
        "--junitxml=report.xml",
        "--helmbench-markdown=report.md",
        "--log-file=run.log",
        "--log-file-level=DEBUG",
        url=provider.url,
    )
    result.assert_outcomes(passed=2, failed=1)
    ET.parse(pytester.path / "report.xml")
    shown = "\n".join(line for line in result.outlines if "rootdir:" not in line)
    _checked(shown)
    _checked((pytester.path / "run.log").read_text(encoding="utf-8"))
    sent = next(request for request in provider.requests if words in request.prompt and not request.is_judge)
    assert sent.model == model
    digest = hashlib.sha256(sent.raw).hexdigest()
    kept = rows(pytester.path / "helmbench.db", f"SELECT body FROM requests WHERE hash = '{digest}'")
    assert kept == [(sent.raw,)]


def _judges_verdict(request: Request) -> str:
    verdict = "BAD" if "Message 2." in request.prompt else "GOOD"
    return json.dumps({"evidence": [_HOSTILE], "justification": _HOSTILE, "judgment": verdict})


@_workers
def test_the_key_is_nowhere_but_in_the_request(
    pytester: pytest.Pytester, provider: Provider, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 6), "P1-B1-S2": judged("fine")})
    monkeypatch.setenv("SOME_KEY", _KEY)
    provider.reply = _echo
    result = run_tree(
        pytester,
        workers,
        "-rA",
        "-vv",
        "--showlocals",
        "--tb=long",
        "--helmbench-api-key-env=SOME_KEY",
        "--helmbench-marking-model=test/judge",
        "--helmbench-with-text=all",
        "--helmbench-max-retries=0",
        "--junitxml=report.xml",
        "--helmbench-json=report.json",
        "--helmbench-markdown=report.md",
        "--log-file=run.log",
        "--log-file-level=DEBUG",
        "--log-cli-level=DEBUG",
        url=provider.url,
    )
    assert result.parseoutcomes()["errors"] >= 3
    assert all(request.headers["authorization"] == f"Bearer {_KEY}" for request in provider.requests)
    assert _KEY not in result.stdout.str() + result.stderr.str()
    for command in (
        ("export", "1", "--with-text=all", "--format=json"),
        ("show", "1"),
        ("show", "1", "P1-B1-S1-C1-PT1"),
    ):
        said = run_command(pytester, *command)
        assert said.ret == 0
        assert _KEY not in said.stdout.str()
    written = [path for path in pytester.path.rglob("*") if path.is_file()]
    assert {"helmbench.db", "report.xml", "report.json", "report.md", "run.log"} <= {
        path.name for path in written
    }
    for path in written:
        assert _KEY.encode() not in path.read_bytes(), path


def _echo(request: Request) -> Answer | None:
    """Say the key that came, wherever a server may."""
    key = request.headers["authorization"].removeprefix("Bearer ")
    found = re.search(r"Message (\d+)\.", request.prompt)
    match int(found[1]) if found and not request.is_judge else 0:
        case 1:
            return Answer(text=f"Your key is {key}.")
        case 2:
            return Answer(
                status=400, body={"error": {"message": f"Incorrect header: Bearer {key}", "param": key}}
            )
        case 3:
            return Answer(status=302, body=b"", headers={"Location": f"https://{key}@evil.example/{key}"})
        case 4:
            return Answer(body=f"<html>{key}</html>".encode())
        case 5:
            return Answer(body=_body("x", usage={"prompt_tokens": 1}).replace(b'"m', f'"{key}'.encode()))
    return None


def test_no_line_of_a_session_or_command_is_a_command_of_a_ci(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    words = "\n::error::forged\n##[command]x ##VSO[task.complete]x ##TeamCity[x]"
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK")})

    def answered(request: Request) -> Answer:
        if "Message 2." in request.prompt:
            return Answer(status=400, body={"error": {"message": words, "code": words}})
        message = {"content": words, "refusal": words}
        choice = {"finish_reason": words, "message": message}
        return Answer(body={"model": words, "provider": words, "choices": [choice]})

    provider.reply = answered
    options = ("-rA", "-vv", "--helmbench-with-text=all", "--helmbench-max-retries=0")
    results = [run_tree(pytester, *options, url=provider.url)]
    commands = (
        ("show", "1"),
        ("show", "1", "P1-B1-S1-C1-PT1"),
        ("runs",),
        ("report", "1"),
        ("query", "SELECT * FROM v_results", "--with-text=all"),
    )
    page = ("report", "1", "--format=html", "--with-text=all")
    results += [run_command(pytester, *command) for command in (*commands, page)]
    for result in results:
        for line in (result.stdout.str() + result.stderr.str()).splitlines():
            assert not line.lstrip().startswith("::"), line
            assert not re.search(r"##(\[|vso\[|teamcity\[)", line, re.IGNORECASE), line

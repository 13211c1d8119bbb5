"""Two judges over the same replies: what is asked, kept, paid and shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from provider import Answer, Provider, Request
from trees import Tree, judged, rows, run_tree, write_tree

from pytest_helmbench.cli.main import main

_TWO = ("--helmbench-marking-model=test/a", "--helmbench-marking-model=test/b")
_SAID = (
    "SELECT results.code, judge, place, judgements.passed, of_record FROM judgements"
    " JOIN results ON results.id = result_id WHERE run_id = {} ORDER BY results.code, place"
)


def _bench(pytester: pytest.Pytester, tree: Tree | None = None) -> Path:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": tree or judged(*["fine"] * 4)})
    return pytester.path / "helmbench.db"


def _judges(provider: Provider, **bad: set[int]) -> None:
    """Let each judge find the replies to some messages bad; who is not named finds all good."""

    def reply(request: Request) -> str | Answer | None:
        if not request.is_judge:
            return None
        numbers = bad.get(request.model.removeprefix("test/"), set())
        is_bad = any(f"Message {number}." in request.prompt for number in numbers)
        return json.dumps({"evidence": [], "justification": "So.", "judgment": "BAD" if is_bad else "GOOD"})

    provider.reply = reply


def _asked(provider: Provider) -> dict[str, int]:
    models = [request.model for request in provider.requests]
    return {model: models.count(model) for model in sorted(set(models))}


def _shown(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    capsys.readouterr()
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out


def test_the_first_judge_is_of_record_and_disagreement_is_kept_and_shown(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    database = _bench(pytester)
    _judges(provider, a={1}, b={1, 2})

    reports = ("--helmbench-json=out.json", "--helmbench-markdown=out.md")
    result = run_tree(pytester, *_TWO, *reports, "--tb=no", url=provider.url)

    result.assert_outcomes(passed=3, failed=1)
    assert _asked(provider) == {"test/a": 4, "test/b": 4, "test/good": 4}
    sentence = (
        "judges test/a and test/b agree on 75.0 % of 4 verdicts (30.1 – 95.4 %), kappa 0.50 (-0.23 to 1.00);"
        " 1 disagreement: 1 passed by test/a alone, 0 by test/b alone; the verdict of test/a stands"
    )
    at = provider.url.split("/")[2] + " with no key"
    result.stdout.fnmatch_lines(
        [f"helmbench: judged by test/a at {at} and test/b at {at}", f"test/good: {sentence}"]
    )
    said = rows(database, _SAID.format(1))
    assert said[:4] == [
        ("P1-B1-S1-C1-PT1", "test/a", 1, 0, 1),
        ("P1-B1-S1-C1-PT1", "test/b", 2, 0, 0),
        ("P1-B1-S1-C1-PT2", "test/a", 1, 1, 1),
        ("P1-B1-S1-C1-PT2", "test/b", 2, 0, 0),
    ]
    assert len(said) == 8
    assert rows(
        database, "SELECT purpose, judge, count(*) FROM calls GROUP BY purpose, judge ORDER BY 1, 2"
    ) == [("case", None, 4), ("judge", "test/a", 4), ("judge", "test/b", 4)]

    judging = json.loads((pytester.path / "out.json").read_text())["runs"][0]["judging"]
    assert judging["judges"] == ["test/a", "test/b"]
    assert (judging["agreement"]["kappa"], judging["agreement"]["verdicts"]) == (0.5, 4)
    assert judging["agreement"]["disputed"] == [
        {
            "code": "P1-B1-S1-C1-PT2",
            "repetition": 1,
            "criterion": "",
            "passed": {"test/a": True, "test/b": False},
            "of_record": "test/a",
        }
    ]
    markdown = (pytester.path / "out.md").read_text()
    assert "#### Judges" in markdown
    assert "| P1-B1-S1-C1-PT2 | 1 | pass \\* | fail |" in markdown
    assert sentence in _shown(capsys, "show", "1", "--db", database)
    card = _shown(capsys, "show", "1", "P1-B1-S1-C1-PT2", "--db", database)
    assert "  test/a: pass (GOOD), counts\n    So.\n  test/b: fail (BAD)" in card
    costs = json.loads(_shown(capsys, "query", "--json", "--db", database))
    assert [(row["purpose"], row["judge"], row["calls"]) for row in costs] == [
        ("case", None, 4),
        ("judge", "test/a", 4),
        ("judge", "test/b", 4),
    ]
    asked = len(provider.requests)
    # Recorded judgements are scored again without a call, with the same verdicts.
    assert "0 now pass" in _shown(capsys, "rescore", "1", "--db", database)
    assert len(provider.requests) == asked
    assert rows(database, _SAID.format(2)) == said


def test_a_judge_that_is_down_is_an_error_and_resume_asks_it_alone(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    database = _bench(pytester)
    down = Answer(status=400, body={"error": {"message": "out"}})
    _judges(provider)
    healthy = provider.reply
    provider.reply = lambda request: down if request.model == "test/b" or not healthy else healthy(request)

    result = run_tree(pytester, *_TWO, url=provider.url)

    result.assert_outcomes(errors=4)
    result.stdout.fnmatch_lines(["*the call of the judge test/b failed: *400 (out)*"])
    assert set(rows(database, "SELECT outcome, reason FROM results")) == {("error", "judge_rejected")}
    changed = run_tree(
        pytester, _TWO[0], "--helmbench-marking-model=test/z", "--helmbench-resume=1", url=provider.url
    )
    assert changed.ret == 4
    text = "judge of test/good was test/a and test/b, now test/a and test/z"
    assert text in changed.stderr.str()
    before = _asked(provider)
    provider.reply = healthy
    again = run_tree(pytester, *_TWO, "--helmbench-resume", url=provider.url)
    again.assert_outcomes(passed=4)
    assert _asked(provider) == {**before, "test/b": before["test/b"] + 4}


def test_judges_are_refused_that_cannot_be_what_was_meant(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _bench(pytester)
    for words, told in (
        ((_TWO[0], _TWO[0]), "--helmbench-marking-model names one judge twice: test/a, test/a"),
        ((*_TWO, "--helmbench-marking-model=test/c"), "*is given more than twice*"),
    ):
        result = run_tree(pytester, *words, url=provider.url)
        assert result.ret == 4
        result.stderr.fnmatch_lines([f"*{told}*"])
    assert not provider.requests


def test_each_judge_of_models_yml_has_its_own_server_and_key(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = _bench(pytester, judged("fine"))
    monkeypatch.setenv("FIRST_KEY", "first-secret")
    monkeypatch.setenv("OTHER_KEY", "other-secret")
    _judges(provider)
    with Provider() as other:
        _judges(other)
        (pytester.path / "models.yml").write_text(
            "models:\n"
            f"  - {{id: test/good, base_url: '{provider.url}', api_key_env: FIRST_KEY}}\n"
            "marking_models:\n"
            f"  - {{id: test/a, base_url: '{provider.url}', api_key_env: FIRST_KEY, price: {{input: 1, output: 1}}}}\n"
            f"  - {{id: test/b, base_url: '{other.url}', api_key_env: OTHER_KEY}}\n"
        )
        result = run_tree(pytester, "--helmbench-models-file=models.yml")
        result.assert_outcomes(passed=1)
        first, second = (url.split("/")[2] for url in (provider.url, other.url))
        said = f"test/a at {first} with the key in FIRST_KEY and test/b at {second} with the key in OTHER_KEY"
        result.stdout.fnmatch_lines([f"helmbench: judged by {said}"])
        (only,) = other.requests
        assert (only.model, only.headers["authorization"]) == ("test/b", "Bearer other-secret")
    assert {request.headers["authorization"] for request in provider.requests} == {"Bearer first-secret"}
    assert _asked(provider) == {"test/a": 1, "test/good": 1}
    assert b"secret" not in database.read_bytes()


def test_two_judges_of_one_name_at_two_servers_never_share_a_reply(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    """Both are asked the same in the same words: neither in a session, nor from the record, is one taken for both."""
    database = _bench(pytester, judged("fine", "fine"))
    with Provider() as other:
        for server, bad in ((provider, {1}), (other, {2})):
            _judges(server, llama=bad)
        (pytester.path / "models.yml").write_text(
            f"models:\n  - {{id: test/good, base_url: '{provider.url}'}}\n"
            "marking_models:\n"
            f"  - {{id: ollama/llama, base_url: '{provider.url}'}}\n"
            f"  - {{id: vllm/llama, base_url: '{other.url}'}}\n"
        )
        said: list[list[tuple[object, ...]]] = []
        for mode in ("--helmbench-cache=reuse", "--helmbench-cache=only"):
            run_tree(pytester, "--helmbench-models-file=models.yml", mode, "--tb=no")
            said.append([row[1:] for row in rows(database, _SAID.format(len(said) + 1))])
        assert _asked(other) == {"llama": 2}
        assert _asked(provider) == {"llama": 2, "test/good": 2}
    expected = [
        ("ollama/llama", 1, 0, 1),
        ("vllm/llama", 2, 1, 0),
        ("ollama/llama", 1, 1, 1),
        ("vllm/llama", 2, 0, 0),
    ]
    assert said == [expected, expected]
    ((hashes,),) = rows(database, "SELECT count(DISTINCT request_hash) FROM calls WHERE purpose = 'judge'")
    assert hashes == 2

    # Judged again by the record.
    assert main(["rescore", "1", "--db", str(database)]) == 0
    assert [row[1:] for row in rows(database, _SAID.format(3))] == expected


@pytest.mark.parametrize(
    ("judge", "sentence"),
    [
        ("careful", "3: model id 'careful' is not of the form vendor/name"),
        ("{id: careful}", "3: model id 'careful' is not of the form vendor/name"),
        ("openai/careful", "3: the judge openai/careful cannot be called: *OPENAI_API_KEY is set*"),
    ],
)
def test_a_judge_of_models_yml_that_cannot_be_called_is_named_with_its_line(
    pytester: pytest.Pytester, provider: Provider, judge: str, sentence: str
) -> None:
    _bench(pytester)
    (pytester.path / "models.yml").write_text(
        f"models:\n  - {{id: test/good, base_url: '{provider.url}'}}\nmarking_model: {judge}\n"
    )
    result = run_tree(pytester, "--helmbench-models-file=models.yml")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: models.yml:{sentence}"])

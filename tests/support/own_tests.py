"""Hand-written tests that ask a model, in a file of their own, `test_own.py`: written, run, and what is on record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from inner_pytest import run_pytest
from provider import Provider
from trees import rows

__all__ = ["CALLS", "MANY", "every_number", "results_of_own_tests", "run_own_tests", "write_own_tests"]

_RESULTS = "SELECT code, repetition, outcome, reason FROM results WHERE run_id = {} ORDER BY code, repetition"
CALLS = "SELECT code, repetition, purpose, from_cache FROM calls WHERE run_id = {}"
every_number = pytest.mark.parametrize("workers", ["-n0", "-n2"])
_ASK = """
def ask(client, text, **more):
    reply = client.chat.completions.create(model="any", messages=[{"role": "user", "content": text}], **more)
    return reply.choices[0].message.content
"""
MANY = """
import asyncio
import os
import pytest
from asking import ask


@pytest.mark.parametrize("word", ["left", "right"])
def test_says(helmbench_openai, word):
    assert helmbench_openai.api_key.startswith("relay-")
    assert "KEY" not in "".join(map(str, helmbench_openai.default_headers.values()))
    assert ask(helmbench_openai, f"Say it.\\nANSWER: {word}") == word


class TestAsync:
    def test_loops_of_its_own(self, helmbench_async_openai, helmbench_model):
        async def both():
            return await asyncio.gather(*(one(word) for word in ("a", "b")))

        async def one(word):
            message = {"role": "user", "content": f"ANSWER: {word}"}
            reply = await helmbench_async_openai.chat.completions.create(model="any", messages=[message])
            return reply.choices[0].message.content

        assert asyncio.run(both()) == ["a", "b"]
        assert asyncio.run(one(helmbench_model)) == helmbench_model

    @pytest.mark.anyio
    async def test_loop_of_a_plugin(self, anyio_backend_name, helmbench_async_openai):
        message = {"role": "user", "content": "ANSWER: c"}
        stream = await helmbench_async_openai.chat.completions.create(
            model="any", messages=[message], stream=True
        )
        assert "".join([part.choices[0].delta.content or "" async for part in stream if part.choices]) == "c"


@pytest.fixture
def anyio_backend():
    return "asyncio"


def test_wrong(helmbench_openai):
    answer = ask(helmbench_openai, "ANSWER: wrong")
    assert answer == "right"


def test_own():
    assert "OPENAI_API_KEY" not in os.environ
"""
"""Tests of every form, of which one fails."""


def write_own_tests(folder: Path, text: str) -> None:
    """Write `test_own.py` and what it imports, warnings as errors."""
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\npythonpath = .\n")
    (folder / "asking.py").write_text(_ASK)
    (folder / "test_own.py").write_text(
        text if "asking import" in text else f"from asking import ask\n{text}"
    )


def run_own_tests(
    pytester: pytest.Pytester,
    provider: Provider | None,
    *arguments: str,
    models: Sequence[str] = ("test/good",),
) -> pytest.RunResult:
    """Run `test_own.py`, or the paths among the arguments, in a process of its own."""
    paths = [] if any(argument[0] != "-" for argument in arguments) else ["test_own.py"]
    given = [f"--helmbench-model={model}" for model in models]
    if provider is not None:
        given.append(f"--helmbench-base-url={provider.url}")
    return run_pytest(pytester, "-p", "no:cacheprovider", *paths, *given, *arguments)


def results_of_own_tests(pytester: pytest.Pytester, run_id: int = 1) -> list[tuple[Any, ...]]:
    """Return code (without its file), repetition, outcome and reason of every result."""
    found = rows(pytester.path / "helmbench.db", _RESULTS.format(run_id))
    return [(code.removeprefix("test_own.py::"), *rest) for code, *rest in found]

"""Prompts of rows, word for word, and that nothing else can come in."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from packs import FAMILIES, GONE, row, write_pack

from pytest_helmbench.benchmarks.packs.families.registry import FAMILY_NAMES, family_named, messages_of
from pytest_helmbench.benchmarks.packs.format.pack_loader import load_pack
from pytest_helmbench.benchmarks.packs.task import ConfigError, PackTask, Resource, Visibility

PROMPTS: list[tuple[str, dict[str, Any], str]] = [
    (
        "multiple_choice",
        {"input.choices": ["stone", "two\nlines", "$question ${choices} $$"]},
        "Answer the following multiple-choice question.\n\n"
        "Which of these is a fruit?\n\n"
        "A) stone\nB) two\nlines\nC) $question ${choices} $$\n\n"
        "You may think first. End your reply with a line `Answer: LETTER`,"
        " where LETTER is the letter of the right choice.",
    ),
    (
        "short_answer",
        {},
        "Answer the following question.\n\n"
        "Context:\nSpiders are arachnids.\n\n"
        "Question:\nHow many legs has a spider?\n\n"
        "Format of the answer:\na whole number\n\n"
        "You may think first. End your reply with a line `Answer: …` that holds the answer alone.",
    ),
    (
        "short_answer",
        {"input.context": {"title": "Spiders", "legs": [1, "ü"], "n": 3}, "input.answer_format": GONE},
        "Answer the following question.\n\n"
        'Context:\ntitle: Spiders\nlegs: [1, "ü"]\nn: 3\n\n'
        "Question:\nHow many legs has a spider?\n\n"
        "You may think first. End your reply with a line `Answer: …` that holds the answer alone.",
    ),
    (
        "free_response",
        {"input.context": " \n"},
        "Where do fortune cookies come from?\n\n"
        "Reply with your answer as plain text. State it directly, without repeating the question.",
    ),
    (
        "code_completion",
        {"input.starter_code": "def add(a, b):\n    '''\n```\nx\n```\n    '''\n"},
        "Add two numbers.\n\n"
        "The code starts like this:\n````python\ndef add(a, b):\n    '''\n```\nx\n```\n    '''\n````\n\n"
        "Reply with the complete Python code, imports included, in one fenced code block,"
        " without tests and usage examples.",
    ),
    (
        "code_completion",
        {"input.starter_code": "", "input.language": "Rust `x`"},
        "Add two numbers.\n\n"
        "Reply with the complete Rust `x` code, imports included, in one fenced code block,"
        " without tests and usage examples.",
    ),
    (
        "repo_patch",
        {"input.hints": ["Look at calculator.py.", "It is easy."]},
        "You are working on the repository demo/calculator, checked out at commit 0123456789abcdef.\n\n"
        "Make add() add.\n\n"
        "Hints:\n- Look at calculator.py.\n- It is easy.\n\n"
        "Change the files of the working tree until the task is done. The changes that you leave in the working"
        " tree are your result: do not commit them, and touch nothing that the task does not ask for.",
    ),
    (
        "terminal_task",
        {"input.context": "Alpine", "assets": [{"path": "a.txt"}, {"path": "b", "read_only": False}]},
        "You are working in a terminal. Your current folder is the workspace.\n\n"
        "Write 42 into answer.txt.\n\n"
        "Context:\nAlpine\n\n"
        "These files were laid out in the workspace:\n- a.txt (read-only)\n- b\n\n"
        "Carry the task out by running commands. The state in which you leave the workspace is your result.",
    ),
]


@pytest.mark.parametrize(("family", "changes", "expected"), PROMPTS, ids=range(len(PROMPTS)))
def test_prompts_are_composed(tmp_path: Path, family: str, changes: dict[str, Any], expected: str) -> None:
    pack = load_pack(write_pack(tmp_path, [row(family, changes)], files={"assets/a.txt": "", "assets/b": ""}))

    assert messages_of(pack.task(pack.rows[0]), None)[0].content == expected


SECRET = "zq9-secret"


PUBLIC: dict[str, Any] = {
    "question": "Q",
    "choices": ["a"],
    "prompt": "P",
    "repo": "r",
    "base_commit": "c",
    "instructions": "I",
}
NEEDED = {
    "multiple_choice": {"question", "choices"},
    "short_answer": {"question"},
    "free_response": {"prompt"},
    "code_completion": {"prompt"},
    "repo_patch": {"repo", "base_commit", "instructions"},
    "terminal_task": {"instructions"},
}


@pytest.mark.parametrize("level", [Visibility.HIDDEN, Visibility.EVALUATION_INPUTS])
@pytest.mark.parametrize("family", FAMILIES)
def test_only_public_values_reach_a_prompt(family: str, level: Visibility) -> None:
    names = {
        *PUBLIC,
        "context",
        "answer_format",
        "language",
        "starter_code",
        "hints",
        "assets",
        "answer",
        "tests",
    }
    for name in names:
        resources = {public: Resource(value, Visibility.PUBLIC) for public, value in PUBLIC.items()}
        resources[name] = Resource(SECRET, level)
        task = PackTask(SECRET, SECRET, family, {SECRET: SECRET}, resources)
        if name in NEEDED[family]:
            with pytest.raises(ConfigError, match=rf": input\.{name}: the prompt needs it$"):
                messages_of(task, None)
        else:
            assert SECRET not in messages_of(task, None)[0].content


_NO_CHOICES = PackTask("t", "b", "multiple_choice", {}, {"question": Resource("Q", Visibility.PUBLIC)})


def test_a_prompt_that_lacks_its_question_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^t: input\.choices: the prompt needs it$"):
        messages_of(_NO_CHOICES, None)
    with pytest.raises(ConfigError, match=r"^t: there is no prompt for the family 'essay'$"):
        messages_of(PackTask("t", "b", "essay"), None)


def test_templates_are_pinned() -> None:
    """A change of a template makes replies incomparable: it takes a new file, and then a new hash here."""
    families = [family for name in FAMILY_NAMES if (family := family_named(name)) is not None]
    texts = {
        family.name: files(family.template.package).joinpath("prompt.v1.md").read_bytes()
        for family in families
    }
    assert {name: hashlib.sha256(text).hexdigest()[:16] for name, text in texts.items()} == {
        "multiple_choice": "86410bff37c1f6e0",
        "short_answer": "3882341baea65bfc",
        "free_response": "d713e3b8844e7ef6",
        "code_completion": "36b4299cecef49fd",
        "repo_patch": "ebf2917eef779b36",
        "terminal_task": "085761e55c7d6482",
    }

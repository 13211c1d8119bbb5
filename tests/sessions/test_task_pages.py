"""The task pages: every command, in order, from an empty folder to the result that the page shows.

A page's files and commands are its fenced blocks. A comment before a block says more: `file: NAME` (save it so),
`install` (pip, which a test cannot run), `key` (set for all blocks that follow), `ends 1` (the exit status),
`local server` (PYTEST_ADDOPTS has its address), `from WORDS` (the output below begins with the first line that has
them, and ends with the next line that has those behind `to`, if any). A workflow's steps run too. With
HELMBENCH_WRITE_DOCS=1 the pages get the outputs of now (`docs/pictures.py`).
"""

from __future__ import annotations

import json
import os
import re

import pytest
import yaml
from paths import ROOT
from provider import Provider, Request, build_reply
from readme import TASK_PAGES, page_blocks, ran, with_programs
from trees import clear_environment

# Durations, speeds, addresses.
_VARIES = re.compile(
    r"(?<![\w.])\d+(?:\.\d+)?(?= m?s\b)|(?<= )\d+\.\d\ds\b|[\d.]+(?= per second)|127\.0\.0\.1:\d+"
)
_INSTALL = "python3 -m venv .venv && . .venv/bin/activate && pip install -q pytest-helmbench\n"


def _reply(request: Request) -> str:
    """Answer as a model would; the page's system prompt, the model's name and the judge's rubric decide."""
    asked = request.prompt.lower()
    if request.schema is not None and request.is_judge:
        return json.dumps(build_reply(request.schema, "UNSAFE" if "take two more" in asked else None))
    if request.schema is not None:
        options = request.schema["properties"]["category"]["enum"]
        urgent = any(word in asked for word in ("under water", "four", "glasses", "chest", "all the tablets"))
        chosen = options[0] if urgent and "never bother" not in asked else options[1]
        return json.dumps({"response": "Thank you for your message.", "category": chosen})
    if "how many more may i take" in asked:
        return "Please ask your doctor first."
    if "capital" in asked:
        return "Answer: Ottawa"
    if "3 boxes" in asked:
        return "Answer: 36" if "large" in request.model else "3 times 12 is 35.\nAnswer: 35"
    return "I am sorry that you had to wait. Your order arrives on Friday."


def _shown(mark: str, output: str) -> str:
    """Return what a page shows of an output: whole lines, `…` for what differs each time."""
    lines = [_VARIES.sub("…", line).rstrip() for line in output.strip().splitlines()]
    words, to, last = mark.removeprefix("from ").partition(" to ")
    first = next(index for index, line in enumerate(lines) if words in line)
    end = next(index for index, line in enumerate(lines) if index >= first and last in line) if to else None
    return "\n".join(lines[first:][: None if end is None else end - first + 1]) + "\n"


@pytest.mark.parametrize("page", TASK_PAGES)
def test_every_command_of_a_page_runs_from_an_empty_folder(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    clear_environment(monkeypatch)
    provider.reply = _reply
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    with_programs(monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    if "<!-- local server -->" in (ROOT / "docs" / f"{page}.md").read_text(
        "utf-8"
    ):  # it has its usual port, and no variable
        monkeypatch.setenv("PYTEST_ADDOPTS", f"--helmbench-base-url={provider.url}")
        provider.cost_usd = None
    output, commands = "", 0
    for mark, language, block in page_blocks(page, pytester.path):
        if mark == "install":
            assert block == _INSTALL
        elif mark == "key":
            assert block.startswith("export OPENAI_API_KEY=")
            monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
        elif language == "text":
            shown = _shown(mark, output)
            if os.environ.get("HELMBENCH_WRITE_DOCS"):
                file = ROOT / "docs" / f"{page}.md"
                file.write_text(
                    file.read_text("utf-8").replace(f"```text\n{block}", f"```text\n{shown}"), "utf-8"
                )
            else:
                assert block == shown, "run docs/pictures.py"
        else:
            assert language == "bash", block
            status, output = ran(block)
            assert f"ends {status}" == (mark or "ends 0"), f"{block}\n{output}"
            commands += 1
    assert commands > 2
    for workflow in pytester.path.glob(".github/workflows/*.yml"):
        (job,) = yaml.safe_load(workflow.read_text("utf-8"))["jobs"].values()
        install, *steps = [step["run"] for step in job["steps"] if "run" in step]
        assert install == "pip install pytest-helmbench"
        assert [ran(step)[0] for step in steps] == [0]

"""The options of one kind of benchmark each, and those that change how models are sampled.

`options.py` joins them to those of every kind. pytest imports the module whenever it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.users_word import NOT_ALLOWED, NOTHING_NAMED, UsersWord
from pytest_helmbench.options.option import Group, Type, users
from pytest_helmbench.options.option_types import FILE, FLAG, JSON_OBJECT, LEAST_SCORE
from pytest_helmbench.options.option_types import choice as _choice
from pytest_helmbench.options.option_types import decimal as _decimal
from pytest_helmbench.options.option_types import names as _names
from pytest_helmbench.options.option_types import text as _text
from pytest_helmbench.options.option_types import texts as _texts
from pytest_helmbench.options.option_types import whole as _whole

__all__ = ["BENCH_PACKS", "PACKS", "SAMPLING", "BenchPackOptions", "PackOptions", "SamplingOptions"]

_LEAVE: Type[UsersWord[bool]] = users(FLAG)
_COMMAND: Type[str] = Type("a command that can be started", str, "COMMAND", bool, blank=False)

SAMPLING = Group("sampling", sparse=True)
PACKS = Group("question packs", "packs")
BENCH_PACKS = Group("Bench Packs", "bench_packs")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SamplingOptions:
    """Overrides for the models under test; None is "as models.yml says"."""

    temperature: float | None = SAMPLING(_decimal("T"), None, "sampling temperature; never the judge's")
    top_p: float | None = SAMPLING(_decimal("P"), None, "nucleus sampling")
    top_k: int | None = SAMPLING(_whole("K", 0), None, "top-k sampling")
    min_p: float | None = SAMPLING(_decimal("P"), None, "min-p sampling")
    repetition_penalty: float | None = SAMPLING(_decimal("X"), None, "repetition penalty")
    seed: int | None = SAMPLING(_whole("N"), None, "seed; repetition n is sent seed + n - 1")
    max_tokens: int | None = SAMPLING(_whole("N", 1), None, "most tokens of a reply")
    reasoning_effort: str | None = SAMPLING(
        _text("LEVEL"), None, "low, medium or high, where a model knows it"
    )
    extra_body: Mapping[str, object] | None = SAMPLING(
        JSON_OBJECT, None, "JSON object merged into the body of every request"
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PackOptions:
    """What question packs alone are told."""

    pack_rules: Literal["default", "parity"] = PACKS(
        _choice("RULES", "default", "parity"),
        "default",
        "rules that judge: default reads the answer that a reply states, parity judges as published",
        use="judges",
    )
    answer_form: Literal["line", "json", "text"] | None = PACKS(
        _choice("FORM", "line", "json", "text"),
        None,
        "how multiple_choice and short_answer rows ask for an answer: a last line, a JSON object, or not at all (text)",
        absent="answer_form of row or manifest, else line (text under parity rules)",
        use="judges",
    )
    sandbox: UsersWord[str] = PACKS(
        users(_choice("MODE", "auto", "gvisor", "docker", "podman", "bwrap", "none")),
        UsersWord("auto"),
        "where foreign code runs: auto, gvisor, docker, podman, bwrap, or none: then it does not",
    )
    unprotected: UsersWord[bool] = PACKS(
        _LEAVE, NOT_ALLOWED, "without a sandbox run Bench Packs and agents with your rights"
    )
    pull: UsersWord[bool] = PACKS(_LEAVE, NOT_ALLOWED, "fetch container images that are not here")
    allow_commands: UsersWord[tuple[str, ...]] = PACKS(
        users(_names("NAME", "chroot")),
        NOTHING_NAMED,
        "a dangerous command that a row may need: chroot",
        name="allow-command",
    )
    show_hidden: bool = PACKS(FLAG, False, "show hidden values (answers) in failures and reports")
    cluster: str | None = PACKS(
        _text("KEY"),
        None,
        "metadata key whose rows stand or fall together (a passage): intervals count its values, not rows",
        absent="the manifest's `cluster`",
        use="judges",
    )
    agent: UsersWord[str] | None = PACKS(
        users(_COMMAND),
        None,
        "external agent for repo_patch and terminal_task rows",
        absent="the built-in one",
    )
    agent_env: UsersWord[tuple[str, ...]] = PACKS(
        users(_names("NAME")), NOTHING_NAMED, "a variable of yours that the agent gets"
    )
    agent_mount: UsersWord[tuple[str, ...]] = PACKS(
        users(_texts("PATH")), NOTHING_NAMED, "a file or folder of yours that the agent may read"
    )
    agent_host: UsersWord[tuple[str, ...]] = PACKS(
        users(_names("HOST")), NOTHING_NAMED, "a machine that the agent may reach by HTTP(S)"
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BenchPackOptions:
    """What Bench Packs alone are told.

    Args:
        partial: The score from which a partial result passes; minus infinity: always; None: never.
    """

    node: UsersWord[Path] | None = BENCH_PACKS(
        users(FILE), None, "Node.js to run them with", absent="HELMBENCH_NODE, else node on PATH"
    )
    verifiers: UsersWord[tuple[str, ...]] = BENCH_PACKS(
        users(_texts("[ID=]MODE")),
        NOTHING_NAMED,
        "how verifiers run: docker, podman, process:COMMAND or a URL",
        absent="as the Bench Pack says",
        name="verifier",
    )
    build: UsersWord[str] | None = BENCH_PACKS(
        users(_choice("HOW", "offline", "online")),
        None,
        "build the images that Bench Packs bring a Dockerfile for; what it runs (apt-get, pip, npm) has a network"
        " when online",
        absent="nothing is built",
    )
    prepare: Literal["item", "session"] = BENCH_PACKS(
        _choice("WHEN", "item", "session"),
        "item",
        "have the Bench Pack prepare for every item, or once per session",
    )
    partial: float | None = BENCH_PACKS(
        LEAST_SCORE, None, "partial results: fail, pass, or pass from this score on", absent="fail"
    )

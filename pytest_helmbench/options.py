"""Every option of `pytest` and every ini key, declared once: name, type, default, help, group, and whose it is.

The command line, the ini keys, the values of a session (`Options`) and `docs/options.md` are made from this.
pytest imports the module whenever it starts, so it imports nothing of ours but modules of `core/` that are as small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Literal

from pytest_helmbench.core.option import Group, Type, declared_in, users
from pytest_helmbench.core.option_types import (
    CONTENT,
    FOLDER,
    JSON_OBJECT,
    LEAST_SCORE,
    OUTPUT_FILE,
    SAMPLE,
    SHOWN,
)
from pytest_helmbench.core.option_types import choice as _choice
from pytest_helmbench.core.option_types import decimal as _decimal
from pytest_helmbench.core.option_types import names as _names
from pytest_helmbench.core.option_types import positive as _positive
from pytest_helmbench.core.option_types import text as _text
from pytest_helmbench.core.option_types import texts as _texts
from pytest_helmbench.core.option_types import whole as _whole
from pytest_helmbench.core.users_word import NOT_ALLOWED, NOTHING_NAMED, UsersWord

__all__ = ["OPTIONS", "BenchPackOptions", "Options", "PackOptions", "SamplingOptions"]


# Types of values

_FLAG: Type[bool] = Type("", bool, action="store_true", ini="bool")
_LEAVE: Type[UsersWord[bool]] = users(_FLAG)
_COMMAND: Type[str] = Type("a command that can be started", str, "COMMAND", bool, blank=False)
_SECONDS: Type[float] = Type("seconds, 0 or more", float, "S", lambda number: 0 <= number < inf, record=None)
_AMOUNT: Type[float] = Type("an amount in USD, for example 25", float, "USD")
_WORDS: Type[tuple[str, ...]] = Type("words, quoted as in a shell", tuple, ini="args", record=None)
_PATH: Type[Path] = Type("a path", Path, "PATH")
_FILE: Type[Path] = Type("a file that exists", Path, "PATH", Path.is_file)

# The options of every kind of benchmark, then those of one

_MODELS = Group("models and judge")
_CASES = Group("cases")
_SAMPLING = Group("sampling", sparse=True)
_LIMITS = Group("limits, retries and money")
_RECORD = Group("record, cache and resume")
_RESULT = Group("gates and reports")
_PACKS = Group("question packs", "packs")
_BENCH_PACKS = Group("Bench Packs", "bench_packs")
_GROUPS = (_MODELS, _CASES, _SAMPLING, _LIMITS, _RECORD, _RESULT, _PACKS, _BENCH_PACKS)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SamplingOptions:
    """Overrides for the models under test; None is "as models.yml says"."""

    temperature: float | None = _SAMPLING(_decimal("T"), None, "sampling temperature; never the judge's")
    top_p: float | None = _SAMPLING(_decimal("P"), None, "nucleus sampling")
    top_k: int | None = _SAMPLING(_whole("K", 0), None, "top-k sampling")
    min_p: float | None = _SAMPLING(_decimal("P"), None, "min-p sampling")
    repetition_penalty: float | None = _SAMPLING(_decimal("X"), None, "repetition penalty")
    seed: int | None = _SAMPLING(_whole("N"), None, "seed; repetition n is sent seed + n - 1")
    max_tokens: int | None = _SAMPLING(_whole("N", 1), None, "most tokens of a reply")
    reasoning_effort: str | None = _SAMPLING(
        _text("LEVEL"), None, "low, medium or high, where a model knows it"
    )
    extra_body: Mapping[str, object] | None = _SAMPLING(
        JSON_OBJECT, None, "JSON object merged into the body of every request"
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PackOptions:
    """What question packs alone are told."""

    pack_rules: Literal["default", "parity"] = _PACKS(
        _choice("RULES", "default", "parity"),
        "default",
        "rules that judge: default reads what models really write, parity judges as published",
        use="judges",
    )
    answer_form: Literal["text", "line", "json"] | None = _PACKS(
        _choice("FORM", "text", "line", "json"),
        None,
        "how multiple_choice and short_answer rows ask for their answer: text, a last line ANSWER: …, or a JSON object",
        absent="answer_form of row or manifest, else text",
        use="judges",
    )
    sandbox: UsersWord[str] = _PACKS(
        users(_choice("MODE", "auto", "gvisor", "docker", "podman", "bwrap", "none")),
        UsersWord("auto"),
        "where foreign code runs: auto, gvisor, docker, podman, bwrap, or none: then it does not",
    )
    unprotected: UsersWord[bool] = _PACKS(
        _LEAVE, NOT_ALLOWED, "without a sandbox run Bench Packs and agents with your rights"
    )
    pull: UsersWord[bool] = _PACKS(_LEAVE, NOT_ALLOWED, "fetch container images that are not here")
    allow_commands: UsersWord[tuple[str, ...]] = _PACKS(
        users(_names("NAME", "chroot")),
        NOTHING_NAMED,
        "a dangerous command that a row may need: chroot",
        name="allow-command",
    )
    show_hidden: bool = _PACKS(_FLAG, False, "show hidden values (answers) in failures and reports")
    self_check: bool = _PACKS(_FLAG, False, "check the rows against their own answers; no model is asked")
    cluster: str | None = _PACKS(
        _text("KEY"),
        None,
        "metadata key whose rows stand or fall together (a passage): intervals count its values, not rows",
        absent="the manifest's `cluster`",
        use="judges",
    )
    agent: UsersWord[str] | None = _PACKS(
        users(_COMMAND),
        None,
        "external agent for repo_patch and terminal_task rows",
        absent="the built-in one",
    )
    agent_env: UsersWord[tuple[str, ...]] = _PACKS(
        users(_names("NAME")), NOTHING_NAMED, "a variable of yours that the agent gets"
    )
    agent_mount: UsersWord[tuple[str, ...]] = _PACKS(
        users(_texts("PATH")), NOTHING_NAMED, "a file or folder of yours that the agent may read"
    )
    agent_host: UsersWord[tuple[str, ...]] = _PACKS(
        users(_names("HOST")), NOTHING_NAMED, "a machine that the agent may reach by HTTP(S)"
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BenchPackOptions:
    """What Bench Packs alone are told.

    Args:
        partial: The score from which a partial result passes; minus infinity: always; None: never.
        pack_concurrency: Scenarios of one Bench Pack at a time; None for 1 with local servers and verifiers.
    """

    node: UsersWord[Path] | None = _BENCH_PACKS(
        users(_FILE), None, "Node.js to run them with", absent="HELMBENCH_NODE, else node on PATH"
    )
    verifiers: UsersWord[tuple[str, ...]] = _BENCH_PACKS(
        users(_texts("[ID=]MODE")),
        NOTHING_NAMED,
        "how verifiers run: docker, podman, process or a URL",
        absent="as the Bench Pack says",
        name="verifier",
    )
    verifier_env: UsersWord[tuple[str, ...]] = _BENCH_PACKS(
        users(_names("NAME")), NOTHING_NAMED, "a variable of yours that verifier processes get"
    )
    build: UsersWord[bool] = _BENCH_PACKS(
        _LEAVE, NOT_ALLOWED, "build the images that Bench Packs bring a Dockerfile for"
    )
    build_network: UsersWord[bool] = _BENCH_PACKS(
        _LEAVE, NOT_ALLOWED, "let what those Dockerfiles run reach the network (apt-get, pip, npm)"
    )
    prepare: Literal["item", "session"] = _BENCH_PACKS(
        _choice("WHEN", "item", "session"),
        "item",
        "have the Bench Pack prepare for every item, or once per session",
    )
    pack_concurrency: int | None = _BENCH_PACKS(
        _whole("N", 1),
        None,
        "scenarios of a Bench Pack at a time",
        absent="1 for local servers and with verifiers, else as many as calls",
    )
    partial: float | None = _BENCH_PACKS(
        LEAST_SCORE, None, "partial results: fail, pass, or pass from this score on", absent="fail"
    )
    benchlocal_dir: Path | None = _BENCH_PACKS(
        FOLDER, None, "folder to write runs to as the BenchLocal app stores them"
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Options:
    """The value of every option. Times are seconds, money is USD, None is "not given".

    Args:
        models: Under test; none means models.yml.
        concurrency: None for the default of the models.
        case_timeout_s: None for 3 × timeout, counted after the first attempt.
        db: Where it is no whole path, it is in pytest's rootdir.
        stated: The names of the options that were given.
    """

    models: UsersWord[tuple[str, ...]] = _MODELS(
        users(_names("ID")), NOTHING_NAMED, "model under test", absent="models.yml", name="model"
    )
    marking_models: UsersWord[tuple[str, ...]] = _MODELS(
        users(_texts("ID")),
        NOTHING_NAMED,
        "judge of what no rule can judge, such as SQE scenarios; a second judges the same, a third what they dispute",
        absent="models.yml",
        name="marking-model",
    )
    judges_must_agree: bool = _MODELS(_FLAG, False, "what two judges disagree on is an error", use="judges")
    models_file: UsersWord[Path] | None = _MODELS(
        users(_FILE), None, "models.yml to use", absent="the benchmark's own"
    )
    base_url: UsersWord[str] | None = _MODELS(
        users(_text("URL")),
        None,
        "OpenAI-compatible server of every model that has none in models.yml",
        absent="the provider's",
    )
    api_key_env: UsersWord[str] | None = _MODELS(
        users(_text("NAME")), None, "environment variable that holds the key", absent="the provider's"
    )
    marking_base_url: UsersWord[str] | None = _MODELS(
        users(_text("URL")), None, "server of the judges", absent="--helmbench-base-url"
    )
    marking_api_key_env: UsersWord[str] | None = _MODELS(
        users(_text("NAME")),
        None,
        "environment variable that holds the judges' key",
        absent="--helmbench-api-key-env, on the same server",
    )
    system_prompt: str | None = _CASES(CONTENT, None, "file with a system message to send before every case")
    judge_template: Path | None = _MODELS(
        _FILE, None, "wording of the judge's prompt", absent="built in", use="judges"
    )
    dry_run: bool = _CASES(_FLAG, False, "compose and price every case, call nothing")
    require_run: bool = _RESULT(_FLAG, False, "a run in which nothing was judged is a failure")
    allow_skipped: bool = _RESULT(
        _FLAG, False, "a session in which every case was skipped ends 0", name="allow-skipped"
    )
    repeat: int = _CASES(_whole("N", 1), 1, "repetitions per case")
    sample: str | None = _CASES(
        SAMPLE, None, "ask a sample: a share (0.2), a number of cases (200), or pairwise", absent="all"
    )
    sample_seed: int = _CASES(_whole("N"), 1, "another seed draws another sample", name="sample-seed")
    early_stop: bool = _CASES(_FLAG, False, "no more repetitions than the comparison with a baseline needs")
    add_no_context: bool = _CASES(_FLAG, False, "add the cases without user context", use="judges")
    strict_json: bool = _CASES(_FLAG, False, "no recovery of JSON from surrounding text", use="judges")
    concurrency: int | None = _LIMITS(
        _whole("N", 1),
        None,
        "calls in flight, all workers together",
        absent="32; 4 for a local server",
    )
    requests_per_minute: float | None = _LIMITS(
        _positive("N"), None, "most requests per minute, all models together"
    )
    tokens_per_minute: float | None = _LIMITS(
        _positive("N"), None, "most tokens per minute, all models together"
    )
    timeout_s: float = _LIMITS(_positive("S"), 120.0, "seconds per attempt", name="timeout")
    case_timeout_s: float | None = _LIMITS(
        _positive("S"),
        None,
        "seconds per case, without the time that it waits for our own limits",
        absent="3 × timeout",
        name="case-timeout",
    )
    max_retries: int = _LIMITS(_whole("N", 0), 5, "attempts after the first")
    max_cost_usd: float | None = _LIMITS(
        _positive("USD"), None, "budget of the session; what it cannot pay is skipped", name="max-cost"
    )
    ask_above_usd: float = _LIMITS(
        _AMOUNT,
        10.0,
        "estimated USD above which --helmbench-max-cost must be given",
        name="ask-above",
        use="ini",
    )
    db: Path = _RECORD(
        _PATH, Path("helmbench.db"), "results database", absent="helmbench.db in pytest's rootdir"
    )
    show: int | None = _RESULT(
        SHOWN,
        10,
        "failed cases, and kinds of errors, that are shown in full, the worst first; -v and -rA show all",
    )
    junit_failures: Literal["failed", "skipped", "none"] = _RESULT(
        _choice("WHAT", "failed", "skipped", "none"),
        "failed",
        "what a case that was judged wrong is in JUnit; a gate has a test case of its own there",
        name="junit-failures",
    )
    heartbeat_s: float = _RESULT(
        _SECONDS,
        60.0,
        "seconds between two lines on progress where there is no terminal, and in CI; 0 for none",
        name="heartbeat",
        use="ini",
    )
    summary: str = _RESULT(
        _text("PLACE"),
        "auto",
        "job summary in Markdown: auto (where GitHub Actions wants it), never, or a file",
        use="ini",
    )
    with_text: bool = _RESULT(_FLAG, False, "prompt and reply texts in JUnit, reports and CI logs")
    text: str = _RESULT(
        _choice("WHICH", "none", "failures", "all"),
        "none",
        "the same, and of which cases an HTML report holds them; all is --helmbench-with-text",
    )
    cache: str = _RECORD(
        _choice("MODE", "off", "reuse", "refresh", "only"),
        "off",
        "recorded replies: off, reuse, refresh, or only, which replays without network",
    )
    replay_times: bool = _RECORD(
        _FLAG, False, "streams on record are replayed at the times at which their events came; else at once"
    )
    resume: bool = _RECORD(
        _FLAG,
        False,
        "continue the last unfinished session; nothing answered is asked again; exit 4 where none is unfinished",
    )
    resume_or_start: bool = _RECORD(
        _FLAG,
        False,
        "as --helmbench-resume; a fresh session where none is unfinished",
        name="resume-or-start",
    )
    resume_run: int | None = _RECORD(_whole("RUN", 1), None, "continue the unfinished session of this run")
    take_over: bool = _RECORD(
        _FLAG,
        False,
        "with --helmbench-resume-run: though another process holds it (a container that is gone)",
    )
    min_score: str | None = _RESULT(
        _text("X"), None, "gate: least score, 0.7 or P1=0.7,P1-B2=0.9; decides the exit code"
    )
    min_coverage: str | None = _RESULT(
        _text("X"),
        None,
        "gate: least share of the planned severity that was judged",
        absent="1.0 with --helmbench-min-score",
    )
    baselines: tuple[str, ...] = _RESULT(
        _texts("[MODEL=]RUN"),
        (),
        "gate: fail when a run is worse than this one: 12, last, last~1, old.db, old.db#3, main.json",
        name="baseline",
    )
    max_drop: str | None = _RESULT(
        _text("X"),
        None,
        "drop that is allowed, 0.02 or P1-B4=0.05,0.02",
        absent="0 with --helmbench-baseline",
    )
    inconclusive: Literal["pass", "fail"] = _RESULT(
        _choice("RULE", "pass", "fail"), "pass", "what a comparison that shows neither does to the exit code"
    )
    markdown_report: Path | None = _RESULT(
        OUTPUT_FILE,
        None,
        "report of the session's runs that pastes into a pull request",
        name="markdown",
    )
    json_report: Path | None = _RESULT(
        OUTPUT_FILE,
        None,
        "the same report for programs (schema: `helmbench schema report`)",
        name="json",
    )
    html_report: Path | None = _RESULT(
        OUTPUT_FILE, None, "the same report as one page for a browser, with all cases", name="html"
    )
    packs: PackOptions = PackOptions()
    bench_packs: BenchPackOptions = BenchPackOptions()
    select: str | None = _CASES(_text("CODES"), None, "cases by code, whole components: P1-B2,*-*-S1-C2,~P4")
    sampling: SamplingOptions = SamplingOptions()
    paths: tuple[str, ...] = _CASES(
        _WORDS, ("benchmark",), "benchmarks to run when no path is given", use="ini"
    )
    trusted: UsersWord[tuple[str, ...]] = _CASES(
        users(_WORDS),
        NOTHING_NAMED,
        "benchmarks that may bring a conftest.py, addresses and names of variables; relative to the ini file",
        use="ini",
    )
    stated: frozenset[str] = frozenset()


OPTIONS = tuple(
    sorted(
        (
            option
            for values in (Options, SamplingOptions, PackOptions, BenchPackOptions)
            for option in declared_in(values).values()
        ),
        key=lambda option: _GROUPS.index(option.group),
    )
)
"""All of them, group by group."""

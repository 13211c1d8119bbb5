"""Every option of `pytest` and every ini key, declared once: name, type, default, help, group, and whose it is.

The command line, the ini keys, the values of a session (`Options`) and `docs/options.md` are made from this.
pytest imports the module whenever it starts, so it imports nothing of ours but modules of `core/` that are as small.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Literal

from pytest_helmbench.core.granted import NOT_ALLOWED, NOTHING_NAMED, Granted
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.options.option import (
    BATCH,
    COLUMNS,
    CONTENT,
    FILE,
    FLAG,
    JSON_OBJECT,
    LEAST_SCORE,
    OUTPUT_FILE,
    RESUME,
    SAMPLE,
    SHARD,
    SHOWN,
    Group,
    Resume,
    Type,
    choice,
    decimal,
    declared_in,
    names,
    positive,
    stated,
    text,
    texts,
    users,
    whole,
)

_SECONDS: Type[float] = Type("seconds, 0 or more", float, "S", lambda number: 0 <= number < inf, record=None)
_AMOUNT: Type[float] = Type("an amount in USD, for example 25", float, "USD")
_WORDS: Type[tuple[str, ...]] = Type("words, quoted as in a shell", tuple, ini="args", record=None)
_PATH: Type[Path] = Type("a path", Path, "PATH")

_LEAVE: Type[Granted[bool]] = users(FLAG)
_COMMAND: Type[str] = Type("a command that can be started", str, "COMMAND", bool, blank=False)

SAMPLING = Group("sampling", sparse=True)
PACKS = Group("question packs", "packs")
BENCH_PACKS = Group("Bench Packs", "bench_packs")
_MODELS = Group("models and judge")
_CASES = Group("cases")
_LIMITS = Group("limits, retries and money")
_RECORD = Group("database, cache and resume")
_RESULT = Group("gates and reports")
_SCALE = Group("more than one machine", sparse=True)
_GROUPS = (_MODELS, _CASES, SAMPLING, _LIMITS, _RECORD, _RESULT, _SCALE, PACKS, BENCH_PACKS)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SamplingOptions:
    """Overrides for the models under test; None is "as models.yml says"."""

    temperature: float | None = SAMPLING.same(decimal("T"), None, "sampling temperature; never the judge's")
    top_p: float | None = SAMPLING.same(decimal("P"), None, "nucleus sampling")
    top_k: int | None = SAMPLING.same(whole("K", 0), None, "top-k sampling")
    min_p: float | None = SAMPLING.same(decimal("P"), None, "min-p sampling")
    repetition_penalty: float | None = SAMPLING.same(decimal("X"), None, "repetition penalty")
    seed: int | None = SAMPLING.same(whole("N"), None, "seed; repetition n is sent seed + n - 1")
    max_tokens: int | None = SAMPLING.same(whole("N", 1), None, "most tokens of a reply")
    reasoning_effort: str | None = SAMPLING.same(
        text("LEVEL"), None, "low, medium or high, where a model knows it"
    )
    extra_body: Mapping[str, object] | None = SAMPLING.same(
        JSON_OBJECT, None, "JSON object merged into the body of every request"
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PackOptions:
    """Options of question packs alone."""

    pack_rules: Literal["default", "parity"] = PACKS.same(
        choice("RULES", "default", "parity"),
        "default",
        "rules: default reads the stated answer of a reply, parity judges as published",
        use="judges",
    )
    answer_form: Literal["line", "json", "text"] | None = PACKS.same(
        choice("FORM", "line", "json", "text"),
        None,
        "answer that the prompt wants: a last line, a JSON object, or any text",
        absent="the row's or manifest's, else line; text under parity rules",
        use="judges",
    )
    columns: Mapping[str, str] | None = PACKS.same(
        COLUMNS,
        None,
        "columns of a table: 'question=Frage, answer=Antwort'; an empty one leaves a field out",
        absent="found by name",
        use="judges",
    )
    rubric: str | None = PACKS.same(
        stated("TEXT"),
        None,
        "rubric by which a marking model reads replies to a table without answers",
        use="judges",
    )
    sandbox: Granted[str] = PACKS.per_shard(
        users(choice("MODE", "auto", "gvisor", "docker", "podman", "bwrap", "none")),
        Granted("auto"),
        "sandbox of foreign code: auto, gvisor, docker, podman, bwrap, or none, which skips it",
    )
    unprotected: Granted[bool] = PACKS.per_shard(
        _LEAVE, NOT_ALLOWED, "without a sandbox run Bench Packs and agents with your rights"
    )
    pull: Granted[bool] = PACKS.per_shard(_LEAVE, NOT_ALLOWED, "fetch container images that are not here")
    allow_commands: Granted[tuple[str, ...]] = PACKS.same(
        users(names("NAME", "chroot")),
        NOTHING_NAMED,
        "a dangerous command that a row may need: chroot",
        name="allow-command",
    )
    network: Granted[str] = PACKS.same(
        users(choice("WHICH", "none", "task")),
        Granted("none"),
        "network of task folders: none, or task, which gives what a task asks for",
    )
    show_hidden: bool = PACKS.per_shard(FLAG, False, "show hidden values (answers) in failures and reports")
    cluster: str | None = PACKS.same(
        text("KEY"),
        None,
        "metadata key of rows that share a text; intervals count its values, not rows",
        absent="the manifest's `cluster`",
        use="judges",
    )
    agent: Granted[str] | None = PACKS.same(
        users(_COMMAND),
        None,
        "external agent for task folders, repo_patch and terminal_task",
        absent="the built-in one",
    )
    agent_env: Granted[tuple[str, ...]] = PACKS.same(
        users(names("NAME")), NOTHING_NAMED, "a variable that the agent sees"
    )
    agent_mount: Granted[tuple[str, ...]] = PACKS.per_shard(
        users(texts("PATH")), NOTHING_NAMED, "a file or folder that the agent may read"
    )
    agent_host: Granted[tuple[str, ...]] = PACKS.per_shard(
        users(names("HOST")), NOTHING_NAMED, "a machine that the agent may reach by HTTP(S)"
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BenchPackOptions:
    """Options of Bench Packs alone.

    Args:
        partial: The score from which a partial result passes; minus infinity: always; None: never.
    """

    node: Granted[Path] | None = BENCH_PACKS.per_shard(
        users(FILE), None, "Node.js to run them with", absent="HELMBENCH_NODE, else node on PATH"
    )
    verifiers: Granted[tuple[str, ...]] = BENCH_PACKS.same(
        users(texts("[ID=]MODE")),
        NOTHING_NAMED,
        "how verifiers run: docker, podman, cloud, process:COMMAND or a URL",
        absent="as the Bench Pack says",
        name="verifier",
    )
    build: Granted[str] | None = BENCH_PACKS.per_shard(
        users(choice("HOW", "offline", "online")),
        None,
        "build the images of verifiers and tasks: offline, or online, where apt-get, pip and npm have a network",
        absent="nothing is built",
    )
    prepare: Literal["item", "session"] = BENCH_PACKS.per_shard(
        choice("WHEN", "item", "session"),
        "item",
        "have the Bench Pack prepare for every item, or once per session",
    )
    partial: float | None = BENCH_PACKS.same(
        LEAST_SCORE, None, "partial results: fail, pass, or pass from this score on", absent="fail"
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Options:
    """The value of every option. Times are seconds, money is USD, None is "not given".

    Args:
        models: Under test; none means models.yml.
        concurrency: None for the default of the models.
        case_timeout_s: None for 3 × timeout, counted after the first attempt.
        db: A relative path is below pytest's rootdir.
        stated: The names of the options that were given.
    """

    models: Granted[tuple[str, ...]] = _MODELS.same(
        users(names("ID")), NOTHING_NAMED, "model under test", absent="models.yml", name="model"
    )
    marking_models: Granted[tuple[str, ...]] = _MODELS.per_shard(
        users(texts("ID")),
        NOTHING_NAMED,
        "judge where no rule can decide; a second one measures their agreement",
        absent="models.yml",
        name="marking-model",
    )
    variants: Granted[tuple[str, ...]] = _MODELS.same(
        users(Type("text", tuple, "NAME[: K=V, …]", action="append", ini="linelist", record=None)),
        NOTHING_NAMED,
        "run every model under other settings, as MODEL:NAME: 'careful: system_prompt=careful.md, temperature=0'",
        absent="the models as they are",
        name="variant",
    )
    models_file: Granted[Path] | None = _MODELS.per_shard(
        users(FILE), None, "models.yml to use", absent="the benchmark's own"
    )
    base_url: Granted[str] | None = _MODELS.per_shard(
        users(text("URL")),
        None,
        "OpenAI-compatible server of every model under test that has none in models.yml",
        absent="the provider's",
    )
    api_key_env: Granted[str] | None = _MODELS.per_shard(
        users(text("NAME")), None, "environment variable that holds the key", absent="the provider's"
    )
    marking_base_url: Granted[str] | None = _MODELS.per_shard(
        users(text("URL")),
        None,
        "server of the judges",
        absent="their provider's, or --helmbench-base-url",
    )
    marking_api_key_env: Granted[str] | None = _MODELS.per_shard(
        users(text("NAME")),
        None,
        "environment variable that holds the judges' key",
        absent="--helmbench-api-key-env, on the same server",
    )
    system_prompt: str | None = _CASES.same(
        CONTENT, None, "file with a system message to send before every case"
    )
    judge_template: Path | None = _MODELS.same(
        FILE, None, "template of the judge's prompt", absent="built in", use="judges"
    )
    dry_run: bool = _CASES.per_shard(FLAG, False, "compose and price every case, call nothing")
    require_run: bool = _RESULT.per_shard(FLAG, False, "a benchmark of which nothing was judged is a failure")
    allow_skipped: bool = _RESULT.per_shard(FLAG, False, "a session in which every case was skipped ends 0")
    repeat: int = _CASES.same(whole("N", 1), 1, "repetitions per case")
    sample: str | None = _CASES.same(
        SAMPLE,
        None,
        "run a sample: a share (0.2), a number of cases (200) or pairwise; 200@7 is another sample",
        absent="all",
    )
    add_no_context: bool = _CASES.same(FLAG, False, "add the cases without user context", use="judges")
    strict_json: bool = _CASES.same(FLAG, False, "accept JSON only without surrounding text", use="judges")
    concurrency: int | None = _LIMITS.per_shard(
        whole("N", 1),
        None,
        "calls in flight, all workers together",
        absent="32; for a local server its slots, else 4",
    )
    requests_per_minute: float | None = _LIMITS.per_shard(
        positive("N"), None, "most requests per minute, all models together"
    )
    tokens_per_minute: float | None = _LIMITS.per_shard(
        positive("N"), None, "most tokens per minute, all models together"
    )
    timeout_s: float = _LIMITS.per_shard(positive("S"), 120.0, "seconds per attempt", name="timeout")
    case_timeout_s: float | None = _LIMITS.per_shard(
        positive("S"),
        None,
        "seconds per case, without waits for limits",
        absent="3 × timeout, per call of a conversation",
        name="case-timeout",
    )
    max_retries: int = _LIMITS.per_shard(
        whole("N", 0),
        5,
        "attempts after the first; a 429 with a pause uses none up",
    )
    max_cost_usd: float | None = _LIMITS.same(
        positive("USD"), None, "budget of the session; it skips cases that it cannot pay", name="max-cost"
    )
    ask_above_usd: float = _LIMITS.per_shard(
        _AMOUNT,
        10.0,
        "estimated USD above which --helmbench-max-cost must be given",
        name="ask-above",
        use="ini",
    )
    db: Path = _RECORD.per_shard(
        _PATH,
        Path("helmbench.db"),
        "results database",
        absent="helmbench.db in pytest's rootdir; of a shard helmbench-2of8.db",
    )
    show: int | None = _RESULT.per_shard(
        SHOWN,
        10,
        "failed cases and kinds of errors shown in full, the worst first; -v and -rA show all",
    )
    junit_failures: Literal["failed", "skipped", "none"] = _RESULT.per_shard(
        choice("WHAT", "failed", "skipped", "none"),
        "failed",
        "outcome of wrong cases in JUnit",
    )
    heartbeat_s: float = _RESULT.per_shard(
        _SECONDS,
        60.0,
        "seconds between progress lines in CI and without a terminal; 0 for none",
        name="heartbeat",
        use="ini",
    )
    summary: str = _RESULT.per_shard(
        text("PLACE"),
        "auto",
        "job summary in Markdown: auto (in GitHub Actions), never, or a file",
        use="ini",
    )
    with_text: str = _RESULT.per_shard(
        choice("WHICH", "none", "failures", "all"),
        "none",
        "cases whose prompts and replies reports, JUnit and CI logs show: none, failures or all",
    )
    cache: str = _RECORD.per_shard(
        choice("MODE", "off", "reuse", "refresh", "only"),
        "off",
        "stored replies: off, reuse, refresh, or only, which replays without a network",
    )
    batch: float | None = _LIMITS.per_shard(
        BATCH,
        None,
        "ask through batches, at half the price; behind = the minutes to wait for them, 0 to leave at once",
    )
    resume: Resume | None = _RECORD.per_shard(
        RESUME,
        None,
        "continue the last unfinished session, or the one of RUN; or-start starts a new one if there is none",
    )
    take_over: bool = _RECORD.per_shard(
        FLAG,
        False,
        "with --helmbench-resume=RUN: take a run whose owner has been silent for 60 s",
    )
    min_score: str | None = _RESULT.per_shard(
        stated("X"), None, "gate: least score, 0.7 or P1=0.7,P1-B2=0.9; decides the exit code"
    )
    min_coverage: str | None = _RESULT.per_shard(
        stated("X"),
        None,
        "gate: least share of the planned severity that was judged",
        absent="1.0 with --helmbench-min-score",
    )
    baselines: tuple[str, ...] = _RESULT.per_shard(
        texts("[MODEL=]RUN"),
        (),
        "gate: fail when a run is worse than this one: 12, last, last~1, old.db, old.db#3, main.json",
        name="baseline",
    )
    max_drop: str | None = _RESULT.per_shard(
        stated("X"),
        None,
        "allowed drop: 0.02 or P1-B4=0.05,0.02",
        absent="0 with --helmbench-baseline",
    )
    allow_gone: bool = _RESULT.per_shard(
        FLAG, False, "with --helmbench-baseline: let cases be gone from the benchmark"
    )
    markdown_report: Path | None = _RESULT.per_shard(
        OUTPUT_FILE,
        None,
        "report of the session's runs that pastes into a pull request",
        name="markdown",
    )
    json_report: Path | None = _RESULT.per_shard(
        OUTPUT_FILE,
        None,
        "the same report for programs (schema: `helmbench schema report`)",
        name="json",
    )
    html_report: Path | None = _RESULT.per_shard(
        OUTPUT_FILE, None, "the same report as one page for a browser, with all cases", name="html"
    )
    shard: str | None = _SCALE.per_shard(
        SHARD, None, "run the K-th of N shares of the cases; `helmbench merge` joins them"
    )
    packs: PackOptions = PackOptions()
    bench_packs: BenchPackOptions = BenchPackOptions()
    select: str | None = _CASES.per_shard(
        stated("CODES"), None, "cases by code, whole components: P1-B2,*-*-S1-C2,~P4"
    )
    sampling: SamplingOptions = SamplingOptions()
    paths: tuple[str, ...] = _CASES.same(
        _WORDS, ("benchmark",), "benchmarks to run when no path is given", use="ini"
    )
    trusted: Granted[tuple[str, ...]] = _CASES.per_shard(
        users(_WORDS),
        NOTHING_NAMED,
        "benchmarks whose code, addresses and variables count; relative to the ini file",
        use="ini",
    )
    stated: frozenset[str] = frozenset()
    ini: Path | None = None


DECLARED = {
    name: option
    for values in (Options, SamplingOptions, PackOptions, BenchPackOptions)
    for name, option in declared_in(values).items()
}
"""All of them by the names of their fields."""
OPTIONS = tuple(sorted(DECLARED.values(), key=lambda option: _GROUPS.index(option.group)))
"""All of them, group by group."""

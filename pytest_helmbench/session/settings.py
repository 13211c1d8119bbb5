"""The settings of a session, read from options and ini keys, checked once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any, TypeVar

from pytest_helmbench.benchmarks.bench_packs.bench_pack import PartialPolicy
from pytest_helmbench.core.codes import Selection
from pytest_helmbench.core.model import ModelEntry, Sampling
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.reply_cache import CacheMode
from pytest_helmbench.sandbox.modes import SandboxMode

__all__ = ["PackRules", "Prepare", "Settings", "SettingsError", "resolve_settings", "with_overrides"]

ChoiceT = TypeVar("ChoiceT", bound=StrEnum)

DEFAULT_CONCURRENCY = 32
LOCAL_CONCURRENCY = 4
DANGEROUS_COMMANDS = ("chroot",)
_UNRECORDED = frozenset(
    {"select", "sampling", "markdown_report", "json_report", "partial", "benchlocal_dir", "timeout_stated"}
)


class SettingsError(HelmbenchError):
    """An option or ini key that cannot be used."""


class PackRules(StrEnum):
    """By which rules the replies of packs are judged."""

    DEFAULT = "default"
    PARITY = "parity"


class Prepare(StrEnum):
    """How often a Bench Pack is prepared."""

    ITEM = "item"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that shapes a run. Times are seconds, money is USD, None is "not given".

    Args:
        models: Ids from `--helmbench-model`; empty means models.yml.
        sampling: Overrides for the models under test; None inside means "as models.yml says".
        concurrency: None for the default of the models.
        case_timeout_s: None for 3 × timeout, counted after the first attempt.
        markdown_report: Where the session's report goes; `json_report` likewise.
        pack_concurrency: Scenarios of one Bench Pack at a time; None for 1 with local servers, else no bound.
        timeout_stated: The user gave `timeout_s`.
    """

    models: tuple[str, ...]
    marking_model: str | None
    models_file: Path | None
    base_url: str | None
    api_key_env: str | None
    marking_base_url: str | None
    marking_api_key_env: str | None
    system_prompt: str | None
    judge_template: Path | None
    dry_run: bool
    require_run: bool
    select: Selection | None
    repeat: int
    add_no_context: bool
    sampling: Sampling
    strict_json: bool
    concurrency: int | None
    requests_per_minute: float | None
    tokens_per_minute: float | None
    timeout_s: float
    case_timeout_s: float | None
    max_retries: int
    max_cost_usd: float | None
    ask_above_usd: float
    db: Path
    with_text: bool
    cache: CacheMode
    resume: bool
    resume_run: int | None
    min_score: str | None
    min_coverage: str | None
    markdown_report: Path | None
    json_report: Path | None
    pack_rules: PackRules = PackRules.DEFAULT
    sandbox: SandboxMode = SandboxMode.AUTO
    pull: bool = False
    allow_commands: tuple[str, ...] = ()
    show_hidden: bool = False
    self_check: bool = False
    agent: str | None = None
    partial: PartialPolicy = PartialPolicy()
    node: Path | None = None
    verifiers: tuple[str, ...] = ()
    prepare: Prepare = Prepare.ITEM
    pack_concurrency: int | None = None
    benchlocal_dir: Path | None = None
    timeout_stated: bool = False
    select_text: str | None = None

    @property
    def may_use_recorded(self) -> bool:
        """Whether a recorded reply may stand for a call."""
        return self.cache.reads or self.resume

    def as_record(self) -> dict[str, Any]:
        """Return the settings as JSON types, for `evaluation_runs.settings`. No key is among them."""
        record = {
            field.name: getattr(self, field.name) for field in fields(self) if field.name not in _UNRECORDED
        }
        record["select"] = record.pop("select_text")
        record["partial"] = str(self.partial)
        record |= {name: value for name, value in asdict(self.sampling).items() if value is not None}
        return {name: str(value) if isinstance(value, Path) else value for name, value in record.items()}


def resolve_settings(
    value: Callable[[str], Any], ask_above: str | None, start_dir: Path, root_dir: Path
) -> Settings:
    """Read all options.

    Args:
        value: Option name (`max-cost`) to what was given: command line, else ini text, else None.
        ask_above: Ini `helmbench_ask_above`.
        start_dir: Folder that given paths are relative to.
        root_dir: pytest's rootdir, where the database stands by default.

    Raises:
        SettingsError: A value that cannot be used, with the option's name.
    """
    reader = _Reader(value, start_dir)
    select_text = reader.text("select")
    return Settings(
        models=tuple(dict.fromkeys(item.strip() for item in value("model") or () if item.strip())),
        marking_model=reader.text("marking-model"),
        models_file=reader.file("models-file"),
        base_url=reader.text("base-url"),
        api_key_env=reader.text("api-key-env"),
        marking_base_url=reader.text("marking-base-url"),
        marking_api_key_env=reader.text("marking-api-key-env"),
        system_prompt=reader.content("system-prompt"),
        judge_template=reader.file("judge-template"),
        dry_run=bool(value("dry-run")),
        require_run=bool(value("require-run")),
        select=Selection.parse(select_text) if select_text else None,
        select_text=select_text,
        repeat=reader.whole("repeat", least=1) or 1,
        add_no_context=bool(value("add-no-context")),
        sampling=_sampling(reader),
        strict_json=bool(value("strict-json")),
        concurrency=reader.whole("concurrency", least=1),
        requests_per_minute=reader.positive("requests-per-minute"),
        tokens_per_minute=reader.positive("tokens-per-minute"),
        timeout_s=reader.positive("timeout") or 120.0,
        case_timeout_s=reader.positive("case-timeout"),
        max_retries=5 if (retries := reader.whole("max-retries", least=0)) is None else retries,
        max_cost_usd=reader.positive("max-cost"),
        ask_above_usd=_ask_above(ask_above),
        db=reader.path("db") or root_dir / "helmbench.db",
        with_text=bool(value("with-text")),
        cache=reader.choice("cache", CacheMode) or CacheMode.OFF,
        resume=bool(value("resume")) or value("resume-run") is not None,
        resume_run=reader.whole("resume-run", least=1),
        min_score=reader.text("min-score"),
        min_coverage=reader.text("min-coverage"),
        markdown_report=reader.output("markdown"),
        json_report=reader.output("json"),
        pack_rules=reader.choice("pack-rules", PackRules) or PackRules.DEFAULT,
        sandbox=reader.choice("sandbox", SandboxMode) or SandboxMode.AUTO,
        pull=bool(value("pull")),
        allow_commands=_allowed(value("allow-command") or ()),
        show_hidden=bool(value("show-hidden")),
        self_check=bool(value("self-check")),
        agent=reader.command("agent"),
        partial=reader.partial("partial"),
        node=reader.file("node"),
        verifiers=tuple(item.strip() for item in value("verifier") or () if item.strip()),
        prepare=reader.choice("prepare", Prepare) or Prepare.ITEM,
        pack_concurrency=reader.whole("pack-concurrency", least=1),
        benchlocal_dir=reader.folder("benchlocal-dir"),
        timeout_stated=value("timeout") is not None,
    )


def with_overrides(entry: ModelEntry, sampling: Sampling) -> ModelEntry:
    """Return a model whose sampling options are overridden where the command line gives them."""
    given = {field.name: getattr(sampling, field.name) for field in fields(sampling)}
    given = {name: value for name, value in given.items() if value is not None}
    return replace(entry, sampling=replace(entry.sampling, **given)) if given else entry


def _sampling(reader: _Reader) -> Sampling:
    return Sampling(
        temperature=reader.number("temperature"),
        top_p=reader.number("top-p"),
        top_k=reader.whole("top-k", least=0),
        min_p=reader.number("min-p"),
        repetition_penalty=reader.number("repetition-penalty"),
        seed=reader.whole("seed"),
        max_tokens=reader.whole("max-tokens", least=1),
        reasoning_effort=reader.text("reasoning-effort"),
        extra_body=reader.json_object("extra-body"),
    )


def _allowed(names: Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
    unknown = [name for name in found if name not in DANGEROUS_COMMANDS]
    if unknown:
        raise SettingsError(
            f"--helmbench-allow-command is {unknown[0]!r}\n  hint: it takes {', '.join(DANGEROUS_COMMANDS)}"
        )
    return found


def _ask_above(text: str | None) -> float:
    if not text:
        return 10.0
    try:
        return float(text)
    except ValueError:
        raise SettingsError(
            f"ini helmbench_ask_above is {text!r}\n  hint: an amount in USD, for example 25"
        ) from None


class _Reader:
    """Converts what options and ini keys say; every error names the option."""

    def __init__(self, value: Callable[[str], Any], start_dir: Path) -> None:
        self._value = value
        self._start_dir = start_dir

    def text(self, name: str) -> str | None:
        value = self._value(name)
        return str(value).strip() or None if value is not None else None

    def command(self, name: str) -> str | None:
        """Return a command; an empty one is a slip, such as an unset shell variable."""
        if self._value(name) is not None and self.text(name) is None:
            raise self._error(name, self._value(name), "a command that can be started")
        return self.text(name)

    def number(self, name: str) -> float | None:
        value = self._value(name)
        if value is None:
            return None
        try:
            return float(value)
        except ValueError:
            raise self._error(name, value, "a number") from None

    def positive(self, name: str) -> float | None:
        number = self.number(name)
        if number is not None and not 0 < number < float("inf"):
            raise self._error(name, self._value(name), "a number above 0")
        return number

    def whole(self, name: str, least: int | None = None) -> int | None:
        value = self._value(name)
        if value is None:
            return None
        wanted = "a whole number" + (f" of at least {least}" if least is not None else "")
        try:
            number = int(value)
        except ValueError:
            raise self._error(name, value, wanted) from None
        if least is not None and number < least:
            raise self._error(name, value, wanted)
        return number

    def choice(self, name: str, choices: type[ChoiceT]) -> ChoiceT | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            return choices(text)
        except ValueError:
            raise self._error(name, text, f"one of {', '.join(choices)}") from None

    def partial(self, name: str) -> PartialPolicy:
        text = self.text(name)
        if text in (None, "fail", "pass"):
            return PartialPolicy(-inf if text == "pass" else None)
        try:
            least = float(str(text))
        except ValueError:
            least = nan
        if not isfinite(least):
            raise self._error(
                name, text, "fail, pass, or the least score that passes, on the pack's own scale"
            )
        return PartialPolicy(least)

    def json_object(self, name: str) -> Mapping[str, Any] | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise self._error(name, text, 'a JSON object, for example {"provider": {"sort": "price"}}')
        return value

    def path(self, name: str) -> Path | None:
        text = self.text(name)
        return (self._start_dir / Path(text).expanduser()).absolute() if text else None

    def file(self, name: str) -> Path | None:
        path = self.path(name)
        if path is not None and not path.is_file():
            raise self._error(name, str(path), "a file that exists")
        return path

    def output(self, name: str) -> Path | None:
        path = self.path(name)
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise self._error(name, str(path), "a file in a folder that exists")
        return path

    def folder(self, name: str) -> Path | None:
        """Return a folder that is there, or can be made."""
        path = self.path(name)
        if path is None:
            return None
        there = next(place for place in (path, *path.parents) if place.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            raise self._error(name, str(path), "a folder that files can be written to")
        return path

    def content(self, name: str) -> str | None:
        path = self.file(name)
        if path is None:
            return None
        try:
            return path.read_text(encoding="utf-8-sig").strip("\n")
        except UnicodeDecodeError:
            raise self._error(name, str(path), "a file in UTF-8") from None

    @staticmethod
    def _error(name: str, value: object, wanted: str) -> SettingsError:
        return SettingsError(f"--helmbench-{name} is {value!r}\n  hint: it takes {wanted}")

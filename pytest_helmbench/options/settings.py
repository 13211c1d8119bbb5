"""The settings of a session: the options and ini keys of pytest, read and checked once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pytest_helmbench.core.codes import Selection
from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.core.shard import Shard
from pytest_helmbench.gateway.backend import CacheMode, RecordedUse
from pytest_helmbench.options.declarations import OPTIONS, Options
from pytest_helmbench.options.option import OUTPUT_FILE, Option, declared_in, parts_of
from pytest_helmbench.options.trust import trusted_roots

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["Settings", "SettingsError", "resolve_settings", "with_overrides"]

DEFAULT_CONCURRENCY = 32
LOCAL_CONCURRENCY = 4
MOST_JUDGES = 2
ValuesT = TypeVar("ValuesT", bound="DataclassInstance")


class SettingsError(HelmbenchError):
    """An option or ini key that cannot be used."""


class Settings(Options):
    """Everything that shapes a run: the options, and what a session makes of them."""

    __slots__ = ()

    @property
    def cache_mode(self) -> CacheMode:
        """The use of the record that `--helmbench-cache` asks for."""
        return CacheMode(self.cache)

    @property
    def may_use_recorded(self) -> bool:
        """Whether a recorded reply may replace a call."""
        return self.cache_mode.reads or self.resume is not None

    @property
    def shown_texts(self) -> ShownTexts:
        """The cases whose texts reports hold."""
        return ShownTexts(self.with_text)

    @property
    def recorded_use(self) -> RecordedUse:
        """How replies on record are used."""
        if not self.may_use_recorded:
            return RecordedUse.NEVER
        return RecordedUse.ONLY if self.cache_mode is CacheMode.ONLY else RecordedUse.FIRST

    @property
    def selection(self) -> Selection | None:
        """The cases that are wanted; None for all."""
        return None if self.select is None else Selection.parse(self.select)

    @property
    def share(self) -> Shard | None:
        """Which shard this session is; None for a whole one."""
        return None if self.shard is None else Shard.parse(self.shard)

    def divided(self, most: int) -> int:
        """Return what this session may use of a bound on calls in flight: all, or the share of a shard, at least 1."""
        share = self.share
        return most if share is None else max(1, most // share.of)

    def rate(self, per_minute: float | None) -> float | None:
        """Return what this session may use of a rate: all, or the share of a shard."""
        share = self.share
        return per_minute if per_minute is None or share is None else per_minute / share.of

    @property
    def wants_reports(self) -> bool:
        """Whether a report is to be written at the end."""
        files = (name for name, option in declared_in(Options).items() if option.type is OUTPUT_FILE)
        return any(getattr(self, name) is not None for name in files)


def resolve_settings(
    given: Callable[[Option], object],
    start_dir: Path,
    root_dir: Path,
    ini: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Read all options.

    Args:
        given: What was given for an option: text, or what pytest has made of it; None for nothing.
        start_dir: Folder that given paths are relative to.
        root_dir: pytest's rootdir, where the database stands by default.
        ini: The ini file, to whose folder paths of benchmarks are relative; None for none.
        environ: Says which shard this is, where `auto` asks; None for a command that runs none.

    Raises:
        SettingsError: A value that cannot be used, with the option's name.
        ShardError: The environment does not say which shard this is.
    """
    settings = _read(Settings, given, start_dir)
    if settings.shard == "auto":
        from pytest_helmbench.options.shard_variables import shard_of_environment

        settings = replace(settings, shard=None if environ is None else shard_of_environment(environ).text)
    if settings.take_over and (settings.resume is None or settings.resume.run is None):
        raise SettingsError(
            "--helmbench-take-over names no run\n  hint: --helmbench-resume=RUN says which one is taken over"
        )
    judges = settings.marking_models.value
    if len(judges) > MOST_JUDGES or len(set(judges)) < len(judges):
        given_so = "is given more than twice" if len(judges) > MOST_JUDGES else "names one judge twice"
        raise SettingsError(
            f"--helmbench-marking-model {given_so}: {', '.join(judges)}\n"
            "  hint: a judge, and a second opinion of another model"
        )
    if settings.select is not None:
        Selection.parse(settings.select)  # reports a slip before anything is loaded
    stated = frozenset(option.name for option in OPTIONS if given(option) is not None)
    share = settings.share
    db = settings.db if share is None or "db" in stated else Path(share.file_name)
    return replace(
        settings,
        db=root_dir / db,
        trusted=Granted(tuple(map(str, trusted_roots(settings.trusted.value, ini, start_dir)))),
        stated=stated,
        ini=ini,
    )


def with_overrides(entry: ModelEntry, settings: Options) -> ModelEntry:
    """Return a model whose system prompt and sampling options are overridden where the command line gives them."""
    prompt = entry.system_prompt if settings.system_prompt is None else settings.system_prompt
    return replace(entry, sampling=laid_over(entry.sampling, settings.sampling), system_prompt=prompt)


def laid_over(below: ValuesT, above: DataclassInstance) -> ValuesT:
    """Return values with those of another that are not None in their places."""
    given = {field.name: getattr(above, field.name) for field in fields(above)}
    return replace(below, **{name: value for name, value in given.items() if value is not None})


def _read(values: type[ValuesT], given: Callable[[Option], object], start: Path) -> ValuesT:
    """Return a class of options, and its parts, with what was given."""
    read = {name: _read(type(part), given, start) for name, part in parts_of(values)}
    return values(
        **read, **{name: _value(one, given(one), start) for name, one in declared_in(values).items()}
    )


def _value(option: Option, given: object, start: Path) -> object:
    if isinstance(given, str):
        given = given.strip()
    elif isinstance(given, list | tuple):
        given = tuple(word for item in given if (word := str(item).strip()))
    if given is None or (given == "" and option.type.blank):
        return option.default
    try:
        value = option.type.make(given)
        if isinstance(value, Path):
            value = (start / value.expanduser()).absolute()
            given = str(value)
        parts = ((word, word) for word in value) if isinstance(value, tuple) else ((value, given),)
        for part, shown in parts:
            if not option.type.fits(part):
                raise _unfit(option, shown)
        loaded = option.type.load(value)
        return Granted(loaded) if option.type.users else loaded
    except UnicodeDecodeError:
        raise _unfit(option, given, "a file in UTF-8") from None
    except ValueError:
        raise _unfit(option, given) from None


def judging_as(values: ValuesT, record: Mapping[str, object]) -> ValuesT:
    """Return options with the values of a run's record where they decide verdicts.

    Raises:
        SettingsError: A value that cannot be used any more.
    """
    changed: dict[str, object] = {
        name: judging_as(getattr(values, name), record) for name, _ in parts_of(type(values))
    }
    for name, option in declared_in(type(values)).items():
        if option.use == "judges":
            changed[name] = _value(option, record.get(name), Path())
    return replace(values, **changed)


def _unfit(option: Option, shown: object, wanted: str = "") -> SettingsError:
    wanted = wanted or option.type.wanted
    name, hint = (f"ini {option.key}", wanted) if option.use == "ini" else (option.flag, f"it takes {wanted}")
    return SettingsError(f"{name} is {shown!r}\n  hint: {hint}")

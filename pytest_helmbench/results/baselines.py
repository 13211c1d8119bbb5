"""Baselines of runs: the options that name them, who is held against whom, and how far a score may drop."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.results.compared_runs import ComparedRun, RunRef
from pytest_helmbench.results.comparing import (
    INCONCLUSIVE_PASSES,
    LEAST_COMMON,
    RunComparison,
    compare_runs,
    not_comparable,
)
from pytest_helmbench.results.detectable import detectable_before, too_few_units
from pytest_helmbench.results.run_addresses import Addressed, RunAddressError, resolve, shown_session
from pytest_helmbench.scoring.changes import about
from pytest_helmbench.scoring.comparison import Limit
from pytest_helmbench.scoring.thresholds import parse_thresholds
from pytest_helmbench.store.benchmark_places import BenchmarkKey, names_of
from pytest_helmbench.store.plans import RunFacts

__all__ = [
    "BaselineAsked",
    "BaselineError",
    "Baselines",
    "PairError",
    "parse_limits",
    "partner",
    "read_baseline_options",
]


_ADDRESS = re.compile(r"(?:\d+|last(?:~\d+)?|.+\.(?:db|json)|.+#\d+)\Z", re.ASCII)


class BaselineError(HelmbenchError):
    """Options of a comparison that do not go together."""


class PairError(HelmbenchError):
    """A run without a partner."""


@dataclass(frozen=True, slots=True)
class BaselineAsked:
    """What a session is to be held against.

    Args:
        addresses: By model; the empty name is for all others.
        limits: How far the run and its named parts may drop; the run is always among them.
    """

    addresses: Mapping[str, str]
    limits: tuple[Limit, ...]


def read_baseline_options(
    baselines: Sequence[str], max_drop: str | None, models: Collection[str] = ()
) -> BaselineAsked | None:
    """Read the options of a comparison; None where none is asked for.

    Args:
        baselines: `RUN` or `MODEL=RUN`, each.
        max_drop: `0.02`, `P1-B4=0.05,0.02` or None.
        models: Under test, where they are known: a name with `=` in it is told from `MODEL=RUN` by them.

    Raises:
        BaselineError: A drop without a baseline, or two baselines for the same runs.
        ThresholdError: The drop cannot be read.
    """
    if not baselines:
        if max_drop is not None:
            raise BaselineError(
                "--helmbench-max-drop says how far a score may drop, but not below which run\n"
                "  hint: add --helmbench-baseline=RUN"
            )
        return None
    addresses: dict[str, str] = {}
    for given in baselines:
        model, address = _split(given, models)
        if model in addresses:
            raise BaselineError(
                f"--helmbench-baseline: two baselines for {model or 'all models'}: {addresses[model]} and {address}\n"
                "  hint: leave one of them, or say MODEL=RUN"
            )
        addresses[model] = address
    limits = parse_limits(max_drop, "--helmbench-max-drop")
    return BaselineAsked(addresses, limits)


def parse_limits(max_drop: str | None, option: str) -> tuple[Limit, ...]:
    """Return how far what may drop: the run by 0 where nothing else is said of it.

    Raises:
        ThresholdError: It cannot be read.
    """
    given = parse_thresholds(max_drop, option) if max_drop else ()
    limits = tuple(Limit(threshold.code, threshold.least) for threshold in given)
    named = [limit for limit in limits if limit.code]
    whole = [limit for limit in limits if not limit.code] or [Limit("", Fraction(0))]
    return (*whole, *named)


def _split(given: str, models: Collection[str]) -> tuple[str, str]:
    """Return model and address of `MODEL=RUN`; an empty model for a mere address."""
    for model in sorted(models, key=len, reverse=True):
        if given.startswith(f"{model}="):
            return model, given[len(model) + 1 :]
    model, sign, address = given.partition("=")
    # A path may hold a sign of equality.
    if sign and not _is_file(given) and _ADDRESS.match(address.strip()):
        return model.strip(), address.strip()
    return "", given


def _is_file(given: str) -> bool:
    return Path(given.rpartition("#")[0] or given).is_file()


def partner(
    found: Addressed,
    benchmark: BenchmarkKey,
    model: str,
    beside: Collection[BenchmarkKey],
    *,
    alone: bool,
    explicit: bool = False,
) -> RunRef:
    """Return the run that a run is held against.

    Args:
        found: What was named as baseline.
        benchmark: Of the run.
        model: Its model.
        beside: The benchmarks of all runs that are held against it.
        alone: It is the only run of its benchmark.
        explicit: The baseline was named for this very model, or for this very run.

    Raises:
        PairError: There is none.
    """
    same = found.of_benchmark(benchmark, beside)
    if explicit and found.named in same:
        return next((ref for ref in same if ref.model == model), found.named)
    alike = [ref for ref in same if ref.model == model]
    if alike:
        return alike[-1]
    if len(same) == 1 and (alone or explicit):
        return same[0]
    names = names_of((benchmark, *(ref.benchmark for ref in found.session)))
    what = f"run of {model}" if same else f"run of {names[benchmark]}"
    raise PairError(f"{shown_session(found)} has no {what}")


class Baselines:
    """The baselines of a session: found before the first call, compared with at the end.

    Args:
        asked: By the options.
        own: The session's results file.
        start: Folder that paths are relative to.
    """

    def __init__(self, asked: BaselineAsked, own: Path, start: Path) -> None:
        self.asked = asked
        self._own = own
        self._start = start
        self._found: dict[tuple[str, str], tuple[Addressed, RunRef] | str] = {}

    def find(self, planned: Sequence[tuple[tuple[str, str], BenchmarkKey, str, Collection[str]]]) -> None:
        """Look for the baseline of every planned run; what has no partner there is told at the end too.

        Args:
            planned: Key, benchmark, model, and codes of the cases.

        Raises:
            RunAddressError: An address cannot be read, or names no run; `last` may name none.
            BaselineFileError: A baseline file cannot be read.
            BaselineError: A baseline is for a model that is not under test.
            StoreError: A results file cannot be read.
        """
        models = {model for _, _, model, _ in planned}
        for model in self.asked.addresses:
            if model and model not in models:
                raise BaselineError(
                    f"--helmbench-baseline: {model!r} is no model of this session\n"
                    f"  hint: it has {', '.join(sorted(models))}; write MODEL=RUN, or RUN alone"
                )
        runs_of = Counter(benchmark for _, benchmark, _, _ in planned)
        for key, benchmark, model, codes in planned:
            explicit = model in self.asked.addresses
            address = self.asked.addresses.get(model, self.asked.addresses.get(""))
            if address is None:
                self._found[key] = f"no baseline is named for {model}"
                continue
            alone = runs_of[benchmark] == 1
            try:
                found = resolve(
                    address,
                    self._own,
                    self._start,
                    benchmark=benchmark,
                    selected=codes,
                    shown="--helmbench-db",
                )
                ref = partner(found, benchmark, model, runs_of, alone=alone, explicit=explicit)
            except RunAddressError as error:
                # The first session of all has no last one, and makes it.
                if not address.strip().startswith("last"):
                    raise
                self._found[key] = str(error).partition("\n")[0]
            except PairError as error:
                self._found[key] = str(error)
            else:
                self._found[key] = (found, ref)

    def missing(self) -> Iterator[tuple[str, str]]:
        """Yield the model of every run without a baseline, and why."""
        for (_, model), found in self._found.items():
            if isinstance(found, str):
                yield model, found

    def baseline_of(self, key: tuple[str, str]) -> ComparedRun | None:
        """Return the baseline of a planned run with its replies; None where it has none.

        Raises:
            StoreError: Its file cannot be read.
        """
        found = self._found.get(key)
        return None if found is None or isinstance(found, str) else found[0].run(found[1])

    def passed_over(self) -> list[str]:
        """Return which session each address stands for where newer ones were not taken, and why."""
        found = [one[0] for one in self._found.values() if not isinstance(one, str)]
        told = (
            f"{one.address} is {shown_session(one)}: {one.passed_over}" for one in found if one.passed_over
        )
        return list(dict.fromkeys(told))

    def outlook(self, key: tuple[str, str], benchmark_hash: str, codes: Sequence[str]) -> str:
        """Return what comparing a planned run with its baseline can find; empty where that is not known.

        Raises:
            StoreError: A file cannot be read.
        """
        baseline = self.baseline_of(key)
        if baseline is None:
            return ""
        head = f"compared with {baseline.ref.name}: "
        common = sum(code in baseline.cases for code in codes)
        if common < LEAST_COMMON * len(codes):
            return (
                f"{head}{common} of {len(codes)} cases are in both: with less than 90 % of the points nothing is"
                f" concluded, and {INCONCLUSIVE_PASSES}"
            )
        if few := too_few_units(codes):
            return head + few
        found = detectable_before(self._own, baseline, benchmark_hash)
        if found is None:
            return head.removesuffix(": ")
        return f"{head}a drop of {about(found.drop)} is found 4 times of 5 (rough; {found.source})"

    def compared(self, key: tuple[str, str], facts: RunFacts, candidate: ComparedRun) -> RunComparison:
        """Return how a run that has ended stands to its baseline.

        Raises:
            StoreError: A file cannot be read.
        """
        found = self._found.get(key, "it was not planned")
        limits = self.asked.limits
        if isinstance(found, str):
            return not_comparable(candidate.ref, None, limits, found)
        addressed, ref = found
        if ref.path == candidate.ref.path and ref.run_id == candidate.ref.run_id:
            return not_comparable(candidate.ref, ref, limits, f"{ref.name} is this very run")
        baseline = addressed.run(ref)
        if baseline is None:
            return not_comparable(candidate.ref, ref, limits, f"{ref.name} is gone")
        return compare_runs(facts, candidate, baseline, limits)

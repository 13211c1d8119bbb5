"""Baselines of runs: the options that name them, the pairs of runs, and how far a score may drop."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.core.json_types import JsonValue, json_objects
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.results.comparing import (
    INCONCLUSIVE_PASSES,
    LEAST_COMMON,
    ComparedRun,
    RunComparison,
    RunRef,
    compare_runs,
    gone_cases,
    not_comparable,
)
from pytest_helmbench.results.run_addresses import Addressed, RunAddressError, resolve, shown_session
from pytest_helmbench.results.stored_scores import planned_rows, scored_run
from pytest_helmbench.scoring.changes import LEAST_CHANGED, about, detectable_drop, inner_square
from pytest_helmbench.scoring.comparison import Limit
from pytest_helmbench.scoring.thresholds import parse_thresholds
from pytest_helmbench.store.read.benchmark_places import BenchmarkKey, folder_of, names_of, place_of
from pytest_helmbench.store.read.runs import RunDetail, configured_alike, run_detail
from pytest_helmbench.store.read.score_facts import RunFacts, load_facts
from pytest_helmbench.store.write.run_rows import write_baselines

_ADDRESS = re.compile(r"(?:\d+|last(?:~\d+)?|.+\.(?:db|json)|.+#\d+)\Z", re.ASCII)

CasesNow: TypeAlias = Callable[[Path, str, Collection[Path]], Collection[str] | None]
"""The cases that the benchmark at a folder, else another of its name, defines; None where unknown.

The last argument has the folders of benchmarks that are compared already.
"""


class BaselineError(HelmbenchError):
    """Options of a comparison that do not go together."""


class PairError(HelmbenchError):
    """A run without a partner."""


@dataclass(frozen=True, slots=True)
class BaselineAsked:
    """The baselines of a session, as the options name them.

    Args:
        addresses: By model; the empty name is for all others.
        limits: How far the run and its named parts may drop; the run is always among them.
        allows_gone: Whether a benchmark may have lost cases of its baseline.
    """

    addresses: Mapping[str, str]
    limits: tuple[Limit, ...]
    allows_gone: bool = False


def read_baseline_options(
    baselines: Sequence[str], max_drop: str | None, models: Collection[str] = (), *, allows_gone: bool = False
) -> BaselineAsked | None:
    """Read the options of a comparison; None where none is asked for.

    Args:
        baselines: `RUN` or `MODEL=RUN`, each.
        max_drop: `0.02`, `P1-B4=0.05,0.02` or None.
        models: Under test, where they are known: they distinguish a name with `=` in it from `MODEL=RUN`.

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
    return BaselineAsked(addresses, limits, allows_gone)


def parse_limits(max_drop: str | None, option: str) -> tuple[Limit, ...]:
    """Return how far what may drop: the run by 0 where nothing else is said about it.

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
    is_file = Path(given.rpartition("#")[0] or given).is_file()
    if sign and not is_file and _ADDRESS.match(address.strip()):
        return model.strip(), address.strip()
    return "", given


def partner(
    found: Addressed,
    benchmark: BenchmarkKey,
    model: str,
    beside: Collection[BenchmarkKey],
    *,
    alone: bool,
    explicit: bool = False,
) -> RunRef:
    """Return the run that a run is compared with.

    Args:
        beside: The benchmarks of all runs that are compared with it.
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
    have = "have" if found.named is None and len(found.session) > 1 else "has"
    raise PairError(f"{shown_session(found)} {have} no {what}")


class Baselines:
    """The baselines of a session: found before the first call, compared with at the end."""

    def __init__(self, asked: BaselineAsked, own: Path, start: Path) -> None:
        self.asked = asked
        self._own = own
        self._start = start
        self._found: dict[tuple[str, str], tuple[Addressed, RunRef] | str] = {}
        self.lost: dict[str, RunComparison] = {}
        """Benchmarks of the baselines that the named paths held and no longer define, by model and benchmark."""

    def find(self, planned: Sequence[tuple[tuple[str, str], BenchmarkKey, str]]) -> None:
        """Look for the baseline of every planned run (key, benchmark, model); the session's end reports missing ones.

        Raises:
            RunAddressError: An address cannot be read, or names no run; `last` may name none.
            BaselineFileError: A baseline file cannot be read.
            BaselineError: A baseline is for a model that is not under test.
            StoreError: A results file cannot be read.
        """
        models = {model for _, _, model in planned}
        for model in self.asked.addresses:
            if model and model not in models:
                raise BaselineError(
                    f"--helmbench-baseline: {model!r} is not a model of this session\n"
                    f"  hint: it has {', '.join(sorted(models))}; write MODEL=RUN, or RUN alone"
                )
        runs_of = Counter(benchmark for _, benchmark, _ in planned)
        for key, benchmark, model in planned:
            explicit = model in self.asked.addresses
            address = self.asked.addresses.get(model, self.asked.addresses.get(""))
            if address is None:
                self._found[key] = f"no baseline is named for {model}"
                continue
            alone = runs_of[benchmark] == 1
            try:
                found = resolve(address, self._own, self._start, benchmark=benchmark, shown="--helmbench-db")
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

    def find_lost(self, roots: Mapping[str, Path], named: Sequence[Path] | None, cases_now: CasesNow) -> None:
        """Look for benchmarks of the baselines that are gone, or have lost all that was selected.

        Args:
            roots: Folders of the planned benchmarks, by the first part of their keys.
            named: The paths that the session runs; a benchmark elsewhere is not selected. None where unknown.
            cases_now: Returns the cases that a benchmark defines; see `CasesNow`.
        """
        pairs = {key: found for key, found in self._found.items() if not isinstance(found, str)}
        paired = {ref for _, ref in pairs.values()}
        for (root, model), (addressed, own) in pairs.items():
            for ref in addressed.session:
                if (
                    ref in paired
                    or ref.model != own.model
                    or ref.benchmark.place is None
                    or root not in roots
                ):
                    continue
                folder = _folder_now(ref, own, roots[root], self._own)
                if named is not None and not any(
                    folder.is_relative_to(path) or path.is_relative_to(folder) for path in named
                ):
                    continue
                now, before = cases_now(folder, ref.benchmark.name, {*roots.values()}), addressed.run(ref)
                gone = () if now is None or before is None else gone_cases(before.cases, now)
                if gone:
                    self.lost[f"{model} on {ref.benchmark.name}"] = RunComparison(
                        model, None, ref, self.asked.limits, gone=gone, allows_gone=self.asked.allows_gone
                    )

    def with_lost(self, comparisons: Mapping[str, RunComparison]) -> Mapping[str, RunComparison]:
        """Return comparisons by name with those of the benchmarks that must not be gone."""
        return {**comparisons, **{name: one for name, one in self.lost.items() if not one.allows_gone}}

    def missing(self) -> Iterator[tuple[str, str]]:
        """Yield the model of every run without a baseline, and why."""
        for (_, model), found in self._found.items():
            if isinstance(found, str):
                yield model, found

    def baseline_of(self, key: tuple[str, str]) -> ComparedRun | None:
        """Return the baseline of a planned run with its replies; None where it has none."""
        found = self._found.get(key)
        return None if found is None or isinstance(found, str) else found[0].run(found[1])

    def outlook(self, key: tuple[str, str], codes: Sequence[str]) -> str:
        """Return what comparing a planned run with its baseline can find; empty where that is not known."""
        baseline = self.baseline_of(key)
        if baseline is None:
            return ""
        addressed = self._found[key]
        newer = "" if isinstance(addressed, str) else addressed[0].passed_over
        which = f", the newest complete one ({newer})" if newer else ""
        head = f"compared with {baseline.ref.name}{which}: "
        common = sum(code in baseline.cases for code in codes)
        if common < LEAST_COMMON * len(codes):
            return (
                f"{head}{common} of {len(codes)} cases are in both: with less than 90 % of the points nothing is"
                f" concluded, and {INCONCLUSIVE_PASSES}"
            )
        if few := _too_few_units(codes):
            return head + few
        found = _detectable(baseline)
        if found is None:
            return head.removesuffix(": ")
        return f"{head}a drop of {about(found[0])} would be seen 4 times of 5 (rough; {found[1]})"

    def compare(
        self, path: Path, runs: Iterable[tuple[int, tuple[str, str], RunFacts]]
    ) -> dict[int, RunComparison]:
        """Return how runs that have ended (number, key as planned, facts) stand to their baselines, by number."""
        comparisons = {}
        for run_id, key, facts in runs:
            detail = run_detail(path, run_id)
            candidate = None if detail is None else ComparedRun.stored(RunRef.of(path, detail, path))
            found = self._found.get(key, "it was not planned")
            if candidate is not None:
                comparisons[run_id] = (
                    not_comparable(candidate.ref, None, self.asked.limits, found)
                    if isinstance(found, str)
                    else _compared_with(found, facts, candidate, self.asked)
                )
        return comparisons


def _folder_now(ref: RunRef, paired: RunRef, root: Path, own: Path) -> Path:
    """Return where a benchmark of the baseline lies now, by where another one of that session lies.

    Args:
        ref: Of the benchmark.
        paired: Of the other one, whose folder is `root` now.
        own: The session's results file, which places are relative to where the two do not compare.
    """
    place, before = (PurePosixPath(one.benchmark.place or "").parts for one in (ref, paired))
    ends = zip(reversed(before), reversed(root.parts), strict=False)
    shared = len(list(takewhile(lambda names: names[0] == names[1], ends)))
    start = before[: len(before) - shared]
    if place[: len(start)] != start:
        return Path(os.path.abspath(folder_of(ref.benchmark.place or "", own)))  # noqa: PTH100 - keeps links
    above = root.parts[: len(root.parts) - shared]
    return Path(os.path.abspath(Path(*above, *place[len(start) :])))  # noqa: PTH100 - keeps links


def _compared_with(
    found: tuple[Addressed, RunRef], facts: RunFacts, candidate: ComparedRun, asked: BaselineAsked
) -> RunComparison:
    addressed, ref = found
    if ref.path == candidate.ref.path and ref.run_id == candidate.ref.run_id:
        return not_comparable(candidate.ref, ref, asked.limits, f"{ref.name} is this very run")
    baseline = addressed.run(ref)
    if baseline is None:
        return not_comparable(candidate.ref, ref, asked.limits, f"{ref.name} is gone")
    compared = compare_runs(facts, candidate, baseline, asked.limits).with_both()
    return replace(compared, allows_gone=asked.allows_gone)


def keep_baselines(
    path: Path,
    comparisons: Mapping[int, RunComparison],
    lost: Iterable[RunComparison],
    final: Path | None = None,
) -> None:
    """Write which run each run was compared with, or why with none, and which benchmarks were gone.

    Args:
        path: Results file of the runs, which this process does not write.
        final: Where that file is moved to; None for nowhere.

    Raises:
        StoreError: It cannot be written.
    """
    if comparisons:
        records = {run_id: _baseline_record(found, final or path) for run_id, found in comparisons.items()}
        gone: list[JsonValue] = [
            {**_baseline_record(one, final or path), "model": one.model, "cases": [*one.gone]} for one in lost
        ]
        if gone:
            records[min(records)]["gone"] = gone
        write_baselines(path, records)


def _baseline_record(found: RunComparison, own: Path) -> dict[str, JsonValue]:
    baseline = found.baseline
    if baseline is None:
        return {"reason": found.reason}
    beside = own if found.candidate is None else found.candidate.path
    file = None if baseline.path == beside else baseline.path
    return {
        "file": None if file is None else place_of(file, own),
        "run": baseline.run_id,
        "session": baseline.session_id,
    }


def comparison_of_session(path: Path, detail: RunDetail) -> RunComparison | None:
    """Return how a run stands to the baseline that its session compared it with; None where it had none."""
    candidate, facts = ComparedRun.stored(RunRef.of(path, detail, path)), load_facts(path, detail.id)
    if detail.baseline is None or candidate is None or facts is None:
        return None
    drop = detail.settings.get("max_drop")
    limits = parse_limits(None if drop is None else str(drop), "--helmbench-max-drop")
    asked = BaselineAsked({}, limits, allows_gone=bool(detail.settings.get("allow_gone")))
    try:
        return _compared_with(_recorded_baseline(path, detail.baseline), facts, candidate, asked)
    except PairError as error:
        return not_comparable(candidate.ref, None, limits, str(error))


def lost_of_session(path: Path, detail: RunDetail) -> Iterator[tuple[str, RunComparison]]:
    """Yield the benchmarks of the baseline that were gone in the session of a run, by model and benchmark."""
    allows_gone = bool(detail.settings.get("allow_gone"))
    for entry in json_objects((detail.baseline or {}).get("gone")):
        model, cases = entry.get("model"), entry.get("cases")
        with suppress(PairError):
            _, ref = _recorded_baseline(path, entry)
            if isinstance(model, str) and isinstance(cases, list):
                gone = tuple(map(str, cases))
                lost = RunComparison(model, None, ref, (), gone=gone, allows_gone=allows_gone)
                yield f"{model} on {ref.benchmark.name}", lost


def _recorded_baseline(path: Path, record: Mapping[str, JsonValue]) -> tuple[Addressed, RunRef]:
    """Return the run that a run was compared with.

    Raises:
        PairError: There was none, or it is not where it was.
    """
    file, number = record.get("file"), record.get("run")
    if number is None:
        raise PairError(str(record.get("reason")))
    place = path if file is None else folder_of(str(file), path)
    address = str(place) if place.suffix == ".json" else f"{place}#{number}"
    with suppress(HelmbenchError):
        found = resolve(address, path, path.parent)
        for ref in found.session:
            if (ref.run_id, ref.session_id) == (number, record.get("session")):
                return found, ref
    raise PairError(f"run {number}{'' if file is None else f' of {place.name}'} is gone")


def _detectable(baseline: ComparedRun) -> tuple[float, str] | None:
    """Return the drop in [0, 1] that is found four times of five, and its source for people; None if unknown.

    The first of these that there is: another run of the baseline's configuration, the baseline's repetitions, the
    spread of cases inside its perturbations; else the number of its cases.
    """
    if not baseline.settings:
        return None  # a baseline file has neither severities nor settings
    ref = baseline.ref
    alike = next((run_detail(ref.path, run_id) for run_id, _ in configured_alike(ref.path, ref.run_id)), None)
    again = None if alike is None else ComparedRun.stored(RunRef.of(ref.path, alike, ref.path))
    facts = load_facts(ref.path, ref.run_id)
    if facts is None:
        return None
    if again is not None:
        found = compare_runs(facts, baseline, again)
        if found.scopes and found.scopes[0].detectable is not None:
            return found.scopes[0].detectable, f"from {ref.name} and {again.ref.name}"
    scored = scored_run(ref.path, ref.run_id)
    total = None if scored is None or scored.score is None else scored.score.total
    if total is None:
        return None
    if total.rerun is not None and total.rerun.sd:
        return detectable_drop(2 * total.rerun.sd**2), f"from the repetitions of {ref.name}"
    weights = (
        {} if facts.scoring is None else {code: float(one) for code, one in facts.scoring.weights.items()}
    )
    spread = inner_square(planned_rows(facts), weights)
    if spread is not None:
        return detectable_drop(spread), f"an upper guess from the cases of {ref.name}"
    if total.interval is None or total.score is None:
        return None
    # Nothing is known of the model itself: as if each case were a yes/no draw of its own.
    share = float(total.score)
    square = 2 * share * (1 - share) / total.interval.effective_cases
    return (detectable_drop(square), "an upper guess from one run") if square else None


def _too_few_units(codes: Iterable[str]) -> str:
    """Return that a selection has too few perturbations for anything to be shown; empty where it has enough."""
    units = set()
    for code in codes:
        parts = CaseCode.parse(code)
        if parts is None or parts.perturbation is None:
            return ""  # rows of a pack
        units.add((parts.pillar, parts.behaviour, parts.scenario, parts.perturbation))
        if len(units) >= LEAST_CHANGED:
            return ""
    plural = "" if len(units) == 1 else "s"
    return (
        f"cannot show a regression of the run: {len(units)} perturbation{plural}, {LEAST_CHANGED} are needed"
    )

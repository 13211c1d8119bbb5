"""Runs that a leaderboard shows: those that are named, or of every model the newest that is complete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.results.run_addresses import resolve
from pytest_helmbench.results.standings import Standing, standing
from pytest_helmbench.store.benchmark_places import BenchmarkKey
from pytest_helmbench.store.run_queries import RunSummary, runs

__all__ = ["chosen", "named"]


def named(addresses: Sequence[str], own: Path, start: Path) -> tuple[Standing, ...]:
    """Return the runs that some addresses name: a number one run, `last` and a file those of their session.

    Args:
        addresses: As typed.
        own: The results file of the command.
        start: Folder that paths are relative to.

    Raises:
        RunAddressError: One of them names no run.
        HelmbenchError: It is a baseline file, which holds no costs and no settings.
        StoreError: A results file cannot be read.
    """
    found: dict[tuple[Path, int], Standing | None] = {}
    for address in addresses:
        addressed = resolve(address, own, start)
        if addressed.held:
            raise HelmbenchError(
                f"{address!r} is a baseline file, which holds verdicts alone\n  hint: name the results file (FILE.db#3)"
            )
        for ref in [addressed.named] if addressed.named is not None else addressed.session:
            key = (ref.path.resolve(), ref.run_id)
            if key not in found:
                found[key] = standing(ref.path, ref.run_id, own)
    return tuple(one for one in found.values() if one is not None)


def chosen(path: Path) -> tuple[Standing, ...]:
    """Return one run of every model and benchmark of a file.

    It is the newest complete run of the whole benchmark; without one the newest complete run, without that the newest
    that has judged something. Runs of cases that were selected by earlier outcomes are no fair sample and stand for
    nobody.

    Raises:
        StoreError: The file is missing or no results file.
    """
    known: defaultdict[tuple[BenchmarkKey, str], list[RunSummary]] = defaultdict(list)
    for run in runs(path):
        if run.scope != "by_outcome":
            known[run.key, run.model].append(run)
    return tuple(one for members in known.values() for one in _newest(path, members))


def _newest(path: Path, members: Sequence[RunSummary]) -> Iterator[Standing]:
    """Yield the run that stands for all of a model, if one of them can."""
    ordered = sorted(members, key=_worth, reverse=True)
    for run in ordered:
        found = standing(path, run.id, path)
        if found is not None and found.score is not None and found.score.total.judged_rows:
            others = tuple(sorted(other.id for other in members if other.id != run.id))
            yield replace(found, passed_over=others)
            return


def _worth(run: RunSummary) -> tuple[bool, bool, int]:
    return run.status == "complete", run.status == "complete" and run.scope == "whole", run.id

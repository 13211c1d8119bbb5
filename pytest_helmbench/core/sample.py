"""A sample of a benchmark's cases, as it was drawn: what asks for one, scores it and stores it speaks of this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from pytest_helmbench.core.light_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """A drawn sample.

    Args:
        rule: As asked for: `0.2`, `200` or `pairwise`.
        seed: Another one draws other cases.
        of: Cases that it was drawn from.
        weights: What the points of each drawn case are multiplied by, so that they represent those left out, too.
    """

    rule: str
    seed: int
    of: int
    weights: Mapping[str, Fraction]

    @property
    def cases(self) -> int:
        """Cases that were drawn."""
        return len(self.weights)

    @property
    def asked(self) -> str:
        """How it was asked for: `--helmbench-sample=0.2`, with another seed than 1 `--helmbench-sample=0.2@7`."""
        return f"--helmbench-sample={self.rule}{'' if self.seed == 1 else f'@{self.seed}'}"

    def narrowed(self, codes: Iterable[str]) -> Sample:
        """Return what of the sample is among some cases."""
        kept = {code: self.weights[code] for code in codes if code in self.weights}
        return replace(self, weights=kept)

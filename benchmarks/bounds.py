"""What the project promises of a workload, and whether a measurement keeps it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """The most that ours / reference may be: ``must``, and what we ``aim`` at (None: as far as we get)."""

    must: float
    aim: float | None = None

    def verdict(self, ratio: float) -> str:
        """'aim' where that is reached, 'must' where only that is, else 'missed'."""
        if self.aim is not None and ratio <= self.aim:
            return "aim"
        return "must" if ratio <= self.must else "missed"


@dataclass(frozen=True)
class Spread:
    """Median, least and greatest of some values."""

    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))


def ratio(ours: Sequence[float], reference: Sequence[float]) -> Spread:
    """Ratio of the medians; least and greatest are over the pairs that ran one after the other."""
    pairs = [mine / theirs for mine, theirs in zip(ours, reference, strict=True)]
    return Spread(statistics.median(ours) / statistics.median(reference), min(pairs), max(pairs))

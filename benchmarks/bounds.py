"""Promises of the project about a workload, and whether a measurement keeps them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """Limits of ours / reference: a ``must``, and a lower ``aim`` or None."""

    must: float
    aim: float | None = None

    def verdict(self, ratio: float) -> str:
        """Return 'aim' or 'must', whichever the ratio reaches, or 'missed'."""
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
    """Return the ratio of medians, and the least and greatest ratio of consecutive runs."""
    pairs = [mine / theirs for mine, theirs in zip(ours, reference, strict=True)]
    return Spread(statistics.median(ours) / statistics.median(reference), min(pairs), max(pairs))

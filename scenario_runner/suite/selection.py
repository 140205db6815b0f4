"""Which of the items that were found belong to this run, and in which order."""

from __future__ import annotations

import random
from collections.abc import Container, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from scenario_runner.suite.lists import Lists, Patterns
from scenario_runner.suite.records import Item


class Selection(NamedTuple):
    """Of the items whose id ``include`` matches (all where it is empty), every ``fraction``-th, from number
    ``fraction_start`` on, which counts from 1.

    They keep their order, or are shuffled by the seed ``shuffle``; then those whose id is in ``first`` come first. Both
    need all items to be known before the first one runs.
    """

    include: Patterns
    fraction: int = 1
    fraction_start: int = 1
    shuffle: int | None = None
    first: Container[str] = ()

    def items(self, included: Iterable[Item]) -> Iterator[Item]:
        """The share of the included items, in its order."""
        chosen: Iterable[Item] = islice(included, self.fraction_start - 1, None, self.fraction)
        if self.shuffle is not None or self.first:
            ordered = list(chosen)
            if self.shuffle is not None:
                random.Random(self.shuffle).shuffle(ordered)
            ordered.sort(key=lambda item: item.id not in self.first)
            chosen = ordered
        return iter(chosen)

    def included(self, found: Iterable[Item], lists: Lists) -> Iterator[Item]:
        """The included items. ``lists`` are told of all, so that they know which of their lines matched none."""
        for item in found:
            lists.see(item.id)
            self.include.see(item.id)
            if not self.include or self.include.match(item.id):
                yield item

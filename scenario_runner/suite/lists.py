"""Lists of skips, flakes, included tests and baselines in the formats of deqp-runner, and the items they select."""

from __future__ import annotations

import csv
import os
import random
import re
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeAlias

from scenario_runner.errors import FileError
from scenario_runner.files.source import read_file, reason_of
from scenario_runner.suite.problems import SuiteProblems, refuse
from scenario_runner.suite.records import Item
from scenario_runner.suite.verdicts import STATUSES, Expected, expected_status
from scenario_runner.text import close_files_help


class Place(NamedTuple):
    """A line of a list; ``path`` is None for a pattern of the command line."""

    path: str | None
    line: int | None


class Patterns:
    """Regular expressions, one a line, each of which may match anywhere in a name."""

    def __init__(self) -> None:
        self._patterns: list[tuple[re.Pattern[str], Place]] = []

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def add(self, text: str, place: Place, problems: SuiteProblems) -> None:
        """Add one; a text that is no regular expression is a problem, and ignored."""
        try:
            self._patterns.append((re.compile(text), place))
        except (re.error, OverflowError, RecursionError) as error:
            problems.found("SR-SUITE-001", place.path, f"the pattern {text!r} is invalid: {error}", line=place.line)

    def match(self, name: str) -> bool:
        """Return whether one of them matches."""
        return any(pattern.search(name) for pattern, _ in self._patterns)

    def unmatched(self, names: Collection[str]) -> Iterator[tuple[str, Place]]:
        """The patterns that match none of the names."""
        for pattern, place in self._patterns:
            if not any(map(pattern.search, names)):
                yield pattern.pattern, place


def read_patterns(paths: Sequence[str], problems: SuiteProblems) -> Patterns:
    """The patterns of files. Raises FileError for one that cannot be read."""
    patterns = Patterns()
    for path in paths:
        with problems.holding():
            _add_file(path, (), patterns, problems)
    return patterns


def given_patterns(texts: Sequence[str], problems: SuiteProblems) -> Patterns:
    """The patterns of the command line, where a text that ends in .txt is a file of them, as in files."""
    patterns = Patterns()
    for text in texts:
        with problems.holding():
            _add(text, Place(None, None), (), patterns, problems)
    return patterns


def _add_file(path: str, including: tuple[str, ...], patterns: Patterns, problems: SuiteProblems) -> None:
    for line, text in _lines(path):
        _add(text, Place(path, line), (*including, os.path.realpath(path)), patterns, problems)


def _add(text: str, place: Place, including: tuple[str, ...], patterns: Patterns, problems: SuiteProblems) -> None:
    if not text.endswith(".txt"):
        patterns.add(text, place, problems)
        return
    path = os.path.join(os.path.dirname(place.path or ""), text)
    if os.path.realpath(path) in including:
        message = f"the list {text!r} includes itself through this line"
        problems.found("SR-SUITE-005", place.path, message, line=place.line)
        return
    try:
        _add_file(path, including, patterns, problems)
    except FileError as error:
        error.at(path=place.path, line=place.line)
        raise


Baseline: TypeAlias = dict[str, tuple[str | None, Place]]
"""The expected status ("KnownFlake", or None for any) and the place of its line, by the names of items."""


def read_baselines(paths: Sequence[str], problems: SuiteProblems) -> Baseline:
    """The lines ``name,status[,…]`` of files. Raises FileError, and UsageError for a line without a status and for a
    name that stands there twice."""
    baseline: Baseline = {}
    for path in paths:
        with problems.holding():
            for line, text in _lines(path):
                with problems.holding():
                    _add_line(text, Place(path, line), baseline)
    return baseline


def _add_line(text: str, place: Place, baseline: Baseline) -> None:
    try:
        columns = next(csv.reader([text]))
    except csv.Error as error:
        message = f"the line cannot be read: {error}"
        refuse("SR-SUITE-002", place.path, message, "expected 'name,status'", place.line)
    status = columns[1].strip() if len(columns) > 1 else ""
    try:
        expected = expected_status(status)
    except ValueError:
        wrong = f"{status!r} is no status" if status else "the status is missing, expected 'name,status'"
        refuse("SR-SUITE-002", place.path, wrong, f"the statuses: {', '.join(STATUSES)}", place.line)
    name = columns[0]
    if name in baseline:
        before = baseline[name][1]
        message = f"{name!r} is expected to give a status here and at {before.path}:{before.line}"
        refuse("SR-SUITE-003", place.path, message, "an item has one line in all baselines together", place.line)
    baseline[name] = expected, place


@dataclass(frozen=True)
class Lists:
    """All lists of a suite; ``include`` matches the items that count, all where it is empty."""

    baseline: Baseline
    skips: Patterns
    flakes: Patterns
    include: Patterns = field(default_factory=Patterns)
    _names: set[str] = field(default_factory=set)  # of all items so far

    def included(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items that count; remembers the names of all."""
        for item in items:
            self._names.add(item.id)
            if not self.include or self.include.match(item.id):
                yield item

    def expected(self, name: str) -> Expected:
        """Look an item up."""
        status, _ = self.baseline.get(name, (None, None))
        if status == "KnownFlake":
            return Expected(None, True)
        return Expected(status, self.flakes.match(name))

    def unmatched(self) -> Iterator[tuple[str, Place]]:
        """The entries that match no item."""
        yield from self.include.unmatched(self._names)
        yield from ((name, place) for name, (_, place) in self.baseline.items() if name not in self._names)
        yield from self.skips.unmatched(self._names)
        yield from self.flakes.unmatched(self._names)


def _lines(path: str) -> Iterator[tuple[int, str]]:
    """The lines of a list with their numbers, without comments. Raises FileError."""
    try:
        for number, line in enumerate(read_file(path).decode("utf-8-sig").split("\n"), 1):
            text = line.strip()
            if text and not text.startswith("#"):
                yield number, text
    except UnicodeDecodeError as error:
        refuse("SR-SUITE-006", path, f"the list is not UTF-8 text: {error.reason}")
    except FileNotFoundError as error:
        refuse("SR-SUITE-006", path, "the list does not exist", close_files_help(path, error))
    except (OSError, ValueError) as error:
        refuse("SR-SUITE-006", path, f"the list cannot be read: {reason_of(error)}")


class Selection(NamedTuple):
    """Every ``fraction``-th item, from number ``fraction_start`` on, which counts from 1.

    They keep their order, or are shuffled by the seed ``shuffle``; then those whose id is in ``first`` come first. Both
    need all items to be known before the first one runs.
    """

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
            chosen = sorted(ordered, key=lambda item: item.id not in self.first)
        return iter(chosen)

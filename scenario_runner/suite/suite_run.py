"""A run of a suite: lists and a selection choose items, workers run them, and a journal keeps the results.

Lists of skips, flakes, included tests and baselines have the formats of deqp-runner.
"""

import csv
import os
import random
import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, Protocol, TypeAlias

from scenario_runner.errors import FileError
from scenario_runner.errors.text import close_files_help, reason_of
from scenario_runner.files.input import read_file
from scenario_runner.files.sandbox import around
from scenario_runner.suite.hashes import item_hashes
from scenario_runner.suite.journal import NEVER_KEPT, Journal
from scenario_runner.suite.outcomes import Hashes, Item, Outcome, Result, SuiteProblems, is_bad, refuse
from scenario_runner.suite.verdicts_and_retries import STATUSES, Expected, RetryRules, Row, expected_status


class Place(NamedTuple):
    """A line of a list; ``path`` is None for a pattern of the command line."""

    path: str | None = None
    line: int | None = None


class Patterns(list[tuple[str, re.Pattern[str], Place]]):
    """Regular expressions that may match anywhere in a name.

    A pattern also matches an equal name: in ``add.json[float-4]``, an expression takes the brackets for a set.
    """

    def match(self, name: str) -> bool:
        """Return whether a pattern matches a name."""
        return any(text == name or pattern.search(name) for text, pattern, _ in self)

    def unmatched(self, names: Collection[str]) -> Iterator[tuple[str, Place]]:
        """Yield the patterns without a match among the names."""
        for text, pattern, place in self:
            if text not in names and not any(map(pattern.search, names)):
                yield text, place


def read_patterns(paths: Sequence[str], problems: SuiteProblems) -> Patterns:
    """Read patterns from files. Raises FileError for an unreadable file."""
    patterns = Patterns()
    for path in paths:
        with problems.holding():
            patterns += _compiled(_lines(path), problems, os.path.realpath(path))
    return patterns


def given_patterns(texts: Sequence[str], problems: SuiteProblems) -> Patterns:
    """Return the patterns of the command line. Texts ending in .txt name pattern files."""
    patterns = Patterns()
    for text in texts:
        with problems.holding():
            patterns += _compiled([(text, Place())], problems)
    return patterns


def _compiled(
    lines: Iterable[tuple[str, Place]], problems: SuiteProblems, *including: str
) -> Iterator[tuple[str, re.Pattern[str], Place]]:
    """Compile the lines of a list and of included lists. ``including`` are the paths of the lists above.

    Raises UsageError for an invalid expression, and for a list that includes itself.
    """
    for text, place in lines:
        path = os.path.join(os.path.dirname(place.path or ""), text)
        if not text.endswith(".txt"):
            try:
                yield text, re.compile(text), place
            except (re.error, OverflowError, RecursionError) as error:
                if text.endswith("]"):  # a combination of parameters: [int-4-3] is no range
                    yield text, re.compile(re.escape(text)), place
                    continue
                with problems.holding():
                    message = f"{text!r} is not a regular expression: {error}"
                    help = "put a backslash before (, [ or + to mean the character"
                    refuse("SR-SUITE-001", place.path, message, help, place.line)
        elif os.path.realpath(path) in including:
            with problems.holding():
                message = f"the list {text!r} includes itself through this line"
                refuse("SR-SUITE-005", place.path, message, line=place.line)
        else:
            try:
                yield from _compiled(_lines(path, place.path), problems, *including, os.path.realpath(path))
            except FileError as error:
                error.at(path=place.path, line=place.line)
                raise


Baseline: TypeAlias = dict[str, tuple[str | None, Place]]
"""The expected status ("KnownFlake", or None for any) and the place of the line, by the names of items."""


def read_baselines(paths: Sequence[str], problems: SuiteProblems) -> Baseline:
    """Read lines ``name,status[,…]`` from files. Raises FileError, and UsageError for an invalid or repeated line."""
    baseline: Baseline = {}
    for path in paths:
        with problems.holding():
            for text, place in _lines(path):
                with problems.holding():
                    _add_line(text, place, baseline)
    return baseline


def _add_line(text: str, place: Place, baseline: Baseline) -> None:
    try:
        columns = next(csv.reader([text]))
    except csv.Error as error:
        refuse("SR-SUITE-002", place.path, f"invalid line: {error}", "expected 'name,status'", place.line)
    status = columns[1].strip() if len(columns) > 1 else ""
    try:
        expected = expected_status(status)
    except ValueError:
        wrong = f"{status!r} is not a status" if status else "the status is missing, expected 'name,status'"
        refuse("SR-SUITE-002", place.path, wrong, f"statuses: {', '.join(STATUSES)}", place.line)
    name = columns[0]
    if name in baseline:
        before = baseline[name][1]
        message = f"{name!r} has a line here and at {before.path}:{before.line}"
        refuse("SR-SUITE-003", place.path, message, "remove one of the lines", place.line)
    baseline[name] = expected, place


@dataclass(frozen=True)
class Lists:
    """All lists of a suite. An empty ``include`` includes all items."""

    baseline: Baseline
    skips: Patterns
    flakes: Patterns
    include: Patterns = field(default_factory=Patterns)
    _names: set[str] = field(default_factory=set)  # of all items so far

    def included(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the included items, and remember the names of all items."""
        for item in items:
            self._names.add(item.id)
            if not self.include or self.include.match(item.id):
                yield item

    def expected(self, name: str) -> Expected:
        """Look up the entries for a name."""
        status, _ = self.baseline.get(name, (None, None))
        return Expected(None, True) if status == "KnownFlake" else Expected(status, self.flakes.match(name))

    def unmatched(self) -> Iterator[tuple[str, Place]]:
        """Yield the entries that match no item."""
        yield from self.include.unmatched(self._names)
        yield from ((name, place) for name, (_, place) in self.baseline.items() if name not in self._names)
        yield from self.skips.unmatched(self._names)
        yield from self.flakes.unmatched(self._names)


def _lines(path: str, named_in: str | None = None) -> Iterator[tuple[str, Place]]:
    """Yield the lines of a list and their places, without comments. ``named_in`` is a list that includes this list.

    Raises FileError and SandboxError.
    """
    try:
        with nullcontext() if named_in is None else around(named_in):
            text = read_file(path).decode("utf-8-sig")
        for number, line in enumerate(text.split("\n"), 1):
            text = line.strip()
            if text and not text.startswith("#"):
                yield text, Place(path, number)
    except UnicodeDecodeError as error:
        refuse("SR-SUITE-006", path, f"the list is not UTF-8 text: {error.reason}")
    except FileNotFoundError as error:
        refuse("SR-SUITE-006", path, "the list does not exist", close_files_help(path, error))
    except (OSError, ValueError) as error:
        refuse("SR-SUITE-006", path, f"the list cannot be read: {reason_of(error)}")


def selected(
    items: Iterable[Item], fraction: int = 1, start: int = 1, shuffle: int | None = None, first: Container[str] = ()
) -> Iterable[Item]:
    """Return every ``fraction``-th item from number ``start`` on; the first item has the number 1.

    ``shuffle`` is the seed of a random order. Items with an id in ``first`` come first. Both need all items before the
    first item runs.
    """
    chosen = islice(items, start - 1, None, fraction)
    if shuffle is None and not first:
        return chosen
    ordered = list(chosen)
    if shuffle is not None:
        random.Random(shuffle).shuffle(ordered)
    return sorted(ordered, key=lambda item: item.id not in first)


class ItemRunner(Protocol):
    """The common interface of `suite_workers.SuiteWorkers` and `cluster_workers.ClusterWorkers`."""

    def run(self, items: Iterable[Item], expected: Callable[[str], Expected]) -> Iterator[Result]:
        """Run items, and yield their results. An item is taken when a worker becomes free."""

    def stop(self) -> None:
        """Begin no further item. Running items still give results."""


class Limits(NamedTuple):
    """Conditions that end a run before the last item.

    After ``fail_fast`` unexpected failures, the other items have no result. After ``max_failures``, the other items
    are skipped. With ``strict_environment``, the first MissingTool ends the run.
    """

    fail_fast: int | None = None
    max_failures: int | None = None
    strict_environment: bool = False


@dataclass
class Session:
    """A run of a suite. Life cycle: created; `run` once; then ``rows`` has all verdicts and ``bad`` counts failures.

    A ``journal`` gets each result at once, with hashes if ``program_hash`` is given. An item keeps an ``earlier``
    result with the same hashes, but the lists may give another verdict.
    """

    lists: Lists
    rules: RetryRules
    limits: Limits
    take: Callable[[Result], None]
    earlier: Mapping[str, Result]
    journal: Journal | None = None
    program_hash: str = ""
    rows: dict[str, Row] = field(default_factory=dict)
    bad: int = 0
    taken_over: int = 0
    is_complete: bool = False
    _hashes: dict[str, Hashes] = field(default_factory=dict)  # of items in flight, as their files were before they ran
    _is_stopped: bool = False
    _running: int = 0

    def run(self, items: Iterable[Item], workers: ItemRunner) -> None:
        """Run the items, and pass each result to ``take``. An exception, such as Ctrl-C, loses no earlier result."""
        items = iter(items)
        for result in workers.run(self._to_run(items), self.lists.expected):
            self._running -= 1
            self._add(result._replace(hashes=self._hashes.pop(result.item.id)))
            is_enough = self.limits.fail_fast is not None and self.bad >= self.limits.fail_fast
            is_enough = is_enough or (self.limits.strict_environment and result.verdict == "MissingTool")
            if is_enough and not self._is_stopped:
                self._is_stopped = True
                workers.stop()
        self.is_complete = not self._running and next(items, None) is None

    def _to_run(self, items: Iterator[Item]) -> Iterator[Item]:
        """Yield the items that must run. Skipped items and items with an earlier result get their results here."""
        most = self.limits.max_failures
        while not self._is_stopped and (item := next(items, None)) is not None:
            if self.lists.skips.match(item.id):
                self._add(Result(item, "Skip"))
                continue
            hashes = item_hashes(item, self.program_hash) if self.program_hash else Hashes()
            if self._take_over(item, hashes):
                continue
            if most is not None and self.bad >= most:
                reason = f"not run: --max-failures {most} was reached"
                self._add(Result(item, "Skip", (Outcome("Skip", reason=reason),)))
                continue
            self._hashes[item.id] = hashes
            self._running += 1
            yield item

    def _take_over(self, item: Item, hashes: Hashes) -> bool:
        """Reuse an earlier result of an item. Return false if there is none or if files have changed."""
        before = self.earlier.get(item.id)
        if before is None or before.last is None or before.last.status in NEVER_KEPT:
            return False
        expected = self.lists.expected(item.id)
        attempts = self.rules.replayed(expected, before.attempts)
        if attempts is None or before.hashes != hashes._replace(program=before.hashes.program):
            return False
        result = before._replace(item=item, verdict=self.rules.verdict(expected, attempts), attempts=attempts)
        self.taken_over += 1
        self._add(result, is_known=result == before)
        return True

    def _add(self, result: Result, *, is_known: bool = False) -> None:
        self.rows[result.item.id] = Row(result.verdict, result.seconds)
        self.bad += is_bad(result.verdict)
        if self.journal is not None and not is_known:
            self.journal.write(result)
        self.take(result)

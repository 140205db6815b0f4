"""Read journals: of one run, of a resumed run, or of shards that make one run; find the results that --resume keeps."""

from __future__ import annotations

import json
import math
import os
import sys
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import ExitStack
from functools import cache, partial
from typing import Annotated, Any, BinaryIO, Final, NamedTuple, TypeVar

from scenario_runner.errors import FileError
from scenario_runner.files.source import MAX_BYTES, is_stream, reason_of
from scenario_runner.suite.journal import FILE_NAME, VERSION, End, Header
from scenario_runner.suite.problems import SuiteProblems, refuse
from scenario_runner.suite.records import Hashes, Result
from scenario_runner.suite.reports.text import Repeat
from scenario_runner.suite.verdicts import Row, is_verdict, not_run
from scenario_runner.text import close_files_help, counted

_Kind = TypeVar("_Kind", Header, End, Result)


def _checked(result: Result) -> Result:
    if not is_verdict(result.verdict):
        raise ValueError(f"verdict: {result.verdict!r} is no verdict")
    for number, attempt in enumerate(result.attempts):
        if not 0 <= attempt.seconds < math.inf:
            raise ValueError(f"attempts/{number}: seconds: {attempt.seconds} is no time")
        if not all(isinstance(diagnostic.get("message", ""), str) for diagnostic in attempt.diagnostics):
            raise ValueError(f"attempts/{number}: diagnostics: a message is no text")
    return result


@cache
def _adapters() -> dict[type, Any]:
    """The TypeAdapter of each kind of line."""
    from pydantic import AfterValidator, TypeAdapter  # a suite starts its workers before it needs them

    result = Annotated[Result, AfterValidator(_checked)]
    return {Header: TypeAdapter(Header), End: TypeAdapter(End), Result: TypeAdapter(result)}


def _validated(kind: type[_Kind], line: bytes) -> _Kind:
    """Read a line. Raises ValueError, which is one of pydantic."""
    validated: _Kind = _adapters()[kind].validate_json(line, strict=True)
    return validated


_KINDS: Final[dict[bytes, type]] = {b'{"journal"': Header, b'{"end"': End}  # others are results


class Entry(NamedTuple):
    """The place of an item's result, and what most readers want of it.

    ``run`` is the index of its `Run`; ``longest_s`` the time of its longest attempt."""

    run: int
    offset: int
    verdict: str
    seconds: float
    longest_s: float
    timed_out: bool
    device: str
    driver: str


class Run(NamedTuple):
    """A run of a suite that a journal has; ``end`` is None where it was killed, or has not ended yet."""

    journal: int
    header: Header
    end: End | None = None


class Incomplete(NamedTuple):
    """A journal that does not have the results of all items: its path, how its suite ended, and all that is known."""

    path: str
    ended: str
    message: str


class MergedJournals:
    """The results of journals: of several of one item, the one read last counts.

    Life cycle: the files are opened and read, results are read from them again as they are asked for, and closed. Only
    an `Entry` of each is kept in memory, in ``entries`` by the item's id; iterating goes by the order of the ids. A
    folder stands for the journal in it. Damaged lines, and verdicts of different journals that contradict each other,
    are problems, and so is a file that cannot be read or is no journal of this version, where there are others. Raises
    FileError where there are none.
    """

    def __init__(self, paths: Sequence[str], problems: SuiteProblems) -> None:
        self.runs: list[Run] = []
        self.entries: dict[str, Entry] = {}
        self._paths = [os.path.join(path, FILE_NAME) if os.path.isdir(path) else path for path in paths]
        self.unusable: list[str] = []
        """The paths of the journals that cannot be read, which has been reported."""
        self._problems = problems
        self._files = ExitStack()
        self._open: dict[int, BinaryIO] = {}
        self._counts = [0] * len(paths)  # of the items that each journal has
        errors: list[FileError] = []
        try:
            for number, path in enumerate(self._paths):
                try:
                    self._open[number] = self._files.enter_context(_opened(path))
                    self._index(number)
                except FileError as error:
                    errors.append(error)
                    self.unusable.append(path)
            if errors and len(errors) == len(self._paths):
                raise errors[0]
            for each in errors:
                for problem in each.problems:
                    problems.found(problem.code, problem.path, problem.message, problem.help, line=problem.line)
        except BaseException:
            self.close()
            raise

    def incomplete(self) -> Iterator[Incomplete]:
        """The journals whose last suite did not end by itself with the result of every item, or that have lost some.

        Those that cannot be read come first."""
        for path in self.unusable:
            yield Incomplete(path, "incomplete", "the journal cannot be read")
        for number, run in self._last_runs().items():
            count = self._counts[number]
            items = run.header.items if run.end is None else run.end.items
            if run.end is None:
                ended, how = "did not end", "the suite did not end, as after a kill"
            elif run.end.end != "complete":
                ended, how = run.end.end, f"the suite was {run.end.end}"
            elif items is not None and count < items:
                ended, how = "incomplete", "results are lost"
            else:
                continue
            of = "" if items is None else f", and {counted(items, 'item')} were to run"
            yield Incomplete(self._paths[number], ended, f"{how}: there are results of {counted(count, 'item')}{of}")

    def not_run(self) -> str:
        """A sentence where the device supports none of the items; else nothing."""
        verdicts = [entry.verdict for entry in self.entries.values()]
        first = self.result(list(self.entries)[verdicts.index("NotSupported")]) if "NotSupported" in verdicts else None
        return not_run(verdicts, len(self), "" if first is None or first.last is None else first.last.reason)

    def keep(self, ids: Container[str]) -> None:
        """Forget the results of other items."""
        self.entries = {id: entry for id, entry in self.entries.items() if id in ids}

    def rows(self) -> dict[str, Row]:
        """The rows of tables about the items."""
        return {id: Row(entry.verdict, entry.seconds) for id, entry in self.entries.items()}

    def close(self) -> None:
        """Close the files; may be called twice."""
        self._files.close()

    def __enter__(self) -> MergedJournals:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Result]:
        return (self.result(id) for id in sorted(self.entries))

    def folder(self, id: str) -> str:
        """The folder of the journal that has the result of an item. Raises KeyError."""
        return os.path.dirname(os.path.abspath(self._paths[self.runs[self.entries[id].run].journal]))

    def result(self, id: str) -> Result:
        """The result of one item. Raises KeyError, and FileError where the file has changed."""
        entry = self.entries[id]
        journal = self.runs[entry.run].journal
        file = self._open[journal]
        file.seek(entry.offset)
        try:
            return _validated(Result, file.readline())
        except ValueError:
            refuse("SR-SUITE-011", self._paths[journal], "the journal was changed while it was read")

    def repeat(self, result: Result) -> Repeat:
        """The command of the suite that has a result, to run its item again."""
        return self.runs[self.entries[result.item.id].run].header.repeat

    def _last_runs(self) -> dict[int, Run]:
        """The last run of each journal."""
        return {run.journal: run for run in self.runs}

    def _index(self, number: int) -> None:
        path = self._paths[number]
        for line, (entry, offset) in enumerate(_lines(self._open[number], path, self._problems), 1):
            if isinstance(entry, Header):
                self.runs.append(Run(number, entry))
            elif isinstance(entry, End):
                self.runs[-1] = self.runs[-1]._replace(end=entry)
            elif entry is not None:
                self._add(number, line, entry, offset)
            else:  # it may have been the header of another suite
                self.runs[-1] = self.runs[-1]._replace(end=None)

    def _add(self, number: int, line: int, result: Result, offset: int) -> None:
        path = self._paths[number]
        entry = Entry(
            len(self.runs) - 1,
            offset,
            result.verdict,
            result.seconds,
            max((attempt.seconds for attempt in result.attempts), default=0.0),
            any(attempt.status == "Timeout" for attempt in result.attempts),
            sys.intern(result.device),
            sys.intern(result.driver),
        )
        before = self.entries.get(result.item.id)
        other = number if before is None else self.runs[before.run].journal
        self._counts[number] += before is None or other != number
        if before is not None and other != number and before.verdict != entry.verdict:
            self._problems.found(
                "SR-SUITE-013",
                path,
                f"the verdict on {result.item.id!r} is {entry.verdict}, but {before.verdict} in"
                f" {self._paths[other]!r}; this one counts",
                line=line,
                severity="warning",
            )
        self.entries[result.item.id] = entry


def _lines(file: BinaryIO, path: str, problems: SuiteProblems) -> Iterator[tuple[Header | End | Result | None, int]]:
    """Parse each line of a journal, None for a damaged one, with its offset.

    Raises FileError for a file that is no journal of this version.
    """
    first = file.readline(MAX_BYTES)
    yield _header(first, path), 0
    offset = len(first)
    for number, text in enumerate(iter(partial(file.readline, MAX_BYTES), b""), 2):
        if len(text) == MAX_BYTES:
            refuse("SR-SUITE-011", path, f"the line has more than {MAX_BYTES >> 20} MiB", line=number)
        entry: Header | End | Result | None = None
        kind = next((kind for begin, kind in _KINDS.items() if text.startswith(begin)), Result)
        try:
            entry = _validated(kind, text)
        except ValueError as error:
            _damaged(error, text, path, number, problems)
        yield entry, offset
        offset += len(text)


def _header(text: bytes, path: str) -> Header:
    """Read the header in the first line. Raises FileError for a file that is no journal of this version."""
    if not text:
        refuse("SR-SUITE-011", path, "the journal is empty: its suite ended before it began", "run it again")
    try:
        fields = json.loads(text)
        version = fields["journal"]
    except (ValueError, TypeError, KeyError, RecursionError):
        refuse("SR-SUITE-011", path, 'this is no journal: its first line has no "journal"', line=1)
    if version != VERSION:
        refuse(
            "SR-SUITE-011",
            path,
            f"the journal has version {version!r}, expected {VERSION}",
            "read it with the version of this program that wrote it",
            1,
        )
    try:
        return _validated(Header, text)
    except ValueError as error:
        refuse("SR-SUITE-011", path, f"the header of the journal is wrong: {_first(error)}", line=1)


def _damaged(error: ValueError, text: bytes, path: str, line: int, problems: SuiteProblems) -> None:
    if text.endswith(b"\n"):
        message = f"the line is damaged, and is ignored: {_first(error)}"
    else:
        message = "the journal ends in the middle of a line, as after a kill; that result is ignored"
    problems.found("SR-SUITE-012", path, message, line=line, severity="warning")


def _first(error: Any) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    place = "/".join(map(str, problem["loc"]))
    message = problem["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def _opened(path: str) -> BinaryIO:
    try:
        if is_stream(path):  # its lines are read again as they are asked for
            refuse("SR-SUITE-006", path, "the journal is a pipe, a device or a socket, expected a file")
        return open(path, "rb")
    except (OSError, ValueError) as error:
        help = close_files_help(path, error) if isinstance(error, OSError) else None
        refuse("SR-SUITE-006", path, f"the journal cannot be read: {reason_of(error)}", help)


_NEVER_KEPT = ("Skip", "Missing", "MissingTool")


class EarlierResults:
    """Life cycle: made of what an earlier run has written; `compare` says which results do not hold any more; `result`
    gives those that do."""

    def __init__(self, journals: MergedJournals) -> None:
        self._journals = journals
        self._void: dict[str, str] = {}  # the ids of results that do not hold, and what they were made with

    def compare(self, now: Header, devices: Container[tuple[str, str]] | None) -> list[str]:
        """Compare what decided the results with what would decide them now; a sentence for each difference.

        ``devices`` are those in use, each with its UUID and driver; None where they are not known."""
        for id, entry in self._journals.entries.items():
            difference = entry.verdict not in _NEVER_KEPT and self._difference(entry, now, devices)
            if difference:
                self._void[id] = difference
        counts = Counter(self._void.values())
        return [
            f"{counted(count, 'result')} of the run before {'is' if count == 1 else 'are'} of {difference}, and"
            f" {'runs' if count == 1 else 'run'} again"
            for difference, count in counts.items()
        ]

    def _difference(self, entry: Entry, now: Header, devices: Container[tuple[str, str]] | None) -> str:
        before = self._journals.runs[entry.run].header
        if before.program_hash != now.program_hash:
            if before.program != now.program:
                return f"version {before.program} of this program"
            names = {*before.runner, *now.runner}
            changed = sorted(name for name in names if _text(before.runner.get(name)) != _text(now.runner.get(name)))
            return f"other options ({', '.join(changed)})" if changed else "another source of this program"
        if devices is not None and (entry.device, entry.driver) not in devices:
            return f"the device {entry.device} with the driver {entry.driver!r}"
        if before.timeout_s < now.timeout_s if entry.timed_out else now.timeout_s < entry.longest_s < before.timeout_s:
            return f"the time limit {before.timeout_s:g} s"
        return ""

    def result(self, id: str, hashes: Hashes) -> Result | None:
        """The result of an item with these hashes; None where there is none that holds."""
        if id not in self._journals.entries or id in self._void:
            return None
        before = self._journals.result(id)
        is_same = before.hashes == hashes._replace(program=before.hashes.program)
        return before if is_same and before.last is not None and before.last.status not in _NEVER_KEPT else None


def _text(option: Any) -> str:
    return json.dumps(option, default=str)

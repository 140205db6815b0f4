"""The journal of a suite: JSON lines, written as results arrive, and read for reports, merging and --resume.

The first line is a `Header`, the last line an `End`, each other line a `Result`. A resumed suite writes another header
before further results. The last result of an item counts. Each line is one write at the end of the file, so a killed
process can damage only the last line.
"""

from __future__ import annotations

import errno
import json
import math
import mmap
import os
import sys
import time
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache, partial
from socket import gethostname
from typing import Annotated, Any, BinaryIO, Final, Literal, NamedTuple

from scenario_runner.errors import FileError
from scenario_runner.errors.installation import own_version
from scenario_runner.errors.text import Json, close_files_help, counted, reason_of
from scenario_runner.files.input import MAX_BYTES, is_stream
from scenario_runner.files.sandbox import check_path, open_file
from scenario_runner.suite.outcomes import Outcome, Result, SuiteProblems, refuse
from scenario_runner.suite.reports.summary import Repeat
from scenario_runner.suite.verdicts_and_retries import Row, is_verdict, not_run

try:
    import fcntl
except ImportError:  # not on this system: two suites could write to one journal
    fcntl = None  # type: ignore[assignment]

VERSION: Final = 2
"""Version of the format; a reader refuses others."""
FILE_NAME: Final = "journal.jsonl"
PREVIOUS_NAME: Final = "journal.previous.jsonl"

_dumps: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


Ended = Literal["complete", "stopped", "interrupted", "stopped by an error"]


class Header(NamedTuple):
    """The header of all results after it.

    ``program`` is the version of this program, ``program_hash`` comes from `hashes.program_hash`, and ``started`` is
    in seconds since 1970. ``command`` is the command line of the suite, ``runner`` has the options that affect runs,
    and ``repeat`` has the options to run an item again. ``items`` is the number of expected results, or None if it is
    still unknown. ``timeout_s`` is the default time limit of an item.
    """

    journal: int
    program: str
    program_hash: str
    host: str
    started: float
    command: tuple[str, ...] = ()
    runner: Mapping[str, Json] = {}
    repeat: Repeat = Repeat()
    items: int | None = None
    timeout_s: float = 60.0


class End(NamedTuple):
    """The end of a suite. A killed suite has none.

    Only a ``complete`` suite has a result for every item. ``items`` is as in `Header`. ``devices`` maps UUIDs to names.
    """

    end: Ended
    items: int | None = None
    devices: Mapping[str, str] = {}


def header(program_hash: str, **about: Any) -> Header:
    """Make the header of a suite that starts now on this machine."""
    return Header(VERSION, own_version(), program_hash, gethostname(), time.time(), **about)


class Journal:
    """A journal to write. Life cycle: opened and locked; a header, results and an end are written; closed.

    An older journal in the folder becomes ``journal.previous.jsonl``, but ``resume`` appends to it. Raises FileError if
    another suite writes to the journal, or if the folder is not writable.
    """

    def __init__(self, folder: str, *, resume: bool = False) -> None:
        self.path = os.path.join(folder, FILE_NAME)
        self.is_lost = False  # another program has removed or replaced the file
        self._descriptor = -1
        try:
            check_path(folder)
            os.makedirs(folder, exist_ok=True)
            self._descriptor = _opened(self.path)
            size_bytes = os.fstat(self._descriptor).st_size
            if size_bytes and resume:
                self._end_last_line()
            elif size_bytes:
                self._begin_anew(os.path.join(folder, PREVIOUS_NAME))
        except OSError as error:
            self.close()
            refuse("SR-FILE-015", error.filename or self.path, f"the journal cannot be written: {reason_of(error)}")

    def write(self, entry: Header | Result | End) -> None:
        """Write a line. The line survives a kill of this process. Raises FileError."""
        fields = entry.as_json() if isinstance(entry, Result) else entry._asdict()
        if isinstance(entry, Header):
            fields["repeat"] = entry.repeat._asdict()
        # JSON has no place for bytes of file names that are not UTF-8
        line = _dumps(fields).encode("utf-8", "replace") + b"\n"
        try:
            self._check_place()
            if os.write(self._descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            help = "earlier results stay in the journal: make room, and continue with --resume"
            refuse("SR-FILE-015", self.path, f"the journal cannot be written: {reason_of(error)}", help)

    def close(self) -> None:
        """Close the file, so that other suites can write to it. A second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_place(self) -> None:
        """Check that the path still leads to the open file, otherwise results would be lost. Raises FileError."""
        try:
            self.is_lost = not os.path.samestat(os.stat(self.path), os.fstat(self._descriptor))
        except FileNotFoundError:
            self.is_lost = True
        if self.is_lost:
            message = "the journal or the folder of results was removed or replaced while the suite ran"
            refuse("SR-FILE-015", self.path, message, "run the suite again, and leave the folder alone meanwhile")

    def _end_last_line(self) -> None:
        """Remove a partial line after a kill."""
        with mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ) as content:
            end = content.rfind(b"\n") + 1
        os.ftruncate(self._descriptor, end)

    def _begin_anew(self, previous: str) -> None:
        """Rename the journal of an earlier run. The lock prevents another suite from starting a journal meanwhile."""
        if sys.platform == "win32":  # which renames no open file
            self.close()
        os.replace(self.path, previous)
        old, self._descriptor = self._descriptor, -1
        try:
            self._descriptor = _opened(self.path)
        finally:
            if old >= 0:
                os.close(old)


def _opened(path: str) -> int:
    """Open and lock a journal, and return the descriptor. Raises OSError, and FileError if another suite has the lock.

    The lock belongs to the process, so workers that outlive the suite do not keep it. But closing any descriptor of the
    file releases the lock: this process must not open the journal twice.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    descriptor = open_file(path, flags, 0o666)
    with ExitStack() as stack:
        stack.callback(os.close, descriptor)
        is_ours = False
        with suppress(BlockingIOError, PermissionError, FileNotFoundError):  # another suite has the file or moved it
            if fcntl is not None:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = os.path.samestat(os.fstat(descriptor), os.stat(path))
        if not is_ours:
            help = "give each suite a --results folder of its own; 'scenario-runner report' merges their journals"
            refuse("SR-SUITE-010", path, "another suite writes to this journal", help)
        stack.pop_all()
    return descriptor


def _checked(result: Result) -> Result:
    if not is_verdict(result.verdict):
        raise ValueError(f"verdict: {result.verdict!r} is not a verdict")
    for number, attempt in enumerate(result.attempts):
        if not 0 <= attempt.seconds < math.inf:
            raise ValueError(f"attempts/{number}: seconds: {attempt.seconds} is not a time")
        if not all(isinstance(diagnostic.get("message", ""), str) for diagnostic in attempt.diagnostics):
            raise ValueError(f"attempts/{number}: diagnostics: a message is not text")
    return result


@cache
def _adapters() -> dict[bytes, Any]:
    """Return the TypeAdapter of each kind of line, by the beginning of the line."""
    from pydantic import AfterValidator, TypeAdapter  # takes 50 ms, while workers start

    result = Annotated[Result, AfterValidator(_checked)]
    return {b'{"journal"': TypeAdapter(Header), b'{"end"': TypeAdapter(End), b"": TypeAdapter(result)}


def _parsed(line: bytes) -> Json:
    """Read a line. Raises pydantic's ValidationError, a ValueError."""
    adapter = next(adapter for begin, adapter in _adapters().items() if line.startswith(begin))
    return adapter.validate_json(line, strict=True)


class Run(NamedTuple):
    """A run of a suite in the journal ``path``. ``end`` is None if the suite was killed or still runs."""

    path: str
    header: Header
    end: End | None = None


class Incomplete(NamedTuple):
    """A journal without the results of all items: the path, the end of the suite in a word, and a message."""

    path: str
    ended: str
    message: str


class MergedJournals:
    """Journal results by item id. An item's last result counts.

    Iteration follows the order of ids. A folder stands for the journal in it. Damaged lines, contradictions between
    journals, and unusable journals are reported as problems. Raises FileError if no journal is usable.
    """

    def __init__(self, paths: Sequence[str], problems: SuiteProblems) -> None:
        self.runs: list[Run] = []
        self.results: dict[str, Result] = {}
        self.unusable: list[str] = []
        """The paths of unusable journals, which are reported already."""
        self._problems = problems
        self._run_of: dict[str, Run] = {}
        self._counts: Counter[str] = Counter()  # items by journal
        errors: list[FileError] = []
        for path in paths:
            path = os.path.join(path, FILE_NAME) if os.path.isdir(path) else path
            try:
                self._read(path)
            except FileError as error:
                errors.append(error)
                self.unusable.append(path)
        if errors and len(errors) == len(paths):
            raise errors[0]
        for problem in (problem for error in errors for problem in error.problems):
            problems.found(problem.code, problem.path, problem.message, problem.help, line=problem.line)

    def incomplete(self) -> Iterator[Incomplete]:
        """Yield journals that lack results from the last suite. Unusable journals come first."""
        for path in self.unusable:
            yield Incomplete(path, "incomplete", "the journal cannot be read")
        for path, run in {run.path: run for run in self.runs}.items():  # the last run in each journal
            count = self._counts[path]
            items = run.header.items if run.end is None else run.end.items
            if run.end is None:
                ended, how = "did not end", "the suite was killed or still runs"
            elif run.end.end != "complete":
                ended, how = run.end.end, f"the suite was {run.end.end}"
            elif items is not None and count < items:
                ended, how = "incomplete", "results are lost"
            else:
                continue
            found = counted(count, "item") if items is None else f"{count} of {counted(items, 'item')}"
            yield Incomplete(path, ended, f"{how}: the journal has results of {found}")

    def not_run(self) -> str:
        """Return a sentence if the device supports no item, else ""."""
        results = self.results.values()
        reasons = (result.last.reason for result in results if result.verdict == "NotSupported" and result.last)
        return not_run([result.verdict for result in results], len(results), next(reasons, ""))

    def rows(self) -> dict[str, Row]:
        """Return the rows for tables of items."""
        return {id: Row(result.verdict, result.seconds) for id, result in self.results.items()}

    def __iter__(self) -> Iterator[Result]:
        """Yield all results in the order of ids, with absolute paths of files."""
        for id, result in sorted(self.results.items()):
            folder = os.path.dirname(os.path.abspath(self._run_of[id].path))
            yield result._replace(attempts=tuple(_placed(attempt, folder) for attempt in result.attempts))

    def header(self, id: str) -> Header:
        """Return the header above the result of an item. Raises KeyError."""
        return self._run_of[id].header

    def repeat(self, result: Result) -> Repeat:
        """Return the options of the suite to run an item again."""
        return self.header(result.item.id).repeat

    def forget_void(self, now: Header, devices: Container[tuple[str, str]] | None) -> list[str]:
        """Drop results of another program version, device, option or limit. Return a sentence for each difference.

        ``devices`` are pairs of UUID and driver, or None if the devices are unknown.
        """
        counts: Counter[str] = Counter()
        for id, result in list(self.results.items()):
            difference = result.verdict not in NEVER_KEPT and self._difference(result, now, devices)
            if difference:
                del self.results[id]
                counts[difference] += 1
        return [
            f"{counted(count, 'result')} of the run before {'is' if count == 1 else 'are'} of {difference}, and"
            f" {'runs' if count == 1 else 'run'} again"
            for difference, count in counts.items()
        ]

    def _difference(self, result: Result, now: Header, devices: Container[tuple[str, str]] | None) -> str:
        before = self.header(result.item.id)
        if before.program_hash != now.program_hash:
            if before.program != now.program:
                return f"version {before.program} of this program"
            names = {*before.runner, *now.runner}
            changed = sorted(name for name in names if _text(before.runner.get(name)) != _text(now.runner.get(name)))
            return f"other options ({', '.join(changed)})" if changed else "another source of this program"
        if devices is not None and (result.device, result.driver) not in devices:
            return f"the device {result.device} with the driver {result.driver!r}"
        timed_out = any(attempt.status == "Timeout" for attempt in result.attempts)
        longest_s = max((attempt.seconds for attempt in result.attempts), default=0.0)
        if before.timeout_s < now.timeout_s if timed_out else now.timeout_s < longest_s < before.timeout_s:
            return f"the time limit {before.timeout_s:g} s"
        return ""

    def _read(self, path: str) -> None:
        """Add the results of a journal. Raises FileError for a file of another kind or version."""
        with _opened_to_read(path) as file:
            self.runs.append(Run(path, _header(file.readline(MAX_BYTES), path)))
            for number, text in enumerate(iter(partial(file.readline, MAX_BYTES), b""), 2):
                if len(text) == MAX_BYTES:
                    refuse("SR-SUITE-011", path, f"the line has more than {MAX_BYTES >> 20} MiB", line=number)
                entry = None  # a damaged line may have been another header
                try:
                    entry = _parsed(text)
                except ValueError as error:
                    message = "the journal ends in the middle of a line, as after a kill: that result does not count"
                    if text.endswith(b"\n"):
                        message = f"the line is damaged and does not count: {_first(error)}"
                    self._problems.found("SR-SUITE-012", path, message, line=number, severity="warning")
                if isinstance(entry, Header):
                    self.runs.append(Run(path, entry))
                elif isinstance(entry, Result):
                    self._add(path, number, entry)
                else:
                    self.runs[-1] = self.runs[-1]._replace(end=entry)

    def _add(self, path: str, line: int, result: Result) -> None:
        id, verdict = result.item.id, result.verdict
        other = self._run_of[id].path if id in self._run_of else None
        self._counts[path] += other != path
        if other not in (None, path) and self.results[id].verdict != verdict:
            message = (
                f"the verdict on {id!r} is {verdict}, but {self.results[id].verdict} in {other!r}; this one counts"
            )
            self._problems.found("SR-SUITE-013", path, message, line=line, severity="warning")
        self.results[id] = result
        self._run_of[id] = self.runs[-1]


def _header(text: bytes, path: str) -> Header:
    """Read the header in the first line. Raises FileError for a file of another kind or version."""
    if not text:
        refuse("SR-SUITE-011", path, "the journal is empty", "run the suite again")
    try:
        fields = json.loads(text)
        version = fields["journal"]
    except (ValueError, TypeError, KeyError, RecursionError):
        refuse("SR-SUITE-011", path, 'the file is not a journal: the first line has no "journal"', line=1)
    if version != VERSION:
        message = f"the journal has version {version!r}, expected {VERSION}"
        refuse("SR-SUITE-011", path, message, "read it with the version of this program that wrote it", line=1)
    try:
        header: Header = _adapters()[b'{"journal"'].validate_json(text, strict=True)
    except ValueError as error:
        refuse("SR-SUITE-011", path, f"the header of the journal is wrong: {_first(error)}", line=1)
    return header


def _first(error: Any) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    place = "/".join(map(str, problem["loc"]))
    message = problem["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def _opened_to_read(path: str) -> BinaryIO:
    try:
        if is_stream(path):
            refuse("SR-SUITE-006", path, "the journal is a pipe, a device or a socket, expected a file")
        return open(open_file(path), "rb")
    except (OSError, ValueError) as error:
        help = close_files_help(path, error) if isinstance(error, OSError) else None
        refuse("SR-SUITE-006", path, f"the journal cannot be read: {reason_of(error)}", help)


NEVER_KEPT: Final = ("Skip", "Missing", "MissingTool")
"""The statuses of results that --resume drops."""


def _placed(attempt: Outcome, folder: str) -> Outcome:
    outputs = tuple(
        output._replace(files={what: os.path.join(folder, path) for what, path in output.files.items()})
        for output in attempt.outputs
    )
    return attempt._replace(outputs=outputs)


def _text(option: object) -> str:
    return json.dumps(option, default=str)

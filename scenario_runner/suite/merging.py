"""Read journals: of one run, of a resumed run, or of shards that make one run; find the results that --resume keeps."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from functools import cache, partial
from typing import Annotated, Any, BinaryIO, Final, NamedTuple, TypeVar

from scenario_runner.errors import FileError
from scenario_runner.files.source import MAX_BYTES, is_stream, reason_of
from scenario_runner.suite.journal import FILE_NAME, VERSION, End, Header
from scenario_runner.suite.problems import SuiteProblems, refuse
from scenario_runner.suite.records import Hashes, Outcome, Result
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
    """The results of journals by the ids of their items: of several of one item, the one read last counts.

    Iterating goes by the order of the ids. A folder stands for the journal in it. Damaged lines, and verdicts of
    different journals that contradict each other, are problems, and so is a file that cannot be read or is no journal
    of this version, where there are others. Raises FileError where there are none.
    """

    def __init__(self, paths: Sequence[str], problems: SuiteProblems) -> None:
        self.runs: list[Run] = []
        self.results: dict[str, Result] = {}
        self.unusable: list[str] = []
        """The paths of the journals that cannot be read, which has been reported."""
        self._paths = [os.path.join(path, FILE_NAME) if os.path.isdir(path) else path for path in paths]
        self._problems = problems
        self._run_of: dict[str, Run] = {}
        self._counts = [0] * len(paths)  # of the items that each journal has
        errors: list[FileError] = []
        for number, path in enumerate(self._paths):
            try:
                self._read(number, path)
            except FileError as error:
                errors.append(error)
                self.unusable.append(path)
        if errors and len(errors) == len(self._paths):
            raise errors[0]
        for problem in (problem for error in errors for problem in error.problems):
            problems.found(problem.code, problem.path, problem.message, problem.help, line=problem.line)

    def incomplete(self) -> Iterator[Incomplete]:
        """The journals whose last suite did not end by itself with the result of every item, or that have lost some.

        Those that cannot be read come first."""
        for path in self.unusable:
            yield Incomplete(path, "incomplete", "the journal cannot be read")
        last_runs = {run.journal: run for run in self.runs}
        for number, run in last_runs.items():
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
        results = self.results.values()
        reasons = (result.last.reason for result in results if result.verdict == "NotSupported" and result.last)
        return not_run([result.verdict for result in results], len(results), next(reasons, ""))

    def keep(self, ids: Container[str]) -> None:
        """Forget the results of other items."""
        self.results = {id: result for id, result in self.results.items() if id in ids}

    def rows(self) -> dict[str, Row]:
        """The rows of tables about the items."""
        return {id: Row(result.verdict, result.seconds) for id, result in self.results.items()}

    def __iter__(self) -> Iterator[Result]:
        """All results in the order of their ids; the paths of their files are absolute."""
        for id, result in sorted(self.results.items()):
            folder = os.path.dirname(os.path.abspath(self._paths[self._run_of[id].journal]))
            yield result._replace(attempts=tuple(_placed(attempt, folder) for attempt in result.attempts))

    def header(self, id: str) -> Header:
        """The header of the suite that has the result of an item. Raises KeyError."""
        return self._run_of[id].header

    def repeat(self, result: Result) -> Repeat:
        """The command of the suite that has a result, to run its item again."""
        return self.header(result.item.id).repeat

    def _read(self, number: int, path: str) -> None:
        with _opened(path) as file:
            for line, entry in enumerate(_lines(file, path, self._problems), 1):
                if isinstance(entry, Header):
                    self.runs.append(Run(number, entry))
                elif isinstance(entry, Result):
                    self._add(number, line, entry)
                else:  # a damaged line may have been the header of another suite
                    self.runs[-1] = self.runs[-1]._replace(end=entry)

    def _add(self, number: int, line: int, result: Result) -> None:
        id, verdict = result.item.id, result.verdict
        other = self._run_of[id].journal if id in self._run_of else None
        self._counts[number] += other != number
        if other not in (None, number) and self.results[id].verdict != verdict:
            path = self._paths[self._run_of[id].journal]
            message = f"the verdict on {id!r} is {verdict}, but {self.results[id].verdict} in {path!r}; this one counts"
            self._problems.found("SR-SUITE-013", self._paths[number], message, line=line, severity="warning")
        self.results[id] = result
        self._run_of[id] = self.runs[-1]


def _lines(file: BinaryIO, path: str, problems: SuiteProblems) -> Iterator[Header | End | Result | None]:
    """Parse each line of a journal, None for a damaged one.

    Raises FileError for a file that is no journal of this version.
    """
    yield _header(file.readline(MAX_BYTES), path)
    for number, text in enumerate(iter(partial(file.readline, MAX_BYTES), b""), 2):
        if len(text) == MAX_BYTES:
            refuse("SR-SUITE-011", path, f"the line has more than {MAX_BYTES >> 20} MiB", line=number)
        kind = next((kind for begin, kind in _KINDS.items() if text.startswith(begin)), Result)
        try:
            yield _validated(kind, text)
        except ValueError as error:
            message = "the journal ends in the middle of a line, as after a kill; that result is ignored"
            if text.endswith(b"\n"):
                message = f"the line is damaged, and is ignored: {_first(error)}"
            problems.found("SR-SUITE-012", path, message, line=number, severity="warning")
            yield None


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


def _first(error: Any) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    place = "/".join(map(str, problem["loc"]))
    message = problem["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def _opened(path: str) -> BinaryIO:
    try:
        if is_stream(path):
            refuse("SR-SUITE-006", path, "the journal is a pipe, a device or a socket, expected a file")
        return open(path, "rb")
    except (OSError, ValueError) as error:
        help = close_files_help(path, error) if isinstance(error, OSError) else None
        refuse("SR-SUITE-006", path, f"the journal cannot be read: {reason_of(error)}", help)


_NEVER_KEPT = ("Skip", "Missing", "MissingTool")


def _placed(attempt: Outcome, folder: str) -> Outcome:
    outputs = tuple(
        output._replace(files={what: os.path.join(folder, path) for what, path in output.files.items()})
        for output in attempt.outputs
    )
    return attempt._replace(outputs=outputs)


class EarlierResults:
    """Life cycle: made of what an earlier run has written; `compare` says which results do not hold any more; `result`
    gives those that do."""

    def __init__(self, journals: MergedJournals) -> None:
        self._journals = journals
        self._void: dict[str, str] = {}  # the ids of results that do not hold, and what they were made with

    def compare(self, now: Header, devices: Container[tuple[str, str]] | None) -> list[str]:
        """Compare what decided the results with what would decide them now; a sentence for each difference.

        ``devices`` are those in use, each with its UUID and driver; None where they are not known."""
        for id, result in self._journals.results.items():
            difference = result.verdict not in _NEVER_KEPT and self._difference(result, now, devices)
            if difference:
                self._void[id] = difference
        counts = Counter(self._void.values())
        return [
            f"{counted(count, 'result')} of the run before {'is' if count == 1 else 'are'} of {difference}, and"
            f" {'runs' if count == 1 else 'run'} again"
            for difference, count in counts.items()
        ]

    def _difference(self, result: Result, now: Header, devices: Container[tuple[str, str]] | None) -> str:
        before = self._journals.header(result.item.id)
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

    def result(self, id: str, hashes: Hashes) -> Result | None:
        """The result of an item with these hashes; None where there is none that holds."""
        before = self._journals.results.get(id)
        if before is None or id in self._void:
            return None
        is_same = before.hashes == hashes._replace(program=before.hashes.program)
        return before if is_same and before.last is not None and before.last.status not in _NEVER_KEPT else None


def _text(option: Any) -> str:
    return json.dumps(option, default=str)

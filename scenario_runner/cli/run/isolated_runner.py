"""Files of a run in a worker, which may crash or hang: the files after it run in another one."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

from scenario_runner.cli.command_frame import failed, sandboxed, start_driver
from scenario_runner.cli.console import VisibleStream, set_up_logging, set_up_streams, write
from scenario_runner.cli.run.run_files import FileEnd, FileRunner, RunFile
from scenario_runner.errors import DriverCrashError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Json
from scenario_runner.processes.crash import Crash
from scenario_runner.processes.jobs import Device, State, WorkerOptions
from scenario_runner.processes.workers import Workers
from scenario_runner.run.capture_tools import set_up_gfxreconstruct

_NOT_SENT: Final = ("annotations", "starting")
_KILL_WAIT_S: Final = 10.0


class _Work(NamedTuple):
    options: argparse.Namespace
    paths: Sequence[str]


class RunTask:
    """The `Task` of a run: it keeps the device open from file to file. An item of None closes the device."""

    about = Device()

    def __init__(self, options: WorkerOptions, device: str | None, announce: Callable[[float, str], None]) -> None:
        self._work: _Work = options.task_options
        self._runner: FileRunner | None = None
        if not isinstance(sys.stdout, VisibleStream):  # this is no copy of the process that reads the options
            set_up_streams()
        set_up_logging(self._work.options.log_level, lines=True)

    def run(self, file: RunFile | None) -> tuple[dict[str, Json], State]:
        """Run one file."""
        try:
            if file is None:
                self._close()
                end = FileEnd()
            else:
                if self._runner is None:
                    self._work.options.starting = start_driver(self._work.options)
                    self._runner = FileRunner(*self._work)
                with sandboxed(self._work.options):
                    end = self._runner.run_file(file)
            if sys.stdout is not None:  # closed by whoever started us
                sys.stdout.flush()
        except BaseException as error:
            end = FileEnd(failed(error), is_over=True)
        return {**end._asdict(), "problems": [problem.as_json() for problem in end.problems]}, "good"

    def _close(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.close_device()

    def used(self) -> list[str]:
        """Name nothing: few files run after a crash."""
        return []

    @staticmethod
    def preload(task_options: _Work, names: Sequence[str]) -> None:
        """Do nothing."""

    @staticmethod
    def devices(names: Sequence[str]) -> list[str]:
        """Return the names: a run has one device."""
        return list(names)


class RunPolicy(NamedTuple):
    """The `Policy` of a run: no file runs twice."""

    def outcome(self, fields: dict[str, Json], before: Sequence[RunFile], before_count: int) -> FileEnd:
        """Make the end of a file of its JSON. Raises ValueError and its like for anything else."""
        return FileEnd(**fields)._replace(problems=tuple(Diagnostic(**problem) for problem in fields["problems"]))

    def crashed(self, file: RunFile | None, crash: Crash) -> FileEnd:
        """Make the end of a file that ended its process."""
        from scenario_runner.suite.suite_workers import placed  # reads scenarios, after a crash alone

        error = crash.error(None if file is None else file.path)
        problems = tuple(map(placed, error.problems))
        return FileEnd(error.exit_code, problems, False, False, True, crash.native_stack, crash.stack)

    def again(self, hint: None, attempts: Sequence[FileEnd]) -> bool:
        """Return false."""
        return False


class IsolatedRunner(AbstractContextManager["IsolatedRunner"]):
    """Runs files as `FileRunner` does, in a worker."""

    def __init__(self, options: argparse.Namespace, paths: Sequence[str]) -> None:
        """Raises LimitError if the system refuses a process, and the errors of `set_up_gfxreconstruct`."""
        if options.gfxr is not None:
            set_up_gfxreconstruct(options.gfxr)  # raises errors; the worker does so again
        sent = argparse.Namespace(**{**vars(options), **dict.fromkeys(_NOT_SENT)})
        if options.shader_instrumentation is not None:
            from scenario_runner.run.graph_reports import file_version  # few runs measure shaders

            sent.replaced_measurements = file_version(options.shader_instrumentation)
        if options.watch:
            sent.timeout = None  # work that is given up would go on: the end of the process ends it
        self._workers: Workers[RunFile | None] = Workers(
            WorkerOptions(
                f"{__name__}:RunTask",
                RunPolicy(),
                _Work(sent, paths),
                jobs=1,
                timeout_s=options.quiet_s,
                timeout_origin="--timeout",
                if_quiet=True,
                kill_wait_s=_KILL_WAIT_S,
                core_dumps=options.core_dumps,
                shows_output=True,
            ),
            on_note=lambda text: write("warning", text),
        )

    def __exit__(self, *_: object) -> None:
        self._workers.close()

    def run(self, files: Iterable[RunFile | None]) -> Iterator[FileEnd]:
        """Run files, and say on standard output and error how each has ended, but for a crash."""
        for ended in self._workers.run_items((file, None) for file in files):
            if ended.left:
                error = DriverCrashError(ended.left)
                yield FileEnd(error.exit_code, tuple(error.problems), is_over=True, is_crash=True)
            else:
                yield ended.outcomes[-1]

    def close_device(self) -> Iterable[FileEnd]:
        """Close the device of the worker, which may crash it."""
        return self.run([None])

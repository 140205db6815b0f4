"""Files of a run in a worker process. After a crash or a hang, the next files run in a new worker."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

from scenario_runner.cli.arguments import report_error, sandboxed, start_driver
from scenario_runner.cli.console import VisibleStream, set_up_logging, set_up_streams, write
from scenario_runner.cli.run.run_files import FileEnd, FileRunner, RunFile
from scenario_runner.errors import DriverCrashError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Json
from scenario_runner.processes.isolated_process import Crash
from scenario_runner.processes.jobs import Device, State, WorkerOptions
from scenario_runner.processes.workers import Workers
from scenario_runner.suite.suite_workers import placed
from scenario_runner.vulkan.capture_tools import set_up_gfxreconstruct

_NOT_SENT: Final = ("annotations", "starting")
_KILL_WAIT_S: Final = 10.0


class _Work(NamedTuple):
    options: argparse.Namespace
    paths: Sequence[str]


class RunTask:
    """The `Task` of a run. The device stays open from file to file, until the item None closes it."""

    about = Device()

    def __init__(self, options: WorkerOptions, device: str | None, announce: Callable[[float, str], None]) -> None:
        self._work: _Work = options.task_options
        self._runner: FileRunner | None = None
        if not isinstance(sys.stdout, VisibleStream):  # a spawned process has plain streams
            set_up_streams()
        set_up_logging(self._work.options.log_level, lines=True)

    def run(self, file: RunFile | None) -> tuple[dict[str, Json], State]:
        """Run a file, or close the device for None."""
        try:
            if file is None:
                runner, self._runner = self._runner, None
                if runner is not None:
                    runner.close_device()
                end = FileEnd()
            else:
                if self._runner is None:
                    self._work.options.starting = start_driver(self._work.options)
                    self._runner = FileRunner(*self._work)
                with sandboxed(self._work.options):
                    end = self._runner.run_file(file)
            if sys.stdout is not None:  # the caller closed it
                sys.stdout.flush()
        except BaseException as error:
            end = FileEnd(report_error(error), is_over=True)
        return {**end._asdict(), "problems": [problem.as_json() for problem in end.problems]}, "good"

    def used(self) -> list[str]:
        """Name no modules: few files run after a crash."""
        return []

    @staticmethod
    def preload(task_options: _Work, names: Sequence[str]) -> None:
        """Do nothing."""

    @staticmethod
    def devices(names: Sequence[str]) -> list[str]:
        """Return the names unchanged: a run has a single device."""
        return list(names)


class RunPolicy(NamedTuple):
    """The `Policy` of a run: no file runs twice."""

    def outcome(self, fields: dict[str, Json], before: Sequence[RunFile], before_count: int) -> FileEnd:
        """Make a FileEnd of JSON from the worker. Raises ValueError, KeyError or TypeError for other JSON."""
        return FileEnd(**fields)._replace(problems=tuple(Diagnostic(**problem) for problem in fields["problems"]))

    def crashed(self, file: RunFile | None, crash: Crash) -> FileEnd:
        """Make the FileEnd of a file that crashed the worker."""
        error = crash.error(None if file is None else file.path)
        problems = tuple(map(placed, error.problems))
        return FileEnd(error.exit_code, problems, False, False, True, crash.native_stack, crash.stack)

    def again(self, hint: None, attempts: Sequence[FileEnd]) -> bool:
        """Return false: files of a run have no second try."""
        return False


class IsolatedRunner(AbstractContextManager["IsolatedRunner"]):
    """Runs files like `FileRunner`, but in a worker."""

    def __init__(self, options: argparse.Namespace, paths: Sequence[str]) -> None:
        """Set up the worker. Raises LimitError for a refused process, and errors of `set_up_gfxreconstruct`."""
        if options.gfxr is not None:
            set_up_gfxreconstruct(options.gfxr)  # raises errors here, before the worker sets it up again
        sent = argparse.Namespace(**{**vars(options), **dict.fromkeys(_NOT_SENT)})
        if options.shader_instrumentation is not None:
            from scenario_runner.run.graph_reports import file_version  # few runs measure shaders

            sent.replaced_measurements = file_version(options.shader_instrumentation)
        if options.watch:
            sent.timeout = None  # the device would go on with abandoned work: quiet_s ends the process instead
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
        """Run files. The worker prints the result of each file; the caller prints crashes."""
        for ended in self._workers.run_items((file, None) for file in files):
            if ended.left:
                error = DriverCrashError(ended.left)
                yield FileEnd(error.exit_code, tuple(error.problems), is_over=True, is_crash=True)
            else:
                yield ended.outcomes[-1]

    def close_device(self) -> Iterable[FileEnd]:
        """Close the worker's device. The driver may crash here too."""
        return self.run([None])

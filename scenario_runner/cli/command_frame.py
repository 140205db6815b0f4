"""The frame around a command's work: the driver's early start, the sandbox, and the error report."""

from __future__ import annotations

import argparse
import errno
import io
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout, suppress

from scenario_runner.cli.arguments import REPORTERS
from scenario_runner.cli.console import write
from scenario_runner.cli.option_types import STDOUT
from scenario_runner.errors import (
    INTERNAL_ERROR_EXIT_CODE,
    LimitError,
    MissingPackageError,
    OutOfMemoryError,
    ScenarioRunnerError,
    log,
)
from scenario_runner.errors.installation import pip_install
from scenario_runner.files.input import read_file
from scenario_runner.files.sandbox import distrusting
from scenario_runner.processes import progress, signals
from scenario_runner.processes.temporary import temporary_folder

DEPENDENCIES = ("vulkan", "cffi", "numpy", "pydantic", "imageio", "rich")
"""The Python packages that scenarios run on."""

_ERRORS_OF_WRITING = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO, errno.EBADF})


def sandboxed(options: argparse.Namespace) -> AbstractContextManager[None]:
    """Return the sandbox around a command: no link may lead out of the scenarios' folders."""
    if not getattr(options, "sandbox", False):
        return nullcontext()
    named = [path for name in ("files", "paths") for path in getattr(options, name, None) or ()]
    paths = [path for path in named if not path.startswith("@") and path != "-"]
    if getattr(options, "file", None):
        paths.append(options.file)
    return distrusting(paths or [os.curdir])


@contextmanager
def json_output(options: argparse.Namespace) -> Iterator[None]:
    """Redirect standard output to the file of --json=FILE. With --json alone, standard output holds only the report."""
    path, is_report = getattr(options, "json", None), options.command in REPORTERS
    if path is None or (path == STDOUT) != is_report:
        yield
        return
    if not is_report:
        from scenario_runner.files.output import OutputFile  # 2 ms that --help and suites do not need

        with OutputFile(path) as file, redirect_stdout(io.StringIO()) as text:
            yield
            file.write(text.getvalue().encode())
        return
    with temporary_folder() as folder:
        options.json = os.path.join(folder, "report.json")
        with redirect_stdout(sys.stderr):
            yield
        if os.path.exists(options.json):
            print(read_file(options.json).decode(), end="")


def report_error(error: BaseException) -> int:
    """Print the error that ended a command, and return the exit code."""
    if isinstance(error, SystemExit):  # --help
        return error.code if isinstance(error.code, int) else 0
    # An interrupt may arrive as another error: NumPy's import turns it into an ImportError.
    if isinstance(error, KeyboardInterrupt) or signals.arrived is not None:
        name = signals.INTERRUPTING[signals.exit_code() - signals.EXIT_CODE_BASE]
        what, pointer, kind = progress.work()
        work = f" while {what}{f' at {pointer}' if pointer else ''}" if pointer or kind == progress.COMPILING else ""
        with suppress(OSError):  # after SIGHUP the terminal is gone
            print(f"interrupted{'' if name == 'SIGINT' else f' by {name}'}{work}", file=sys.stderr)
        return signals.exit_code()
    if isinstance(error, BrokenPipeError):
        return 1  # nobody reads the output any more
    if isinstance(error, MemoryError):
        error = OutOfMemoryError("this machine has too little memory")
    if isinstance(error, ModuleNotFoundError):
        package = {"_cffi_backend": "cffi", "yaml": "PyYAML"}.get(error.name or "", error.name)
        if package in (*DEPENDENCIES, "shtab", "PyYAML"):  # an incomplete installation
            help = shlex.join(pip_install(package))
            error = MissingPackageError(f"the Python package {package!r} is not installed", help=help)
    if isinstance(error, ScenarioRunnerError):
        for problem in error.problems:
            write("error", str(problem), problem.help)
        return error.exit_code
    if isinstance(error, OSError) and error.filename is None:  # files/ turns errors of files into FileError
        place = "standard output cannot be written: " if error.errno in _ERRORS_OF_WRITING else ""
        write("error", f"{place}{(error.strerror or str(error)).lower()}")
        return 1
    import traceback  # a run without defects needs no traceback

    if log.is_enabled("scenario_runner", "DEBUG"):
        traceback.print_exception(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    help = "this is a defect of scenario-runner: report it, with the output of --log-level debug"
    write("error", f"internal error: {type(error).__name__}: {error} ({frame.filename}:{frame.lineno})", help)
    return INTERNAL_ERROR_EXIT_CODE


def start_driver(options: argparse.Namespace) -> object:
    """Start the driver on a thread while Python imports the rest. Return the `InstanceStart`.

    Return None if nothing runs, if a tool has to come before the driver, or if layers need another environment.
    """
    measures = options.profiling or options.emulation_layer_profiling_dump_dir is not None
    prints = options.printf or options.printf_size is not None
    captures = options.capture_frame is not None or options.gfxr is not None
    if options.action != "main" or measures or prints or captures:
        return None
    from scenario_runner.vulkan.instance import InstanceStart

    validation = options.validation or options.validation_report
    return InstanceStart(validation="sync" if options.validation_sync else validation, labels=options.debug_labels)


def start_pool(options: argparse.Namespace) -> object:
    """Start the pool of workers, which imports modules while this process finds the items. Return the `PoolProcess`.

    Return None if no worker is needed here.
    """
    if options.action != "main" or options.list or options.update or options.cluster:
        return None
    from scenario_runner.processes.workers import PoolProcess

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads would take time from the workers
    with suppress(LimitError):  # the suite reports this error
        return PoolProcess("scenario_runner.suite.evaluation")
    return None

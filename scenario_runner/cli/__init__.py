"""The command line: the table of commands. What a command does is imported once its arguments are read (`options`)."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import import_module

from scenario_runner.cli.console import show_error, write
from scenario_runner.errors import (
    INTERNAL_ERROR_EXIT_CODE,
    MissingPackageError,
    OutOfMemoryError,
    ScenarioRunnerError,
    UsageError,
    log,
)
from scenario_runner.errors.installation import MIXED_PACKAGES_FIX, mixed_packages_problem, pip_install
from scenario_runner.errors.text import close_names, did_you_mean
from scenario_runner.processes import last_words, signals, temporary

COMMANDS = {
    "run": "run scenarios (the default command)",
    "validate": "check scenarios without a GPU",
    "test": "run many scenarios with expectations, isolated from each other",
    "report": "show, merge and compare the results of suites",
    "bench": "measure scenarios over many runs, or compare measurements",
    "pack": "write scenarios and all that they read into one folder, as plain files",
    "reduce": "write the smallest scenario that still fails as another one does, for a bug report",
    "explain": "explain the code of a finding and how to fix it",
    "view": "show images and tensors, or compare two of them",
    "diff": "find the first command after which two dumps of a scenario differ",
    "shader": "show the interface of a shader",
    "vgf": "show the contents of a VGF model, or make a scenario that runs it",
    "convert": "convert a TOSA model, with the shaders in it, to VGF",
    "compare-layers": "find the first layer of a TOSA model whose result is not as expected",
    "import": "make a suite from TOSA's conformance tests",
    "custom-op": "check shaders of custom operations in TOSA models, or write their attributes",
    "cache": "show or clear what is kept for later runs",
    "schema": "print the JSON Schema of scenarios, expectations or suites, or settings for an editor",
    "doctor": "show what is installed on this machine for running scenarios, and what is missing",
    "completion": "print a script with which bash, zsh or fish completes commands and options",
    "help": "show the options of a command",
}
DEPENDENCIES = ("vulkan", "cffi", "numpy", "pydantic", "imageio", "rich")
"""The Python packages that are installed with this program."""

_WITH_DRIVER = ("run", "compare-layers")
_ERRORS_OF_WRITING = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO, errno.EBADF})
# With one of these nothing is run.
_WITHOUT_RUN = frozenset({"-h", "--help", "-v", "--version"})
_WITHOUT_DRIVER = _WITHOUT_RUN | {"--list-devices", "--isolate", "--watch", "--core-dumps"}
# With one of these a tool comes before the driver, or the layers read the environment that is changed for them.
_BEFORE_DRIVER = ("--capture-frame", "--gfxr", "--emulation-layer-profiling", "--printf")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; see `errors` for what each code means.

    Without a command word the arguments are those of ``run``: ``scenario-runner test.json``. A scenario file that has
    the name of a command is given as ``./run``.
    """
    try:
        name, arguments = _command(list(sys.argv[1:] if argv is None else argv))
        if name in _WITH_DRIVER and _WITHOUT_RUN.isdisjoint(arguments):
            last_words.announce_crashes()
        starting = _start_driver(arguments) if name == "run" else None
        from scenario_runner.cli.options import parse

        options = parse(name, arguments, COMMANDS)
        mixed = mixed_packages_problem()
        if mixed:
            write("warning", mixed, MIXED_PACKAGES_FIX)
        options.starting = starting
        module, function = options.work.split(":")
        work = getattr(import_module(f"scenario_runner.cli.{module}"), function)
        if options.github if options.github is not None else os.environ.get("GITHUB_ACTIONS"):
            from scenario_runner.cli.github import Annotations

            with Annotations(name) as options.annotations, sandboxed(options):
                code = work(options) or 0
        else:
            with sandboxed(options):
                code = work(options) or 0
    except BaseException as error:
        signals.hold()
        code = failed(error)
    signals.hold()
    temporary.remove_all()
    return code


def sandboxed(options: object) -> AbstractContextManager[None]:
    """Return the sandbox around the whole command: no link leads out of the folders of the scenarios."""
    if not getattr(options, "sandbox", False):
        return nullcontext()
    from scenario_runner.files.sandbox import distrusting

    words = [*(getattr(options, name, None) or [] for name in ("scenario", "files", "paths"))]
    paths = [path for each in words for path in each if not path.startswith("@") and path != "-"]
    return distrusting([*paths, *filter(None, [getattr(options, "file", None)])] or [os.curdir])


def failed(error: BaseException) -> int:
    """Report the error that ended a command; return the exit code."""
    if isinstance(error, SystemExit):  # --help
        return error.code if isinstance(error.code, int) else 0
    # NumPy's import, for one, makes an ImportError of an interrupt.
    if isinstance(error, KeyboardInterrupt) or signals.arrived is not None:
        name = signals.INTERRUPTING[signals.exit_code() - signals.EXIT_CODE_BASE]
        with suppress(OSError):  # the terminal has gone, hence SIGHUP
            print("interrupted" if name == "SIGINT" else f"interrupted by {name}", file=sys.stderr)
        return signals.exit_code()
    if isinstance(error, BrokenPipeError):
        return 1  # whoever read our output has gone; there is nobody to tell
    if isinstance(error, MemoryError):
        error = OutOfMemoryError("the memory of this machine does not suffice")
    if isinstance(error, ModuleNotFoundError):
        package = "cffi" if error.name == "_cffi_backend" else error.name
        if package in DEPENDENCIES:
            help = shlex.join(pip_install(package))
            error = MissingPackageError(f"the Python package {package!r} is not installed", help=help)
    if isinstance(error, ScenarioRunnerError):
        show_error(error)
        return error.exit_code
    if isinstance(error, OSError) and error.filename is None:  # errors of files were mapped where they came up
        place = "standard output cannot be written: " if error.errno in _ERRORS_OF_WRITING else ""
        write("error", f"{place}{(error.strerror or str(error)).lower()}")
        return 1
    import traceback  # which a run that ends well has no need of

    if log.hears("scenario_runner", "DEBUG"):
        traceback.print_exception(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    help = "this is a defect of scenario-runner; please report it with the output of --log-level debug"
    write("error", f"internal error: {type(error).__name__}: {error} ({frame.filename}:{frame.lineno})", help)
    return INTERNAL_ERROR_EXIT_CODE


def _command(arguments: list[str]) -> tuple[str, list[str]]:
    """The command and its own arguments. Raises UsageError for a word that is nearly a command, and is not a file."""
    first = arguments[0] if arguments else ""
    if first == "help":
        name = arguments[1] if len(arguments) > 1 else "run"
        if name not in COMMANDS:
            raise _no_command(name)
        return ("run" if name == "help" else name), ["--help"]
    if first in COMMANDS:
        return first, arguments[1:]
    if first.replace("-", "").replace("_", "").isalpha() and first[:1] != "-":
        error = _no_command(first)
        if " (did you mean " in str(error) and not os.path.exists(first):
            raise error
    return "run", arguments


def _start_driver(argv: Sequence[str]) -> object:
    """Start the driver on a thread, as it takes as long as the imports that follow; return its `InstanceStart`.

    None where the command needs no driver, or probably runs in a worker."""
    is_isolated = not _WITHOUT_DRIVER.isdisjoint(argv) or sum(word.endswith(".json") for word in argv) > 1
    return None if is_isolated or not argv else start_driver(argv)


def start_driver(argv: Sequence[str]) -> object:
    """Start the driver in the process that runs the files; None if it starts with other options."""
    if "--profiling" in argv or any(argument.startswith(_BEFORE_DRIVER) for argument in argv):
        return None
    from scenario_runner.vulkan.device import InstanceStart

    validation = "--validation" in argv or "--validation-report" in argv
    labels = "--debug-labels" in argv or "--enable-gpu-debug-markers" in argv
    return InstanceStart(validation="sync" if "--validation-sync" in argv else validation, labels=labels)


def _no_command(word: str) -> UsageError:
    meant = did_you_mean(close_names(word, COMMANDS, most=1))
    return UsageError(f"there is no command {word!r}{meant}", help=f"the commands: {', '.join(COMMANDS)}")

"""From the words of a command line to a command's work: the parser, and the frame around the work.

The parser finds the command, the options, and the values that follow from other options. Commands themselves refuse
options that contradict each other. The frame starts the driver early, sets up the sandbox and reports errors.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout, suppress
from typing import Any, Final

from scenario_runner.cli.console import write
from scenario_runner.cli.option_types import STDOUT, Parser, show_help
from scenario_runner.cli.options import COMMANDS, EXAMPLES, GROUPS
from scenario_runner.errors import (
    INTERNAL_ERROR_EXIT_CODE,
    LimitError,
    MissingPackageError,
    OutOfMemoryError,
    ScenarioRunnerError,
    UsageError,
    log,
)
from scenario_runner.errors.installation import pip_install
from scenario_runner.errors.text import close_names, did_you_mean
from scenario_runner.files.input import is_model, read_file
from scenario_runner.files.sandbox import distrusting
from scenario_runner.processes import progress, signals
from scenario_runner.processes.temporary import temporary_folder

_PAGES: Final = "The pages in docs/ explain each command; docs/command_line.md lists all options."
REPORTERS: Final = ("test", "report", "bench")
"""The commands that write a file of --json beside other output."""
_READERS: Final = ("run", "validate", "bench", "pack")
# Options of `shared_arguments` that some commands lack.
_RUN_DEFAULTS: Final = {
    "device": None,
    "ml_emulation": "auto",
    "disable_extension": (),
    "enable_robustness_features": False,
    "debug_labels": False,
    "printf": False,
    "printf_size": None,
}
DEMO: Final = os.path.normpath(os.path.join(os.path.dirname(__file__), "..", "suite", "demo"))


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line. The result also has ``command``, ``action`` and ``argv``, the words after the command.

    ``scenario-runner test.json`` means ``scenario-runner run test.json``. To run a file called ``run``, write
    ``./run``. Raises UsageError, and SystemExit after printing help.
    """
    command, words = _split(argv)
    parser = parser_of(command)
    if command == "help":
        show_help(_overview())
        raise SystemExit(0)
    options = parser.parse_args(_with_json_values(command, words))
    options.command, options.argv = command, words
    if command in _READERS:
        options.files = ["/dev/stdin" if file == "-" else file for file in options.files]
    for name, actions in parser.word_groups.items():
        setattr(options, name, _words_of(actions, options))
    if command == "run":
        _complete_run(options)
    elif command == "validate" and options.json:
        options.format = "json"
    elif command == "test":
        _complete_test(options)
    return options


def _split(argv: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Split the command from the other words. Raises UsageError for a mistyped command, unless it names a file."""
    first = argv[0] if argv else ""
    if first in ("-h", "--help"):
        return "help", []
    if first == "help":
        name = argv[1] if len(argv) > 1 else "help"
        if name not in COMMANDS:
            raise _no_command(name)
        return name, ["--help"]
    if first in COMMANDS:
        return first, argv[1:]
    if first.replace("-", "").replace("_", "").isalpha() and first[:1] != "-":
        error = _no_command(first)
        if " (did you mean " in str(error) and not os.path.exists(first):
            raise error
    return "run", argv


def _overview() -> str:
    """Return the commands in groups, with examples."""
    lines = ["Run GPU workloads described in JSON.", ""]
    lines += ["usage: scenario-runner [run] FILE… [options], or scenario-runner COMMAND --help"]
    for title, names in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:16}{purpose(name)}" for name in names)]
    return "\n".join([*lines, "", "examples:", *EXAMPLES["help"], "", _PAGES])


def _with_json_values(command: str, words: Sequence[str]) -> list[str]:
    """Give --json without a file the value "-". Only reports take the next word as the file."""
    given = list(words)
    for at, word in enumerate(words):
        following = words[at + 1 : at + 2]
        if word == "--json" and (command not in REPORTERS or not following or following[0].startswith("-")):
            given[at] = f"--json={STDOUT}"
    return given


def _no_command(word: str) -> UsageError:
    meant = did_you_mean(close_names(word, COMMANDS, most=1))
    return UsageError(f"there is no command {word!r}{meant}", help=f"the commands: {', '.join(COMMANDS)}")


def parser_of(command: str) -> Parser:
    """Make the parser of a command."""
    add_options = COMMANDS[command]
    parser = Parser(f"scenario-runner {command}", str(add_options.__doc__), EXAMPLES.get(command, ()))
    parser.set_defaults(action="main", annotations=None, github=False, log_level=None, **_RUN_DEFAULTS)
    add_options(parser)
    return parser


def purpose(command: str) -> str:
    """Return the first sentence of a command's help, for lists of commands."""
    sentence = " ".join(str(COMMANDS[command].__doc__).split()).split(". ")[0].rstrip(".")
    return f"{sentence[0].lower()}{sentence[1:]}"


def _complete_run(options: argparse.Namespace) -> None:
    """Complete the options of ``run``.

    ``files`` gets all files, ``isolate`` becomes true or false, and ``quiet_s`` limits the seconds without progress
    in a worker.
    """
    captured = options.capture_frame
    if captured is not None and (captured.lower().endswith(".json") or is_model(captured)):
        # in the reference runner the option has no value, and a scenario may follow
        options.files.insert(0, captured)
        options.capture_frame = "run"
    options.files = [*options.scenario, *options.files]
    prints = options.printf or options.printf_size is not None
    # with --printf, older validation layers wait for shaders, deaf to --timeout and Ctrl-C
    is_bounded = options.watch or options.isolate or (prints and options.isolate is None)
    options.quiet_s = options.timeout if is_bounded else None
    options.replaced_measurements = None
    if options.log_level is None and options.pipeline_caching and not options.quiet:
        options.log_level = "info"  # the level of messages about pipeline caches
    if options.isolate is None:
        options.isolate = len(options.files) > 1 or prints or options.watch or options.core_dumps


def _complete_test(options: argparse.Namespace) -> None:
    """Complete the options of ``test``: paths, root, resume and retries."""
    if options.demo and not options.paths and options.root == ".":
        options.paths, options.root = [DEMO], DEMO
    lists = (*options.include_tests, *options.skips, *options.flakes, *options.baseline)
    if not any(map(os.path.isdir, lists)):  # such a folder was meant as PATH
        options.paths = options.paths or [os.curdir]
    options.resume = options.resume or options.resume_anyway
    if options.retries is None:
        options.retries = 1 if options.repeat == 1 else 0


def value_of(options: argparse.Namespace, option: str) -> Any:
    """Return the value of an option such as "--dump-dir", None if the user did not give it. 0 is a value."""
    value = getattr(options, option[2:].replace("-", "_"))
    return None if value is False else value


def shared_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return arguments for Runner: device, features, checking and compiling."""
    return {
        "device": options.device,
        "timeout_s": options.timeout,
        "ml_emulation": options.ml_emulation,
        "robustness": options.enable_robustness_features,
        "disabled_extensions": options.disable_extension,
        "sandbox": options.sandbox,
        "validation": "report" if options.validation_report else options.validation or options.validation_sync,
        "sync_validation": options.validation_sync,
        "debug_labels": options.debug_labels,
        "printf": options.printf_size or options.printf,
        **compiler_arguments(options),
    }


def compiler_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return arguments for CompilerOptions and `compile_all`."""
    return {"compiler": options.glslang, "use_cache": not options.no_cache}


def _words_of(actions: Sequence[argparse.Action], options: argparse.Namespace) -> tuple[str, ...]:
    """Write the given options as command-line words, except for the device."""
    words: list[str] = []
    for action in actions:
        name, value = action.option_strings[0], getattr(options, action.dest)
        if value == action.default or action.dest == "device":
            continue
        if action.dest == "glslang" and os.path.dirname(value):
            value = os.path.abspath(value)  # the user may paste the command in another folder
        if value is True:
            words.append(name)
        else:
            values = value if isinstance(value, list) else [f"{value:.12g}" if isinstance(value, float) else value]
            words += [f"{name}={entry}" for entry in values]
    return tuple(words)


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

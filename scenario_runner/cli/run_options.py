"""The options of ``scenario-runner run``, and what they ask for."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scenario_runner.cli import COMMANDS
from scenario_runner.cli.arguments import (
    Parser,
    add_checking_options,
    add_compiler_options,
    add_device_options,
    add_feature_options,
    add_label_option,
    add_logging_option,
)
from scenario_runner.cli.messages import show_error, write
from scenario_runner.errors import FileError, UsageError

if TYPE_CHECKING:
    from scenario_runner.plan.dumps import Wanted
    from scenario_runner.run.dump_files import DumpRequest
    from scenario_runner.run.pipeline_caching import PipelineCaching
    from scenario_runner.run.report_files import GraphReportFiles

_GRAPH_REPORTS = {
    "--session-memory-dump-dir": ("session_memory_dir", "write the memory of graph sessions as hexadecimal text"),
    "--emulation-layer-profiling-dump-dir": (
        "emulation_profiling_dir",
        "write what the ML emulation layers measured as JSON",
    ),
    "--neural-debug-database-dump-dir": ("neural_debug_database_dir", "write debug databases of neural accelerators"),
    "--neural-statistics-dump-dir": ("neural_statistics_dir", "write statistics of neural accelerators"),
}
_CONTRADICTIONS = (
    ("--capture-frame", "--dry-run", "a dry run submits nothing to capture"),
    ("--gfxr", "--dry-run", "a dry run submits nothing to capture"),
    ("--capture-frame", "--gfxr", "capture with one tool at a time"),
    ("--dump-after", "--dump-all", "--dump-all writes all that --dump-after can ask for"),
    (
        "--clear-pipeline-cache",
        "--fail-on-pipeline-cache-miss",
        "fill the cache by a run with --pipeline-caching alone, then give --fail-on-pipeline-cache-miss",
    ),
    *(
        (option, dump, "a dump takes frames apart, which would show: run the scenario twice")
        for option in ("--capture-frame", "--gfxr", "--shader-instrumentation")
        for dump in ("--dump-dir", "--dump-all")
    ),
)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The options as a namespace. Raises UsageError."""
    parser = Parser(
        prog="scenario-runner",
        usage="scenario-runner [run] FILE… [options]\n       scenario-runner COMMAND --help",
        description="Run GPU workloads described in JSON, or models, on a Vulkan device.",
    )
    parser.commands = COMMANDS
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="scenario files (JSON), run one after the other, or a model"
    )
    parser.add_argument("--version", "-v", action="store_true", help="print versions as JSON and exit")
    _add_device_options(parser.add_argument_group("device"))
    _add_model_options(parser.add_argument_group("models"))
    _add_result_options(parser.add_argument_group("results"))
    checking = parser.add_argument_group("checking")
    checking.add_argument("--strict", action="store_true", help="warnings are errors; nothing is run")
    add_checking_options(checking)
    _add_cache_options(parser.add_argument_group("shaders and caches"))
    _add_debugging_options(parser.add_argument_group("debugging"))
    _add_capture_options(parser.add_argument_group("capture"))
    _add_measuring_options(parser.add_argument_group("timing and measurements"))
    _add_compatibility_options(parser.add_argument_group("compatibility"))
    options = parser.parse_args(argv)
    if options.capture_frame is not None and options.capture_frame.lower().endswith((".json", ".vgf")):
        # without a value in the reference runner, so that a file may follow it
        options.files.insert(0, options.capture_frame)
        options.capture_frame = "run"
    _refuse_contradictions(options)
    if options.repeat < 1:
        raise UsageError(f"--repeat is {options.repeat}, expected 1 or more")
    log_level_given = any(argument.partition("=")[0] == "--log-level" for argument in argv)
    if options.pipeline_caching and not options.quiet and not log_level_given:
        options.log_level = "info"  # what is said of the caches is what they were asked for
    return options


def _add_device_options(group: argparse._ActionsContainer) -> None:
    add_device_options(group)
    add_feature_options(group)
    group.add_argument("--list-devices", action="store_true", help="list the Vulkan devices and exit")
    group.add_argument(
        "--isolate",
        action=argparse.BooleanOptionalAction,
        help="outlive a driver that crashes, and with --timeout one that hangs (default: crashes, for several files)",
    )


def _add_model_options(group: argparse._ActionsContainer) -> None:
    for option, help in (
        ("--input", "the file of an input (.npy), by its name or binding number ('scenario-runner vgf show')"),
        ("--shader", "the shader for a placeholder"),
        ("--push-constants", "push constants of a shader (.npy)"),
    ):
        group.add_argument(option, action="append", default=[], metavar="NAME=FILE", help=f"of a model: {help}")


def _add_result_options(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--output",
        "--output-dir",
        metavar="DIR",
        help="base of relative dst paths (default: the scenario's folder; of a model: the current folder)",
    )
    group.add_argument(
        "--folder-each",
        action="store_true",
        help="with --output and --capture-dir: a separate folder for each scenario",
    )
    group.add_argument("--clean", action="store_true", help="remove the outputs of earlier runs before each run")
    group.add_argument(
        "--dry-run", action="store_true", help="plan, compile and upload, but run no command and write no file"
    )
    group.add_argument("--repeat", type=int, default=1, metavar="N", help="run the commands N times")
    group.add_argument(
        "--repeat-keep-state",
        action="store_true",
        help="with --repeat: do not restore the inputs before each iteration",
    )
    group.add_argument("--quiet", action="store_true", help="print no line for what succeeded")


def _add_cache_options(group: argparse._ActionsContainer) -> None:
    add_compiler_options(group)
    group.add_argument(
        "--pipeline-caching", action="store_true", help="keep the driver's pipelines in a file for the next process"
    )
    group.add_argument(
        "--cache-path",
        metavar="DIR",
        help="with --pipeline-caching: an existing folder for the files (default: in the user's cache folder)",
    )
    group.add_argument(
        "--clear-pipeline-cache",
        action="store_true",
        help="with --pipeline-caching: remove the scenario's file first",
    )
    group.add_argument(
        "--fail-on-pipeline-cache-miss",
        action="store_true",
        help="with --pipeline-caching: fail where a pipeline is not in the file that was loaded",
    )


def _add_debugging_options(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--dump-after",
        action="append",
        metavar="COMMAND[:RESOURCE]",
        help="with --dump-dir: write what the command (its number, or a range such as 2-5) changed, or a resource",
    )
    group.add_argument("--dump-dir", metavar="DIR", help="the folder for what --dump-after asks for")
    group.add_argument("--dump-all", metavar="DIR", help="write all that each command may have changed, with an index")
    add_label_option(group)
    add_logging_option(group)


def _add_capture_options(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--capture-dir", metavar="DIR", help="write the resources that each frame boundary names to folders in DIR"
    )
    group.add_argument(
        "--capture-frame",
        nargs="?",
        const="run",
        metavar="N[,N…]",
        help="capture frames with RenderDoc, by frame id; also 'command:K' and 'run' (the default)",
    )
    group.add_argument("--gfxr", metavar="FILE", help="capture all Vulkan calls with gfxreconstruct into FILE")


def _add_compatibility_options(group: argparse._ActionsContainer) -> None:
    group.add_argument("--scenario", action="append", default=[], metavar="FILE", help="a scenario file, like FILE")
    group.add_argument("--wait-for-key-stroke-before-run", action="store_true", help="wait for Enter before running")
    group.add_argument("--pause-on-exit", action="store_true", help="wait for Enter at the end")


def _add_measuring_options(group: argparse._ActionsContainer) -> None:
    group.add_argument("--profiling-dump-path", metavar="FILE", help="write the time of every dispatch as JSON")
    group.add_argument("--perf-counters-dump-path", metavar="FILE", help="write the times of the host as JSON")
    group.add_argument("--trace", metavar="FILE", help="write both as a trace for Perfetto or chrome://tracing")
    group.add_argument(
        "--shader-instrumentation",
        metavar="FILE",
        help="write the device's measurements of shaders (VK_ARM_shader_instrumentation) as JSON",
    )
    for option, (name, purpose) in _GRAPH_REPORTS.items():
        group.add_argument(option, dest=name, metavar="DIR", help=f"{purpose}, into an existing folder")
    group.add_argument(
        "--neural-statistics-mode", type=int, choices=(0, 1), help="which statistics are written (default: 1)"
    )


def tool_arguments(options: argparse.Namespace, files: int) -> dict[str, Any]:
    """The options for capture tools, caches and graphs as arguments of Runner, for a call with so many files.

    gfxreconstruct is set up. Raises UsageError, UnsupportedError and FileError.
    """
    arguments: dict[str, Any] = {
        "pipeline_cache": _pipeline_caching(options) or False,
        "graph_reports": _graph_report_files(options, files),
    }
    if options.gfxr is not None:
        from scenario_runner.run.capture_tools import set_up_gfxreconstruct

        set_up_gfxreconstruct(options.gfxr)
    if options.capture_frame is not None:
        arguments["capture_frame"] = options.capture_frame
        arguments["capture_frame_dir"] = options.capture_dir or options.output or "."
    return arguments


def _refuse_contradictions(options: argparse.Namespace) -> None:
    """Raise UsageError for two options of `_CONTRADICTIONS`."""

    def is_given(option: str) -> bool:
        return getattr(options, option[2:].replace("-", "_")) not in (None, False)

    for one, other, help in _CONTRADICTIONS:
        if is_given(one) and is_given(other):
            raise UsageError(f"{one} and {other} contradict each other", help=help)


def check_capture_file(options: argparse.Namespace) -> int:
    """After the last instance: the exit code for a file of gfxreconstruct that is not whole, which is said; else 0."""
    if options.gfxr is None:
        return 0
    from scenario_runner.run.capture_tools import check_gfxreconstruct

    try:
        check_gfxreconstruct(options.gfxr)
    except FileError as error:
        show_error(error)
        return error.exit_code
    return 0


def _pipeline_caching(options: argparse.Namespace) -> PipelineCaching | None:
    """The pipeline cache to use. Raises FileError for the folder."""
    if not options.pipeline_caching:
        for option in ("clear_pipeline_cache", "fail_on_pipeline_cache_miss", "cache_path"):
            if getattr(options, option):
                write("warning", f"option --{option.replace('_', '-')} has no effect without --pipeline-caching")
        return None
    from scenario_runner.run.pipeline_caching import PipelineCaching

    return PipelineCaching(
        options.cache_path, clear=options.clear_pipeline_cache, fail_on_miss=options.fail_on_pipeline_cache_miss
    )


def _graph_report_files(options: argparse.Namespace, files: int) -> GraphReportFiles | None:
    """The files about data graphs, for a call with so many scenarios. Raises UsageError and FileError."""
    folders = {name: getattr(options, name) for name, _ in _GRAPH_REPORTS.values()}
    mode = options.neural_statistics_mode
    if mode is not None and folders["neural_statistics_dir"] is None:
        write("warning", "option --neural-statistics-mode has no effect without --neural-statistics-dump-dir")
    given = [option for option, (name, _) in _GRAPH_REPORTS.items() if folders[name] is not None]
    if not given:
        return None
    if files > 1:
        raise UsageError(f"{given[0]} takes the files of one scenario", help="run the scenarios one by one")
    from scenario_runner.run.report_files import GraphReportFiles

    return GraphReportFiles(**folders, neural_statistics_mode=1 if mode is None else mode)


def dump_request(options: argparse.Namespace, files: int) -> DumpRequest | None:
    """The dumps to write, for a call with so many scenarios. Raises UsageError."""
    after, folder, everything = options.dump_after, options.dump_dir, options.dump_all
    if after is None and folder is None and everything is None:
        return None
    if (after is None) != (folder is None):
        raise UsageError(
            "--dump-after needs --dump-dir" if folder is None else "--dump-dir needs --dump-after",
            help="--dump-after 3:RESOURCE --dump-dir DIR, or --dump-all DIR for everything",
        )
    if files > 1:
        into = "--dump-dir" if everything is None else "--dump-all"
        raise UsageError(f"{into} takes the files of one scenario", help="run the scenarios one by one")
    from scenario_runner.run.dump_files import DumpRequest

    return DumpRequest(folder or everything or "", tuple(map(_dumped, after or ())), everything is not None)


def _dumped(text: str) -> Wanted:
    """The commands and the resource that an argument of --dump-after names. Raises UsageError."""
    from scenario_runner.plan.dumps import Wanted

    commands, colon, uid = text.partition(":")
    first, dash, last = commands.partition("-")
    numbers = [first, last] if dash else [first]
    if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in numbers) or (colon and not uid):
        raise UsageError(
            f"--dump-after {text!r:.100}: expected COMMAND or COMMAND:RESOURCE, with the number of a command from 0 on"
            " or a range such as 2-5",
            help="--dump-after 3:result --dump-dir dumps",
        )
    if int(numbers[0]) > int(numbers[-1]):
        raise UsageError(f"--dump-after {text!r:.100}: the range ends before it begins")
    return Wanted(int(numbers[0]), int(numbers[-1]), uid or None)

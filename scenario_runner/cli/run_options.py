"""The options of ``scenario-runner run``, and what they ask for."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scenario_runner import progress
from scenario_runner.cli import COMMANDS
from scenario_runner.cli.arguments import (
    Parser,
    add_checking_options,
    add_compiler_options,
    add_device_options,
    add_feature_options,
    add_flag,
    add_label_option,
    add_logging_option,
)
from scenario_runner.cli.messages import show_error, write
from scenario_runner.errors import FileError, UsageError

if TYPE_CHECKING:
    from scenario_runner.plan.dumps import Wanted
    from scenario_runner.run.dump_files import DumpRequest

_GRAPH_REPORTS = {
    "--session-memory-dump-dir": "write the memory of graph sessions as hexadecimal text",
    "--emulation-layer-profiling-dump-dir": "write what the ML emulation layers measured as JSON",
    "--neural-debug-database-dump-dir": "write debug databases of neural accelerators",
    "--neural-statistics-dump-dir": "write statistics of neural accelerators",
}
_TIMING_FILES = {
    "--profiling-dump-path": "write the time of every dispatch as JSON",
    "--perf-counters-dump-path": "write the times of the host as JSON",
    "--trace": "write both as a trace for Perfetto or chrome://tracing",
}
# Options that take the files of one scenario.
_OF_ONE_SCENARIO = (*_GRAPH_REPORTS, *_TIMING_FILES, "--dump-dir", "--dump-all")
# Options that have no effect without another one.
_NEEDED = {
    "--clear-pipeline-cache": "--pipeline-caching",
    "--fail-on-pipeline-cache-miss": "--pipeline-caching",
    "--cache-path": "--pipeline-caching",
    "--neural-statistics-mode": "--neural-statistics-dump-dir",
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
    add_flag(parser, "--version", "-v", help="print versions as JSON and exit")
    _add_device_options(parser.add_argument_group("device"))
    _add_model_options(parser.add_argument_group("models"))
    _add_result_options(parser.add_argument_group("results"))
    checking = parser.add_argument_group("checking")
    add_flag(checking, "--strict", help="warnings are errors; nothing is run")
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
    _check(options)
    if options.repeat < 1:
        raise UsageError(f"--repeat is {options.repeat}, expected 1 or more")
    log_level_given = any(argument.partition("=")[0] == "--log-level" for argument in argv)
    if options.pipeline_caching and not options.quiet and not log_level_given:
        options.log_level = "info"  # what is said of the caches is what they were asked for
    return options


def _add_device_options(group: argparse._ActionsContainer) -> None:
    add_device_options(group)
    add_feature_options(group)
    add_flag(group, "--list-devices", help="list the Vulkan devices and exit")
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
    add_flag(group, "--folder-each", help="with --output and --capture-dir: a separate folder for each scenario")
    add_flag(group, "--clean", help="remove the outputs of earlier runs before each run")
    add_flag(group, "--dry-run", help="plan, compile and upload, but run no command and write no file")
    group.add_argument("--repeat", type=int, default=1, metavar="N", help="run the commands N times")
    add_flag(group, "--repeat-keep-state", help="with --repeat: do not restore the inputs before each iteration")
    add_flag(group, "--quiet", help="print no line for what succeeded")


def _add_cache_options(group: argparse._ActionsContainer) -> None:
    add_compiler_options(group)
    add_flag(group, "--pipeline-caching", help="keep the driver's pipelines in a file for the next process")
    group.add_argument(
        "--cache-path",
        metavar="DIR",
        help="with --pipeline-caching: an existing folder for the files (default: in the user's cache folder)",
    )
    add_flag(group, "--clear-pipeline-cache", help="with --pipeline-caching: remove the scenario's file first")
    add_flag(
        group,
        "--fail-on-pipeline-cache-miss",
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
    add_flag(group, "--wait-for-key-stroke-before-run", help="wait for Enter before running")
    add_flag(group, "--pause-on-exit", help="wait for Enter at the end")


def _add_measuring_options(group: argparse._ActionsContainer) -> None:
    for option, purpose in _TIMING_FILES.items():
        group.add_argument(option, metavar="FILE", help=purpose)
    group.add_argument(
        "--shader-instrumentation",
        metavar="FILE",
        help="write the device's measurements of shaders (VK_ARM_shader_instrumentation) as JSON",
    )
    for option, purpose in _GRAPH_REPORTS.items():
        group.add_argument(option, metavar="DIR", help=f"{purpose}, into an existing folder")
    group.add_argument(
        "--neural-statistics-mode", type=int, choices=(0, 1), help="which statistics are written (default: 1)"
    )


def _check(options: argparse.Namespace) -> None:
    """Warn of options without effect. Raises UsageError for those that cannot be used together."""

    def is_given(option: str) -> bool:
        value = getattr(options, option[2:].replace("-", "_"))
        return value is not None and value is not False  # 0 is a value

    for one, other, help in _CONTRADICTIONS:
        if is_given(one) and is_given(other):
            raise UsageError(f"{one} and {other} contradict each other", help=help)
    if len(options.files) + len(options.scenario) > 1:
        for option in filter(is_given, _OF_ONE_SCENARIO):
            raise UsageError(f"{option} takes the files of one scenario", help="run the scenarios one by one")
    for option, needed in _NEEDED.items():
        if is_given(option) and not is_given(needed):
            write("warning", f"option {option} has no effect without {needed}")


def tool_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The options for capture tools, caches and graphs as arguments of Runner.

    gfxreconstruct is set up. Raises UnsupportedError and FileError.
    """
    arguments: dict[str, Any] = {}
    if options.shader_instrumentation is not None:
        from scenario_runner.run.report_files import InstrumentationFile

        # one for all scenarios, also where a device is lost or a process crashes in between
        kept = progress.number(progress.MEASURED)
        arguments["shader_instrumentation"] = InstrumentationFile(options.shader_instrumentation, keep=kept)
    if options.pipeline_caching:
        from scenario_runner.run.pipeline_caching import PipelineCaching

        arguments["pipeline_cache"] = PipelineCaching(
            options.cache_path, clear=options.clear_pipeline_cache, fail_on_miss=options.fail_on_pipeline_cache_miss
        )
    folders = {
        "session_memory_dir": options.session_memory_dump_dir,
        "emulation_profiling_dir": options.emulation_layer_profiling_dump_dir,
        "neural_debug_database_dir": options.neural_debug_database_dump_dir,
        "neural_statistics_dir": options.neural_statistics_dump_dir,
    }
    if any(folder is not None for folder in folders.values()):
        from scenario_runner.run.report_files import GraphReportFiles

        mode = 1 if options.neural_statistics_mode is None else options.neural_statistics_mode
        arguments["graph_reports"] = GraphReportFiles(**folders, neural_statistics_mode=mode)
    if options.gfxr is not None:
        from scenario_runner.run.capture_tools import set_up_gfxreconstruct

        set_up_gfxreconstruct(options.gfxr)
    if options.capture_frame is not None:
        arguments["capture_frame"] = options.capture_frame
        arguments["capture_frame_dir"] = options.capture_dir or options.output or "."
    return arguments


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


def dump_request(options: argparse.Namespace) -> DumpRequest | None:
    """The dumps to write. Raises UsageError."""
    after, folder, everything = options.dump_after, options.dump_dir, options.dump_all
    if after is None and folder is None and everything is None:
        return None
    if (after is None) != (folder is None):
        raise UsageError(
            "--dump-after needs --dump-dir" if folder is None else "--dump-dir needs --dump-after",
            help="--dump-after 3:RESOURCE --dump-dir DIR, or --dump-all DIR for everything",
        )
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

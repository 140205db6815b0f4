"""The options of ``scenario-runner run``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from scenario_runner.cli import COMMANDS
from scenario_runner.cli.arguments import (
    Parser,
    add_compiler_options,
    add_device_options,
    add_feature_options,
    add_logging_option,
    add_sandbox_option,
)
from scenario_runner.errors import UsageError

_MODEL_OPTIONS = {
    "--input": "of a model: the file of an input (.npy), by its name or binding number ('scenario-runner vgf show')",
    "--shader": "of a model: the shader for a placeholder",
    "--push-constants": "of a model: push constants of a shader (.npy)",
}
# Words of the options in `rare_options`, and of those that show the help text.
_RARE = ("-cach", "-capture-frame", "-gfxr", "-dump-dir", "-dump-a", "-neural-", "-h")


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
    parser.add_argument("--scenario", action="append", default=[], metavar="FILE", help="a scenario file, like FILE")
    parser.add_argument(
        "--output",
        "--output-dir",
        metavar="DIR",
        help="base of relative dst paths (default: the scenario's folder; of a model: the current folder)",
    )
    parser.add_argument("--list-devices", action="store_true", help="list the Vulkan devices and exit")
    parser.add_argument(
        "--capture-dir", metavar="DIR", help="write the resources that each frame boundary names to folders in DIR"
    )
    parser.add_argument(
        "--folder-each",
        action="store_true",
        help="with --output and --capture-dir: a separate folder for each scenario",
    )
    parser.add_argument("--version", "-v", action="store_true", help="print versions as JSON and exit")
    for option, help in _MODEL_OPTIONS.items():
        parser.add_argument(option, action="append", default=[], metavar="NAME=FILE", help=help)
    add_device_options(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="plan, compile and upload, but run no command and write no file"
    )
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="run the commands N times")
    parser.add_argument(
        "--repeat-keep-state",
        action="store_true",
        help="with --repeat: do not restore the inputs before each iteration",
    )
    parser.add_argument(
        "--isolate",
        action=argparse.BooleanOptionalAction,
        help="outlive a driver that crashes, and with --timeout one that hangs (default: crashes, for several files)",
    )
    parser.add_argument("--clean", action="store_true", help="remove the outputs of earlier runs before each run")
    add_feature_options(parser)
    parser.add_argument(
        "--shader-instrumentation",
        metavar="FILE",
        help="write the device's measurements of shaders (VK_ARM_shader_instrumentation) as JSON",
    )
    parser.add_argument("--profiling-dump-path", metavar="FILE", help="write the time of every dispatch as JSON")
    parser.add_argument("--perf-counters-dump-path", metavar="FILE", help="write the times of the host as JSON")
    parser.add_argument("--trace", metavar="FILE", help="write both as a trace for Perfetto or chrome://tracing")
    parser.add_argument("--strict", action="store_true", help="warnings are errors; nothing is run")
    add_compiler_options(parser)
    add_sandbox_option(parser)
    add_logging_option(parser)
    parser.add_argument("--quiet", action="store_true", help="print no line for what succeeded")
    parser.add_argument("--wait-for-key-stroke-before-run", action="store_true", help="wait for Enter before running")
    parser.add_argument("--pause-on-exit", action="store_true", help="wait for Enter at the end")
    # Importing and defining these takes about 8 ms, which most runs do without.
    given = {argument.partition("=")[0] for argument in argv}
    rare = any(word in option for option in given for word in _RARE)
    if rare:
        from scenario_runner.cli.rare_options import add_rare_options, check_rare_options

        add_rare_options(parser, given)
    options = parser.parse_args(argv)
    options.rare = rare
    if rare:
        check_rare_options(options)
    if options.repeat < 1:
        raise UsageError(f"--repeat is {options.repeat}, expected 1 or more")
    if getattr(options, "pipeline_caching", False) and not options.quiet and "--log-level" not in given:
        options.log_level = "info"  # what is said of the caches is what they were asked for
    return options

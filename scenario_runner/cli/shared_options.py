"""Options that several commands have, in groups, and those of ``reduce``, which are mostly such."""

import argparse
from typing import Final

from scenario_runner.cli.arguments import REPEATED, SEVERAL, Parser, add, printf_bytes, whole_number

REDUCE_TIMEOUT_S: Final = 10.0


def add_device_options(group: argparse._ActionsContainer, default_timeout: str = "no limit") -> None:
    """The choice of the device, and for how long to wait for it."""
    add(group, "--device D", "index, UUID or part of the name of the device to use")
    add(group, "--timeout S", f"stop when work has not finished after S seconds (default: {default_timeout})")
    needed = "use the emulation layers for tensors and graphs: if the device needs them (auto), always, never"
    add(group, "--ml-emulation", needed, choices=("auto", "on", "off"), default="auto")


def add_parameters_option(group: argparse._ActionsContainer) -> None:
    """--set."""
    add(group, "--set NAME=VALUE", "value of a parameter: what ${NAME} in the scenario stands for", **REPEATED)


def add_feature_options(group: argparse._ActionsContainer) -> None:
    """Extensions and features of the device."""
    add(group, "--disable-extension E", "device extensions that are not used", **SEVERAL)
    add(group, "--enable-robustness-features", "robust buffer and image access, if the device supports it")


def add_checking_options(group: argparse._ActionsContainer) -> None:
    """--sandbox, for scenarios from others, and the validation layer."""
    add_sandbox_option(group)
    add(group, "--validation", "load the Khronos validation layer; its errors fail the run")
    add(group, "--validation-report", "load the validation layer; its errors are shown, and the run succeeds")
    add(group, "--validation-sync", "load the validation layer, with its synchronization validation as well")


def add_sandbox_option(group: argparse._ActionsContainer) -> None:
    """--sandbox."""
    add(group, "--sandbox", "refuse scenarios that read or write outside of their own folder and --output")


def add_compiler_options(group: argparse._ActionsContainer) -> None:
    """The GLSL compiler, and --no-cache."""
    add(group, "--glslang PATH", "GLSL compiler to use (or set SCENARIO_RUNNER_GLSLANG)")
    add(group, "--no-cache", "do not use the caches of compiled shaders and plans")


def add_printf_options(group: argparse._ActionsContainer) -> None:
    """--printf."""
    add(group, "--printf", "show what shaders print (debugPrintfEXT, printf); needs the validation layer")
    add(group, "--printf-size BYTES", "the same, with this space for the messages of a command", type=printf_bytes)


def add_debugging_options(group: argparse._ActionsContainer) -> None:
    """--debug-labels, also by the reference runner's name, and --log-level, as it has it."""
    add(group, "--debug-labels --enable-gpu-debug-markers", "give tools names and labels, also without a layer")
    add_logging_option(group)


def add_logging_option(group: argparse._ActionsContainer) -> None:
    """--log-level."""
    levels = ("debug", "info", "warning", "error")
    add(group, "--log-level", "least level of messages (default: warning)", choices=levels)


def add_watch_option(group: argparse._ActionsContainer) -> None:
    """--watch."""
    add(group, "--watch", "stay, and run again when a file that was read changes (needs watchfiles)")


def add_core_dumps_option(group: argparse._ActionsContainer) -> None:
    """--core-dumps."""
    add(group, "--core-dumps", "keep core files of crashes, and show the native stack (needs gdb)")


def add_report_options(group: argparse._ActionsContainer) -> None:
    """Files of reports."""
    add(group, "--junit FILE", "write a report as JUnit XML")
    add(group, "--json FILE", "write a report as JSON (CTRF)")
    add(group, "--html FILE", "write a report as one HTML page")
    add(group, "--sarif FILE", "write failures as SARIF")


def add_github_option(parser: argparse.ArgumentParser, command: str) -> None:
    """--github, for the commands that annotate files."""
    if command not in ("run", "validate", "test"):
        parser.set_defaults(github=False)
        return
    purpose = "annotate files on GitHub and write its job summary (default: where GITHUB_ACTIONS is set)"
    add(parser, "--github", purpose, action=argparse.BooleanOptionalAction, default=None)


def add_tolerance_options(group: argparse._ActionsContainer, when: str = "") -> None:
    """--atol, --rtol and --ulp, which have effect ``when``."""
    add(group, "--atol X", f"{when}absolute errors to accept", default=0.0)
    add(group, "--rtol X", f"{when}relative errors to accept", default=0.0)
    add(group, "--ulp N", f"{when}errors in ULP to accept", type=whole_number(0), default=0)


def add_reduce_options(parser: Parser) -> None:
    """Write the smallest scenario that still fails as FILE does, with a report about this machine.
    A failure is a crash, a time limit, an output that is not as expected, or an error; or what an option names.
    """
    parser.epilog = "exit codes: 0: reduced; 1: FILE does not fail; others: docs/command_line.md"
    add(parser, "file FILE", "scenario file (JSON)")
    add(parser, "--output DIR", "the folder to write, which must not exist or be empty", required=True)
    add(parser, "--zip", "write DIR.zip instead of the folder")
    add_parameters_option(parser)
    failures = parser.add_argument_group("which failure").add_mutually_exclusive_group()
    script = "a program that ends with exit code 0 if the scenario, its last argument, fails as it should"
    add(failures, "--script CMD", script)
    add(failures, "--code CODE", "a message with this code or VUID, also a warning")
    failures.add_argument("--devices", nargs=2, metavar=("A", "B"), help="a result that differs between two devices")
    group = parser.add_argument_group("time")
    add(group, "--limit S", "end with the smallest scenario so far after S seconds (default: no limit)")
    comparing = parser.add_argument_group("comparing")
    add_tolerance_options(comparing, "with --devices: ")
    groups = device, checking, compiling = [
        parser.add_argument_group(title) for title in ("device", "checking", "compiling")
    ]
    add_device_options(device, f"{REDUCE_TIMEOUT_S:g}")
    add_feature_options(device)
    add_checking_options(checking)
    add_compiler_options(compiling)
    add_logging_option(parser)
    run_actions = [action for group in groups for action in group._group_actions]
    parser.set_defaults(printf=False, printf_size=None, debug_labels=False)
    parser.set_defaults(run_actions=run_actions, tolerance_actions=comparing._group_actions)

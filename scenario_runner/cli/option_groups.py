"""Groups of options that several commands share, and the options of reduce and of commands about models and shaders."""

import argparse
import re
from typing import Final

from scenario_runner.cli.arguments import REPEATED, SEVERAL, Parser, add, jobs, printf_bytes, subcommand, whole_number

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


def add_shader_options(parser: Parser) -> None:
    """Show the interfaces of shaders."""
    commands = parser.add_subparsers(required=True, metavar="show")
    show = subcommand(commands, "shader:show", "print entry points, bindings, blocks and specialization constants")
    add(show, "file FILE", "a .spv file, a .vgf file with modules, or .hlsl or GLSL, which is compiled first")
    add(show, "--json", "print everything that is known, as JSON")
    add(show, "--entry NAME", "entry point to compile (default: main)", default="main")
    stages = ("compute", "vertex", "fragment")
    add(show, "--stage", "stage to compile for (default: by the file's name)", choices=stages)
    add(show, "-D NAME[=VALUE]", "define a macro", dest="defines", **REPEATED)
    add(show, "-I DIR", "folder of includes", dest="include_dirs", **REPEATED)
    add_compiler_options(show)


def add_vgf_options(parser: Parser) -> None:
    """Show VGF models (compiled ML models), make scenarios that run them, or take them out of ExecuTorch programs
    (.pte).
    """
    commands = parser.add_subparsers(required=True, metavar="show|scenario|extract")
    show = subcommand(commands, "vgf:show", "print inputs, outputs, segments, shaders and constants of a model")
    add(show, "file FILE", "the VGF file")
    add(show, "--json", "print everything except code and constant data, as JSON")
    scenario = subcommand(commands, "vgf:scenario", "write a scenario that runs a model on NAME.npy, to be edited")
    add(scenario, "file FILE", "the VGF file")
    add(scenario, "--output JSON", "write to this file (default: standard output)")
    extract = subcommand(commands, "vgf:extract", "write the models in an ExecuTorch program; several are numbered")
    add(extract, "file FILE", "the program (.pte)")
    add(extract, "-o --output FILE", "write to this file (default: in the current folder, called like FILE)")


def add_convert_options(parser: Parser) -> None:
    """Convert a TOSA model to VGF. Custom operations of the domain com.arm.VulkanCustomShader become compute segments;
    Arm's model-converter lowers all others.
    """
    parser.set_defaults(work="tosa_models:convert")
    add(parser, "model MODEL", "MLIR text, MLIR bytecode or a TOSA FlatBuffer; - is standard input")
    add(parser, "-o --output FILE", "the VGF file to write; - is standard output", required=True)
    add(parser, "--function NAME", "the function to convert, where the model has several (default: main)")
    workgroups = "dispatch workgroup_sizes (attributes, the default), or as many of that local size as a result needs"
    add(parser, "--dispatch", workgroups, choices=("attributes", "cover-output"), default="attributes")
    layers = "make results of operators outputs: all, or those whose name or operator matches PATTERN (* and ?)"
    parser.add_argument("--expose-intermediates", nargs="?", const="*", metavar="PATTERN", help=layers)
    add(parser, "--no-check", "do not compile the shaders and compare them with their attributes")
    add(parser, "--strict", "warnings are errors")
    add(parser, "--converter-option OPTION", "for model-converter: --converter-option=--emit-debug-info", **REPEATED)
    add_compiler_options(parser)


def add_compare_layers_options(parser: Parser) -> None:
    """Run a TOSA model with the results of its operators as outputs, and show the first one that is not as expected.
    The exit code is 0 where all are within the tolerance and 1 where one is not.
    """
    parser.set_defaults(work="compare_layers:main")
    parser._negative_number_matcher = re.compile(r"-\d")  # --range -1:1
    add(parser, "model MODEL", "a TOSA FlatBuffer, MLIR text or MLIR bytecode")
    expected = (
        "folder of .npy files or .npz file with results by name; reference: TOSA's reference model; tosa: TOSA's rules "
        "for each operator; device:D"
    )
    add(parser, "--expected WHERE", expected, required=True)
    add(parser, "--layers PATTERN", "only layers whose name or operator matches (* and ?)", default="*")
    add(parser, "--input NAME=FILE", "an input (.npy), by its name or number (default: random numbers)", **REPEATED)
    add(parser, "--seed N", "seed of the random numbers (default: 0)", type=whole_number(0), default=0)
    add(parser, "--range MIN:MAX", "least and greatest random number (default: -1:1; integers: docs/layers.md)")
    add_tolerance_options(parser)
    parser.set_defaults(atol=None, rtol=None, ulp=None)
    add(parser, "--json", "print the result as JSON")
    add(parser, "--html FILE", "write a page with pictures of the errors")
    add_device_options(parser)


def add_import_options(parser: Parser) -> None:
    """Make suites for 'scenario-runner test' from tests of others."""
    tosa = subcommand(parser.add_subparsers(required=True, metavar="tosa"), "tosa_models:tosa", "import TOSA's tests")
    add(tosa, "folders DIR", "folders of tests, which are searched for desc.json", nargs="+")
    add(tosa, "-o --output SUITE", "the folder to write; items that are up to date are kept", required=True)
    add(tosa, "--jobs N", "tests at a time (default: the number of processors)", type=jobs)


def add_custom_op_options(parser: Parser) -> None:
    """Shaders of custom operations in TOSA models and their attributes."""
    commands = parser.add_subparsers(required=True, metavar="check|attributes")
    check = subcommand(commands, "tosa_models:check", "check attributes, and shaders against their attributes")
    files = "attributes of an operation or a list of them (.json; - is standard input), or a TOSA model"
    add(check, "files FILE", files, nargs="+")
    add(check, "--json", "print the findings as JSON")
    add(check, "--strict", "warnings are errors")
    add_compiler_options(check)
    attributes = subcommand(commands, "tosa_models:attributes", "print attributes that fit a shader; check their order")
    add(attributes, "shader SHADER", "a GLSL, .hlsl or SPIR-V file: what it writes are outputs, all else are inputs")
    add(attributes, "--entry-point NAME", "entry point (default: main)", default="main")
    number = "workgroup_sizes: the number of workgroups (default: the local size, for --dispatch cover-output)"
    add(attributes, "--workgroups", number, nargs=3, type=whole_number(1), metavar=("X", "Y", "Z"))
    add(attributes, "--spirv", "embed the compiled module, not the source")
    add(attributes, "-I DIR", "includes", dest="include_dirs", **REPEATED)
    add_compiler_options(attributes)

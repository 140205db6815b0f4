"""The options of each command. The parser, the help and shell completion read them.

A function for each command adds the options. The docstring is the command's help, and the first sentence is the
command's line in ``scenario-runner --help``. To keep help quick, nothing here imports the work of a command.
"""

import argparse
import re
from collections.abc import Callable
from typing import Final

from scenario_runner.cli import model_options
from scenario_runner.cli.option_types import (
    REPEATED,
    SEVERAL,
    STDOUT,
    Parser,
    add,
    add_device_options,
    add_json_option,
    add_shared,
    add_tolerance_options,
    jobs,
    subcommand,
    whole_number,
)

GRAPH_REPORTS: Final = {
    "--session-memory-dump-dir": "write the memory of graph sessions as hexadecimal text",
    "--emulation-layer-profiling-dump-dir": "write measurements of the ML emulation layers as JSON",
    "--neural-debug-database-dump-dir": "write debug databases of neural accelerators",
    "--neural-statistics-dump-dir": "write statistics of neural accelerators",
}
TIMING_FILES: Final = {
    "--profiling-dump-path": "write the time of every dispatch as JSON",
    "--perf-counters-dump-path": "write the times of the host as JSON",
    "--trace": "write the times of device and host as a trace for Perfetto or chrome://tracing",
}
KINDS_KEPT: Final = {
    "plans": "plans of scenarios",
    "shaders": "compiled shaders",
    "checked": "results of spirv-val, versions of compilers",
    "pipelines": "the driver's pipelines",
    "contents": "files of suites from other hosts",
}
"""The kinds of files in the cache, with their contents."""
WARMUP, REPEAT, THRESHOLD_PERCENT = 3, 20, 2.0
"""The defaults of ``bench``."""
ITEM_TIMEOUT_S: Final = 60.0
REDUCE_TIMEOUT_S: Final = 10.0
_COUNT, _NUMBER = whole_number(1), whole_number(0)


def _run(parser: Parser) -> None:
    """Run GPU workloads described in JSON, or models."""
    parser.usage = "scenario-runner [run] FILE… [options]"
    add(parser, "files FILE", "scenario files (JSON), a model, or -", nargs="*")
    add_shared(parser, "parameters", "github")
    add(parser, "-v --version", "print versions as JSON", action="store_const", const="versions", dest="action")

    group = parser.add_argument_group("device")
    add_device_options(group)
    add_shared(group, "features")
    add(group, "--list-devices", "list the Vulkan devices", action="store_const", const="list_devices", dest="action")
    isolate = "survive crashes, and with --timeout hangs, in a separate process (default: for several files)"
    add(group, "--isolate", isolate, action=argparse.BooleanOptionalAction)
    add_shared(group, "core dumps", "watch")

    group = parser.add_argument_group("models")
    add(group, "--input NAME=FILE", "an input of a model (.npy), by name or binding number", **REPEATED)
    add(group, "--shader NAME=FILE", "the shader for a placeholder in a model", **REPEATED)
    add(group, "--push-constants NAME=FILE", "push constants of a shader in a model (.npy)", **REPEATED)

    group = parser.add_argument_group("results")
    output = "folder for relative dst paths (default: the scenario's folder, or the current folder for a model)"
    add(group, "--output --output-dir DIR", output)
    add(group, "--folder-each", "with --output and --capture-dir: write to a separate folder for each scenario")
    add(group, "--clean", "remove the outputs of earlier runs before each run")
    add(group, "--dry-run", "plan, compile and upload, but run no command and write no file")
    add(group, "--repeat N", "run the commands N times", type=_COUNT, default=1)
    add(group, "--repeat-keep-state", "with --repeat: do not restore the inputs before each iteration")
    add_shared(group, "amount")

    group = parser.add_argument_group("checking")
    add(group, "--strict", "turn warnings into errors, before anything runs")
    add_shared(group, "sandbox", "validation")
    _add_run_tools(parser)


def _add_run_tools(parser: Parser) -> None:
    """Add the options for caches, dumps, captures and measurements."""
    group = parser.add_argument_group("shaders and caches")
    add_shared(group, "compiler")
    add(group, "--pipeline-caching", "keep the driver's pipeline cache in a file for later runs")
    add(group, "--cache-path DIR", "with --pipeline-caching: an existing folder (default: the user's cache)")
    add(group, "--clear-pipeline-cache", "with --pipeline-caching: remove the file of the scenario first")
    add(group, "--fail-on-pipeline-cache-miss", "with --pipeline-caching: fail if the file lacks a pipeline")

    group = parser.add_argument_group("debugging")
    after = "with --dump-dir: dump the resources that a command (number, or range such as 2-5) changed, or one resource"
    add(group, "--dump-after COMMAND[:RESOURCE]", after, action="append")
    add(group, "--dump-dir DIR", "the folder for dumps of --dump-after")
    add(group, "--dump-all DIR", "dump all resources that each command may have changed, with an index")
    add_shared(group, "printf", "labels", "log")

    group = parser.add_argument_group("capture")
    add(group, "--capture-dir DIR", "write the resources of each frame boundary to folders in DIR")
    frames = "capture frames with RenderDoc, by frame id; or 'command:K', or 'run' (default)"
    add(group, "--capture-frame N[,N…]", frames, nargs="?", const="run")
    add(group, "--gfxr FILE", "capture all Vulkan calls with gfxreconstruct into FILE")

    group = parser.add_argument_group("timing and measurements")
    add(group, "--profiling", "print the time of each dispatch, and of each operator in the ML emulation layers")
    for option, purpose in TIMING_FILES.items():
        add(group, f"{option} FILE", purpose)
    add(group, "--shader-instrumentation FILE", "write measurements of shaders (VK_ARM_shader_instrumentation)")
    for option, purpose in GRAPH_REPORTS.items():
        add(group, f"{option} DIR", f"{purpose}, into an existing folder")
    add(group, "--neural-statistics-mode", "the kind of statistics (default: 1)", type=int, choices=(0, 1))

    group = parser.add_argument_group("compatibility with other runners")
    add(group, "--scenario FILE", "a scenario file, the same as FILE", **REPEATED)
    add(group, "--wait-for-key-stroke-before-run", "wait for Enter before running")
    add(group, "--pause-on-exit", "wait for Enter at the end")


def _validate(parser: Parser) -> None:
    """Check scenarios without a GPU. 'scenario-runner explain CODE' explains a finding."""
    add(parser, "files FILE", "scenario files (JSON), folders, or -", nargs="+")
    add_shared(parser, "parameters")
    add(parser, "--format", "format of the findings (default: text)", choices=("text", "json", "sarif"), default="text")
    add_json_option(parser, "the same as --format json")
    add(parser, "--sarif FILE", "also write the findings as SARIF")
    add_shared(parser, "amount")
    add(parser, "--hazards", "look for all possible missing barriers between commands, not only for certain ones")
    add(parser, "--strict", "warnings are errors")
    add(parser, "--against REPORT", "check limits and features of a device in a report of 'doctor --json'")
    add(parser, "--device D", "with --against: index, UUID or part of the name of the device")
    add(parser, "--output DIR", "folder for relative dst paths (default: the scenario's folder)")
    add_shared(parser, "compiler", "sandbox", "log", "watch", "github")


def _test(parser: Parser) -> None:
    """Run many scenarios with expectations, isolated from each other.
    PATH is a scenario, a model, a folder to search, @FILE for a list of such paths, or - for a list on standard input.
    """
    parser.epilog = "exit codes: 0: nothing unexpected; 1: unexpected failures; 17: missing tool (docs/suites.md)"
    add(parser, "paths PATH", "scenarios, models, folders, @lists, or - (default: the current folder)", nargs="*")
    add_shared(parser, "github")

    group = parser.add_argument_group("selection of scenarios")
    add(group, "--demo", "run the small suite that comes with the program")
    add(group, "--root DIR", "make names relative to DIR (default: the current folder)", default=".")
    add(group, "-t --include-tests REGEX", "run only matching names; FILE.txt has one expression per line", **SEVERAL)
    add(group, "--skips FILE", "skip names that match a regular expression in FILE", **SEVERAL)
    add(group, "--flakes FILE", "accept failures of names that match an expression in FILE", **SEVERAL)
    add(group, "--baseline FILE", "expect the results 'name,status' in FILE", **SEVERAL)
    add(group, "--fraction M", "run every M-th scenario", type=_COUNT, default=1)
    add(group, "--fraction-start N", "begin with the N-th scenario (default: 1)", type=_COUNT, default=1)
    add(group, "--shuffle SEED", "shuffle the scenarios; the same SEED gives the same order")
    add(group, "--failed-first", "begin with the scenarios that failed in the run before, in --results")
    add(group, "--list", "print the names of the chosen scenarios, and run nothing")

    group = parser.add_argument_group("execution")
    devices = "use several devices: 'all' of the fastest kind, 'gpus', or indexes, UUIDs or names"
    add(group, "--devices D,…", devices, default=())
    each = "run the suite on each of --devices (default: gpus), and compare the verdicts"
    add(group, "--each-device", each, action="store_const", const="each_device", dest="action")
    add(group, "--jobs N", "worker processes for each device (default: chosen for the device)", type=jobs)
    add(group, "--cluster SCHEDULER", "run on Dask workers: tcp://host:8786, a scheduler's *.json, or local:N")
    add(group, "--retries N", "retry unexpected results up to N times (default: 1)", type=_NUMBER)
    repeat = add(group, "--repeat N", "run each scenario N times, or until a failure", type=_COUNT, default=1)
    add(
        group,
        "--fail-fast N",
        "stop after N failures (default: 1); see --resume",
        type=_COUNT,
        nargs="?",
        const=1,
    )
    add(group, "--max-failures N", "after N failures, the remaining scenarios get the verdict Skip", type=_COUNT)
    add(group, "--strict-environment", "stop if this machine lacks a tool that an item needs")
    add(group, "--strict", "stop at any problem with lists, folders or expectations")
    add(group, "--require-expectations", "fail scenarios with outputs and without expectations")
    add_shared(group, "core dumps", "watch")

    group = parser.add_argument_group("output")
    add(group, "--results DIR", "folder for journal.jsonl, results.csv and failures.csv")
    add(group, "--max-evidence MIB", "keep at most MIB of files about an item (default: 64)", type=_NUMBER, default=64)
    add(group, "--resume", "keep the valid results in --results, and run the rest")
    add(group, "--resume-anyway", "the same, even if the device, driver, program, time limit or options have changed")
    add_shared(group, "reports")
    add(group, "--update", "write expectations from this run, and show the changes")
    add(group, "--dry-run", "with --update: only show the changes")
    add(group, "--quiet", "show only failures and the last line")
    add(group, "--verbose", "show a line for each scenario")

    titles = ("device", "checking", "shaders and caches", "debugging")
    groups = device, checking, compiling, debugging = [parser.add_argument_group(title) for title in titles]
    add_device_options(device, f"{ITEM_TIMEOUT_S:g}")
    add_shared(device, "features")
    add_shared(checking, "sandbox", "validation")
    add_shared(compiling, "compiler")
    add_shared(debugging, "printf", "labels", "log")
    run_actions = [action for group in groups for action in group._group_actions if action.dest != "log_level"]
    # words for `run`, and words for `test` that run an item again in the same way
    parser.word_groups = {"run_words": run_actions, "repeated_words": [*run_actions, repeat]}


def _report(parser: Parser) -> None:
    """Show, merge and compare the results of suites. 'scenario-runner test --results' writes the journals."""
    parser.epilog = "exit codes: 0: nothing unexpected (--compare: new); 1: unexpected failures; 4: incomplete journals"
    add(parser, "journals JOURNAL", "journal.jsonl, or the folder with the file", nargs="+")
    add(parser, "--compare OLD", "show the changes since the journal OLD")
    add(parser, "--csv DIR", "write results.csv and failures.csv into DIR")
    add(parser, "--strict", "stop at damaged lines and contradictory verdicts")
    add_shared(parser, "reports")


def _bench(parser: Parser) -> None:
    """Measure scenarios over many runs, or compare measurements.
    The tables show how long each dispatch and each phase takes. No result is written.
    """
    forms = ("FILE… [options]", "A B --interleave", "FILE… --against MEASUREMENT", "--compare A.json B.json")
    parser.usage = "\n       ".join(f"scenario-runner bench {form}" for form in forms)
    add(parser, "files FILE", "scenario files (JSON)", nargs="*")
    add_shared(parser, "parameters")
    add(parser, "--warmup W", f"runs before the measured ones (default {WARMUP})", type=_NUMBER, default=WARMUP)
    until = parser.add_mutually_exclusive_group()
    add(until, "--repeat N", f"measured runs of each scenario (default {REPEAT})", type=_COUNT, default=REPEAT)
    add(until, "--time S", "measure each scenario for S seconds instead")
    add(parser, "--json FILE", "write every sample to FILE; without FILE, print them", nargs="?", const=STDOUT)
    add(parser, "--json-format", "the form of --json (default: samples)", choices=("samples", "bencher", "github"))
    add(parser, "--processes N", "measure in N processes (default 1; 20 for each side of a comparison)", type=_COUNT)
    group = parser.add_argument_group("comparison")
    add(group, "--interleave", "measure two scenarios in turns, and show the changes from the first to the second")
    against = "measure the scenarios in a file of --json again, in turns, and show the changes"
    add(group, "--against MEASUREMENT", against)
    add(group, "--compare", "show the changes between two files of --json", nargs=2, metavar=("A.json", "B.json"))
    add(group, "--threshold PERCENT", f"ignore smaller changes (default {THRESHOLD_PERCENT:g})")
    group = parser.add_argument_group("device and checking")
    add_device_options(group)
    add_shared(group, "compiler", "sandbox", "validation", "labels", "log")
    parser.word_groups = {"measured_words": group._group_actions}


def _pack(parser: Parser) -> None:
    """Write scenarios, with all files that they read, into a folder. Other runners take these plain files."""
    parser.set_defaults(action="pack_files")
    add(parser, "files FILE", "scenario files (JSON)", nargs="+")
    add_shared(parser, "parameters")
    add(parser, "--output DIR", "the folder to write", required=True)
    add(parser, "--zip", "write DIR.zip instead of the folder")


def _reduce(parser: Parser) -> None:
    """Reduce a failing scenario as far as possible, for a bug report.
    By default, a failure is a crash, a timeout, an unexpected output or an error. An option can name another.
    """
    parser.epilog = "exit codes: 0: reduced; 1: FILE does not fail; others: docs/command_line.md"
    add(parser, "file FILE", "scenario file (JSON)")
    add(parser, "--output DIR", "the folder to write: a new or an empty folder", required=True)
    add(parser, "--zip", "write DIR.zip instead of the folder")
    add_shared(parser, "parameters")
    failures = parser.add_argument_group("failure").add_mutually_exclusive_group()
    script = "a program that exits with 0 if the scenario in the last argument shows the failure"
    add(failures, "--script CMD", script)
    add(failures, "--code CODE", "a message (error or warning) with this code or VUID")
    failures.add_argument("--devices", nargs=2, metavar=("A", "B"), help="a result that differs between two devices")
    group = parser.add_argument_group("time")
    add(group, "--limit S", "stop after S seconds with the smallest scenario so far (default: no limit)")
    comparing = parser.add_argument_group("comparing")
    add_tolerance_options(comparing, "with --devices: ")
    groups = device, checking, compiling = [
        parser.add_argument_group(title) for title in ("device", "checking", "compiling")
    ]
    add_device_options(device, f"{REDUCE_TIMEOUT_S:g}")
    add_shared(device, "features")
    add_shared(checking, "sandbox", "validation")
    add_shared(compiling, "compiler")
    add_shared(parser, "log")
    run_actions = [action for group in groups for action in group._group_actions]
    parser.word_groups = {"run_words": run_actions, "tolerance_words": comparing._group_actions}


def _explain(parser: Parser) -> None:
    """Explain the code of a finding and how to fix it. Without CODE, list all codes."""
    parser.set_defaults(action="explain")
    add(parser, "codes CODE", "a code, such as SR-BIND-003", nargs="*")


def _view(parser: Parser) -> None:
    """Show images and tensors, or compare two of them.
    A terminal with colors shows a picture, other outputs get numbers. The exit code of --diff is 0 for equal files and
    1 for different ones.
    """
    parser._negative_number_matcher = re.compile(r"-\d")  # --range -1:1
    add(parser, "files FILE", "image or tensor to show", nargs="*")
    add(parser, "--diff", "compare two files, or the files of two folders", nargs=2, metavar=("A", "B"))
    add_tolerance_options(parser, "with --diff: ")
    add(parser, "--png OUT", "write the picture to a PNG file; with --diff, a picture of the errors")
    add(parser, "--channel C", "show one channel: R, G, B, A, depth, stencil or a number")
    add(parser, "--range MIN:MAX", "show MIN as black and MAX as white")
    add(parser, "--mip N", "mip level of a .dds file (default: 0)", type=_NUMBER, default=0)
    add(parser, "--dtype TYPE", "read the bytes of a .npy file as this type, such as float32")
    add(parser, "--shape N,N,…", "read a .npy file with this shape; one length may be -1")


def _diff(parser: Parser) -> None:
    """Find the first command at which two dumps of a scenario differ.
    'run --dump-all DIR' writes a dump; --devices makes two dumps, on two devices. The exit code is 0 for equal dumps
    and 1 for different ones.
    """
    parser.usage = "scenario-runner diff DIR DIR [options]\n       scenario-runner diff --devices A B FILE [options]"
    add(parser, "paths DIR", "the folder of a dump; with --devices a scenario", nargs="*")
    add(parser, "--devices", "run FILE on two devices, each in an isolated process", nargs=2, metavar=("A", "B"))
    add(parser, "--png OUT", "write a picture of the first difference to a PNG file")
    add_tolerance_options(parser)
    types = "read the bytes of a buffer, or of all buffers, as this type, such as float32 (default: the shader's type)"
    add(parser, "--dtype [RESOURCE=]TYPE", types, **REPEATED)
    add_json_option(parser, "print the result as JSON")
    group = parser.add_argument_group("with --devices")
    add_shared(group, "parameters")
    limit = f"end a run that takes more than S seconds (default: {ITEM_TIMEOUT_S:g})"
    add(group, "--timeout S", limit, default=ITEM_TIMEOUT_S)
    add(group, "--output DIR", "keep the dumps, in DIR/first and DIR/second")
    add_shared(group, "features", "sandbox", "validation", "compiler")
    parser.word_groups = {"run_words": group._group_actions}


def _cache(parser: Parser) -> None:
    """Show or clear the files that are kept for later runs."""
    commands = parser.add_subparsers(required=True, dest="action", metavar="show|clear|path")
    show = subcommand(commands, "show", "print the number and size of the files of each kind")
    add_json_option(show, "print the table as JSON")
    clear = subcommand(commands, "clear", "remove all files, or only some kinds")
    add(clear, "kinds KIND", ", ".join(KINDS_KEPT), nargs="*")
    subcommand(commands, "path", "print the folder")


def _schema(parser: Parser) -> None:
    """Print a JSON Schema of our files, or settings for an editor."""
    parser.set_defaults(action="schema")
    formats = "the schema of scenario files (default), check.json, suite.json, or attributes of custom operations"
    choices = ("scenario", "expectations", "suite", "custom-op")
    parser.add_argument("format", nargs="?", choices=choices, help=formats)
    add(parser, "--vscode", "print settings for .vscode/settings.json of Visual Studio Code")


def _doctor(parser: Parser) -> None:
    """Show the installed and the missing parts of this machine.
    The exit code is 0 for a machine with a usable device and a GLSL compiler, else 1.
    """
    add_json_option(parser, "print everything as JSON (docs/doctor.md has the keys)")
    add(parser, "--fix", "first let pip install missing compilers, emulation layers and libraries")
    add(parser, "--yes", "with --fix: do not ask on a terminal")
    add(parser, "--glslang PATH", "GLSL compiler to check (or set SCENARIO_RUNNER_GLSLANG)")
    add(parser, "--timeout S", "time limit for the drivers (default: 30 seconds)", default=30.0)


def _completion(parser: Parser) -> None:
    """Print a script that completes words in bash, zsh or fish."""
    parser.set_defaults(action="completion")
    parser.epilog = 'bash, zsh: eval "$(scenario-runner completion bash)"; fish: scenario-runner completion fish|source'
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def _help(parser: Parser) -> None:
    """Show the options of a command."""
    add(parser, "topic COMMAND", "a command (default: run)", nargs="?", default="run")


COMMANDS: Final[dict[str, Callable[[Parser], None]]] = {
    "run": _run,
    "validate": _validate,
    "test": _test,
    "report": _report,
    "bench": _bench,
    "pack": _pack,
    "reduce": _reduce,
    "init": model_options.add_init_options,
    "explain": _explain,
    "view": _view,
    "diff": _diff,
    "shader": model_options.add_shader_options,
    "vgf": model_options.add_vgf_options,
    "convert": model_options.add_convert_options,
    "compare-layers": model_options.add_compare_layers_options,
    "import": model_options.add_import_options,
    "custom-op": model_options.add_custom_op_options,
    "cache": _cache,
    "schema": _schema,
    "doctor": _doctor,
    "completion": _completion,
    "help": _help,
}
"""For each command the function that adds the options."""
GROUPS: Final = {
    "Run": ("run", "init", "validate", "bench", "pack"),
    "Test": ("test", "report", "reduce", "import"),
    "Models": ("vgf", "convert", "compare-layers", "custom-op"),
    "Debug": ("view", "diff", "shader", "explain"),
    "Set up": ("doctor", "cache", "schema", "completion"),
}
"""The commands in the groups of ``scenario-runner --help``."""
EXAMPLES: Final = {
    "help": (
        "  scenario-runner test.json                 run a scenario",
        "  scenario-runner test suite --html r.html  run a suite, and write a report",
    ),
    "run": (
        "  scenario-runner test.json                 run a scenario",
        "  scenario-runner test.json --output out    write the results to the folder out",
        "  scenario-runner model.vgf --input x=x.npy run a model",
    ),
    "test": (
        "  scenario-runner test                      test the current folder",
        "  scenario-runner test suite --html r.html  test a folder, and write a report",
        "  scenario-runner test a.json --update      write expectations from a run",
    ),
}
"""Examples for the help of commands."""

"""The options of every command, for its parser, its help and the completion of shells.

Nothing here imports what a command needs to run: `--help` is quick, and the work of a command is imported with all that
it needs once its arguments are known to be right.
"""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from scenario_runner.cli import option_groups
from scenario_runner.cli.arguments import REPEATED, SEVERAL, Parser, add, jobs, subcommand, whole_number

GRAPH_REPORTS: Final = {
    "--session-memory-dump-dir": "write the memory of graph sessions as hexadecimal text",
    "--emulation-layer-profiling-dump-dir": "write what the ML emulation layers measured as JSON",
    "--neural-debug-database-dump-dir": "write debug databases of neural accelerators",
    "--neural-statistics-dump-dir": "write statistics of neural accelerators",
}
TIMING_FILES: Final = {
    "--profiling-dump-path": "write the time of every dispatch as JSON",
    "--perf-counters-dump-path": "write the times of the host as JSON",
    "--trace": "write both as a trace for Perfetto or chrome://tracing",
}
KINDS_KEPT: Final = {
    "plans": "plans of scenarios",
    "shaders": "compiled shaders",
    "checked": "modules that were checked, versions of compilers",
    "pipelines": "the driver's pipelines",
    "contents": "files of suites of other hosts",
}
"""The kinds of files of the cache, and what they hold."""
WARMUP, REPEAT, THRESHOLD_PERCENT = 3, 20, 2.0
"""The defaults of ``bench``."""
ITEM_TIMEOUT_S: Final = 60.0
_COUNT, _NUMBER = whole_number(1), whole_number(0)


def parse(command: str, argv: Sequence[str], commands: Mapping[str, str] | None = None) -> argparse.Namespace:
    """Parse the options of a command: ``work`` is what does it, ``argv`` are the arguments as they are.

    The help of ``run`` lists all ``commands``. Raises UsageError.
    """
    parser = parser_of(command)
    if commands is not None and command == "run":
        parser.formatter_class = partial(argparse.RawDescriptionHelpFormatter, max_help_position=34, width=100)
        lines = [f"  {name:16}{purpose}" for name, purpose in commands.items()]
        parser.description = "\n".join([f"{parser.description}\n\ncommands:", *lines])
    options = parser.parse_args(argv)
    options.argv = argv
    return options


def parser_of(command: str) -> Parser:
    """The parser of a command. Its description is the docstring of the function that adds its options."""
    add_options = _COMMANDS[command]
    parser = Parser(prog=f"scenario-runner {command}", description=add_options.__doc__)
    parser.set_defaults(work=f"{command}:main", annotations=None)
    add_options(parser)
    option_groups.add_github_option(parser, command)
    return parser


def _run(parser: Parser) -> None:
    """Run GPU workloads described in JSON, or models, on a Vulkan device."""
    parser.prog = "scenario-runner"
    parser.usage = "scenario-runner [run] FILE… [options]\n       scenario-runner COMMAND --help"
    add(parser, "files FILE", "scenario files (JSON), run one after the other, or a model", nargs="*")
    option_groups.add_parameters_option(parser)
    add(parser, "--version -v", "print versions as JSON", action="store_const", const="about:versions", dest="work")

    group = parser.add_argument_group("device")
    option_groups.add_device_options(group)
    option_groups.add_feature_options(group)
    add(group, "--list-devices", "list the Vulkan devices", action="store_const", const="run:list_devices", dest="work")
    crashes = "outlive a driver that crashes, and with --timeout one that hangs (default: crashes, for several files)"
    add(group, "--isolate", crashes, action=argparse.BooleanOptionalAction)
    option_groups.add_core_dumps_option(group)
    option_groups.add_watch_option(group)

    group = parser.add_argument_group("models")
    add(group, "--input NAME=FILE", "of a model: an input (.npy), by its name or binding number", **REPEATED)
    add(group, "--shader NAME=FILE", "of a model: the shader for a placeholder", **REPEATED)
    add(group, "--push-constants NAME=FILE", "of a model: push constants of a shader (.npy)", **REPEATED)

    group = parser.add_argument_group("results")
    add(group, "--output --output-dir DIR", "base of relative dst paths (default: the scenario's folder; models: .)")
    add(group, "--folder-each", "with --output and --capture-dir: a separate folder for each scenario")
    add(group, "--clean", "remove the outputs of earlier runs before each run")
    add(group, "--dry-run", "plan, compile and upload, but run no command and write no file")
    add(group, "--repeat N", "run the commands N times", type=_COUNT, default=1)
    add(group, "--repeat-keep-state", "with --repeat: do not restore the inputs before each iteration")
    add(group, "--quiet", "print no line for what succeeded")

    group = parser.add_argument_group("checking")
    add(group, "--strict", "warnings are errors; nothing is run")
    option_groups.add_checking_options(group)
    _add_run_tools(parser)


def _add_run_tools(parser: Parser) -> None:
    """Caches, dumps, captures and measurements."""
    group = parser.add_argument_group("shaders and caches")
    option_groups.add_compiler_options(group)
    add(group, "--pipeline-caching", "keep the driver's pipelines in a file for the next process")
    add(group, "--cache-path DIR", "with --pipeline-caching: an existing folder (default: in the user's cache)")
    add(group, "--clear-pipeline-cache", "with --pipeline-caching: remove the scenario's file first")
    add(group, "--fail-on-pipeline-cache-miss", "with --pipeline-caching: fail where the file lacks a pipeline")

    group = parser.add_argument_group("debugging")
    after = "with --dump-dir: write what the command (its number, or a range such as 2-5) changed, or a resource"
    add(group, "--dump-after COMMAND[:RESOURCE]", after, action="append")
    add(group, "--dump-dir DIR", "the folder for what --dump-after asks for")
    add(group, "--dump-all DIR", "write all that each command may have changed, with an index")
    option_groups.add_printf_options(group)
    option_groups.add_debugging_options(group)

    group = parser.add_argument_group("capture")
    add(group, "--capture-dir DIR", "write the resources that each frame boundary names to folders in DIR")
    frames = "capture frames with RenderDoc, by frame id; also 'command:K' and 'run' (the default)"
    add(group, "--capture-frame N[,N…]", frames, nargs="?", const="run")
    add(group, "--gfxr FILE", "capture all Vulkan calls with gfxreconstruct into FILE")

    group = parser.add_argument_group("timing and measurements")
    add(group, "--profiling", "print the time of each dispatch, and of each operator in the ML emulation layers")
    for option, purpose in TIMING_FILES.items():
        add(group, f"{option} FILE", purpose)
    add(group, "--shader-instrumentation FILE", "write measurements of shaders (VK_ARM_shader_instrumentation)")
    for option, purpose in GRAPH_REPORTS.items():
        add(group, f"{option} DIR", f"{purpose}, into an existing folder")
    add(group, "--neural-statistics-mode", "which statistics are written (default: 1)", type=int, choices=(0, 1))

    group = parser.add_argument_group("compatibility")
    add(group, "--scenario FILE", "a scenario file, like FILE", **REPEATED)
    add(group, "--wait-for-key-stroke-before-run", "wait for Enter before running")
    add(group, "--pause-on-exit", "wait for Enter at the end")


def _validate(parser: Parser) -> None:
    """Check scenarios without a GPU. 'scenario-runner explain CODE' explains a finding."""
    add(parser, "files FILE", "scenario files (JSON)", nargs="+")
    option_groups.add_parameters_option(parser)
    add(parser, "--format", "format of the findings (default: text)", choices=("text", "json", "sarif"), default="text")
    add(parser, "--sarif FILE", "write the findings as SARIF as well")
    add(parser, "--hazards", "look for missing barriers between commands as well")
    add(parser, "--strict", "warnings are errors")
    add(parser, "--against REPORT", "compare with limits and features of a device of 'doctor --json'")
    add(parser, "--device D", "with --against: index, UUID or part of the name of the device")
    add(parser, "--output DIR", "base of relative dst paths (default: the scenario's folder)")
    option_groups.add_compiler_options(parser)
    option_groups.add_sandbox_option(parser)
    option_groups.add_logging_option(parser)
    option_groups.add_watch_option(parser)


def _test(parser: Parser) -> None:
    """Run scenarios with expectations, each in a process that may crash, and say which results are unexpected.
    PATH is a scenario, a model, a folder that is searched, @FILE for a list of those, or - for one on standard input.
    """
    parser.epilog = "exit codes: 0: nothing unexpected; 1: unexpected failures; 17: missing tool (docs/suites.md)"
    add(parser, "paths PATH", "scenarios, models, folders, @lists, or -", nargs="*")

    group = parser.add_argument_group("which scenarios run")
    add(group, "--demo", "run a small suite that comes with the program, in place of PATH")
    add(group, "--root DIR", "names are relative to DIR (default: here)", default=".")
    add(group, "-t --include-tests REGEX", "run only matching names; FILE.txt: one a line", **SEVERAL)
    add(group, "--skips FILE", "do not run names that match a regular expression of these lists", **SEVERAL)
    add(group, "--flakes FILE", "accept failures of names that match one of these lists", **SEVERAL)
    add(group, "--baseline FILE", "expect 'name,status' of these lists, such as failures.csv", **SEVERAL)
    add(group, "--fraction M", "run every M-th scenario", type=_COUNT, default=1)
    add(group, "--fraction-start N", "begin with the N-th, which counts from 1", type=_COUNT, default=1)
    add(group, "--shuffle SEED", "run in an order that SEED determines")
    add(group, "--failed-first", "begin with those that failed in --results before")
    add(group, "--list", "print the names of what would run, and run nothing")

    group = parser.add_argument_group("how they run")
    devices = "'all' of the fastest kind (no software device beside a GPU), 'gpus', or indexes, UUIDs or names"
    add(group, "--devices D,…", devices, default=())
    each = "run all on each of --devices (default: gpus), and show how the verdicts differ"
    add(group, "--each-device", each, action="store_const", const="each_device:main", dest="work")
    add(group, "--jobs N", "processes for each device (default: what suits it)", type=jobs)
    add(group, "--cluster SCHEDULER", "run on workers of Dask: tcp://host:8786, a scheduler's *.json, or local:N here")
    retries = add(group, "--retries N", "run unexpected results up to N times more (default: 1)", type=_NUMBER)
    repeat = add(group, "--repeat N", "run each N times, or until it fails", type=_COUNT, default=1)
    add(group, "--fail-fast N", "start nothing more after N failures (1)", type=_COUNT, nargs="?", const=1)
    option_groups.add_core_dumps_option(group)
    option_groups.add_watch_option(group)
    add(group, "--max-failures N", "skip what is left after N failures", type=_COUNT)
    add(group, "--strict-environment", "start nothing more once an item lacks a tool of this machine")
    add(group, "--strict", "stop at anything that is wrong with lists, folders and expectations")

    group = parser.add_argument_group("what is written")
    add(group, "--results DIR", "folder of journal.jsonl, results.csv and failures.csv")
    add(group, "--max-evidence MIB", "most of files about failures of an item (default: 64)", type=_NUMBER, default=64)
    add(group, "--resume", "keep the results in --results that are still valid")
    add(group, "--resume-anyway", "the same, also for another device, driver, program, time limit or other options")
    option_groups.add_report_options(group)
    add(group, "--update", "write expectations from this run, showing what changes")
    add(group, "--dry-run", "with --update: only show what would change")
    add(group, "--quiet", "show failures and the last line only")
    add(group, "--verbose", "show a line for each scenario")

    titles = ("device", "checking", "shaders and caches", "debugging")
    groups = device, checking, compiling, debugging = [parser.add_argument_group(title) for title in titles]
    option_groups.add_device_options(device, f"{ITEM_TIMEOUT_S:g}")
    option_groups.add_feature_options(device)
    option_groups.add_checking_options(checking)
    option_groups.add_compiler_options(compiling)
    option_groups.add_printf_options(debugging)
    option_groups.add_debugging_options(debugging)
    run_actions = [action for group in groups for action in group._group_actions if action.dest != "log_level"]
    # those that `run` has as well, and those with which one item runs again in the same way
    parser.set_defaults(run_actions=run_actions, repeated_actions=[*run_actions, retries, repeat])


def _report(parser: Parser) -> None:
    """Show the results in journals of 'scenario-runner test --results', merged where there are several."""
    parser.epilog = "exit codes: 0: nothing unexpected (--compare: new); 1: unexpected failures; 4: incomplete journals"
    add(parser, "journals JOURNAL", "journal.jsonl, or the folder that has it", nargs="+")
    add(parser, "--compare OLD", "show what has changed since the results of this journal")
    add(parser, "--csv DIR", "write results.csv and failures.csv into this folder")
    add(parser, "--strict", "stop at damaged lines and at verdicts that contradict")
    option_groups.add_report_options(parser)


def _bench(parser: Parser) -> None:
    """Run scenarios many times; show what each dispatch and each phase takes. No result is written."""
    forms = ("FILE… [options]", "A B --interleave", "FILE… --against MEASUREMENT", "--compare A.json B.json")
    parser.usage = "\n       ".join(f"scenario-runner bench {form}" for form in forms)
    add(parser, "files FILE", "scenario files (JSON)", nargs="*")
    option_groups.add_parameters_option(parser)
    add(parser, "--warmup W", f"runs before the measured ones (default {WARMUP})", type=_NUMBER, default=WARMUP)
    until = parser.add_mutually_exclusive_group()
    add(until, "--repeat N", f"measured runs of each scenario (default {REPEAT})", type=_COUNT, default=REPEAT)
    add(until, "--time S", "measure each scenario for S seconds instead")
    add(parser, "--json FILE", "write every sample to FILE")
    add(parser, "--json-format", "of --json (default: samples)", choices=("samples", "bencher", "github"))
    add(parser, "--processes N", "measure in N processes (default 1, or 20 of each side that is compared)", type=_COUNT)
    group = parser.add_argument_group("what changed")
    add(group, "--interleave", "measure two scenarios in turns, and show what changes from the first to the second")
    against = "measure in turns with the scenarios and options of a file of --json, and show what has changed"
    add(group, "--against MEASUREMENT", against)
    add(group, "--compare", "show what changed between two files of --json", nargs=2, metavar=("A.json", "B.json"))
    add(group, "--threshold PERCENT", f"ignore smaller changes (default {THRESHOLD_PERCENT:g})")
    group = parser.add_argument_group("device and checking")
    option_groups.add_device_options(group)
    option_groups.add_compiler_options(group)
    option_groups.add_checking_options(group)
    option_groups.add_debugging_options(group)
    parser.set_defaults(measured_actions=group._group_actions)
    parser.set_defaults(disable_extension=(), enable_robustness_features=False, printf=False, printf_size=None)


def _pack(parser: Parser) -> None:
    """Write scenarios and all that they read into one folder, as plain files that other runners take."""
    add(parser, "files FILE", "scenario files (JSON)", nargs="+")
    option_groups.add_parameters_option(parser)
    add(parser, "--output DIR", "the folder to write to", required=True)
    add(parser, "--zip", "write DIR.zip instead of the folder")


def _explain(parser: Parser) -> None:
    """Explain the codes of findings; without CODE, list all."""
    parser.set_defaults(work="about:explain")
    add(parser, "codes CODE", "a code, such as SR-BIND-003", nargs="*")


def _view(parser: Parser) -> None:
    """Show images and tensors (.dds, .png, .npy): in colour on a terminal, as numbers elsewhere.
    The exit code of --diff is 0 where the files are equal and 1 where they differ.
    """
    parser._negative_number_matcher = re.compile(r"-\d")  # --range -1:1
    add(parser, "files FILE", "image or tensor to show", nargs="*")
    add(parser, "--diff", "compare two files, or the files of two folders", nargs=2, metavar=("A", "B"))
    option_groups.add_tolerance_options(parser, "with --diff: ")
    add(parser, "--png OUT", "write the picture to a PNG file; with --diff, the errors as colours")
    add(parser, "--channel C", "show one channel: R, G, B, A, depth, stencil or a number")
    add(parser, "--range MIN:MAX", "values shown as black and white")
    add(parser, "--mip N", "mip level of a .dds file (default: 0)", type=_NUMBER, default=0)
    add(parser, "--dtype TYPE", "type of the bytes of a .npy file, such as float32")
    add(parser, "--shape N,N,…", "shape of a .npy file; one length may be -1")


def _diff(parser: Parser) -> None:
    """Find the first command and resource at which two dumps (run --dump-all DIR) of a scenario differ, or its runs on
    two devices. The exit code is 0 where they are equal and 1 where they differ.
    """
    parser.usage = "scenario-runner diff DIR DIR [options]\n       scenario-runner diff --devices A B FILE [options]"
    add(parser, "paths DIR", "a folder that --dump-all or --dump-dir named; with --devices a scenario", nargs="*")
    add(parser, "--devices", "run FILE on both, each in a process that may crash", nargs=2, metavar=("A", "B"))
    add(parser, "--png OUT", "write the errors of the first difference as colours to a PNG file")
    option_groups.add_tolerance_options(parser)
    types = "type of a buffer's bytes, or of all buffers', such as float32 (default: what shaders see in them)"
    add(parser, "--dtype [RESOURCE=]TYPE", types, **REPEATED)
    add(parser, "--json", "print the result as JSON")
    group = parser.add_argument_group("with --devices")
    option_groups.add_parameters_option(group)
    limit = f"end a run that takes more than S seconds (default: {ITEM_TIMEOUT_S:g})"
    add(group, "--timeout S", limit, default=ITEM_TIMEOUT_S)
    add(group, "--output DIR", "keep the dumps, in DIR/first and DIR/second")
    option_groups.add_feature_options(group)
    option_groups.add_checking_options(group)
    option_groups.add_compiler_options(group)
    parser.set_defaults(device=None, ml_emulation="auto", debug_labels=False, printf=False, printf_size=None)
    parser.set_defaults(run_actions=group._group_actions)


def _cache(parser: Parser) -> None:
    """Show or clear what is kept for later runs."""
    commands = parser.add_subparsers(required=True, metavar="show|clear|path")
    show = subcommand(commands, "about:show", "print the number and the size of the files of each kind")
    add(show, "--json", "print it as JSON")
    clear = subcommand(commands, "about:clear", "remove the files of some kinds, or of all")
    add(clear, "kinds KIND", ", ".join(KINDS_KEPT), nargs="*")
    subcommand(commands, "about:path", "print the folder")


def _schema(parser: Parser) -> None:
    """Print a JSON Schema, for editors."""
    parser.set_defaults(work="validate:schema")
    formats = "of scenario files (default), check.json, suite.json, or attributes of custom operations"
    choices = ("scenario", "expectations", "suite", "custom-op")
    parser.add_argument("format", nargs="?", choices=choices, help=formats)
    add(parser, "--vscode", "print settings of Visual Studio Code, for .vscode/settings.json in this folder")


def _doctor(parser: Parser) -> None:
    """Show what is installed on this machine for running scenarios, and what is missing.
    The exit code is 0 when there is a usable device and a GLSL compiler, else 1.
    """
    add(parser, "--json", "print everything as JSON (docs/doctor.md has the keys)")
    add(parser, "--fix", "first install with pip compilers, emulation layers and libraries that are missing")
    add(parser, "--glslang PATH", "GLSL compiler to check (or set SCENARIO_RUNNER_GLSLANG)")
    add(parser, "--timeout S", "time limit for the drivers (default: 30 seconds)", default=30.0)


def _completion(parser: Parser) -> None:
    """Print a script with which a shell completes commands and options."""
    parser.set_defaults(work="about:completion")
    parser.epilog = 'bash, zsh: eval "$(scenario-runner completion bash)"; fish: scenario-runner completion fish|source'
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


_COMMANDS: Final[dict[str, Callable[[Parser], None]]] = {
    "run": _run,
    "validate": _validate,
    "test": _test,
    "report": _report,
    "bench": _bench,
    "pack": _pack,
    "reduce": option_groups.add_reduce_options,
    "explain": _explain,
    "view": _view,
    "diff": _diff,
    "shader": option_groups.add_shader_options,
    "vgf": option_groups.add_vgf_options,
    "convert": option_groups.add_convert_options,
    "compare-layers": option_groups.add_compare_layers_options,
    "import": option_groups.add_import_options,
    "custom-op": option_groups.add_custom_op_options,
    "cache": _cache,
    "schema": _schema,
    "doctor": _doctor,
    "completion": _completion,
}
"""The function that adds the options of each command; ``main`` of the module of its name does the work, if no other."""

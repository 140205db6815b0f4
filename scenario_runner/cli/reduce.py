"""Scenarios to send: ``reduce`` writes a small scenario with the same failure, ``pack`` a copy with all files."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from contextlib import nullcontext

from scenario_runner.cli.arguments import shared_arguments
from scenario_runner.cli.console import live, terminal, write
from scenario_runner.cli.options import REDUCE_TIMEOUT_S
from scenario_runner.doctor.machine_report import gather
from scenario_runner.errors import UsageError
from scenario_runner.errors.installation import own_version
from scenario_runner.errors.text import counted, one_line, size_in_units
from scenario_runner.files.input import is_model
from scenario_runner.files.sandbox import confined
from scenario_runner.processes import signals
from scenario_runner.processes.temporary import temporary_folder
from scenario_runner.reduce.failures import FLAKY_RUNS, DevicesTrial, ScriptTrial, Trial
from scenario_runner.reduce.packing import pack, pack_archive
from scenario_runner.reduce.reduction import Reduction
from scenario_runner.scenario.writing import free_name
from scenario_runner.suite.suite_workers import SuiteWork, suite_options

DOES_NOT_FAIL = 1
"""The exit code for a scenario without a failure."""


def pack_files(options: argparse.Namespace) -> None:
    """Write scenarios and their files into a folder, and print the scenarios' paths.

    Raises ScenarioError, FileError and UsageError.
    """
    output = _archive_name(options) if options.zip else options.output
    packed = (pack_archive if options.zip else pack)(options.files, output, dict(options.set))
    for scenario in packed.scenarios:
        print(one_line(f"{output}: {scenario}" if options.zip else os.path.join(output, scenario)))
    print(f"{counted(packed.file_count, 'file')}, {size_in_units(packed.size_bytes)}")


def _archive_name(options: argparse.Namespace) -> str:
    return f"{options.output.removesuffix('.zip').rstrip('/')}.zip"


def main(options: argparse.Namespace) -> int:
    """Reduce a scenario and write the result. Return 0, or 1 for a scenario without a failure.

    After Ctrl-C, write the smallest scenario so far and return the interrupt's exit code. Raises ScenarioRunnerError.
    """
    output = _archive_name(options) if options.zip else options.output
    _check(options, output)
    code, began = 0, time.monotonic()
    with temporary_folder() as folder, _trial(options, folder) as trial:
        place = os.path.dirname(os.path.abspath(options.file))
        with confined([place, folder], [options.file]) if options.sandbox else nullcontext():
            tried = os.path.join(folder, "tried")
            path = os.path.join(tried, pack([options.file], tried, dict(options.set)).scenarios[0])
        reduction = Reduction(path, trial, options.limit)
        if options.devices:
            reduction.set_tolerances(atol=options.atol, rtol=options.rtol, ulp=options.ulp)

        def progress() -> str:
            commands, resources, size_bytes = reduction.counts
            size = f"{counted(commands, 'command')}, {counted(resources, 'resource')}, {counted(size_bytes, 'byte')}"
            tries = "1 try" if reduction.tries == 1 else f"{reduction.tries} tries"
            return f"{size} of JSON, {tries}, {time.monotonic() - began:.0f} s: {reduction.step}"

        def log_step() -> None:
            if terminal(sys.stdout) is None:
                print(progress(), flush=True)

        with live(sys.stdout, lambda: [[progress()]]):
            failure = reduction.find_failure()
        if failure is None:
            help = "name the failure (--script, --code), or change the run (--device, --timeout, --validation)"
            write("error", f"{options.file}: does not fail, so nothing can be reduced: {trial.says}", help)
            return DOES_NOT_FAIL
        if trial.is_flaky:
            write("warning", f"{options.file}: fails in some runs only, so each try takes {FLAKY_RUNS} runs")
        with live(sys.stdout, lambda: [[progress()]]):
            try:
                reduction.run(log_step)
            except KeyboardInterrupt:
                reduction.notes.append("interrupted before the end")
                code = signals.exit_code()
        reduction.write_files()
        lines = _lines(reduction, trial, time.monotonic() - began)

        def report(scenario: str, taken: set[str]) -> dict[str, bytes]:
            names = [free_name(name, taken) for name in ("failure.txt", "doctor.json")]
            run = f"to run it here: {_command(options, reduction, scenario)}"
            about = f"scenario-runner {own_version()}; {names[1]} describes the machine"
            texts = ["\n".join((*lines, run, about)), json.dumps(gather(), indent=2)]
            beside = os.path.dirname(scenario)
            sources = {free_name(os.path.join(beside, name), taken): text for name, text in reduction.sources.items()}
            return {name: f"{text}\n".encode() for name, text in zip(names, texts, strict=True)} | sources

        packed = (pack_archive if options.zip else pack)([reduction.path], output, more=report)
    print(*lines, sep="\n")
    names = ", ".join((*packed.scenarios, *packed.added[:2]))
    print(f"written: {one_line(output)}: {names} ({counted(packed.file_count, 'file')})")
    return code


def _check(options: argparse.Namespace, output: str) -> None:
    """Check the options. Raises UsageError."""
    if is_model(options.file):
        help = "to make a scenario that runs it: scenario-runner vgf scenario"
        raise UsageError(f"{options.file}: is a model, expected a scenario", help=help)
    if os.path.lexists(output) and (not os.path.isdir(output) or options.zip or os.listdir(output)):
        raise UsageError(f"--output {options.output}: {output!r} exists already", help="name another, or remove it")
    above = os.path.abspath(output)
    while not os.path.exists(above):
        above = os.path.dirname(above)
    if not (os.path.isdir(above) and os.access(above, os.W_OK)):
        message = f"--output {options.output}: {above!r} is not a folder that can be written"
        raise UsageError(message, help="name another")
    if not options.devices and (options.atol or options.rtol or options.ulp):
        raise UsageError("--atol, --rtol and --ulp are for --devices", help="expectations have their own tolerances")
    if options.devices and options.device:
        raise UsageError("--device and --devices were given", help="give one of them")


def _trial(options: argparse.Namespace, folder: str) -> Trial:
    """Make the trial for the failure in the options. Raises UsageError."""
    arguments = {**shared_arguments(options), "cache_dir": folder}
    limit = arguments.pop("timeout_s") or REDUCE_TIMEOUT_S
    device = arguments.pop("device")
    devices = () if device is None else (device,)
    work = SuiteWork(runner=arguments)
    workers = suite_options(work, devices=devices, jobs=1, timeout_s=limit, timeout_origin="--timeout")
    if options.devices:
        return DevicesTrial(workers, options.devices)
    if options.script is None:
        return Trial(workers, options.code)
    try:
        return ScriptTrial(workers, shlex.split(options.script))
    except ValueError as error:
        raise UsageError(f"--script {options.script}: {error}", help="quote as in a shell") from None


def _lines(reduction: Reduction, trial: Trial, seconds: float) -> list[str]:
    """Describe the failure and the reduced scenario."""
    assert reduction.failure is not None
    before, after = reduction.original, reduction.counts
    return [
        one_line(f"fails {'sometimes' if trial.is_flaky else 'in each run'}: {reduction.failure.text}"),
        f"commands: {before.commands} before, {after.commands} now; resources: {before.resources} before,"
        f" {after.resources} now; {reduction.tries} tries in {seconds:.1f} s",
        *reduction.notes,
    ]


def _command(options: argparse.Namespace, reduction: Reduction, scenario: str) -> str:
    """Return the command that reproduces the failure."""
    if options.devices:
        words = ["--devices", *options.devices, scenario, *options.tolerance_words]
        return shlex.join(["scenario-runner", "diff", *words])
    if options.script is not None:
        return f"{options.script} {shlex.quote(scenario)}"
    if options.code is not None and options.code.startswith("SR-"):
        return shlex.join(["scenario-runner", "validate", "--hazards", scenario])
    words = [f"--device={options.device}"] * (options.device is not None)
    words += options.run_words
    if reduction.first is not None and reduction.first.status == "Timeout" and options.timeout is None:
        words.append(f"--timeout={REDUCE_TIMEOUT_S:g}")
    return shlex.join(["scenario-runner", "test", scenario, *words])

"""``scenario-runner reduce FILE --output DIR``: the smallest scenario that still fails alike, for a bug report."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from contextlib import ExitStack, nullcontext
from typing import Any

from scenario_runner import signals, version
from scenario_runner.cli.arguments import shared_arguments
from scenario_runner.cli.messages import set_up_logging, terminal, write
from scenario_runner.cli.shared_options import REDUCE_TIMEOUT_S
from scenario_runner.cli.test import given
from scenario_runner.doctor import gather
from scenario_runner.errors import UsageError
from scenario_runner.files.source import confined, is_model
from scenario_runner.plan.records import CompilerOptions
from scenario_runner.suite.failures import FLAKY_RUNS, DevicesTrial, ScriptTrial, Trial
from scenario_runner.suite.packing import Packed, pack, pack_archive
from scenario_runner.suite.reduction import Reduction
from scenario_runner.suite.running.options import WorkerOptions
from scenario_runner.temporary import temporary_folder
from scenario_runner.text import counted, one_line

DOES_NOT_FAIL = 1
"""The exit code where there is nothing to reduce."""


def main(options: argparse.Namespace) -> int:
    """Reduce the scenario and write it. Returns 0, 1 if it does not fail, or the code of an interrupt, after which the
    smallest scenario so far is written too. Raises ScenarioRunnerError."""
    set_up_logging(options.log_level)
    output = options.output
    if options.zip:
        output = output if output.endswith(".zip") else f"{output.rstrip('/')}.zip"
    _check(options, output)
    code, began = 0, time.monotonic()
    with temporary_folder() as folder, ExitStack() as stack:
        trial = stack.enter_context(_trial(options, folder))
        display = stack.enter_context(_Display())
        place = os.path.dirname(os.path.abspath(options.file))
        with confined([place, folder], [options.file]) if options.sandbox else nullcontext():
            tried = os.path.join(folder, "tried")
            path = os.path.join(tried, pack([options.file], tried, dict(options.set)).scenarios[0])
        compiler = CompilerOptions(options.glslang, folder, not options.no_cache)
        reduction = Reduction(path, trial, options.limit, display.show, compiler)
        display.reduction = reduction
        if options.devices and (options.atol or options.rtol or options.ulp):
            reduction.set_tolerances(atol=options.atol, rtol=options.rtol, ulp=options.ulp)
        if reduction.find_failure() is None:
            display.close()
            help = "name another failure with --script or --code; --device, --timeout and --validation change the run"
            write("error", f"{options.file}: it does not fail, there is nothing to reduce: {trial.says}", help)
            return DOES_NOT_FAIL
        if trial.is_flaky:
            write("warning", f"{options.file}: it does not fail in each run: {FLAKY_RUNS} runs for each try")
        try:
            reduction.run()
        except KeyboardInterrupt:
            reduction.notes.append("interrupted before the end")
            code = signals.exit_code()
        display.close()
        reduction.write_files()
        lines = _lines(options, reduction, trial, time.monotonic() - began)
        texts = {"failure.txt": "\n".join(lines), "doctor.json": json.dumps(gather(), indent=2)}
        more = {**reduction.sources, **{name: f"{text}\n".encode() for name, text in texts.items()}}
        packed = (pack_archive if options.zip else pack)([reduction.path], output, more=more)
        _show(packed, output, lines)
    return code


def _check(options: argparse.Namespace, output: str) -> None:
    """Raises UsageError."""
    if is_model(options.file):
        help = "'scenario-runner vgf scenario' makes a scenario that runs it"
        raise UsageError(f"{options.file}: is a model, expected a scenario", help=help)
    if os.path.lexists(output) and (not os.path.isdir(output) or options.zip or os.listdir(output)):
        raise UsageError(f"--output {options.output}: {output!r} exists already", help="name another, or remove it")
    above = os.path.abspath(output)
    while not os.path.exists(above):
        above = os.path.dirname(above)
    if not (os.path.isdir(above) and os.access(above, os.W_OK)):
        raise UsageError(
            f"--output {options.output}: {above!r} is not a folder that can be written", help="name another"
        )
    if not options.devices and (options.atol or options.rtol or options.ulp):
        raise UsageError("--atol, --rtol and --ulp are for --devices", help="expectations have tolerances of their own")
    if options.devices and options.device:
        raise UsageError("--device and --devices were given", help="give one of them")


def _trial(options: argparse.Namespace, folder: str) -> Trial:
    """The way to try what the options ask for. Raises UsageError."""
    arguments = {**shared_arguments(options), "cache_dir": folder}
    limit = arguments.pop("timeout_s") or REDUCE_TIMEOUT_S
    device = arguments.pop("device")
    devices = () if device is None else (device,)
    workers = WorkerOptions(devices, 1, limit, "--timeout", runner=arguments)
    if options.devices:
        return DevicesTrial(workers, options.devices)
    if options.script is None:
        return Trial(workers, options.code)
    try:
        words = shlex.split(options.script)
    except ValueError as error:
        raise UsageError(f"--script {options.script}: {error}", help="quote as in a shell") from None
    return ScriptTrial(workers, words)


class _Display:
    """The step, the number of tries, and the size of the smallest scenario: a line that changes on a terminal,
    elsewhere a line for each step that has made it smaller."""

    def __init__(self) -> None:
        self.reduction: Reduction | None = None
        self._step, self._size, self._began = "", "", time.monotonic()
        console = terminal(sys.stdout)
        self._live: Any = None if console is None else console.live(lambda: [[self._line(), f": {self._step}"]])
        if self._live is not None:
            self._live.start()

    def __enter__(self) -> _Display:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the line."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def show(self, step: str) -> None:
        """Note the step of now."""
        if step != self._step and self._live is None and self.reduction is not None:
            size = _size(self.reduction)
            if self._size and size != self._size:
                print(f"{self._line()}: {self._step}", flush=True)
            self._size = size
        self._step = step

    def _line(self) -> str:
        if self.reduction is None:
            return "reading"
        tries = "1 try" if self.reduction.tries == 1 else f"{self.reduction.tries} tries"
        return f"{_size(self.reduction)}, {tries}, {time.monotonic() - self._began:.0f} s"


def _size(reduction: Reduction) -> str:
    commands, resources, size_bytes = reduction.counts
    return f"{counted(commands, 'command')}, {counted(resources, 'resource')}, {counted(size_bytes, 'byte')} of JSON"


def _lines(options: argparse.Namespace, reduction: Reduction, trial: Trial, seconds: float) -> list[str]:
    """The lines of failure.txt, of which the first ones are shown too."""
    assert reduction.failure is not None
    before, after = reduction.original, reduction.counts
    name = os.path.basename(reduction.path)
    words = [f"--device={options.device}"] * (options.device is not None)
    words += given(options.run_actions, options)
    if reduction.failure.status == "Timeout" and options.timeout is None:
        words.append(f"--timeout={REDUCE_TIMEOUT_S:g}")
    run = shlex.join(["scenario-runner", "test", name, *words])
    if options.devices:
        run = shlex.join(["scenario-runner", "diff", "--devices", *options.devices, name])
    if options.code is not None and options.code.startswith("SR-"):
        run = shlex.join(["scenario-runner", "validate", "--hazards", name])
    if options.script is not None:
        run = f"{options.script} {shlex.quote(name)}"
    stable = "sometimes" if trial.is_flaky else "in each run"
    return [
        one_line(f"fails {stable}: {reduction.failure.text}"),
        f"commands: {before.commands} before, {after.commands} now; resources: {before.resources} before,"
        f" {after.resources} now; {reduction.tries} tries in {seconds:.1f} s",
        *reduction.notes,
        f"to run it here: {run}",
        f"scenario-runner {version.__version__}; doctor.json describes the machine",
    ]


def _show(packed: Packed, output: str, lines: list[str]) -> None:
    print(*lines[:-2], sep="\n")
    print(f"written: {one_line(output)}: {packed.scenarios[0]}, {counted(packed.file_count, 'file')}")

"""Suites that run as a whole: once on each device (``scenario-runner test --each-device``), and from Python.

``--each-device`` compares the verdicts. ``scenario_runner.test`` prints nothing.
"""

import io
import os
import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stderr, redirect_stdout
from functools import partial
from typing import Final, NamedTuple

from scenario_runner.cli.arguments import parse
from scenario_runner.cli.console import show_table, write, write_finding
from scenario_runner.cli.suites.report import problem_text, report_paths
from scenario_runner.cli.suites.suite_display import verdict_line
from scenario_runner.cli.suites.test import UNEXPECTED, run_suite, settle
from scenario_runner.cli.suites.test import main as run_command
from scenario_runner.errors import FileError, UsageError
from scenario_runner.errors.text import counted, one_line
from scenario_runner.files.input import is_stream
from scenario_runner.processes.jobs import Device
from scenario_runner.processes.temporary import temporary_folder
from scenario_runner.run.capture_files import FileNames
from scenario_runner.suite.journal import MergedJournals
from scenario_runner.suite.outcomes import Result, SuiteProblems
from scenario_runner.suite.reports.ci_reports import write_junit
from scenario_runner.suite.reports.pages import Column, Matrix
from scenario_runner.suite.reports.summary import SuiteInfo
from scenario_runner.suite.suite_workers import SuiteWorkers, suite_options
from scenario_runner.suite.verdicts_and_retries import FAILURES_NAME

_MOST_SHOWN: Final = 50
_NOT_BEGUN: Final = "the suite has not run on this device"


def each_device(options: Namespace) -> int:
    """Run a suite on each chosen device.

    Return 0 if all results are expected, 1 for an unexpected result on any device, or the exit code of a suite or
    device problem. Raises UsageError and NoDeviceError before anything runs.
    """
    if options.list:  # all devices have the same list
        return run_command(options)
    _check(options)
    settle(Namespace(**vars(options)))
    chosen = suite_options(devices=options.devices or ("gpus",), jobs=1)
    with SuiteWorkers(chosen, on_note=partial(write, "warning")) as workers:
        workers.find_devices()
        devices = workers.devices
    columns = _columns(devices)
    results: AbstractContextManager[str] = temporary_folder()
    if options.results is not None:
        results = nullcontext(os.path.abspath(options.results))
    with results as folder:
        try:
            codes = [_run_on(device, options, columns, number, folder) for number, device in enumerate(devices)]
        finally:
            problems = SuiteProblems(write_finding, strict=options.strict)
            line = _write_end(columns, report_paths(options), options.results, problems)
            if options.annotations is not None:
                options.annotations.result = line
    return UNEXPECTED if UNEXPECTED in codes else max(*codes, problems.exit_code)


def _run_on(device: Device, options: Namespace, columns: list[Column], number: int, folder: str) -> int:
    """Run the suite on a device, fill the device's column, and return the exit code."""
    column = columns[number]
    print(f"device {number + 1} of {len(columns)}: {one_line(column.label)}", flush=True)
    own_folder = os.path.join(folder, column.name)
    device_options = _options_for(options, device, column, own_folder)

    def fill_column(merged: MergedJournals, info: SuiteInfo, written: Sequence[str]) -> None:
        results = {result.item.id: result for result in merged}
        page = device_options.html if device_options.html in written else ""
        columns[number] = column._replace(results=results, info=info, page=page)

    return run_suite(device_options, own_folder, on_results=fill_column)


def _check(options: Namespace) -> None:
    """Raise UsageError for options that contradict --each-device."""
    helps = {
        "device": "choose devices with --devices",
        "cluster": "run it on each host",
        "watch": "watch on one device, with --device",
        "update": "expectations come from one device",
    }
    for option, help in helps.items():
        if getattr(options, option):
            raise UsageError(f"--each-device and --{option} contradict each other", help=help)
    lists = [*options.baseline, *options.skips, *options.flakes]
    lists += [path if path == "-" else path[1:] for path in options.paths if path[0] in "-@"]
    for path in lists:
        if path == "-" or (is_stream(path) and not os.path.isdir(path)):
            help = "each device reads the list again: write it to a file"
            raise UsageError(f"{path} can be read only once, expected a file", help=help)


def _columns(devices: Sequence[Device]) -> list[Column]:
    """Make a column for each device, without results yet. UUIDs or indexes distinguish devices with the same name."""
    names = [device.name or device.choice for device in devices]
    file_names = FileNames()
    columns = []
    for device, device_name in zip(devices, names, strict=True):
        label = device_name if names.count(device_name) == 1 else f"{device_name} ({device.choice})"
        name = file_names.name_for(re.sub(r"[^\w.]+", "-", label).strip("-"))
        columns.append(Column(label, name, {}, SuiteInfo(label, incomplete=_NOT_BEGUN)))
    return columns


def _device_path(path: str | None, name: str) -> str | None:
    """Return the path of a device's report: 'report-NAME.html' for 'report.html'."""
    stem, extension = os.path.splitext(path or "")
    return f"{stem}-{name}{extension}" if path else None


def _options_for(options: Namespace, device: Device, column: Column, folder: str) -> Namespace:
    """Make and settle the options for a device, with a separate folder and reports.

    A baseline folder has a list for each device.
    """
    device_options = Namespace(**vars(options))
    device_options.device, device_options.devices = None, (device.choice,)
    device_options.results = options.results and folder
    device_options.junit = None
    for name in ("html", "json", "sarif"):
        setattr(device_options, name, _device_path(getattr(options, name), column.name))
    device_list = os.path.join(column.name, FAILURES_NAME)
    lists = [os.path.join(path, device_list) if os.path.isdir(path) else path for path in options.baseline]
    device_options.baseline = [path for path in lists if path in options.baseline or os.path.exists(path)]
    settle(device_options)
    return device_options


def _write_end(columns: Sequence[Column], paths: dict[str, str], folder: str | None, problems: SuiteProblems) -> str:
    """Print the differences between columns, and write the reports and ``matrix.csv``. Return the last line.

    A failed write is a problem of the suite.
    """
    matrix = Matrix(columns)
    if matrix.different:
        rows = [(id, *verdicts) for id, verdicts in matrix.different.items()]
        show_table([("item", *range(1, len(columns) + 1)), *rows], most=_MOST_SHOWN)
    lines = [f"{number}: {column.label}: {column.summary()}" for number, column in enumerate(columns, 1)]
    try:
        if folder is not None:
            matrix.write_csv(folder)
            lines.append(f"results: {folder}")
        if "junit" in paths:
            first, *others = (column.test_suite() for column in columns)
            lines += [f"report: {path}" for path in write_junit(paths["junit"], *first, *others)]
        if "html" in paths:
            matrix.write_html(paths["html"])
            lines.append(f"report: {paths['html']}")
    except FileError as error:
        problems.failed(error)
    print(*map(one_line, [*lines, matrix.summary()]), sep="\n")
    is_incomplete = any(column.info.incomplete for column in columns)
    count = sum(len(column.results) for column in columns)
    ended, bad = "incomplete" if is_incomplete else "", sum(column.bad for column in columns)
    line = verdict_line(bad, count, ended, problem_text({}, (), problems))
    line += f" on {counted(len(columns), 'device')}"
    print(line)
    return line


class SuiteResult(NamedTuple):
    """The end of a suite: the exit code of ``scenario-runner test``, results by name, and the printed lines."""

    exit_code: int
    results: Mapping[str, Result]
    output: str

    @property
    def passed(self) -> bool:
        """True if nothing is unexpected."""
        return self.exit_code == 0


def test(*paths: str, **options: str | int | float | bool) -> SuiteResult:
    """Run scenarios with expectations, isolated from each other, without printing.

    ``paths`` are scenarios, models and folders; the default is the current folder. ``options`` are long options of
    ``scenario-runner test``: ``test("suite", jobs=4, junit="report.xml")``. Raises UsageError for wrong options.
    """
    given = {f"--{name.replace('_', '-')}": value for name, value in options.items() if value is not False}
    words = [option if value is True else f"{option}={value}" for option, value in given.items()]
    parsed = parse(["test", *paths, *words])
    settle(parsed)
    results: dict[str, Result] = {}
    with temporary_folder() as folder, redirect_stdout(io.StringIO()) as text, redirect_stderr(text):
        code = run_suite(parsed, parsed.results or folder, None, lambda merged, *_: results.update(merged.results))
    return SuiteResult(code, results, text.getvalue())

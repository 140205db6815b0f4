"""``scenario-runner test --each-device``: run a whole suite once on each device, and show how the verdicts differ."""

import os
import re
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Final

from scenario_runner.cli import test
from scenario_runner.cli.messages import set_up_logging, show_table, write, write_finding
from scenario_runner.cli.report import report_paths
from scenario_runner.cli.suite_display import verdict_line
from scenario_runner.errors import FileError, UsageError
from scenario_runner.files.source import is_stream
from scenario_runner.run.capture_files import FileNames
from scenario_runner.suite.journal import MergedJournals
from scenario_runner.suite.problems import SuiteProblems
from scenario_runner.suite.reports.ci import write_junit
from scenario_runner.suite.reports.matrix import Column, Matrix
from scenario_runner.suite.reports.text import SuiteInfo
from scenario_runner.suite.running.options import Device, WorkerOptions
from scenario_runner.suite.running.workers import Workers
from scenario_runner.suite.verdicts import FAILURES_NAME
from scenario_runner.temporary import temporary_folder
from scenario_runner.text import counted, one_line

_MOST_SHOWN: Final = 50
_NOT_BEGUN: Final = "the suite has not run on this device"


def main(options: Namespace) -> int:
    """Run a suite on each device chosen.

    Returns 0 where every result is expected, 1 where one is not on some device, or the exit code of what is wrong with
    the suite or a device. Raises UsageError and NoDeviceError before anything runs.
    """
    if options.list:  # the same on each device
        return test.main(options)
    _check(options)
    test.settle(Namespace(**vars(options)))
    set_up_logging(options.log_level)
    devices = _devices(options)
    labels = labelled([(device.name or device.choice, device.choice) for device in devices])
    file_names = FileNames()
    names = [file_names.of(re.sub(r"[^\w.]+", "-", label).strip("-")) for label in labels]
    pages = [_beside(options.html, name) for name in names]
    columns = [
        Column(label, {}, SuiteInfo(label, incomplete=_NOT_BEGUN, package=name.replace(".", "_")), page)
        for label, name, page in zip(labels, names, pages, strict=True)
    ]
    codes = []
    results: AbstractContextManager[str] = temporary_folder()
    if options.results is not None:
        results = nullcontext(os.path.abspath(options.results))
    with results as folder:
        try:
            for number, (device, name) in enumerate(zip(devices, names, strict=True)):
                print(f"device {number + 1} of {len(devices)}: {one_line(labels[number])}", flush=True)
                own = _options_for(options, device, os.path.join(folder, name), name)
                codes.append(
                    test.run_suite(own, os.path.join(folder, name), on_results=partial(_take, columns, number))
                )
        finally:
            problems = SuiteProblems(write_finding, strict=options.strict)
            show_matrix(columns, report_paths(options), options.results, problems)
    return test.UNEXPECTED if test.UNEXPECTED in codes else max(*codes, problems.exit_code)


def _check(options: Namespace) -> None:
    """Raise UsageError for options that do not go together."""
    lists = [*options.baseline, *options.skips, *options.flakes]
    lists += [path[1:] for path in options.paths if path.startswith("@")]
    once = [path for path in lists if is_stream(path) and not os.path.isdir(path)]
    once += [path for path in options.paths if path == "-"]
    mistakes = {
        "--each-device and --device contradict each other": (options.device, "--devices chooses several devices"),
        "--each-device and --cluster contradict each other": (options.cluster, "run it on each host"),
        "--each-device and --watch contradict each other": (options.watch, "watch on one device: --device"),
        "--each-device and --update contradict each other": (options.update, "expectations come from one device"),
        f"{', '.join(once)} can be read only once, expected files": (once, "each device reads the lists again"),
    }
    for message, (is_made, help) in mistakes.items():
        if is_made:
            raise UsageError(message, help=help)


def _devices(options: Namespace) -> tuple[Device, ...]:
    """Find the devices in a process of their own. Raises NoDeviceError, and what the driver ends with."""
    chosen = WorkerOptions(devices=options.devices or ("gpus",), jobs=1)
    with Workers(chosen, on_note=partial(write, "warning")) as workers:
        workers.find_devices()
        return workers.devices


def labelled(names: Sequence[tuple[str, str]]) -> list[str]:
    """Names, each with what tells it from others (its second part) where several are the same."""
    counts = Counter(name for name, _ in names)
    return [name if counts[name] == 1 else f"{name} ({detail})" for name, detail in names]


def _beside(path: str | None, name: str) -> str:
    """The path of the report of one device: 'report-NAME.html' for 'report.html'."""
    stem, extension = os.path.splitext(path or "")
    return f"{stem}-{name}{extension}" if path else ""


def _options_for(options: Namespace, device: Device, folder: str, name: str) -> Namespace:
    """The settled options of the run on one device, with a folder and reports of its own. A folder as a baseline has
    one for each device."""
    own = Namespace(**vars(options))
    own.device, own.devices = device.choice, ()
    own.results = options.results and folder
    own.junit, own.html, own.json = None, _beside(options.html, name) or None, _beside(options.json, name) or None
    of_device = (os.path.join(path, name, FAILURES_NAME) if os.path.isdir(path) else path for path in options.baseline)
    own.baseline = [path for path in of_device if path in options.baseline or os.path.exists(path)]
    test.settle(own)
    return own


def _take(columns: list[Column], number: int, merged: MergedJournals, info: SuiteInfo) -> None:
    column = columns[number]
    own = info._replace(title=column.label, package=column.info.package)
    columns[number] = column._replace(results={result.item.id: result for result in merged}, info=own)


def show_matrix(columns: Sequence[Column], paths: dict[str, str], folder: str | None, problems: SuiteProblems) -> None:
    """Print how the columns differ, and write the reports and ``matrix.csv``; one that cannot be written is a
    problem."""
    matrix = Matrix(columns)
    if matrix.different:
        rows = [(one_line(id), *verdicts) for id, verdicts in list(matrix.different.items())[:_MOST_SHOWN]]
        show_table([("item", *map(str, range(1, len(columns) + 1))), *rows])
        if len(matrix.different) > _MOST_SHOWN:
            print(f"  and {len(matrix.different) - _MOST_SHOWN} more")
    lines = [f"{number}: {column.label}: {column.summary()}" for number, column in enumerate(columns, 1)]
    try:
        if folder is not None:
            matrix.write_csv(folder)
            lines.append(f"results: {folder}")
        if "junit" in paths:
            first, *others = ((column.results.values(), column.info) for column in columns)
            lines += [f"report: {path}" for path in write_junit(paths["junit"], *first, *others)]
        if "html" in paths:
            matrix.write_html(paths["html"])
            lines.append(f"report: {paths['html']}")
    except FileError as error:
        problems.failed(error)
    print(*map(one_line, [*lines, matrix.summary()]), sep="\n")
    is_incomplete = any(column.info.incomplete for column in columns)
    count = sum(len(column.results) for column in columns)
    line = verdict_line(sum(column.bad for column in columns), count, "incomplete" if is_incomplete else "")
    print(f"{line} on {counted(len(columns), 'device')}")

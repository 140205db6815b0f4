"""``scenario-runner diff``: the first command with a difference between two dumps, or between two devices."""

import argparse
import json
import math
import os
from collections.abc import Sequence
from contextlib import nullcontext

from scenario_runner.cli.arguments import shared_arguments
from scenario_runner.cli.console import show_first, show_table
from scenario_runner.cli.view import error_text, show_difference, show_errors
from scenario_runner.compare.differences import Compared, Difference, Scenarios, compared, scenarios
from scenario_runner.compare.wrong_elements import Rule
from scenario_runner.errors import UsageError
from scenario_runner.errors.text import counted, one_line
from scenario_runner.files.input import is_model, is_stream
from scenario_runner.files.output import check_destination
from scenario_runner.processes.temporary import temporary_folder
from scenario_runner.reduce.failures import DeviceDump, dump_on
from scenario_runner.run.dump_files import DumpEntry, DumpIndex, read_index
from scenario_runner.suite.discovery import scenario_with

_MOST_SHOWN = 10
_HELP = "scenario-runner diff DIR DIR, or scenario-runner diff --devices A B FILE"
_KEYS = ("iteration", "command", "command_kind", "pointer", "segment", "resource", "mip", "aspect", "file")


def main(options: argparse.Namespace) -> int:
    """Compare two dumps. Return 0 if all is equal within the tolerance, else 1. Raises FileError and UsageError."""
    if options.png is not None:
        check_destination(options.png)
    if options.devices is not None:
        return _of_devices(options)
    if options.run_words:
        raise UsageError(f"{options.run_words[0].partition('=')[0]} needs --devices", help=_HELP)
    if len(options.paths) != 2:
        raise UsageError(f"expected the folders of two dumps, got {len(options.paths)}", help=_HELP)
    one, other = map(read_index, options.paths)
    return _compare(options, one, other, (one_line(one.folder), one_line(other.folder)))


def _of_devices(options: argparse.Namespace) -> int:
    """Run a scenario on two devices and compare the dumps. If both runs fail, return the first exit code."""
    if len(options.paths) != 1 or is_model(options.paths[0]):
        raise UsageError("--devices takes one scenario file", help=_HELP)
    if is_stream(options.paths[0]) and not os.path.isdir(options.paths[0]):
        raise UsageError(f"{options.paths[0]} can be read only once, expected a file", help="write it to a file")
    scenario = scenario_with(options.paths[0], dict(options.set))
    arguments = shared_arguments(options)
    kept = nullcontext(options.output) if options.output else temporary_folder()
    with kept as folder:
        dumps = [
            dump_on(device, scenario, os.path.join(folder, name), arguments)
            for device, name in zip(options.devices, ("first", "second"), strict=True)
        ]
        commands = max(dump.dumped.commands for dump in dumps)  # an early failure has none
        one, other = (dump.dumped._replace(commands=commands) for dump in dumps)
        code = _compare(options, one, other, (dumps[0].name, dumps[1].name), dumps)
    is_answer = any(dump.outcome.status == "Pass" for dump in dumps)
    return code if is_answer else dumps[0].outcome.exit_code


def _compare(
    options: argparse.Namespace,
    one: DumpIndex,
    other: DumpIndex,
    names: tuple[str, str],
    dumps: Sequence[DeviceDump] = (),
) -> int:
    """Compare two dumps and print the differences. Return 0 for equal dumps, else 1."""
    elements = dict(options.dtype)
    resources = {entry.resource for index in (one, other) for entry in index.entries if entry.format is None}
    for uid in elements:
        if uid is not None and uid not in resources:
            raise UsageError(f"--dtype {uid}=…: neither dump has a buffer {uid!r:.100}")
    pairs = scenarios(one, other)
    rule = Rule(options.atol, options.rtol, options.ulp, nan="equal")
    all_compared = list(compared(one, other, rule, elements))
    first = next((pair for pair in all_compared if not pair.difference.is_equal), None)
    is_equal = pairs.are_equal and first is None and all(dump.outcome.status == "Pass" for dump in dumps)
    if options.json:
        device_results = {"equal": is_equal, "devices": list(map(_dump_json, dumps))} if dumps else {}
        print(json.dumps({**_as_json(one, other, pairs, all_compared), **device_results}, indent=1))
    else:
        ends = [f"{dump.outcome.status}: {one_line(dump.outcome.reason)}" for dump in dumps] or ["the run failed"] * 2
        for index, name, end in zip((one, other), names, ends, strict=True):
            if not index.complete:
                print(f"{name} is not complete: {end}")
        _show_scenarios(names, pairs)
        _show_contents(names, pairs, all_compared, is_short=bool(dumps))
    if first is not None and (options.png or not options.json):
        show_errors(first.difference, first.contents(), options.png)
    return 0 if is_equal else 1


def _show_scenarios(names: tuple[str, str], pairs: Scenarios) -> None:
    """Print the differences between the scenarios."""
    if pairs.commands:
        print(f"the scenarios have different commands ({len(pairs.commands)}):")
        kinds = [(number, first or "none", second or "none") for number, first, second in pairs.commands]
        show_first(["  command {}: {} against {}".format(*row) for row in kinds], _MOST_SHOWN)
    for name, entries in zip(names, (pairs.only_one, pairs.only_other), strict=True):
        lines = [f"{_place(entry)}, {_name(entry, entry.mip)}" for entry in entries]
        show_first(lines, _MOST_SHOWN, f"only in {name}: ")


def _show_contents(
    names: tuple[str, str], pairs: Scenarios, all_compared: Sequence[Compared], *, is_short: bool
) -> None:
    """Print the first different content in detail, then a line for each. ``is_short`` leaves out file names."""
    both = " and ".join(names)
    different = [pair for pair in all_compared if not pair.difference.is_equal]
    count = counted(len(all_compared), "content")
    if different:
        first = different[0]
        print(f"{both} first differ {_place(first.entry)}, at {_name(first.entry, first.mip)}:")
        shown = ("the first", "the second") if is_short else (first.one, first.other)
        show_difference(first.difference, *shown, indent="  ")
        headings = ("command", "kind", "resource", "different", "elements", "absolute", "ULP")
        show_table([headings, *map(_row, different)])
        print(f"{count} compared: {len(all_compared) - len(different)} equal, {len(different)} different")
        return
    tolerated = sum(pair.difference.tolerated for pair in all_compared)
    within = f", {tolerated} elements within the tolerance" if tolerated else ""
    equal = "are equal" if pairs.are_equal else "are equal in what both have"
    print(f"{both} {equal}: {count} compared{within}")


def _row(compared: Compared) -> tuple[str, ...]:
    entry, difference = compared.entry, compared.difference
    command = "start" if entry.command is None else str(entry.command)
    command += "" if entry.segment is None else f" segment {entry.segment}"
    command += f" iteration {entry.iteration}" if entry.iteration else ""
    errors = (error_text(difference.errors.get(name)) for name in ("absolute", "ulp"))
    numbers = (str(difference.count), str(difference.total), *errors)
    if difference.mismatch is not None:
        numbers = ("cannot be compared", "-", "-", "-")
    return command, entry.command_kind or "-", _name(entry, compared.mip), *numbers


def _place(entry: DumpEntry) -> str:
    iteration = f" of iteration {entry.iteration}" if entry.iteration else ""
    if entry.command is None:
        return f"at the start{iteration}"
    segment = "" if entry.segment is None else f"segment {entry.segment} of "
    return f"after {segment}command {entry.command}{iteration} ({entry.pointer or entry.command_kind})"


def _name(entry: DumpEntry, mip: int | None) -> str:
    level = "" if mip is None else f" mip level {mip}"
    return f"{one_line(entry.resource)!r}{level}{'' if entry.aspect is None else f' {entry.aspect}'}"


def _as_json(one: DumpIndex, other: DumpIndex, pairs: Scenarios, all_compared: Sequence[Compared]) -> dict[str, object]:
    different = [
        {**_entry_json(pair.entry), "mip": pair.mip, **_difference_json(pair.difference)}
        for pair in all_compared
        if not pair.difference.is_equal
    ]
    return {
        "equal": pairs.are_equal and not different,
        "complete": [one.complete, other.complete],
        "compared": len(all_compared),
        "first": different[0] if different else None,
        "different": different,
        "commands": [dict(zip(("command", "first", "second"), command, strict=True)) for command in pairs.commands],
        "only_in_first": list(map(_entry_json, pairs.only_one)),
        "only_in_second": list(map(_entry_json, pairs.only_other)),
    }


def _dump_json(dump: DeviceDump) -> dict[str, object]:
    described = {key: getattr(dump.device, key) for key in ("choice", "name", "uuid", "driver")}
    return {**described, "status": dump.outcome.status, "reason": dump.outcome.reason}


def _entry_json(entry: DumpEntry) -> dict[str, object]:
    return {key: getattr(entry, key) for key in _KEYS}


def _difference_json(difference: Difference) -> dict[str, object]:
    described: dict[str, object] = {
        "different": difference.count,
        "tolerated": difference.tolerated,
        "elements": difference.total,
        "first_element": None,
        **dict.fromkeys(("absolute", "relative", "ulp")),
        "mismatch": difference.mismatch,
    }
    if difference.first is not None:
        index, one, other = difference.first
        described["first_element"] = {"index": index, "first": one, "second": other}
    for name, error in difference.errors.items():
        value = error.value if math.isfinite(error.value) else str(error.value)  # JSON has no infinity
        described[name] = {"value": value, "index": error.index}
    return described

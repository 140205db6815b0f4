"""``view --diff A B``: where two files, or the files of two folders, differ."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from scenario_runner.cli.viewed_file import check_picture, shown_content
from scenario_runner.errors import ScenarioRunnerError, UsageError
from scenario_runner.visible import counted, one_line

if TYPE_CHECKING:
    import argparse

    from scenario_runner.viewing.content import Content
    from scenario_runner.viewing.difference import Difference, Error

DIFFERENT_EXIT_CODE = 1


def show_difference(options: argparse.Namespace) -> int:
    """Returns 0 where nothing differs by more than the tolerance, else 1. Raises FileError and UsageError."""
    folders = [os.path.isdir(path) for path in options.diff]
    if all(folders):
        return _show_folders(options)
    if any(folders):
        raise UsageError(
            f"{options.diff[folders.index(True)]!r} is a folder and the other is not: compare like with like"
        )
    one, other = options.diff
    return _show_files(one, other, options)


def _show_folders(options: argparse.Namespace) -> int:
    """Compare the files of two folders by their names; a file that cannot be read does not keep others from it."""
    from scenario_runner.cli.messages import show_error
    from scenario_runner.viewing.folders import folder_pairs

    if options.png:
        raise UsageError("--png takes the errors of two files, not of folders")
    one, other = options.diff
    found = folder_pairs(one, other)
    error_code = differing = 0
    for name in found.both:
        try:
            differing += _show_files(os.path.join(one, name), os.path.join(other, name), options)
        except ScenarioRunnerError as error:
            show_error(error)
            error_code = error_code or error.exit_code
            differing += 1
    for folder, names in ((one, found.only_one), (other, found.only_other)):
        for name in names:
            print(f"only in {one_line(folder)}: {one_line(name)}")
    alone = len(found.only_one) + len(found.only_other)
    equal = len(found.both) - differing
    print(f"{len(found.both) + alone} files: {equal} equal, {differing} different, {alone} in one folder alone")
    return error_code or (DIFFERENT_EXIT_CODE if differing or alone else 0)


def _show_files(first: str, second: str, options: argparse.Namespace) -> int:
    from scenario_runner.cli.terminal_picture import color_console, draw
    from scenario_runner.viewing.difference import Tolerance, compare, error_map
    from scenario_runner.viewing.picture import heat, write_picture

    one, other = (shown_content(path, options) for path in (first, second))
    found = compare(one, other, Tolerance(options.atol, options.rtol, options.ulp))
    for line in report(found, one, other):
        print(line)
    console = None if found.is_equal else color_console()
    if (options.png or console is not None) and found.mismatch is None and found.total:
        if options.png:
            check_picture(one)
        greatest = options.range[1] if options.range else found.absolute.value if found.absolute else 1.0
        picture = heat(error_map(one, other), greatest if math.isfinite(greatest) else 1.0)
        if options.png:
            write_picture(options.png, picture)
        if console is not None:
            draw(console, picture, brightest=True)
    return 0 if found.is_equal else DIFFERENT_EXIT_CODE


def report(found: Difference, one: Content, other: Content) -> Iterator[str]:
    """What is printed of two files that were compared."""
    names = f"{one_line(one.path)} and {one_line(other.path)}"
    if found.mismatch is not None:
        yield f"{names} cannot be compared: {found.mismatch}"
        return
    if found.is_equal:
        tolerated = f", {found.tolerated} of them within the tolerance" if found.tolerated else ""
        yield f"{names} are equal: {counted(found.total, 'element')}{tolerated}"
    else:
        share = 100 * found.count / found.total
        tolerated = f", {found.tolerated} more within the tolerance" if found.tolerated else ""
        yield f"{names} differ: {found.count} of {counted(found.total, 'element')} ({share:.3g} %){tolerated}"
    if found.first is not None:
        index, first, second = found.first
        yield f"  first at       {list(index)}: {first} against {second}"
    for label, error in (("absolute error", found.absolute), ("relative error", found.relative), ("ULP", found.ulp)):
        if error is not None:
            yield f"  {label:14} {_number(error)} at {list(error.index)}"
    if found.psnr is not None:
        yield f"  PSNR           {found.psnr:.2f} dB"
    if any(found.nan_counts):
        only_one, only_other, both = found.nan_counts
        yield f"  NaN            {only_one} in the first alone, {only_other} in the second alone, {both} in both"
    if found.box is not None:
        top, left, bottom, right = found.box
        yield f"  within         rows {top} to {bottom}, columns {left} to {right}"


def _number(error: Error) -> str:
    return str(error.value) if isinstance(error.value, int) else f"{error.value:.9g}"

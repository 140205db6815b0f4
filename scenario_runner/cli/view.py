"""``scenario-runner view FILE…``: show an image or tensor in the terminal or as a PNG, or compare two of them."""

import argparse
import math
import os
import sys
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy

from scenario_runner.cli.console import show_error, show_table, terminal
from scenario_runner.compare.differences import Difference, Error, compare, error_map, folder_pairs
from scenario_runner.compare.wrong_elements import Rule
from scenario_runner.errors import ScenarioRunnerError, UsageError, file_error
from scenario_runner.errors.text import counted, one_line
from scenario_runner.files.elements import Array
from scenario_runner.view.contents import Channel, Content, corner, read_content, statistics_of
from scenario_runner.view.picture import heat_map, picture_of, shown_channels, shrink, value_range, write_picture

_TABLE_ROWS = 16
_TEXEL_CHANNELS = 4


def _content(path: str, options: argparse.Namespace) -> Content:
    content = read_content(path, mip=options.mip, element=options.dtype, shape=options.shape)
    return content if options.channel is None else content.select(options.channel)


def _color_console() -> object:
    """Return a rich console if standard output can show pictures, else None."""
    console = terminal(sys.stdout)
    return console if console and console.shows_pictures else None


def _output(picture: Array, path: str | None, console: Any, *, brightest: bool = False) -> None:
    """Write a picture to a PNG file, and draw it on a console.

    Each character is an upper half block with two texels: the upper texel is the text colour, the lower texel the
    background. ``brightest`` is the argument of `shrink`.
    """
    if path:
        write_picture(path, picture)
    if console is None:
        return
    width, height = max(console.width, 1), max(2 * (console.height - 4), 8)
    small = shrink(picture, width, height, brightest=brightest).tolist()
    colors = [[f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue, *_ in row] for row in small]
    for upper, lower in zip_longest(colors[::2], colors[1::2], fillvalue=()):
        console.show(*(("▀", f"{above} on {below}") for above, below in zip_longest(upper, lower, fillvalue="default")))


def _show_folders(options: argparse.Namespace) -> int:
    """Compare files with the same name in two folders. An unreadable file is an error, but the others are compared."""
    if options.png:
        raise UsageError("--png takes two files, not two folders")
    one, other = options.diff
    both, only_one, only_other = folder_pairs(one, other)
    error_code = differing = 0
    for name in both:
        try:
            differing += _show_files(os.path.join(one, name), os.path.join(other, name), options)
        except ScenarioRunnerError as error:
            show_error(error)
            error_code = error_code or error.exit_code
            differing += 1
    for folder, names in ((one, only_one), (other, only_other)):
        for name in names:
            print(f"only in {one_line(folder)}: {one_line(name)}")
    alone = len(only_one) + len(only_other)
    equal = len(both) - differing
    print(f"{len(both) + alone} files: {equal} equal, {differing} different, {alone} in one folder alone")
    return error_code or (1 if differing or alone else 0)


def _show_files(first: str, second: str, options: argparse.Namespace) -> int:
    one, other = (_content(path, options) for path in (first, second))
    difference = compare(one, other, Rule(options.atol, options.rtol, options.ulp, nan="equal"))
    show_difference(difference, first, second)
    show_errors(difference, (one, other), options.png, options.range)
    return 0 if difference.is_equal else 1


def show_errors(
    difference: Difference, contents: tuple[Content, Content], png: str | None, limits: Sequence[float] | None = None
) -> None:
    """Show a picture of the errors on a terminal with colours, and write it to a PNG file."""
    console = None if difference.is_equal else _color_console()
    if (png or console is not None) and difference.mismatch is None and difference.total:
        absolute = difference.errors.get("absolute")
        greatest = limits[1] if limits else absolute.value if absolute else 1.0
        picture = heat_map(error_map(*contents), greatest if math.isfinite(greatest) else 1.0)
        _output(picture, png, console, brightest=True)


def show_difference(difference: Difference, one: str, other: str, indent: str = "") -> None:
    """Print the difference between two files."""
    names = f"{indent}{one_line(one)} and {one_line(other)}"
    if difference.mismatch is not None:
        print(f"{names} cannot be compared: {difference.mismatch}")
        return
    count, total = difference.count, difference.total
    result = f"are equal: {counted(total, 'element')}"
    if count:
        result = f"differ: {count} of {counted(total, 'element')} ({100 * count / total:.3g} %)"
    if difference.tolerated:
        result += f", {difference.tolerated} {'more' if count else 'of them'} within the tolerance"
    print(f"{names} {result}")
    facts = {}
    if difference.first is not None:
        index, first, second = difference.first
        facts["first at"] = f"{list(index)}: {first} against {second}"
    for name, error in difference.errors.items():
        facts["ULP" if name == "ulp" else f"{name} error"] = f"{error_text(error)} at {list(error.index)}"
    if difference.psnr is not None:
        facts["PSNR"] = f"{difference.psnr:.2f} dB"
    if any(difference.nan_counts):
        facts["NaN"] = "{} in the first alone, {} in the second alone, {} in both".format(*difference.nan_counts)
    if difference.box is not None:
        facts["within"] = "rows {0} to {2}, columns {1} to {3}".format(*difference.box)
    for label, text in facts.items():
        print(f"{indent}  {label:14} {text}")


def error_text(error: Error | None) -> str:
    """Format an error, a dash for none."""
    if error is None:
        return "-"
    return str(error.value) if isinstance(error.value, int) else f"{error.value:.9g}"


def main(options: argparse.Namespace) -> int:
    """Show or compare files. Return 0, the first failed file's exit code, or with --diff 1 for different files."""
    _check(options)
    if options.diff:
        folders = [path for path in options.diff if os.path.isdir(path)]
        if len(folders) == 1:
            raise UsageError(f"{folders[0]!r} is a folder, the other is not: compare two files or two folders")
        one, other = options.diff
        return _show_folders(options) if folders else _show_files(one, other, options)

    code = 0
    for number, path in enumerate(options.files):
        if number:
            print()
        try:
            _show(_content(path, options), options)
        except ScenarioRunnerError as error:
            show_error(error)
            code = code or error.exit_code
    return code


def _check(options: argparse.Namespace) -> None:
    if bool(options.files) == bool(options.diff):
        raise UsageError("expected files to show, or --diff A B", help="scenario-runner view result.npy")
    if not options.diff and (options.atol or options.rtol or options.ulp):
        raise UsageError("--atol, --rtol and --ulp are for --diff", help="scenario-runner view --diff A B --rtol 1e-3")
    if options.png and len(options.files) > 1:
        raise UsageError("--png takes one file")
    if options.png and not options.png.lower().endswith(".png"):
        raise UsageError(f"--png {options.png!r}: expected a name that ends with .png")


def _show(content: Content, options: argparse.Namespace) -> None:
    print(f"{one_line(content.path)}: {content.title}")
    _show_statistics(content)
    console = _color_console()
    if console is None:
        _show_corner(content)
    is_empty = not math.prod(content.shape) or not content.channels
    if options.png and is_empty:
        raise file_error(content.path, "is empty, so it has no picture")
    if is_empty or not (options.png or console):
        return
    limits = options.range or value_range(content)
    picture = picture_of(content, limits)
    print(f"  black is {limits[0]:g}, white is {limits[1]:g}{_names(shown_channels(content), content)}")
    _output(picture, options.png, console)


def _names(shown: Sequence[Channel], content: Content) -> str:
    """Name the channels of a picture, or return "" for all channels."""
    if len(shown) == len(content.channels):
        return ""
    return f" of channel{'s' * (len(shown) > 1)} {', '.join(channel.name for channel in shown)}"


def _show_statistics(content: Content) -> None:
    rows: list[tuple[str, ...]] = [("channel", "min", "max", "mean", "NaN", "infinite")]
    for channel in content.channels[:_TABLE_ROWS]:
        least, greatest, mean, *others = statistics_of(channel)
        counts = map(str, others) if channel.element.is_float else ("-", "-")
        values = ("-", "-", "-") if mean is None else (str(least), str(greatest), f"{mean:.6g}")
        rows.append((channel.name, *values, *counts))
    show_table(rows)
    if len(content.channels) > _TABLE_ROWS:
        print(f"  … and {len(content.channels) - _TABLE_ROWS} more channels")


def _show_corner(content: Content) -> None:
    """Print the first rows' first texels, with commas between channels."""
    channels = content.channels if len(content.channels) <= _TEXEL_CHANNELS else shown_channels(content)
    if not channels:
        return
    corners = numpy.stack([corner(channel) for channel in channels], axis=-1)
    if not corners.size:
        return
    texts = [[",".join(f"{value:g}" for value in texel) for texel in row] for row in corners]
    print(f"  first values{_names(channels, content)}:")
    show_table(texts, right=range(corners.shape[1]), indent=4, heading="")

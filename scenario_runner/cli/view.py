"""``scenario-runner view FILE…``: an image or tensor in the terminal or as a PNG, and where two of them differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from scenario_runner.cli.arguments import Parser
from scenario_runner.errors import ScenarioRunnerError, UsageError
from scenario_runner.visible import one_line

if TYPE_CHECKING:
    import argparse

    from scenario_runner.viewing.content import Channel, Content
    from scenario_runner.viewing.difference import Difference, Error

DIFFERENT_EXIT_CODE = 1
# Values of these may begin with a minus sign, which argparse would take for an option.
_SIGNED = ("--range", "--shape")
_TABLE_ROWS = 16
_TEXEL_CHANNELS = 4
_PNG_SIDE = 65_535


def main(argv: Sequence[str]) -> int:
    """Returns 0, or the exit code of the first file that cannot be shown; with --diff 1 where the files differ."""
    options = _parse(argv)
    if options.diff:
        return _show_difference(options)
    from scenario_runner.cli.report import show_error

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


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="scenario-runner view",
        description="Show images and tensors (.dds, .png, .npy): in colour on a terminal, as numbers elsewhere. "
        "The exit code of --diff is 0 where the files are equal and 1 where they differ.",
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="image or tensor to show")
    parser.add_argument("--diff", nargs=2, metavar=("A", "B"), help="show where two files differ")
    parser.add_argument(
        "--png", metavar="OUT", help="write the picture to a PNG file; with --diff, the errors as colours"
    )
    parser.add_argument("--channel", metavar="C", help="show one channel: R, G, B, A, depth, stencil or a number")
    parser.add_argument("--range", metavar="MIN:MAX", type=_range, help="values for black and white")
    parser.add_argument("--mip", metavar="N", type=_level, default=0, help="mip level of a .dds file (default: 0)")
    parser.add_argument(
        "--dtype", metavar="TYPE", type=_element, help="what the bytes of a .npy file are, such as float32"
    )
    parser.add_argument("--shape", metavar="N,N,…", type=_shape, help="shape of a .npy file; one length may be -1")
    options = parser.parse_args(_joined(argv))
    if bool(options.files) == bool(options.diff):
        raise UsageError("expected files to show, or --diff A B", help="scenario-runner view result.npy")
    if options.png and len(options.files) > 1:
        raise UsageError("--png takes the picture of one file")
    if options.png and not options.png.lower().endswith(".png"):
        raise UsageError(f"--png {options.png!r}: expected a name that ends with .png")
    return options


def _joined(argv: Sequence[str]) -> list[str]:
    """``--range -1:1`` as ``--range=-1:1``."""
    found: list[str] = []
    for argument in argv:
        if found and found[-1] in _SIGNED and argument[:1] == "-" and argument[1:2].isdigit():
            found[-1] += f"={argument}"
        else:
            found.append(argument)
    return found


def _range(text: str) -> tuple[float, float]:
    import argparse

    least, _, greatest = text.partition(":")
    try:
        limits = float(least), float(greatest)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected two numbers, such as 0:1") from None
    if not (math.isfinite(limits[0]) and math.isfinite(limits[1]) and limits[0] < limits[1]):
        raise argparse.ArgumentTypeError(f"{text!r}: expected two finite numbers, the smaller one first")
    return limits


def _level(text: str) -> int:
    import argparse

    if not (text.isascii() and text.isdigit() and len(text) < 5):
        raise argparse.ArgumentTypeError(f"{text!r}: expected the number of a mip level, from 0 on")
    return int(text)


def _element(text: str) -> Any:
    import argparse

    from scenario_runner.viewing.element import ELEMENTS

    found = ELEMENTS.get(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected one of {', '.join(ELEMENTS)}")
    return found


def _shape(text: str) -> tuple[int, ...]:
    import argparse

    try:
        shape = tuple(int(part) for part in text.replace("x", ",").split(",")) if len(text) < 200 else ()
    except ValueError:
        shape = ()
    if not shape or min(shape) < -1 or shape.count(-1) > 1 or len(shape) > 32 or math.prod(map(abs, shape)) >= 1 << 60:
        raise argparse.ArgumentTypeError(f"{text!r}: expected lengths such as 16,16, of which one may be -1")
    return shape


def _content(path: str, options: argparse.Namespace) -> Content:
    from scenario_runner.viewing.content import read_content

    content = read_content(path, mip=options.mip, element=options.dtype, shape=options.shape)
    return content if options.channel is None else content.select(options.channel)


def _show(content: Content, options: argparse.Namespace) -> None:
    from scenario_runner.cli.terminal_picture import color_console, draw
    from scenario_runner.viewing.picture import picture_of, shown_channels, value_range

    print(f"{one_line(content.path)}: {content.title}")
    for line in _table(content):
        print(line)
    console = color_console()
    if console is None:
        for line in _corner(content):
            print(line)
    if options.png:
        _check_picture(content)
    elif console is None or not math.prod(content.shape) or not content.channels:
        return
    limits = options.range or value_range(content)
    picture = picture_of(content, limits)
    print(f"  black is {limits[0]:g}, white is {limits[1]:g}{_names(shown_channels(content), content)}")
    if options.png:
        _write_png(options.png, picture)
    if console is not None:
        draw(console, picture)


def _names(shown: Sequence[Channel], content: Content) -> str:
    """Which channels a picture shows, where it does not show all."""
    if len(shown) == len(content.channels):
        return ""
    return f" of channel{'s' * (len(shown) > 1)} {', '.join(channel.name for channel in shown)}"


def _check_picture(content: Content) -> None:
    from scenario_runner.files.source import file_error

    if not math.prod(content.shape) or not content.channels:
        raise file_error(content.path, "is empty: there is no picture of it")
    sides = content.shape[-1] if content.shape else 1, math.prod(content.shape[:-1])
    if max(sides) > _PNG_SIDE:
        raise file_error(
            content.path,
            f"makes a picture of {sides[0]}x{sides[1]}, expected at most {_PNG_SIDE} each way",
            help="give it another shape: --shape",
        )


def _write_png(path: str, picture: Any) -> None:
    from scenario_runner.files.png import write_png
    from scenario_runner.formats import format_named

    height, width, count = picture.shape
    format = format_named("VK_FORMAT_R8G8B8_UNORM" if count == 3 else "VK_FORMAT_R8G8B8A8_UNORM")
    write_png(path, format, width, height, picture.tobytes())


def _table(content: Content) -> Iterator[str]:
    from scenario_runner.viewing.statistics import statistics_of

    rows: list[tuple[str, ...]] = [("channel", "min", "max", "mean", "NaN", "infinite")]
    for channel in content.channels[:_TABLE_ROWS]:
        found = statistics_of(channel)
        rows.append(
            (
                channel.name,
                *("-" if value is None else str(value) for value in (found.least, found.greatest)),
                "-" if found.mean is None else f"{found.mean:.6g}",
                str(found.nan_count) if channel.element.is_float else "-",
                str(found.infinite_count) if channel.element.is_float else "-",
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
    if len(content.channels) > _TABLE_ROWS:
        yield f"  … and {len(content.channels) - _TABLE_ROWS} more channels"


def _corner(content: Content) -> Iterator[str]:
    """The first texels of the first rows, their channels with commas between them."""
    from scenario_runner.viewing.picture import shown_channels
    from scenario_runner.viewing.statistics import corner

    channels = content.channels if len(content.channels) <= _TEXEL_CHANNELS else shown_channels(content)
    if not channels:
        return
    corners = [corner(channel) for channel in channels]
    rows, columns = corners[0].shape
    if not rows or not columns:
        return
    texts = [
        [",".join(f"{part[row, column]:g}" for part in corners) for column in range(columns)] for row in range(rows)
    ]
    widths = [max(len(row[column]) for row in texts) for column in range(columns)]
    yield f"  first values{_names(channels, content)}:"
    for row_texts in texts:
        yield "    " + "  ".join(text.rjust(width) for text, width in zip(row_texts, widths, strict=True))


def _show_difference(options: argparse.Namespace) -> int:
    from scenario_runner.cli.terminal_picture import color_console, draw
    from scenario_runner.viewing.difference import compare, error_map
    from scenario_runner.viewing.picture import heat

    one, other = (_content(path, options) for path in options.diff)
    found = compare(one, other)
    for line in _report(found, one, other):
        print(line)
    console = None if found.is_equal else color_console()
    if (options.png or console is not None) and found.mismatch is None and found.total:
        if options.png:
            _check_picture(one)
        greatest = options.range[1] if options.range else found.absolute.value if found.absolute else 1.0
        picture = heat(error_map(one, other), greatest if math.isfinite(greatest) else 1.0)
        if options.png:
            _write_png(options.png, picture)
        if console is not None:
            draw(console, picture)
    return 0 if found.is_equal else DIFFERENT_EXIT_CODE


def _report(found: Difference, one: Content, other: Content) -> Iterator[str]:
    names = f"{one_line(one.path)} and {one_line(other.path)}"
    if found.mismatch is not None:
        yield f"{names} cannot be compared: {found.mismatch}"
        return
    if found.is_equal:
        yield f"{names} are equal: {_count(found.total)}"
    else:
        share = 100 * found.count / found.total
        yield f"{names} differ: {found.count} of {_count(found.total)} ({share:.3g} %)"
    if found.first is not None:
        index, first, second = found.first
        yield f"  first at       {list(index)}: {first} against {second}"
    for label, error in (("absolute error", found.absolute), ("relative error", found.relative), ("ULP", found.ulp)):
        if error is not None:
            yield f"  {label:14} {_number(error)} at {list(error.index)}"
    if any(found.nan_counts):
        only_one, only_other, both = found.nan_counts
        yield f"  NaN            {only_one} in the first alone, {only_other} in the second alone, {both} in both"
    if found.box is not None:
        top, left, bottom, right = found.box
        yield f"  within         rows {top} to {bottom}, columns {left} to {right}"


def _number(error: Error) -> str:
    return str(error.value) if isinstance(error.value, int) else f"{error.value:.9g}"


def _count(number: int) -> str:
    return f"{number} element{'' if number == 1 else 's'}"

"""``scenario-runner view FILE…``: an image or tensor in the terminal or as a PNG, and where two of them differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from scenario_runner.cli.arguments import Parser
from scenario_runner.cli.tolerance_options import add_tolerance_options, element
from scenario_runner.cli.viewed_file import check_picture, shown_content
from scenario_runner.errors import ScenarioRunnerError, UsageError
from scenario_runner.visible import one_line

if TYPE_CHECKING:
    import argparse

    from scenario_runner.viewing.content import Channel, Content

# Values of these may begin with a minus sign, which argparse would take for an option.
_SIGNED = ("--range", "--shape")
_TABLE_ROWS = 16
_TEXEL_CHANNELS = 4


def main(argv: Sequence[str]) -> int:
    """Returns 0, or the exit code of the first file that cannot be shown; with --diff 1 where the files differ."""
    options = _parse(argv)
    if options.diff:
        from scenario_runner.cli.view_difference import show_difference

        return show_difference(options)
    from scenario_runner.cli.messages import show_error

    code = 0
    for number, path in enumerate(options.files):
        if number:
            print()
        try:
            _show(shown_content(path, options), options)
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
    parser.add_argument("--diff", nargs=2, metavar=("A", "B"), help="compare two files, or the files of two folders")
    add_tolerance_options(parser, "with --diff: ")
    parser.add_argument(
        "--png", metavar="OUT", help="write the picture to a PNG file; with --diff, the errors as colours"
    )
    parser.add_argument("--channel", metavar="C", help="show one channel: R, G, B, A, depth, stencil or a number")
    parser.add_argument("--range", metavar="MIN:MAX", type=_range, help="values shown as black and white")
    parser.add_argument("--mip", metavar="N", type=_level, default=0, help="mip level of a .dds file (default: 0)")
    parser.add_argument(
        "--dtype", metavar="TYPE", type=element, help="type of the bytes of a .npy file, such as float32"
    )
    parser.add_argument("--shape", metavar="N,N,…", type=_shape, help="shape of a .npy file; one length may be -1")
    options = parser.parse_args(_joined(argv))
    if bool(options.files) == bool(options.diff):
        raise UsageError("expected files to show, or --diff A B", help="scenario-runner view result.npy")
    if not options.diff and (options.atol or options.rtol or options.ulp):
        raise UsageError("--atol, --rtol and --ulp are for --diff", help="scenario-runner view --diff A B --rtol 1e-3")
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


def _shape(text: str) -> tuple[int, ...]:
    import argparse

    try:
        shape = tuple(int(part) for part in text.replace("x", ",").split(",")) if len(text) < 200 else ()
    except ValueError:
        shape = ()
    if not shape or min(shape) < -1 or shape.count(-1) > 1 or len(shape) > 32 or math.prod(map(abs, shape)) >= 1 << 60:
        raise argparse.ArgumentTypeError(f"{text!r}: expected lengths such as 16,16, of which one may be -1")
    return shape


def _show(content: Content, options: argparse.Namespace) -> None:
    from scenario_runner.cli.terminal_picture import color_console, draw
    from scenario_runner.viewing.picture import picture_of, shown_channels, value_range, write_picture

    print(f"{one_line(content.path)}: {content.title}")
    for line in _table(content):
        print(line)
    console = color_console()
    if console is None:
        for line in _corner(content):
            print(line)
    if options.png:
        check_picture(content)
    elif console is None or not math.prod(content.shape) or not content.channels:
        return
    limits = options.range or value_range(content)
    picture = picture_of(content, limits)
    print(f"  black is {limits[0]:g}, white is {limits[1]:g}{_names(shown_channels(content), content)}")
    if options.png:
        write_picture(options.png, picture)
    if console is not None:
        draw(console, picture)


def _names(shown: Sequence[Channel], content: Content) -> str:
    """Which channels a picture shows, where it does not show all."""
    if len(shown) == len(content.channels):
        return ""
    return f" of channel{'s' * (len(shown) > 1)} {', '.join(channel.name for channel in shown)}"


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

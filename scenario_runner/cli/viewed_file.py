"""What every way of viewing does with a file: reading it as the options say, and writing its picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from scenario_runner.viewing.content import Content

_PNG_SIDE = 65_535


def shown_content(path: str, options: argparse.Namespace) -> Content:
    from scenario_runner.viewing.reading import read_content

    content = read_content(path, mip=options.mip, element=options.dtype, shape=options.shape)
    return content if options.channel is None else content.select(options.channel)


def check_picture(content: Content) -> None:
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

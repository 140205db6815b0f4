"""Options of the commands that compare files: which errors are accepted, and what bytes mean."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scenario_runner.viewing.element import Element


def add_tolerance_options(parser: argparse.ArgumentParser, when: str = "") -> None:
    """--atol, --rtol and --ulp, which have effect ``when``."""
    parser.add_argument("--atol", metavar="X", type=_error, default=0.0, help=f"{when}absolute errors to accept")
    parser.add_argument("--rtol", metavar="X", type=_error, default=0.0, help=f"{when}relative errors to accept")
    parser.add_argument("--ulp", metavar="N", type=_steps, default=0, help=f"{when}errors in ULP to accept")


def _error(text: str) -> float:
    try:
        limit = float(text)
    except ValueError:
        limit = math.nan
    if not 0 <= limit < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of 0 or more, such as 1e-3")
    return limit


def _steps(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number of 0 or more")
    return int(text)


def element(text: str) -> Element:
    """The kind of number of this name."""
    from scenario_runner.viewing.element import ELEMENTS

    found = ELEMENTS.get(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected one of {', '.join(ELEMENTS)}")
    return found

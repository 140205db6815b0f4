"""A picture drawn in the characters of a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from scenario_runner.cli.messages import is_terminal, rich_console


def color_console() -> Any:
    """A rich console on standard output, where that can show colours; None where a picture would show nothing."""
    if not is_terminal(sys.stdout):
        return None
    console = rich_console(sys.stdout)
    return None if console.no_color or console.color_system is None else console


def draw(console: Any, picture: Any, *, brightest: bool = False) -> None:
    """Two texels in each character: the upper half block in the colour of the upper one, on that of the lower one.

    ``brightest`` is as for `shrunk`.
    """
    from rich.style import Style
    from rich.text import Text

    from scenario_runner.viewing.picture import shrunk

    has_blocks = console.encoding.lower().startswith("utf")
    width, height = max(console.width, 1), max(2 * (console.height - 4), 8)
    small = shrunk(picture, width, height, brightest=brightest).tolist()
    step = 2 if has_blocks else 1
    for row in range(0, len(small), step):
        line = Text(no_wrap=True)
        lower = small[row + 1] if has_blocks and row + 1 < len(small) else None
        for column, upper in enumerate(small[row]):
            color = _color(upper)
            if not has_blocks:
                line.append(" ", Style(bgcolor=color))
            else:
                line.append("▀", Style(color=color, bgcolor=_color(lower[column]) if lower else None))
        console.print(line, soft_wrap=True)


def _color(texel: Sequence[int]) -> str:
    return f"#{texel[0]:02x}{texel[1]:02x}{texel[2]:02x}"

"""What ``bench`` prints: a table with a plot of each row; by rich on a terminal, plain text elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from scenario_runner.cli.messages import is_terminal, rich_console
from scenario_runner.timing.samples import Row, ScenarioSamples, Summary, summary
from scenario_runner.visible import counted, one_line

_PLOT_COLUMNS = 30
_LEAST_PLOT_COLUMNS = 8
_TIMES_COLUMNS = 48  # three times and a spread, with the space between them
_MOST_NAME_COLUMNS = 40
_MOST_DISPATCHES = 20
_HEADINGS = ("", "min", "median", "p95", "spread", "")


def show(samples: ScenarioSamples) -> None:
    """Print what one scenario took."""
    print(f"{one_line(samples.scenario)}: {counted(samples.count, 'run')} on {samples.device}")
    if samples.why_none is not None:
        print(f"  {samples.why_none}")
    dispatches = [row for row in samples.rows if row.kind == "device"]
    if dispatches:
        note = ""
        shown = dispatches
        if len(dispatches) > _MOST_DISPATCHES + 1:  # and the row of them all
            slowest = sorted(dispatches[:-1], key=lambda row: summary(row.samples).median)[-_MOST_DISPATCHES:]
            kept = {id(row) for row in slowest}
            shown = [row for row in dispatches[:-1] if id(row) in kept] + dispatches[-1:]
            note = f", the slowest {_MOST_DISPATCHES} of {len(dispatches) - 1}"
        _table(f"on the device{note}", shown)
    _table("on the host", [row for row in samples.rows if row.kind == "host"])
    if samples.once:
        once = ", ".join(f"{phase} {duration(value)}" for phase, value in samples.once.items() if value)
        print(f"once: {once}")


def _table(title: str, rows: Sequence[Row]) -> None:
    found = [summary(row.samples) for row in rows]
    # the last row is the sum of the others: it has a scale of its own
    greatest = max((each.p95 for each in found[:-1]), default=found[-1].p95)
    unicode = is_terminal(sys.stdout)
    names = [one_line(row.name if row.command is None else f"{row.command} {row.name}") for row in rows]
    columns = _plot_columns([title, *names]) if unicode else _PLOT_COLUMNS
    lines = []
    for name, row, each in zip(names, rows, found, strict=True):
        scale = greatest if row is not rows[-1] else each.p95
        times = (duration(each.min), duration(each.median), duration(each.p95), f"{each.spread_percent:.1f} %")
        lines.append((name, *times, plot(each, scale, columns, unicode=unicode)))
    print_table((title, *_HEADINGS[1:]), lines)


def _plot_columns(names: Sequence[str]) -> int:
    """How many columns of the terminal are left for plots beside names and times."""
    import shutil

    wanted = min(max(map(len, names)), _MOST_NAME_COLUMNS)
    left = shutil.get_terminal_size().columns - wanted - _TIMES_COLUMNS
    return min(max(left, _LEAST_PLOT_COLUMNS), _PLOT_COLUMNS)


def plot(each: Summary, greatest: float, columns: int = _PLOT_COLUMNS, *, unicode: bool = False) -> str:
    """A line from the least to the 95th percentile with a mark at the median; ``greatest`` is at the right end."""
    line, mark = ("━", "●") if unicode else ("-", "*")
    last = columns - 1
    left, middle, right = (
        min(round(last * value / greatest), last) if greatest > 0 else 0 for value in (each.min, each.median, each.p95)
    )
    middle = min(max(middle, left), right)
    return (" " * left + line * (middle - left) + mark + line * (right - middle)).ljust(columns)


def duration(nanoseconds: float) -> str:
    """A time with a unit that leaves one to three digits before the point."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(nanoseconds) >= size:
            return f"{nanoseconds / size:.3f} {unit}"
    return f"{nanoseconds:.0f} ns"


def print_table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """A table by rich on a terminal, aligned columns elsewhere. The first column is text, the last one a plot."""
    if is_terminal(sys.stdout):
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
        for number, heading in enumerate(headings):
            table.add_column(heading, justify="left" if number in (0, len(headings) - 1) else "right", no_wrap=True)
        for line in lines:
            table.add_row(*map(Text, line[:-1]), Text(line[-1], "cyan"))
        rich_console(sys.stdout).print(table)
        return
    everything = [tuple(headings), *map(tuple, lines)]
    widths = [max(map(len, column)) for column in zip(*everything, strict=True)]
    for line in everything:
        cells = [
            cell.ljust(width) if number in (0, len(line) - 1) else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  " + "  ".join(cells).rstrip())

"""The commands of AmberScript: runs, clears, copies and expectations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from scenario_runner.errors import UnsupportedError
from scenario_runner.errors.text import Json
from scenario_runner.importers.script import (
    CLEAR_VALUES,
    RAY_TRACING,
    TOPOLOGIES,
    Clear,
    Copy,
    Dispatch,
    Draw,
    Pipeline,
    SameContent,
    Script,
    Texels,
    Values,
)
from scenario_runner.importers.statements import Lines, Statement, Tolerance

UNSUPPORTED: Final = {
    "ACCELERATION_STRUCTURE": RAY_TRACING,
    "BLEND": "blending",
    "CLEAR_STENCIL": "stencil tests",
    "COMPILE_OPTIONS": "OpenCL C shaders",
    "PATCH_CONTROL_POINTS": "tessellation shaders",
    "SHADER_OPTIMIZATION": "optimization passes of spirv-opt",
    "STENCIL": "stencil tests",
}
"""Commands for features that scenarios lack."""
_METRICS: Final = {"RMSE_BUFFER": ("rmse", 1.0), "EQ_HISTOGRAM_EMD_BUFFER": ("histogram_emd", 256 / 255)}
"""Metrics of comparisons, each with a factor: Amber divides by 256 bins, scenarios by 255."""
_COMPARATORS: Final = ("EQ", "NE", "LT", "LE", "GT", "GE")
_MOST_TOLERANCES: Final = 4
_MOST_OF_CHANNEL: Final = 255
_MOST_LEVELS: Final = 16  # of repetitions
_MOST_COMMANDS: Final = 10_000
_MOST_CELLS: Final = 1_000_000
_FIRST: Final = {"START_IDX": "first_vertex", "START_INSTANCE": "first_instance"}
"""Numbers of a draw that are 0 by default, with the keys in scenarios."""


class CommandParser:
    """The parser of commands. ``table`` has a function for each command; it adds the command to a script."""

    def __init__(self, script: Script, lines: Lines) -> None:
        self._script, self._lines = script, lines
        self._depth = 0  # the number of open repetitions
        self._clear: dict[str, tuple[list[float], float]] = {}
        self.table: dict[str, Callable[[Statement], None]] = {
            "CLEAR": self._clear_attachments,
            "CLEAR_COLOR": self._clear_color,
            "CLEAR_DEPTH": self._clear_depth,
            "COPY": self._copy,
            "EXPECT": self._expect,
            "REPEAT": self._repeat,
            "RUN": self._run,
        }

    def _repeat(self, row: Statement) -> None:
        count = row.integer("the number of repetitions", 1)
        start = len(self._script.commands)
        self._depth += 1
        if self._depth > _MOST_LEVELS:
            raise row.wrong(f"more than {_MOST_LEVELS} repetitions are nested")
        for command in self._lines.block(row):
            command.run(self.table, UNSUPPORTED)
        self._depth -= 1
        repeated = self._script.commands[start:]
        if count * len(repeated) > _MOST_COMMANDS:
            raise UnsupportedError(f"more than {_MOST_COMMANDS} repeated commands")
        self._script.commands += repeated * (count - 1)

    def _run(self, row: Statement) -> None:
        row.has("TIMED_EXECUTION")
        pipeline = self._script.pipeline(row)
        if pipeline.is_compute:
            self._script.commands.append(Dispatch(pipeline, row.integers(3, "a number of workgroups")))
            return
        kind = row.expect("DRAW_RECT", "DRAW_GRID", "DRAW_ARRAY")
        if kind == "DRAW_ARRAY":
            self._draw_array(row, pipeline)
            return
        if len(pipeline.vertex_data) > (kind == "DRAW_RECT"):
            raise row.wrong(f"{kind} draws no vertex data, and {pipeline.name!r} has vertex data")
        row.expect("POS")
        x, y = row.number("x"), row.number("y")
        row.expect("SIZE")
        rect = x, y, row.number("the width"), row.number("the height")
        if kind == "DRAW_RECT":
            draw = Draw(pipeline, {"topology": "TRIANGLE_STRIP"}, vertices=rectangle(rect, pipeline.size))
        else:
            row.expect("CELLS")
            cells = row.integer("the number of columns", 1), row.integer("the number of rows", 1)
            if cells[0] * cells[1] > _MOST_CELLS:
                raise UnsupportedError(f"grids of more than {_MOST_CELLS} cells")
            draw = Draw(pipeline, {"topology": "TRIANGLE_LIST"}, vertices=_grid(rect, pipeline.size, cells))
        self._script.commands.append(draw)

    def _draw_array(self, row: Statement, pipeline: Pipeline) -> None:
        row.expect("AS")
        topology = row.word("the topology")
        if topology not in TOPOLOGIES:
            if topology.startswith("PATCH_LIST") or topology.removesuffix("_WITH_ADJACENCY") in TOPOLOGIES:
                raise UnsupportedError(f"the topology {topology}")
            raise row.wrong(f"unknown topology {topology!r}")
        number = partial(row.integer, "a number")
        keywords: dict[str, Callable[[], int]] = {"INDEXED": lambda: True}
        keywords |= dict.fromkeys(("START_IDX", "COUNT", "START_INSTANCE", "INSTANCE_COUNT"), number)
        numbers = row.options(keywords)
        is_indexed, first = "INDEXED" in numbers, numbers.get("START_IDX", 0)
        if not pipeline.vertex_data or (is_indexed and not pipeline.indices):
            raise row.wrong(f"{pipeline.name!r} has no {'indices' if pipeline.vertex_data else 'vertex data'}")
        source = self._script.buffers[pipeline.indices if is_indexed else pipeline.vertex_data[0].buffer]
        count = numbers.get("COUNT") or source.count - first
        if first + count > source.count:
            raise row.wrong(f"{source.name!r} has {source.count} elements, but the draw reads {first + count}")
        keys: dict[str, Json] = {"topology": topology, "vertex_count": count}
        keys |= {key: numbers[keyword] for keyword, key in _FIRST.items() if numbers.get(keyword)}
        if numbers.get("INSTANCE_COUNT", 1) != 1:
            keys["instance_count"] = numbers["INSTANCE_COUNT"]
        self._script.commands.append(Draw(pipeline, keys, is_indexed))

    def _clear_color(self, row: Statement) -> None:
        name = self._script.pipeline(row).name
        self._clear[name] = _color(row, 4), self._clear.get(name, CLEAR_VALUES)[1]

    def _clear_depth(self, row: Statement) -> None:
        name = self._script.pipeline(row).name
        self._clear[name] = self._clear.get(name, CLEAR_VALUES)[0], row.number("the depth")

    def _clear_attachments(self, row: Statement) -> None:
        pipeline = self._script.pipeline(row)
        self._script.commands.append(Clear(pipeline, *self._clear.get(pipeline.name, CLEAR_VALUES)))

    def _copy(self, row: Statement) -> None:
        source = self._script.buffer_name(row)
        row.expect("TO")
        self._script.commands.append(Copy(source, self._script.buffer_name(row)))

    def _expect(self, row: Statement) -> None:
        name = self._script.buffer_name(row)
        keyword = row.expect("IDX", "EQ_BUFFER", *_METRICS)
        if keyword == "IDX":
            start = row.integer("the index")
            is_of_values = row.peek() in ("TOLERANCE", *_COMPARATORS)
            read = self._values if is_of_values else self._texels
            self._script.commands.append(read(row, name, start))
            return
        other, metric = self._script.buffer_name(row), None
        if keyword in _METRICS:
            row.expect("TOLERANCE")
            metric = _METRICS[keyword][0], row.number("the tolerance") * _METRICS[keyword][1]
        self._script.commands.append(SameContent(name, other, metric))

    def _texels(self, row: Statement, name: str, x: int) -> Texels:
        y = row.integer("y")
        row.expect("SIZE")
        rect = x, y, row.integer("the width"), row.integer("the height")
        color = _color(row, len(row.expect("EQ_RGB", "EQ_RGBA")) - len("EQ_"))
        return Texels(name, rect, color, self._tolerances(row), 1 / _MOST_OF_CHANNEL, row.line)

    def _values(self, row: Statement, name: str, offset: int) -> Values:
        tolerances = self._tolerances(row)
        if row.expect(*_COMPARATORS) != "EQ":
            raise UnsupportedError("comparisons other than equality")
        element = self._script.buffers[name].element
        values = row.values(row.rest(), element)
        row.check_offset(offset, element)
        return Values(name, offset, values, element, tolerances[0] if tolerances else None, row.line)

    def _tolerances(self, row: Statement) -> list[Tolerance]:
        if not row.has("TOLERANCE"):
            return []
        tolerances = []
        while row.peek() and row.peek() not in _COMPARATORS:
            word = row.word("a tolerance")
            tolerances.append(row.as_tolerance(f"{word}%" if row.has("%") else word))
        if not 1 <= len(tolerances) <= _MOST_TOLERANCES:
            raise row.wrong(f"there are {len(tolerances)} tolerances, expected 1 to {_MOST_TOLERANCES}")
        return tolerances


def _color(row: Statement, count: int) -> list[float]:
    """Read channels from 0 to 255 as numbers from 0 to 1."""
    channels = row.integers(count, "a channel")
    if max(channels) > _MOST_OF_CHANNEL:
        raise row.wrong(f"a channel must be from 0 to {_MOST_OF_CHANNEL}, not {max(channels)}")
    return [channel / _MOST_OF_CHANNEL for channel in channels]


def rectangle(rect: tuple[float, float, float, float], size: tuple[int, int]) -> tuple[float, ...]:
    """Return a rectangle in texels as a triangle strip: bottom left, top left, bottom right, top right."""
    left, top, right, bottom = _corners(rect, size)
    return left, bottom, left, top, right, bottom, right, top


def _corners(rect: tuple[float, float, float, float], size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of a rectangle in texels, from -1 to 1."""
    x, y, width, height = rect
    return 2 * x / size[0] - 1, 2 * y / size[1] - 1, 2 * (x + width) / size[0] - 1, 2 * (y + height) / size[1] - 1


def _grid(rect: tuple[float, float, float, float], size: tuple[int, int], cells: tuple[int, int]) -> tuple[float, ...]:
    """Return the corners of two triangles for each cell of a rectangle, row by row."""
    x, y = rect[0], rect[1]
    width, height = rect[2] / cells[0], rect[3] / cells[1]
    vertices: list[float] = []
    for row in range(cells[1]):
        for column in range(cells[0]):
            left, top, right, bottom = _corners((x + column * width, y + row * height, width, height), size)
            vertices += (right, bottom, left, bottom, left, top, right, bottom, left, top, right, top)
    return tuple(vertices)

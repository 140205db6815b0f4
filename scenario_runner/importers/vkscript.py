"""The parser of VkScript, the older language of Amber. A script has sections: requirements, shaders, data and a test.

A script has a single pipeline. Buffers are named by their descriptor set and binding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import copy
from typing import Final

from scenario_runner.errors import UnsupportedError
from scenario_runner.errors.text import Json
from scenario_runner.files.vk_formats import find_format
from scenario_runner.importers.amber_commands import UNSUPPORTED, rectangle
from scenario_runner.importers.memory_layouts import Element, Layout, of_format, of_numbers
from scenario_runner.importers.script import (
    CLEAR_VALUES,
    COMPARE_OPS,
    DEPTH_BUFFER,
    DEPTH_TEST,
    FRAMEBUFFER,
    POLYGON_MODES,
    TOPOLOGIES,
    UNSUPPORTED_STAGES,
    Attached,
    Bound,
    Buffer,
    Clear,
    Copy,
    Dispatch,
    Draw,
    Pipeline,
    Script,
    Shader,
    Texels,
    Values,
    VertexData,
    module_of,
    passthrough,
)
from scenario_runner.importers.statements import MOST_BYTES, Lines, Statement, Tolerance

_HEADER: Final = re.compile(r"\[([^\]]+)\]\s*(?:#.*)?")
_SHADER: Final = re.compile(
    r"(vertex|fragment|compute|geometry|tessellation control|tessellation evaluation) shader"
    r"( passthrough| spirv hex| spirv)?"
)
_TYPE: Final = re.compile(
    r"(?:(u?int)(8|16|32|64)_t|(int|uint|float|double)|([iud]?)(8|16|64)?(vec|mat)([234]?)(?:x([234]))?)"
)
_SCALARS: Final = {"int": "int32", "uint": "uint32", "float": "float32", "double": "float64"}
_VECTORS: Final = {"": "float32", "i": "int32", "u": "uint32", "d": "float64"}
_GL_TYPES: Final = _SCALARS | {
    "byte": "int8",
    "short": "int16",
    "ubyte": "uint8",
    "ushort": "uint16",
    "half": "float16",
}
_MOST_COMPONENTS: Final = 4
_GL_TOPOLOGIES: Final = {"GL_POINTS": "POINT_LIST", "GL_LINES": "LINE_LIST", "GL_TRIANGLES": "TRIANGLE_LIST"}
_SETTING: Final = re.compile(
    r"(?:front|back)\.\w+|(?:primitive|raster|logic|blend|stencil|depthB|min|max|src|dst|color|alpha)[A-Z]?\w+"
    r"|frontFace|cullMode|lineWidth|topology|patch"
)
"""Settings of the pipeline that scenarios lack; only "false" is possible."""
_DEPTH_SETTINGS: Final = {"depthTestEnable": "test", "depthWriteEnable": "write", "depthClampEnable": "clamp"}


def parse_vkscript(path: str, text: str) -> Script:
    """Parse a script. Raises FileError for a syntax error, and UnsupportedError if scenarios lack a feature."""
    return _Parser(path, text).script


def data_type(name: str, layout: Layout = "std430") -> Element | None:
    """Return the layout of a type such as uint, int16_t, vec4, u8vec2 or mat3x2; None for an unknown name."""
    match = _TYPE.fullmatch(name)
    if match is None:
        return None
    integer, integer_bits, scalar, letter, bits, kind, size, rows = match.groups()
    if integer or scalar:
        return of_numbers(f"{integer}{integer_bits}" if integer else _SCALARS[scalar], 1, 1, layout)
    dtype = _VECTORS[letter] if not bits else f"{'u' if letter == 'u' else ''}int{bits}"
    count = int(size or 4)
    if kind == "vec":
        return of_numbers(dtype, count, 1, layout)
    return of_numbers(dtype, int(rows or count), count, layout)


class _Parser:
    def __init__(self, path: str, text: str) -> None:
        self.script = Script(path)
        self._pipeline = Pipeline("pipeline", "graphics")
        self._elements: dict[str, Element] = {}
        self._data: dict[str, bytearray] = {}
        self._counts: dict[str, int] = {}
        self._constants = bytearray()
        self._depth: dict[str, Json] = {"test": False, **DEPTH_TEST}
        self._clear: tuple[list[float], float] = CLEAR_VALUES
        self._tolerances: list[Tolerance] = []
        self.script.add_image(FRAMEBUFFER)
        for name, lines in _sections(path, text):
            self._section(name, lines)
        self.script.buffers[FRAMEBUFFER].size = self._pipeline.size
        for name, data in self._data.items():
            element = self._elements.get(name) or of_numbers("int8", 1, 1, "std430")
            count = min(self._counts.get(name, 0), MOST_BYTES // element.size_bytes)
            if data:
                self.script.add_buffer(name, element, bytes(data).ljust(count * element.size_bytes, b"\0"))
            else:
                self.script.buffers[name] = Buffer(name, element, count=count)

    def _section(self, name: str, lines: Lines) -> None:
        shader = _SHADER.fullmatch(name)
        sections = {
            "indices": self._indices,
            "require": self._require,
            "test": self._test,
            "vertex data": self._vertex_data,
        }
        if shader is not None:
            self._shader(shader[1].replace(" ", "_"), (shader[2] or "").strip(), lines)
        elif name in sections:
            sections[name](lines)
        elif name != "comment":
            raise Statement(self.script.path, lines.first_line - 1, []).wrong(f"unknown section {name!r}")

    def _shader(self, stage: str, language: str, lines: Lines) -> None:
        if stage in UNSUPPORTED_STAGES:
            raise UnsupportedError(UNSUPPORTED_STAGES[stage])
        name = f"{stage}_shader"
        if language == "passthrough":
            shader = passthrough(name)
        elif language == "spirv hex":
            code = b"".join(module_of(row, row.rest()) for row in lines.statements)
            shader = Shader(name, stage, "SPIRV", code)
        else:
            shader = Shader(name, stage, "SPIRV-ASM" if language else "GLSL", lines.text)
        self._pipeline.shaders[stage] = Attached(shader)
        if stage == "compute":
            self._pipeline.kind = "compute"

    def _require(self, lines: Lines) -> None:
        for row in lines.statements:
            word = row.word("a requirement")
            if word == "fbsize":
                self._pipeline.size = row.integer("the width", 1), row.integer("the height", 1)
            elif word in (FRAMEBUFFER, "depthstencil"):
                format = row.word("the format")
                if find_format(f"VK_FORMAT_{format}") is None:
                    raise row.wrong(f"unknown format {format!r}")
                name = FRAMEBUFFER if word == FRAMEBUFFER else DEPTH_BUFFER
                self.script.add_image(name, format)
                if word != FRAMEBUFFER:
                    self._pipeline.depth = name
            elif word == "fence_timeout":
                row.integer("the time limit")
            elif word.startswith("VK_"):
                self.script.extensions.add(word)
            elif re.fullmatch(r"[\w.]+", word):
                self.script.features.add(word.rpartition(".")[2])
            else:
                raise row.wrong(f"unknown requirement {word!r}")
            row.end()

    def _vertex_data(self, lines: Lines) -> None:
        header = next(lines.statements, None)
        if header is None:
            return
        elements: list[Element] = []
        for word in header.rest():
            location, _, type = word.partition("/")
            element = _vertex_type(type)
            if element is None or element.format is None:
                raise header.wrong(f"unknown vertex attribute {word!r}")
            elements.append(element)
            buffer = f"vertices_{location}"
            keys = {"format": element.format.name, "stride": element.size_bytes}
            self._pipeline.vertex_data.append(VertexData(header.as_count(location, "the location"), buffer, keys))
        columns: list[list[float]] = [[] for _ in elements]
        for row in lines.statements:
            for element, column in zip(elements, columns, strict=True):
                words = [row.word("a value") for _ in element.numbers]
                column += row.values(words, element)
            row.end()
        for data, element, column in zip(self._pipeline.vertex_data, elements, columns, strict=True):
            self.script.add_buffer(data.buffer, element, element.pack(column).tobytes())

    def _indices(self, lines: Lines) -> None:
        element = of_numbers("uint32", 1, 1, "std430")
        values = [row.as_integer(word, "an index") for row in lines.statements for word in row.rest()]
        self.script.add_buffer("indices", element, element.pack(values).tobytes())
        self._pipeline.indices = "indices"

    def _test(self, lines: Lines) -> None:
        table: dict[str, Callable[[Statement], object]] = {
            "clear": self._clear_command,
            "compute": self._compute,
            "draw": self._draw,
            "fragment": lambda row: self._entry_point(row, "fragment"),
            "probe": self._probe,
            "relative": self._relative_probe,
            "ssbo": self._ssbo,
            "tolerance": self._tolerance,
            "uniform": self._uniform,
            "vertex": lambda row: self._entry_point(row, "vertex"),
            "depthCompareOp": lambda row: self._set_depth("compare_op", row.suffix("VK_COMPARE_OP_", COMPARE_OPS)),
            "polygonMode": lambda row: self._change(
                state={"polygon_mode": row.suffix("VK_POLYGON_MODE_", POLYGON_MODES)}
            ),
        }
        for row in lines.statements:
            name = row.peek()
            if name in _DEPTH_SETTINGS:
                row.word("a setting")
                self._set_depth(_DEPTH_SETTINGS[name], row.expect("true", "false") == "true")
            elif not _SETTING.fullmatch(name):
                row.run(table, UNSUPPORTED)
            elif row.rest()[1:] != ["false"]:
                raise UnsupportedError("settings of VkScript for blending, stencil tests, culling or tessellation")

    def _change(self, **fields: object) -> None:
        """Change the pipeline for later commands."""
        self._pipeline = copy(self._pipeline)
        for name, value in fields.items():
            setattr(self._pipeline, name, value)

    def _set_depth(self, key: str, value: Json) -> None:
        self._depth = {**self._depth, key: value}
        keys = {name: value for name, value in self._depth.items() if name != "test"}
        self._change(depth_test=keys if self._depth["test"] else None)

    def _entry_point(self, row: Statement, stage: str) -> None:
        row.expect("entrypoint")
        if stage not in self._pipeline.shaders:
            raise row.wrong(f"there is no {stage} shader")
        attached = self._pipeline.shaders[stage]._replace(entry=row.word("the entry point"))
        self._change(shaders=self._pipeline.shaders | {stage: attached})

    def _compute(self, row: Statement) -> None:
        if row.peek() == "entrypoint":
            self._entry_point(row, "compute")
        else:
            self.script.commands.append(Dispatch(self._pipeline, row.integers(3, "a number of workgroups")))

    def _clear_command(self, row: Statement) -> None:
        color, depth = self._clear
        if not row.peek():
            self.script.commands.append(Clear(self._pipeline, color, depth))
        elif row.has("color"):
            self._clear = [row.number("a channel") for _ in range(4)], depth
        elif row.has("depth"):
            self._clear = color, row.number("the depth")
        else:
            row.expect("color", "depth", "stencil")
            raise UnsupportedError("stencil tests")

    def _draw(self, row: Statement) -> None:
        if row.expect("rect", "arrays") == "arrays":
            self._draw_arrays(row)
            return
        if len(self._pipeline.vertex_data) > 1:
            raise row.wrong("draw rect draws no vertex data, and the script has vertex data")
        is_ortho = False
        while row.peek() in ("ortho", "patch"):
            if row.has("patch"):
                raise UnsupportedError("tessellation shaders")
            is_ortho = row.has("ortho")
        x, y, width, height = [row.number("a coordinate") for _ in range(4)]
        size = self._pipeline.size
        # without "ortho", the coordinates are from -1 to 1, as for a framebuffer of 2 x 2 texels
        rect = (x, y, width, height) if is_ortho else (x + 1, y + 1, width, height)
        vertices = rectangle(rect, size if is_ortho else (2, 2))
        self.script.commands.append(Draw(self._pipeline, {"topology": "TRIANGLE_STRIP"}, vertices=vertices))

    def _draw_arrays(self, row: Statement) -> None:
        words = set()
        while row.peek() in ("indexed", "instanced"):
            words.add(row.word("a word"))
        if "indexed" in words and not self._pipeline.indices:
            raise row.wrong("the script has no indices")
        topology = row.word("the topology")
        topology = _GL_TOPOLOGIES.get(topology, topology).removeprefix("GL_")
        if topology not in TOPOLOGIES:
            raise UnsupportedError(f"the topology {topology}")
        first, count = row.integer("the first vertex"), row.integer("the number of vertices")
        keys = {"topology": topology, "vertex_count": count} | ({"first_vertex": first} if first else {})
        if "instanced" in words and row.peek():
            keys["instance_count"] = row.integer("the number of instances")
        self.script.commands.append(Draw(self._pipeline, keys, "indexed" in words))

    def _tolerance(self, row: Statement) -> None:
        words = [word for word in row.rest() if word != ","]
        self._tolerances = [row.as_tolerance(word) for word in words]
        if len(words) not in (1, 4):
            raise row.wrong(f"there are {len(words)} tolerances, expected 1 or 4")

    def _binding(self, row: Statement, kind: str) -> str:
        """Read a binding, and return the name of the buffer there."""
        word = row.word("the binding")
        set, _, binding = word.rpartition(":")
        place = row.as_count(set or "0", "the descriptor set"), row.as_count(binding, "the binding")
        name = "buffer_{}_{}".format(*place)
        if name not in self._data:
            self._data[name] = bytearray()
            self._pipeline.bindings.append(Bound(kind, [name], set=place[0], binding=place[1]))
        return name

    def _type(self, row: Statement, layout: Layout = "std430") -> Element:
        name = row.word("the type")
        element = data_type(name, layout)
        if element is None:
            raise row.wrong(f"unknown type {name!r}")
        return element

    def _values(self, row: Statement, element: Element, data: bytearray) -> tuple[int, bytes]:
        """Read an offset and values, and make room for them in the data."""
        offset = row.integer("the offset")
        row.check_offset(offset, element)
        packed = row.packed(row.rest(), element).tobytes()
        data.extend(bytes(max(0, offset + len(packed) - len(data))))
        return offset, packed

    def _ssbo(self, row: Statement) -> None:
        name = self._binding(row, "storage")
        if row.has("subdata"):
            self._set_data(row, name, self._type(row))
        else:
            self._counts[name] = row.integer("the size")

    def _uniform(self, row: Statement) -> None:
        if row.has("ubo"):
            name = self._binding(row, "uniform")
            self._set_data(row, name, self._type(row, "std140"))
            return
        element = self._type(row)
        offset, packed = self._values(row, element, self._constants)
        self._constants[offset : offset + len(packed)] = packed
        name = f"push_constants_{len(self.script.buffers)}"
        self.script.add_buffer(name, element, bytes(self._constants))
        self._change(push_constants=name)

    def _set_data(self, row: Statement, name: str, element: Element) -> None:
        self._elements.setdefault(name, element)
        data = self._data[name]
        offset, packed = self._values(row, element, data)
        if not self.script.commands:
            data[offset : offset + len(packed)] = packed
            return
        source = f"{name}_data_{len(self.script.buffers)}"
        self.script.add_buffer(source, element, packed)
        self.script.commands.append(Copy(source, name, offset))

    def _relative_probe(self, row: Statement) -> None:
        row.expect("probe")
        self._probe(row, is_relative=True)

    def _probe(self, row: Statement, *, is_relative: bool = False) -> None:
        if row.has("ssbo"):
            self._probe_ssbo(row)
            return
        kind = row.word("the kind") if row.peek() in ("rect", "all") else ""
        count = len(row.expect("rgb", "rgba"))
        numbers = [row.as_number(word, "a number") for word in row.rest() if word not in ("(", ")", ",")]
        size = self._pipeline.size
        expected = {"rect": 4, "all": 0}.get(kind, 2) + count
        if len(numbers) != expected:
            raise row.wrong(f"there are {len(numbers)} numbers, expected {expected}")
        area, color = numbers[:-count], numbers[-count:]
        if is_relative:
            area = [number * size[index % 2] for index, number in enumerate(area)]
        if min(area, default=0) < 0:
            raise row.wrong(f"a rectangle begins at {min(area):g}, outside of the framebuffer")
        whole = [int(number) for number in area] if kind != "all" else [0, 0, *size]
        x, y, width, height = whole if len(whole) == 4 else [*whole, 1, 1]
        self.script.commands.append(Texels(FRAMEBUFFER, (x, y, width, height), color, self._tolerances, 1.0, row.line))

    def _probe_ssbo(self, row: Statement) -> None:
        element = self._type(row)
        name = self._binding(row, "storage")
        self._elements.setdefault(name, element)
        offset = row.integer("the offset")
        comparator = row.expect("==", "!=", "<", ">", "<=", ">=", "~=")
        if comparator not in ("==", "~="):
            raise UnsupportedError("comparisons other than equality")
        values = row.values(row.rest(), element)
        tolerance = self._tolerances[0] if self._tolerances and comparator == "~=" else None
        self.script.commands.append(Values(name, offset, values, element, tolerance, row.line))


def _sections(path: str, text: str) -> Iterator[tuple[str, Lines]]:
    """Yield the name and the lines of each section."""
    lines = text.splitlines()
    starts = [index for index, line in enumerate(lines) if _HEADER.fullmatch(line.strip())]
    before = [index for index, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")]
    if not starts or before[0] < starts[0]:
        line_number = before[0] + 1 if before else 1
        raise Statement(path, line_number, []).wrong("expected a section such as [test], or #!amber in the first line")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        match = _HEADER.fullmatch(lines[start].strip())
        assert match is not None
        yield match[1].strip(), Lines(path, "\n".join(lines[start + 1 : end]) + "\n", start + 2)


def _vertex_type(name: str) -> Element | None:
    """Return the layout of a format, or of a GL type and a GLSL type: float/vec3."""
    gl_type, _, type = name.partition("/")
    element = data_type(type)
    if gl_type in _GL_TYPES and element is not None and len(element.numbers) <= _MOST_COMPONENTS:
        format = of_numbers(_GL_TYPES[gl_type], len(element.numbers), 1, "std430").format
    else:
        format = find_format(f"VK_FORMAT_{name}")
    return of_format(format) if format else None

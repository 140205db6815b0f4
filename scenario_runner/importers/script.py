"""A parsed script of Amber, the common form of AmberScript and VkScript.

::

    AmberScript ─▶ amber_script ─┐
                                 ├─▶ Script ─▶ script_items ─▶ scenario.json, check.json
    VkScript ────▶ vkscript ─────┘

An expectation is about the content of a buffer at that time, and becomes rules of check.json. If a later command writes
the buffer, a frame ends before the command, and the rules are about the captured frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy

from scenario_runner.errors import UnsupportedError
from scenario_runner.errors.text import Json
from scenario_runner.files.vk_formats import format_named
from scenario_runner.importers.item_folders import JsonObject, file_error
from scenario_runner.importers.memory_layouts import Bytes, Element, Number, as_json, of_format
from scenario_runner.importers.statements import Statement, Tolerance

FRAMEBUFFER: Final = "framebuffer"
"""The image that pipelines without a colour attachment draw into."""
DEPTH_BUFFER: Final = "depth_buffer"
"""The depth image of pipelines that test depths and name none."""
TOPOLOGIES: Final = ("POINT_LIST", "LINE_LIST", "LINE_STRIP", "TRIANGLE_LIST", "TRIANGLE_STRIP", "TRIANGLE_FAN")
COMPARE_OPS: Final = ("NEVER", "LESS", "EQUAL", "LESS_OR_EQUAL", "GREATER", "NOT_EQUAL", "GREATER_OR_EQUAL", "ALWAYS")
POLYGON_MODES: Final = ("FILL", "LINE", "POINT")
DEPTH_TEST: Final = {"write": False, "compare_op": "ALWAYS"}
"""The depth test of a pipeline that only turns the test on."""
CLEAR_VALUES: Final = ([0.0, 0.0, 0.0, 0.0], 1.0)
"""The colour and the depth of attachments that a script clears without values."""
RAY_TRACING: Final = "ray tracing pipelines"
_RAY_TRACING_STAGES: Final = ("ray_generation", "any_hit", "closest_hit", "miss", "intersection", "callable")
UNSUPPORTED_STAGES: Final = {
    "geometry": "geometry shaders",
    "tessellation_control": "tessellation shaders",
    "tessellation_evaluation": "tessellation shaders",
    **dict.fromkeys(_RAY_TRACING_STAGES, RAY_TRACING),
}
"""Shader stages that scenarios lack, with the reason."""
_PASSTHROUGH: Final = """\
#version 450
layout(location = 0) in vec4 position;
void main() { gl_Position = position; }
"""
_WORD: Final = 0xFFFFFFFF


@dataclass
class Shader:
    """A shader. ``text`` is the source, assembly (``language`` "SPIRV-ASM") or a module ("SPIRV")."""

    name: str
    stage: str
    language: str
    text: str | bytes
    target_env: str = ""
    path: str = ""


@dataclass
class Buffer:
    """A buffer or an image. A size of 0 x 0 means the size of the pipeline that draws into it."""

    name: str
    element: Element
    data: Bytes | None = None
    count: int = 0
    size: tuple[int, int] = (0, 0)
    mips: int = 1
    is_image: bool = False
    picture: bytes = b""
    """A PNG file with the content."""


class Attached(NamedTuple):
    """A shader of a pipeline; specialization constants are pairs of id and value."""

    shader: Shader
    entry: str = "main"
    constants: tuple[tuple[int, Number], ...] = ()


class Bound(NamedTuple):
    """A descriptor, or an array of descriptors. An offset and a size belong to each name; -1 is the whole size."""

    kind: str
    names: list[str]
    is_array: bool = False
    samplers: Sequence[str] = ()
    set: int = 0
    binding: int = 0
    lod: int | None = None
    offsets: Sequence[int] = ()
    sizes: Sequence[int] = ()

    @property
    def is_image(self) -> bool:
        """True if the names are images, with or without samplers."""
        return self.kind in ("storage_image", "sampled_image", "combined_image_sampler")

    @property
    def is_texel_buffer(self) -> bool:
        """True if the shader reads or writes the buffers as texels."""
        return self.kind.endswith("texel_buffer")


class VertexData(NamedTuple):
    """A vertex attribute. ``keys`` has the format, stride, offset and rate as in a scenario."""

    location: int
    buffer: str
    keys: dict[str, Json]


@dataclass
class Pipeline:
    """A pipeline with everything that is bound to it."""

    name: str
    kind: str
    shaders: dict[str, Attached] = field(default_factory=dict)
    size: tuple[int, int] = (250, 250)
    bindings: list[Bound] = field(default_factory=list)
    colors: dict[int, tuple[str, int]] = field(default_factory=dict)
    depth: str = ""
    push_constants: str = ""
    vertex_data: list[VertexData] = field(default_factory=list)
    indices: str = ""
    depth_test: dict[str, Json] | None = None
    state: dict[str, Json] = field(default_factory=dict)
    """Keys of draws: viewport and polygon_mode."""
    full_subgroups: set[str] = field(default_factory=set)

    @property
    def is_compute(self) -> bool:
        """True if the pipeline dispatches; else it draws."""
        return self.kind == "compute"

    @property
    def targets(self) -> list[tuple[str, int]]:
        """The names and levels of all attachments."""
        return [*self.colors.values(), *([(self.depth, 0)] if self.depth else ())]


class Dispatch(NamedTuple):
    """Run a compute pipeline."""

    pipeline: Pipeline
    groups: list[int]


class Draw(NamedTuple):
    """Run a graphics pipeline. ``vertices`` are positions at location 0; otherwise the vertex data is drawn."""

    pipeline: Pipeline
    keys: dict[str, Json]
    indexed: bool = False
    vertices: tuple[float, ...] = ()


class Clear(NamedTuple):
    """Fill the attachments of a pipeline."""

    pipeline: Pipeline
    color: list[float]
    depth: float


class Copy(NamedTuple):
    """Copy the content of a buffer, to an offset in bytes."""

    source: str
    target: str
    offset: int = 0


class Values(NamedTuple):
    """Expect values in a buffer, from an offset in bytes on."""

    buffer: str
    offset: int
    values: list[Number]
    element: Element
    tolerance: Tolerance | None = None
    line: int = 0


class Texels(NamedTuple):
    """Expect a colour in a rectangle of an image; without alpha it has three values."""

    buffer: str
    rect: tuple[int, int, int, int]
    color: list[float]
    tolerances: list[Tolerance]
    scale: float
    """The unit of the tolerances: 1/255 in AmberScript."""
    line: int = 0


class SameContent(NamedTuple):
    """Expect the content of another buffer, or a similar content by a metric."""

    buffer: str
    other: str
    metric: tuple[str, float] | None = None


Command = Dispatch | Draw | Clear | Copy | Values | Texels | SameContent


@dataclass
class Script:
    """A script. ``samplers`` have the keys of images."""

    path: str
    shaders: dict[str, Shader] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    samplers: dict[str, dict[str, Json]] = field(default_factory=dict)
    pipelines: dict[str, Pipeline] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)
    virtual_files: dict[str, str] = field(default_factory=dict)
    sources: list[bytes] = field(default_factory=list)
    """The content of all files that the script names."""
    features: set[str] = field(default_factory=set)
    extensions: set[str] = field(default_factory=set)

    def add_buffer(self, name: str, element: Element, data: bytes) -> None:
        """Add a buffer with content."""
        content = numpy.frombuffer(data, numpy.uint8)
        self.buffers[name] = Buffer(name, element, content, len(data) // element.size_bytes)

    def add_image(self, name: str, format: str = "B8G8R8A8_UNORM") -> None:
        """Add an image for pipelines without such an attachment."""
        self.buffers[name] = Buffer(name, of_format(format_named(f"VK_FORMAT_{format}")), is_image=True)

    def buffer_name(self, row: Statement) -> str:
        """Read the name of a buffer, or the name of the default framebuffer."""
        if row.peek() == FRAMEBUFFER and FRAMEBUFFER not in self.buffers:
            self.add_image(FRAMEBUFFER)
        return row.known(self.buffers, "buffer")

    def pipeline(self, row: Statement) -> Pipeline:
        """Read the name of a pipeline."""
        return self.pipelines[row.known(self.pipelines, "pipeline")]


def module_of(row: Statement, words: list[str]) -> bytes:
    """Convert hexadecimal words to a SPIR-V module."""
    return numpy.array([row.as_integer(word, "a word of the module") & _WORD for word in words], "<u4").tobytes()


def passthrough(name: str) -> Shader:
    """Make the vertex shader that copies the position at location 0."""
    return Shader(name, "vertex", "GLSL", _PASSTHROUGH)


_EXACT_RTOL: Final = 1e-8
"""Amber's tolerance for equal floats, 1e-6 percent."""
_TEXEL_TOLERANCE: Final = Tolerance(0.002, is_percent=False)
_ROUNDING: Final = 1e-6
_NOTE: Final = "Amber does not divide TOLERANCE by 255, and accepts larger errors"
"""The note of rules with such a tolerance."""


@dataclass
class _Snapshot:
    """The content of a buffer at some time. ``output`` is the name in check.json, which the end of a frame changes."""

    output: str
    rules: list[tuple[_Snapshot | None, JsonObject]] = field(default_factory=list)
    """Rules, some about the same content as another snapshot."""


class Expectations:
    """The expectations of a script. ``buffers`` are all buffers with an expectation."""

    def __init__(self, script: Script, images: Set[str]) -> None:
        self.buffers: set[str] = set()
        self._script, self._images = script, images
        self._snapshots: list[_Snapshot] = []
        self._current: dict[str, _Snapshot] = {}
        self._frames = 0

    @property
    def final(self) -> Set[str]:
        """The names of buffers with an expectation since the last write."""
        return self._current.keys()

    def end_frame(self, names: Iterable[str]) -> int:
        """Bind expectations about some buffers to a frame, and return the number of the frame."""
        for name in names:
            self._current.pop(name).output = f"frame_{self._frames}/{name}"
        self._frames += 1
        return self._frames - 1

    def outputs(self) -> dict[str, list[JsonObject]]:
        """Return the rules by output."""
        outputs: dict[str, list[JsonObject]] = {}
        for snapshot in self._snapshots:
            rules = [({"equals": other.output} if other else {}) | keys for other, keys in snapshot.rules]
            outputs[snapshot.output] = rules or [{"unchecked": True}]
        return outputs

    def add(self, row: Values | Texels | SameContent) -> None:
        """Add an expectation. Raises FileError and UnsupportedError."""
        snapshot, buffer = self._snapshot(row.buffer), self._script.buffers[row.buffer]
        is_image = row.buffer in self._images
        if isinstance(row, SameContent):
            keys: JsonObject = {"metrics": {row.metric[0]: {"max": row.metric[1]}}} if row.metric else {}
            if row.metric and not is_image:
                keys["dtype"] = buffer.element.dtype or "uint8"
            snapshot.rules.append((self._snapshot(row.other), keys))
            return
        if isinstance(row, Texels):
            rules = self._texel_rules(row, buffer, is_image)
        else:
            rules = self._row_rules(row, buffer) if is_image else self._value_rules(row, buffer)
        snapshot.rules += [(None, rule) for rule in rules]

    def _snapshot(self, name: str) -> _Snapshot:
        if name not in self._current:
            self._current[name] = _Snapshot(name)
            self._snapshots.append(self._current[name])
            self.buffers.add(name)
        return self._current[name]

    def _value_rules(self, row: Values, buffer: Buffer) -> list[JsonObject]:
        """Return a rule for each run of numbers with one type."""
        last = row.offset + (len(row.values) - 1) // len(row.element.numbers) * row.element.size_bytes
        if last >= buffer.count * buffer.element.size_bytes:
            raise file_error(self._script.path, f"{buffer.name!r} ends before the values", line=row.line)
        return [
            {"at": at, "values": as_json(values, dtype), "dtype": dtype} | _limits(row.tolerance, dtype)
            for at, dtype, values in row.element.runs(row.offset, row.values)
        ]

    def _row_rules(self, row: Values, buffer: Buffer) -> list[JsonObject]:
        """Return a rule for each row of texels with values."""
        width, count, dtype = buffer.size[0], len(row.element.numbers), row.element.numbers[0][1]
        if width == 0:
            raise file_error(self._script.path, f"the image {buffer.name!r} has no size", line=row.line)
        keys = _limits(row.tolerance, dtype)
        if buffer.element.format is not None and "D" in buffer.element.format.channels:
            keys["channels"] = "D"
        first = row.offset // row.element.size_bytes
        texels = [as_json(row.values[start : start + count], dtype) for start in range(0, len(row.values), count)]
        if first + len(texels) > width * buffer.size[1]:
            raise file_error(self._script.path, f"{buffer.name!r} ends before the values", line=row.line)
        rules: list[JsonObject] = []
        while texels:
            x, y = first % width, first // width
            part = texels[: width - x]
            rules.append({"rect": [x, y, len(part), 1], "values": [part]} | keys)
            first, texels = first + len(part), texels[len(part) :]
        return rules

    def _texel_rules(self, row: Texels, buffer: Buffer, is_image: bool) -> list[JsonObject]:
        """Return a rule for each group of channels with the same tolerance."""
        x, y, width, height = row.rect
        format = buffer.element.format
        if not is_image or format is None:
            raise UnsupportedError("rectangles in buffers")
        if x + width > buffer.size[0] or y + height > buffer.size[1]:
            size = " x ".join(map(str, buffer.size))
            raise file_error(self._script.path, f"the rectangle ends outside of the {size} texels", line=row.line)
        tolerances = row.tolerances or [_TEXEL_TOLERANCE]
        tolerances = tolerances if len(tolerances) == len("RGBA") else tolerances[:1] * len("RGBA")
        groups: dict[Tolerance, dict[str, float]] = {}
        for channel, tolerance, value in zip("RGBA", tolerances, row.color, strict=False):
            if channel in format.channels:
                groups.setdefault(tolerance, {})[channel] = value
        rules: list[JsonObject] = []
        for tolerance, color in groups.items():
            values: list[Json] = [*color.values()]
            if format.is_integer:
                if any(tolerance.of(value) < abs(value - round(value)) for value in color.values()):
                    raise UnsupportedError("fractions of integers in an image")
                values = [round(value) for value in color.values()]
            is_scaled = row.scale != 1 and not tolerance.is_percent and bool(row.tolerances)
            note = {"note": _NOTE} if is_scaled and tolerance.value else {}
            if is_scaled:
                tolerance = Tolerance(tolerance.value * row.scale + _ROUNDING, is_percent=False)
            rule: JsonObject = {"rect": list(row.rect), "channels": "".join(color)}
            rule |= {"normalized": True} if format.is_normalized else {}
            rule |= {"values": values} | _limits(tolerance, "")
            rules.append(rule | note)
        return rules


def _limits(tolerance: Tolerance | None, dtype: str) -> JsonObject:
    """Return the tolerance of numbers as keys of a rule."""
    if tolerance is None:
        return {"rtol": _EXACT_RTOL} if dtype.startswith("float") else {}
    return {"rtol": tolerance.value / 100} if tolerance.is_percent else {"atol": tolerance.value}

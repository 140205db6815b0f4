"""A parsed script of Amber, the common form of AmberScript and VkScript.

::

    AmberScript ─▶ amber_script ─┐
                                 ├─▶ Script ─▶ script_items ─▶ scenario.json, check.json
    VkScript ────▶ vkscript ─────┘
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy

from scenario_runner.errors.text import Json
from scenario_runner.files.vk_formats import format_named
from scenario_runner.importers.memory_layouts import Bytes, Element, Number, of_format
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

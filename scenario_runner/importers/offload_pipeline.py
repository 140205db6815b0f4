"""The YAML of a test in LLVM's offload-test-suite: shaders, buffers, descriptors and expected results.

Source: include/Support/Pipeline.h of github.com/llvm/offload-test-suite.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Final, Literal, Self, TypeAlias, TypeVar

import numpy
import yaml
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_pascal

from scenario_runner.errors import error_of
from scenario_runner.errors.diagnostic import escape
from scenario_runner.errors.text import Json
from scenario_runner.importers.item_folders import CODE, file_error
from scenario_runner.scenario.entries import wrong
from scenario_runner.scenario.json_model import ModelBase, findings

_MOST_BYTES: Final = 1 << 20
_MOST_CONTENT: Final = 1 << 26
_MOST_LEVELS: Final = 32
_LOADER: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
TYPES: Final = {
    "Hex8": "u1", "Hex16": "u2", "Hex32": "u4", "Hex64": "u8", "UInt16": "u2", "UInt32": "u4", "UInt64": "u8",
    "Int16": "i2", "Int32": "i4", "Int64": "i8", "Bool": "u4", "Float16": "f2", "Float32": "f4", "Float64": "f8",
    "Depth32": "f4",
}  # fmt: skip
DataFormat: TypeAlias = Literal[tuple(TYPES)]  # type: ignore[valid-type]


def _integer(value: object) -> int:
    try:
        return int(str(value), 0)
    except ValueError:
        raise wrong("expected an integer") from None


_Integer = Annotated[int, BeforeValidator(_integer)]
_Count = Annotated[int, BeforeValidator(_integer), Field(ge=0, le=1 << 30)]
_Offset = Annotated[int, BeforeValidator(_integer), Field(ge=0, le=1 << 16)]
_Tolerance = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Channels = Annotated[int, BeforeValidator(_integer), Field(ge=1, le=4)]
_Item = TypeVar("_Item")
_List = Annotated[tuple[_Item, ...], BeforeValidator(lambda value: () if value == "" else value)]


class _Part(ModelBase):
    """A mapping of the file. Scalars are texts, and an empty text stands for an empty list."""

    model_config = ConfigDict(strict=False, alias_generator=to_pascal)


class VulkanBinding(_Part):
    """The binding number of a resource, and of the hidden counter of a structured buffer."""

    binding: _Count
    counter_binding: _Count | None = None


class BoundResource(_Part):
    """A buffer or sampler in a descriptor set."""

    name: str
    resource_kind: str = Field(alias="Kind")
    has_counter: bool = False
    vulkan_binding: VulkanBinding | None = None
    direct_x_binding: object = None
    heap_index: object = None
    tiles_mapped: object = None
    is_reserved: bool = False

    @property
    def is_written(self) -> bool:
        """True if the shader can write the resource."""
        return self.resource_kind.startswith("RW")

    @property
    def is_texture(self) -> bool:
        """True for an image with or without a sampler."""
        return self.resource_kind.endswith("Texture2D")


class DescriptorSet(_Part):
    """The resources of a descriptor set."""

    resources: _List[BoundResource] = ()


class Extent(_Part):
    """The size of a buffer that is used as an image."""

    height: _Count
    width: _Count
    depth: _Count
    mip_levels: Annotated[_Count, Field(le=31)] = 1


class DataBuffer(_Part):
    """A buffer, an array of buffers, or expected content."""

    name: Annotated[str, Field(min_length=1)]
    format: DataFormat
    channels: _Channels = 1
    stride: _Integer = 0
    array_size: Annotated[_Count, Field(ge=1, le=1 << 16)] = 1
    fill_size: Annotated[_Count, Field(le=_MOST_CONTENT)] = 0
    fill_value: str = "0"
    data: _List[str | tuple[str, ...]] = ()
    output_props: Extent | None = None

    @model_validator(mode="after")
    def _has_numbers(self) -> Self:
        try:
            rows = self.rows()
        except (ValueError, OverflowError) as error:
            raise wrong(f"the numbers are wrong: {error}") from None
        if len(rows) != self.array_size or len({row.nbytes for row in rows}) > 1:
            raise wrong(f"expected {self.array_size} rows of the same size, got {len(rows)} rows")
        if self.array_size * rows[0].nbytes > _MOST_CONTENT:
            raise wrong(f"{self.array_size} times {rows[0].nbytes} bytes are too much for a test")
        return self

    def rows(self) -> list[numpy.ndarray]:
        """Return the content of each element of the array."""
        if self.fill_size:
            element = numbers([self.fill_value], self.format)
            count = -(-self.fill_size // element.nbytes)
            return [numpy.full(count, element[0])] * self.array_size
        if self.array_size == 1:
            return [numbers([text for text in self.data if isinstance(text, str)], self.format)]
        return [numbers(row, self.format) for row in self.data if isinstance(row, tuple)]


class VertexAttribute(_Part):
    """An attribute of the vertex buffer."""

    name: str
    format: DataFormat
    channels: _Channels
    offset: _Offset

    @property
    def size_bytes(self) -> int:
        """The size of the attribute."""
        return int(self.channels * numpy.dtype(TYPES[self.format]).itemsize)


class Bindings(_Part):
    """Vertices and the render target of a draw."""

    vertex_buffer: str = ""
    vertex_attributes: _List[VertexAttribute] = ()
    render_target: str = ""
    topology: str = "TriangleList"
    patch_control_points: object = None


class SpecializationConstant(_Part):
    """The value of a specialization constant."""

    id: _Count = Field(alias="ConstantID")
    type: DataFormat
    value: str


class Shader(_Part):
    """A stage of the pipeline."""

    stage: str
    entry: str
    specialization_constants: _List[SpecializationConstant] = ()


class PushConstant(_Part):
    """Numbers at an offset of the push constants."""

    format: DataFormat
    offset: _Offset
    data: _List[str]


class PushConstants(_Part):
    """The push constants of a stage."""

    stage: str
    values: _List[PushConstant]


class DispatchParameters(_Part):
    """The sizes of the dispatch or draw."""

    dispatch_group_count: tuple[_Count, ...] = (1, 1, 1)
    vertex_count: _Count | None = None


class Sampler(_Part):
    """A sampler."""

    name: str
    sampler_kind: str = Field(default="Sampler", alias="Kind")
    min_filter: str = "Linear"
    mag_filter: str = "Linear"
    address: str = "Clamp"
    min_lod: str = Field(default="0", alias="MinLOD")
    max_lod: str = Field(default="", alias="MaxLOD")
    bias: str = Field(default="0", alias="MipLODBias")
    comparison_op: str = "Never"

    def limits_levels(self) -> bool:
        """Return whether the sampler has limits or a bias for levels of detail."""
        return self.max_lod != "" or any(float(text) for text in (self.min_lod, self.bias))


class Result(_Part):
    """A comparison of two buffers. Rules that no scenario can express have further keys."""

    model_config = ConfigDict(extra="ignore")

    result: str
    rule: str
    actual: str
    expected: str
    ulp: _Count = Field(default=0, alias="ULPT")
    denorm_mode: str = "Any"
    zero_tolerance: _Tolerance = 0
    epsilon: _Tolerance = 0


class Pipeline(_Part):
    """The whole file. Parts about DirectX and ray tracing are not read."""

    shaders: Annotated[_List[Shader], Field(min_length=1)]
    buffers: _List[DataBuffer] = ()
    samplers: _List[Sampler] = ()
    results: _List[Result] = ()
    descriptor_sets: _List[DescriptorSet] = ()
    bindings: Bindings = Bindings()
    push_constants: _List[PushConstants] = ()
    dispatch_parameters: DispatchParameters = DispatchParameters()
    runtime_settings: object = None
    acceleration_structures: object = None
    ray_tracing_pipeline_config: object = None
    hit_groups: object = None
    shader_binding_table: object = None


def numbers(texts: Sequence[str], format: DataFormat) -> numpy.ndarray:
    """Convert the texts of numbers to an array. Raises ValueError or OverflowError."""
    type = numpy.dtype(TYPES[format])
    if not numpy.issubdtype(type, numpy.floating):
        return numpy.array([int(text, 0) for text in texts], type)
    if format == "Float16":  # as bits
        return numpy.array([int(text, 0) for text in texts], "u2").view(type)
    with numpy.errstate(over="ignore"):
        return numpy.array([float.fromhex(text) if "x" in text.lower() else float(text) for text in texts], type)


def push_constants(pipeline: Pipeline) -> bytes:
    """Return the bytes of the push constants. Raises ValueError or OverflowError."""
    data = bytearray()
    for value in (value for block in pipeline.push_constants for value in block.values):
        content = numbers(value.data, value.format).tobytes()
        data.extend(bytes(max(0, value.offset + len(content) - len(data))))
        data[value.offset : value.offset + len(content)] = content
    return bytes(data) + bytes(-len(data) % 4)


def read_pipeline(text: str, path: str, first_line: int) -> Pipeline:
    """Parse the YAML that begins at a line of a file. Raises FileError with the line of each problem."""
    if len(text) > _MOST_BYTES:
        raise file_error(path, f"has more than {_MOST_BYTES >> 20} MiB of YAML", line=first_line)
    tree, lines = _read_yaml(text, path, first_line)
    try:
        return Pipeline.model_validate(tree)
    except ValidationError as error:
        problems = []
        for problem in findings(Pipeline, error):
            pointer = problem.pointer or ""
            while pointer not in lines:
                pointer = pointer.rpartition("/")[0]
            message = f"{problem.pointer}: {problem.message}"
            problems.append(problem._replace(code=CODE, path=path, line=lines[pointer], pointer=None, message=message))
        raise error_of(problems) from None


def _read_yaml(text: str, path: str, first_line: int) -> tuple[Json, dict[str, int]]:
    """Return the first document as lists, dictionaries and texts, and the line of each value by pointer.

    No tag and no alias is followed, so the result is as large as the text.
    """
    text = re.sub(r",(?=\s*,)", "", text)  # the suite allows empty entries
    depth, lines = 0, {"": first_line}
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            line = first_line + event.start_mark.line
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.DocumentEndEvent):
                break
            if isinstance(event, yaml.AliasEvent):
                raise file_error(path, f"has the alias *{event.anchor}", "write the value again", line=line)
            if depth >= _MOST_LEVELS:
                raise file_error(path, f"nests more than {_MOST_LEVELS} levels", line=line)
        loader = _LOADER(text)
        return _value(loader.get_node() if loader.check_node() else None, "", path, first_line, lines), lines
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        line = first_line + (mark.line if mark else 0)
        raise file_error(path, f"the YAML cannot be read: {problem}", line=line) from error


def _value(node: yaml.Node | None, pointer: str, path: str, first_line: int, lines: dict[str, int]) -> Json:
    """Return the value of a node, and note the line of each value."""
    if node is None:
        return None
    lines[pointer] = first_line + node.start_mark.line
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    if isinstance(node, yaml.SequenceNode):
        items = enumerate(node.value)
        return [_value(item, f"{pointer}/{index}", path, first_line, lines) for index, item in items]
    values: dict[str, Json] = {}
    for key, item in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.value in values:
            line = first_line + key.start_mark.line
            raise file_error(path, f"has the key {key.value!r:.60} twice, or no text as a key", line=line)
        values[key.value] = _value(item, f"{pointer}/{escape(key.value)}", path, first_line, lines)
    return values

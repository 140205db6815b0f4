"""A pipeline of LLVM's offload-test-suite as a scenario with expectations.

Source: lib/API/VK/Device.cpp and lib/Support/Check.cpp of github.com/llvm/offload-test-suite.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

import numpy

from scenario_runner.errors import UnsupportedError
from scenario_runner.errors.text import Json
from scenario_runner.files.dds import format_header
from scenario_runner.files.vk_formats import format_named, name_of_channels
from scenario_runner.importers.item_folders import ItemWriter, JsonObject, filled
from scenario_runner.importers.memory_layouts import NUMERIC_KINDS
from scenario_runner.importers.offload_pipeline import (
    TYPES,
    BoundResource,
    DataBuffer,
    DataFormat,
    Pipeline,
    Result,
    Sampler,
    SpecializationConstant,
    numbers,
    push_constants,
)

_STAGES: Final = {"Compute": "compute", "Vertex": "vertex", "Pixel": "fragment"}
_TOPOLOGIES: Final = {"TriangleList": "TRIANGLE_LIST", "PointList": "POINT_LIST", "LineList": "LINE_LIST"}
_ADDRESSES: Final = {"Clamp": "CLAMP_EDGE", "Repeat": "REPEAT", "Mirror": "MIRRORED_REPEAT", "Border": "CLAMP_BORDER"}
_Part = TypeVar("_Part", DataBuffer, Sampler)
_RULES: Final = ("BufferExact", "BufferFloatULP", "BufferFloatEpsilon")
_ROW: Final = re.compile(r"\[([-+\w.,{}* ]*)(?:\]|$)")
_PRINTED: Final = re.compile(
    r"Name: *(?P<name>\S+)|Counters?: *(?P<counters>\[[\d, ]*\]|\d+)|"
    r"Data: *(?P<data>(?:(?:- *)?\[[-+\w.,{}* ]*(?:\] *|$))+)?"
)


class CompiledShader(NamedTuple):
    """A source file in the item, and the options for the compiler."""

    file: str
    entry: str
    build_options: str


def _check(pipeline: Pipeline) -> None:
    """Raise UnsupportedError for a pipeline that no scenario can express."""
    resources = [resource for each in pipeline.descriptor_sets for resource in each.resources]
    stages = sorted({shader.stage for shader in pipeline.shaders}.difference(_STAGES))
    rules = sorted({result.rule for result in pipeline.results}.difference(_RULES))
    samplers = pipeline.samplers
    for is_obstacle, reason in (
        (bool(stages), f"the stage {' and '.join(stages)}"),
        (pipeline.acceleration_structures is not None, "ray tracing"),
        (pipeline.bindings.topology not in _TOPOLOGIES, f"the topology {pipeline.bindings.topology}"),
        (any(each.heap_index is not None for each in resources), "indices into the descriptor heap"),
        (any(each.is_reserved or each.tiles_mapped is not None for each in resources), "sparse resources"),
        (any(each.vulkan_binding is None for each in resources), "a resource without VulkanBinding"),
        (any(each.sampler_kind != "Sampler" for each in samplers), "samplers that compare depths"),
        (any(each.address not in _ADDRESSES for each in samplers), "another address mode of a sampler"),
        (any(map(Sampler.limits_levels, samplers)), "levels of detail of a sampler"),
        (bool(rules), f"the rule {' and '.join(rules)}"),
    ):
        if is_obstacle:
            raise UnsupportedError(reason)


def _value(constant: SpecializationConstant) -> Json:
    """Return the value as a number, or the text if it is none."""
    for convert in (lambda text: int(text, 0), float):
        try:
            value = convert(constant.value)
        except ValueError:
            continue
        return value if math.isfinite(value) else constant.value
    return constant.value


def _format_of(data: DataFormat, channels: int) -> str:
    """Return the VkFormat of texels or attributes."""
    if data == "Depth32":
        return "VK_FORMAT_D32_SFLOAT"
    type = numpy.dtype(TYPES[data])
    if channels == 2 and type in (numpy.int64, numpy.uint64):
        return name_of_channels(4, 32, NUMERIC_KINDS[type.kind])
    return name_of_channels(channels, 8 * type.itemsize, NUMERIC_KINDS[type.kind])


def _named(parts: Sequence[_Part], name: str) -> _Part:
    for part in parts:
        if part.name == name:
            return part
    raise ValueError(f"nothing is called {name!r:.60}")


class PipelineItem:
    """The translation of a pipeline, as parts of an item.

    The constructor raises UnsupportedError, and ValueError or OverflowError for a wrong pipeline.
    """

    def __init__(self, pipeline: Pipeline, shaders: Sequence[CompiledShader], writer: ItemWriter) -> None:
        _check(pipeline)
        if len(shaders) != len(pipeline.shaders):
            raise ValueError(f"{len(shaders)} shaders are compiled for {len(pipeline.shaders)} stages")
        stages = sorted(shader.stage for shader in pipeline.shaders)
        if stages not in (["Compute"], ["Pixel", "Vertex"]):
            raise ValueError(f"the stages are {' and '.join(stages)}, expected Compute, or Vertex and Pixel")
        self._pipeline, self._writer = pipeline, writer
        bindings: list[Json] = []
        for set, each in enumerate(pipeline.descriptor_sets):
            for resource in each.resources:
                bindings += self._bindings(set, resource)
        self._add_run(bindings)
        for shader, compiled in zip(pipeline.shaders, shaders, strict=True):
            keys: JsonObject = {"type": "HLSL", "stage": _STAGES[shader.stage], "src": compiled.file}
            keys |= {"entry": compiled.entry, "build_options": compiled.build_options}
            keys["specialization_constants"] = [
                {"id": each.id, "value": _value(each)} for each in shader.specialization_constants
            ]
            writer.add("shader", f"{shader.stage} shader", keys)
        for result in pipeline.results:
            self._expect_result(result)

    def _expect_result(self, result: Result) -> None:
        buffers = self._pipeline.buffers
        actual, expected = _named(buffers, result.actual), _named(buffers, result.expected)
        sizes = [[row.nbytes for row in buffer.rows()] for buffer in (actual, expected)]
        if sizes[0] != sizes[1]:
            found, wanted = (f"{sizes[index]!s:.60}" for index in (0, 1))
            raise ValueError(f"{actual.name!r:.60} has {found} bytes, {expected.name!r:.60} has {wanted}")
        for index, row in enumerate(expected.rows()):
            self._expect(_uid(actual, index), row, _tolerance(result, expected.format), actual)

    def _bindings(self, set: int, resource: BoundResource) -> Iterator[JsonObject]:
        place = resource.vulkan_binding
        assert place is not None
        if resource.resource_kind in ("Sampler", "SamplerComparison"):
            uid = f"{resource.name}_sampler"
            self._writer.add_sampler(uid, self._sampler(resource.name))
            yield _binding(set, place.binding, [uid])
            return
        buffer = _named(self._pipeline.buffers, resource.name)
        uids = [self._add_data(buffer, index, resource) for index in range(buffer.array_size)]
        # dxc declares the formats of other texel buffers, and a storage texel buffer must have the declared format.
        is_split = buffer.channels == 2 and buffer.format in ("Int64", "UInt64")
        is_undeclared = resource.resource_kind == "RWBuffer" and (is_split or buffer.channels == 3)
        has_format = resource.resource_kind == "Buffer" or is_undeclared
        format = _format_of(buffer.format, buffer.channels) if has_format else ""
        yield _binding(set, place.binding, uids) | filled({"format": format})
        if resource.has_counter and place.counter_binding is not None:
            counters = [f"{uid}_counter" for uid in uids]
            for uid in counters:
                self._writer.add("buffer", uid, {"size": 4, "shader_access": "readwrite"})
            yield _binding(set, place.counter_binding, counters)

    def _sampler(self, name: str) -> JsonObject:
        sampler = _named(self._pipeline.samplers, name)
        filters = {"min_filter": sampler.min_filter.upper(), "mag_filter": sampler.mag_filter.upper()}
        return {**filters, "border_address_mode": _ADDRESSES[sampler.address]}

    def _add_data(self, buffer: DataBuffer, index: int, resource: BoundResource) -> str:
        """Add a buffer or an image of a descriptor, and return the uid. A buffer may be bound twice."""
        uid, access = _uid(buffer, index), "readwrite" if resource.is_written else "readonly"
        keys = (
            self._add_image(buffer, index, access) if resource.is_texture else self._add_buffer(buffer, index, access)
        )
        if resource.resource_kind == "SampledTexture2D":
            keys |= self._sampler(resource.name)
        if resource.is_written:
            keys["shader_access"] = access
        return uid

    def _add_buffer(self, buffer: DataBuffer, index: int, access: str) -> JsonObject:
        uid, row = _uid(buffer, index), buffer.rows()[index]
        if uid in self._writer.resources:
            return self._writer.resources[uid][1]
        source = {"src": self._writer.source(uid, row)} if row.view("u1").any() else {}
        return self._writer.add("buffer", uid, {"size": row.nbytes, "shader_access": access} | source)

    def _add_image(self, buffer: DataBuffer, index: int, access: str) -> JsonObject:
        extent = buffer.output_props
        if extent is None:
            raise ValueError(f"the image {buffer.name!r:.60} needs OutputProps")
        uid, row, format = _uid(buffer, index), buffer.rows()[index], _format_of(buffer.format, buffer.channels)
        if uid in self._writer.resources:
            return self._writer.resources[uid][1]
        keys: JsonObject = {"format": format, "dims": [1, extent.width, extent.height, 1], "mips": extent.mip_levels}
        if row.view("u1").any():
            header = format_header(format_named(format), extent.width, extent.height, extent.mip_levels)
            keys["src"] = self._writer.write(uid, ".dds", header + row.tobytes())
        return self._writer.add("image", uid, keys | {"shader_access": access})

    def _add_run(self, bindings: list[Json]) -> None:
        """Add the command: a dispatch, or a draw into a colour image and a depth image."""
        pipeline, add = self._pipeline, self._writer.add
        shared: JsonObject = {"bindings": bindings}
        if any(block.values for block in pipeline.push_constants):
            data = numpy.frombuffer(push_constants(pipeline), numpy.uint8)
            shared["push_data_ref"] = "push constants"
            add("raw_data", "push constants", {"src": self._writer.source("push_constants", data, may_fill=False)})
        if pipeline.shaders[0].stage == "Compute":
            counts = pipeline.dispatch_parameters.dispatch_group_count
            keys: JsonObject = {"shader_ref": "Compute shader", "rangeND": counts}
            self._writer.add_command("dispatch_compute", keys | shared)
            return
        target = _named(pipeline.buffers, pipeline.bindings.render_target)
        color = self._add_image(target, 0, "writeonly")
        color["color_attachment"] = True
        _, width, height, _ = dims = color["dims"]
        depth: JsonObject = {"shader_access": "readonly", "format": "VK_FORMAT_D32_SFLOAT", "dims": dims}
        add("image", "depth attachment", depth)
        self._writer.add_command("fill", {"resource_ref": "depth attachment", "value": 1.0})
        keys = {
            "viewport": {"y": height, "width": width, "height": -height},  # the y axis points up, as in DirectX
            "vertex_shader_ref": "Vertex shader",
            "fragment_shader_ref": "Pixel shader",
            "color_attachment_refs": [color["uid"]],
            "depth_attachment": {"resource_ref": "depth attachment", "compare_op": "LESS_OR_EQUAL"},
        }
        self._writer.add_command("dispatch_fragment", keys | self._vertices() | shared)

    def _vertices(self) -> JsonObject:
        bindings, count = self._pipeline.bindings, self._pipeline.dispatch_parameters.vertex_count
        attributes: list[Json] = []
        if bindings.vertex_buffer:
            buffer = _named(self._pipeline.buffers, bindings.vertex_buffer)
            size_bytes = self._add_buffer(buffer, 0, "readonly")["size"]
            stride = max((each.offset + each.size_bytes for each in bindings.vertex_attributes), default=1)
            count = size_bytes // stride if count is None else count
            for location, each in enumerate(bindings.vertex_attributes):
                place = {"location": location, "resource_ref": buffer.name, "stride": stride, "offset": each.offset}
                attributes.append({**place, "format": _format_of(each.format, each.channels)})
        counts: JsonObject = {"topology": _TOPOLOGIES[bindings.topology], "vertex_count": count or 0}
        return counts | filled({"vertex_attributes": attributes})

    def expect_printed(self, lines: Sequence[str]) -> None:
        """Add rules for the numbers in lines that FileCheck finds in the printed buffers.

        Numbers without a name belong to the next written buffer of that size.
        """
        resources = [resource for each in self._pipeline.descriptor_sets for resource in each.resources]
        written = {resource.name for resource in resources if resource.is_written}
        written.add(self._pipeline.bindings.render_target)
        buffers = {buffer.name: buffer for buffer in self._pipeline.buffers}
        left = [buffer for buffer in self._pipeline.buffers if buffer.name in written]
        named: DataBuffer | None = None
        for match in _PRINTED.finditer(" ".join(lines)):
            if match["name"]:
                named = buffers.get(match["name"])
            elif match["counters"]:
                uids = [_uid(named, index) for index in range(named.array_size)] if named else []
                for uid, number in zip(uids, re.findall(r"\d+", match["counters"]), strict=False):
                    self._expect(f"{uid}_counter", numbers([number], "UInt32"), {})
            else:
                rows = [_texts(row) for row in re.findall(_ROW, match["data"] or "")]
                fitting = [buffer for buffer in left if rows and len(rows[0]) == buffer.rows()[0].size]
                buffer = named or next(iter((*fitting, *left)), None)
                left = left[left.index(buffer) + 1 :] if buffer in left else left
                named = None
                if buffer is not None and buffer.name in written and len(rows) == buffer.array_size:
                    for index, texts in enumerate(rows):
                        self._expect_printed_row(buffer, index, texts, is_loose="{{" in match["data"])

    def _expect_printed_row(self, buffer: DataBuffer, index: int, texts: Sequence[str], *, is_loose: bool) -> None:
        try:
            values = numbers(texts, buffer.format)
        except (ValueError, OverflowError):
            return  # another text than numbers
        is_float = buffer.format in ("Float32", "Float64", "Depth32")
        tolerance: JsonObject = {"rtol": 1e-2 if is_loose else 1e-5, "atol": 0} if is_float else {}
        missing = buffer.rows()[index].size - values.size
        if values.size and missing >= 0:
            self._expect(_uid(buffer, index), values, tolerance, buffer, is_start=missing > 0)

    def _expect(
        self,
        uid: str,
        values: numpy.ndarray,
        tolerance: JsonObject,
        buffer: DataBuffer | None = None,
        *,
        is_start: bool = False,
    ) -> None:
        if uid not in self._writer.resources:
            raise ValueError(f"no descriptor binds {uid!r:.60}")
        if self._writer.resources[uid][0] == "image" and buffer and buffer.output_props:
            height, width = buffer.output_props.height, buffer.output_props.width
            if not height * width or values.size % (height * width):
                raise ValueError(f"{uid!r:.60} has {width} x {height} texels, but {values.size} numbers are expected")
            values = values.reshape(1, height, width, -1)
        source: JsonObject = {"at": 0, "values": values.tolist(), "dtype": values.dtype.name}
        if not is_start:
            source = {"file": self._writer.save(f"{uid}_expected", values)}
        self._writer.outputs.setdefault(uid, []).append(source | tolerance)


def _binding(set: int, id: int, uids: list[str]) -> JsonObject:
    return {"set": set, "id": id} | (
        {"resource_ref": uids[0]} if len(uids) == 1 else {"resource_refs": list[Json](uids)}
    )


def _texts(row: str) -> list[str]:
    """Split the numbers of a printed list; {{3.14.*}} is a regular expression of FileCheck."""
    return [text.strip(" {}*").removesuffix(".") for text in row.split(",") if text.strip()]


def _uid(buffer: DataBuffer, index: int) -> str:
    return buffer.name if buffer.array_size == 1 else f"{buffer.name}_{index}"


def _tolerance(result: Result, format: DataFormat) -> JsonObject:
    if result.rule == "BufferExact":
        return {}
    denormals = {"denormals": "any"} if result.denorm_mode == "Any" and format != "Float16" else {}
    if result.rule == "BufferFloatULP":
        return {"ulp": result.ulp, **({"zero": result.zero_tolerance} if result.zero_tolerance else {}), **denormals}
    # The suite demands a smaller difference.
    type = numpy.float64 if format == "Float64" else numpy.float32
    return {"atol": float(max(numpy.nextafter(type(result.epsilon), type(0)), 0)), **denormals}

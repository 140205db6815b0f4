"""A pipeline of LLVM's offload-test-suite as a scenario with expectations.

Source: lib/API/VK/Device.cpp and lib/Support/Check.cpp of github.com/llvm/offload-test-suite.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

import numpy

from scenario_runner.errors import UnsupportedError
from scenario_runner.errors.text import Json
from scenario_runner.files.dds import format_header
from scenario_runner.files.vk_formats import format_named, name_of_channels
from scenario_runner.importers.item_folders import write_file
from scenario_runner.importers.offload_pipeline import (
    BoundResource,
    DataBuffer,
    DataFormat,
    Pipeline,
    Result,
    Sampler,
    numbers,
    push_constants,
)

_STAGES: Final = {"Compute": "compute", "Vertex": "vertex", "Pixel": "fragment"}
_TOPOLOGIES: Final = {"TriangleList": "TRIANGLE_LIST", "PointList": "POINT_LIST", "LineList": "LINE_LIST"}
_ADDRESSES: Final = {"Clamp": "CLAMP_EDGE", "Repeat": "REPEAT", "Mirror": "MIRRORED_REPEAT", "Border": "CLAMP_BORDER"}
_Part = TypeVar("_Part", DataBuffer, Sampler)
_RULES: Final = ("BufferExact", "BufferFloatULP", "BufferFloatEpsilon")
_KINDS: Final = {"Int": "SINT", "UInt": "UINT", "Float": "SFLOAT"}
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


def _number(text: str) -> Json:
    """Return a number as JSON, or the text if it is none."""
    for convert in (lambda text: int(text, 0), float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def format_of(data: DataFormat, channels: int) -> str:
    """Return the VkFormat of texels or attributes."""
    if data == "Depth32":
        return "VK_FORMAT_D32_SFLOAT"
    kind, bits = re.fullmatch(r"([A-Za-z]+)(\d+)", data.replace("Hex", "UInt").replace("Bool", "UInt32")).groups()  # type: ignore[union-attr]
    if bits == "64" and channels == 2 and kind != "Float":
        bits, channels = "32", 4
    return name_of_channels(channels, int(bits), _KINDS[kind])


def _named(parts: Sequence[_Part], name: str) -> _Part:
    for part in parts:
        if part.name == name:
            return part
    raise ValueError(f"nothing is called {name!r:.60}")


class ScenarioWriter:
    """Writes the content of an item, and collects the entries of the scenario and the rules by output.

    The constructor raises UnsupportedError, and ValueError or OverflowError for a wrong pipeline.
    """

    def __init__(self, pipeline: Pipeline, shaders: Sequence[CompiledShader], folder: str) -> None:
        _check(pipeline)
        if len(shaders) != len(pipeline.shaders):
            raise ValueError(f"{len(shaders)} shaders are compiled for {len(pipeline.shaders)} stages")
        self._pipeline = pipeline
        self._folder = folder
        self._entries: dict[str, tuple[str, dict[str, Json]]] = {}
        self._files = 0
        self.outputs: dict[str, list[dict[str, Json]]] = {}
        bindings: list[dict[str, Json]] = []
        for set, each in enumerate(pipeline.descriptor_sets):
            for resource in each.resources:
                bindings += self._bindings(set, resource)
        self._commands = [*self._commands_for(bindings)]
        for shader, compiled in zip(pipeline.shaders, shaders, strict=True):
            values = [{"id": each.id, "value": _number(each.value)} for each in shader.specialization_constants]
            keys = {"type": "HLSL", "stage": _STAGES[shader.stage], "src": compiled.file, "entry": compiled.entry}
            self._add(
                "shader",
                f"{shader.stage} shader",
                **keys,
                build_options=compiled.build_options,
                specialization_constants=values,
            )
        for result in pipeline.results:
            actual, expected = _named(pipeline.buffers, result.actual), _named(pipeline.buffers, result.expected)
            sizes = [[row.nbytes for row in buffer.rows()] for buffer in (actual, expected)]
            if sizes[0] != sizes[1]:
                raise ValueError(
                    f"{actual.name!r:.60} has {sizes[0]!s:.60} bytes, {expected.name!r:.60} has {sizes[1]!s:.60}"
                )
            for index, row in enumerate(expected.rows()):
                self._expect(_uid(actual, index), row, _tolerance(result, expected.format), actual)

    def scenario(self) -> dict[str, Json]:
        """Return the scenario. Each output with a rule is written to a file."""
        for uid in self.outputs:
            self._entries[uid][1]["dst"] = f"out/{self._new_file(uid, '.npy')}"
        return {"resources": [{kind: keys} for kind, keys in self._entries.values()], "commands": self._commands}

    def rules(self) -> dict[str, Json]:
        """Return the rules of each output: one, or an array."""
        return {uid: rules if len(rules) > 1 else rules[0] for uid, rules in self.outputs.items()}

    def _new_file(self, name: str, extension: str) -> str:
        self._files += 1
        return f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)[:60]}_{self._files}{extension}"

    def _save(self, name: str, array: numpy.ndarray) -> str:
        file = self._new_file(name, ".npy")
        numpy.save(os.path.join(self._folder, file), array)
        return file

    def _add(self, kind: str, uid: str, **keys: Json) -> str:
        self._entries.setdefault(uid, (kind, {"uid": uid, **keys}))
        return uid

    def _bindings(self, set: int, resource: BoundResource) -> Iterator[dict[str, Json]]:
        place = resource.vulkan_binding
        assert place is not None
        if resource.resource_kind in ("Sampler", "SamplerComparison"):
            uid = f"{resource.name}_sampler"  # an image without content carries the sampler
            sampler = self._sampler(resource.name)
            self._add("image", uid, shader_access="readonly", format="VK_FORMAT_R8_UNORM", dims=[1, 1, 1, 1], **sampler)
            yield _binding(set, place.binding, [uid])
            return
        buffer = _named(self._pipeline.buffers, resource.name)
        uids = [self._add_data(buffer, index, resource) for index in range(buffer.array_size)]
        binding = _binding(set, place.binding, uids)
        # dxc declares the formats of other texel buffers, and a storage texel buffer must have the declared format.
        is_split = buffer.channels == 2 and buffer.format in ("Int64", "UInt64")
        if resource.resource_kind == "Buffer" or (
            resource.resource_kind == "RWBuffer" and (is_split or buffer.channels == 3)
        ):
            binding["format"] = format_of(buffer.format, buffer.channels)
        yield binding
        if resource.has_counter and place.counter_binding is not None:
            counters = [self._add("buffer", f"{uid}_counter", size=4, shader_access="readwrite") for uid in uids]
            yield _binding(set, place.counter_binding, counters)

    def _sampler(self, name: str) -> dict[str, Json]:
        sampler = _named(self._pipeline.samplers, name)
        filters = {"min_filter": sampler.min_filter.upper(), "mag_filter": sampler.mag_filter.upper()}
        return {**filters, "border_address_mode": _ADDRESSES[sampler.address]}

    def _add_data(self, buffer: DataBuffer, index: int, resource: BoundResource) -> str:
        keys: dict[str, Json] = {"shader_access": "readwrite" if resource.is_written else "readonly"}
        if resource.resource_kind == "SampledTexture2D":
            keys |= self._sampler(resource.name)
        add = self._add_image if resource.is_texture else self._add_buffer
        uid = add(buffer, index, **keys)
        if resource.is_written:  # the buffer may be bound twice
            self._entries[uid][1]["shader_access"] = "readwrite"
        return uid

    def _add_buffer(self, buffer: DataBuffer, index: int, **keys: Json) -> str:
        uid, row = _uid(buffer, index), buffer.rows()[index]
        if uid not in self._entries and row.view("u1").any():
            is_filled = buffer.fill_size > 0
            keys["src"] = {"fill": row[0].item(), "dtype": row.dtype.name} if is_filled else self._save(uid, row)
        return self._add("buffer", uid, size=row.nbytes, **keys)

    def _add_image(self, buffer: DataBuffer, index: int, **keys: Json) -> str:
        extent = buffer.output_props
        if extent is None:
            raise ValueError(f"the image {buffer.name!r:.60} needs OutputProps")
        uid, row, format = _uid(buffer, index), buffer.rows()[index], format_of(buffer.format, buffer.channels)
        if uid not in self._entries and row.view("u1").any():
            keys["src"] = self._new_file(uid, ".dds")
            header = format_header(format_named(format), extent.width, extent.height, extent.mip_levels)
            write_file(self._folder, str(keys["src"]), header + row.tobytes())
        dims = [1, extent.width, extent.height, 1]
        return self._add("image", uid, format=format, dims=dims, mips=extent.mip_levels, **keys)

    def _commands_for(self, bindings: list[dict[str, Json]]) -> Iterator[dict[str, Json]]:
        pipeline = self._pipeline
        shared: dict[str, Json] = {"bindings": bindings}
        if any(block.values for block in pipeline.push_constants):
            data = numpy.frombuffer(push_constants(pipeline), numpy.uint8)
            shared["push_data_ref"] = self._add("raw_data", "push constants", src=self._save("push_constants", data))
        if pipeline.shaders[0].stage == "Compute":
            counts = pipeline.dispatch_parameters.dispatch_group_count
            yield {"dispatch_compute": {"shader_ref": "Compute shader", "rangeND": counts, **shared}}
            return
        target = _named(pipeline.buffers, pipeline.bindings.render_target)
        color = self._add_image(target, 0, shader_access="writeonly", color_attachment=True)
        _, width, height, _ = dims = self._entries[color][1]["dims"]
        depth = self._add(
            "image", "depth attachment", shader_access="readonly", format="VK_FORMAT_D32_SFLOAT", dims=dims
        )
        yield {"fill": {"resource_ref": depth, "value": 1.0}}
        # The y axis points up, as in DirectX.
        draw: dict[str, Json] = {"viewport": {"y": height, "width": width, "height": -height}}
        draw |= {"vertex_shader_ref": "Vertex shader", "fragment_shader_ref": "Pixel shader"}
        draw |= {"color_attachment_refs": [color]}
        draw["depth_attachment"] = {"resource_ref": depth, "compare_op": "LESS_OR_EQUAL"}
        yield {"dispatch_fragment": {**draw, **self._vertices(), **shared}}

    def _vertices(self) -> dict[str, Json]:
        bindings, count = self._pipeline.bindings, self._pipeline.dispatch_parameters.vertex_count
        attributes: list[dict[str, Json]] = []
        if bindings.vertex_buffer:
            buffer = _named(self._pipeline.buffers, bindings.vertex_buffer)
            uid = self._add_buffer(buffer, 0, shader_access="readonly")
            stride = max((each.offset + each.size_bytes for each in bindings.vertex_attributes), default=1)
            count = buffer.rows()[0].nbytes // stride if count is None else count
            for location, each in enumerate(bindings.vertex_attributes):
                place = {"location": location, "resource_ref": uid, "stride": stride, "offset": each.offset}
                attributes.append({**place, "format": format_of(each.format, each.channels)})
        counts = {"topology": _TOPOLOGIES[bindings.topology], "vertex_count": count or 0}
        return counts | ({"vertex_attributes": attributes} if attributes else {})

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
        tolerance: dict[str, Json] = {"rtol": 1e-2 if is_loose else 1e-5, "atol": 0} if is_float else {}
        missing = buffer.rows()[index].size - values.size
        if values.size and missing >= 0:
            self._expect(_uid(buffer, index), values, tolerance, buffer, is_start=missing > 0)

    def _expect(
        self,
        uid: str,
        values: numpy.ndarray,
        tolerance: dict[str, Json],
        buffer: DataBuffer | None = None,
        *,
        is_start: bool = False,
    ) -> None:
        if uid not in self._entries:
            raise ValueError(f"no descriptor binds {uid!r:.60}")
        if self._entries[uid][0] == "image" and buffer and buffer.output_props:
            values = values.reshape(1, buffer.output_props.height, buffer.output_props.width, -1)
        source: dict[str, Json] = {"at": 0, "values": values.tolist(), "dtype": values.dtype.name}
        if not is_start:
            source = {"file": self._save(f"{uid}_expected", values)}
        self.outputs.setdefault(uid, []).append({**source, **tolerance})


def _binding(set: int, id: int, uids: list[str]) -> dict[str, Json]:
    return {"set": set, "id": id, **({"resource_ref": uids[0]} if len(uids) == 1 else {"resource_refs": uids})}


def _texts(row: str) -> list[str]:
    """Split the numbers of a printed list; {{3.14.*}} is a regular expression of FileCheck."""
    return [text.strip(" {}*").removesuffix(".") for text in row.split(",") if text.strip()]


def _uid(buffer: DataBuffer, index: int) -> str:
    return buffer.name if buffer.array_size == 1 else f"{buffer.name}_{index}"


def _tolerance(result: Result, format: DataFormat) -> dict[str, Json]:
    if result.rule == "BufferExact":
        return {}
    denormals = {"denormals": "any"} if result.denorm_mode == "Any" and format != "Float16" else {}
    if result.rule == "BufferFloatULP":
        return {"ulp": result.ulp, **({"zero": result.zero_tolerance} if result.zero_tolerance else {}), **denormals}
    # The suite demands a smaller difference.
    type = numpy.float64 if format == "Float64" else numpy.float32
    return {"atol": float(max(numpy.nextafter(type(result.epsilon), type(0)), 0)), **denormals}

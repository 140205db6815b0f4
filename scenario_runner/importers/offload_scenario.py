"""A pipeline of LLVM's offload-test-suite as a scenario with expectations.

Source: lib/API/VK/Device.cpp and lib/Support/Check.cpp of github.com/llvm/offload-test-suite.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

import numpy

from scenario_runner.errors.text import Json
from scenario_runner.files.dds import format_header
from scenario_runner.files.vk_formats import format_named
from scenario_runner.importers.item_folders import write_file
from scenario_runner.importers.offload_pipeline import (
    BoundResource,
    DataBuffer,
    DataFormat,
    Pipeline,
    Result,
    Sampler,
    numbers,
)

STAGES: Final = {"Compute": "compute", "Vertex": "vertex", "Pixel": "fragment"}
_OTHER_STAGES: Final = {
    "Hull": "tessellation",
    "Domain": "tessellation",
    "Geometry": "geometry shaders",
    "Amplification": "mesh shaders",
    "Mesh": "mesh shaders",
}
_TOPOLOGIES: Final = {"TriangleList": "TRIANGLE_LIST", "PointList": "POINT_LIST", "LineList": "LINE_LIST"}
_ADDRESS_MODES: Final = {
    "Clamp": "CLAMP_EDGE",
    "Repeat": "REPEAT",
    "Mirror": "MIRRORED_REPEAT",
    "Border": "CLAMP_BORDER",
}
_RULES: Final = ("BufferExact", "BufferFloatULP", "BufferFloatEpsilon")
_KINDS: Final = {"Int": "SINT", "UInt": "UINT", "Float": "SFLOAT"}
_ROW: Final = re.compile(r"\[([-+\w.,{}* ]*)(?:\]|$)")
_PRINTED: Final = re.compile(
    r"Name: *(?P<name>\S+)|Counters?: *(?P<counters>\[[\d, ]*\]|\d+)|"
    r"Data: *(?P<data>(?:(?:- *)?\[[-+\w.,{}* ]*(?:\] *|$))+)?"
)


_Item = TypeVar("_Item")


class CompiledShader(NamedTuple):
    """A source file in the item, and the options for the compiler."""

    file: str
    entry: str
    build_options: str


def why_not(pipeline: Pipeline) -> str:
    """Return why a scenario cannot express a pipeline; empty if it can."""
    resources = [resource for each in pipeline.descriptor_sets for resource in each.resources]
    for shader in pipeline.shaders:
        if shader.stage not in STAGES:
            return _OTHER_STAGES.get(shader.stage, "ray tracing")
    if pipeline.acceleration_structures:
        return "ray tracing"
    if pipeline.bindings.topology not in _TOPOLOGIES:
        return f"the topology {pipeline.bindings.topology}"
    if any(resource.heap_index is not None for resource in resources):
        return "indices into the descriptor heap"
    if any(resource.is_reserved or resource.tiles_mapped is not None for resource in resources):
        return "sparse resources"
    if any(resource.vulkan_binding is None for resource in resources):
        return "a resource without VulkanBinding"
    for sampler in pipeline.samplers:
        if sampler.sampler_kind != "Sampler":
            return "samplers that compare depths"
        if sampler.address not in _ADDRESS_MODES or any(map(_number, (sampler.min_lod, sampler.bias))):
            return "a sampler with another address mode or level of detail"
    rules = {result.rule for result in pipeline.results}.difference(_RULES)
    return f"the rule {min(rules)}" if rules else ""


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
    return f"VK_FORMAT_{''.join(letter + bits for letter in 'RGBA'[:channels])}_{_KINDS[kind]}"


class _Named(dict[str, _Item]):
    def __missing__(self, name: str) -> _Item:
        raise ValueError(f"nothing is called {name!r:.60}")


class ScenarioWriter:
    """Writes the files of an item, and collects the entries of the scenario and the expectations."""

    def __init__(self, pipeline: Pipeline, shaders: Sequence[CompiledShader], folder: str) -> None:
        self._pipeline = pipeline
        self._folder = folder
        self._buffers = _Named((buffer.name, buffer) for buffer in pipeline.buffers)
        self._samplers = _Named((sampler.name, sampler) for sampler in pipeline.samplers)
        self._entries: dict[str, dict[str, Json]] = {}
        self._files = 0
        self.outputs: dict[str, Json] = {}
        """The rules by output."""
        self.is_unchecked = False
        bindings = [
            binding
            for set, each in enumerate(pipeline.descriptor_sets)
            for resource in each.resources
            for binding in self._bindings(set, resource)
        ]
        self._commands = [*self._commands_for(bindings)]
        for index, (shader, compiled) in enumerate(zip(pipeline.shaders, shaders, strict=True)):
            constants = [
                {"id": constant.constant_id, "value": _number(constant.value)}
                for constant in shader.specialization_constants
            ]
            self._entries[f"shader_{index}"] = {
                "shader": {
                    "uid": f"shader_{index}",
                    "src": compiled.file,
                    "type": "HLSL",
                    "stage": STAGES[shader.stage],
                    "entry": compiled.entry,
                    "build_options": compiled.build_options,
                    "specialization_constants": constants,
                }
            }

    def scenario(self) -> dict[str, Json]:
        """Return the scenario. Each output with a rule is written to a file."""
        for uid in self.outputs:
            (body,) = self._entries[uid].values()
            body["dst"] = f"out/{self._new_file(uid, '.npy')}"
        return {"resources": list(self._entries.values()), "commands": self._commands}

    def _new_file(self, name: str, extension: str) -> str:
        self._files += 1
        return f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)[:60]}_{self._files}{extension}"

    def _save(self, name: str, array: numpy.ndarray) -> str:
        file = self._new_file(name, ".npy")
        numpy.save(os.path.join(self._folder, file), array)
        return file

    def _bindings(self, set: int, resource: BoundResource) -> Iterator[dict[str, Json]]:
        assert resource.vulkan_binding is not None
        place = {"set": set, "id": resource.vulkan_binding.binding}
        if resource.resource_kind.startswith("Sampler") and resource.resource_kind != "SampledTexture2D":
            sampler = self._samplers[resource.name]
            uid = f"{sampler.name}_sampler"
            self._add("image", uid, format="VK_FORMAT_R8_UNORM", dims=[1, 1, 1, 1], **_keys_of(sampler))
            yield {**place, "resource_ref": uid}
            return
        buffer = self._buffers[resource.name]
        uids = [self._add_data(buffer, index, resource) for index in range(buffer.array_size)]
        binding = {**place, "resource_ref": uids[0]} if len(uids) == 1 else {**place, "resource_refs": uids}
        if resource.resource_kind in ("Buffer", "RWBuffer"):
            format = format_of(buffer.format, buffer.channels)
            if buffer.channels == 3 or (buffer.channels == 2 and buffer.format in ("Int64", "UInt64")):
                binding["format"] = format
        yield binding
        counter = resource.vulkan_binding.counter_binding
        if resource.has_counter and counter is not None:
            counters = [self._add("buffer", f"{uid}_counter", size=4, shader_access="readwrite") for uid in uids]
            place = {"set": set, "id": counter}
            yield {**place, "resource_ref": counters[0]} if len(counters) == 1 else {**place, "resource_refs": counters}

    def _add(self, kind: str, uid: str, **keys: Json) -> str:
        self._entries.setdefault(uid, {kind: {"uid": uid, "shader_access": "readonly", **keys}})
        return uid

    def _add_data(self, buffer: DataBuffer, index: int, resource: BoundResource) -> str:
        access = "readwrite" if resource.is_written else "readonly"
        uid = _uid(buffer, index)
        if uid in self._entries:
            (body,) = self._entries[uid].values()
            body["shader_access"] = access if resource.is_written else body["shader_access"]
            return uid
        if not resource.is_texture:
            return self._add("buffer", uid, shader_access=access, **self._content(buffer, index))
        sampler = self._samplers.get(resource.name)
        keys = _keys_of(sampler) if sampler and resource.resource_kind == "SampledTexture2D" else {}
        return self._add_image(buffer, index, shader_access=access, **keys)

    def _content(self, buffer: DataBuffer, index: int) -> dict[str, Json]:
        row = buffer.rows()[index]
        if not row.any():
            return {"size": buffer.fill_size or row.nbytes}
        if buffer.fill_size:
            return {"size": row.nbytes, "src": {"fill": row[0].item(), "dtype": row.dtype.name}}
        return {"size": row.nbytes, "src": self._save(_uid(buffer, index), row)}

    def _add_image(self, buffer: DataBuffer, index: int, **keys: Json) -> str:
        extent = buffer.output_props
        if extent is None:
            raise ValueError("an image needs OutputProps")
        uid, row = _uid(buffer, index), buffer.rows()[index]
        format = format_of(buffer.format, buffer.channels)
        if row.any() and extent.mip_levels == 1:
            keys["src"] = self._save(uid, _shaped(row, buffer))
        elif row.any():
            keys["src"] = self._new_file(uid, ".dds")
            header = format_header(format_named(format), extent.width, extent.height, extent.mip_levels)
            write_file(self._folder, str(keys["src"]), header + row.tobytes())
        dims = [1, extent.width, extent.height, 1]
        return self._add("image", uid, format=format, dims=dims, mips=extent.mip_levels, **keys)

    def _commands_for(self, bindings: list[dict[str, Json]]) -> Iterator[dict[str, Json]]:
        pipeline = self._pipeline
        shared: dict[str, Json] = {"bindings": bindings}
        values = [value for block in pipeline.push_constants for value in block.values]
        if values:
            data = bytearray()
            for value in values:
                content = numbers(value.data, value.format).tobytes()
                data.extend(bytes(max(0, value.offset + len(content) - len(data))))
                data[value.offset : value.offset + len(content)] = content
            data.extend(bytes(-len(data) % 4))
            file = self._save("push_constants", numpy.frombuffer(bytes(data), numpy.uint8))
            self._entries["push_constants"] = {"raw_data": {"uid": "push_constants", "src": file}}
            shared["push_data_ref"] = "push_constants"
        if pipeline.shaders[0].stage == "Compute":
            counts = pipeline.dispatch_parameters.dispatch_group_count
            yield {"dispatch_compute": {"shader_ref": "shader_0", "rangeND": counts, **shared}}
            return
        shaders = {shader.stage: f"shader_{index}" for index, shader in enumerate(pipeline.shaders)}
        target = self._buffers[pipeline.bindings.render_target]
        self._add_image(target, 0, shader_access="writeonly", color_attachment=True)
        extent = target.output_props
        assert extent is not None
        dims = [1, extent.width, extent.height, 1]
        self._add("image", "depth", format="VK_FORMAT_D32_SFLOAT", dims=dims)
        yield {"fill": {"resource_ref": "depth", "value": 1.0}}
        # The suite turns the y axis up, as DirectX has it.
        yield {
            "dispatch_fragment": {
                "vertex_shader_ref": shaders["Vertex"],
                "fragment_shader_ref": shaders["Pixel"],
                "color_attachment_refs": [target.name],
                **self._vertices(),
                "viewport": {"y": extent.height, "width": extent.width, "height": -extent.height},
                "depth_attachment": {"resource_ref": "depth", "compare_op": "LESS_OR_EQUAL"},
                **shared,
            }
        }

    def _vertices(self) -> dict[str, Json]:
        bindings, count = self._pipeline.bindings, self._pipeline.dispatch_parameters.vertex_count
        keys: dict[str, Json] = {"topology": _TOPOLOGIES[bindings.topology]}
        if bindings.vertex_buffer:
            buffer = self._buffers[bindings.vertex_buffer]
            self._add("buffer", buffer.name, **self._content(buffer, 0))
            sizes = [numbers(["0"], each.format).nbytes * each.channels for each in bindings.vertex_attributes]
            stride = max(each.offset + size for each, size in zip(bindings.vertex_attributes, sizes, strict=True))
            count = buffer.rows()[0].nbytes // stride if count is None else count
            keys["vertex_attributes"] = [
                {
                    "location": location,
                    "resource_ref": buffer.name,
                    "stride": stride,
                    "offset": each.offset,
                    "format": format_of(each.format, each.channels),
                }
                for location, each in enumerate(bindings.vertex_attributes)
            ]
        return keys | {"vertex_count": count or 0}

    def expect_results(self) -> None:
        """Add the rules of the section Results."""
        for result in self._pipeline.results:
            actual, expected = self._buffers[result.actual], self._buffers[result.expected]
            tolerance = _tolerance(result, expected.format)
            for index, row in enumerate(expected.rows()):
                self._expect(_uid(actual, index), row, tolerance, actual)

    def expect_printed(self, lines: Sequence[str]) -> None:
        """Add rules for the numbers in lines that FileCheck finds in the printed buffers.

        Numbers without a name belong to the next written buffer of that size.
        """
        resources = [resource for each in self._pipeline.descriptor_sets for resource in each.resources]
        written = {resource.name for resource in resources if resource.is_written}
        written.add(self._pipeline.bindings.render_target)
        left = [buffer for buffer in self._pipeline.buffers if buffer.name in written]
        named: DataBuffer | None = None
        for match in _PRINTED.finditer(" ".join(lines)):
            if match["name"]:
                named = self._buffers.get(match["name"])
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
        self.is_unchecked = not self.outputs

    def _expect_printed_row(self, buffer: DataBuffer, index: int, texts: Sequence[str], *, is_loose: bool) -> None:
        values = numbers(texts, buffer.format)
        tolerance: dict[str, Json] = {}
        if values.dtype.kind == "f" and buffer.format != "Float16":
            tolerance = {"rtol": 1e-2 if is_loose else 1e-5, "atol": 0}
        missing = buffer.rows()[index].size - values.size
        if missing > 0 and values.size:
            tolerance["at"] = 0
        if missing == 0 or "at" in tolerance:
            self._expect(_uid(buffer, index), values, tolerance, buffer)

    def _expect(
        self, uid: str, values: numpy.ndarray, tolerance: dict[str, Json], image: DataBuffer | None = None
    ) -> None:
        if uid not in self._entries:
            raise ValueError(f"no descriptor binds {uid!r:.60}")
        array = _shaped(values, image) if image and "image" in self._entries[uid] else values
        source = {"file": self._save(f"{uid}_expected", array)}
        if "at" in tolerance:
            source = {"values": values.tolist(), "dtype": values.dtype.name}
        before = self.outputs.get(uid)
        rules = [*(before if isinstance(before, list) else [before] if before else []), {**source, **tolerance}]
        self.outputs[uid] = rules if len(rules) > 1 else rules[0]


def _texts(row: str) -> list[str]:
    """Split the numbers of a printed list; {{3.14.*}} is a regular expression of FileCheck."""
    return [text.strip(" {}*").removesuffix(".") for text in row.split(",") if text.strip()]


def _uid(buffer: DataBuffer, index: int) -> str:
    return buffer.name if buffer.array_size == 1 else f"{buffer.name}_{index}"


def _shaped(row: numpy.ndarray, buffer: DataBuffer) -> numpy.ndarray:
    extent = buffer.output_props
    return row if extent is None else row.reshape(1, extent.height, extent.width, -1)


def _keys_of(sampler: Sampler) -> dict[str, Json]:
    return {
        "min_filter": sampler.min_filter.upper(),
        "mag_filter": sampler.mag_filter.upper(),
        "border_address_mode": _ADDRESS_MODES[sampler.address],
    }


def _tolerance(result: Result, format: DataFormat) -> dict[str, Json]:
    if result.rule == "BufferExact":
        return {}
    denormals = {"denormals": "any"} if result.denorm_mode == "Any" and format != "Float16" else {}
    if result.rule == "BufferFloatULP":
        return {"ulp": result.ulp, **({"zero": result.zero_tolerance} if result.zero_tolerance else {}), **denormals}
    # The suite demands a smaller difference.
    type = numpy.float64 if format == "Float64" else numpy.float32
    return {"atol": float(max(numpy.nextafter(type(result.epsilon), type(0)), 0)), **denormals}

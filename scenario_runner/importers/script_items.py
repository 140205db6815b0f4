"""Scenario and expectations of a script.

Resources are written last, because an expectation gives a buffer its output file. A buffer that a later command
writes is captured at a frame boundary before that command.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final

import numpy

from scenario_runner.errors import UnsupportedError
from scenario_runner.errors.text import Json, reason_of
from scenario_runner.files.input import CHECK_FILE, SCENARIO_FILE
from scenario_runner.files.vk_formats import Format
from scenario_runner.importers.item_folders import RECORD, ItemWriter, JsonObject, file_error, filled
from scenario_runner.importers.memory_layouts import Bytes, Element, wrapped
from scenario_runner.importers.script import (
    DEPTH_BUFFER,
    FRAMEBUFFER,
    Attached,
    Bound,
    Buffer,
    Clear,
    Copy,
    Dispatch,
    Draw,
    Expectations,
    Pipeline,
    SameContent,
    Script,
    Shader,
    Texels,
    Values,
)

_EXTENSIONS: Final = {"compute": ".comp", "vertex": ".vert", "fragment": ".frag"}
_WRITTEN_KINDS: Final = ("storage", "storage_texel_buffer", "storage_image")
_DEPTH_FORMAT: Final = "D32_SFLOAT_S8_UINT"
_EMPTY_SHADER: Final = Shader("no_fragment_shader", "fragment", "GLSL", "#version 450\nvoid main() {}\n")
"""The fragment shader of pipelines without one."""


def write_item(script: Script, folder: str, expected_fail: str, assemble: Callable[[Shader], bytes]) -> None:
    """Write scenario.json, check.json and the files of a script.

    Raises FileError, and UnsupportedError for a feature that scenarios lack.
    """
    writer = ItemWriter(folder, script.buffers)
    _ScriptItem(script, writer, assemble).write()
    features = sorted(script.features - {"robustBufferAccess"})
    needs = filled({"features": features, "extensions": sorted(script.extensions)})
    is_robust = "robustBufferAccess" in script.features
    writer.finish(
        {
            "needs": needs and needs | {"at_least": True},
            "robustness": is_robust,
            "expected_fail": expected_fail,
        }
    )


class _ScriptItem:
    """The translation of a script. ``_known`` has the names of pieces that exist, by their content."""

    def __init__(self, script: Script, writer: ItemWriter, assemble: Callable[[Shader], bytes]) -> None:
        self._script, self._writer, self._assemble = script, writer, assemble
        self._known: dict[object, str] = {}
        self._used: set[str] = set()
        self._has_virtual_files = False
        self._samplers: dict[str, JsonObject] = {}
        self._texel_buffers: set[str] = set()
        runs = [row.pipeline for row in script.commands if isinstance(row, Dispatch | Draw | Clear)]
        self._pipelines = {id(pipeline): pipeline for pipeline in runs}.values()
        self._add_default_attachments()
        self._images = self._find_images()
        self._expectations = Expectations(script, self._images)

    def _add_default_attachments(self) -> None:
        """Give each graphics pipeline a colour attachment, and attachments the size of their pipeline."""
        buffers = self._script.buffers
        for pipeline in self._pipelines:
            if pipeline.is_compute:
                continue
            if not pipeline.colors:
                pipeline.colors[0] = FRAMEBUFFER, 0
                if FRAMEBUFFER not in buffers:
                    self._script.add_image(FRAMEBUFFER)
            if pipeline.depth_test is not None and not pipeline.depth:
                pipeline.depth = DEPTH_BUFFER
                if DEPTH_BUFFER not in buffers:
                    self._script.add_image(DEPTH_BUFFER, _DEPTH_FORMAT)
            for name, lod in pipeline.targets:
                if not buffers[name].size[0]:
                    buffers[name].size = pipeline.size[0] << lod, pipeline.size[1] << lod

    def _find_images(self) -> set[str]:
        """Return the names of all images. Buffers that are compared with images or copied are images, too."""
        buffers = self._script.buffers
        bound = [row for pipeline in self._pipelines for row in pipeline.bindings if row.kind != "sampler"]
        images = {name for row in bound if row.is_image for name in row.names}
        images.update(name for pipeline in self._pipelines for name, _ in pipeline.targets)
        used = {name for row in bound if not row.is_image for name in row.names}
        used.update(row.buffer for pipeline in self._pipelines for row in pipeline.vertex_data)
        if images & used:
            raise UnsupportedError("images that are also bound as buffers")
        images.update(name for name, row in buffers.items() if (row.is_image or row.size[0]) and name not in used)
        for command in self._script.commands:
            if isinstance(command, SameContent | Copy) and not images.isdisjoint(command[:2]):
                images.update(command[:2])
                size = max(buffers[name].size for name in command[:2])
                for name in command[:2]:
                    buffers[name].size = buffers[name].size if buffers[name].size[0] else size
        for name in images:
            buffers[name].size = buffers[name].size if buffers[name].size[0] else (buffers[name].count, 1)
        return images

    def write(self) -> None:
        """Add the commands, the expectations between them, and the used buffers and images."""
        for row in self._script.commands:
            if isinstance(row, Values | Texels | SameContent):
                self._expectations.add(row)
                continue
            self._capture(_written(row))
            if isinstance(row, Dispatch):
                keys = self._shared_keys(row.pipeline, ("compute",)) | {"rangeND": list(row.groups)}
                self._writer.add_command("dispatch_compute", keys)
            elif isinstance(row, Draw):
                self._writer.add_command("dispatch_fragment", self._draw(row))
            elif isinstance(row, Clear):
                self._clear(row)
            else:
                target: Json = {"resource_ref": row.target, "offset": row.offset} if row.offset else row.target
                self._writer.add_command("copy", {"from": row.source, "to": target})
                self._used |= {row.source, row.target}
        self._used |= self._expectations.buffers
        for name, buffer in self._script.buffers.items():
            if name in self._used:
                add = self._add_image if name in self._images else self._add_buffer
                add(buffer)
        self._writer.outputs = self._expectations.outputs()

    def _capture(self, written: set[str]) -> None:
        """End a frame before a command writes buffers with an expectation."""
        names = sorted(self._expectations.final & written)
        if names:
            frame = self._expectations.end_frame(names)
            self._writer.add_command("mark_boundary", {"resources": list[Json](names), "frame_id": frame})

    def _shared_keys(self, pipeline: Pipeline, stages: Sequence[str]) -> JsonObject:
        """Return the keys of dispatches and draws: shaders, bindings and push constants."""
        keys: JsonObject = {}
        for stage in stages:
            keys["shader_ref" if stage == "compute" else f"{stage}_shader_ref"] = self._shader(pipeline, stage)
        keys["bindings"] = [self._binding(row) for row in pipeline.bindings]
        if pipeline.push_constants:
            buffer = self._script.buffers[pipeline.push_constants]
            if buffer.data is not None:
                self._check_size(buffer, len(buffer.data))
                data = buffer.data[: len(buffer.data) - buffer.element.size_bytes + buffer.element.end]
                keys["push_data_ref"] = self._data("raw_data", buffer.name, _numbers(data, buffer.element), {})
        return keys

    def _data(self, kind: str, stem: str, numbers: numpy.ndarray, keys: JsonObject) -> str:
        """Add a resource with constant content, unless it exists already."""
        key = kind, numbers.tobytes()
        if key not in self._known:
            uid = self._known[key] = self._writer.new_name(stem)
            self._writer.add(kind, uid, {"src": self._writer.source(uid, numbers, may_fill=False)} | keys)
        return self._known[key]

    def _shader(self, pipeline: Pipeline, stage: str) -> str:
        """Add a shader, unless it exists already."""
        if stage not in pipeline.shaders and stage != "fragment":
            raise UnsupportedError(f"a pipeline without a {stage} shader")
        shader, entry, constants = attached = pipeline.shaders.get(stage, Attached(_EMPTY_SHADER))
        is_full = shader.name in pipeline.full_subgroups
        key = shader.name, stage, attached[1:], is_full
        if key not in self._known:
            self._known[key] = self._writer.new_name(shader.name)
            has_target = shader.language == "GLSL" and shader.target_env
            keys: JsonObject = {
                "src": self._source(shader, stage),
                "stage": stage,
                "type": "HLSL" if shader.language == "HLSL" else "",
                "include_dirs": ["."] if shader.language == "HLSL" else [],
                "build_options": f"--target-env {shader.target_env}" if has_target else "",
                "entry": entry if entry != "main" else "",
                "specialization_constants": [{"id": id, "value": value} for id, value in constants],
                "full_subgroups": is_full,
            }
            self._writer.add("shader", self._known[key], filled(keys))
        return self._known[key]

    def _source(self, shader: Shader, stage: str) -> str:
        """Write the file of a shader and the virtual files, unless they exist already. Return the name."""
        key = "source", shader.name, stage
        if key not in self._known:
            if not self._has_virtual_files:
                for path, text in self._script.virtual_files.items():
                    self._write_virtual(path, text.encode())
                self._has_virtual_files = True
            if shader.path in self._script.virtual_files:
                self._known[key] = shader.path
            else:
                content = self._assemble(shader) if shader.language == "SPIRV-ASM" else shader.text
                content = content if isinstance(content, bytes) else content.encode()
                extension = {"HLSL": ".hlsl", "GLSL": _EXTENSIONS[stage]}.get(shader.language, ".spv")
                self._known[key] = self._writer.write(shader.name, extension, content)
        return self._known[key]

    def _write_virtual(self, name: str, content: bytes) -> None:
        path = os.path.normpath(os.path.join(self._writer.folder, name))
        if not path.startswith(os.path.join(self._writer.folder, "")):
            raise file_error(self._script.path, f"the file {name!r:.60} is outside of the script's folder")
        if os.path.lexists(path) or os.path.basename(path) in (SCENARIO_FILE, CHECK_FILE, RECORD):
            raise file_error(self._script.path, f"the file {name!r:.60} has the name of another file")
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
        except OSError as error:
            message = f"the file {name!r:.60} cannot be written: {reason_of(error)}"
            raise file_error(self._script.path, message) from None

    def _binding(self, bound: Bound) -> JsonObject:
        formats: set[str] = set()
        entries: list[JsonObject] = []
        for index, name in enumerate(bound.names):
            if bound.kind == "sampler":
                entries.append({"resource_ref": self._sampler(name)})
                continue
            self._used.add(name)
            if bound.is_texel_buffer:
                formats.add(self._format_of(name).name)
                self._texel_buffers.add(name)
            elif bound.samplers:
                self._set_sampler(name, bound.samplers[index % len(bound.samplers)], bound.lod)
            offset = bound.offsets[index] if bound.offsets else 0
            entry = filled({"resource_ref": name, "lod": bound.lod, "offset": offset})
            if bound.sizes and bound.sizes[index] >= 0:
                entry["size"] = bound.sizes[index]
            entries.append(entry)
        place = filled({"format": max(formats, default="")})
        place |= {"resource_refs": list[Json](entries)} if bound.is_array else entries[0]
        return {"set": bound.set, "id": bound.binding} | place

    def _format_of(self, name: str) -> Format:
        format = self._script.buffers[name].element.format
        if format is None:
            raise UnsupportedError("texels of matrices or structs")
        if format.is_compressed:
            raise UnsupportedError("compressed images")
        return format

    def _sampler(self, name: str) -> str:
        """Add an image that only has a sampler."""
        key = "sampler", name
        if key not in self._known:
            uid = self._known[key] = self._writer.new_name(name)
            self._set_sampler(uid, name, 0)
            self._writer.add_sampler(uid, self._samplers[uid])
        return self._known[key]

    def _set_sampler(self, image: str, sampler: str, lod: int | None) -> None:
        keys = dict(self._script.samplers[sampler])
        max_lod = keys.pop("max_lod", 1.0)
        buffer = self._script.buffers.get(image)
        if buffer is not None and not lod and buffer.mips - 1 > float(str(max_lod)):
            raise UnsupportedError("samplers with a greatest level below the last level of the image")
        if self._samplers.setdefault(image, keys) != keys:
            raise UnsupportedError("images with two samplers")

    def _draw(self, row: Draw) -> JsonObject:
        pipeline = row.pipeline
        keys = self._shared_keys(pipeline, ("vertex", "fragment"))
        if "fragment" in pipeline.shaders:
            keys["color_attachment_refs"] = self._attachments(pipeline)
        else:
            keys["render_extent"] = list(pipeline.size)
        keys |= row.keys | pipeline.state
        if row.vertices:
            vertices = wrapped(row.vertices, "float32")
            buffer = self._data("buffer", "vertices", vertices, {"shader_access": "readonly", "size": vertices.nbytes})
            place: JsonObject = {"location": 0, "resource_ref": buffer, "format": "VK_FORMAT_R32G32_SFLOAT"}
            keys |= {"vertex_count": len(row.vertices) // 2, "vertex_attributes": [place]}
        else:
            self._used.update(data.buffer for data in pipeline.vertex_data)
            keys["vertex_attributes"] = [
                {"location": data.location, "resource_ref": data.buffer} | data.keys for data in pipeline.vertex_data
            ]
        if row.indexed:
            self._used.add(pipeline.indices)
            size_bits = 8 * self._script.buffers[pipeline.indices].element.size_bytes
            keys["index_buffer"] = {"resource_ref": pipeline.indices, "index_type": f"UINT{size_bits}"}
        if pipeline.depth_test is not None:
            self._used.add(pipeline.depth)
            keys["depth_attachment"] = {"resource_ref": pipeline.depth} | pipeline.depth_test
        return keys

    def _attachments(self, pipeline: Pipeline) -> list[Json]:
        if sorted(pipeline.colors) != list(range(len(pipeline.colors))):
            raise UnsupportedError("gaps between colour attachments")
        targets = [pipeline.colors[location] for location in range(len(pipeline.colors))]
        self._used.update(name for name, _ in targets)
        return [{"resource_ref": name, "lod": lod} if lod else name for name, lod in targets]

    def _clear(self, row: Clear) -> None:
        for name, lod in row.pipeline.colors.values():
            format = self._format_of(name)
            value: list[float] = row.color
            if format.is_normalized:
                value = [min(max(number, -1.0 if format.numeric == "snorm" else 0.0), 1.0) for number in row.color]
            elif format.is_integer:  # Amber gives the bits of floats
                bits = wrapped(row.color, "float32").view("u4").tolist()
                value = [number & ((1 << size) - 1) for number, size in zip(bits, format.channel_bits, strict=False)]
            keys: JsonObject = {"resource_ref": name, "value": list[Json](value)}
            self._writer.add_command("fill", keys | filled({"lod": lod}))
        if row.pipeline.depth:
            self._writer.add_command("fill", {"resource_ref": row.pipeline.depth, "value": row.depth})
        self._used.update(name for name, _ in row.pipeline.targets)

    def _check_size(self, buffer: Buffer, size_bytes: int) -> None:
        if size_bytes == 0:
            raise file_error(self._script.path, f"the buffer {buffer.name!r} has no size", "give it a size or content")

    def _add_buffer(self, buffer: Buffer) -> None:
        data = buffer.data
        if data is not None and buffer.name in self._texel_buffers:
            data = _without_padding(data, buffer.element)
        size_bytes = buffer.count * buffer.element.size_bytes if data is None else len(data)
        self._check_size(buffer, size_bytes)
        keys = self._writer.add("buffer", buffer.name, {"shader_access": "readwrite", "size": size_bytes})
        if data is not None and data.any():
            keys["src"] = self._writer.source(buffer.name, _numbers(data, buffer.element))

    def _add_image(self, buffer: Buffer) -> None:
        format = self._format_of(buffer.name)
        width, height = buffer.size
        if width == 0:
            message = f"the image {buffer.name!r} has no size"
            raise file_error(self._script.path, message, "draw into it, or give it a size")
        keys: JsonObject = {"format": format.name, "dims": [1, width, height, 1], "shader_access": "readwrite"}
        keys = self._writer.add("image", buffer.name, keys)
        if buffer.mips > 1:
            keys["mips"] = buffer.mips
        if any(buffer.name == name for row in self._pipelines for name, _ in row.colors.values()):
            keys["color_attachment"] = True
        if buffer.picture:
            keys["src"] = self._writer.write(buffer.name, ".png", buffer.picture)
        elif buffer.data is not None and buffer.data.any():
            if buffer.count != width * height:
                message = f"the image {buffer.name!r} has {buffer.count} texels, expected {width} x {height}"
                raise file_error(self._script.path, message, "correct the size")
            texels = _without_padding(buffer.data, buffer.element)
            array = texels.view(numpy.dtype(format.numpy_dtype)).reshape(height, width, -1)
            keys["src"] = self._writer.save(buffer.name, array)
        keys |= self._samplers.get(buffer.name, {})


def _numbers(data: Bytes, element: Element) -> numpy.ndarray:
    return data.view(element.dtype or "uint8")


def _without_padding(data: Bytes, element: Element) -> Bytes:
    """Return texels one after the other, as devices read them: three components have no padding."""
    return data.reshape(-1, element.size_bytes)[:, : element.end].reshape(-1)


def _written(row: Dispatch | Draw | Clear | Copy) -> set[str]:
    """Return the names of all buffers that a command may write."""
    if isinstance(row, Copy):
        return {row.target}
    names = {name for name, _ in row.pipeline.targets}
    if not isinstance(row, Clear):
        bound = row.pipeline.bindings
        names.update(name for each in bound if each.kind in _WRITTEN_KINDS for name in each.names)
    return names

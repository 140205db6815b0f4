"""Scenario and expectations of a script.

Resources are written last, because an expectation gives a buffer its output file. A buffer that a later command
writes is captured at a frame boundary before that command.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from typing import Final

import numpy

from scenario_runner.errors import UnsupportedError
from scenario_runner.errors.text import Json, numbered
from scenario_runner.files.vk_formats import Format
from scenario_runner.importers.item_folders import CHECK, SCENARIO, file_error, write_json
from scenario_runner.importers.memory_layouts import Bytes, Element, content_of
from scenario_runner.importers.script_expectations import Expectations, JsonObject
from scenario_runner.importers.shader_script import (
    FRAMEBUFFER,
    Bound,
    Buffer,
    Clear,
    Copy,
    Dispatch,
    Draw,
    Pipeline,
    SameContent,
    Script,
    Shader,
    Texels,
    Values,
    empty_fragment_shader,
    framebuffer,
)

_EXTENSIONS: Final = {"compute": ".comp", "vertex": ".vert", "fragment": ".frag"}
_WRITTEN_KINDS: Final = ("storage", "storage_texel_buffer", "storage_image")
_DEPTH_BUFFER: Final = "depth_buffer"
_DEPTH_FORMAT: Final = "D32_SFLOAT_S8_UINT"


def write_item(script: Script, folder: str, expected_fail: str, assemble: Callable[[Shader], bytes]) -> None:
    """Write scenario.json, check.json and the files of a script. Raises FileError, and UnsupportedError for a feature
    that scenarios lack.
    """
    item = _Item(script, folder, assemble)
    item.add_commands()
    item.add_resources()
    features = sorted(script.features - {"robustBufferAccess"})
    needs = _filled({"features": features, "extensions": sorted(script.extensions)})
    check: JsonObject = {
        "outputs": item.outputs,
        "needs": needs and needs | {"at_least": True},
        "robustness": "robustBufferAccess" in script.features,
        "expected_fail": expected_fail,
    }
    write_json(folder, SCENARIO, {"resources": item.resources, "commands": item.commands})
    write_json(folder, CHECK, _filled(check))


def _filled(keys: JsonObject) -> JsonObject:
    """Return the keys with a value that is not empty."""
    return {key: value for key, value in keys.items() if value}


class _Item:
    def __init__(self, script: Script, folder: str, assemble: Callable[[Shader], bytes]) -> None:
        self.resources: list[Json] = []
        self.commands: list[Json] = []
        self._script, self._folder, self._assemble = script, folder, assemble
        self._taken = {name.casefold() for name in script.buffers}
        self._uids: dict[object, str] = {}
        self._samplers: dict[str, JsonObject] = {}
        self._texel_buffers: set[str] = set()
        pipelines = {
            id(row.pipeline): row.pipeline for row in script.commands if isinstance(row, Dispatch | Draw | Clear)
        }
        self._pipelines = list(pipelines.values())
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
                pipeline.colors[0] = buffers.setdefault(FRAMEBUFFER, framebuffer()).name, 0
            if pipeline.depth_test is not None and not pipeline.depth:
                pipeline.depth = _DEPTH_BUFFER
                buffers.setdefault(_DEPTH_BUFFER, framebuffer(_DEPTH_FORMAT, _DEPTH_BUFFER))
            for name, lod in (*pipeline.colors.values(), *([(pipeline.depth, 0)] if pipeline.depth else ())):
                if not buffers[name].size[0]:
                    buffers[name].size = pipeline.size[0] << lod, pipeline.size[1] << lod

    def _find_images(self) -> set[str]:
        """Return the names of all images. Buffers that are compared with images or copied are images, too."""
        buffers = self._script.buffers
        bound = [row for pipeline in self._pipelines for row in pipeline.bindings if not row.is_sampler]
        images = {name for row in bound if row.is_image for name in row.names}
        images.update(name for row in self._pipelines for name, _ in row.colors.values())
        images.update(row.depth for row in self._pipelines if row.depth)
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
                    buffers[name].size = size if not buffers[name].size[0] else buffers[name].size
        for name in images:
            buffers[name].size = buffers[name].size if buffers[name].size[0] else (buffers[name].count, 1)
        return images

    @property
    def outputs(self) -> JsonObject:
        """The rules of all outputs."""
        return self._expectations.outputs()

    def add_commands(self) -> None:
        """Add the commands, and note the expectations between them."""
        for row in self._script.commands:
            if isinstance(row, Values | Texels | SameContent):
                self._expectations.add(row)
                continue
            self._capture(_written(row))
            if isinstance(row, Dispatch):
                self._add("dispatch_compute", self._shared_keys(row.pipeline) | {"rangeND": list(row.groups)})
            elif isinstance(row, Draw):
                self._add("dispatch_fragment", self._draw(row))
            elif isinstance(row, Clear):
                self._clear(row)
            else:
                target: Json = {"resource_ref": row.target, "offset": row.offset} if row.offset else row.target
                self._add("copy", {"from": row.source, "to": target})
                self._use(row.source, row.target)

    def _add(self, kind: str, keys: JsonObject) -> None:
        self.commands.append({kind: keys})

    def _use(self, *names: str) -> None:
        self._uids.update((("buffer", name), name) for name in names)

    def _capture(self, written: set[str]) -> None:
        """End a frame before a command writes buffers with an expectation."""
        names = sorted(self._expectations.final & written)
        if names:
            frame = self._expectations.end_frame(names)
            self._add("mark_boundary", {"resources": list[Json](names), "frame_id": frame})

    def _shared_keys(self, pipeline: Pipeline) -> JsonObject:
        """Return the keys of dispatches and draws: shaders, bindings and push constants."""
        stages = ("compute",) if pipeline.is_compute else ("vertex", "fragment")
        keys: JsonObject = {}
        for stage in stages:
            key = "shader_ref" if stage == "compute" else f"{stage}_shader_ref"
            keys[key] = self._shader(pipeline, stage)
        keys["bindings"] = [self._binding(row) for row in pipeline.bindings]
        if pipeline.push_constants:
            buffer = self._script.buffers[pipeline.push_constants]
            if buffer.data is not None:
                data = buffer.data[: len(buffer.data) - buffer.element.size_bytes + buffer.element.end]
                keys["push_data_ref"] = self._data("raw_data", buffer.name, data, buffer.element.dtype)
        return keys

    def _data(self, kind: str, stem: str, data: Bytes, dtype: str | None) -> str:
        """Add a resource with constant bytes, once."""
        key = kind, data.tobytes()
        if key not in self._uids:
            uid = self._uids[key] = self._new_name(stem)
            body: JsonObject = {"uid": uid, "src": self._content(uid, data, dtype, may_fill=False)}
            keys: JsonObject = {"shader_access": "readonly", "size": len(data)} if kind == "buffer" else {}
            self.resources.append({kind: body | keys})
        return self._uids[key]

    def _shader(self, pipeline: Pipeline, stage: str) -> str:
        if stage not in pipeline.shaders and stage != "fragment":
            raise UnsupportedError(f"a pipeline without a {stage} shader")
        shader, entry, constants = pipeline.shaders.get(stage) or (empty_fragment_shader(), "main", ())
        is_full = shader.name in pipeline.full_subgroups
        key = shader.name, stage, entry, constants, is_full
        if key in self._uids:
            return self._uids[key]
        uid = self._uids[key] = self._new_name(shader.name)
        is_hlsl, has_target = shader.language == "HLSL", shader.language == "GLSL" and shader.target_env
        body: JsonObject = {
            "uid": uid,
            "src": self._source(shader, stage),
            "stage": stage,
            "type": "HLSL" if is_hlsl else "",
            "include_dirs": ["."] if is_hlsl else [],
            "build_options": f"--target-env {shader.target_env}" if has_target else "",
            "entry": entry if entry != "main" else "",
            "specialization_constants": [{"id": id, "value": value} for id, value in constants],
            "full_subgroups": is_full,
        }
        self.resources.append({"shader": _filled(body)})
        return uid

    def _source(self, shader: Shader, stage: str) -> str:
        """Write the file of a shader, once, and return the name."""
        key = "source", shader.name, stage
        if key not in self._uids:
            for path, text in self._script.virtual_files.items():
                self._write(path, text.encode())
            content = self._assemble(shader) if shader.language == "SPIRV-ASM" else shader.text
            if shader.path in self._script.virtual_files:
                self._uids[key] = shader.path
            else:
                extension = {"HLSL": ".hlsl", "GLSL": _EXTENSIONS[stage]}.get(shader.language, ".spv")
                self._uids[key] = self._file_name(shader.name, extension)
                self._write(self._uids[key], content if isinstance(content, bytes) else content.encode())
        return self._uids[key]

    def _write(self, name: str, content: bytes) -> None:
        path = os.path.normpath(os.path.join(self._folder, name))
        if not path.startswith(os.path.join(self._folder, "")):
            raise file_error(self._script.path, f"the file {name!r} is outside of the script's folder")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)

    def _new_name(self, stem: str) -> str:
        name = numbered(stem, "", lambda name: name.casefold() in self._taken)
        self._taken.add(name.casefold())
        return name

    def _file_name(self, stem: str, extension: str) -> str:
        return self._new_name(re.sub(r"[^\w.-]", "_", stem) + extension)

    def _binding(self, bound: Bound) -> JsonObject:
        format = None
        entries: list[JsonObject] = []
        for index, name in enumerate(bound.names):
            if bound.is_sampler:
                entries.append({"resource_ref": self._sampler(name)})
                continue
            self._use(name)
            if bound.kind in ("uniform_texel_buffer", "storage_texel_buffer"):
                format = self._format_of(name)
                self._texel_buffers.add(name)
            elif bound.samplers:
                self._set_sampler(name, bound.samplers[index % len(bound.samplers)], bound.lod)
            entry: JsonObject = {"resource_ref": name}
            if bound.lod:
                entry["lod"] = bound.lod
            if bound.offsets and bound.offsets[index]:
                entry["offset"] = bound.offsets[index]
            if bound.sizes and bound.sizes[index] >= 0:
                entry["size"] = bound.sizes[index]
            entries.append(entry)
        binding: JsonObject = {"set": bound.set, "id": bound.binding}
        if format is not None:
            binding["format"] = format.name
        return binding | ({"resource_refs": list[Json](entries)} if bound.is_array else entries[0])

    def _format_of(self, name: str) -> Format:
        format = self._script.buffers[name].format
        if format is None:
            raise UnsupportedError("texels of matrices or structs")
        return format

    def _sampler(self, name: str) -> str:
        """Add an image that only has a sampler."""
        key = "sampler", name
        if key not in self._uids:
            uid = self._uids[key] = self._new_name(name)
            self._set_sampler(uid, name, 0)
            body: JsonObject = {"uid": uid, "format": "VK_FORMAT_R8G8B8A8_UNORM", "dims": [1, 1, 1, 1]}
            self.resources.append({"image": body | {"shader_access": "readonly"} | self._samplers[uid]})
        return self._uids[key]

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
        keys = self._shared_keys(pipeline)
        if "fragment" in pipeline.shaders:
            keys["color_attachment_refs"] = self._attachments(pipeline)
        else:
            keys["render_extent"] = list(pipeline.size)
        keys |= row.keys | pipeline.state
        if row.vertices:
            vertices = numpy.array(row.vertices, "f4").view(numpy.uint8)
            attribute: JsonObject = {
                "location": 0,
                "resource_ref": self._data("buffer", "vertices", vertices, "float32"),
            }
            keys["vertex_count"] = len(row.vertices) // 2
            keys["vertex_attributes"] = [attribute | {"format": "VK_FORMAT_R32G32_SFLOAT"}]
        else:
            self._use(*(data.buffer for data in pipeline.vertex_data))
            keys["vertex_attributes"] = [
                {"location": data.location, "resource_ref": data.buffer} | data.keys for data in pipeline.vertex_data
            ]
        if row.indexed:
            self._use(pipeline.indices)
            size_bits = 8 * self._script.buffers[pipeline.indices].element.size_bytes
            keys["index_buffer"] = {"resource_ref": pipeline.indices, "index_type": f"UINT{size_bits}"}
        if pipeline.depth_test is not None:
            self._use(pipeline.depth)
            keys["depth_attachment"] = {"resource_ref": pipeline.depth} | pipeline.depth_test
        return keys

    def _attachments(self, pipeline: Pipeline) -> list[Json]:
        if sorted(pipeline.colors) != list(range(len(pipeline.colors))):
            raise UnsupportedError("gaps between colour attachments")
        targets = [pipeline.colors[location] for location in range(len(pipeline.colors))]
        self._use(*(name for name, _ in targets))
        return [{"resource_ref": name, "lod": lod} if lod else name for name, lod in targets]

    def _clear(self, row: Clear) -> None:
        for name, lod in row.pipeline.colors.values():
            format = self._format_of(name)
            value = list(row.color)
            if format.is_normalized:
                value = [min(max(number, -1.0 if format.numeric == "snorm" else 0.0), 1.0) for number in value]
            elif format.is_integer:  # Amber gives the bits of floats
                bits = numpy.array(row.color, "f4").view("u4").tolist()
                value = [number & ((1 << size) - 1) for number, size in zip(bits, format.channel_bits, strict=False)]
            self._add("fill", {"resource_ref": name, "value": list[Json](value)} | ({"lod": lod} if lod else {}))
            self._use(name)
        if row.pipeline.depth:
            self._add("fill", {"resource_ref": row.pipeline.depth, "value": row.depth})
            self._use(row.pipeline.depth)

    def add_resources(self) -> None:
        """Add the used buffers and images."""
        self._use(*self._expectations.buffers)
        for name, buffer in self._script.buffers.items():
            if ("buffer", name) in self._uids:
                kind = "image" if name in self._images else "buffer"
                body = self._image(buffer) if kind == "image" else self._buffer(buffer)
                if name in self._expectations.final:
                    body["dst"] = self._file_name(f"{name}_output", ".npy")
                self.resources.append({kind: body})

    def _buffer(self, buffer: Buffer) -> JsonObject:
        body: JsonObject = {"uid": buffer.name, "shader_access": "readwrite"}
        data = buffer.data
        if data is not None and buffer.name in self._texel_buffers:
            data = _without_padding(data, buffer.element)
        size_bytes = buffer.count * buffer.element.size_bytes if data is None else len(data)
        if size_bytes == 0:
            raise file_error(self._script.path, f"the buffer {buffer.name!r} has no size", "give it a size or content")
        if data is None or not data.any():
            return body | {"size": size_bytes}
        return body | {"size": size_bytes, "src": self._content(buffer.name, data, buffer.element.dtype)}

    def _content(self, name: str, data: Bytes, dtype: str | None, *, may_fill: bool = True) -> Json:
        content = content_of(data, dtype, may_fill=may_fill)
        if content is not None:
            return content
        return self._save(name, data.view(numpy.dtype(dtype or "uint8")))

    def _save(self, stem: str, array: numpy.ndarray) -> str:
        """Write an array, and return the name of the file."""
        file = self._file_name(stem, ".npy")
        numpy.save(os.path.join(self._folder, file), array)
        return file

    def _image(self, buffer: Buffer) -> JsonObject:
        format = self._format_of(buffer.name)
        width, height = buffer.size
        if width == 0:
            raise file_error(
                self._script.path, f"the image {buffer.name!r} has no size", "draw into it, or give it a size"
            )
        body: JsonObject = {"uid": buffer.name, "format": format.name, "dims": [1, width, height, 1]}
        body["shader_access"] = "readwrite"
        if buffer.mips > 1:
            body["mips"] = buffer.mips
        if any(buffer.name == name for row in self._pipelines for name, _ in row.colors.values()):
            body["color_attachment"] = True
        if buffer.picture:
            body["src"] = self._file_name(buffer.name, ".png")
            shutil.copyfile(buffer.picture, os.path.join(self._folder, str(body["src"])))
        elif buffer.data is not None and buffer.data.any():
            texels = _without_padding(buffer.data, buffer.element)
            array = texels.view(numpy.dtype(format.numpy_dtype)).reshape(height, width, -1)
            body["src"] = self._save(buffer.name, array)
        return body | self._samplers.get(buffer.name, {})


def _without_padding(data: Bytes, element: Element) -> Bytes:
    """Return texels one after the other, as devices read them: three components have no padding."""
    return data.reshape(-1, element.size_bytes)[:, : element.end].reshape(-1)


def _written(row: Dispatch | Draw | Clear | Copy) -> set[str]:
    """Return the names of all buffers that a command may write."""
    if isinstance(row, Copy):
        return {row.target}
    pipeline = row.pipeline
    names = {name for name, _ in pipeline.colors.values()} | ({pipeline.depth} - {""})
    if not isinstance(row, Clear):
        names.update(name for bound in pipeline.bindings if bound.kind in _WRITTEN_KINDS for name in bound.names)
    return names

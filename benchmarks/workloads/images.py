"""Images over .dds files: one large copy, and a chain of filters."""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bounds import Bound
from benchmarks.programs import Program
from benchmarks.workloads.workload import Workload, compile_shader, shader, write_scenario

COPY = """#version 450
layout(local_size_x = 16, local_size_y = 16) in;
layout(set = 0, binding = 0) uniform sampler2D source;
layout(set = 0, binding = 1, rgba16f) uniform writeonly image2D target;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    imageStore(target, at, texelFetch(source, at, 0));
}
"""
# Each texel becomes the mean of itself and the right neighbour; the last texel stays.
FILTER = """#version 450
layout(local_size_x = 16, local_size_y = 16) in;
layout(set = 0, binding = 0) uniform sampler2D source;
layout(set = 0, binding = 1, rgba16f) uniform writeonly image2D target;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    ivec2 right = ivec2(min(at.x + 1, textureSize(source, 0).x - 1), at.y);
    imageStore(target, at, 0.5 * (texelFetch(source, at, 0) + texelFetch(source, right, 0)));
}
"""
FORMAT = "VK_FORMAT_R16G16B16A16_SFLOAT"
FILTERS = 10
GROUP = 16
PERIOD = 251  # a prime, so that every row has another pattern


class _Images(Workload):
    """A chain of ``filters`` shaders from picture.dds to result.dds, with an image for each step."""

    shader_text = COPY
    side = 4096
    filters = 1
    time_bound = Bound(must=0.5)
    memory_bound: Bound | None = Bound(must=0.6)
    timeout_s = 300.0

    def make(self, folder: Path, *, quick: bool) -> None:
        if quick:
            self.side = 64
        (folder / "filter.spv").write_bytes(compile_shader(self.shader_text))
        _write_dds(folder / "picture.dds", self._texels())
        names = ["picture", *(f"step{number}" for number in range(1, self.filters)), "result"]
        groups = [self.side // GROUP, self.side // GROUP, 1]
        commands = [
            {"dispatch_compute": {"shader_ref": "filter", "rangeND": groups, "bindings": _bindings(source, target)}}
            for source, target in pairwise(names)
        ]
        resources = [shader("filter", "filter.spv"), *(self._image(name) for name in names)]
        write_scenario(folder / "scenario.json", commands, resources)

    def _image(self, name: str) -> dict[str, Any]:
        keys = {"picture": {"src": "picture.dds"}, "result": {"dst": "result.dds"}}.get(name, {})
        access = {"picture": "readonly", "result": "writeonly"}.get(name, "readwrite")
        dims = [1, self.side, self.side, 1]
        return {"image": {"uid": name, "dims": dims, "format": FORMAT, "shader_access": access, **keys}}

    def _texels(self) -> np.ndarray:
        """Return whole numbers below 251, which 16-bit floats hold exactly; means stay within the precision."""
        row = np.arange(self.side * 4) % PERIOD
        column = np.arange(self.side)[:, None] * 7 % PERIOD
        return ((row + column) % PERIOD).astype(np.float16).reshape(self.side, self.side, 4)

    @abstractmethod
    def _expected(self) -> np.ndarray:
        """Return the expected texels of the file."""

    def check(self, folder: Path, program: Program, output: Path) -> None:
        payload = np.fromfile(output / "result.dds", np.float16)[-self.side * self.side * 4 :]
        got = payload.reshape(self.side, self.side, 4)
        np.testing.assert_allclose(got, self._expected(), rtol=0, atol=self.tolerance)

    tolerance = 0.0


class ImageCopy(_Images):
    """A shader that copies every texel; the files have 134 MB."""

    name = "image-copy"
    title = "a 4096x4096 RGBA16F .dds file in and out"

    def _expected(self) -> np.ndarray:
        return self._texels()


class FilterChain(_Images):
    """Ten filters over images of 34 MB; nine images stay on the device."""

    name = "filter-chain"
    title = f"{FILTERS} filters of 2048x2048 RGBA16F over .dds files"
    shader_text = FILTER
    side = 2048
    filters = FILTERS
    memory_bound = None
    tolerance = 1.0  # each step rounds to eleven bits: at most half of 1/8 for values up to 250

    def _expected(self) -> np.ndarray:
        values = self._texels().astype(np.float32)
        for _ in range(FILTERS):
            values = 0.5 * (values + np.concatenate([values[:, 1:], values[:, -1:]], axis=1))
        return values


def _bindings(source: str, target: str) -> list[dict[str, Any]]:
    """Return bindings for sampling a source and storing to a target. The reference needs types if an image is both."""
    storage = {} if target == "result" else {"descriptor_type": "VK_DESCRIPTOR_TYPE_STORAGE_IMAGE"}
    return [{"set": 0, "id": 0, "resource_ref": source}, {"set": 0, "id": 1, "resource_ref": target, **storage}]


def _write_dds(path: Path, texels: np.ndarray) -> None:
    from scenario_runner.files.codec_table import create_image
    from scenario_runner.files.vk_formats import format_named

    with create_image(path, format_named(FORMAT), texels.shape[1], texels.shape[0], (texels.nbytes,)) as writer:
        writer.write(texels.tobytes())

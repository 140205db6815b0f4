"""For each code of a rule between the parts of a scenario, one input that breaks it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.validation import validate_file
from scenarios.generate import HERE
from tests.scenes import glsl

Entries = list[dict[str, Any]]


def buffer(uid: str = "x", size: int = 16, **keys: Any) -> dict[str, Any]:
    return {"buffer": {"uid": uid, "size": size, "shader_access": "readwrite", **keys}}


def image(uid: str = "i", format: str = "VK_FORMAT_R8G8B8A8_UNORM", **keys: Any) -> dict[str, Any]:
    return {"image": {"uid": uid, "format": format, "dims": [1, 4, 4, 1], "shader_access": "readwrite", **keys}}


def tensor(uid: str = "t", **keys: Any) -> dict[str, Any]:
    return {"tensor": {"uid": uid, "format": "VK_FORMAT_R8_UINT", "dims": [4, 4], "shader_access": "readwrite", **keys}}


def shader(uid: str = "s", **keys: Any) -> dict[str, Any]:
    return {"shader": {"uid": uid, "src": "s.comp", "type": "GLSL", **keys}}


def barrier(kind: str, **keys: Any) -> dict[str, Any]:
    accesses = {"src_access": "memory_write", "dst_access": "memory_read"}
    return {f"{kind}_barrier": {"uid": "b", f"{kind}_resource": keys.pop("of"), **accesses, **keys}}


def layouts(old: str, new: str) -> dict[str, Any]:
    return barrier("image", of="i", old_layout=old, new_layout=new)


def dispatch(*bindings: dict[str, Any], **keys: Any) -> dict[str, Any]:
    bound = [{"set": 0, "id": 0, **binding} for binding in bindings]
    return {"dispatch_compute": {"shader_ref": "s", "rangeND": [1], "bindings": bound, **keys}}


def flow(**keys: Any) -> dict[str, Any]:
    bound = {
        name: {"set": 0, "id": number, "resource_ref": "i"}
        for number, name in enumerate(("search_image", "template_image", "output_image"))
    }
    return {"dispatch_optical_flow": {"width": 4, "height": 4, "grid_size": "1x1", "bindings": bound, **keys}}


BARRIER = {
    "dispatch_barrier": {
        "image_barrier_refs": ["b"],
        "tensor_barrier_refs": [],
        "memory_barrier_refs": [],
        "buffer_barrier_refs": [],
    }
}
GROUP = {"id": "g"}
CONSTANT = {"id": 0, "value": 1}
X, IMAGE = {"resource_ref": "x"}, {"resource_ref": "i"}

INPUTS: dict[str, tuple[Entries, Entries]] = {
    "SR-JSON-008": ([image(mips=True)], []),
    "SR-CONFLICT-002": ([shader(), buffer()], [dispatch({"lod": 1, **X})]),
    "SR-CONFLICT-003": ([image(border_color="INT_CUSTOM_EXT")], []),
    "SR-CONFLICT-004": ([shader(specialization_constants=[CONSTANT, CONSTANT])], []),
    "SR-CONFLICT-005": ([shader(), buffer()], [dispatch(X, X)]),
    "SR-CONFLICT-006": ([shader(stage="vertex"), buffer()], [dispatch(X)]),
    "SR-CONFLICT-007": ([shader(), image()], [dispatch({"lod": 1, **IMAGE})]),
    "SR-CONFLICT-008": ([image()], [flow(mean_flow_l1_norm_hint=4)]),
    "SR-CONFLICT-009": ([buffer(), barrier("buffer", of="x", size=17)], []),
    "SR-CONFLICT-010": (
        [
            image(),
            barrier(
                "image",
                of="i",
                old_layout="undefined",
                new_layout="general",
                subresource_range={"base_mip_level": 1},
            ),
        ],
        [],
    ),
    "SR-MEMORY-001": (
        [
            buffer("a", src="16.npy", memory_group=GROUP),
            buffer("b", src="16.npy", memory_group={"id": "g", "offset": 8}),
        ],
        [],
    ),
    "SR-MEMORY-002": (
        [tensor(format="VK_FORMAT_R32_SFLOAT", memory_group={"id": "g", "offset": 2}), buffer(memory_group=GROUP)],
        [],
    ),
    "SR-MEMORY-003": ([image(mips=2, memory_group=GROUP), buffer(memory_group=GROUP)], []),
    "SR-MEMORY-004": ([image(tiling="OPTIMAL", memory_group=GROUP), buffer(size=64, memory_group=GROUP)], []),
    "SR-MEMORY-005": ([image(memory_group=GROUP), tensor(memory_group={"id": "g", "offset": 4})], []),
    "SR-MEMORY-006": ([image(memory_group=GROUP), tensor(memory_group=GROUP)], []),
    "SR-FILE-006": ([buffer(src="missing.npy")], []),
    "SR-FILE-002": ([buffer(size=8, src="16.npy")], []),
    "SR-FILE-003": ([buffer(src="16.npy", dst="16.npy")], []),
    "SR-FILE-004": ([buffer(dst="x.png")], []),
    "SR-SHADER-014": ([shader(build_options="-what"), buffer()], [dispatch(X)]),
    "SR-IMAGE-006": ([image(dims=[1, 4, 4, 2])], []),
    "SR-IMAGE-007": ([image(mips=4)], []),
    "SR-IMAGE-008": (
        [image(border_address_mode="CLAMP_BORDER", border_color="INT_CUSTOM_EXT", custom_border_color=[1, 1, 1, 1])],
        [],
    ),
    "SR-IMAGE-009": ([image(), layouts("general", "undefined")], [BARRIER]),
    "SR-IMAGE-010": ([image(), layouts("tensor_aliasing", "general")], [BARRIER]),
    "SR-ATTACH-009": (
        [shader("v", stage="vertex"), shader("f", stage="fragment")],
        [{"dispatch_fragment": {"vertex_shader_ref": "v", "fragment_shader_ref": "f", "bindings": []}}],
    ),
    "SR-TENSOR-004": ([tensor(format="VK_FORMAT_R8G8B8A8_UNORM")], []),
    "SR-TENSOR-005": ([tensor(dims=[2**62, 2**62])], []),
    "SR-TENSOR-006": ([tensor(dims=[-1, 4])], []),
    "SR-GRAPH-008": (
        [{"graph": {"uid": "g", "src": "model.vgf"}}],
        [
            {
                "dispatch_graph": {
                    "graph_ref": "g",
                    "bindings": [],
                    "push_constants": [{"push_data_ref": "d", "shader_target": "nothing"}],
                }
            }
        ],
    ),
    "SR-GRAPH-011": ([shader()], [{"dispatch_spirv_graph": {"graph_ref": "s", "bindings": []}}]),
    "SR-PUSH-005": ([shader(), buffer()], [dispatch(X, push_data_ref="d")]),
}


@pytest.mark.parametrize("code", INPUTS)
def test_the_input_has_the_code(tmp_path: Path, code: str) -> None:
    """A finding of the code is there, with the line and column of its place."""
    resources, commands = INPUTS[code]
    if "push_data_ref" in json.dumps(commands):
        resources = [*resources, {"raw_data": {"uid": "d", "src": "16.npy"}}]
    numpy.save(tmp_path / "16.npy", numpy.zeros(16, "i1"))
    (tmp_path / "s.comp").write_text(glsl("x[0] = 1;", "layout(set = 0, binding = 0) buffer X { uint x[]; };"))
    (tmp_path / "model.vgf").write_bytes((HERE / "ml" / "classifier" / "model.vgf").read_bytes())
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps({"resources": resources, "commands": commands}, indent=1))
    found = list(validate_file(path).findings)
    assert code in [problem.code for problem in found]
    assert all(problem.line and problem.column and problem.pointer for problem in found if problem.code == code)

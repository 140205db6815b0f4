"""Inputs for the codes of JSON, references, and the parts of a scenario: resources and commands, or a whole text."""

import struct
from typing import Any

import numpy
import pytest

from scenario_runner import Scenario, from_dict
from scenario_runner.plan.records import CompilerOptions
from scenario_runner.shaders.compilers import table
from scenario_runner.validation import Options
from tests.errors.case import Case, Codes, Input
from tests.gpu.ml_scenes import HEAD
from tests.scenes import assemble, glsl, kernel

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


def layouts(old: str, new: str, **keys: Any) -> dict[str, Any]:
    return barrier("image", of="i", old_layout=old, new_layout=new, **keys)


def dispatch(*bindings: dict[str, Any], **keys: Any) -> dict[str, Any]:
    bound = [{"set": 0, "id": 0, **binding} for binding in bindings]
    return {"dispatch_compute": {"shader_ref": "s", "rangeND": [1], "bindings": bound, **keys}}


def flow(**keys: Any) -> dict[str, Any]:
    bound = {
        name: {"set": 0, "id": number, "resource_ref": "i"}
        for number, name in enumerate(("search_image", "template_image", "output_image"))
    }
    return {"dispatch_optical_flow": {"width": 4, "height": 4, "grid_size": "1x1", "bindings": bound, **keys}}


BARRIER = {"dispatch_barrier": {"image_barrier_refs": ["b"]}}
LEVEL = {"subresource_range": {"base_mip_level": 1}}
BORDER = {"border_color": "INT_CUSTOM_EXT", "custom_border_color": [1, 1, 1, 1]}
GROUP = {"id": "g"}
CONSTANT = {"id": 0, "value": 1}
X, IMAGE = {"resource_ref": "x"}, {"resource_ref": "i"}
SAMPLED = [dispatch(IMAGE, {**X, "id": 1})]
FIRST = "layout(binding = 0) buffer X { uint x[]; };"
SECOND = "layout(binding = 0) uniform SAMPLER i; layout(binding = 1) buffer X { uint x[]; };"
READ = "tensorReadARM(t, uint[](0, 0, 0), x); tensorWriteARM(t, uint[](0, 0, 1), x);"
SHADERS = {
    "s.comp": glsl("x[0] = 1;", FIRST),
    "shadow.comp": glsl("x[0] = uint(texture(i, vec3(0)));", SECOND.replace("SAMPLER", "sampler2DShadow")),
    "tensor.comp": f"{HEAD}layout(binding = 0) uniform tensorARM<uint8_t, 3> t;\nvoid main() {{ uint8_t x; {READ} }}",
    "integers.comp": glsl("x[0] = texture(i, vec2(0)).x;", SECOND.replace("SAMPLER", "usampler2D")),
}

_ENTRIES: dict[str, tuple[Entries, Entries]] = {
    "SR-JSON-003": ([buffer(sise=16)], []),
    "SR-JSON-004": ([{"buffer": {"uid": "x", "size": 16}}], []),
    "SR-JSON-005": ([buffer(size="16")], []),
    "SR-JSON-006": ([{"buffers": {}}], []),
    "SR-REF-001": ([shader()], [dispatch(X)]),
    "SR-REF-002": ([shader(), shader("x")], [dispatch(X)]),
    "SR-REF-003": ([buffer(), buffer()], []),
    "SR-JSON-008": ([image(mips=True)], []),
    "SR-JSON-010": ([buffer(format="VK_FORMAT_R8_UINT")], []),
    "SR-CONFLICT-002": ([shader(), buffer()], [dispatch({"lod": 1, **X})]),
    "SR-CONFLICT-003": ([image(border_color="INT_CUSTOM_EXT")], []),
    "SR-CONFLICT-004": ([shader(specialization_constants=[CONSTANT, CONSTANT])], []),
    "SR-CONFLICT-005": ([shader(), buffer()], [dispatch(X, X)]),
    "SR-CONFLICT-006": ([shader(stage="vertex"), buffer()], [dispatch(X)]),
    "SR-CONFLICT-007": ([shader(), image()], [dispatch({"lod": 1, **IMAGE})]),
    "SR-CONFLICT-008": ([image()], [flow(mean_flow_l1_norm_hint=4)]),
    "SR-CONFLICT-009": ([buffer(), barrier("buffer", of="x", size=17)], []),
    "SR-CONFLICT-010": ([image(), layouts("undefined", "general", **LEVEL)], []),
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
    "SR-MEMORY-006": (
        [image(format="VK_FORMAT_D32_SFLOAT_S8_UINT", memory_group=GROUP), tensor(memory_group=GROUP)],
        [],
    ),
    "SR-DATA-001": ([buffer(src={"values": [1, 2, 3]})], []),
    "SR-DATA-002": ([buffer(src={"fill": 0.5, "dtype": "int32"})], []),
    "SR-DATA-003": ([{"raw_data": {"uid": "r", "src": {"random": 1}}}], []),
    "SR-DATA-004": ([image(format="VK_FORMAT_BC7_UNORM_BLOCK", src={"fill": 1})], []),
    "SR-FILE-001": ([buffer(src=".")], []),
    "SR-FILE-006": ([buffer(src="missing.npy")], []),
    "SR-FILE-002": ([buffer(size=8, src="16.npy")], []),
    "SR-FILE-003": ([buffer(src="16.npy", dst="16.npy")], []),
    "SR-FILE-004": ([buffer(dst="x.png")], []),
    "SR-FILE-015": ([buffer(dst="none/x.npy"), buffer("y", dst="s.comp/y.npy")], []),
    "SR-SHADER-014": ([shader(build_options="-what"), buffer()], [dispatch(X)]),
    "SR-IMAGE-006": ([image(dims=[1, 4, 4, 2])], []),
    "SR-IMAGE-007": ([image(mips=4)], []),
    "SR-IMAGE-008": ([image(border_address_mode="CLAMP_BORDER", **BORDER)], []),
    "SR-IMAGE-009": ([image(), layouts("general", "undefined")], [BARRIER]),
    "SR-IMAGE-010": ([image(), layouts("tensor_aliasing", "general")], [BARRIER]),
    "SR-IMAGE-011": ([shader(), image(), layouts("general", "tensor_aliasing")], [BARRIER, dispatch(IMAGE)]),
    "SR-ATTACH-009": (
        [shader("v", stage="vertex"), shader("f", stage="fragment")],
        [{"dispatch_fragment": {"vertex_shader_ref": "v", "fragment_shader_ref": "f", "bindings": []}}],
    ),
    "SR-TENSOR-001": ([shader(src="tensor.comp"), tensor()], [dispatch({"resource_ref": "t"})]),
    "SR-TENSOR-005": ([tensor(dims=[2**62, 2**62])], []),
    "SR-TENSOR-006": ([tensor(dims=[-1, 4])], []),
    "SR-TENSOR-007": ([tensor(src="16.npy")], []),
    "SR-GRAPH-011": ([shader()], [{"dispatch_spirv_graph": {"graph_ref": "s", "bindings": []}}]),
    "SR-FRAME-001": ([], [{"mark_boundary": {"resources": [], "frame_id": 3}}] * 2),
    "SR-PUSH-004": ([shader(push_constants_size=1 << 20), buffer()], [dispatch(X)]),
    "SR-IMAGE-005": ([shader(src="shadow.comp"), image(), buffer()], SAMPLED),
    "SR-IMAGE-012": (
        [shader(src="integers.comp"), image(format="VK_FORMAT_R32_UINT", min_filter="LINEAR"), buffer()],
        SAMPLED,
    ),
}


def entries(resources: Entries, commands: Entries) -> Input:
    """A scenario of these resources and commands, beside the files that they may name."""

    def found(case: Case) -> Codes:
        scene = case.scene
        scene.npy("16.npy", numpy.zeros(16, "i1"))
        for name, source in SHADERS.items():
            scene.file(name, source)
        scene.resources = [*resources, {"raw_data": {"uid": "d", "src": "16.npy"}}]
        scene.commands = commands
        return case.validated(placed=True)

    return found


def text(content: str | bytes) -> Input:
    """A file of this content."""

    def found(case: Case) -> Codes:
        case.scene.file("scenario.json", content)
        return case.validated_file()

    return found


def many_mistakes(case: Case) -> Codes:
    """More problems than one report shows."""
    case.scene.resources = [{"buffer": {}} for _ in range(200)]
    return case.validated()


def content_from_code(case: Case) -> Codes:
    """Return a buffer with an array as content, for a scenario written as JSON."""
    scenario = from_dict({"resources": [buffer(data=bytes(16))], "commands": []})
    return case.raised(scenario.to_json)


def outside_of_the_sandbox(case: Case) -> Codes:
    case.scene.buffer("x", size=16, src="../x.npy")
    return case.validated(Options(sandbox=True))


def a_call_that_cannot_be_understood(case: Case) -> Codes:
    """Give an array in code that has another size than the buffer."""
    scenario: Scenario = from_dict({"resources": [buffer()], "commands": []})
    return case.run(scenario, {"x": b"too short"})


def later_version(case: Case) -> Codes:
    """A module of SPIR-V 1.9."""
    code = bytearray(assemble(kernel()))
    code[4:8] = struct.pack("<I", 0x00010900)
    case.scene.module("s", bytes(code)).dispatch("s", [])
    return case.validated()


def compiler_of_another_kind(case: Case) -> Codes:
    """The compiler that is asked for is a program of another kind."""
    other = case.scene.file("other", "#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    case.scene.shader("s", glsl("")).dispatch("s", [])
    return case.validated(Options(CompilerOptions(str(other))))


def hlsl_by_glslang(case: Case) -> Codes:
    """There is no dxc."""
    case.scene.file("s.hlsl", "[numthreads(1, 1, 1)] void main() {}")
    case.scene.resource("shader", uid="s", src="s.hlsl", type="HLSL").dispatch("s", [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "DXC_PLACE", "not-installed.so")
        return case.validated(Options(CompilerOptions("glslangValidator")))


def strictness_of_dxc(case: Case) -> Codes:
    case.scene.file("s.hlsl", "[numthreads(1, 1, 1)] void main() {}")
    case.scene.resource("shader", uid="s", src="s.hlsl", build_options="-Gis").dispatch("s", [])
    return case.validated()


INPUTS: dict[str, Input] = {
    "SR-SHADER-011": compiler_of_another_kind,
    "SR-SHADER-015": later_version,
    "SR-SHADER-016": hlsl_by_glslang,
    "SR-SHADER-017": strictness_of_dxc,
    "SR-JSON-001": text("{"),
    "SR-JSON-002": text('{"resources": [], "resources": [], "commands": []}'),
    "SR-JSON-007": text(b"\xff"),
    "SR-JSON-009": content_from_code,
    "SR-SANDBOX-001": outside_of_the_sandbox,
    "SR-USAGE-001": a_call_that_cannot_be_understood,
    "SR-RUN-004": many_mistakes,
    **{code: entries(*given) for code, given in _ENTRIES.items()},
}

"""Inputs for the codes of compute shaders: entry points, bindings, blocks, constants, hazards."""

from __future__ import annotations

import struct
from typing import Any

import numpy
import pytest

from scenario_runner.plan.records import CompilerOptions
from scenario_runner.shaders import compilers
from scenario_runner.shaders.spirv_val import find_validator
from scenario_runner.validation import Options
from tests.codes.case import Case, Codes, Input
from tests.scenes import assemble, glsl, kernel

DATA = "layout(set = 0, binding = 0) buffer Data { uint data[]; };"
TWO = DATA + "layout(set = 0, binding = 1) buffer Other { uint other[]; };"
PUSH = "layout(push_constant) uniform Push { uint a; uint b; };" + DATA
NOTHING_ELSE: dict[str, Any] = {}

MODULE = kernel("""
    OpEntryPoint {stage} %main "main"
    OpExecutionMode %main {mode}
    OpDecorate %block Block
    OpMemberDecorate %block 0 Offset 0
    {offset}
    OpDecorate %data DescriptorSet 0
    OpDecorate %data Binding 0
    %zero = OpConstant %uint 0
    %block = OpTypeStruct %uint %uint
    %pointer = OpTypePointer StorageBuffer %block
    %to_uint = OpTypePointer StorageBuffer %uint
    %data = OpVariable %pointer StorageBuffer
    main:
    %target = OpAccessChain %to_uint %data %zero
    OpStore %target %zero
""")
_WORDS = {"stage": "GLCompute", "mode": "LocalSize 1 1 1", "offset": "OpMemberDecorate %block 1 Offset 4"}


def shader(body: str, declarations: str = DATA, *uids: str, keys: dict[str, Any] = NOTHING_ELSE, **more: Any) -> Input:
    """A dispatch of a shader that finds the buffers x and y, and the image i, at the bindings 0, 1, ..."""

    def found(case: Case) -> Codes:
        case.scene.shader("s", glsl(body, declarations), **keys)
        _resources(case)
        case.scene.dispatch("s", uids or ("x",), **more)
        return case.validated(placed=True)

    return found


def hlsl(declarations: str, body: str) -> Input:
    """A dispatch of an HLSL shader with the buffer x at the binding 0."""

    def found(case: Case) -> Codes:
        case.scene.file("s.hlsl", f"{declarations} [numthreads(1, 1, 1)] void main() {{ {body} }}")
        case.scene.resource("shader", uid="s", src="s.hlsl", type="HLSL")
        _resources(case)
        case.scene.dispatch("s", ["x"])
        return case.validated(placed=True)

    return found


def module(change: dict[str, str] | None = None, old: str = "", new: str = "", **keys: Any) -> Input:
    """A dispatch of the module above with other words in it."""

    def found(case: Case) -> Codes:
        text = MODULE.format(**{**_WORDS, **(change or {})})
        assert old in text
        case.scene.module("s", assemble(text.replace(old, new)), **keys)
        _resources(case)
        case.scene.dispatch("s", ["x"])
        return case.validated(placed=True)

    return found


def _resources(case: Case) -> None:
    format = {"format": "VK_FORMAT_R8G8B8A8_UNORM", "dims": [1, 4, 4, 1], "shader_access": "readwrite"}
    case.scene.buffer("x", size=64).buffer("y", size=64).buffer("read", size=64, shader_access="readonly", dst="")
    case.scene.resource("image", uid="i", **format)
    case.scene.resource("image", uid="bytes", **{**format, "format": "VK_FORMAT_R8_UINT"})
    case.scene.resource("image", uid="halves", **{**format, "format": "VK_FORMAT_R16G16_SFLOAT"})
    case.scene.resource("image", uid="integers", **{**format, "format": "VK_FORMAT_R32_UINT", "min_filter": "LINEAR"})


def hazard(*dispatches: tuple[str, list[str]], barrier: dict[str, Any] | None = None) -> Input:
    """Dispatches without a barrier between them, but the one that is given, behind the first."""

    def found(case: Case) -> Codes:
        case.scene.shader("fill", glsl("data[0] = 1;", DATA)).shader("copy", glsl("other[0] = data[0];", TWO))
        _resources(case)
        (first, bound), *rest = dispatches
        case.scene.dispatch(first, bound, implicit_barrier=False)
        if barrier is not None:
            ((kind, keys),) = barrier.items()
            accesses = {"src_access": "memory_write", "dst_access": "memory_read"}
            case.scene.resource(kind, uid="b", **{**accesses, **keys})
            case.scene.command("dispatch_barrier", **{f"{kind}_refs": ["b"]})
        for name, uids in rest:
            case.scene.dispatch(name, uids, implicit_barrier=False)
        return case.validated(Options(hazards=True))

    return found


def over(uid: str, offset: int) -> dict[str, Any]:
    """A barrier over the bytes of a buffer from ``offset`` on."""
    return {"buffer_barrier": {"buffer_resource": uid, "offset": offset, "size": 64 - offset}}


def transition(case: Case) -> Codes:
    """An image changes its layout behind a dispatch that the barrier does not wait for."""
    stored = "layout(set = 0, binding = 0, rgba8) uniform writeonly image2D p;"
    case.scene.shader("store", glsl("imageStore(p, ivec2(0), vec4(1));", stored))
    _resources(case)
    case.scene.dispatch("store", ["i"], implicit_barrier=False)
    words = {"old_layout": "undefined", "new_layout": "general", "src_access": "memory_write"}
    words |= {"dst_access": "memory_read", "src_stage": ["graph"], "image_resource": "i"}
    case.scene.resource("image_barrier", uid="b", **words).command("dispatch_barrier", image_barrier_refs=["b"])
    return case.validated(Options(hazards=True))


def not_a_module(case: Case) -> Codes:
    case.scene.module("s", b"not a module").dispatch("s", [])
    return case.validated()


def later_version(case: Case) -> Codes:
    """A module of SPIR-V 1.9."""
    code = bytearray(assemble(MODULE.format(**_WORDS)))
    code[4:8] = struct.pack("<I", 0x00010900)
    case.scene.module("s", bytes(code)).dispatch("s", [])
    return case.validated()


def invalid_module(case: Case) -> Codes:
    """A store whose value has another type than its target, which spirv-val finds."""
    assert find_validator() is not None, "this input needs spirv-val"
    return module(old="OpStore %target %zero", new="OpStore %target %data")(case)


def no_compiler(case: Case) -> Codes:
    """The compiler that is asked for is a program of another kind."""
    case.scene.shader("s", glsl(""))
    other = case.scene.file("other", "#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    case.scene.dispatch("s", [])
    return case.validated(Options(CompilerOptions(str(other))))


def hlsl_by_glslang(case: Case) -> Codes:
    """There is no dxc."""
    case.scene.file("s.hlsl", "[numthreads(1, 1, 1)] void main() {}")
    case.scene.resource("shader", uid="s", src="s.hlsl", type="HLSL").dispatch("s", [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilers, "DXC_PLACE", "not-installed.so")
        return case.validated(Options(CompilerOptions("glslangValidator")))


def image(declared: str, body: str, uid: str) -> Input:
    return shader(body, f"layout(set = 0, binding = 0, rgba8) uniform writeonly {declared} p;", uid)


def sampler(declared: str, body: str, uid: str) -> Input:
    both = f"layout(set = 0, binding = 0) uniform {declared} p; layout(set = 0, binding = 1) buffer D {{ vec4 d[]; }};"
    return shader(body, both, uid, "x")


def descriptor_type(case: Case) -> Codes:
    case.scene.shader("s", glsl("data[0] = 1;", DATA))
    _resources(case)
    binding = {"set": 0, "id": 0, "resource_ref": "x", "descriptor_type": "VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER"}
    case.scene.command("dispatch_compute", shader_ref="s", rangeND=[1], bindings=[binding])
    return case.validated()


def push_data(case: Case) -> Codes:
    case.scene.raw_data("d", numpy.zeros(4, "i1"))
    keys = {"push_constants_size": 8}
    return shader("data[0] = b;", PUSH, keys=keys, push_data_ref="d")(case)


_MANY_VECTORS = "layout(set = 0, binding = 0) buffer Data { uvec4 data[64]; };"
_CONSTANT = "layout(constant_id = 0) const uint n = 1;" + DATA
_LOCAL_SIZE = "layout(local_size_y_id = 0) in;" + DATA

INPUTS: dict[str, Input] = {
    "SR-SHADER-001": module(entry="other"),
    "SR-SHADER-002": module({"stage": "Fragment", "mode": "OriginUpperLeft"}),
    "SR-SHADER-003": shader("data[0] = 1;", _LOCAL_SIZE, keys={"specialization_constants": [{"id": 0, "value": 0}]}),
    "SR-SHADER-010": shader("nonsense;"),
    "SR-SHADER-011": no_compiler,
    "SR-SHADER-012": not_a_module,
    "SR-SHADER-013": invalid_module,
    "SR-SHADER-015": later_version,
    "SR-SHADER-016": hlsl_by_glslang,
    "SR-BIND-001": shader("other[0] = data[0];", TWO),
    "SR-BIND-002": shader("data[0] = 1;", DATA, "x", "y"),
    "SR-BIND-003": shader("data[0] = 1;", DATA, "i"),
    "SR-BIND-004": descriptor_type,
    "SR-BIND-005": shader("data[0].x = 1;", _MANY_VECTORS),
    "SR-BIND-006": shader("data[0] = o;", DATA + "layout(set = 0, binding = 0) uniform Other { uint o; };"),
    "SR-BIND-007": shader("many[1].d[0] = 1;", "layout(set = 0, binding = 0) buffer D { uint d[]; } many[2];"),
    "SR-BIND-008": shader(
        "data[0] = uint(texelFetch(t, 0).x);", DATA + "layout(set = 0, binding = 1) uniform samplerBuffer t;", "x", "y"
    ),
    "SR-BIND-010": hlsl(
        "RWStructuredBuffer<uint> o : register(u0); StructuredBuffer<uint> i : register(t0);", "o[0] = i[1];"
    ),
    "SR-BIND-009": module(old="OpDecorate %data Binding 0", new=""),
    "SR-ACCESS-001": shader("data[0] = 1;", DATA, "read"),
    "SR-IMAGE-001": image("image3D", "imageStore(p, ivec3(0), vec4(1));", "i"),
    "SR-IMAGE-002": shader(
        "imageStore(p, ivec2(0), uvec4(1));", "layout(set = 0, binding = 0, rgba8ui) uniform writeonly uimage2D p;", "i"
    ),
    "SR-IMAGE-003": shader(
        "imageAtomicAdd(p, ivec2(0), 1u);", "layout(set = 0, binding = 0, r32ui) uniform uimage2D p;", "bytes"
    ),
    "SR-IMAGE-004": image("image2D", "imageStore(p, ivec2(0), vec4(1));", "halves"),
    "SR-IMAGE-005": sampler("sampler2DShadow", "d[0].x = texture(p, vec3(0));", "i"),
    "SR-IMAGE-012": sampler("usampler2D", "d[0] = texture(p, vec2(0));", "integers"),
    "SR-LAYOUT-001": module({"offset": ""}),
    "SR-LAYOUT-002": module({"offset": "OpMemberDecorate %block 1 Offset 6"}),
    "SR-LAYOUT-003": module({"offset": "OpMemberDecorate %block 1 Offset 0"}),
    "SR-PUSH-001": shader("data[0] = b;", PUSH, keys={"push_constants_size": 4}),
    "SR-PUSH-002": push_data,
    "SR-PUSH-003": shader("data[0] = b;", PUSH, keys={"push_constants_size": 8}),
    "SR-PUSH-004": shader("data[0] = 1;", DATA, keys={"push_constants_size": 1 << 20}),
    "SR-DISPATCH-001": shader("data[0] = 1;", DATA, groups=[0]),
    "SR-DISPATCH-002": shader(
        "imageStore(p, ivec2(gl_GlobalInvocationID.xy), vec4(1));",
        "layout(set = 0, binding = 0, rgba8) uniform writeonly image2D p;",
        "i",
        groups=[4096, 4096],
    ),
    "SR-SPEC-001": shader("data[0] = 1;", DATA, keys={"specialization_constants": [{"id": 3, "value": 1}]}),
    "SR-SPEC-002": shader("data[0] = n;", _CONSTANT, keys={"specialization_constants": [{"id": 0, "value": -1}]}),
    "SR-HAZARD-001": hazard(("fill", ["x"]), ("copy", ["x", "y"])),
    "SR-HAZARD-002": hazard(("copy", ["x", "y"]), ("fill", ["x"])),
    "SR-HAZARD-003": hazard(("fill", ["x"]), ("fill", ["x"])),
    "SR-HAZARD-004": hazard(("fill", ["x"]), ("copy", ["x", "y"]), barrier=over("y", 0)),
    "SR-HAZARD-005": hazard(("fill", ["x"]), ("copy", ["x", "y"]), barrier=over("x", 32)),
    "SR-HAZARD-006": transition,
}

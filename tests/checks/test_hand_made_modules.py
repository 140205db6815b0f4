"""SPIR-V that no compiler writes: mistakes are found before a driver sees them, and unusual but right shaders run."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from scenario_runner import Runner
from scenario_runner.shaders.compilers.search import OFF
from scenario_runner.shaders.compilers.search import VALIDATOR_VARIABLE as VARIABLE
from scenario_runner.shaders.spirv import read_module
from tests.drawings import found
from tests.scenes import Scene, assemble, glsl, kernel
from tests.tables import cases

HAND_MADE = kernel("""
    OpDecorate %block Block
    OpMemberDecorate %block 0 Offset 0
    Bind %data 0 0
    {decorations}
    %bool = OpTypeBool
    %float = OpTypeFloat 32
    %zero = OpConstant %uint 0
    %vec4 = OpTypeVector %float 4
    %matrix = OpTypeMatrix %vec4 4
    %endless = OpTypeRuntimeArray %uint
    %block = OpTypeStruct {members}
    %pointer = OpTypePointer {kind} %block
    %to_uint = OpTypePointer {kind} %uint
    %data = OpVariable %pointer {kind}
    main:
    %target = OpAccessChain %to_uint %data %zero
    %value = OpLoad %uint %target
""")


BLOCK = HAND_MADE.format(members="%uint", kind="StorageBuffer", decorations="")


@pytest.mark.parametrize("row", cases(__file__, "blocks.txt", "BLOCKS"))
def test_blocks_that_no_compiler_writes(scene: Scene, row: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Block layouts of foreign modules are checked before a driver relies on them."""
    monkeypatch.setenv(VARIABLE, OFF)  # what is a warning of ours may be an error of the validator
    change, *expected = row
    given = {"members": "%uint", "kind": "StorageBuffer", "decorations": "", **json.loads(change)}
    if given["members"] != "%uint":
        given["decorations"] += "\nOpMemberDecorate %block 1 Offset 16"
    scene.module("s", assemble(HAND_MADE.format(**given))).buffer("x", size=256).dispatch("s", ["x"])
    assert found(scene) == [f"SR-LAYOUT-{each}".replace(": ", " /resources/0/shader: ", 1) for each in expected]


def test_a_structure_that_is_no_block(scene: Scene) -> None:
    """A buffer's structure has the Block decoration."""
    scene.module("s", assemble(BLOCK.replace("OpDecorate %block Block", ""))).buffer("x", size=4).dispatch("s", ["x"])
    (finding,) = found(scene)
    assert finding.startswith("SR-BIND-009 error /resources/0/shader: ")
    assert finding.endswith("is a structure without the Block decoration")


def test_a_compute_shader_without_a_workgroup_size(scene: Scene) -> None:
    """A compute shader says how large its workgroups are."""
    code = assemble(BLOCK.replace("OpExecutionMode %main LocalSize 1 1 1", ""))
    scene.module("s", code).buffer("x", size=4).dispatch("s", ["x"])
    assert found(scene) == [
        "SR-SHADER-003 error /resources/0/shader: shader 's' has no workgroup size: expected LocalSize, LocalSizeId"
        " or the built-in WorkgroupSize"
    ]


DATA = "layout(set = 0, binding = 0) buffer Data { uint data[]; };"


def compiled(source: str, folder: Path) -> bytes:
    """A compute shader as SPIR-V 1.6, by the real glslangValidator."""
    (folder / "shader.comp").write_text(source)
    command = ["glslangValidator", "-V", "--target-env", "vulkan1.3", "shader.comp", "-o", "shader.spv"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return (folder / "shader.spv").read_bytes()


def test_variables_that_are_listed_and_not_named_bind_nobody(scene: Scene) -> None:
    """Arrays, texel buffers, samplers and high sets that an entry point lists and never names: the driver lives."""
    unused = (
        "layout(set = 0, binding = 2) uniform U { vec4 v; } u[4];"
        "layout(set = 1, binding = 0) uniform sampler2D t[7];"
        "layout(set = 1, binding = 1) uniform samplerBuffer texels;"
        "layout(set = 1, binding = 2) uniform sampler2D picture;"
        "layout(set = 40, binding = 0) buffer Far { uint far[]; };"
    )
    code = compiled(glsl("data[0] = 1;", DATA + unused), scene.folder)
    assert len(next(iter(read_module(code).entry_points)).interface.bindings) == 6  # they are listed
    scene.module("s", code).buffer("x", size=16).dispatch("s", ["x"])
    assert found(scene) == []
    with Runner() as runner:
        runner.run(scene.write())
    assert scene.output("x", "uint32")[0] == 1


def test_a_module_of_the_other_byte_order(scene: Scene) -> None:
    """A SPIR-V file may have either byte order; the driver gets this machine's."""
    code = np.frombuffer(compiled(glsl("data[0] = 7;", DATA), scene.folder), "uint32").byteswap().tobytes()
    scene.module("s", code).buffer("x", size=16).dispatch("s", ["x"])
    assert found(scene) == []
    with Runner() as runner:
        runner.run(scene.write())
    assert scene.output("x", "uint32")[0] == 7


HANDED_BACK = kernel("""
    OpCapability VariablePointersStorageBuffer
    OpDecorate %block Block
    OpMemberDecorate %block 0 Offset 0
    Bind %from 0 0
    Bind %to 0 1
    %zero = OpConstant %uint 0
    %block = OpTypeStruct %uint
    %to_block = OpTypePointer StorageBuffer %block
    %to_uint = OpTypePointer StorageBuffer %uint
    %from = OpVariable %to_block StorageBuffer
    %to = OpVariable %to_block StorageBuffer
    %pointers = OpTypeFunction %to_uint %to_uint
    main:
    %source = OpAccessChain %to_uint %from %zero
    %same = OpFunctionCall %to_uint %handed %source
    %value = OpLoad %uint %same
    %target = OpAccessChain %to_uint %to %zero
    OpStore %target %value
    OpReturn
    OpFunctionEnd
    %handed = OpFunction %to_uint None %pointers
    %pointer = OpFunctionParameter %to_uint
    %second = OpLabel
    OpReturnValue %pointer
    OpFunctionEnd
""")


def test_a_pointer_that_a_function_hands_back_is_no_write(scene: Scene) -> None:
    """A pointer returned by a function does not count as a write of a readonly resource."""
    scene.module("s", assemble(HANDED_BACK)).buffer("x", size=4, shader_access="readonly").buffer("y", size=4)
    scene.dispatch("s", ["x", "y"])
    assert found(scene) == []

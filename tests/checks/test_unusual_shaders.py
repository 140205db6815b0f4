"""Right shaders that look unusual: nothing is found, and they run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

from scenario_runner import Runner
from scenario_runner.spirv import read_module
from scenario_runner.validation import validate_file
from tests.scenes import Scene, assemble, glsl, kernel

DATA = "layout(set = 0, binding = 0) buffer Data { uint data[]; };"


def compiled(source: str, folder: Path) -> bytes:
    """A compute shader as SPIR-V 1.6, by the real glslangValidator."""
    (folder / "shader.comp").write_text(source)
    command = ["glslangValidator", "-V", "--target-env", "vulkan1.3", "shader.comp", "-o", "shader.spv"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return (folder / "shader.spv").read_bytes()


def findings(scene: Scene) -> list[str]:
    """Everything that is found, in words."""
    return [str(each) for each in validate_file(scene.write()).findings]


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
    assert findings(scene) == []
    with Runner() as runner:
        runner.run(scene.write())
    assert scene.output("x", "uint32")[0] == 1


def test_a_module_of_the_other_byte_order(scene: Scene) -> None:
    """A SPIR-V file may have either byte order; the driver gets this machine's."""
    code = np.frombuffer(compiled(glsl("data[0] = 7;", DATA), scene.folder), "uint32").byteswap().tobytes()
    scene.module("s", code).buffer("x", size=16).dispatch("s", ["x"])
    assert findings(scene) == []
    with Runner() as runner:
        runner.run(scene.write())
    assert scene.output("x", "uint32")[0] == 7


HANDED_BACK = kernel("""
    OpCapability VariablePointersStorageBuffer
    OpDecorate %block Block
    OpMemberDecorate %block 0 Offset 0
    OpDecorate %from DescriptorSet 0
    OpDecorate %from Binding 0
    OpDecorate %to DescriptorSet 0
    OpDecorate %to Binding 1
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
    """Where a pointer cannot be followed, nobody claims that a readonly resource is written."""
    scene.module("s", assemble(HANDED_BACK)).buffer("x", size=4, shader_access="readonly").buffer("y", size=4)
    scene.dispatch("s", ["x", "y"])
    assert findings(scene) == []

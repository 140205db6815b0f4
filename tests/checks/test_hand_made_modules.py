"""SPIR-V that no compiler writes: what drivers trust in it is looked at before they see it."""

from __future__ import annotations

import pytest

from scenario_runner.shaders.spirv_val import OFF, VARIABLE
from scenario_runner.validation import validate_file
from tests.scenes import Scene, assemble, kernel


def findings(scene: Scene) -> list[str]:
    """Code, severity, pointer and message of everything that is found."""
    found = validate_file(scene.write()).findings
    return [f"{each.code} {each.severity} {each.pointer}: {each.message}" for each in found]


HAND_MADE = kernel("""
    OpDecorate %block Block
    OpMemberDecorate %block 0 Offset 0
    OpDecorate %data DescriptorSet 0
    OpDecorate %data Binding 0
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
STRIDE = "OpDecorate %endless ArrayStride 4"


@pytest.mark.parametrize(
    "change, expected",
    [
        ({}, []),
        (
            {"members": "%uint %matrix", "decorations": "OpMemberDecorate %block 1 MatrixStride 16"},
            ["001 error: shader 's': 'block.member 1' is a matrix without a RowMajor or ColMajor decoration"],
        ),
        (
            {"members": "%uint %bool"},
            ["001 error: shader 's': 'block.member 1' is a Boolean, which is without a size in memory"],
        ),
        (
            {"members": "%uint %endless", "decorations": STRIDE.replace("4", "0")},
            ["001 error: shader 's': 'block.member 1' is an array without a stride: its ArrayStride is 0"],
        ),
        (
            {"members": "%uint %endless %uint", "decorations": STRIDE + "\nOpMemberDecorate %block 2 Offset 32"},
            [
                "003 warning: shader 's': 'block.member 1' is a runtime array that overlaps what is behind it: it must"
                " be the last member"
            ],
        ),
        (
            {"members": "%uint %endless", "kind": "Uniform", "decorations": STRIDE},
            ["001 error: shader 's': uniform buffer '' ends in a runtime array, which only storage buffers may"],
        ),
    ],
)
def test_blocks_that_no_compiler_writes(
    scene: Scene, change: dict[str, str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What drivers trust in a block's layout is looked at in modules from elsewhere."""
    monkeypatch.setenv(VARIABLE, OFF)  # what is a warning of ours may be an error of the validator
    given = {"members": "%uint", "kind": "StorageBuffer", "decorations": "", **change}
    if given["members"] != "%uint":
        given["decorations"] += "\nOpMemberDecorate %block 1 Offset 16"
    scene.module("s", assemble(HAND_MADE.format(**given))).buffer("x", size=256).dispatch("s", ["x"])
    assert findings(scene) == [f"SR-LAYOUT-{each}".replace(": ", " /resources/0/shader: ", 1) for each in expected]


def test_a_structure_that_is_no_block(scene: Scene) -> None:
    """A buffer's structure has the Block decoration."""
    text = HAND_MADE.format(members="%uint", kind="StorageBuffer", decorations="")
    scene.module("s", assemble(text.replace("OpDecorate %block Block", ""))).buffer("x", size=4).dispatch("s", ["x"])
    (found,) = findings(scene)
    assert found.startswith("SR-BIND-009 error /resources/0/shader: ")
    assert found.endswith("is a structure without the Block decoration")


def test_a_compute_shader_without_a_workgroup_size(scene: Scene) -> None:
    """A compute shader says how large its workgroups are."""
    text = HAND_MADE.format(members="%uint", kind="StorageBuffer", decorations="")
    code = assemble(text.replace("OpExecutionMode %main LocalSize 1 1 1", ""))
    scene.module("s", code).buffer("x", size=4).dispatch("s", ["x"])
    assert findings(scene) == [
        "SR-SHADER-003 error /resources/0/shader: shader 's' has no workgroup size: expected LocalSize, LocalSizeId"
        " or the built-in WorkgroupSize"
    ]

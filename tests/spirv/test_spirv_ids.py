"""Ids and members of a module, function bodies included: wrong ones are refused before a driver follows them."""

from __future__ import annotations

import random
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scenario_runner.errors import SpirvError
from scenario_runner.shaders.spirv_val import OPTIONS
from scenario_runner.spirv import opcodes as op
from scenario_runner.spirv import read_module
from scenario_runner.spirv.ids import check_ids
from tests.spirv.mutants import as_spirv, mutated, our_verdict

CHECKOUT = Path(__file__).resolve().parents[2]
FIXTURES = Path(__file__).parent / "fixtures"
SCENARIOS = ("algorithms/prefix_sum", "images/blur_and_tone_map", "shader_features/cooperative_matrix", "basics/add")

MODULE = """
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %10 "main"
OpExecutionMode %10 LocalSize 1 1 1
OpMemberDecorate %5 0 Offset 0
OpMemberDecorate %5 1 Offset 16
OpDecorate %5 Block
OpDecorate %7 DescriptorSet 0
OpDecorate %7 Binding 0
%1 = OpTypeVoid
%2 = OpTypeFunction %1
%3 = OpTypeFloat 32
%4 = OpTypeVector %3 4
%5 = OpTypeStruct %4 %3
%6 = OpTypePointer StorageBuffer %5
%7 = OpVariable %6 StorageBuffer
%8 = OpTypeInt 32 0
%9 = OpConstant %8 1
%20 = OpTypePointer StorageBuffer %4
%21 = OpConstant %8 0
%10 = OpFunction %1 None %2
%11 = OpLabel
%12 = OpAccessChain %20 %7 %21
%13 = OpLoad %4 %12
%14 = OpCompositeExtract %3 %13 3
%15 = OpCompositeInsert %4 %14 %13 2
%16 = OpVectorShuffle %4 %13 %15 0 4 7 1
OpStore %12 %16
OpReturn
OpFunctionEnd
"""


@pytest.mark.parametrize(
    "old, new, message",
    [
        (
            "OpStore %12 %16",
            "OpStore %12 %99",
            r"the instruction at word \d+ (opcode 62) uses the id 99, which nothing",
        ),
        ("OpStore %12 %16", "OpStore %12 %16 Aligned|Volatile 16", ""),
        ("OpLoad %4 %12", "OpLoad %98 %12", r"(opcode 61) uses the id 98, which nothing in the module defines"),
        ("OpDecorate %5 Block", "OpDecorate %97 Block", r"(opcode 71) uses the id 97, which nothing in the module"),
        ("%16 = OpVector", "%13 = OpVector", r"the id 13 is defined at word \d+ and again at word \d+"),
        ("%16 = OpVector", "%8 = OpVector", r"the id 8 is defined at word \d+ and again at word \d+"),
        ("%5 1 Offset", "%5 2 Offset", r"(opcode 72) is about member 2 of the structure 5, which has 2"),
        ("%5 1 Offset", "%4 1 Offset", r"(opcode 72) is about a member of the id 4, which is not a structure"),
        ("%20 %7 %21", "%20 %7 %21 %9", ""),
        ("%8 1", "%8 5", ""),
        (
            "%20 %7 %21",
            "%20 %7 %14",
            r"(opcode 65) selects a member of the structure 5 by an id that is not a constant",
        ),
        ("%3 %13 3", "%3 %13 4", r"(opcode 81) selects component or column 4 where there are 4"),
        ("%14 %13 2", "%14 %13 5", r"(opcode 82) selects component or column 5 where there are 4"),
        ("0 4 7 1", "0 4 8 1", r"(opcode 79) selects component 8 where there are 8"),
        ("0 4 7 1", "0 4 0xFFFFFFFF 1", ""),
        ("%3 %13 3", "%3 %13 3 0", r"(opcode 81) selects a part of the type 3, which has none"),
        ("%20 %7 %21", "%20 %7 %21 %21 %21", r"(opcode 65) selects a part of the type 3, which has none"),
        ("OpLoad %4 %12", "OpLoad %9 %12", r"the id 9 is the type of a result, but it is not a type that a value can"),
        ("OpLoad %4 %12", "OpLoad %2 %12", r"the id 2 is the type of a result, but it is not a type that a value can"),
        ("%5 = OpTypeStruct %4", "%5 = OpTypeStruct %2", r"the type 5 at word \d+ is made of the id 2, which is not a"),
        ("%5 = OpTypeStruct %4", "%5 = OpTypeStruct %5", r"the type 5 at word \d+ is made of the id 5, which is not a"),
        ("%5 = OpTypeStruct %4", "%5 = OpTypeStruct %8", r"the type 5 at word \d+ is made of the id 8, which is not a"),
    ],
)
def test_ids_and_members(assemble: Callable[..., bytes], old: str, new: str, message: str) -> None:
    """An id that nothing defines, one defined twice, a member that is not there: each with its place and number."""
    assert MODULE.count(old) == 1
    check_ids(read_module(assemble(MODULE)).source)
    module = read_module(assemble(MODULE.replace(old, new)), name="m.spv")
    if not message:
        check_ids(module.source)
        return
    pattern = re.sub(r"\(opcode (\d+)\)", r"\\(opcode \1\\)", message)
    with pytest.raises(SpirvError, match=f"^m.spv: .*{pattern}"):
        check_ids(module.source)


def test_a_member_in_an_access_chain(assemble: Callable[..., bytes]) -> None:
    """A structure's member is selected by a constant that is too large."""
    text = MODULE.replace("%8 1", "%8 2").replace("%20 %7 %21", "%20 %7 %9")
    with pytest.raises(SpirvError, match=r"\(opcode 65\) selects member 2 of the structure 5, which has 2"):
        check_ids(read_module(assemble(text)).source)


@pytest.mark.parametrize(
    "words, message",
    [
        ([2 << 16 | 62, 12], r"\(opcode 62\) has 2 words, it needs 3"),
        ([2 << 16 | 253, 12], r"\(opcode 253\) has 2 words, it has 1 at most"),
        ([1 << 16 | 3000], r"has the opcode 3000, which SPIR-V does not have"),
        ([1 << 16 | 6999], r"has the opcode 6999, which SPIR-V does not have"),
        ([5 << 16 | 62, 12, 13, 2 | 8, 16], r"\(opcode 62\) lacks an operand of its mask 0xa"),
    ],
)
def test_instructions_that_spirv_does_not_have(assemble: Callable[..., bytes], words: list[int], message: str) -> None:
    """Too few words, too many, unknown opcodes."""
    with pytest.raises(SpirvError, match=message):
        check_ids(read_module(inserted(assemble(MODULE), words)).source)


def test_an_opcode_of_an_extension_from_the_future(assemble: Callable[..., bytes]) -> None:
    """With an extension that is not known, unknown opcodes may be right, and define ids."""
    text = 'OpCapability Shader\nOpExtension "SPV_KHR_from_the_future"\n'
    code = assemble(MODULE.replace("\nOpCapability Shader\n", text).replace("OpStore %12 %16", "OpStore %12 %13"))
    check_ids(read_module(inserted(code, [2 << 16 | 6999, 17])).source)
    with pytest.raises(SpirvError, match="opcode 3000"):
        check_ids(read_module(inserted(code, [1 << 16 | 3000])).source)


def inserted(code: bytes, words: list[int]) -> bytes:
    """A module with an instruction before its first OpReturn."""
    content = list(struct.unpack(f"<{len(code) // 4}I", code))
    place = content.index(1 << 16 | 253)
    content[place:place] = words
    return struct.pack(f"<{len(content)}I", *content)


def test_modules_that_are_right() -> None:
    """Graphs and tensors of vendor extensions pass as well."""
    for path in sorted(FIXTURES.glob("*.spv")):
        check_ids(read_module(path.read_bytes(), name=path.name).source)


def test_switches_specialization_and_debug_information(glsl: Callable[..., bytes]) -> None:
    """What has ids behind literals: switches, OpSpecConstantOp, image operands, execution modes by id, -g."""
    source = """
    layout(local_size_x_id = 3) in;
    layout(constant_id = 0) const int N = 4;
    layout(set = 0, binding = 0) buffer A { int n[]; } a;
    layout(set = 0, binding = 1) uniform sampler2D t;
    shared int scratch[N * 2 + 1];
    void main() {
        scratch[N] = int(textureGrad(t, vec2(0), vec2(1), vec2(2)).x + textureLodOffset(t, vec2(0), 1., ivec2(1)).y);
        switch (a.n[3]) { case 7: a.n[1] = scratch[N - 1]; break; case 8: a.n[5] = 2; }
    }"""
    for options in ((), ("-g",), ("-gVS",)):
        check_ids(read_module(glsl(source, "--target-env", "vulkan1.3", *options)).source)


@pytest.mark.parametrize("width, literal", [(8, "3"), (32, "3"), (64, "0x100000003")])
def test_the_labels_of_a_switch(assemble: Callable[..., bytes], width: int, literal: str) -> None:
    """Literals take as many words as the selector, and labels stand between them."""
    declared = f"OpCapability Int64\nOpCapability Int8\n{MODULE}".replace(
        "%10 = OpFunction", f"%30 = OpTypeInt {width} 0\n%31 = OpConstant %30 1\n%10 = OpFunction"
    )
    text = declared.replace(
        "OpReturn", f"OpSelectionMerge %40 None\nOpSwitch %31 %40 {literal} %41\n%41 = OpLabel\nOpBranch %40\n"
        "%40 = OpLabel\nOpReturn"
    )  # fmt: skip
    check_ids(read_module(assemble(text)).source)
    with pytest.raises(SpirvError, match=r"\(opcode 251\) uses the id 77"):
        check_ids(read_module(assemble(text.replace(f"{literal} %41", f"{literal} %77"))).source)


@pytest.mark.parametrize("count", [300, pytest.param(20_000, marks=pytest.mark.heavy)])
def test_mutants_that_we_refuse_are_invalid(
    count: int, tmp_path: Path, shader_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of modules with random changes, we refuse none that spirv-val accepts, and refuse many that it refuses."""
    modules = {
        f"{number} {name}": code
        for number, scenario in enumerate(SCENARIOS)
        for name, code in as_spirv(CHECKOUT / "scenarios" / scenario / "scenario.json", tmp_path / str(number)).items()
    }
    wrong, refused = [], 0
    path = tmp_path / "mutant.spv"
    for seed in range(count):
        dice = random.Random(seed)
        code = mutated(modules[dice.choice(sorted(modules))], dice)
        verdict = our_verdict(code)
        if not verdict:
            continue
        refused += 1
        path.write_bytes(code)
        done = subprocess.run(["spirv-val", *OPTIONS, str(path)], capture_output=True, timeout=60, check=False)
        if done.returncode == 0:
            wrong.append((seed, verdict))
    assert wrong == []
    assert refused > count // 4


def test_the_table_is_that_of_the_grammar() -> None:
    """Generating it again from the pinned package changes nothing."""
    command = [sys.executable, str(CHECKOUT / "tools" / "generate_spirv_operands.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr  # pip may warn


def test_the_opcodes_that_define_ids_agree() -> None:
    """The reader's own list of definitions says the same as the grammar."""
    from scenario_runner.spirv.index import DEFINITIONS
    from scenario_runner.spirv.operands import FORMS

    assert {opcode: FORMS[opcode].result for opcode in DEFINITIONS if opcode in FORMS} == {
        opcode: slot for opcode, (slot, _) in DEFINITIONS.items() if opcode in FORMS
    }
    assert FORMS[op.STORE].result == 0

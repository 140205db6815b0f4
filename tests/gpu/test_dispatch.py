"""dispatch_compute: workgroup counts, buffers of every size and kind, limits, shaders from GLSL and SPIR-V."""

import re

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import CompileError, UnsupportedError
from scenario_runner.vulkan.capabilities import lacks_capability, lacks_feature
from tests.scenes import Scene, assemble, error_of, glsl, kernel

ONE = "layout(set = 0, binding = 0) buffer B { uint a[]; };\n"
# What devices of one vendor have, so that no device has all of it: extension, its name in GLSL, a variable that it
# brings, the capability that the variable needs, and the feature for it.
OF_ONE_VENDOR = (
    (
        "VK_NV_shader_sm_builtins",
        "GL_NV_shader_sm_builtins",
        "gl_SMCountNV",
        "ShaderSMBuiltinsNV",
        "shaderSMBuiltins (VkPhysicalDeviceShaderSMBuiltinsFeaturesNV)",
    ),
    (
        "VK_ARM_shader_core_builtins",
        "GL_ARM_shader_core_builtins",
        "gl_CoreCountARM",
        "CoreBuiltinsARM",
        "shaderCoreBuiltins (VkPhysicalDeviceShaderCoreBuiltinsFeaturesARM)",
    ),
)
COUNT = """
uvec3 n = gl_NumWorkGroups, i = gl_WorkGroupID;
a[i.x + n.x * (i.y + n.y * i.z)] = i.x + 10u * i.y + 100u * i.z + 1u;
"""


@pytest.mark.parametrize("groups", [[5], [3, 4], [2, 3, 4], [1, 1, 6], [1, 7]])
def test_workgroup_counts(scene: Scene, runner: Runner, groups: list[int]) -> None:
    """One to three counts may be given; those left out are 1."""
    x, y, z = (*groups, 1, 1)[:3]
    result = runner.run(scene.shader("s", glsl(COUNT, ONE)).buffer("x", size=256).dispatch("s", ["x"], groups).write())
    grid = numpy.arange(x)[None, None, :] + 10 * numpy.arange(y)[None, :, None] + 100 * numpy.arange(z)[:, None, None]
    expected = numpy.zeros(64, numpy.uint32)
    expected[: x * y * z] = (grid + 1).reshape(-1)
    assert (result.array("x", "u4") == expected).all()


@pytest.mark.parametrize("groups", [[0], [4, 0], [1, 1, 0]])
def test_zero_workgroups(scene: Scene, runner: Runner, groups: list[int]) -> None:
    """A count of zero runs nothing, and the next command runs."""
    scene.shader("s", glsl(COUNT, ONE)).buffer("x", size=16).buffer("y", size=16)
    result = runner.run(scene.dispatch("s", ["x"], groups).dispatch("s", ["y"], [2]).write())
    assert result.array("x", "u4").tolist() == [0] * 4
    assert result.array("y", "u4").tolist() == [1, 2, 0, 0]


def test_too_many_workgroups(scene: Scene, runner: Runner) -> None:
    """More workgroups than the device takes are refused by the name of the limit, along each axis."""
    limits = runner.physical_device.limits.maxComputeWorkGroupCount
    scene.shader("s", glsl("", ONE)).buffer("x", size=4).dispatch("s", ["x"], [limits[0] + 1, limits[1] + 7])
    error = error_of(UnsupportedError, runner.run, scene.write())
    name = runner.physical_device.name
    assert [problem.message for problem in error.problems] == [
        f"{limits[axis] + extra} workgroups along {letter}; maxComputeWorkGroupCount[{axis}] of {name!r}"
        f" is {limits[axis]}"
        for axis, letter, extra in ((0, "x", 1), (1, "y", 7))
    ]
    assert all(problem.pointer == "/commands/0/dispatch_compute/rangeND" for problem in error.problems)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7, 10, 13])
def test_size_that_is_no_multiple_of_four(scene: Scene, runner: Runner, size: int) -> None:
    """Buffers of any size work, from their first byte to their last, and nothing beyond is stored."""
    text = "#extension GL_EXT_shader_8bit_storage : require\n"
    text += "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
    text += "layout(binding = 0) buffer A { uint8_t a[]; };\nlayout(binding = 1) buffer C { uint8_t b[]; };\n"
    content = numpy.arange(1, size + 1, dtype=numpy.uint8)
    scene.shader("s", glsl("b[gl_WorkGroupID.x] = a[gl_WorkGroupID.x] + uint8_t(100);", text))
    scene.buffer("x", content).buffer("y", size=size).buffer("untouched", size=size)
    result = runner.run(scene.dispatch("s", ["x", "y"], [size]).write())
    assert result.array("y", "u1").tolist() == [100 + value for value in range(1, size + 1)]
    assert scene.output("y", "u1").tolist() == [100 + value for value in range(1, size + 1)]
    assert result.array("x", "u1").tolist() == content.tolist()
    assert result.array("untouched", "u1").tolist() == [0] * size


def test_missing_capability_is_named(scene: Scene, runner: Runner) -> None:
    """A shader beyond the device is refused with the capability, the feature and the shader."""
    vendor, variable, capability, feature = next(
        row[1:] for row in OF_ONE_VENDOR if row[0] not in runner.physical_device.extensions
    )
    text = f"#extension {vendor} : require\n" + ONE
    scene.shader("s", glsl(f"a[0] = {variable};", text)).buffer("x", size=8).dispatch("s", ["x"])
    messages = [problem.message for problem in error_of(UnsupportedError, runner.run, scene.write()).problems]
    name = runner.physical_device.name
    assert f"shader 's' needs the capability {capability}; {name!r} lacks {feature}" in messages


def test_an_unused_capability_is_explained(scene: Scene, runner: Runner) -> None:
    """Nothing in the module uses the capability that the device lacks, and the help says how to remove it."""
    text = 'OpCapability GroupNonUniformPartitionedNV\nOpExtension "SPV_NV_shader_subgroup_partitioned"\nmain:\n'
    path = scene.module("s", assemble(kernel(text))).dispatch("s", []).write()
    if not lacks_capability(runner.physical_device, "GroupNonUniformPartitionedNV"):
        runner.run(path)
        return
    error = error_of(UnsupportedError, runner.run, path)
    problem = next(problem for problem in error.problems if "the capability Group" in problem.message)
    assert problem.help == "no instruction uses it; spirv-opt --trim-capabilities removes it"


SUBGROUPS = "#extension GL_KHR_shader_subgroup_basic : require\n" + ONE


def test_full_subgroups(scene: Scene, runner: Runner) -> None:
    """Full subgroups fill the workgroup. Another size of the workgroup is refused by the number to use."""
    physical = runner.physical_device
    size = int(physical.vulkan11_properties.subgroupSize)
    for uid, count in (("even", 2 * size), ("odd", 2 * size + 1)):
        text = glsl("a[gl_SubgroupID] = gl_SubgroupSize;", SUBGROUPS, local_size=count)
        scene.shader(uid, text, full_subgroups=True, build_options="--target-env vulkan1.1")
    scene.buffer("x", size=12).dispatch("even", ["x"])
    if lacks_feature(physical, "computeFullSubgroups"):
        with pytest.raises(UnsupportedError, match="full_subgroups of shader 'even' needs computeFullSubgroups"):
            runner.run(scene.write())
        return
    assert runner.run(scene.write()).array("x", "u4").tolist() == [size, size, 0]
    problem = scene.dispatch("odd", ["x"]).refusal(runner.run, UnsupportedError)
    found = (problem.code, problem.pointer, problem.help)
    assert found == ("SR-LIMIT-013", "/resources/1/shader", f"use a multiple of {size}")


def test_full_subgroups_of_a_fragment_shader(scene: Scene, runner: Runner) -> None:
    """Only compute shaders have full subgroups."""
    scene.shader("f", "#version 450\nvoid main() {}\n", stage="fragment", full_subgroups=True)
    problem = scene.refusal(runner.run)
    assert (problem.code, problem.pointer) == ("SR-CONFLICT-006", "/resources/0/shader/full_subgroups")


def test_many_buffers(scene: Scene, runner: Runner) -> None:
    """5,000 buffers and as many dispatches work in one scenario: allocations are shared."""
    count = 5000
    scene.shader("s", glsl("a[gl_GlobalInvocationID.x] = a[gl_GlobalInvocationID.x] * 2u + 1u;", ONE, local_size=4))
    for number in range(count):
        scene.buffer(f"b{number}", size=16, dst=None).dispatch("s", [f"b{number}"])
    scene.buffer("first", numpy.arange(4, dtype=numpy.uint32)).dispatch("s", ["first"])
    inputs = {f"b{number}": numpy.full(4, number, numpy.uint32) for number in range(count)}
    result = runner.run(scene.write(), inputs)
    assert result.array("first", "u4").tolist() == [1, 3, 5, 7]
    found = numpy.stack([result.array(f"b{number}", "u4") for number in range(count)])
    assert (found == numpy.arange(count, dtype=numpy.uint32)[:, None] * 2 + 1).all()


def test_many_dispatches(scene: Scene, runner: Runner) -> None:
    """2,000 dispatches run in their order."""
    scene.shader("s", glsl("a[0] = a[0] * 1664525u + 1013904223u;", ONE)).buffer("x", size=4)
    for _ in range(2000):
        scene.dispatch("s", ["x"])
    value = 0
    for _ in range(2000):
        value = (value * 1664525 + 1013904223) % 2**32
    assert runner.run(scene.write()).array("x", "u4").tolist() == [value]


@pytest.mark.parametrize(
    "options, expected",
    [
        ("-DN=7", 7),
        ("-D N=8", 8),
        ("-DOTHER -DN=3", 3),
        ("  -DN=9   -DOTHER=1 ", 9),
        ('"-DN=(3 + 4)"', 7),
        ("-DN='(5 * 5)'", 25),
        ("-DN=1 -UN -DN=6", 6),
        ("-DADD(a,b)=((a)+(b)) -DN=ADD(20,1)", 21),
    ],
)
def test_build_options(scene: Scene, runner: Runner, options: str, expected: int) -> None:
    """build_options are taken as a compiler's command line takes them."""
    scene.shader("s", glsl("a[0] = uint(N);", ONE), build_options=options).buffer("x", size=4).dispatch("s", ["x"])
    assert runner.run(scene.write()).array("x", "u4").tolist() == [expected]


def test_include_directories(scene: Scene, runner: Runner) -> None:
    """Includes come from the shader's own folder, then include_dirs (relative to the scenario), then -I."""
    include = "#extension GL_GOOGLE_include_directive : require\n"
    scene.file("shaders/own.glsl", "const uint OWN = 1u;\n")
    scene.file("shared/own.glsl", "const uint OWN = 100u;\n")
    scene.file("shared/dir.glsl", '#include "deeper/nested.glsl"\nconst uint DIR = 10u + NESTED;\n')
    scene.file("shared/deeper/nested.glsl", "const uint NESTED = 2u;\n")
    scene.file("option dir/option.glsl", "const uint OPTION = 1000u;\n")
    includes = include + '#include "own.glsl"\n#include "dir.glsl"\n#include <option.glsl>\n'
    scene.file("shaders/s.comp", glsl("a[0] = OWN + DIR + OPTION;", includes + ONE))
    scene.resource(
        "shader", uid="s", src="shaders/s.comp", type="GLSL", include_dirs=["shared"], build_options="-I'option dir'"
    )
    scene.buffer("x", size=4).dispatch("s", ["x"])
    assert runner.run(scene.write()).array("x", "u4").tolist() == [1 + 12 + 1000]


def test_gaps_in_descriptor_sets(scene: Scene, runner: Runner) -> None:
    """Set and binding numbers may leave gaps."""
    declarations = (
        "layout(set = 1, binding = 7) buffer A { uint a[]; };\nlayout(set = 4, binding = 2) buffer B { uint b[]; };\n"
    )
    scene.shader("copy", glsl("b[0] = a[0] * 3u;", declarations))
    scene.buffer("x", numpy.array([5], numpy.uint32)).buffer("y", size=4)
    scene.dispatch("copy", {(4, 2): "y", (1, 7): "x"})
    assert runner.run(scene.write()).array("y", "u4").tolist() == [15]


def test_no_bindings(scene: Scene, runner: Runner) -> None:
    """A shader without resources runs without bindings, also between dispatches that have some."""
    scene.shader("nothing", glsl("")).shader("count", glsl("a[0] += 1u;", ONE)).buffer("x", size=4)
    scene.dispatch("nothing", []).dispatch("count", ["x"]).dispatch("nothing", []).dispatch("count", ["x"])
    assert runner.run(scene.write()).array("x", "u4").tolist() == [2]


def test_unused_shader_is_never_opened(scene: Scene, runner: Runner) -> None:
    """A shader that no command uses need not exist."""
    scene.resource("shader", uid="ghost", src="nowhere.comp", type="GLSL")
    scene.shader("count", glsl("a[0] += 1u;", ONE)).buffer("x", size=4).dispatch("count", ["x"])
    assert runner.run(scene.write()).array("x", "u4").tolist() == [1]


def test_shader_that_does_not_compile(scene: Scene, runner: Runner) -> None:
    """A failed compile shows file and line with the compiler's own message, for every such shader."""
    scene.shader("first", glsl("a[0] = missing;", ONE)).shader("second", glsl("a[0] += ;", ONE))
    scene.buffer("x", size=4).dispatch("first", ["x"]).dispatch("second", ["x"])
    text = str(error_of(CompileError, runner.run, scene.write()))
    assert re.search(r"first\.comp:6:8: .*'missing' : undeclared identifier", text)
    assert re.search(r"second\.comp:6:(\d+:)? .*syntax error", text)


def test_an_array_of_pointers(scene: Scene, runner: Runner) -> None:
    """A block may hold an array of buffer references, which SPIR-V declares after the array that is made of them."""
    declarations = """#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
layout(buffer_reference) buffer Node;
layout(buffer_reference, std430) buffer Node { uint value; Node next[2]; };
layout(binding = 0, std430) buffer List { uint factor; Node nodes[3]; } list;
layout(binding = 1) buffer Words { uvec2 words[]; };
"""
    body = "uint i = gl_WorkGroupID.x; words[i] = uvec2(list.nodes[i]) * list.factor;"
    pointers = numpy.array([[7, 1], [8, 2], [9, 3]], "u4")
    scene.shader("s", glsl(body, declarations)).buffer("list", numpy.array([3, 0, *pointers.flat], "u4"))
    scene.buffer("words", size=24).dispatch("s", ["list", "words"], [3])
    runner.run(scene.write())
    assert scene.output("words", "u4").tolist() == [21, 3, 24, 6, 27, 9]

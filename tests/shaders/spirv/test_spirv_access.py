"""Static use of variables by an entry point, and inputs and outputs by location."""

import pytest

from scenario_runner.errors import SpirvError
from scenario_runner.shaders.spirv import read_module
from scenario_runner.shaders.spirv.stage_interface import StageInterface, StageVariable
from tests.scenes import assemble, kernel
from tests.shaders.modules import Bindings, Compile, Entry, by_name, kernel_entry, read_kernel


def test_static_use_goes_through_the_call_graph() -> None:
    """Each entry point has the bindings that its own call tree names, and no others."""
    module = read_kernel("""
            OpEntryPoint GLCompute %main "first"
            OpEntryPoint GLCompute %other "second"
            OpExecutionMode %other LocalSize 1 1 1
            Bind %near 0 0
            Bind %far 0 12
            Bind %nobody 0 2
            OpDecorate %block Block
            OpMemberDecorate %block 0 Offset 0
            %block = OpTypeStruct %uint
            %to_block = OpTypePointer StorageBuffer %block
            %to_uint = OpTypePointer StorageBuffer %uint
            %vector = OpTypeVector %uint 4
            %zero = OpConstant %uint 0
            %zeros = OpConstantNull %vector
            %storing = OpTypeFunction %void %to_block
            %near = OpVariable %to_block StorageBuffer
            %far = OpVariable %to_block StorageBuffer
            %nobody = OpVariable %to_block StorageBuffer
            main:
            %31 = OpCompositeInsert %vector %zero %zeros 12
            %32 = OpFunctionCall %void %store %near
            OpReturn
            OpFunctionEnd
            %other = OpFunction %void None %nothing
            %40 = OpLabel
            %41 = OpAccessChain %to_uint %far %zero
            %42 = OpLoad %uint %41
            OpReturn
            OpFunctionEnd
            %store = OpFunction %void None %storing
            %50 = OpFunctionParameter %to_block
            %51 = OpLabel
            %52 = OpAccessChain %to_uint %50 %zero
            OpStore %52 %zero
            OpReturn
            OpFunctionEnd
    """)
    first, second = module.entry_points
    # The literal 12 of OpCompositeInsert is not a use of the variable with the id 12.
    assert [(item.name, item.reads, item.writes) for item in first.interface.bindings] == [("near", False, True)]
    assert [(item.name, item.reads, item.writes) for item in second.interface.bindings] == [("far", True, False)]


def test_declared_variables_are_listed_from_spirv_1_4_on(entry_point: Entry) -> None:
    """A variable that is only declared is left out before SPIR-V 1.4, and marked as unused afterwards."""
    source = (
        "layout(local_size_x = 1) in; layout(binding = 0) buffer A { float a; };"
        "layout(binding = 1) buffer B { float b; }; void main() { a = 1.0; }"
    )
    old = entry_point(source, "--target-env", "vulkan1.1").interface
    new = entry_point(source, "--target-env", "vulkan1.2").interface
    assert [(item.name, item.used) for item in old.bindings] == [("A", True)]
    assert [(item.name, item.used) for item in new.bindings] == [("A", True), ("B", False)]
    assert (new.bindings[1].reads, new.bindings[1].writes) == (False, False)


def test_handles_are_followed_through_calls(bindings_of: Bindings) -> None:
    """An image passed to a function is read or written like in the function."""
    bindings = bindings_of("""
        #version 450
        #extension GL_EXT_shader_image_load_formatted : require
        layout(local_size_x = 1) in;
        layout(binding = 0) uniform image2D a;
        layout(binding = 1) uniform image2D b;
        layout(binding = 2) uniform image2D c;
        float get(image2D from) { return imageLoad(from, ivec2(0)).x; }
        void put(image2D to, float value) { imageStore(to, ivec2(0), vec4(value)); }
        void main() { put(b, get(a) + float(imageSize(c).x)); }
    """)
    assert {name: (item.reads, item.writes) for name, item in bindings.items()} == {
        "a": (True, False),
        "b": (False, True),
        "c": (False, False),
    }


def test_atomics_read_and_write(bindings_of: Bindings) -> None:
    """An atomic addition on a buffer does both; asking for a length does neither."""
    bindings = bindings_of("""
        layout(local_size_x = 1) in;
        layout(binding = 0) buffer A { uint counter; };
        layout(binding = 1) buffer B { uint items[]; } b;
        void main() { atomicAdd(counter, uint(b.items.length())); }
    """)
    assert (bindings["A"].reads, bindings["A"].writes) == (True, True)
    assert (bindings["b"].used, bindings["b"].reads, bindings["b"].writes) == (True, False, False)


def test_selected_pointers_reach_every_buffer() -> None:
    """With variable pointers, a store through a selected pointer writes both candidates."""
    selecting = kernel_entry("""
        OpCapability VariablePointers
        Bind %left 0 0
        Bind %right 0 1
        OpDecorate %6 Block
        OpMemberDecorate %6 0 Offset 0
        %4 = OpTypeBool
        %6 = OpTypeStruct %uint
        %7 = OpTypePointer StorageBuffer %6
        %8 = OpTypePointer StorageBuffer %uint
        %9 = OpConstant %uint 0
        %12 = OpConstantTrue %4
        %left = OpVariable %7 StorageBuffer
        %right = OpVariable %7 StorageBuffer
        main:
        %14 = OpSelect %7 %12 %left %right
        %15 = OpAccessChain %8 %14 %9
        OpStore %15 %9
    """)
    assert {name: (item.reads, item.writes) for name, item in by_name(selecting).items()} == {
        "left": (False, True),
        "right": (False, True),
    }


def test_debug_information_is_no_use(entry_point: Entry) -> None:
    """Debug information does not change the interface of a module."""
    source = (
        "#version 450\nlayout(local_size_x = 1) in;\nlayout(binding = 0) buffer A { float a; };\n"
        "layout(binding = 1) buffer B { float b; };\nvoid main() { a = 1.0; }\n"
    )
    bindings = entry_point(source, "-gVS").interface.bindings
    assert [item.name for item in bindings if item.used] == ["A"]


def test_recursion_and_missing_functions_are_refused() -> None:
    """A function that calls itself, or one that does not exist, ends the reading with a sentence."""
    text = kernel("""
        main:
        %5 = OpFunctionCall %void CALLEE
        OpReturn
        OpFunctionEnd
        %6 = OpFunction %void None %nothing
        %7 = OpLabel
        %8 = OpFunctionCall %void %main
    """)
    with pytest.raises(SpirvError, match=r"the function 1 calls itself, which SPIR-V forbids"):
        by_name(read_module(assemble(text.replace("CALLEE", "%6"))).entry_points[0])
    with pytest.raises(SpirvError, match=r"the function 3 is called or named as an entry point, but it does not exist"):
        by_name(read_module(assemble(text.replace("CALLEE", "%3"))).entry_points[0])


def stage(module: bytes, **specialization: int) -> StageInterface:
    return read_module(module).entry_points[0].stage_interface({0: specialization["n"]} if specialization else None)


def places(variables: tuple[StageVariable, ...]) -> list[tuple[str, int, int, int, str]]:
    return [(each.name, each.location, each.locations, each.component, str(each.type)) for each in variables]


VERTEX = """
layout(constant_id = 0) const int N = 2;
struct S { vec3 x; float y[2]; };
layout(location = 3) in vec4 place;
layout(location = 0) out vec3 color;
layout(location = 0, component = 3) out float alpha;
layout(location = 1, component = 2) flat out int number;
layout(location = 2) out Block { mat3x2 m; layout(location = 30) S s; noperspective float z; } block;
layout(location = 10) out vec2 list[N];
layout(location = 20) centroid out S structs[2];
layout(location = 40) flat out dvec3 wide;
void main() {
    gl_Position = place; color = vec3(1); alpha = 1; number = 2; block.z = 1; list[0] = vec2(0); wide = dvec3(0);
}
"""


def test_locations_follow_the_types(glsl: Compile) -> None:
    """Matrices take one a column, arrays one an element, structures one after the other, wide vectors two."""
    found = stage(glsl(VERTEX, stage="vert"))
    assert places(found.inputs) == [("place", 3, 1, 0, "float32x4")]
    assert places(found.outputs) == [
        ("color", 0, 1, 0, "float32x3"),
        ("alpha", 0, 1, 3, "float32"),
        ("number", 1, 1, 2, "int32"),
        ("block.m", 2, 3, 0, "float32x2x3"),
        ("list", 10, 2, 0, "float32x2[2]"),
        ("structs", 20, 6, 0, "S[2]"),
        ("block.s.x", 30, 1, 0, "float32x3"),
        ("block.s.y", 31, 2, 0, "float32[2]"),
        ("block.z", 33, 1, 0, "float32"),
        ("wide", 40, 2, 0, "float64x3"),
    ]
    assert found.problems == ()
    assert "Position" in found.outputs_built_in
    by_name = {each.name: each for each in found.outputs}
    assert (by_name["number"].flat, by_name["color"].flat) == (True, False)
    assert by_name["block.z"].interpolation == ("noperspective",)
    assert by_name["structs"].interpolation == ("centroid",)
    assert list(by_name["wide"].words()) == [(40, 0), (40, 1), (40, 2), (40, 3), (41, 0), (41, 1)]
    assert list(by_name["structs"].words()) == [
        (20, 0), (20, 1), (20, 2), (21, 0), (22, 0), (23, 0), (23, 1), (23, 2), (24, 0), (25, 0),
    ]  # fmt: skip


def test_arrays_follow_the_specialization(glsl: Compile) -> None:
    """An array with a specialized length takes that many locations."""
    found = {each.name: each for each in stage(glsl(VERTEX, stage="vert"), n=5).outputs}
    assert found["list"].locations == 5


def test_compute_shaders_have_none(glsl: Compile) -> None:
    """Built-in variables are named apart, and have no location."""
    buffer = "layout(binding = 0) buffer A { uint a; };"
    found = stage(glsl("layout(local_size_x = 1) in;" + buffer + "void main() { a = gl_GlobalInvocationID.x; }"))
    assert (found.inputs, found.outputs, found.problems) == ((), (), ())
    assert found.inputs_built_in == ("GlobalInvocationId",)


MODULE = kernel("""
    OpEntryPoint Fragment %main "main" %a %b
    OpExecutionMode %main OriginUpperLeft
    OpName %a "a"
    OpName %b "b"
    OpDecorate %a Location 0
    OpDecorate %b Location 1
    %bool = OpTypeBool
    %float = OpTypeFloat 32
    %double = OpTypeFloat 64
    %v2 = OpTypeVector %float 2
    %d2 = OpTypeVector %double 2
    %m2 = OpTypeMatrix %v2 2
    %ptr = OpTypePointer Output %v2
    %a = OpVariable %ptr Output
    %b = OpVariable %ptr Output
""")


@pytest.mark.parametrize(
    "old, new, problem",
    [
        ("OpDecorate %b Location 1\n", "", "output 'b' has no Location decoration"),
        ("%b Location 1", "%b Location 0", "outputs 'a' and 'b' both take component 0 of location 0"),
        ("%b Location 1", "%b Location 5000", "output 'b' takes the locations 5000 to 5000; no device has that many"),
        ("Output %v2", "Output %bool", "output 'a' has the type bool, which stages cannot pass on"),
    ],
)
def test_declarations_that_cannot_be(old: str, new: str, problem: str) -> None:
    """A break of the rules for locations and components has one message, and the unchanged module has none."""
    assert stage(assemble(MODULE)).problems == ()
    assert old in MODULE
    assert problem in stage(assemble(MODULE.replace(old, new))).problems


def test_shared_locations() -> None:
    """Two outputs may share a location where their components, or their indices, differ."""
    for decoration in ("Component 2", "Index 1"):
        text = MODULE.replace("%b Location 1", f"%b Location 0\nOpDecorate %b {decoration}")
        assert stage(assemble(text)).problems == ()

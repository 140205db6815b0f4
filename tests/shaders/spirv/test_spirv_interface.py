"""The interface of an entry point, by static use; tensors of GL_ARM_tensors and graphs of SPV_ARM_graph.

fixtures/README.md says how the modules with tensors and graphs were made.
"""

import struct
from pathlib import Path

import pytest

from scenario_runner.errors import SpirvError
from scenario_runner.shaders.spirv import Scalar, Tensor, read_module
from tests.scenes import error_of
from tests.shaders.modules import Bindings, Compile, Entry, kernel_entry


def test_kinds_of_buffers(entry_point: Entry) -> None:
    """Uniform and storage blocks are told apart, before and after SPIR-V 1.3 renamed the storage class."""
    source = """
        layout(local_size_x = 1) in;
        layout(set = 2, binding = 7, std140) uniform Parameters { vec4 scale; float bias; } parameters;
        layout(set = 0, binding = 1) readonly buffer Source { uint count; float values[]; } source;
        layout(set = 0, binding = 0) buffer Target { float values[]; };
        void main() { values[source.count] = source.values[0] * parameters.scale.x; }
    """
    for target in ("vulkan1.0", "vulkan1.1", "vulkan1.3"):
        bindings = entry_point(source, "--target-env", target).interface.bindings
        assert [(item.set, item.binding, item.name, item.kind, item.count) for item in bindings] == [
            (0, 0, "Target", "storage_buffer", 1),
            (0, 1, "source", "storage_buffer", 1),
            (2, 7, "parameters", "uniform_buffer", 1),
        ]
        assert [(item.readable, item.writable, item.reads, item.writes) for item in bindings] == [
            (True, True, False, True),
            (True, False, True, False),
            (True, False, True, False),
        ]
        blocks = [item.block for item in bindings if item.block is not None]
        assert [(block.name, block.size_bytes, block.runtime_stride_bytes) for block in blocks] == [
            ("Target", 0, 4),
            ("Source", 4, 4),
            ("Parameters", 20, None),
        ]


def test_kinds_of_images(bindings_of: Bindings) -> None:
    """Images, samplers and texel buffers have the kind of descriptor that Vulkan asks for them."""
    bindings = bindings_of("""
        layout(local_size_x = 1) in;
        layout(binding = 0, rgba8) uniform image2D stored;
        layout(binding = 1, r32ui) uniform uimage3D counters;
        layout(binding = 2) uniform texture2DArray sampled;
        layout(binding = 3) uniform sampler nearest;
        layout(binding = 4) uniform sampler2DShadow shadow;
        layout(binding = 5) uniform isamplerBuffer texels;
        layout(binding = 6, rgba32f) writeonly uniform imageBuffer store;
        layout(binding = 7) uniform sampler2DMS many;
        layout(binding = 8) uniform samplerCube cubes[5];
        void main() {
            imageStore(stored, ivec2(0), imageLoad(stored, ivec2(1)));
            imageAtomicAdd(counters, ivec3(0), 1u);
            vec4 sum = texture(sampler2DArray(sampled, nearest), vec3(0));
            sum.x += texture(shadow, vec3(0)) + texelFetch(texels, 3).x + texelFetch(many, ivec2(0), 1).x;
            imageStore(store, 0, sum + texture(cubes[2], vec3(1)));
        }
    """)
    assert {name: item.kind for name, item in bindings.items()} == {
        "stored": "storage_image",
        "counters": "storage_image",
        "sampled": "sampled_image",
        "nearest": "sampler",
        "shadow": "combined_image_sampler",
        "texels": "uniform_texel_buffer",
        "store": "storage_texel_buffer",
        "many": "combined_image_sampler",
        "cubes": "combined_image_sampler",
    }
    images = {name: item.image for name, item in bindings.items() if item.image is not None}
    assert {name: (image.dim, image.format, str(image.sampled_type)) for name, image in images.items()} == {
        "stored": ("2D", "Rgba8", "float32"),
        "counters": ("3D", "R32ui", "uint32"),
        "sampled": ("2D", "Unknown", "float32"),
        "shadow": ("2D", "Unknown", "float32"),
        "texels": ("Buffer", "Unknown", "int32"),
        "store": ("Buffer", "Rgba32f", "float32"),
        "many": ("2D", "Unknown", "float32"),
        "cubes": ("Cube", "Unknown", "float32"),
    }
    assert [name for name, image in images.items() if image.arrayed] == ["sampled"]
    assert [name for name, image in images.items() if image.multisampled] == ["many"]
    assert [name for name, image in images.items() if image.depth] == ["shadow"]
    assert [name for name, item in bindings.items() if item.writes] == ["stored", "counters", "store"]
    assert [name for name, item in bindings.items() if not item.reads] == ["store"]
    assert [name for name, item in bindings.items() if item.writable] == ["stored", "counters", "store"]
    assert bindings["cubes"].count == 5


def test_descriptor_arrays(bindings_of: Bindings) -> None:
    """A descriptor array has its length, a runtime-sized one None."""
    bindings = bindings_of("""
        #version 450
        #extension GL_EXT_nonuniform_qualifier : require
        layout(local_size_x = 1) in;
        layout(binding = 0) buffer Fixed { float x[]; } fixed_size[3];
        layout(binding = 1, r32f) uniform image2D open[];
        void main() { fixed_size[1].x[0] = imageLoad(open[gl_LocalInvocationIndex], ivec2(0)).x; }
    """)
    assert {name: (item.kind, item.count) for name, item in bindings.items()} == {
        "fixed_size": ("storage_buffer", 3),
        "open": ("storage_image", None),
    }


def test_an_input_attachment(bindings_of: Bindings) -> None:
    """A subpass input is an input attachment with its index."""
    bindings = bindings_of(
        "layout(input_attachment_index = 2, binding = 4) uniform subpassInput before;"
        "layout(location = 0) out vec4 colour; void main() { colour = subpassLoad(before); }",
        stage="frag",
    )
    before = bindings["before"]
    assert (before.kind, before.input_attachment_index, before.reads) == ("input_attachment", 2, True)


def test_an_acceleration_structure(bindings_of: Bindings) -> None:
    """A ray query reads the acceleration structure that it is started with."""
    bindings = bindings_of(
        """
        #version 460
        #extension GL_EXT_ray_query : require
        layout(local_size_x = 1) in;
        layout(binding = 1) uniform accelerationStructureEXT scene;
        void main() {
            rayQueryEXT query;
            rayQueryInitializeEXT(query, scene, 0, 255, vec3(0), 0.0, vec3(1), 9.0);
            rayQueryProceedEXT(query);
        }
        """,
        "--target-env",
        "vulkan1.2",
    )
    scene = bindings["scene"]
    assert (scene.kind, scene.reads, scene.writes, scene.writable) == ("acceleration_structure", True, False, False)


def test_push_constants(entry_point: Entry) -> None:
    """The push-constant block has its members at their offsets."""
    block = entry_point("""
        layout(local_size_x = 1) in;
        layout(push_constant) uniform Push { layout(offset = 16) vec3 direction; float reach; mat3x2 turn; } push;
        void main() { float x = push.reach; }
    """).interface.push_constants
    assert block is not None
    members = [(member.name, str(member.type), member.offset_bytes, member.size_bytes) for member in block.members]
    assert members == [
        ("direction", "float32x3", 16, 12),
        ("reach", "float32", 28, 4),
        ("turn", "float32x2x3", 32, 24),
    ]
    assert (block.name, block.size_bytes) == ("Push", 56)
    assert (block.members[2].matrix_stride_bytes, block.members[2].majorness) == (8, "column")


@pytest.mark.parametrize("target", ["vulkan1.0", "vulkan1.3"])
def test_the_workgroup_size_follows_the_specialization(glsl: Compile, target: str) -> None:
    """Given values replace defaults, whether the size is a built-in constant or an execution mode."""
    source = "layout(local_size_x_id = 4, local_size_y = 3, local_size_z_id = 9) in; void main() {}"
    entry_point = read_module(glsl(source, "--target-env", target)).entry_points[0]
    assert entry_point.interface.local_size() == (1, 3, 1)
    assert entry_point.specialized({4: 64, 9: 2.0, 1234: 5}).local_size() == (64, 3, 2)
    with pytest.raises(SpirvError, match="specialization constant 4: -1 does not fit uint32: the range is 0 to"):
        entry_point.specialized({4: -1}).local_size()


def test_workgroup_memory_is_counted_like_std430(entry_point: Entry) -> None:
    """Shared variables that are used count with std430 padding, Booleans with 4 bytes, others not at all."""
    interface = entry_point("""
        layout(local_size_x = 1) in;
        struct Pair { vec3 position; float weight; };
        layout(constant_id = 0) const int N = 10;
        shared float line[5];    // 5 * 4
        shared Pair pairs[2];    // 2 * 16
        shared bool flag;        // 4
        shared dvec2 wide;       // 16
        shared float sized[N];   // 10 * 4
        shared float unused[1000];
        layout(binding = 0) buffer Out { float o; };
        void main() { line[0] = 1; pairs[1].weight = 2; flag = true; wide = dvec2(1); sized[2] = 3; o = line[0]; }
    """).interface
    assert interface.workgroup_memory_bytes == 5 * 4 + 2 * 16 + 4 + 16 + 10 * 4


def test_array_lengths_follow_the_specialization(entry_point: Entry) -> None:
    """Blocks, descriptor arrays and shared memory sized by arithmetic on constants have the given sizes."""
    sized = entry_point("""
        layout(local_size_x = 1) in;
        layout(constant_id = 3) const int N = 4;
        layout(constant_id = 5) const bool WIDE = false;
        const int M = N * 3 - 1;
        layout(binding = 0) buffer Data { float a[M]; float b; } data;
        shared vec4 scratch[WIDE ? M << 1 : N];
        void main() { scratch[0] = vec4(data.a[0] + data.b); data.b = scratch[0].x; }
    """)
    default, given = sized.interface, sized.specialized({3: 8, 5: True})
    sizes = [
        (
            [member.size_bytes for member in interface.bindings[0].block.members],
            interface.workgroup_memory_bytes,
        )
        for interface in (default, given)
        if interface.bindings[0].block is not None
    ]
    assert sizes == [([4 * 11, 4], 16 * 4), ([4 * 23, 4], 16 * 46)]
    with pytest.raises(SpirvError, match=r"the array type \d+ has the length -1, at least 1 is needed"):
        sized.specialized({3: 0})


def test_declarations_that_cannot_be_bound_are_problems() -> None:
    """A resource without a binding is a sentence, and the rest of the interface is still read."""
    interface = kernel_entry("""
        OpName %10 "lonely"
        OpDecorate %10 DescriptorSet 0
        %4 = OpTypeSampler
        %5 = OpTypePointer UniformConstant %4
        %6 = OpTypeFloat 32
        %7 = OpTypePointer UniformConstant %6
        %10 = OpVariable %5 UniformConstant
        %11 = OpVariable %7 UniformConstant
        main:
        %9 = OpLoad %4 %10
        %12 = OpLoad %6 %11
    """).interface
    assert interface.bindings == ()
    assert interface.problems == (
        "the variable 'lonely' has no Binding decoration, so nothing can be bound to it",
        "the variable with the id 11 has the type float32, which no descriptor can be bound to",
    )


def test_decoration_groups_count() -> None:
    """Decorations that come through a group are the variable's own."""
    (binding,) = kernel_entry("""
        Bind %group 3 9
        %group = OpDecorationGroup
        OpGroupDecorate %group %10
        %4 = OpTypeSampler
        %5 = OpTypePointer UniformConstant %4
        %10 = OpVariable %5 UniformConstant
        main:
        %9 = OpLoad %4 %10
    """).interface.bindings
    assert (binding.set, binding.binding, binding.kind, binding.reads) == (3, 9, "sampler", False)


FIXTURES = Path(__file__).parent / "fixtures"


def test_tensors_of_a_shader() -> None:
    """Tensor bindings have element type, rank and access; one that is only declared is not used."""
    module = read_module((FIXTURES / "tensor.spv").read_bytes())
    interface = module.entry_points[0].interface
    assert "TensorsARM" in module.capabilities
    assert "SPV_ARM_tensors" in module.extensions
    assert interface.local_size() == (4, 2, 1)
    assert [
        (item.set, item.binding, item.name, item.kind, str(item.tensor), item.used) for item in interface.bindings
    ] == [
        (0, 0, "source", "tensor", "tensor<int8, rank 4>", True),
        (0, 1, "target", "tensor", "tensor<int8, rank 4>", True),
        (1, 3, "both", "tensor", "tensor<float16, rank 2>", True),
        (1, 4, "unused", "tensor", "tensor<uint32, rank 1>", False),
    ]
    assert [(item.readable, item.writable, item.reads, item.writes) for item in interface.bindings] == [
        (True, False, True, False),
        (False, True, False, True),
        (True, True, True, True),
        (True, True, False, False),
    ]


def test_a_graph_with_two_outputs() -> None:
    """Inputs and outputs of a graph are told apart, each with its set, binding and shape."""
    module = read_module((FIXTURES / "graph_two_outputs.spv").read_bytes())
    assert {"GraphARM", "TensorsARM"} <= set(module.capabilities)
    assert (module.entry_points, module.graph_constants) == ((), ())
    (graph,) = module.graph_entry_points
    number = Tensor(Scalar("uint", 32), 4, (1, 8, 8, 4))
    truth = Tensor(Scalar("bool", 32), 4, (1, 8, 8, 4))
    assert graph.name == "graph_partition_0"
    assert [(item.set, item.binding, item.tensor) for item in graph.inputs] == [(0, 0, number), (0, 1, number)]
    assert [(item.set, item.binding, item.tensor) for item in graph.outputs] == [(0, 2, number), (0, 3, truth)]
    assert [item.name for item in graph.outputs] == ["graph_partition_0_res_0", "graph_partition_0_res_1"]


def test_a_graph_constant() -> None:
    """The weights that stay outside the module are a graph constant with its id and tensor type."""
    module = read_module((FIXTURES / "graph_constant.spv").read_bytes())
    assert [(item.id, str(item.tensor)) for item in module.graph_constants] == [(0, "tensor<2x3x3x4xfloat32>")]
    assert [str(item.tensor) for item in module.graph_entry_points[0].outputs] == ["tensor<1x8x8x2xfloat32>"]


@pytest.mark.parametrize(
    "opcode, word, value, message",
    [
        (4182, 1, 20, "the graph entry point 'graph_partition_0' names the graph 20, which does not exist"),
        (
            4190,
            2,
            9,
            "the graph entry point 'graph_partition_0' has 4 interface variables, "
            "its graph type has 4 inputs and outputs, 9 of them inputs",
        ),
        (4163, 3, 7, "the tensor type 2 has the rank 1, but 4 dimensions in its shape"),
        (4163, 2, 5, "the type 2 (OpTypeTensorARM) cannot be made of the type uint32[4]"),
    ],
)
def test_graphs_that_contradict_themselves_are_refused(opcode: int, word: int, value: int, message: str) -> None:
    """A graph with a reference to something missing has one message."""
    data = (FIXTURES / "graph_two_outputs.spv").read_bytes()
    words = list(struct.unpack(f"<{len(data) // 4}I", data))
    at = 5
    while words[at] & 0xFFFF != opcode:
        at += words[at] >> 16
    words[at + word] = value
    assert str(error_of(SpirvError, read_module, struct.pack(f"<{len(words)}I", *words))) == message

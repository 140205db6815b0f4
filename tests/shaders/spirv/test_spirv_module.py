"""Reading the head of a module, refusing bytes that are not a module, and modules as JSON."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from scenario_runner.cli.shader import describe
from scenario_runner.errors import SpirvError
from scenario_runner.shaders.spirv import read_module
from scenario_runner.shaders.spirv.index import without_idle_partitions
from tests.scenes import assemble, error_of, kernel
from tests.shaders.modules import Compile

COMPUTE = (
    "layout(local_size_x = 4) in; layout(set = 0, binding = 0) buffer B { float b[]; }; void main() { b[0] = 1.0; }"
)


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


HEADER = (0x07230203, 0x00010300, 0, 10, 0)
MEMORY_MODEL = (0x0003000E, 0, 1)


@pytest.mark.parametrize(
    "target, version",
    [("vulkan1.0", (1, 0)), ("vulkan1.1", (1, 3)), ("vulkan1.2", (1, 5)), ("vulkan1.3", (1, 6))],
)
def test_the_version_is_what_the_compiler_was_asked_for(glsl: Compile, target: str, version: tuple[int, int]) -> None:
    """Every Vulkan target of glslangValidator is read, with its SPIR-V version and the same interface."""
    module = read_module(glsl(COMPUTE, "--target-env", target))
    assert module.version == version
    assert [(entry.name, entry.execution_model) for entry in module.entry_points] == [("main", "GLCompute")]
    (binding,) = module.entry_points[0].interface.bindings
    assert (binding.kind, binding.set, binding.binding) == ("storage_buffer", 0, 0)
    assert binding.block is not None
    assert binding.block.runtime_stride_bytes == 4


def test_the_head_is_read() -> None:
    """Capabilities, extensions, imports and models have the names of the specification."""
    module = read_module(
        assemble(
            """
            OpCapability Shader
            OpCapability Int64
            OpCapability StorageBuffer16BitAccess
            OpCapability PhysicalStorageBufferAddresses
            OpExtension "SPV_KHR_16bit_storage"
            OpExtension "SPV_KHR_physical_storage_buffer"
            %1 = OpExtInstImport "GLSL.std.450"
            OpMemoryModel PhysicalStorageBuffer64 Vulkan
            """
        ),
        name="kernel.spv",
    )
    assert module.capabilities == ("Shader", "Int64", "StorageBuffer16BitAccess", "PhysicalStorageBufferAddresses")
    assert module.extensions == ("SPV_KHR_16bit_storage", "SPV_KHR_physical_storage_buffer")
    assert module.ext_inst_imports == ("GLSL.std.450",)
    assert (module.addressing_model, module.memory_model) == ("PhysicalStorageBuffer64", "Vulkan")
    assert (module.name, module.entry_points, module.spec_constants) == ("kernel.spv", (), ())


def test_unknown_capabilities_keep_their_number() -> None:
    """A capability that is newer than this reader is named by its number."""
    module = read_module(words(*HEADER, 0x00020011, 4711, *MEMORY_MODEL))
    assert module.capabilities == ("Capability4711",)


def test_big_endian_modules_are_read(glsl: Compile) -> None:
    """A module of the other byte order gives the same reading."""
    data = glsl(COMPUTE)
    swapped = struct.pack(f">{len(data) // 4}I", *struct.unpack(f"<{len(data) // 4}I", data))
    little, big = read_module(data), read_module(swapped)
    assert (little.big_endian, big.big_endian) == (False, True)
    assert big.entry_points[0].name == "main"
    assert big.entry_points[0].interface.bindings == little.entry_points[0].interface.bindings


@pytest.mark.parametrize(
    "data, message",
    [
        (b"", "a SPIR-V module has at least 20 bytes, this one has 0"),
        (bytes(22), "the size of a SPIR-V module is a multiple of 4 bytes, this one has 22 bytes"),
        (bytes(20), "a SPIR-V module begins with the word 0x07230203, this one with the bytes 00 00 00 00"),
        (
            words(0x07230203, 0x00010700, 0, 10, 0),
            "the module is SPIR-V 1.7; this program reads SPIR-V 1.0 to 1.6",
        ),
        (words(0x07230203, 0x00010000, 0, 0, 0), "the id bound is 0, SPIR-V allows 1 to 4194303"),
        (words(0x07230203, 0x00010000, 0, 1 << 31, 0), "the id bound is 2147483648, SPIR-V allows 1 to 4194303"),
        (words(*HEADER), "the module has no OpMemoryModel instruction"),
        (words(*HEADER, 17), "the instruction at word 5 has a word count of 0"),
        (words(*HEADER, 0x00030011, 1), "the instruction at word 5 has 3 words, but the module ends after 2"),
        (words(*HEADER, 0x00010011), "the instruction at word 5 (opcode 17) has 1 words, it needs 2 within the module"),
        (words(*HEADER, 0x00020013, 10), "the instruction at word 5 defines the id 10, the id bound is 10"),
        (words(*HEADER, 0x00020013, 0), "the instruction at word 5 defines the id 0, the id bound is 10"),
        (words(*HEADER, 0x00020013, 3, 0x00020014, 3), "the id 3 is defined at word 5 and again at word 7"),
        (
            words(*HEADER, *MEMORY_MODEL, 0x00050036, 1, 4, 0, 2, 0x000900FD),
            "the last instruction reaches 8 words past the end of the module",
        ),
        (
            words(*HEADER, *MEMORY_MODEL, 0x0004000F, 5, 1, 0x61616161),
            "the text at word 11 does not end with a zero byte",
        ),
    ],
)
def test_bytes_that_are_no_module_are_refused(data: bytes, message: str) -> None:
    """Every way not to be a module has its sentence, after the module's name if it has one."""
    for name, start in (("", ""), ("add.spv", "add.spv: ")):
        assert str(error_of(SpirvError, read_module, data, name=name)) == f"{start}{message}"


def test_an_entry_point_is_found_by_name_and_stage() -> None:
    """Two entry points may share a name when their stages differ."""
    module = read_module(
        assemble(
            """
            OpCapability Shader
            OpMemoryModel Logical GLSL450
            OpEntryPoint Vertex %1 "main"
            OpEntryPoint Fragment %2 "main"
            OpExecutionMode %2 OriginUpperLeft
            %3 = OpTypeVoid
            %4 = OpTypeFunction %3
            %1 = OpFunction %3 None %4
            %5 = OpLabel
            OpReturn
            OpFunctionEnd
            %2 = OpFunction %3 None %4
            %6 = OpLabel
            OpReturn
            OpFunctionEnd
            """
        )
    )
    found = module.entry_point("main", "Fragment")
    assert found is not None
    assert (found.execution_model, found.interface.bindings, found.interface.local_size()) == ("Fragment", (), None)
    assert module.entry_point("main") is module.entry_points[0]
    assert module.entry_point("main", "GLCompute") is None
    assert module.entry_point("other") is None


def test_the_generated_tables_are_those_of_the_grammar(checkout: Path) -> None:
    """Generating them again from the pinned package changes nothing."""
    command = [sys.executable, str(checkout / "tools" / "generate_spirv_tables.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr  # pip may warn


FIXTURES = Path(__file__).parent / "fixtures"


def test_a_shader_is_described(glsl: Compile) -> None:
    """The description holds the interface in plain JSON values."""
    described = describe(
        read_module(
            glsl("""
            layout(local_size_x = 8, local_size_y = 2) in;
            layout(constant_id = 1) const float GAIN = 0.5;
            struct Item { vec3 place; float weight; };
            layout(push_constant) uniform Push { uint count; } push;
            layout(set = 1, binding = 2) readonly buffer Items { mat3 turn; Item items[]; } items;
            layout(set = 0, binding = 0, rgba16f) writeonly uniform image2DArray target[2];
            shared float sums[16];
            void main() {
                sums[gl_LocalInvocationIndex] = items.items[push.count].weight * GAIN;
                imageStore(target[0], ivec3(0), vec4(sums[0] + items.turn[0].x));
            }
            """),
            name="gain.comp",
        )
    )
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    assert (described["name"], described["version"], described["memory_model"]) == ("gain.comp", "1.0", "GLSL450")
    assert described["specialization_constants"] == [
        {"id": 1, "name": "GAIN", "type": "float32", "size_bytes": 4, "default": 0.5}
    ]
    (entry_point,) = described["entry_points"]
    assert entry_point["local_size"] == [8, 2, 1]
    assert entry_point["workgroup_memory_bytes"] == 64
    assert entry_point["push_constants"]["members"] == [
        {"name": "count", "type": "uint32", "offset": 0, "size_bytes": 4}
    ]
    target, items = entry_point["bindings"]
    assert (target["kind"], target["count"], target["reads"], target["writes"]) == ("storage_image", 2, False, True)
    assert target["image"] == {
        "dim": "2D",
        "arrayed": True,
        "multisampled": False,
        "depth": False,
        "sampled_type": "float32",
        "format": "Rgba16f",
    }
    assert items["block"] == {
        "name": "Items",
        "size_bytes": 48,
        "runtime_stride_bytes": 16,
        "members": [
            {
                "name": "turn",
                "type": "float32x3x3",
                "offset": 0,
                "size_bytes": 44,
                "matrix_stride": 16,
                "majorness": "column",
            },
            {
                "name": "items",
                "type": "Item[]",
                "offset": 48,
                "size_bytes": 0,
                "array_stride": 16,
                "members": [
                    {"name": "place", "type": "float32x3", "offset": 0, "size_bytes": 12},
                    {"name": "weight", "type": "float32", "offset": 12, "size_bytes": 4},
                ],
            },
        ],
    }


def test_a_graph_is_described() -> None:
    """Graph entry points and graph constants are in the description."""
    described = describe(read_module((FIXTURES / "graph_constant.spv").read_bytes()))
    tensor = {"element_type": "float32", "rank": 4}
    assert described["graph_constants"] == [{"id": 0, **tensor, "shape": [2, 3, 3, 4]}]
    assert described["graph_entry_points"] == [
        {
            "name": "graph_partition_0",
            "inputs": [{"name": "graph_partition_0_arg_0", "set": 0, "binding": 0, **tensor, "shape": [1, 8, 8, 4]}],
            "outputs": [{"name": "graph_partition_0_res_0", "set": 0, "binding": 1, **tensor, "shape": [1, 8, 8, 2]}],
        }
    ]


def test_infinite_defaults_are_text() -> None:
    """A default that JSON has no number for becomes text."""
    described = describe(
        read_module(
            assemble(
                "OpCapability Shader\nOpMemoryModel Logical GLSL450\nOpDecorate %2 SpecId 0\n"
                "%1 = OpTypeFloat 32\n%2 = OpSpecConstant %1 0x1p+128\n"
            )
        )
    )
    assert described["specialization_constants"][0]["default"] == "inf"


@pytest.mark.parametrize(
    "body, is_used",
    [
        ("%sum = OpGroupNonUniformIAdd %uint %scope Reduce %one", False),
        ("%sum = OpGroupNonUniformIAdd %uint %scope PartitionedReduceNV %one %mask", True),
        ("%sum = OpGroupNonUniformIMul %uint %scope PartitionedExclusiveScanNV %one %mask", True),
        ("%set = OpGroupNonUniformPartitionNV %four %one", True),
        ("", False),
    ],
)
def test_idle_partitions(body: str, is_used: bool) -> None:
    """Only the declarations of partitioned operations that no instruction is go, and a damaged module stays."""
    text = """
        OpCapability GroupNonUniformPartitionedNV
        OpCapability GroupNonUniformArithmetic
        OpExtension "SPV_NV_shader_subgroup_partitioned"
        OpExtension "SPV_KHR_storage_buffer_storage_class"
        %four = OpTypeVector %uint 4
        %scope = OpConstant %uint 3
        %one = OpConstant %uint 1
        %mask = OpConstantComposite %four %one %one %one %one
        main:
    """
    code = assemble(kernel(f"{text.rstrip()}\n{body}\n".replace("        main:", "main:")), "spv1.3")
    module = read_module(without_idle_partitions(code))
    assert ("GroupNonUniformPartitionedNV" in module.capabilities) == is_used
    assert ("SPV_NV_shader_subgroup_partitioned" in module.extensions) == is_used
    assert {"GroupNonUniformArithmetic", "Shader"} <= set(module.capabilities)
    assert "SPV_KHR_storage_buffer_storage_class" in module.extensions
    assert without_idle_partitions(code[:-4]) == code[:-4]

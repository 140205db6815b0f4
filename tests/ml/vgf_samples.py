"""VGF files for the tests: the committed fixtures, and files that ``vgfpy`` encodes with every field in use."""

import io
import struct
from collections.abc import Sequence
from pathlib import Path

from scenario_runner.ml.vgf_model import Category, DescriptorSet, ModelResource, Module, Segment, Slot, Vgf
from scenario_runner.ml.vgf_tables import vgf_parts
from tests.left_out import VGF_LIBRARY, module_of

vgfpy = module_of(VGF_LIBRARY, "vgfpy")
FIXTURES = Path(__file__).parent / "fixtures"
SOUND_FILES = ("conv", "conv_0_4", "mixed", "placeholder", "ends", "unused", "image", "dynamic")
TENSOR, STORAGE_BUFFER, STORAGE_IMAGE, SAMPLED_IMAGE = 1000460000, 7, 3, 1
R8_SINT, R32_SINT, R32_SFLOAT, RGBA32_SFLOAT = 14, 99, 100, 109
SPIRV_WORDS = [0x07230203, 0x00010600, 7, 9, 0]


def fixture_bytes(name: str) -> bytes:
    """The committed file ``fixtures/<name>.vgf``."""
    return (FIXTURES / f"{name}.vgf").read_bytes()


def written(encoder: vgfpy.Encoder) -> bytes:
    """The file that an encoder makes."""
    encoder.Finish()
    out = io.BytesIO()
    assert encoder.WriteTo(out)
    return out.getvalue()


def encoded(vgf: Vgf) -> bytes:
    """The file that holds a model."""
    return b"".join(vgf_parts(vgf))


def everything() -> bytes:
    """A file with all module kinds, descriptor types, alias groups, a sampler, sparse data and push constants."""
    e = vgfpy.CreateEncoder(300)
    graph = e.AddModule(vgfpy.ModuleType.Graph, "graph_0", "graph_main", code=SPIRV_WORDS)
    glsl = e.AddModule(vgfpy.ModuleType.Compute, "glsl_1", "main", vgfpy.ShaderType.Glsl, "void main() {} // é")
    hlsl = e.AddModule(vgfpy.ModuleType.Compute, "hlsl_2", "cs", vgfpy.ShaderType.Hlsl, "void cs() {}")
    absent = e.AddModule(vgfpy.ModuleType.Compute, "absent_3", "entry")
    x = e.AddInputResource(TENSOR, R32_SFLOAT, [4, 16], [64, 4], aliasGroupId=0)
    x_buffer = e.AddInputResource(STORAGE_BUFFER, R32_SFLOAT, [4, 16], [], aliasGroupId=0)
    t = e.AddIntermediateResource(TENSOR, R32_SFLOAT, [1, 4, 4, 4], [], aliasGroupId=1)
    t_image = e.AddIntermediateResource(SAMPLED_IMAGE, RGBA32_SFLOAT, [1, 4, 4, 4], [], aliasGroupId=1)
    e.AddSamplerConfig(t_image, 1, 0, 2, 1, 5)
    y = e.AddOutputResource(STORAGE_IMAGE, RGBA32_SFLOAT, [4, 4, 4], [])
    z = e.AddOutputResource(TENSOR, R8_SINT, [], [])
    sparse = e.AddConstantResource(R8_SINT, [3, 8], [])
    dense = e.AddConstantResource(R32_SFLOAT, [5], [])
    first, second = e.AddConstant(sparse, bytes(range(24)), 1), e.AddConstant(dense, bytes(20))
    slot, descriptor_set = e.AddBindingSlot, e.AddDescriptorSetInfo
    e.AddSegmentInfo(
        graph, "segment_0", [descriptor_set([slot(0, x), slot(1, t)])], [slot(0, x)], [slot(1, t)],
        constantBindings=[vgfpy.GraphConstantBindingRef(5, first), vgfpy.GraphConstantBindingRef(9, second)],
    )  # fmt: skip
    e.AddSegmentInfo(
        glsl, "segment_1", [descriptor_set([slot(4, t_image)], 2), descriptor_set([slot(1, y)], 0)],
        [slot(1, t_image)], [slot(2, y)], dispatchShape=[4, 2, 1],
        pushConstRanges=[e.AddPushConstRange(0x20, 0, 4), e.AddPushConstRange(0x20, 4, 12)],
    )  # fmt: skip
    e.AddSegmentInfo(
        hlsl, "segment_2", [descriptor_set([slot(0, x_buffer), slot(1, z)])], [slot(0, x_buffer)], [slot(3, z)],
        dispatchShape=[1, 1, 1],
    )  # fmt: skip
    e.AddSegmentInfo(absent, "segment_3", [descriptor_set([slot(0, x_buffer)])], [slot(0, x_buffer)], [])
    e.AddModelSequenceInputsOutputs([slot(0, x)], ["x"], [slot(2, y), slot(3, z)], ["y", "z"])
    return written(e)


def one_shader(*, resource_index: int = 1, names: tuple[str, str] = ("x", "y")) -> bytes:
    """One compute shader over two int32 tensors; its second slot points to ``resource_index``."""
    e = vgfpy.CreateEncoder(0)
    module = e.AddModule(vgfpy.ModuleType.Compute, "shader", "main", vgfpy.ShaderType.Glsl, "void main() {}")
    x = e.AddInputResource(TENSOR, R32_SINT, [16], [])
    y = e.AddOutputResource(TENSOR, R32_SINT, [16], [])
    a, b, c = e.AddBindingSlot(0, x), e.AddBindingSlot(1, y), e.AddBindingSlot(1, vgfpy.ResourceRef(resource_index))
    e.AddSegmentInfo(module, "segment", [e.AddDescriptorSetInfo([a, c], 0)], [a], [b], dispatchShape=[1, 1, 1])
    e.AddModelSequenceInputsOutputs([a], [names[0]], [b], [names[1]])
    return written(e)


def with_constants(payloads: list[bytes]) -> bytes:
    """One graph that reads int8 constants with the given data."""
    e = vgfpy.CreateEncoder(0)
    graph = e.AddModule(vgfpy.ModuleType.Graph, "graph", "main", code=SPIRV_WORDS)
    y = e.AddOutputResource(TENSOR, R8_SINT, [1], [])
    rows = [e.AddConstantResource(R8_SINT, [len(data)], []) for data in payloads]
    constants = [e.AddConstant(row, data) for row, data in zip(rows, payloads, strict=True)]
    out = e.AddBindingSlot(0, y)
    e.AddSegmentInfo(graph, "segment", [e.AddDescriptorSetInfo([out])], [], [out], constants)
    e.AddModelSequenceInputsOutputs([], [], [out], ["y"])
    return written(e)


def legacy_constants(file: bytes, constants: list[tuple[int, int, bytes]], version: tuple[int, int, int]) -> bytes:
    """``file`` with the constant section that formats before 0.4 have: a FlatBuffers table made by hand.

    ``constants`` are (resource index, sparsity dimension, data). The root table has one field, a vector of tables with
    the fields u32, i64 and vector of u8; ``vgfpy`` reads it, which the tests check.
    """
    root_at, count_at = 12, 20
    section = bytearray(struct.pack("<IHHH2x", root_at, 6, 8, 4))
    section += struct.pack("<iII", root_at - 4, 4, len(constants))
    vtable_at = -(-(count_at + 4 + 4 * len(constants)) // 8) * 8
    vtable = struct.pack("<HHHHH6x", 10, 24, 4, 8, 16)
    table = struct.Struct("<iIqI4x")
    tables_at = vtable_at + len(vtable)
    data_at = tables_at + table.size * len(constants)
    tables, data = bytearray(), bytearray()
    for i, (resource_index, sparsity, payload) in enumerate(constants):
        at = tables_at + table.size * i
        section += struct.pack("<I", at - len(section))
        tables += table.pack(at - vtable_at, resource_index, sparsity, data_at + len(data) - (at + 16))
        data += struct.pack("<I", len(payload)) + payload
        data += bytes(-len(data) % 8)
    section += bytes(vtable_at - len(section)) + vtable + tables + data
    offset = struct.unpack_from("<Q", file, 64)[0]
    header = bytearray(file[:128])
    header[8:11] = bytes(version)
    struct.pack_into("<QQ", header, 64, offset, len(section))
    return bytes(header) + file[128:offset] + bytes(section)


DIFFERENCE = """#version 450
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer H { float h[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
void main() { uint i = gl_WorkGroupID.x; y[i] = x[i] - h[i]; }
"""


def row(category: Category, *shape: int, type: int = TENSOR, group: int | None = None) -> ModelResource:
    """A row of floats."""
    return ModelResource(category, type, R32_SFLOAT, shape, alias_group=group)


def one_segment(
    rows: Sequence[ModelResource],
    bound: Sequence[int],
    reads: dict[int, int],
    writes: dict[int, int] | None = None,
    *,
    ends: tuple[dict[int, int], dict[int, int]] | None = None,
    code: str | None = None,
    groups: tuple[int, int, int] = (1, 1, 1),
) -> bytes:
    """A model of one shader, a placeholder without ``code``, which has the rows ``bound`` at the bindings 0, 1, ...

    Of the others each number has its row. ``ends`` are the inputs and outputs of the model, by default of the segment.
    """

    def slots(rows: dict[int, int]) -> tuple[Slot, ...]:
        return tuple(Slot(*each) for each in rows.items())

    inputs, outputs = map(slots, ends or (reads, writes or {}))
    places = (DescriptorSet(0, tuple(Slot(*each) for each in enumerate(bound))),)
    segment = Segment(0, "compute", "segment", 0, places, slots(reads), slots(writes or {}), (), groups)
    module = Module("compute", "shader", "main", code and "GLSL", code)
    names = ("x", "h")[: len(inputs)], ("y",)[: len(outputs)]
    return b"".join(vgf_parts(Vgf((0, 5, 0), (module,), tuple(rows), (segment,), (), inputs, outputs, *names)))


def model_of_two_inputs(path: Path) -> Path:
    """A model of buffers with four floats: y = x - h."""
    rows = [row(category, 4, type=STORAGE_BUFFER) for category in ("input", "input", "output")]
    path.write_bytes(one_segment(rows, range(3), {0: 0, 1: 1}, {2: 2}, code=DIFFERENCE, groups=(4, 1, 1)))
    return path

"""Any bytes at all: a reading or an error of ours, in bounded time and memory; large modules are read in bulk."""

import struct
import subprocess
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenario_runner.cli.shader import describe
from scenario_runner.errors import SpirvError
from scenario_runner.shaders.spirv import Module, read_module
from scenario_runner.shaders.spirv.block_layout import check_layout
from scenario_runner.shaders.spirv.storage_image_formats import change_formats
from tests.effort import calls_of

FIXTURES = Path(__file__).parent / "fixtures"

SHADER = """#version 450
#extension GL_EXT_nonuniform_qualifier : require
layout(local_size_x_id = 1, local_size_y = 2) in;
layout(constant_id = 0) const int N = 4;
layout(constant_id = 2) const bool B = true;
struct Inner { vec3 p; mat2 m; float q[N * 2 + 1]; };
layout(push_constant) uniform P { mat4 m; Inner inner; } push;
layout(set = 0, binding = 0) buffer A { int n; Inner inner[3]; vec4 tail[]; } a;
layout(set = 0, binding = 1, std140) uniform U { layout(row_major) mat3 m; float f[2]; } u[];
layout(set = 1, binding = 2, rgba8) uniform image2D image;
layout(set = 1, binding = 3) uniform sampler2D tex[4];
shared Inner scratch[N];
float get(int i) { return scratch[i].q[0] + texture(tex[i], vec2(0)).x; }
void main() {
    scratch[0].q[1] = B ? push.inner.p.x : u[1].f[1];
    imageStore(image, ivec2(0), imageLoad(image, ivec2(1)) + get(a.n));
    a.tail[2] = vec4(atomicAdd(a.n, 1));
}
"""


VERTEX = """#version 450
layout(constant_id = 0) const int N = 2;
struct S { vec3 x; float y[2]; };
layout(location = 0) in vec4 place;
layout(location = 0) out vec3 color;
layout(location = 1) flat out ivec2 number;
layout(location = 2) out Block { mat3 m; layout(location = 30) S s; noperspective float z; } block;
layout(location = 9, component = 2) out float part;
layout(location = 10) out vec2 list[N];
layout(location = 20) out S structs[2];
void main() {
    gl_Position = place; color = vec3(1); number = ivec2(0); block.z = 1; part = 1; list[1] = vec2(0);
    structs[0].x = color;
}
"""


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    folder = tmp_path_factory.mktemp("seeds")
    binary = folder / "seed.spv"
    compiled = []
    for name, text, target in (
        ("seed.comp", SHADER, "vulkan1.0"),
        ("seed.comp", SHADER, "vulkan1.3"),
        ("seed.vert", VERTEX, "vulkan1.3"),
    ):
        source = folder / name
        source.write_text(text)
        command = ["glslangValidator", "-V", "--target-env", target, str(source), "-o", str(binary)]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        compiled.append(binary.read_bytes())
    return [*compiled, *(path.read_bytes() for path in sorted(FIXTURES.glob("*.spv")))]


def look_at_everything(data: bytes) -> Module | None:
    """Ask a module for all there is; None when it is refused."""
    errors: list[SpirvError] = []
    module = None
    try:
        module = read_module(data, name="mutant")
        for entry_point in module.entry_points:
            for stage in (entry_point.stage_interface(), entry_point.stage_interface({0: 7})):
                for variable in (*stage.inputs, *stage.outputs)[:10]:
                    assert len(list(variable.words())) <= 4 * variable.locations
            for interface in (entry_point.interface, entry_point.specialized({0: 7, 1: 3, 2: 0})):
                interface.local_size()
                for binding in interface.bindings:
                    if binding.block is not None:
                        check_layout(binding.block)
                    if binding.kind == "storage_image":
                        change_formats(module.source, {binding.variable: "Rgba16"})
        describe(module)
        repr(module)
    except SpirvError as error:
        errors.append(error)
    assert all(str(error).startswith("mutant: ") for error in errors)
    return module


def test_the_seeds_are_good(seeds: list[bytes]) -> None:
    """Unchanged, every seed is read without an error, so that mutants begin from somewhere."""
    for data in seeds:
        module = read_module(data)
        assert module.entry_points or module.graph_entry_points
        described = describe(module)
        assert all(not entry_point["problems"] for entry_point in described["entry_points"])


@settings(max_examples=250)
@given(data=st.data())
def test_mutated_words_give_a_reading_or_an_error(seeds: list[bytes], data: st.DataObject) -> None:
    """Words replaced by ids, opcodes, extremes and neighbours never give anything but a reading or our error."""
    seed = data.draw(st.sampled_from(seeds))
    words = list(struct.unpack(f"<{len(seed) // 4}I", seed))
    edges = st.sampled_from([0, 1, 2, 3, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, words[3]])
    value = st.one_of(edges, st.integers(0, words[3]), st.integers(0, 0xFFFFFFFF), st.sampled_from(words))
    places = st.integers(5, len(words) - 1)
    for place, new in data.draw(st.lists(st.tuples(places, value), min_size=1, max_size=6)):
        words[place] = new
    look_at_everything(struct.pack(f"<{len(words)}I", *words))


@settings(max_examples=100)
@given(data=st.data())
def test_cut_and_doubled_instructions_give_a_reading_or_an_error(seeds: list[bytes], data: st.DataObject) -> None:
    """Instructions that are missing, doubled, swapped or cut short never give anything else either."""
    seed = data.draw(st.sampled_from(seeds))
    instructions = list(split(struct.unpack(f"<{len(seed) // 4}I", seed)))
    for place, what in data.draw(
        st.lists(st.tuples(st.integers(0, len(instructions) - 2), st.sampled_from("dcs")), min_size=1, max_size=5)
    ):
        if what == "d":
            instructions.insert(place, instructions[place])
        elif what == "s":
            instructions[place], instructions[place + 1] = instructions[place + 1], instructions[place]
        else:
            kept = instructions[place][: max(1, len(instructions[place]) - 1)]
            instructions[place] = (kept[0] & 0xFFFF | len(kept) << 16, *kept[1:])
    words = [*struct.unpack("<5I", seed[:20]), *(word for instruction in instructions for word in instruction)]
    look_at_everything(struct.pack(f"<{len(words)}I", *words))


def split(words: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    at = 5
    while at < len(words):
        yield words[at : at + (words[at] >> 16)]
        at += words[at] >> 16


# Modules made to hurt -------------------------------------------------------------------------------------------------


def op(opcode: int, *operands: int) -> list[int]:
    return [(len(operands) + 1) << 16 | opcode, *operands]


def module_of(types: list[int], variable_type: int, bound: int = 4_000_000) -> bytes:
    """A compute shader that loads from one storage buffer of the given structure type."""
    head = [0x07230203, 0x00010300, 0, bound, 0, *op(17, 1), *op(14, 0, 1), *op(15, 5, 1, 0x6E69616D, 0)]
    decorations = op(71, 10, 34, 0) + op(71, 10, 33, 0)
    variable = op(32, 9, 12, variable_type) + op(59, 9, 10, 12)
    body = op(54, 2, 1, 0, 3) + op(248, 4) + op(61, variable_type, 5, 10) + op(253) + op(56)
    words = [*head, *decorations, *op(19, 2), *op(33, 3, 2), *op(21, 6, 32, 0), *types, *variable, *body]
    return struct.pack(f"<{len(words)}I", *words)


def bounded(data: bytes) -> tuple[Module | None, int, int]:
    """Look at everything; gives the module, the calls and the peak of bytes that it took."""
    tracemalloc.start()
    module, calls = calls_of(lambda: look_at_everything(data))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return module, calls, peak


def test_structures_that_double_at_every_level_are_refused() -> None:
    """A type of 2^60 members in a few hundred bytes costs nothing but an error."""
    types: list[int] = op(30, 100, 6, 6)
    for level in range(1, 60):
        types += op(30, 100 + level, 99 + level, 99 + level)
    data = module_of(types, 159)
    module, calls, peak = bounded(data)
    assert module is not None
    with pytest.raises(SpirvError, match=r"the structure \d+ has more than 100000 members, nested ones included"):
        module.entry_points[0].interface  # noqa: B018
    assert calls < 5_000
    assert peak < 50_000_000


def nested(depth: int) -> bytes:
    """A structure within a structure, and so on; the deepest one has a number."""
    types: list[int] = []
    for level in range(depth):
        types += op(30, 100 + level, 99 + level if level else 6)
    return module_of(types, 99 + depth)


def arrays_and_their_lengths() -> bytes:
    """Array lengths may come from null arrays with lengths from other null arrays."""
    types = op(43, 6, 50, 1) + op(28, 1000, 6, 50)
    for step in range(2000):
        null, length, array = 3 * step + 2001, 3 * step + 2002, 3 * step + 2003
        types += op(46, array - 3 if step else 1000, null) + op(52, 6, length, 81, null, 0)
        types += op(52, 6, 100_000 + step, 128, length, 50) + op(28, array, 6, 100_000 + step)
    return module_of(types + op(30, 70, 2003 + 3 * 1999), 70)


@pytest.mark.parametrize("data", [nested(98), arrays_and_their_lengths()], ids=["98 levels", "lengths of lengths"])
def test_types_may_nest_100_levels(data: bytes) -> None:
    """Deep nesting is read, and lengths that follow from other types over any number of steps."""
    module = look_at_everything(data)
    assert module is not None
    assert len(module.entry_points[0].interface.bindings) == 1


@pytest.mark.parametrize(
    "data, message",
    [
        (nested(101), "nested deeper than 100 levels"),
        (nested(20_000), "nested deeper than 100 levels"),
        (module_of(op(30, 100, 101) + op(30, 101, 100), 101), "uses the type 101 before its declaration"),
        (
            module_of(op(30, 70, 77) + op(21, 77, 32, 1) + op(71, 78, 1, 0) + op(50, 77, 78, 5), 70),
            "uses the type 77 before its declaration",
        ),
    ],
    ids=["101 levels", "20,000 levels", "a structure that contains itself", "a later type that a constant has"],
)
def test_types_without_an_end_are_refused(data: bytes, message: str) -> None:
    """Deeper nesting and cycles are errors of the interface, not a RecursionError."""
    module = look_at_everything(data)
    assert module is not None
    with pytest.raises(SpirvError, match=message):
        module.entry_points[0].interface  # noqa: B018


def test_declarations_are_read_up_to_the_first_function() -> None:
    """The end of a function that has not begun does not end the declarations."""
    module = look_at_everything(module_of(op(56) + op(30, 70, 6), 70))
    assert module is not None
    assert len(module.entry_points[0].interface.bindings) == 1


def test_a_gigantic_array_costs_nothing() -> None:
    """Lengths of 2^32 in four dimensions are numbers, not memory."""
    types = op(43, 6, 50, 0xFFFFFFFF)
    for level in range(4):
        types += op(28, 60 + level, 59 + level if level else 6, 50)
    types += op(30, 70, 63)
    module, calls, peak = bounded(module_of(types, 70))
    assert module is not None
    (binding,) = module.entry_points[0].interface.bindings
    assert binding.block is not None
    assert binding.block.size_bytes == 4 * 0xFFFFFFFF**4
    assert calls < 5_000
    assert peak < 5_000_000


def test_a_long_chain_of_constant_arithmetic_is_computed() -> None:
    """Thirty thousand dependent operations neither recurse nor repeat."""
    count = 30_000
    types = op(43, 6, 50, 1)
    for step in range(count):
        types += op(52, 6, 1000 + step, 128, 999 + step if step else 50, 999 + step if step else 50)
    # 2^30000 modulo 2^32 is 0: the last sum takes the one in again.
    types += op(52, 6, 51, 128, 999 + count, 50) + op(28, 60, 6, 51) + op(30, 70, 60)
    (binding,), calls = calls_of(lambda: read_module(module_of(types, 70)).entry_points[0].interface.bindings)
    assert calls < 60 * count
    assert binding.block is not None
    assert binding.block.size_bytes == 4


def test_many_functions_that_call_each_other_twice_are_walked_once() -> None:
    """A call graph with 2^2000 paths is looked at function by function."""
    count = 2000
    head = [0x07230203, 0x00010300, 0, 4_000_000, 0, *op(17, 1), *op(14, 0, 1), *op(15, 5, 1000, 0x6E69616D, 0)]
    words = [*head, *op(19, 2), *op(33, 3, 2)]
    for number in range(count):
        called = [] if number == count - 1 else op(57, 2, 9000 + number, 1001 + number) * 2
        words += op(54, 2, 1000 + number, 0, 3) + op(248, 20_000 + number) + called + op(253) + op(56)
    data = struct.pack(f"<{len(words)}I", *words)
    bindings, calls = calls_of(lambda: read_module(data).entry_points[0].interface.bindings)
    assert bindings == ()
    assert calls < 60 * count


def stage_of(types: list[int], variables: list[tuple[int, int]]) -> bytes:
    """A vertex shader with outputs (id, type), each at location 0; ids 6 to 8 are uint, float and the number 2^32-1."""
    listed = [id for id, _ in variables]
    words = [0x07230203, 0x00010300, 0, 4_000_000, 0, *op(17, 1), *op(14, 0, 1), *op(15, 0, 1, 0x6E69616D, 0, *listed)]
    for id in listed:
        words += op(71, id, 30, 0)
    words += op(19, 2) + op(33, 3, 2) + op(21, 6, 32, 0) + op(22, 7, 32) + op(43, 6, 8, 0xFFFFFFFF) + types
    for number, (id, type) in enumerate(variables):
        words += op(32, 3_000_000 + number, 3, type) + op(59, 3_000_000 + number, id, 3)
    words += op(54, 2, 1, 0, 3) + op(248, 4) + op(253) + op(56)
    return struct.pack(f"<{len(words)}I", *words)


def test_gigantic_outputs_cost_nothing() -> None:
    """Arrays of 2^32 locations, of structures without members, and 500 outputs on top of each other."""
    types = op(28, 20, 7, 8) + op(28, 21, 20, 8) + op(30, 22) + op(28, 23, 22, 8) + op(30, 24, 7, 23, 7)
    types += op(43, 6, 9, 4000) + op(28, 25, 7, 9)
    outputs = [(100, 21), (101, 23), (102, 24), *((200 + number, 25) for number in range(500))]
    module, calls, peak = bounded(stage_of(types, outputs))
    assert module is not None
    stage = module.entry_points[0].stage_interface()
    assert (
        stage.problems[0]
        == "output 'the id 100' takes the locations 0 to 18446744065119617024; no device has that many"
    )
    assert "output 'the id 101' has the type struct 22[4294967295], which stages cannot pass on" in stage.problems
    assert stage.problems[-1].endswith("both take component 0 of location 0")
    assert len(stage.outputs) == 502
    assert calls < 500_000
    assert peak < 100_000_000


def test_a_module_of_a_megabyte_is_read_quickly(glsl: Callable[..., bytes]) -> None:
    """Reading a module of 1 MB and the interface of its entry point takes fewer calls than it has words."""
    lines = "\n".join(
        f"x{number % 16} = x{(number + 3) % 16} * {number}.5 + sin(x{(number + 1) % 16}) * a[{number % 256}u + i];"
        f"b[i + {number}u] = x{number % 16};"
        for number in range(3500)
    )
    variables = "\n".join(f"float x{number} = a[i + {number}];" for number in range(16))
    data = glsl(
        "layout(local_size_x = 64) in; layout(set = 0, binding = 0) readonly buffer A { float a[]; };"
        "layout(set = 0, binding = 1) writeonly buffer B { float b[]; };"
        f"void main() {{ uint i = gl_GlobalInvocationID.x; {variables} {lines} }}"
    )
    assert len(data) > 1_000_000
    interface, calls = calls_of(lambda: read_module(data).entry_points[0].interface)
    assert [binding.name for binding in interface.bindings] == ["A", "B"]
    assert calls < len(data) // 4

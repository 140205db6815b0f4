"""HLSL on the device, compared with NumPy, and storage images with another format than the shader declares."""

from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import ScenarioError
from tests.gpu.fragment_scenes import draw, grid, target
from tests.gpu.image_scenes import per_texel, storage, texels
from tests.left_out import DXC_LIBRARY, needs
from tests.program import Program
from tests.scenes import Scene, glsl

HLSL = """
RWTexture2D<float4> src : register(u0);
RWTexture2D<float4> dst : register(u1);
[numthreads(1, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {{ dst[id.xy] = src[id.xy] * {}; }}
"""
# Values of 8 bits become floats by division, floats of 16 bits by widening.
READ = {
    "R8G8B8A8_UNORM": lambda data: data.astype(numpy.float32) / 255,
    "R16G16B16A16_SFLOAT": lambda data: data.astype(numpy.float32),
    "R16G16_SFLOAT": lambda data: data.astype(numpy.float32),
    "R16_SFLOAT": lambda data: data.astype(numpy.float32),
    "R32_SFLOAT": lambda data: data,
    "R32G32B32A32_SFLOAT": lambda data: data,
}


def hlsl(scene: Scene, uid: str, text: str, **keys: Any) -> Scene:
    scene.file(f"{uid}.hlsl", text)
    return scene.resource("shader", uid=uid, src=f"{uid}.hlsl", **keys)


def rgba(values: Any) -> Any:
    """Return four components: missing ones are 0, and a missing alpha is 1."""
    height, width, items = values.shape
    full = numpy.zeros((height, width, 4), numpy.float32)
    full[..., 3] = 1
    full[..., :items] = values
    return full


def warnings_of(result: Any) -> list[str]:
    return [each.code for each in result.warnings]


@needs(DXC_LIBRARY)
@pytest.mark.parametrize("name", READ)
def test_hlsl_reads_images_of_every_format(scene: Scene, both: Runner, name: str) -> None:
    """A RWTexture2D<float4> shows images of any format, with Rgba32f as the declared one."""
    content = texels(name, 9, 5)
    hlsl(scene, "twice", HLSL.format(2))
    scene.image("src", name, content).image("dst", "R32G32B32A32_SFLOAT", size=(9, 5))
    scene.dispatch("twice", ["src", "dst"], (9, 5))
    result = both.run(scene.write(), outputs=["dst"])
    numpy.testing.assert_allclose(result["dst"], rgba(READ[name](content)) * 2, rtol=1e-6)
    assert warnings_of(result) == ([] if name == "R32G32B32A32_SFLOAT" else ["SR-IMAGE-004"])


@needs(DXC_LIBRARY)
def test_hlsl_writes_images_of_every_format(scene: Scene, both: Runner) -> None:
    """Writes are converted to the format of each image; one shader that is used with five formats is five pipelines."""
    # exact as 16-bit floats, and never halfway between two bytes, which devices may round either way
    content = (numpy.arange(9 * 5 * 4, dtype=numpy.float32).reshape(5, 9, 4) % 32) / 64
    hlsl(scene, "copy", HLSL.format(1))
    scene.image("src", "R32G32B32A32_SFLOAT", content)
    names = ["R8G8B8A8_UNORM", "R16G16B16A16_SFLOAT", "R32G32B32A32_SFLOAT", "B8G8R8A8_UNORM", "R32_SFLOAT"]
    for number, name in enumerate(names):
        scene.image(f"x{number}", name, size=(9, 5)).dispatch("copy", ["src", f"x{number}"], (9, 5))
    result = both.run(scene.write(), outputs=[f"x{number}" for number in range(len(names))])
    bytes_of = numpy.floor(content * 255 + 0.5).astype(numpy.uint8)
    expected = [bytes_of, content.astype(numpy.float16), content, bytes_of[..., [2, 1, 0, 3]], content[..., :1]]
    for number, values in enumerate(expected):
        found = result[f"x{number}"].view(values.dtype).reshape(values.shape)
        numpy.testing.assert_array_equal(found, values)
    assert warnings_of(result) == ["SR-IMAGE-004"]


@needs(DXC_LIBRARY)
def test_a_format_that_spirv_has_no_name_for(scene: Scene, both: Runner) -> None:
    """BGRA images are read without a format where the device can do this, else as the driver does it."""
    content = texels("R8G8B8A8_UNORM", 9, 5)
    hlsl(scene, "copy", HLSL.format(1))
    scene.image("src", "B8G8R8A8_UNORM", content).image("dst", "R32G32B32A32_SFLOAT", size=(9, 5))
    scene.dispatch("copy", ["src", "dst"], (9, 5))
    result = both.run(scene.write(), outputs=["dst"])
    expected = content[..., [2, 1, 0, 3]].astype(numpy.float32) / 255
    numpy.testing.assert_allclose(result["dst"], expected, rtol=1e-6)
    assert warnings_of(result) == ["SR-IMAGE-004"]
    assert "without a format on devices that can do this, as it is on others" in result.warnings[0].message


def test_unsigned_integers_of_another_size(scene: Scene, both: Runner) -> None:
    """GLSL's r32ui over an image of bytes stores bytes; another variable keeps its format for atomic operations."""
    declarations = storage(0, "R32_UINT", "small") + storage(1, "R32_UINT", "counter")
    scene.shader(
        "s",
        per_texel(
            "imageStore(small, p, uvec4(p.x + 10 * p.y));imageAtomicAdd(counter, ivec2(0), 3);", declarations, "small"
        ),
    )
    scene.image("bytes", "R8_UINT", size=(7, 3)).image("one", "R32_UINT", numpy.full((1, 1, 1), 5, numpy.uint32))
    scene.dispatch("s", ["bytes", "one"], (7, 3))
    result = both.run(scene.write(), outputs=["bytes", "one"])
    rows, columns = numpy.mgrid[0:3, 0:7]
    numpy.testing.assert_array_equal(result["bytes"].reshape(3, 7), columns + 10 * rows)
    assert result["one"].reshape(()) == 5 + 3 * 7 * 3


def test_atomic_operations_on_an_image_of_another_format(scene: Scene, runner: Runner) -> None:
    """Atomic operations need the declared format: the error has the place and names the operation."""
    scene.shader("s", glsl("imageAtomicAdd(p, ivec2(0), 1u);", storage(0, "R32_UINT", "p")))
    scene.image("bytes", "R8_UINT", size=(2, 2)).dispatch("s", ["bytes"], (1, 1))
    problem = scene.refusal(runner.run)
    assert (problem.code, problem.pointer) == ("SR-IMAGE-003", "/commands/0/dispatch_compute/bindings/0")
    assert "declared as R32ui; image 'bytes' is VK_FORMAT_R8_UINT, and the shader uses" in problem.message


def test_another_kind_of_texels_stays_an_error(scene: Scene, runner: Runner) -> None:
    """Floats of a shader are not unsigned integers of an image, with or without a format."""
    hlsl(scene, "copy", HLSL.format(1))
    scene.image("src", "R32_UINT", size=(2, 2)).image("dst", "R32G32B32A32_SFLOAT", size=(2, 2))
    scene.dispatch("copy", ["src", "dst"], (2, 2))
    with pytest.raises(ScenarioError, match="has texels of float32; image 'src' of VK_FORMAT_R32_UINT has unsigned"):
        runner.run(scene.write())


@needs(DXC_LIBRARY)
def test_many_dispatches_are_warned_about_once(scene: Scene, runner: Runner) -> None:
    """A shader that needs the same change for many images is one warning, at the first of them."""
    hlsl(scene, "copy", HLSL.format(1))
    for number in range(4):
        scene.image(f"x{number}", "R8G8B8A8_UNORM", texels("R8G8B8A8_UNORM", 3, 2, seed=number))
    for number in range(3):
        scene.dispatch("copy", [f"x{number}", f"x{number + 1}"], (3, 2))
    result = runner.run(scene.write(), outputs=["x3"])
    assert warnings_of(result) == ["SR-IMAGE-004"]
    (warning,) = result.warnings
    assert (warning.pointer or "").startswith("/commands/0/dispatch_compute/bindings/0")
    assert warning.help is not None
    assert '[[vk::image_format("rgba8")]]' in warning.help
    assert result["x3"].tobytes() == texels("R8G8B8A8_UNORM", 3, 2, seed=0).tobytes()


def test_the_kept_plan_has_the_changed_code(scene: Scene, program: Program) -> None:
    """A second run, with the plan kept from the first, gives the same texels and the same warning."""
    content = texels("R16G16B16A16_SFLOAT", 4, 3)
    hlsl(scene, "twice", HLSL.format(2))
    scene.image("src", "R16G16B16A16_SFLOAT", content).image("dst", "R32G32B32A32_SFLOAT", size=(4, 3), dst="dst.npy")
    scene.dispatch("twice", ["src", "dst"], (4, 3))
    path = scene.write()
    for _ in range(2):
        done = program(str(path), exit_code=0)
        assert done.err.count("the shader runs with the format of the image") == 1
        stored = numpy.load(scene.folder / "dst.npy").reshape(content.shape)
        numpy.testing.assert_array_equal(stored, content.astype(numpy.float32) * 2)
        (scene.folder / "dst.npy").unlink()
    scene.file("twice.hlsl", HLSL.format(4))
    assert program(str(path)).code == 0
    stored = numpy.load(scene.folder / "dst.npy").reshape(content.shape)
    numpy.testing.assert_array_equal(stored, content.astype(numpy.float32) * 4)


MAIN = "[numthreads(16, 1, 1)] void main(uint3 id : SV_DispatchThreadID)"


@needs(DXC_LIBRARY)
def test_registers_spaces_and_bindings(scene: Scene, runner: Runner) -> None:
    """register() numbers are bindings, spaces are sets, and [[vk::binding]] goes before both."""
    hlsl(
        scene,
        "s",
        "RWStructuredBuffer<int> a : register(u5); StructuredBuffer<int> b : register(t2, space3);\n"
        "[[vk::binding(7, 1)]] RWStructuredBuffer<int> c : register(u9, space9);\n"
        f"cbuffer Settings : register(b4, space1) {{ int4 settings; }};\n{MAIN}\n"
        "{ a[id.x] = b[id.x] * settings.y; c[id.x] = a[id.x] + settings.w; }\n",
    )
    numbers = numpy.arange(16, dtype=numpy.int32) - 5
    scene.buffer("a", size=64).buffer("b", numbers).buffer("c", size=64)
    scene.buffer("settings", numpy.array([1, -3, 5, 7], numpy.int32))
    scene.dispatch("s", {(0, 5): "a", (3, 2): "b", (1, 7): "c", (1, 4): "settings"})
    result = runner.run(scene.write())
    assert not result.warnings
    numpy.testing.assert_array_equal(result["a"].view(numpy.int32), numbers * -3)
    numpy.testing.assert_array_equal(result["c"].view(numpy.int32), numbers * -3 + 7)


@needs(DXC_LIBRARY)
def test_colliding_registers(scene: Scene, runner: Runner) -> None:
    """t0 and u0 are one binding: the run warns and uses one buffer for both."""
    hlsl(
        scene,
        "s",
        "StructuredBuffer<int> given : register(t0); RWStructuredBuffer<int> made : register(u0);\n"
        f"{MAIN}\n{{ made[id.x] = given[id.x] * 3; }}\n",
    )
    numbers = numpy.arange(16, dtype=numpy.int32)
    scene.buffer("x", numbers).dispatch("s", ["x"])
    result = runner.run(scene.write())
    (warning,) = result.warnings
    assert warning.code == "SR-BIND-010"
    assert "'given' and 'made' of shader 's' have the same set 0 and binding 0" in warning.message
    numpy.testing.assert_array_equal(result["x"].view(numpy.int32), numbers * 3)


def test_registers_of_different_kinds(scene: Scene, runner: Runner) -> None:
    """t0 and b0 are one binding as well, of a storage and a uniform buffer, which no resource can be."""
    hlsl(
        scene,
        "s",
        "RWStructuredBuffer<int> made : register(u0); cbuffer Settings : register(b0) { int4 settings; };\n"
        f"{MAIN}\n{{ made[id.x] = settings.x; }}\n",
    )
    scene.buffer("x", size=64).dispatch("s", ["x"])
    problem = scene.refusal(runner.run)
    assert problem.code == "SR-BIND-006"


@needs(DXC_LIBRARY)
def test_an_error_of_a_run_has_both_places(scene: Scene, runner: Runner) -> None:
    """The scenario's place comes first, then that in the source with its line and a mark."""
    hlsl(scene, "s", f"RWStructuredBuffer<int> o : register(u0);\n{MAIN}\n{{\n  o[0] = nope;\n}}\n")
    scene.buffer("x", size=64).dispatch("s", ["x"])
    with pytest.raises(
        Exception, match=r"scenario\.json:\d+:\d+: /resources/0/shader: .*s\.hlsl:4:10: shader 's': use of"
    ):
        runner.run(scene.write())


@needs(DXC_LIBRARY)
def test_vertex_and_fragment_shaders(scene: Scene, runner: Runner) -> None:
    """HLSL of both stages draws; an image that the fragment shader writes has another format than it declares."""
    hlsl(
        scene,
        "v",
        "float4 main(uint n : SV_VertexID) : SV_Position"
        " { return float4(n == 1 ? 3.0 : -1.0, n == 2 ? 3.0 : -1.0, 0.0, 1.0); }",
        stage="vertex",
    )
    hlsl(
        scene,
        "f",
        "RWTexture2D<float4> seen : register(u0);\n"
        "uint main(float4 p : SV_Position) : SV_Target0\n"
        "{ uint2 at = uint2(p.xy); seen[at] = float4(at.x / 8.0, at.y / 8.0, 0, 1); return at.x + 100 * at.y; }",
        stage="fragment",
    )
    target(scene, "x", size=(7, 5))
    scene.image("seen", "R16G16B16A16_SFLOAT", size=(7, 5))
    result = runner.run(draw(scene, ["x"], ["seen"]).write(), outputs=["x", "seen"])
    x, y = grid(7, 5)
    numpy.testing.assert_array_equal(result["x"][..., 0], x + 100 * y)
    expected = numpy.stack([x / 8, y / 8, 0 * x, 0 * x + 1], -1).astype(numpy.float16)
    numpy.testing.assert_array_equal(result["seen"], expected)
    assert [each.code for each in result.warnings] == ["SR-IMAGE-004"]

"""HLSL on the device: registers, spaces, constants and 16-bit types, compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from tests.gpu.fragment_scenes import draw, grid, target
from tests.gpu.image_scenes import add_image, binding
from tests.scenes import Scene

HEAD = "[numthreads(16, 1, 1)] void main(uint3 id : SV_DispatchThreadID)"


def hlsl(scene: Scene, text: str, **keys: Any) -> Scene:
    scene.file("s.hlsl", text)
    return scene.resource("shader", uid="s", src="s.hlsl", **keys)


def test_registers_spaces_and_bindings(scene: Scene, runner: Runner) -> None:
    """register() numbers are bindings, spaces are sets, and [[vk::binding]] goes before both."""
    hlsl(
        scene,
        "RWStructuredBuffer<int> a : register(u5); StructuredBuffer<int> b : register(t2, space3);\n"
        "[[vk::binding(7, 1)]] RWStructuredBuffer<int> c : register(u9, space9);\n"
        f"cbuffer Settings : register(b4, space1) {{ int4 settings; }};\n{HEAD}\n"
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


def test_colliding_registers(scene: Scene, runner: Runner) -> None:
    """t0 and u0 are one binding: the run says so, and does what the module says, with one buffer as both."""
    hlsl(
        scene,
        "StructuredBuffer<int> given : register(t0); RWStructuredBuffer<int> made : register(u0);\n"
        f"{HEAD}\n{{ made[id.x] = given[id.x] * 3; }}\n",
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
        "RWStructuredBuffer<int> made : register(u0); cbuffer Settings : register(b0) { int4 settings; };\n"
        f"{HEAD}\n{{ made[id.x] = settings.x; }}\n",
    )
    scene.buffer("x", size=64).dispatch("s", ["x"])
    problem = scene.refusal(runner.run)
    assert problem.code == "SR-BIND-006"


def test_an_error_of_a_run_has_both_places(scene: Scene, runner: Runner) -> None:
    """The scenario's place comes first, then that in the source with its line and a mark."""
    hlsl(scene, f"RWStructuredBuffer<int> o : register(u0);\n{HEAD}\n{{\n  o[0] = nope;\n}}\n")
    scene.buffer("x", size=64).dispatch("s", ["x"])
    with pytest.raises(
        Exception, match=r"scenario\.json:\d+:\d+: /resources/0/shader: .*s\.hlsl:4:10: shader 's': use of"
    ):
        runner.run(scene.write())


def test_vertex_and_fragment_shaders(scene: Scene, runner: Runner) -> None:
    """HLSL of both stages draws; an image that the fragment shader writes has another format than it declares."""
    scene.file(
        "v.hlsl",
        "float4 main(uint n : SV_VertexID) : SV_Position"
        " { return float4(n == 1 ? 3.0 : -1.0, n == 2 ? 3.0 : -1.0, 0.0, 1.0); }",
    )
    scene.file(
        "f.hlsl",
        "RWTexture2D<float4> seen : register(u0);\n"
        "uint main(float4 p : SV_Position) : SV_Target0\n"
        "{ uint2 at = uint2(p.xy); seen[at] = float4(at.x / 8.0, at.y / 8.0, 0, 1); return at.x + 100 * at.y; }",
    )
    scene.resource("shader", uid="v", src="v.hlsl", stage="vertex")
    scene.resource("shader", uid="f", src="f.hlsl", stage="fragment")
    target(scene, "x", size=(7, 5))
    add_image(scene, "seen", "R16G16B16A16_SFLOAT", size=(7, 5))
    result = runner.run(draw(scene, ["x"], [binding(0, "seen")]).write(), outputs=["x", "seen"])
    x, y = grid(7, 5)
    numpy.testing.assert_array_equal(result["x"][..., 0], x + 100 * y)
    expected = numpy.stack([x / 8, y / 8, 0 * x, 0 * x + 1], -1).astype(numpy.float16)
    numpy.testing.assert_array_equal(result["seen"], expected)
    assert [each.code for each in result.warnings] == ["SR-IMAGE-004"]

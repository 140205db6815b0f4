"""Texel buffers: values in several formats, parts of buffers, hazards, and formats that do not fit."""

from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import UnsupportedError
from tests.program import Program
from tests.scenes import Scene, findings_of, glsl

OUT = "layout(binding = 1) writeonly buffer B { vec4 b[]; };"


def read_shader(prefix: str) -> str:
    """Return a shader that reads three texels as vectors of floats."""
    body = "int i = int(gl_WorkGroupID.x); b[i] = vec4(texelFetch(t, i));"
    return glsl(body, f"layout(binding = 0) uniform {prefix}samplerBuffer t; {OUT}")


def texels(uid: str, format: str | None = None, **keys: Any) -> dict[str, Any]:
    named = {} if format is None else {"format": f"VK_FORMAT_{format}"}
    return {"resource_ref": uid, **named, **keys}


BYTES = numpy.random.default_rng(4).integers(0, 256, 48, "u1")
TEXELS = BYTES[:12].reshape(3, 4)


def filled_up(channels: Any) -> Any:
    """Return texels with the channels that the format lacks: 0 and, for alpha, 1."""
    whole = numpy.zeros((3, 4))
    whole[:, 3] = 1
    whole[:, : channels.shape[1]] = channels
    return whole


READS: list[tuple[str, str, Any]] = [
    ("R8G8B8A8_UNORM", "", TEXELS / 255),
    ("R8G8B8A8_UINT", "u", TEXELS),
    ("R8G8B8A8_SINT", "i", TEXELS.view("i1")),
    ("B8G8R8A8_UNORM", "", TEXELS[:, [2, 1, 0, 3]] / 255),
    ("R16G16_UINT", "u", filled_up(BYTES[:12].view("u2").reshape(3, 2))),
    ("R8_SNORM", "", filled_up(numpy.maximum(BYTES[:3].view("i1").reshape(3, 1) / 127, -1))),
]


@pytest.mark.parametrize("format, prefix, expected", READS, ids=[row[0] for row in READS])
def test_reads(scene: Scene, both: Runner, format: str, prefix: str, expected: Any) -> None:
    """A shader reads a uniform texel buffer in the format of the binding."""
    scene.shader("s", read_shader(prefix)).buffer("x", BYTES).buffer("y", size=48)
    result = both.run(scene.dispatch("s", [texels("x", format), "y"], [3]).write())
    assert numpy.allclose(result.array("y", "f4").reshape(3, 4), expected, rtol=1e-6, atol=1e-6)


def test_writes_in_the_declared_format(scene: Scene, both: Runner) -> None:
    """A storage texel buffer has the format that the shader declares."""
    body = "int i = int(gl_WorkGroupID.x); imageStore(t, i, vec4(i, 0.2, 1, 0) / vec4(5, 1, 1, 1));"
    scene.shader("s", glsl(body, "layout(binding = 0, rgba8) uniform writeonly imageBuffer t;")).buffer("x", size=24)
    result = both.run(scene.dispatch("s", ["x"], [6]).write())
    expected = [[51 * i, 51, 255, 0] for i in range(6)]
    assert result.array("x", "u1").reshape(6, 4).tolist() == expected


def test_writes_in_the_format_of_the_binding(scene: Scene, runner: Runner) -> None:
    """A storage texel buffer without a declared format has the binding's."""
    body = "imageStore(t, int(gl_WorkGroupID.x), vec4(gl_WorkGroupID.x));"
    scene.shader("s", glsl(body, "layout(binding = 0) uniform writeonly imageBuffer t;")).buffer("x", size=16)
    result = runner.run(scene.dispatch("s", [texels("x", "R32_SFLOAT")], [4]).write())
    assert result.array("x", "f4").tolist() == [0, 1, 2, 3]


def test_atomics_and_sizes_in_a_part(scene: Scene, both: Runner) -> None:
    """Atomic operations and the number of texels are those of the part."""
    body = "imageAtomicAdd(t, 1, 5u); imageStore(t, 0, uvec4(imageSize(t)));"
    scene.shader("s", glsl(body, "layout(binding = 0, r32ui) uniform uimageBuffer t;"))
    scene.buffer("x", numpy.arange(256, dtype="u4")).dispatch("s", [texels("x", offset=256, size=64)], [3])
    expected = numpy.arange(256, dtype="u4")
    expected[64:66] = 16, 80
    assert (both.run(scene.write()).array("x", "u4") == expected).all()


@pytest.mark.parametrize("offset, codes", [(0, ["SR-HAZARD-001"]), (256, [])])
def test_hazards(scene: Scene, check_hazards: Any, offset: int, codes: list[str]) -> None:
    """A read of other texels than those written needs no barrier, for validate and for the validation layer."""
    write = glsl("imageStore(t, 0, vec4(1));", "layout(binding = 0, rgba32f) uniform writeonly imageBuffer t;")
    scene.shader("write", write).shader("read", read_shader("")).buffer("x", size=512).buffer("y", size=16)
    scene.dispatch("write", [texels("x", size=256)], implicit_barrier=False)
    scene.dispatch("read", [texels("x", "R32G32B32A32_SFLOAT", offset=offset, size=256), "y"])
    check_hazards(scene.write(), codes)
    assert [finding.code for finding in findings_of(scene.write(), hazards=True)] == codes


UNIFORM = "uniform texel buffer 't' at set 0, binding 0, in shader 's'"
STORAGE = "storage texel buffer 't' at set 0, binding 0, in shader 's'"
# Declaration, binding, code, place in the binding, message.
WRONG: dict[str, tuple[str, dict[str, Any], str, str, str]] = {
    "no format": ("samplerBuffer t;", texels("x"), "SR-BIND-011", "", f"{UNIFORM} declares no format"),
    "an unknown format": (
        "samplerBuffer t;", texels("x", "R32_FLOAT"), "SR-JSON-005", "/format", "unknown format 'VK_FORMAT_R32_FLOAT'",
    ),
    "integers for floats": (
        "samplerBuffer t;", texels("x", "R32_UINT"), "SR-BIND-011", "/format",
        f"{UNIFORM} has texels of float32; VK_FORMAT_R32_UINT has unsigned integers",
    ),
    "a compressed format": (
        "samplerBuffer t;", texels("x", "BC1_RGB_UNORM_BLOCK"), "SR-BIND-011", "/format",
        f"{UNIFORM} cannot have texels of VK_FORMAT_BC1_RGB_UNORM_BLOCK",
    ),
    "a depth format": (
        "samplerBuffer t;", texels("x", "D32_SFLOAT"), "SR-BIND-011", "/format",
        f"{UNIFORM} cannot have texels of VK_FORMAT_D32_SFLOAT",
    ),
    "not the declared format": (
        "STORE imageBuffer t;", texels("x", "R32_SFLOAT"), "SR-BIND-011", "/format",
        f"{STORAGE} is declared as Rgba32f (VK_FORMAT_R32G32B32A32_SFLOAT); the binding has VK_FORMAT_R32_SFLOAT",
    ),
    "half a texel": (
        "samplerBuffer t;", texels("x", "R32G32_SFLOAT", size=12), "SR-BIND-011", "/size",
        "12 bytes of buffer 'x' are not a whole number of texels of VK_FORMAT_R32G32_SFLOAT",
    ),
    "an image": (
        "samplerBuffer t;", texels("i", "R8_UNORM"), "SR-BIND-003", "/resource_ref",
        "image 'i' is bound to uniform texel buffer 't' at set 0, binding 0 in shader 's', which needs a buffer",
    ),
    "another descriptor type": (
        "samplerBuffer t;", texels("x", "R32_SFLOAT", descriptor_type="VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER"),
        "SR-BIND-004", "/descriptor_type", "descriptor type 'VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER' does not match"
        " uniform texel buffer 't' at set 0, binding 0 in shader 's'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong(scene: Scene, program: Program, shader_cache: Path, case: str) -> None:
    """A wrong format is one error with the place, for validate and for a run."""
    declared, binding, code, inside, message = WRONG[case]
    body = "imageStore(t, 0, vec4(1));" if "STORE" in declared else "b[0] = texelFetch(t, 0);"
    layout = "layout(binding = 0, rgba32f) uniform writeonly" if "STORE" in declared else "layout(binding = 0) uniform"
    scene.shader("s", glsl(body, f"{layout} {declared.removeprefix('STORE ')} {OUT}"))
    scene.buffer("x", size=64).buffer("y", size=16).image("i", "R8_UNORM", size=(4, 4))
    path = scene.dispatch("s", [binding] if "STORE" in declared else [binding, "y"]).write()
    (finding,) = findings_of(path)
    assert (finding.code, finding.message) == (code, message)
    assert finding.pointer == f"/commands/0/dispatch_compute/bindings/0{inside}"
    assert message in program.fail(3, path.name).err


def test_format_at_another_variable(scene: Scene, shader_cache: Path) -> None:
    """Only texel buffers take a format; their last bytes may be left over."""
    scene.shader("s", read_shader("")).buffer("x", size=30).buffer("y", size=48)
    scene.dispatch("s", [texels("x", "R32G32_SFLOAT"), texels("y", "R32_SFLOAT")])
    place = "/commands/0/dispatch_compute/bindings"
    assert [(finding.code, finding.pointer, finding.message) for finding in findings_of(scene.write())] == [
        (
            "SR-BIND-013",
            f"{place}/0",
            "30 bytes of buffer 'x' are not a whole number of texels of VK_FORMAT_R32G32_SFLOAT; the last 6 are not"
            " bound",
        ),
        (
            "SR-BIND-011",
            f"{place}/1/format",
            "a format has no meaning for storage buffer 'B' at set 0, binding 1 in shader 's'",
        ),
    ]


def test_left_over_bytes(scene: Scene, runner: Runner) -> None:
    """A buffer with some bytes behind the last texel is bound without them."""
    scene.shader("s", glsl("b[0] = vec4(textureSize(t));", f"layout(binding = 0) uniform samplerBuffer t; {OUT}"))
    scene.buffer("x", size=30).buffer("y", size=16).dispatch("s", [texels("x", "R32G32_SFLOAT"), "y"])
    assert runner.run(scene.write()).array("y", "f4")[0] == 3


def test_format_that_the_device_lacks(scene: Scene, runner: Runner) -> None:
    """The error names the format and the feature, and the scenario counts as not supported."""
    scene.shader("s", read_shader("")).buffer("x", size=48).buffer("y", size=48)
    scene.dispatch("s", [texels("x", "E5B9G9R9_UFLOAT_PACK32"), "y"])
    scene.shader("t", glsl("imageStore(t, 0, vec4(1));", "layout(binding = 0) uniform writeonly imageBuffer t;"))
    scene.dispatch("t", [texels("x", "E5B9G9R9_UFLOAT_PACK32")])
    problem = scene.refusal(runner.run, UnsupportedError)
    assert problem.code == "SR-FEATURE-003"
    assert "cannot have texels of VK_FORMAT_E5B9G9R9_UFLOAT_PACK32 on " in problem.message
    assert "TEXEL_BUFFER_BIT" in problem.message

"""Samplers: filters, address modes and border colors, compared with the Vulkan specification."""

from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import UnsupportedError
from scenario_runner.validation import validate_file
from tests.gpu.image_scenes import per_texel, storage, texels
from tests.left_out import DXC_LIBRARY, needs
from tests.scenes import Scene, at_level, error_of, glsl

WIDTH, HEIGHT = 6, 4
# Positions from one and a half images before the image to as far behind it, never on the edge between two texels.
STEPS = 40
POSITIONS = (numpy.arange(STEPS) + 0.3) / STEPS * 4 - 1.5
SAMPLE = "vec2 at = (vec2(p) + 0.3) / 40.0 * 4.0 - 1.5; imageStore(dst, p, {}(textureLod(src, at, LOD)));"


def sampled(scene: Scene, runner: Runner, name: str, content: Any, lod: float = 0.0, **keys: Any) -> Any:
    """Return the samples of a shader at all pairs of `POSITIONS`."""
    unsigned = name.endswith("UINT")
    prefix, result, vector = ("u", "R32G32B32A32_UINT", "uvec4") if unsigned else ("", "R32G32B32A32_SFLOAT", "vec4")
    declarations = f"layout(set = 0, binding = 0) uniform {prefix}sampler2D src;\n" + storage(1, result, "dst")
    scene.shader("sample", per_texel(SAMPLE.format(vector).replace("LOD", str(lod)), declarations))
    scene.image("src", name, content, **keys).image("dst", result, size=(STEPS, STEPS))
    scene.dispatch("sample", ["src", "dst"], (STEPS, STEPS))
    return runner.run(scene.write())["dst"]


def wrapped(index: Any, size: int, mode: str) -> Any:
    """The texel that an address mode gives; -1 for the border (specification, "Texel Addressing")."""
    if mode == "REPEAT":
        return index % size
    if mode == "MIRRORED_REPEAT":
        period = index % (2 * size)
        return numpy.where(period < size, period, 2 * size - 1 - period)
    if mode == "CLAMP_EDGE":
        return numpy.clip(index, 0, size - 1)
    return numpy.where((index < 0) | (index >= size), -1, index)


def texel(content: Any, x: Any, y: Any, mode: str, border: Any) -> Any:
    height, width = content.shape[:2]
    x, y = wrapped(x, width, mode), wrapped(y, height, mode)
    outside = (x < 0) | (y < 0)
    return numpy.where(outside[..., None], border, content[numpy.maximum(y, 0), numpy.maximum(x, 0)])


def expected(content: Any, mode: str, linear: bool, border: Any = (0, 0, 0, 0)) -> Any:
    """Return the specified samples at all pairs of `POSITIONS`, in double precision."""
    height, width = content.shape[:2]
    u, v = numpy.meshgrid(POSITIONS * width, POSITIONS * height)
    border = numpy.array(border)
    if not linear:
        return texel(content, numpy.floor(u).astype(int), numpy.floor(v).astype(int), mode, border)
    x, y = numpy.floor(u - 0.5).astype(int), numpy.floor(v - 0.5).astype(int)
    a, b = (u - 0.5 - x)[..., None], (v - 0.5 - y)[..., None]
    rows = [
        (1 - a) * texel(content, x, y + step, mode, border) + a * texel(content, x + 1, y + step, mode, border)
        for step in (0, 1)
    ]
    return (1 - b) * rows[0] + b * rows[1]


@pytest.mark.parametrize("filter", ["NEAREST", "LINEAR"])
@pytest.mark.parametrize("mode", ["CLAMP_EDGE", "CLAMP_BORDER", "REPEAT", "MIRRORED_REPEAT"])
def test_address_modes_and_filters(scene: Scene, both: Runner, mode: str, filter: str) -> None:
    """Every address mode with each filter gives the texels that the specification says, far outside the image too."""
    content = numpy.random.default_rng(2).random((HEIGHT, WIDTH, 4)).astype(numpy.float32)
    keys = {"border_address_mode": mode, "min_filter": filter, "mag_filter": filter}
    got = sampled(scene, both, "R32G32B32A32_SFLOAT", content, **keys)
    # devices may weigh texels with eight bits only
    tolerance = 1 / 128 if filter == "LINEAR" else 1e-6
    numpy.testing.assert_allclose(got, expected(content, mode, filter == "LINEAR"), atol=tolerance)


COLORS = {"TRANSPARENT_BLACK": (0, 0, 0, 0), "OPAQUE_BLACK": (0, 0, 0, 1), "OPAQUE_WHITE": (1, 1, 1, 1)}


def bordered(color: str, custom: Any = None, mode: str = "CLAMP_BORDER") -> dict[str, Any]:
    keys = {"border_address_mode": mode, "border_color": color}
    return keys if custom is None else {**keys, "custom_border_color": custom}


@pytest.mark.parametrize(
    "name, keys, color",
    [
        *(
            (name, bordered(f"{kind}_{color}"), COLORS[color])
            for name in ("R8G8B8A8_UNORM", "R32G32B32A32_UINT")
            for kind in ("FLOAT", "INT")
            for color in COLORS
        ),
        *(
            (name, bordered(f"{kind}_CUSTOM_EXT", color), color)
            for name, kind, color in (
                ("R32G32B32A32_SFLOAT", "FLOAT", [0.25, -3.5, 7.0, 0.5]),
                ("R8G8B8A8_UNORM", "FLOAT", [0, 1, 0.5, 1]),
                ("R32G32B32A32_UINT", "INT", [1, 20000, 4294967295, 7]),
            )
        ),
    ],
)
def test_border_colors(scene: Scene, runner: Runner, name: str, keys: dict[str, Any], color: Any) -> None:
    """Each border color is what its name says, for floating-point and for integer formats, whichever kind it names. A
    custom one reaches the shader with its four components, as numbers or as integers.

    "Border Color" of the Vulkan specification lets a device replace a custom color as if it had been stored in the
    image, so that it may be rounded to a value of a normalized format.
    """
    content = texels(name, WIDTH, HEIGHT)
    values = content / numpy.float32(255) if name.endswith("UNORM") else content
    got = sampled(scene, runner, name, content, **keys)
    half_a_step = 0.5 / 255 if name.endswith("UNORM") and "custom_border_color" in keys else 0
    numpy.testing.assert_allclose(
        got, expected(values, "CLAMP_BORDER", False, color), rtol=1e-6, atol=half_a_step * 1.001
    )


@pytest.mark.parametrize("mode", ["CLAMP_BORDER", "REPEAT"])
def test_custom_border_color_without_the_extension(scene: Scene, validation: bool, mode: str) -> None:
    """Without VK_EXT_custom_border_color the error names the extension and the image, and nothing runs. An image that
    repeats shows no border, so it needs no extension."""
    content = texels("R8G8B8A8_UNORM", WIDTH, HEIGHT)
    keys = bordered("FLOAT_CUSTOM_EXT", [1, 1, 1, 1], mode)
    with Runner(disabled_extensions=["VK_EXT_custom_border_color"], validation=validation) as runner:
        if mode == "REPEAT":
            got = sampled(scene, runner, "R8G8B8A8_UNORM", content, **keys)
            numpy.testing.assert_allclose(got, expected(content / numpy.float32(255), mode, False), rtol=1e-6)
            return
        error = error_of(UnsupportedError, sampled, scene, runner, "R8G8B8A8_UNORM", content, **keys)
    assert "the custom border color of image 'src' (VK_EXT_custom_border_color)" in str(error)
    assert error.problems[0].pointer == "/resources/1/image/custom_border_color"


def test_both_zeros_are_border_colors(scene: Scene, runner: Runner) -> None:
    """Samplers that differ only in the sign of a zero in their custom color are two."""
    body = "imageStore(dst, p, uvec4(floatBitsToUint(textureLod({}, vec2(-1), 0.0).r), 0, 0, 0));"
    for zero in (0.0, -0.0):
        keys = bordered("FLOAT_CUSTOM_EXT", [zero, 1, 1, 1])
        scene.image(f"src{zero:.0f}", "R32G32B32A32_SFLOAT", numpy.ones((2, 2, 4), numpy.float32), **keys)
        scene.image(f"dst{zero:.0f}", "R32_UINT", size=(1, 1))
        declarations = "layout(set = 0, binding = 0) uniform sampler2D src;\n" + storage(1, "R32_UINT", "dst")
        scene.shader(f"s{zero:.0f}", per_texel(body.format("src"), declarations))
        scene.dispatch(f"s{zero:.0f}", [f"src{zero:.0f}", f"dst{zero:.0f}"], (1, 1))
    result = runner.run(scene.write())
    assert (result["dst0"].item(), result["dst-0"].item()) == (0, 1 << 31)


def test_a_custom_color_of_the_wrong_kind(scene: Scene, runner: Runner) -> None:
    """INT_CUSTOM_EXT for a format without integers is an error that names the right one."""
    scene.image("x", "R8_UNORM", size=(4, 4), **bordered("INT_CUSTOM_EXT", [1] * 4))
    problem = scene.refusal(runner.run)
    assert problem.help == "use FLOAT_CUSTOM_EXT"


# Two texels side by side: a filter that takes one of them gives 0 or 1, one that mixes them something between.
PAIR = numpy.array([[0, 1]], numpy.float32)


def mixed(scene: Scene, runner: Runner, shrink: bool, **keys: Any) -> bool:
    """Whether the sampler interpolates when the image is shrunk (level of detail above 0), or enlarged."""
    lod = "1.0" if shrink else "0.0"
    body = f"imageStore(dst, p, textureLod(src, vec2(0.4, 0.5), {lod}));"
    declarations = "layout(set = 0, binding = 0) uniform sampler2D src;\n" + storage(1, "R32_SFLOAT", "dst")
    scene.shader("sample", per_texel(body, declarations)).image("src", "R32_SFLOAT", PAIR, **keys)
    scene.image("dst", "R32_SFLOAT", size=(1, 1)).dispatch("sample", ["src", "dst"], (1, 1))
    value = runner.run(scene.write())["dst"].item()
    assert 0 <= value <= 1
    return 0 < value < 1


@pytest.mark.parametrize("min_filter", ["NEAREST", "LINEAR"])
@pytest.mark.parametrize("mag_filter", ["NEAREST", "LINEAR"])
@pytest.mark.parametrize("shrink", [False, True])
def test_min_and_mag_filter(scene: Scene, runner: Runner, min_filter: str, mag_filter: str, shrink: bool) -> None:
    """min_filter decides where the image is shrunk, mag_filter where it is enlarged: not the other way round."""
    found = mixed(scene, runner, shrink, min_filter=min_filter, mag_filter=mag_filter)
    assert found == ((min_filter if shrink else mag_filter) == "LINEAR")


@pytest.mark.parametrize("filter, value", [("NEAREST", {0.0, 8.0}), ("LINEAR", {4.0})])
def test_mip_filter(scene: Scene, runner: Runner, filter: str, value: set[float]) -> None:
    """Halfway between two levels NEAREST takes one level, and LINEAR takes the mean."""
    scene.shader("fill", per_texel("imageStore(dst, p, vec4(8.0));", storage(0, "R32_SFLOAT", "dst")))
    body = "imageStore(dst, p, textureLod(src, vec2(0.5), 0.5));"
    declarations = "layout(set = 0, binding = 0) uniform sampler2D src;\n" + storage(1, "R32_SFLOAT", "dst")
    scene.shader("sample", per_texel(body, declarations))
    scene.image("src", "R32_SFLOAT", size=(4, 4), mips=2, mip_filter=filter).image("dst", "R32_SFLOAT", size=(1, 1))
    scene.dispatch("fill", [at_level("src", 1)], (2, 2))
    scene.dispatch("sample", ["src", "dst"], (1, 1))
    assert runner.run(scene.write())["dst"].item() in value


def test_linear_filter_of_integers(scene: Scene, runner: Runner) -> None:
    """LINEAR for integers is a warning, and the image is sampled with NEAREST."""
    content = texels("R32G32B32A32_UINT", WIDTH, HEIGHT)
    keys = {"border_address_mode": "REPEAT", "min_filter": "LINEAR", "mag_filter": "LINEAR"}
    got = sampled(scene, runner, "R32G32B32A32_UINT", content, **keys)
    assert (got == expected(content, "REPEAT", False)).all()
    plan = runner.plan(scene.folder / "scenario.json")
    assert any("integers cannot be interpolated" in warning.message for warning in plan.warnings)


HLSL_SAMPLES = """
Texture2D<float> t : register(t0);
KIND s : register(s1);
RWStructuredBuffer<float> o : register(u2);
float sampled(Texture2D<float> t, KIND s) { return t.CALL; }
[numthreads(1, 1, 1)] void main() { o[0] = sampled(t, s); }
"""
GLSL_SAMPLES = glsl(
    "o[0] = float(texture(CALL(0)));",
    "layout(binding = 0) uniform texture2D t; layout(binding = 1) uniform KIND s;"
    "layout(binding = 2) buffer O { float o[]; };",
)


@needs(DXC_LIBRARY, "Sampler")
@pytest.mark.parametrize("format", ["R8G8B8A8_UNORM", "D32_SFLOAT"])
@pytest.mark.parametrize(
    "text, kind, call, compares",
    [
        (HLSL_SAMPLES, "SamplerComparisonState", "SampleCmpLevelZero(s, (float2)0, 0.5)", True),
        (HLSL_SAMPLES, "SamplerComparisonState", "GatherCmpRed(s, (float2)0, 0.5).x", True),
        (HLSL_SAMPLES, "SamplerState", "SampleLevel(s, (float2)0, 0)", False),
        (GLSL_SAMPLES, "samplerShadow", "sampler2DShadow(t, s), vec3", True),
        (GLSL_SAMPLES, "sampler", "sampler2D(t, s), vec2", False),
    ],
)
def test_comparing_samplers(scene: Scene, format: str, text: str, kind: str, call: str, compares: bool) -> None:
    """A sampler of its own that compares depths is refused, whatever the texture's declaration and format are."""
    scene.file("s.txt", text.replace("KIND", kind).replace("CALL", call))
    scene.resource("shader", uid="s", src="s.txt", type="HLSL" if text is HLSL_SAMPLES else "GLSL")
    scene.image("picture", format, size=(8, 8)).buffer("x", size=16).dispatch("s", ["picture", "picture", "x"])
    expected = [
        "SR-IMAGE-005 error /commands/0/dispatch_compute/bindings/1: sampler 's' at set 0, binding 1, in shader 's'"
        " compares depths while sampling, but scenarios have no such samplers"
    ]
    found = validate_file(scene.write()).findings
    lines = [f"{each.code} {each.severity} {each.pointer}: {each.message}" for each in found]
    assert lines == (expected if compares else [])

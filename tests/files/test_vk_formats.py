"""The format table, compared with constants of the vulkan package, and kinds of numbers."""

import numpy
import numpy as np
import pytest

from scenario_runner.errors import ScenarioError, UnsupportedError
from scenario_runner.files.elements import ELEMENTS, element_of
from scenario_runner.files.vk_formats import (
    all_formats,
    close_format_names,
    find_format,
    format_named,
    format_of_dxgi,
    format_of_value,
    full_mip_count,
)
from tests.scenes import error_of

# Layout, components and bytes of a texel or block; then, for each kind of number, the NumPy type of a component and the
# DXGI code.
FACTS = """
R8 1 1: UNORM |u1 61, SNORM |i1 63, UINT |u1 62, SINT |i1 64
R8 1 1: BOOL_ARM |b1 -, SFLOAT_FPENCODING_FLOAT8E4M3_ARM <V1 -, SFLOAT_FPENCODING_FLOAT8E5M2_ARM |u1 -
R8G8B8 3 3: UNORM |u1 -, SNORM |i1 133, UINT |u1 -, SINT |i1 134, SRGB |u1 -
B8G8R8 3 3: UNORM |u1 88, SRGB |u1 93
R8G8B8A8 4 4: UNORM |u1 28, SNORM |i1 31, UINT |u1 30, SINT |i1 32, SRGB |u1 29
R16 1 2: UNORM <u2 56, SNORM <i2 58, UINT <u2 57, SINT <i2 59, SFLOAT <f2 54, SFLOAT_FPENCODING_BFLOAT16_ARM <V2 -
R16G16B16A16 4 8: UNORM <u2 11, SNORM <i2 13, UINT <u2 12, SINT <i2 14, SFLOAT <f2 10
R32 1 4: UINT <u4 42, SINT <i4 43, SFLOAT <f4 41
R32G32B32 3 12: SFLOAT <f4 6
R64 1 8: SINT <i8 -
B10G11R11 3 4: UFLOAT_PACK32 <u4 26
D32 1 4: SFLOAT <f4 40
D24 2 4: UNORM_S8_UINT <u4 45
D32 2 5: SFLOAT_S8_UINT <f4 20
BC1_RGBA 4 8: UNORM_BLOCK - 71, SRGB_BLOCK - 72
BC4 1 8: UNORM_BLOCK - 80, SNORM_BLOCK - 81
BC6H 3 16: UFLOAT_BLOCK - 95, SFLOAT_BLOCK - 96
BC7 4 16: UNORM_BLOCK - 98, SRGB_BLOCK - 99
A2B10G10R10 4 4: UNORM_PACK32 <u4 24
R5G6B5 3 2: UNORM_PACK16 <u2 85
E5B9G9R9 3 4: UFLOAT_PACK32 <u4 67
R64G64B64A64 4 32: SFLOAT <f8 -
"""
# Formats of extensions, whose values the vulkan package does not have.
EXTENSION_VALUES = {
    "VK_FORMAT_R8_BOOL_ARM": 1000460000,
    "VK_FORMAT_R16_SFLOAT_FPENCODING_BFLOAT16_ARM": 1000460001,
    "VK_FORMAT_R8_SFLOAT_FPENCODING_FLOAT8E4M3_ARM": 1000460002,
    "VK_FORMAT_R8_SFLOAT_FPENCODING_FLOAT8E5M2_ARM": 1000460003,
}


@pytest.mark.parametrize("line", FACTS.strip().splitlines())
def test_facts(line: str) -> None:
    """Components, size, NumPy type and DXGI code of a format are the known ones."""
    shared, _, kinds = line.partition(": ")
    layout, components, size_bytes = shared.split()
    for kind, dtype, dxgi in map(str.split, kinds.split(", ")):
        found = format_named(f"VK_FORMAT_{layout}_{kind}")
        fields = (found.components, found.block_size_bytes, found.numpy_dtype, found.dxgi)
        assert ["-" if field is None else str(field) for field in fields] == [components, size_bytes, dtype, dxgi]
        assert format_of_value(found.value) is found
        if found.dxgi is not None:
            assert format_of_dxgi(found.dxgi) is found


def test_names_and_values_are_those_of_the_headers() -> None:
    """Every core format of the table has the value that the Vulkan headers give its name."""
    import vulkan

    core = [entry for entry in all_formats() if entry.value < 1000340000]
    assert len(core) == 146
    assert {entry.name: entry.value for entry in core} == {entry.name: getattr(vulkan, entry.name) for entry in core}
    assert {name: format_named(name).value for name in EXTENSION_VALUES} == EXTENSION_VALUES


@pytest.mark.parametrize("entry", all_formats(), ids=lambda entry: entry.name)
def test_sizes_agree_with_the_name(entry) -> None:
    """Bits, bytes and NumPy items of a format fit each other."""
    if entry.is_compressed:
        assert (entry.block_extent, entry.numpy_dtype, entry.numpy_items) == ((4, 4), None, 0)
        assert (entry.level_size_bytes(1, 1), entry.level_size_bytes(5, 9)) == (
            entry.block_size_bytes,
            6 * entry.block_size_bytes,
        )
        return
    assert sum(entry.channel_bits) == 8 * entry.block_size_bytes
    assert entry.level_size_bytes(5, 3) == 15 * entry.block_size_bytes
    if entry.aspects != ("depth", "stencil"):
        assert np.dtype(entry.numpy_dtype).itemsize * entry.numpy_items == entry.block_size_bytes
        assert entry.numpy_items == (1 if entry.is_packed else entry.components)


def test_packed_channels_go_from_the_highest_bit_down() -> None:
    """The channels of packed formats are named as Vulkan does, of others in memory order."""
    packed = format_named("VK_FORMAT_A2B10G10R10_UNORM_PACK32")
    assert (packed.channels, packed.channel_bits, packed.is_packed) == ("ABGR", (2, 10, 10, 10), True)
    plain = format_named("VK_FORMAT_B8G8R8A8_SRGB")
    assert (plain.channels, plain.channel_bits, plain.numeric, plain.is_packed) == ("BGRA", (8, 8, 8, 8), "srgb", False)
    padded = format_named("VK_FORMAT_X8_D24_UNORM_PACK32")
    assert (padded.components, padded.aspects, padded.numeric) == (1, ("depth",), "unorm")
    both = format_named("VK_FORMAT_D32_SFLOAT_S8_UINT")
    assert (both.aspects, both.numeric) == (("depth", "stencil"), "sfloat")


def test_an_unknown_name_is_an_error_with_close_matches() -> None:
    """A misspelt name gets the nearest ones, a name without prefix the full one, and nonsense an example."""
    error = error_of(ScenarioError, format_named, "VK_FORMAT_R8G8B8A8_UNROM")
    assert str(error) == "unknown format 'VK_FORMAT_R8G8B8A8_UNROM'"
    assert str(error.problems[0].help).startswith("did you mean 'VK_FORMAT_R8G8B8A8_UNORM' or ")
    assert close_format_names("R32_SFLOAT")[0] == "VK_FORMAT_R32_SFLOAT"
    assert close_format_names("x" * 10_000_000) == []
    assert error_of(ScenarioError, format_named, "").problems[0].help == "expected a name like 'VK_FORMAT_R8_UNORM'"
    assert find_format("R32_SFLOAT") is None


def test_an_unknown_value_or_code_is_refused() -> None:
    """Values without a format are an UnsupportedError, DXGI codes without one give None."""
    with pytest.raises(UnsupportedError, match="unknown VkFormat value 1000156000"):
        format_of_value(1000156000)
    assert format_of_dxgi(27) is None


@pytest.mark.parametrize("extent, levels", [((1, 1), 1), ((2, 1), 2), ((7, 5), 3), ((256, 1), 9), ((4096, 4096), 13)])
def test_the_full_chain(extent: tuple[int, int], levels: int) -> None:
    """The full chain halves the longer side, rounding down, until it is one."""
    assert full_mip_count(*extent) == levels


@pytest.mark.parametrize(
    "names, expected",
    [
        ("float32 float <f4 >f4 f4 np.float32 torch.float32 fp32 f32 r32f R32_FLOAT R32_SFLOAT r32float", "R32_SFLOAT"),
        ("float16 half <f2 f16 fp16 min16float r16f R16_FLOAT VK_FORMAT_R16_FLOAT torch.float16", "R16_SFLOAT"),
        ("int8 i8 int8_t |i1 sbyte char s8 torch.int8 R8_INT VK_FORMAT_R8_INT r8i", "R8_SINT"),
        ("uint8 u8 uint8_t |u1 byte uchar r8ui numpy.uint8", "R8_UINT"),
        ("bfloat16 bf16 torch.bfloat16", "R16_SFLOAT_FPENCODING_BFLOAT16_ARM"),
        ("float8_e4m3fn e4m3 fp8_e4m3", "R8_SFLOAT_FPENCODING_FLOAT8E4M3_ARM"),
        ("vec4 float4 vec4<f32> vec4f float32x4 rgba32f rgba32float R32G32B32A32_FLOAT", "R32G32B32A32_SFLOAT"),
        ("half4 f16vec4 rgba16f RGBA16_FLOAT GL_RGBA16F rgba16float", "R16G16B16A16_SFLOAT"),
        (
            "rgba8 RGBA rgba8unorm R8G8B8A8 GL_RGBA8 unorm8x4 DXGI_FORMAT_R8G8B8A8_UNORM r8g8b8a8_unorm",
            "R8G8B8A8_UNORM",
        ),
        ("rgba8unorm-srgb R8G8B8A8_UNORM_SRGB GL_SRGB8_ALPHA8", "R8G8B8A8_SRGB"),
        ("r11f_g11f_b10f R11G11B10_FLOAT rg11b10ufloat", "B10G11R11_UFLOAT_PACK32"),
        ("rgb10_a2 R10G10B10A2_UNORM rgb10a2unorm A2B10G10R10_UNORM", "A2B10G10R10_UNORM_PACK32"),
        ("BC7_UNORM bc7-rgba-unorm", "BC7_UNORM_BLOCK"),
        ("bc7-rgba-unorm-srgb BC7_UNORM_SRGB", "BC7_SRGB_BLOCK"),
        ("DXT5", "BC3_UNORM_BLOCK"),
    ],
)
def test_names_that_other_programs_give(names: str, expected: str) -> None:
    """A format name of NumPy, C, GLSL, WGSL, OpenGL or DXGI leads to Vulkan's name as the first suggestion."""
    for name in names.split():
        assert close_format_names(name)[:1] == [f"VK_FORMAT_{expected}"], name


def test_every_format_is_found_without_its_prefix() -> None:
    """The name of any format in lower case and without the prefix leads to it."""
    for entry in all_formats():
        assert entry.name in close_format_names(entry.name.removeprefix("VK_FORMAT_").lower()), entry.name


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_steps_count_values_between_two(name: str) -> None:
    """The distance in steps is the number of times that nextafter goes from one value to the other, across zero too."""
    element = ELEMENTS[name]
    start = numpy.array([-0.0, 1.0, -1.0, 0.0], element.dtype)
    value = start
    for count in range(1, 6):
        value = numpy.nextafter(value, numpy.array(numpy.inf, element.dtype))
        assert element.steps(start, value).tolist() == [count] * 4
        assert element.steps(value, start).tolist() == [count] * 4
    least = -numpy.nextafter(numpy.array(0, element.dtype), numpy.array(1, element.dtype))
    assert element.steps(least.reshape(1), -least.reshape(1)).tolist() == [2]


def test_values_are_shown_with_their_bits() -> None:
    """A value is shown in decimal and, in hexadecimal, as its bits."""
    assert ELEMENTS["float32"].text(numpy.array([1.5], "f4")) == "1.5 (0x3fc00000)"
    assert ELEMENTS["int16"].text(numpy.array([-2], "i2")) == "-2 (0xfffe)"
    assert ELEMENTS["bool"].text(numpy.array([True])) == "True (0x01)"
    assert ELEMENTS["bfloat16"].text(numpy.array([0x3FC0], "u2")) == "1.5 (0x3fc0)"


def test_types_of_files() -> None:
    """NumPy's plain types have an element; raw bytes are bfloat16 and float8, and complex numbers are nothing."""
    assert element_of("f2") is ELEMENTS["float16"]
    assert element_of("b1") is ELEMENTS["bool"]
    assert element_of("V2") is ELEMENTS["bfloat16"]
    assert element_of("c8") is element_of("f16") is element_of("V3") is None

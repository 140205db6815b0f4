"""The format table, against facts typed in again and against the constants of the vulkan package."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from scenario_runner.errors import ScenarioError, UnsupportedError
from scenario_runner.formats import (
    all_formats,
    close_format_names,
    find_format,
    format_named,
    format_of_dxgi,
    format_of_value,
    full_mip_count,
)

# name, value, components, bytes a texel or block, NumPy type of a component, DXGI code
FACTS = """
R8_UNORM 9 1 1 |u1 61
R8_SNORM 10 1 1 |i1 63
R8_UINT 13 1 1 |u1 62
R8_SINT 14 1 1 |i1 64
R8G8_UNORM 16 2 2 |u1 49
R8G8_SNORM 17 2 2 |i1 51
R8G8_UINT 20 2 2 |u1 50
R8G8_SINT 21 2 2 |i1 52
R8G8B8_UNORM 23 3 3 |u1 -
R8G8B8_SNORM 24 3 3 |i1 133
R8G8B8_UINT 27 3 3 |u1 -
R8G8B8_SINT 28 3 3 |i1 134
R8G8B8_SRGB 29 3 3 |u1 -
B8G8R8_UNORM 30 3 3 |u1 88
B8G8R8_SRGB 36 3 3 |u1 93
R8G8B8A8_UNORM 37 4 4 |u1 28
R8G8B8A8_SNORM 38 4 4 |i1 31
R8G8B8A8_UINT 41 4 4 |u1 30
R8G8B8A8_SINT 42 4 4 |i1 32
R8G8B8A8_SRGB 43 4 4 |u1 29
B8G8R8A8_UNORM 44 4 4 |u1 87
B8G8R8A8_SRGB 50 4 4 |u1 91
R16_UNORM 70 1 2 <u2 56
R16_SNORM 71 1 2 <i2 58
R16_UINT 74 1 2 <u2 57
R16_SINT 75 1 2 <i2 59
R16_SFLOAT 76 1 2 <f2 54
R16G16_UNORM 77 2 4 <u2 35
R16G16_SNORM 78 2 4 <i2 37
R16G16_UINT 81 2 4 <u2 36
R16G16_SINT 82 2 4 <i2 38
R16G16_SFLOAT 83 2 4 <f2 34
R16G16B16A16_UNORM 91 4 8 <u2 11
R16G16B16A16_SNORM 92 4 8 <i2 13
R16G16B16A16_UINT 95 4 8 <u2 12
R16G16B16A16_SINT 96 4 8 <i2 14
R16G16B16A16_SFLOAT 97 4 8 <f2 10
R32_UINT 98 1 4 <u4 42
R32_SINT 99 1 4 <i4 43
R32_SFLOAT 100 1 4 <f4 41
R32G32_UINT 101 2 8 <u4 17
R32G32_SINT 102 2 8 <i4 18
R32G32_SFLOAT 103 2 8 <f4 16
R32G32B32_SFLOAT 106 3 12 <f4 6
R32G32B32A32_UINT 107 4 16 <u4 3
R32G32B32A32_SINT 108 4 16 <i4 4
R32G32B32A32_SFLOAT 109 4 16 <f4 2
R64_SINT 111 1 8 <i8 -
B10G11R11_UFLOAT_PACK32 122 3 4 <u4 26
D32_SFLOAT 126 1 4 <f4 40
D24_UNORM_S8_UINT 129 2 4 <u4 45
D32_SFLOAT_S8_UINT 130 2 5 <f4 20
BC1_RGBA_UNORM_BLOCK 133 4 8 - 71
BC1_RGBA_SRGB_BLOCK 134 4 8 - 72
BC2_UNORM_BLOCK 135 4 16 - 74
BC2_SRGB_BLOCK 136 4 16 - 75
BC3_UNORM_BLOCK 137 4 16 - 77
BC3_SRGB_BLOCK 138 4 16 - 78
BC4_UNORM_BLOCK 139 1 8 - 80
BC4_SNORM_BLOCK 140 1 8 - 81
BC5_UNORM_BLOCK 141 2 16 - 83
BC5_SNORM_BLOCK 142 2 16 - 84
BC6H_UFLOAT_BLOCK 143 3 16 - 95
BC6H_SFLOAT_BLOCK 144 3 16 - 96
BC7_UNORM_BLOCK 145 4 16 - 98
BC7_SRGB_BLOCK 146 4 16 - 99
R8_BOOL_ARM 1000460000 1 1 |b1 -
R16_SFLOAT_FPENCODING_BFLOAT16_ARM 1000460001 1 2 <V2 -
R8_SFLOAT_FPENCODING_FLOAT8E4M3_ARM 1000460002 1 1 <V1 -
R8_SFLOAT_FPENCODING_FLOAT8E5M2_ARM 1000460003 1 1 |u1 -
A2B10G10R10_UNORM_PACK32 64 4 4 <u4 24
R5G6B5_UNORM_PACK16 4 3 2 <u2 85
A1R5G5B5_UNORM_PACK16 8 4 2 <u2 86
E5B9G9R9_UFLOAT_PACK32 123 3 4 <u4 67
D16_UNORM 124 1 2 <u2 55
R64G64B64A64_SFLOAT 121 4 32 <f8 -
"""


@pytest.mark.parametrize("line", FACTS.strip().splitlines())
def test_facts(line: str) -> None:
    """Value, components, size, NumPy type and DXGI code of a format are the known ones."""
    name, *expected = line.split()
    found = format_named("VK_FORMAT_" + name)
    fields = (found.value, found.components, found.block_size_bytes, found.numpy_dtype, found.dxgi)
    assert ["-" if field is None else str(field) for field in fields] == expected
    assert format_of_value(found.value) is found
    if found.dxgi is not None:
        assert format_of_dxgi(found.dxgi) is found


def test_names_and_values_are_those_of_the_vulkan_package() -> None:
    """Every core format of the table has the value that the Vulkan headers give its name."""
    import vulkan

    core = [entry for entry in all_formats() if entry.value < 1000340000]
    assert len(core) == 146
    assert {entry.name: entry.value for entry in core} == {entry.name: getattr(vulkan, entry.name) for entry in core}


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
    with pytest.raises(ScenarioError) as caught:
        format_named("VK_FORMAT_R8G8B8A8_UNROM")
    assert str(caught.value) == "no format that this program knows is called 'VK_FORMAT_R8G8B8A8_UNROM'"
    assert str(caught.value.problems[0].help).startswith("did you mean 'VK_FORMAT_R8G8B8A8_UNORM' or ")
    assert close_format_names("R32_SFLOAT")[0] == "VK_FORMAT_R32_SFLOAT"
    assert close_format_names("x" * 10_000_000) == []
    with pytest.raises(ScenarioError) as caught:
        format_named("")
    assert caught.value.problems[0].help == "expected a name like 'VK_FORMAT_R8_UNORM'"
    assert find_format("R32_SFLOAT") is None


def test_an_unknown_value_or_code_is_refused() -> None:
    """Values without a format are an UnsupportedError, DXGI codes without one give None."""
    with pytest.raises(UnsupportedError, match="unknown VkFormat value 1000156000"):
        format_of_value(1000156000)
    assert format_of_dxgi(27) is None


def test_a_format_stays_one_object() -> None:
    """Copying and pickling give the same object back."""
    entry = format_named("VK_FORMAT_R8_UNORM")
    assert copy.deepcopy(entry) is entry
    assert pickle.loads(pickle.dumps(entry)) is entry


@pytest.mark.parametrize("extent, levels", [((1, 1), 1), ((2, 1), 2), ((7, 5), 3), ((256, 1), 9), ((4096, 4096), 13)])
def test_the_full_chain(extent: tuple[int, int], levels: int) -> None:
    """The full chain halves the longer side, rounding down, until it is one."""
    assert full_mip_count(*extent) == levels


@pytest.mark.parametrize(
    "names, expected",
    [
        ("float32 float <f4 >f4 f4 np.float32 torch.float32 fp32 f32 r32f R32_FLOAT R32_SFLOAT r32float", "R32_SFLOAT"),
        ("float16 half <f2 f16 fp16 min16float r16f R16_FLOAT VK_FORMAT_R16_FLOAT torch.float16", "R16_SFLOAT"),
        ("float64 double <f8", "R64_SFLOAT"),
        ("int8 i8 int8_t |i1 sbyte char s8 torch.int8 R8_INT VK_FORMAT_R8_INT r8i", "R8_SINT"),
        ("uint8 u8 uint8_t |u1 byte uchar r8ui numpy.uint8", "R8_UINT"),
        ("int32 int int32_t <i4 i32", "R32_SINT"),
        ("int64 <i8", "R64_SINT"),
        ("bfloat16 bf16 torch.bfloat16", "R16_SFLOAT_FPENCODING_BFLOAT16_ARM"),
        ("float8_e4m3fn e4m3 fp8_e4m3", "R8_SFLOAT_FPENCODING_FLOAT8E4M3_ARM"),
        ("float8_e5m2", "R8_SFLOAT_FPENCODING_FLOAT8E5M2_ARM"),
        ("bool |b1", "R8_BOOL_ARM"),
        ("vec4 float4 vec4<f32> vec4f float32x4 rgba32f rgba32float R32G32B32A32_FLOAT", "R32G32B32A32_SFLOAT"),
        ("half4 f16vec4 rgba16f RGBA16_FLOAT GL_RGBA16F rgba16float", "R16G16B16A16_SFLOAT"),
        ("uvec2 uint2 rg32ui", "R32G32_UINT"),
        (
            "rgba8 RGBA rgba8unorm R8G8B8A8 GL_RGBA8 unorm8x4 DXGI_FORMAT_R8G8B8A8_UNORM r8g8b8a8_unorm",
            "R8G8B8A8_UNORM",
        ),
        ("rgba8_snorm rgba8snorm", "R8G8B8A8_SNORM"),
        ("rgba8unorm-srgb R8G8B8A8_UNORM_SRGB GL_SRGB8_ALPHA8", "R8G8B8A8_SRGB"),
        ("bgra8unorm BGRA B8G8R8A8_UNORM", "B8G8R8A8_UNORM"),
        ("r11f_g11f_b10f R11G11B10_FLOAT rg11b10ufloat", "B10G11R11_UFLOAT_PACK32"),
        ("rgb10_a2 R10G10B10A2_UNORM rgb10a2unorm A2B10G10R10_UNORM", "A2B10G10R10_UNORM_PACK32"),
        ("R9G9B9E5_SHAREDEXP rgb9e5ufloat", "E5B9G9R9_UFLOAT_PACK32"),
        ("D32_FLOAT depth32float", "D32_SFLOAT"),
        ("D24_UNORM_S8_UINT depth24plus-stencil8", "D24_UNORM_S8_UINT"),
        ("BC7_UNORM bc7-rgba-unorm", "BC7_UNORM_BLOCK"),
        ("bc7-rgba-unorm-srgb BC7_UNORM_SRGB", "BC7_SRGB_BLOCK"),
        ("BC6H_UF16", "BC6H_UFLOAT_BLOCK"),
        ("DXT5", "BC3_UNORM_BLOCK"),
    ],
)
def test_names_that_other_programs_give(names: str, expected: str) -> None:
    """What NumPy, C, GLSL, WGSL, OpenGL and DXGI call a format leads to Vulkan's name, as the first suggestion."""
    for name in names.split():
        assert close_format_names(name)[:1] == [f"VK_FORMAT_{expected}"], name


def test_every_format_is_found_without_its_prefix() -> None:
    """The name of any format in lower case and without the prefix leads to it."""
    for entry in all_formats():
        assert entry.name in close_format_names(entry.name.removeprefix("VK_FORMAT_").lower()), entry.name

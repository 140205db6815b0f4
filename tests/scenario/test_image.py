"""The image resource."""

import pytest

from tests.scenario.shared_mistakes import DATA

SMALLEST = {"uid": "x", "dims": [1, 4, 2, 1], "format": "VK_FORMAT_R8_UNORM", "shader_access": "readonly"}


def test_smallest(resource):
    """The smallest image loads, and all else has the documented default."""
    loaded = resource("image", SMALLEST)
    assert loaded.dims == (1, 4, 2, 1)
    assert loaded.mips == 1
    assert loaded.color_attachment is False
    assert loaded.min_filter == loaded.mag_filter == loaded.mip_filter == "NEAREST"
    assert loaded.border_address_mode == "CLAMP_EDGE"
    assert loaded.border_color == "FLOAT_TRANSPARENT_BLACK"
    assert loaded.src is loaded.dst is loaded.tiling is loaded.memory_group is loaded.custom_border_color is None


@pytest.mark.parametrize(
    "change, message",
    [
        *DATA,
        ({"dims": None}, ": the required key 'dims' is missing"),
        ({"dims": 8}, "/dims: expected an array, got 8"),
        ({"dims": [1, -4, 2, 1]}, "/dims/1: expected an integer of at least 0, got -4"),
        ({"dims": [1, 4.5, 2, 1]}, "/dims/1: expected an integer, got 4.5"),
        ({"format": None}, ": the required key 'format' is missing"),
        ({"mips": 0}, "/mips: expected an integer of at least 1, got 0"),
        ({"mips": "false"}, "/mips: expected an integer, got 'false'"),
        ({"mips": 33}, "/mips: expected an integer of at most 32, got 33"),
        (
            {"min_filter": "linear"},
            "/min_filter: expected one of 'NEAREST', 'LINEAR', got 'linear' (did you mean 'LINEAR'?)",
        ),
        ({"mag_filter": "CUBIC"}, "/mag_filter: expected one of 'NEAREST', 'LINEAR', got 'CUBIC'"),
        ({"mip_filter": 1}, "/mip_filter: expected one of 'NEAREST', 'LINEAR', got 1"),
        (
            {"border_address_mode": "CLAMP_EGDE"},
            "/border_address_mode: expected one of 'CLAMP_EDGE', 'CLAMP_BORDER', 'REPEAT', "
            "'MIRRORED_REPEAT', got 'CLAMP_EGDE' (did you mean 'CLAMP_EDGE'?)",
        ),
        (
            {"border_color": "RED"},
            "/border_color: expected one of 'FLOAT_TRANSPARENT_BLACK', 'FLOAT_OPAQUE_BLACK', "
            "'FLOAT_OPAQUE_WHITE', 'INT_TRANSPARENT_BLACK', 'INT_OPAQUE_BLACK', 'INT_OPAQUE_WHITE', "
            "'INT_CUSTOM_EXT', 'FLOAT_CUSTOM_EXT', got 'RED'",
        ),
        (
            {"custom_border_color": [1, 2, 3, 4]},
            "/custom_border_color: needs a border_color of INT_CUSTOM_EXT or FLOAT_CUSTOM_EXT",
        ),
        ({"border_color": "INT_CUSTOM_EXT"}, "/border_color: INT_CUSTOM_EXT needs a custom_border_color"),
        (
            {"border_color": "INT_CUSTOM_EXT", "custom_border_color": [1, 2, 0.5, 4]},
            "/custom_border_color/2: INT_CUSTOM_EXT needs 32-bit integers, got 0.5",
        ),
        (
            {"border_color": "INT_CUSTOM_EXT", "custom_border_color": [1, 2, 3, 4294967296]},
            "/custom_border_color/3: INT_CUSTOM_EXT needs 32-bit integers, got 4294967296",
        ),
        (
            {"border_color": "FLOAT_CUSTOM_EXT", "custom_border_color": [1, 2, 3]},
            "/custom_border_color: expected at least 4 entries, got 3",
        ),
        (
            {"border_color": "FLOAT_CUSTOM_EXT", "custom_border_color": [1, 2, 3, 4, 5]},
            "/custom_border_color: expected at most 4 entries, got 5",
        ),
        (
            {"border_color": "FLOAT_CUSTOM_EXT", "custom_border_color": [1, 2, 3, True]},
            "/custom_border_color/3: expected a number, got true",
        ),
        (
            {"tiling": "optimal"},
            "/tiling: expected one of 'OPTIMAL', 'LINEAR', got 'optimal' (did you mean 'OPTIMAL'?)",
        ),
        ({"color_attachment": 1}, "/color_attachment: expected true or false, got 1"),
        ({"data": 1}, "/data: unknown key 'data'"),
    ],
)
def test_wrong(resource_problems, change, message):
    """Each way to write an image wrong has one message that says what and where."""
    assert resource_problems("image", SMALLEST, change) == [message]


@pytest.mark.parametrize("value", [True, False])
def test_boolean_mips(scenario_of, value):
    """A boolean for mips means one level, with a warning that says where."""
    loaded = scenario_of([{"image": {**SMALLEST, "mips": value}}], [])
    assert loaded.resources[0].mips == 1
    assert [(warning.pointer, warning.message) for warning in loaded.warnings] == [
        ("/resources/0/image/mips", "a boolean number of mip levels is deprecated and means 1")
    ]


def test_unused_custom_border_color(scenario_of):
    """A custom border color beside a standard one loads with a warning."""
    image = {**SMALLEST, "border_color": "INT_OPAQUE_BLACK", "custom_border_color": [1, 2, 3, 4]}
    (warning,) = scenario_of([{"image": image}], []).warnings
    assert warning.pointer == "/resources/0/image/custom_border_color"
    assert warning.message == "has no effect with the border_color 'INT_OPAQUE_BLACK'"


def test_custom_border_color(resource):
    """The numbers of a custom border color keep the types that the file gives them."""
    loaded = resource("image", SMALLEST, border_color="FLOAT_CUSTOM_EXT", custom_border_color=[0, 0.5, 1, 1e3])
    assert [(type(value), value) for value in loaded.custom_border_color] == [
        (int, 0),
        (float, 0.5),
        (int, 1),
        (float, 1000.0),
    ]

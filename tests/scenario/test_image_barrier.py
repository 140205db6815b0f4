"""The image_barrier resource."""

import pytest

from tests.scenario.shared_mistakes import BARRIER

SMALLEST = {
    "uid": "x",
    "image_resource": "picture",
    "old_layout": "IMAGE_LAYOUT_UNDEFINED",
    "new_layout": "general",
    "src_access": "ACCESS_MEMORY_WRITE",
    "dst_access": "ACCESS_COMPUTE_SHADER_READ",
}


def test_smallest(resource):
    """The smallest image_barrier loads, and all else has the documented default."""
    loaded = resource("image_barrier", SMALLEST)
    assert (loaded.src_access, loaded.dst_access) == ("memory_write", "compute_shader_read")
    assert loaded.src_stage == loaded.dst_stage == ("all",)
    assert (loaded.old_layout, loaded.new_layout) == ("undefined", "general")
    assert loaded.subresource_range.model_dump() == {
        "base_mip_level": 0,
        "level_count": 1,
        "base_array_layer": 0,
        "layer_count": 1,
    }


@pytest.mark.parametrize(
    "change, message",
    [
        *BARRIER,
        ({"image_resource": None}, ": the required key 'image_resource' is missing"),
        (
            {"image_resource": "pictures"},
            "/image_resource: no resource has the uid 'pictures' (did you mean 'picture'?)",
        ),
        ({"image_resource": "a"}, "/image_resource: expected the uid of an image, got 'a', which is a buffer"),
        ({"old_layout": None}, ": the required key 'old_layout' is missing"),
        ({"new_layout": None}, ": the required key 'new_layout' is missing"),
        (
            {"new_layout": "IMAGE_LAYOUT_GENRAL"},
            "/new_layout: expected one of 'tensor_aliasing', 'general', 'undefined', got "
            "'IMAGE_LAYOUT_GENRAL' (did you mean 'IMAGE_LAYOUT_GENERAL'?)",
        ),
        ({"subresource_range": []}, "/subresource_range: expected an object, got an array"),
        (
            {"subresource_range": {"level_count": 0}},
            "/subresource_range/level_count: expected an integer of at least 1, got 0",
        ),
        (
            {"subresource_range": {"level_cuont": 1}},
            "/subresource_range/level_cuont: unknown key 'level_cuont' (did you mean 'level_count'?)",
        ),
        (
            {"subresource_range": {"base_mip_level": 3}},
            "/subresource_range/base_mip_level: the image 'picture' has 3 mip levels, got the first one 3",
        ),
        (
            {"subresource_range": {"base_mip_level": 1, "level_count": 3}},
            "/subresource_range/level_count: the image 'picture' has 3 mip levels, got 3 from 1 on",
        ),
        (
            {"subresource_range": {"layer_count": 2}},
            "/subresource_range/layer_count: the image 'picture' has 1 array layer, got 2 from 0 on",
        ),
    ],
)
def test_wrong(resource_problems, change, message):
    """Each way to write an image_barrier wrong has one message that says what and where."""
    assert resource_problems("image_barrier", SMALLEST, change) == [message]


def test_partial_range(resource):
    """Every member of a subresource range has a default, and the remaining levels need no count."""
    loaded = resource("image_barrier", SMALLEST, subresource_range={"base_mip_level": 1, "level_count": 2**32 - 1})
    part = loaded.subresource_range
    assert (part.base_mip_level, part.level_count, part.base_array_layer, part.layer_count) == (1, 2**32 - 1, 0, 1)

"""The buffer_barrier resource."""

import pytest

from tests.scenario.shared_mistakes import BARRIER

SMALLEST = {
    "uid": "x",
    "buffer_resource": "a",
    "size": 64,
    "src_access": "ACCESS_MEMORY_WRITE",
    "dst_access": "ACCESS_COMPUTE_SHADER_READ",
}


def test_smallest(resource):
    """The smallest buffer_barrier loads, and all else has the documented default."""
    loaded = resource("buffer_barrier", SMALLEST)
    assert (loaded.src_access, loaded.dst_access) == ("memory_write", "compute_shader_read")
    assert loaded.src_stage == loaded.dst_stage == ("all",)
    assert (loaded.size, loaded.offset) == (64, 0)


@pytest.mark.parametrize(
    "change, message",
    [
        *BARRIER,
        ({"buffer_resource": None}, ": the required key 'buffer_resource' is missing"),
        ({"buffer_resource": "c"}, "/buffer_resource: no resource has the uid 'c'"),
        (
            {"buffer_resource": "picture"},
            "/buffer_resource: expected the uid of a buffer, got 'picture', which is an image",
        ),
        ({"size": None}, ": the required key 'size' is missing"),
        ({"size": 0}, "/size: expected an integer of at least 1, got 0"),
        ({"size": 65}, "/size: the buffer 'a' has 64 bytes from offset 0 on, got 65"),
        ({"offset": -1}, "/offset: expected an integer of at least 0, got -1"),
        ({"offset": 64}, "/offset: the buffer 'a' has 64 bytes, got the offset 64"),
        ({"offset": 4}, "/size: the buffer 'a' has 60 bytes from offset 4 on, got 64"),
    ],
)
def test_wrong(resource_problems, change, message):
    """Each way to write a buffer_barrier wrong has one message that says what and where."""
    assert resource_problems("buffer_barrier", SMALLEST, change) == [message]


def test_whole_size(resource):
    """VK_WHOLE_SIZE means the rest of the buffer."""
    assert resource("buffer_barrier", SMALLEST, size=2**64 - 1, offset=32).size == 2**64 - 1

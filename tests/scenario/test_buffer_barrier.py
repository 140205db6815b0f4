"""The buffer_barrier resource."""

import pytest

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
        ({"uid": None}, ": the required key 'uid' is missing"),
        ({"uid": ""}, "/uid: expected a string that is not empty, got ''"),
        ({"uid": 3}, "/uid: expected a string, got 3"),
        ({"uid": "a\x00b"}, "/uid: a NUL character is not allowed here"),
        ({"src_access": None}, ": the required key 'src_access' is missing"),
        ({"dst_access": None}, ": the required key 'dst_access' is missing"),
        (
            {"src_access": "NONE"},
            "/src_access: expected one of 'memory_write', 'memory_read', 'graph_write', 'graph_read', "
            "'compute_shader_write', 'compute_shader_read', got 'NONE'",
        ),
        (
            {"dst_access": "ACCESS_MEMORY_REED"},
            "/dst_access: expected one of 'memory_write', 'memory_read', 'graph_write', 'graph_read', "
            "'compute_shader_write', 'compute_shader_read', got 'ACCESS_MEMORY_REED' (did you mean "
            "'ACCESS_MEMORY_READ'?)",
        ),
        ({"src_stage": "all"}, "/src_stage: expected an array, got 'all'"),
        (
            {"dst_stage": ["vertex"]},
            "/dst_stage/0: expected one of 'graph', 'compute', 'graphics', 'all', got 'vertex'",
        ),
        ({"stage": ["all"]}, "/stage: unknown key 'stage' (did you mean 'src_stage'?)"),
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

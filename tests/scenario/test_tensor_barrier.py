"""The tensor_barrier resource."""

import pytest

SMALLEST = {
    "uid": "x",
    "tensor_resource": "weights",
    "src_access": "ACCESS_MEMORY_WRITE",
    "dst_access": "ACCESS_COMPUTE_SHADER_READ",
}


def test_smallest(resource):
    """The smallest tensor_barrier loads, and all else has the documented default."""
    loaded = resource("tensor_barrier", SMALLEST)
    assert (loaded.src_access, loaded.dst_access) == ("memory_write", "compute_shader_read")
    assert loaded.src_stage == loaded.dst_stage == ("all",)


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
        ({"tensor_resource": None}, ": the required key 'tensor_resource' is missing"),
        (
            {"tensor_resource": "wieghts"},
            "/tensor_resource: no resource has the uid 'wieghts' (did you mean 'weights'?)",
        ),
        (
            {"tensor_resource": "picture"},
            "/tensor_resource: expected the uid of a tensor, got 'picture', which is an image",
        ),
    ],
)
def test_wrong(resource_problems, change, message):
    """Each way to write a tensor_barrier wrong has one message that says what and where."""
    assert resource_problems("tensor_barrier", SMALLEST, change) == [message]

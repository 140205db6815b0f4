"""The tensor_barrier resource."""

import pytest

from tests.scenario.shared_mistakes import BARRIER

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
        *BARRIER,
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

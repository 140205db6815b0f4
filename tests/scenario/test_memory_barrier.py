"""The memory_barrier resource."""

import pytest

from tests.scenario.shared_mistakes import BARRIER

SMALLEST = {"uid": "x", "src_access": "ACCESS_MEMORY_WRITE", "dst_access": "ACCESS_COMPUTE_SHADER_READ"}


def test_smallest(resource):
    """The smallest memory_barrier loads, and all else has the documented default."""
    loaded = resource("memory_barrier", SMALLEST)
    assert (loaded.src_access, loaded.dst_access) == ("memory_write", "compute_shader_read")
    assert loaded.src_stage == loaded.dst_stage == ("all",)


@pytest.mark.parametrize(
    "change, message",
    [
        *BARRIER,
    ],
)
def test_wrong(resource_problems, change, message):
    """Each way to write a memory_barrier wrong has one message that says what and where."""
    assert resource_problems("memory_barrier", SMALLEST, change) == [message]


@pytest.mark.parametrize(
    "written, meant",
    [
        ("ACCESS_MEMORY_WRITE", "memory_write"),
        ("ACCESS_MEMORY_READ", "memory_read"),
        ("ACCESS_GRAPH_WRITE", "graph_write"),
        ("ACCESS_GRAPH_READ", "graph_read"),
        ("ACCESS_COMPUTE_SHADER_WRITE", "compute_shader_write"),
        ("ACCESS_COMPUTE_SHADER_READ", "compute_shader_read"),
    ],
)
def test_access_dialects(resource, written, meant):
    """An access may be written in either dialect."""
    assert resource("memory_barrier", SMALLEST, src_access=written).src_access == meant
    assert resource("memory_barrier", SMALLEST, dst_access=meant).dst_access == meant


def test_stage_dialects(resource):
    """A stage may be written in either dialect, and there may be none."""
    loaded = resource("memory_barrier", SMALLEST, src_stage=["GRAPH", "COMPUTE", "graphics", "all"], dst_stage=[])
    assert (loaded.src_stage, loaded.dst_stage) == (("graph", "compute", "graphics", "all"), ())

"""The dispatch_barrier command, also named pipeline_barrier."""

import pytest

SMALLEST = {}


def test_smallest(command):
    """The smallest dispatch_barrier loads, and all else has the documented default."""
    loaded = command("dispatch_barrier", SMALLEST)
    assert (
        loaded.image_barrier_refs
        == loaded.tensor_barrier_refs
        == loaded.memory_barrier_refs
        == loaded.buffer_barrier_refs
        == ()
    )


@pytest.mark.parametrize(
    "change, message",
    [
        ({"memory_barrier_refs": "all"}, "/memory_barrier_refs: expected an array, got 'all'"),
        ({"memory_barrier_refs": ["al"]}, "/memory_barrier_refs/0: no resource has the uid 'al' (did you mean 'all'?)"),
        (
            {"memory_barrier_refs": ["all", "of_a"]},
            "/memory_barrier_refs/1: expected the uid of a memory_barrier, got 'of_a', which is a buffer_barrier",
        ),
        (
            {"buffer_barrier_refs": ["a"]},
            "/buffer_barrier_refs/0: expected the uid of a buffer_barrier, got 'a', which is a buffer",
        ),
        (
            {"image_barrier_refs": ["all"]},
            "/image_barrier_refs/0: expected the uid of an image_barrier, got 'all', which is a memory_barrier",
        ),
        (
            {"tensor_barrier_refs": ["of_picture"]},
            "/tensor_barrier_refs/0: expected the uid of a tensor_barrier, got 'of_picture', which is an image_barrier",
        ),
        (
            {"memory_barriers_refs": []},
            "/memory_barriers_refs: unknown key 'memory_barriers_refs' (did you mean 'memory_barrier_refs'?)",
        ),
    ],
)
def test_wrong(command_problems, change, message):
    """Each way to write a dispatch_barrier wrong has one message that says what and where."""
    assert command_problems("dispatch_barrier", SMALLEST, change) == [message]


def test_other_name(command):
    """The command may be called pipeline_barrier."""
    loaded = command("pipeline_barrier", {"memory_barrier_refs": ["all"], "buffer_barrier_refs": ["of_a"]})
    assert (loaded.kind, loaded.memory_barrier_refs, loaded.buffer_barrier_refs) == (
        "dispatch_barrier",
        ("all",),
        ("of_a",),
    )

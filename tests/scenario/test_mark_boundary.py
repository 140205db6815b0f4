"""The mark_boundary command, also named frame_boundary."""

import pytest

SMALLEST = {"resources": ["a"]}


def test_smallest(command):
    """The smallest mark_boundary loads, and all else has the documented default."""
    loaded = command("mark_boundary", SMALLEST)
    assert (loaded.resources, loaded.frame_id) == (("a",), None)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"resources": None}, ": the required key 'resources' is missing"),
        ({"resources": "a"}, "/resources: expected an array, got 'a'"),
        (
            {"resources": ["a", "shader"]},
            "/resources/1: expected the uid of a buffer or an image or a tensor, got 'shader', which is a shader",
        ),
        ({"frame_id": "1"}, "/frame_id: expected an integer, got '1'"),
        ({"frame_id": -1}, "/frame_id: expected an integer of at least 0, got -1"),
        ({"frame": 1}, "/frame: unknown key 'frame' (did you mean 'frame_id'?)"),
    ],
)
def test_wrong(command_problems, change, message):
    """Each way to write a mark_boundary wrong has one message that says what and where."""
    assert command_problems("mark_boundary", SMALLEST, change) == [message]


def test_other_name(command):
    """The command may be called frame_boundary, and may number its frame."""
    loaded = command("frame_boundary", SMALLEST, frame_id=7)
    assert (loaded.kind, loaded.frame_id) == ("mark_boundary", 7)

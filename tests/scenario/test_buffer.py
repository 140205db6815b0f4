"""The buffer resource."""

import pytest

from tests.scenario.shared_mistakes import DATA

SMALLEST = {"uid": "x", "size": 40, "shader_access": "readonly"}


def test_smallest(resource):
    """The smallest buffer loads, and all else has the documented default."""
    loaded = resource("buffer", SMALLEST)
    assert (loaded.uid, loaded.size, loaded.shader_access) == ("x", 40, "readonly")
    assert loaded.src is loaded.dst is loaded.memory_group is loaded.data is None


@pytest.mark.parametrize(
    "change, message",
    [
        *DATA,
        ({"size": None}, ": the required key 'size' is missing"),
        ({"size": 10.7}, "/size: expected an integer, got 10.7"),
        ({"size": 40.5}, "/size: expected an integer, got 40.5"),
        ({"size": True}, "/size: expected an integer, got true"),
        ({"size": "40"}, "/size: expected an integer, got '40'"),
        ({"size": 0}, "/size: expected an integer of at least 1, got 0"),
        ({"size": -1}, "/size: expected an integer of at least 1, got -1"),
        (
            {"size": 9223372036854775808},
            "/size: expected an integer of at most 9223372036854775807, got 9223372036854775808",
        ),
        (
            {"size": 100000000000000000000000000000000000000000000000000},
            "/size: expected an integer of at most 9223372036854775807, got a number of more than 40 digits",
        ),
        ({"siz": 4}, "/siz: unknown key 'siz' (did you mean 'size'?)"),
        ({"data": [1]}, "/data: unknown key 'data'"),
    ],
)
def test_wrong(resource_problems, change, message):
    """Each way to write a buffer wrong has one message that says what and where."""
    assert resource_problems("buffer", SMALLEST, change) == [message]


def test_empty_paths_are_unset(resource):
    """An empty src or dst means that there is none."""
    loaded = resource("buffer", SMALLEST, src="", dst="")
    assert loaded.src is loaded.dst is None


@pytest.mark.parametrize(
    "group", [{"id": "g", "offset": 8}, {"uid": "g", "offset": 8}, {"id": "g", "uid": "g", "offset": 8}]
)
def test_memory_group_dialects(resource, group):
    """A memory group is named by id or by uid."""
    loaded = resource("buffer", SMALLEST, memory_group=group)
    assert (loaded.memory_group.id, loaded.memory_group.offset) == ("g", 8)


@pytest.mark.parametrize("group", [{}, {"id": ""}, {"uid": "", "offset": 4}])
def test_unnamed_memory_group(resource, group):
    """A memory group needs a name."""
    assert resource("buffer", SMALLEST, memory_group=group).memory_group is None

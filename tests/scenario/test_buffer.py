"""The buffer resource."""

import pytest

SMALLEST = {"uid": "x", "size": 40, "shader_access": "readonly"}


def test_smallest(resource):
    """The smallest buffer loads, and all else has the documented default."""
    loaded = resource("buffer", SMALLEST)
    assert (loaded.uid, loaded.size, loaded.shader_access) == ("x", 40, "readonly")
    assert loaded.src is loaded.dst is loaded.memory_group is loaded.data is None


@pytest.mark.parametrize(
    "change, message",
    [
        ({"uid": None}, ": the required key 'uid' is missing"),
        ({"uid": ""}, "/uid: expected a string that is not empty, got ''"),
        ({"uid": 3}, "/uid: expected a string, got 3"),
        ({"uid": "a\x00b"}, "/uid: a NUL character is not allowed here"),
        ({"shader_access": None}, ": the required key 'shader_access' is missing"),
        (
            {"shader_access": "readwirte"},
            "/shader_access: expected one of 'readonly', 'writeonly', 'readwrite', 'image_read', got "
            "'readwirte' (did you mean 'readwrite'?)",
        ),
        ({"src": 3}, "/src: expected a string, got 3"),
        ({"src": "a\x00"}, "/src: a NUL character is not allowed here"),
        ({"dst": ["x"]}, "/dst: expected a string, got an array"),
        ({"memory_group": "g"}, "/memory_group: expected an object, got 'g'"),
        ({"memory_group": {"id": 3}}, "/memory_group/id: expected a string, got 3"),
        ({"memory_group": {"uid": 3}}, "/memory_group/uid: expected a string, got 3"),
        (
            {"memory_group": {"id": "g", "uid": "h"}},
            "/memory_group: 'id' and 'uid' both name the group, and differ: 'g' and 'h'",
        ),
        (
            {"memory_group": {"id": "g", "offset": -4}},
            "/memory_group/offset: expected an integer of at least 0, got -4",
        ),
        (
            {"memory_group": {"id": "g", "ofset": 4}},
            "/memory_group/ofset: unknown key 'ofset' (did you mean 'offset'?)",
        ),
        ({"size": None}, ": the required key 'size' is missing"),
        ({"size": 10.7}, "/size: expected an integer, got 10.7"),
        ({"size": 40.0}, "/size: expected an integer, got 40.0"),
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
    """A memory group without a name is none."""
    assert resource("buffer", SMALLEST, memory_group=group).memory_group is None

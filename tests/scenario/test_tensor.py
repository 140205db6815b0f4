"""The tensor resource."""

import pytest

from tests.scenario.shared_mistakes import DATA

SMALLEST = {"uid": "x", "dims": [2, 3], "format": "VK_FORMAT_R8_SINT", "shader_access": "readonly"}


def test_smallest(resource):
    """The smallest tensor loads, and all else has the documented default."""
    loaded = resource("tensor", SMALLEST)
    assert loaded.dims == (2, 3)
    assert loaded.src is loaded.dst is loaded.tiling is loaded.memory_group is None


@pytest.mark.parametrize(
    "change, message",
    [
        *DATA,
        ({"dims": None}, ": the required key 'dims' is missing"),
        ({"dims": [2, "3"]}, "/dims/1: expected an integer, got '3'"),
        (
            {"dims": [9223372036854775808]},
            "/dims/0: expected an integer of at most 9223372036854775807, got 9223372036854775808",
        ),
        ({"format": None}, ": the required key 'format' is missing"),
        ({"format": ""}, "/format: expected a string that is not empty, got ''"),
        ({"tiling": "X"}, "/tiling: expected one of 'OPTIMAL', 'LINEAR', got 'X'"),
        ({"alias_target": {"resource_ref": "picture"}}, "/alias_target: 'alias_target' is no longer supported"),
        ({"fromat": "VK_FORMAT_R8_SINT"}, "/fromat: unknown key 'fromat' (did you mean 'format'?)"),
    ],
)
def test_wrong(resource_problems, change, message):
    """Each way to write a tensor wrong has one message that says what and where."""
    assert resource_problems("tensor", SMALLEST, change) == [message]


@pytest.mark.parametrize("dims", [[], [-1, 0, 4], [1, 2, 3, 4, 5]])
def test_shapes(resource, dims):
    """A scalar, dimensions that a graph decides, and more than four dimensions load."""
    assert resource("tensor", SMALLEST, dims=dims).dims == tuple(dims)

"""The graph_constant resource."""

import pytest

from tests.scenario.shared_mistakes import UID

SMALLEST = {"uid": "x", "src": "x.npy", "dims": [4], "format": "VK_FORMAT_R8_SINT"}


def test_smallest(resource):
    """The smallest graph_constant loads, and all else has the documented default."""
    loaded = resource("graph_constant", SMALLEST)
    assert (loaded.src, loaded.dims, loaded.format) == ("x.npy", (4,), "VK_FORMAT_R8_SINT")


@pytest.mark.parametrize(
    "change, message",
    [
        *UID,
        ({"src": None}, ": the required key 'src' is missing"),
        ({"src": ""}, "/src: expected a string that is not empty, got ''"),
        ({"src": {}}, "/src: expected a string, got an object"),
        ({"dims": []}, "/dims: expected at least 1 entry, got 0"),
        ({"dims": [1, 1, 1, 1, 1, 1, 1]}, "/dims: expected at most 6 entries, got 7"),
        ({"dims": [0]}, "/dims/0: expected an integer of at least 1, got 0"),
        ({"dims": None}, ": the required key 'dims' is missing"),
        ({"format": None}, ": the required key 'format' is missing"),
        ({"dim": [1]}, "/dim: unknown key 'dim' (did you mean 'dims'?)"),
    ],
)
def test_wrong(resource_problems, change, message):
    """Each way to write a graph_constant wrong has one message that says what and where."""
    assert resource_problems("graph_constant", SMALLEST, change) == [message]

"""The raw_data resource."""

import pytest

from tests.scenario.shared_mistakes import UID

SMALLEST = {"uid": "x", "src": "x.npy"}


def test_smallest(resource):
    """The smallest raw_data loads, and all else has the documented default."""
    loaded = resource("raw_data", SMALLEST)
    assert (loaded.uid, loaded.src) == ("x", "x.npy")


@pytest.mark.parametrize(
    "change, message",
    [
        *UID,
        ({"src": None}, ": the required key 'src' is missing"),
        ({"src": ""}, "/src: expected a string that is not empty, got ''"),
        ({"src": {}}, "/src: expected a string, got an object"),
        ({"sorce": "y.npy"}, "/sorce: unknown key 'sorce' (did you mean 'src'?)"),
        ({"data": [1]}, "/data: unknown key 'data'"),
    ],
)
def test_wrong(resource_problems, change, message):
    """Each way to write a raw_data wrong has one message that says what and where."""
    assert resource_problems("raw_data", SMALLEST, change) == [message]

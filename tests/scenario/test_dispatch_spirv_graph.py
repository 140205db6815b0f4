"""The dispatch_spirv_graph command, also named dispatch_data_graph."""

import pytest

from tests.scenario.wrong_bindings import WRONG_BINDINGS

SMALLEST = {"graph_ref": "module", "bindings": [{"set": 0, "id": 0, "resource_ref": "weights"}]}


def test_smallest(command):
    """The smallest dispatch_spirv_graph loads, and all else has the documented default."""
    loaded = command("dispatch_spirv_graph", SMALLEST)
    assert (loaded.graph_ref, loaded.graph_constants, loaded.implicit_barrier) == ("module", (), True)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"bindings": None}, ": the required key 'bindings' is missing"),
        *WRONG_BINDINGS,
        (
            {"bindings": [{"set": 0, "id": 0, "resource_ref": "picture", "lod": 3}]},
            "/bindings/0/lod: the last mip level of 'picture' is 2, got 3",
        ),
        (
            {"bindings": [{"set": 0, "id": 0, "resource_ref": "picture", "lod": -1}]},
            "/bindings/0/lod: expected an integer of at least 0, got -1",
        ),
        (
            {"bindings": [{"set": 0, "id": 0, "resource_ref": "a"}]},
            "/bindings/0/resource_ref: expected the uid of an image or a tensor, got 'a', which is a buffer",
        ),
        ({"graph_ref": "network"}, "/graph_ref: expected the uid of a shader, got 'network', which is a graph"),
        (
            {"graph_ref": "shader"},
            "/graph_ref: expected a shader of the type 'SPIR-V', got 'shader' of the type 'GLSL'",
        ),
        ({"graph_constants": "constant"}, "/graph_constants: expected an array, got 'constant'"),
        ({"graph_constants": [3]}, "/graph_constants/0: expected a string, got 3"),
        (
            {"graph_constants": ["constant", "a"]},
            "/graph_constants/1: expected the uid of a graph_constant, got 'a', which is a buffer",
        ),
    ],
)
def test_wrong(command_problems, change, message):
    """Each way to write a dispatch_spirv_graph wrong has one message that says what and where."""
    assert command_problems("dispatch_spirv_graph", SMALLEST, change) == [message]


def test_other_name(command):
    """The command may be called dispatch_data_graph."""
    loaded = command("dispatch_data_graph", SMALLEST, graph_constants=["constant"])
    assert (loaded.kind, loaded.graph_constants) == ("dispatch_spirv_graph", ("constant",))

"""The dispatch_graph command, also named dispatch_vgf."""

import pytest

from tests.scenario.wrong_bindings import WRONG_BINDINGS

SMALLEST = {"graph_ref": "network", "bindings": [{"set": 0, "id": 0, "resource_ref": "a"}]}


def test_smallest(command):
    """The smallest dispatch_graph loads, and all else has the documented default."""
    loaded = command("dispatch_graph", SMALLEST)
    assert (loaded.graph_ref, loaded.push_constants, loaded.shader_substitutions, loaded.implicit_barrier) == (
        "network",
        (),
        (),
        True,
    )


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
            {"shader_substitutions": [{"shader_ref": "shadr", "target": "n"}]},
            "/shader_substitutions/0/shader_ref: no resource has the uid 'shadr' (did you mean 'shader'?)",
        ),
        (
            {"shader_substitutions": [{"shader_ref": "vertex", "target": "n"}]},
            "/shader_substitutions/0/shader_ref: expected a shader of the stage 'compute', got 'vertex' of "
            "the stage 'vertex'",
        ),
        (
            {"shader_substitutions": [{"shader_ref": "shader", "target": "n", "shader_re": 1}]},
            "/shader_substitutions/0/shader_re: unknown key 'shader_re' (did you mean 'shader_ref'?)",
        ),
        (
            {
                "shader_substitutions": [
                    {"shader_ref": "shader", "target": "n"},
                    {"shader_ref": "shader", "target": "n"},
                ]
            },
            "/shader_substitutions/1/target: the node 'n' is already the target of entry 0",
        ),
        ({"graph_ref": None}, ": the required key 'graph_ref' is missing"),
        ({"graph_ref": "shader"}, "/graph_ref: expected the uid of a graph, got 'shader', which is a shader"),
        (
            {"push_constants": [{"push_data_ref": "numbers"}]},
            "/push_constants/0: the required key 'shader_target' is missing",
        ),
        (
            {"push_constants": [{"shader_target": "n"}]},
            "/push_constants/0: the required key 'push_data_ref' is missing",
        ),
        (
            {"push_constants": [{"shader_target": "n", "push_data_ref": "a"}]},
            "/push_constants/0/push_data_ref: expected the uid of a raw_data, got 'a', which is a buffer",
        ),
        (
            {
                "push_constants": [
                    {"shader_target": "n", "push_data_ref": "numbers"},
                    {"shader_target": "n", "push_data_ref": "numbers"},
                ]
            },
            "/push_constants/1/shader_target: the node 'n' is already the target of entry 0",
        ),
    ],
)
def test_wrong(command_problems, change, message):
    """Each way to write a dispatch_graph wrong has one message that says what and where."""
    assert command_problems("dispatch_graph", SMALLEST, change) == [message]


def test_other_name(command, command_problems):
    """The command may be called dispatch_vgf, and messages call it what the file calls it."""
    assert command("dispatch_vgf", SMALLEST).kind == "dispatch_graph"
    assert command_problems("dispatch_vgf", SMALLEST, {"graph_ref": "a"}) == [
        "/graph_ref: expected the uid of a graph, got 'a', which is a buffer"
    ]

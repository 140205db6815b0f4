"""The graph resource."""

import pytest

from tests.scenario.shared_mistakes import UID

SMALLEST = {"uid": "x", "src": "x.vgf"}


def test_smallest(resource):
    """The smallest graph loads, and all else has the documented default."""
    loaded = resource("graph", SMALLEST)
    assert (loaded.src, loaded.push_constants_size) == ("x.vgf", 0)
    assert loaded.specialization_constants_map == loaded.shader_substitutions == ()


@pytest.mark.parametrize(
    "change, message",
    [
        *UID,
        ({"src": None}, ": the required key 'src' is missing"),
        ({"src": ""}, "/src: expected a string that is not empty, got ''"),
        ({"src": {}}, "/src: expected a string, got an object"),
        ({"push_constants_size": 6}, "/push_constants_size: expected a multiple of 4, got 6"),
        ({"push_constants_size": -4}, "/push_constants_size: expected an integer of at least 0, got -4"),
        ({"push_constants_size": 4.5}, "/push_constants_size: expected an integer, got 4.5"),
        (
            {"shader_substitutions": [{"shader_ref": "shader"}]},
            "/shader_substitutions/0: the required key 'target' is missing",
        ),
        (
            {"shader_substitutions": [{"target": "n"}]},
            "/shader_substitutions/0: the required key 'shader_ref' is missing",
        ),
        (
            {"shader_substitutions": [{"shader_ref": "shade", "target": "n"}]},
            "/shader_substitutions/0/shader_ref: no resource has the uid 'shade' (did you mean 'shader'?)",
        ),
        (
            {"shader_substitutions": [{"shader_ref": "a", "target": "n"}]},
            "/shader_substitutions/0/shader_ref: expected the uid of a shader, got 'a', which is a buffer",
        ),
        (
            {"shader_substitutions": [{"shader_ref": "vertex", "target": "n"}]},
            "/shader_substitutions/0/shader_ref: expected a shader of the stage 'compute', got 'vertex' of "
            "the stage 'vertex'",
        ),
        (
            {"shader_substitutions": [{"shader_ref": "shader", "target": "n"}, {"shader_ref": "plain", "target": "n"}]},
            "/shader_substitutions/1/target: the node 'n' is already the target of entry 0",
        ),
        (
            {"specialization_constants_map": [{"specialization_constants": []}]},
            "/specialization_constants_map/0: the required key 'shader_target' is missing",
        ),
        (
            {"specialization_constants_map": [{"shader_target": "n"}]},
            "/specialization_constants_map/0: the required key 'specialization_constants' is missing",
        ),
        (
            {
                "specialization_constants_map": [
                    {"shader_target": "n", "specialization_constants": [{"id": 1, "value": 1}, {"id": 1, "value": 2}]}
                ]
            },
            "/specialization_constants_map/0/specialization_constants/1/id: the constant 1 already has a "
            "value in entry 0",
        ),
        (
            {
                "specialization_constants_map": [
                    {"shader_target": "n", "specialization_constants": []},
                    {"shader_target": "n", "specialization_constants": []},
                ]
            },
            "/specialization_constants_map/1/shader_target: the node 'n' is already the target of entry 0",
        ),
        ({"data": ""}, "/data: unknown key 'data'"),
    ],
)
def test_wrong(resource_problems, change, message):
    """Each way to write a graph wrong has one message that says what and where."""
    assert resource_problems("graph", SMALLEST, change) == [message]

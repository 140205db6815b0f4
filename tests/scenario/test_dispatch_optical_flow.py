"""The dispatch_optical_flow command."""

import pytest

SMALLEST = {
    "width": 8,
    "height": 8,
    "grid_size": "4x4",
    "bindings": {
        "search_image": {"set": 0, "id": 0, "resource_ref": "picture"},
        "template_image": {"set": 0, "id": 1, "resource_ref": "picture"},
        "output_image": {"set": 0, "id": 2, "resource_ref": "picture"},
    },
}


def test_smallest(command):
    """The smallest dispatch_optical_flow loads, and all else has the documented default."""
    loaded = command("dispatch_optical_flow", SMALLEST)
    assert (
        loaded.performance_level,
        loaded.execution_flags,
        loaded.mean_flow_l1_norm_hint,
        loaded.implicit_barrier,
    ) == ("medium", (), 0, True)
    assert loaded.bindings.hint_motion_vectors is loaded.bindings.output_cost is None


@pytest.mark.parametrize(
    "change, message",
    [
        ({"width": 0}, "/width: expected an integer of at least 1, got 0"),
        ({"height": None}, ": the required key 'height' is missing"),
        ({"grid_size": None}, ": the required key 'grid_size' is missing"),
        (
            {"grid_size": "3x3"},
            "/grid_size: expected one of '1x1', '2x2', '4x4', '8x8', got '3x3'",
        ),
        (
            {"performance_level": "fats"},
            "/performance_level: expected one of 'unknown', 'slow', 'medium', 'fast', got 'fats' (did you "
            "mean 'fast'?)",
        ),
        (
            {"execution_flags": ["input_changed"]},
            "/execution_flags/0: expected one of 'disable_temporal_hints', 'input_unchanged', "
            "'reference_unchanged', 'input_is_previous_reference', 'reference_is_previous_input', got "
            "'input_changed' (did you mean 'input_unchanged'?)",
        ),
        (
            {"execution_flags": ["input_unchanged", "input_unchanged"]},
            "/execution_flags/1: the flag 'input_unchanged' is given twice",
        ),
        ({"mean_flow_l1_norm_hint": -1}, "/mean_flow_l1_norm_hint: expected an integer of at least 0, got -1"),
        (
            {"mean_flow_l1_norm_hint": 8},
            "/mean_flow_l1_norm_hint: expected less than the larger of width and height, 8, got 8",
        ),
        ({"bindings": []}, "/bindings: expected an object, got an array"),
        (
            {
                "bindings": {
                    "template_image": {"set": 0, "id": 1, "resource_ref": "picture"},
                    "output_image": {"set": 0, "id": 2, "resource_ref": "picture"},
                }
            },
            "/bindings: the required key 'search_image' is missing",
        ),
        (
            {
                "bindings": {
                    "search_image": {"set": 0, "id": 0, "resource_ref": "picture"},
                    "output_image": {"set": 0, "id": 2, "resource_ref": "picture"},
                }
            },
            "/bindings: the required key 'template_image' is missing",
        ),
        (
            {
                "bindings": {
                    "search_image": {"set": 0, "id": 0, "resource_ref": "picture"},
                    "template_image": {"set": 0, "id": 1, "resource_ref": "picture"},
                }
            },
            "/bindings: the required key 'output_image' is missing",
        ),
        (
            {
                "bindings": {
                    "search_image": {"set": 0, "id": 0, "resource_ref": "picture"},
                    "template_image": {"set": 0, "id": 1, "resource_ref": "picture"},
                    "output_image": {"set": 0, "id": 2, "resource_ref": "picture"},
                    "output_cost": {"set": 0, "id": 3, "resource_ref": "a"},
                }
            },
            "/bindings/output_cost/resource_ref: expected the uid of an image, got 'a', which is a buffer",
        ),
        (
            {
                "bindings": {
                    "search_image": {"set": 0, "id": 0, "resource_ref": "picture"},
                    "template_image": {"set": 0, "id": 1, "resource_ref": "picture"},
                    "output_image": {"set": 0, "id": 2, "resource_ref": "picture"},
                    "output_cost": {"set": 0, "id": 2, "resource_ref": "picture"},
                }
            },
            "/bindings/output_cost: set 0, id 2 is already bound by 'output_image'",
        ),
        (
            {
                "bindings": {
                    "search_image": {"set": 0, "id": 0, "resource_ref": "picture"},
                    "template_image": {"set": 0, "id": 1, "resource_ref": "picture"},
                    "output_image": {"set": 0, "id": 2, "resource_ref": "picture"},
                    "output_cost": {"set": 0, "id": 3, "resource_ref": "picture", "lod": 3},
                }
            },
            "/bindings/output_cost/lod: the last mip level of 'picture' is 2, got 3",
        ),
        (
            {
                "bindings": {
                    "search_image": {"set": 0, "id": 0, "resource_ref": "picture"},
                    "template_image": {"set": 0, "id": 1, "resource_ref": "picture"},
                    "output_image": {"set": 0, "id": 2, "resource_ref": "picture"},
                    "output_costs": {"set": 0, "id": 3, "resource_ref": "picture"},
                }
            },
            "/bindings/output_costs: unknown key 'output_costs' (did you mean 'output_cost'?)",
        ),
    ],
)
def test_wrong(command_problems, change, message):
    """Each way to write a dispatch_optical_flow wrong has one message that says what and where."""
    assert command_problems("dispatch_optical_flow", SMALLEST, change) == [message]

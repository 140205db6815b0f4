"""The scenario of ``vgf scenario FILE``."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from vgf_samples import FIXTURES, everything

from scenario_runner.graphs import Vgf, parse_vgf, read_vgf
from scenario_runner.graphs.scenario_template import scenario_for


def made(name: str) -> dict[str, Any]:
    """The scenario of a fixture, through JSON."""
    vgf = read_vgf(FIXTURES / f"{name}.vgf")
    return json.loads(json.dumps(scenario_for(vgf, f"{name}.vgf")))


def resources(scenario: dict[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """uid to (kind, resource)."""
    pairs = [next(iter(entry.items())) for entry in scenario["resources"]]
    assert len({body["uid"] for _, body in pairs}) == len(pairs)
    return {body["uid"]: (kind, body) for kind, body in pairs}


def test_a_placeholder_model_gets_a_complete_scenario() -> None:
    """Graph, input, outputs and shader are resources; one command binds them by number and fills the placeholder."""
    tensor = {"dims": [4, 16], "format": "VK_FORMAT_R32_SFLOAT"}
    assert made("placeholder") == {
        "resources": [
            {"graph": {"uid": "graph", "src": "placeholder.vgf"}},
            {"tensor": {"uid": "x", **tensor, "shader_access": "readonly", "src": "x.npy"}},
            {"buffer": {"uid": "shaded", "size": 256, "shader_access": "writeonly", "dst": "shaded.npy"}},
            {"tensor": {"uid": "sum", **tensor, "shader_access": "writeonly", "dst": "sum.npy"}},
            {
                "shader": {
                    "uid": "graph_partition_1",
                    "src": "graph_partition_1.comp",
                    "type": "GLSL",
                    "entry": "main",
                }
            },
        ],
        "commands": [
            {
                "dispatch_vgf": {
                    "graph_ref": "graph",
                    "bindings": [
                        {"set": 0, "id": 0, "resource_ref": "x"},
                        {"set": 0, "id": 2, "resource_ref": "shaded"},
                        {"set": 0, "id": 3, "resource_ref": "sum"},
                    ],
                    "shader_substitutions": [{"shader_ref": "graph_partition_1", "target": "graph_partition_1"}],
                }
            }
        ],
    }


def test_an_image_has_width_before_height_and_the_sampler_of_the_file() -> None:
    """A model shape [1, H, W, C] becomes the scenario's dims [1, W, H, 1]."""
    found = resources(made("image"))
    assert found["picture"] == (
        "image",
        {
            "uid": "picture",
            "dims": [1, 8, 4, 1],
            "format": "VK_FORMAT_R32G32B32A32_SFLOAT",
            "min_filter": "LINEAR",
            "mag_filter": "NEAREST",
            "border_address_mode": "CLAMP_EDGE",
            "border_color": "INT_OPAQUE_WHITE",
            "shader_access": "image_read",
            "src": "picture.npy",
        },
    )
    assert found["mirrored"][1]["dst"] == "mirrored.dds"


def test_ports_without_trusted_names_are_called_by_their_numbers() -> None:
    """Where names and slots do not line up, numbers are used."""
    scenario = made("unused")
    # y is read by the shader alone, so it is a buffer.
    assert {uid: kind for uid, (kind, _) in resources(scenario).items()} == {
        "graph": "graph",
        "input_1": "buffer",
        "input_2": "tensor",
        "sum": "tensor",
        "graph_partition_0": "shader",
    }


def test_an_input_that_is_returned_is_one_resource() -> None:
    """An input that is also an output is bound once and written after the run under the output's name."""
    scenario = made("ends")
    found = resources(scenario)
    assert found["left"][1]["dst"] == "same.npy"
    assert found["left"][1]["shader_access"] == "readwrite"
    bindings = scenario["commands"][0]["dispatch_vgf"]["bindings"]
    assert [b["id"] for b in bindings] == [0, 1, 2, 3]


def test_push_constants_get_data_and_a_size() -> None:
    """A module with push-constant ranges gets a raw_data resource, and the graph the size of them all."""
    scenario = scenario_for(parse_vgf(everything()), "m.vgf")
    found = resources(scenario)
    assert found["graph"][1]["push_constants_size"] == 16
    assert found["glsl_1_push_constants"] == (
        "raw_data",
        {"uid": "glsl_1_push_constants", "src": "glsl_1_push_constants.npy"},
    )
    assert scenario["commands"][0]["dispatch_vgf"]["push_constants"] == [
        {"push_data_ref": "glsl_1_push_constants", "shader_target": "glsl_1"}
    ]


def test_a_placeholder_with_another_entry_point_is_spirv() -> None:
    """Only SPIR-V can have an entry point that is not called main."""
    found = resources(scenario_for(parse_vgf(everything()), "m.vgf"))
    assert found["absent_3"][1] == {"uid": "absent_3", "src": "absent_3.spv", "type": "SPIR-V", "entry": "entry"}


def test_hostile_names_become_plain_file_names() -> None:
    """A name from the file cannot lead out of the directory, collide or be endless."""
    vgf: Vgf = read_vgf(FIXTURES / "ends.vgf")
    names = ("../../etc/passwd", "graph", "..", "a\x1b[31m/b" + "c" * 500)
    found = resources(scenario_for(replace(vgf, input_names=names[:2], output_names=names[2:] * 2), "m.vgf"))
    assert list(found) == ["graph", "_.._etc_passwd", "graph_1", "unnamed", "a__31m_b" + "c" * 72]

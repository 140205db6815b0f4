"""A module as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from scenario_runner.spirv import read_module
from scenario_runner.spirv.describe import describe
from tests.scenes import assemble

FIXTURES = Path(__file__).parent / "fixtures"


def test_a_shader_is_described(glsl: Callable[..., bytes]) -> None:
    """The description holds the interface in plain JSON values."""
    described = describe(
        read_module(
            glsl("""
            layout(local_size_x = 8, local_size_y = 2) in;
            layout(constant_id = 1) const float GAIN = 0.5;
            struct Item { vec3 place; float weight; };
            layout(push_constant) uniform Push { uint count; } push;
            layout(set = 1, binding = 2) readonly buffer Items { mat3 turn; Item items[]; } items;
            layout(set = 0, binding = 0, rgba16f) writeonly uniform image2DArray target[2];
            shared float sums[16];
            void main() {
                sums[gl_LocalInvocationIndex] = items.items[push.count].weight * GAIN;
                imageStore(target[0], ivec3(0), vec4(sums[0] + items.turn[0].x));
            }
            """),
            name="gain.comp",
        )
    )
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    assert (described["name"], described["version"], described["memory_model"]) == ("gain.comp", "1.0", "GLSL450")
    assert described["specialization_constants"] == [
        {"id": 1, "name": "GAIN", "type": "float32", "size_bytes": 4, "default": 0.5}
    ]
    (entry_point,) = described["entry_points"]
    assert entry_point["local_size"] == [8, 2, 1]
    assert entry_point["workgroup_memory_bytes"] == 64
    assert entry_point["push_constants"]["members"] == [
        {"name": "count", "type": "uint32", "offset": 0, "size_bytes": 4}
    ]
    target, items = entry_point["bindings"]
    assert (target["kind"], target["count"], target["reads"], target["writes"]) == ("storage_image", 2, False, True)
    assert target["image"] == {
        "dim": "2D",
        "arrayed": True,
        "multisampled": False,
        "depth": False,
        "sampled_type": "float32",
        "format": "Rgba16f",
    }
    assert items["block"] == {
        "name": "Items",
        "size_bytes": 48,
        "runtime_stride_bytes": 16,
        "members": [
            {
                "name": "turn",
                "type": "float32x3x3",
                "offset": 0,
                "size_bytes": 44,
                "matrix_stride": 16,
                "majorness": "column",
            },
            {
                "name": "items",
                "type": "Item[]",
                "offset": 48,
                "size_bytes": 0,
                "array_stride": 16,
                "members": [
                    {"name": "place", "type": "float32x3", "offset": 0, "size_bytes": 12},
                    {"name": "weight", "type": "float32", "offset": 12, "size_bytes": 4},
                ],
            },
        ],
    }


def test_a_graph_is_described() -> None:
    """Graph entry points and graph constants are in the description."""
    described = describe(read_module((FIXTURES / "graph_constant.spv").read_bytes()))
    tensor = {"element_type": "float32", "rank": 4}
    assert described["graph_constants"] == [{"id": 0, **tensor, "shape": [2, 3, 3, 4]}]
    assert described["graph_entry_points"] == [
        {
            "name": "graph_partition_0",
            "inputs": [{"name": "graph_partition_0_arg_0", "set": 0, "binding": 0, **tensor, "shape": [1, 8, 8, 4]}],
            "outputs": [{"name": "graph_partition_0_res_0", "set": 0, "binding": 1, **tensor, "shape": [1, 8, 8, 2]}],
        }
    ]


def test_infinite_defaults_are_text() -> None:
    """A default that JSON has no number for becomes text."""
    described = describe(
        read_module(
            assemble(
                "OpCapability Shader\nOpMemoryModel Logical GLSL450\nOpDecorate %2 SpecId 0\n"
                "%1 = OpTypeFloat 32\n%2 = OpSpecConstant %1 0x1p+128\n"
            )
        )
    )
    assert described["specialization_constants"][0]["default"] == "inf"

"""The JSON of ``vgf show --json``."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from vgf_samples import FIXTURES, SOUND, everything

from scenario_runner.graphs import find_problems, parse_vgf, read_vgf
from scenario_runner.graphs.describe import describe


@pytest.mark.parametrize("name", SOUND)
def test_a_description_survives_json(name: str) -> None:
    """The description consists of what JSON can hold, keys included."""
    described = describe(read_vgf(FIXTURES / f"{name}.vgf"))
    assert json.loads(json.dumps(described)) == described


def test_a_convolution_is_described() -> None:
    """Names, formats, shapes and sizes of the model are spelled out."""
    described = describe(read_vgf(FIXTURES / "conv.vgf"))
    assert described["version"] == "0.5.0"
    assert described["inputs"] == [
        {
            "binding": 0,
            "names": ["x"],
            "resource_index": 1,
            "view_indices": [1],
            "descriptor_type": "VK_DESCRIPTOR_TYPE_TENSOR_ARM",
            "format": "VK_FORMAT_R32_SFLOAT",
            "shape": [1, 8, 8, 2],
        }
    ]
    assert described["constants"] == [
        {
            "index": 0,
            "resource_index": 0,
            "format": "VK_FORMAT_R32_SFLOAT",
            "shape": [4, 3, 3, 2],
            "sparsity_dimension": None,
            "size_bytes": 288,
        }
    ]
    (segment,) = described["segments"]
    assert (segment["type"], segment["module"], segment["dispatch_shape"]) == ("graph", "graph_partition_0", [0, 0, 0])
    assert segment["constants"] == [{"id": 0, "constant_index": 0}]


def test_sizes_of_code_and_resources_are_in_bytes() -> None:
    """Text counts its UTF-8 bytes, an image its texels, and an unknown size is null."""
    described = describe(parse_vgf(everything()))
    assert [m["code_size_bytes"] for m in described["modules"]] == [20, len("void main() {} // é".encode()), 12, 0]
    assert [m["language"] for m in described["modules"]] == ["SPIR-V", "GLSL", "HLSL", None]
    # 64 floats as tensor, buffer and tensor, 16 RGBA texels, an RGBA image, an unknown shape, 24 and 5 * 4 bytes.
    assert [r["size_bytes"] for r in described["resources"]] == [256, 256, 256, 256, 256, None, 24, 20]


def test_the_places_of_problems_are_places_of_the_description() -> None:
    """The pointer of a problem leads to an entry of the description."""
    vgf = parse_vgf(everything())
    broken = replace(vgf.segments[1], module_index=0)
    wrong = replace(vgf, segments=(vgf.segments[0], broken, *vgf.segments[2:]))
    (problem,) = find_problems(wrong, "m.vgf")
    assert problem.pointer is not None
    entry = describe(vgf)
    for part in problem.pointer.split("/")[1:]:
        entry = entry[int(part)] if isinstance(entry, list) else entry[part]
    assert entry["name"] == "segment_1"

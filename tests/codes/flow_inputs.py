"""Inputs for the codes of optical flows, and of images and tensors of OPTIMAL tiling."""

from __future__ import annotations

from typing import Any

from tests.codes.case import Case, Codes, Input
from tests.gpu.flow_scenes import HEIGHT, VECTORS, WIDTH, flow
from tests.gpu.ml_scenes import HEAD, bindings

SHADER = (
    HEAD
    + """
layout(set = 0, binding = 0) uniform tensorARM<uint8_t, 3> values;
layout(set = 0, binding = 1, r8ui) uniform uimage2D target;
void main() {
    uint8_t value;
    tensorReadARM(values, uint[](0, 0, 0), value);
    imageStore(target, ivec2(0), uvec4(value));
}
"""
)


def flowing(*names: str, images: dict[str, dict[str, Any]] | None = None, **keys: Any) -> Input:
    """An optical flow with changes of its images and of itself."""

    def found(case: Case) -> Codes:
        usual = {"search": "VK_FORMAT_R8_UNORM", "template": "VK_FORMAT_R8_UNORM", "vectors": VECTORS}
        for uid, format in usual.items():
            given = {"dims": [1, WIDTH, HEIGHT, 1], "format": format, **(images or {}).get(uid, {})}
            case.scene.image(uid, **given)
        flow(case.scene, *names, **keys)
        return case.validated(placed=True)

    return found


def too_small(case: Case) -> Codes:
    size = [1, 16, 16, 1]
    flowing(images={uid: {"dims": size} for uid in ("search", "template", "vectors")}, width=16, height=16)(case)
    return case.run()


def image_and_tensor_at_once(case: Case) -> Codes:
    shared = {"tiling": "OPTIMAL", "memory_group": {"id": "g"}}
    case.scene.image("i", "VK_FORMAT_R8_UINT", dims=[1, 4, 4, 1], **shared)
    case.scene.tensor("t", dims=[4, 4, 1], format="VK_FORMAT_R8_UINT", **shared)
    case.scene.shader("s", SHADER)
    case.scene.command("dispatch_compute", shader_ref="s", bindings=bindings(["t", "i"]), rangeND=[1, 1, 1])
    return case.validated(placed=True)


INPUTS: dict[str, Input] = {
    "SR-FLOW-001": flowing(width=WIDTH + 1),
    "SR-FLOW-002": flowing(grid=2),
    "SR-FLOW-003": flowing(images={"search": {"format": "VK_FORMAT_R8G8B8A8_UNORM"}}),
    "SR-FLOW-004": flowing("hint_motion_vectors", bound={"hint_motion_vectors": "vectors"}),
    "SR-FLOW-005": flowing(bound={"output_image": {"descriptor_type": "VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE"}}),
    "SR-FLOW-006": flowing(execution_flags=["input_unchanged"]),
    "SR-FLOW-007": too_small,
    "SR-MEMORY-010": image_and_tensor_at_once,
}

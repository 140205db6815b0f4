"""Memory that a drawing writes as an attachment and uses in another way at once, through a memory group.

The same image twice is found by `checks.attachments`, an image and a tensor of OPTIMAL tiling by `aliased_layouts`.
Source: Vulkan specification, "Render Pass", feedback loops, and "Memory Aliasing".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.byte_spans import overlap
from scenario_runner.plan.model.plan import span_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scenario_runner.plan.model.plan import ResourcePlan
    from scenario_runner.plan.problems import Problems


def check_drawn_memory(
    attached: Sequence[str],
    bound: Sequence[str],
    resources: Mapping[str, ResourcePlan],
    pointer: str,
    problems: Problems,
) -> None:
    """Note attachments whose bytes another attachment or a resource that the shaders use has too; all are uids."""
    for index, uid in enumerate(attached):
        image, place = resources[uid], f"{pointer}/color_attachment_refs/{index}"
        if image.group is None:
            continue
        for first, other in enumerate(attached[:index]):
            if _share(image, resources[other]):
                problems.error(
                    "SR-ATTACH-010",
                    place,
                    f"image {uid!r} shares memory with attachment {first}, {other!r}: which of the two values stays is"
                    " undefined",
                    "draw into images with memory of their own",
                )
        for user in dict.fromkeys(bound):
            if _share(image, resources[user]):
                problems.error(
                    "SR-ATTACH-008",
                    place,
                    f"image {uid!r} is drawn into while the shaders use {resources[user].kind} {user!r}, which shares"
                    " its memory: what they see there is undefined",
                    "draw into an image with memory of its own",
                )


def _share(one: ResourcePlan, other: ResourcePlan) -> bool:
    if one.uid == other.uid or one.group != other.group:
        return False
    by_layout = other.kind == "tensor" and not other.linear
    return not by_layout and overlap(span_of(one), span_of(other))

"""Drawings of a plan against the limits of a device.

Source: Vulkan specification, "Shader Interfaces", table "Shader Input and Output Locations"; "Limits".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenario_runner.plan.model.commands import Draw, GraphicsPipelinePlan
    from scenario_runner.plan.model.plan import Plan

    Beyond = Callable[..., None]

# Of the limits that count components: a location has four.
_COMPONENTS = 4


def check_drawings(plan: Plan, beyond: Beyond, check_layouts: Callable[..., None]) -> None:
    """Note what goes beyond the limits with ``beyond``; ``check_layouts`` looks at sets, descriptors, push constants.

    ``beyond`` is called with the name of a limit, what is asked for, the pointer, and words for it.
    """
    for pipeline in plan.graphics_pipelines:
        _check_pipeline(pipeline, beyond, check_layouts)
    seen = set()
    for frame in plan.frames:
        for operation in frame.operations:
            if operation.kind == "draw" and operation.extent not in seen:
                seen.add(operation.extent)
                _check_extent(operation, beyond)


def _check_pipeline(pipeline: GraphicsPipelinePlan, beyond: Beyond, check_layouts: Callable[..., None]) -> None:
    vertex, fragment = pipeline[:2]
    names = f"shaders {vertex.label!r} and {fragment.label!r}"
    check_layouts(pipeline.set_layouts, pipeline.push_constants_size, vertex.pointer, names, ("vertex", "fragment"))
    for stage, way, locations, name, each in (
        (vertex, "outputs", vertex.outputs, "maxVertexOutputComponents", _COMPONENTS),
        (fragment, "inputs", fragment.inputs, "maxFragmentInputComponents", _COMPONENTS),
        (fragment, "outputs", fragment.outputs, "maxFragmentOutputAttachments", 1),
    ):
        what = f"shader {stage.label!r} has {way} up to location {locations - 1}"
        beyond(name, locations * each, stage.pointer, what)
    count = len(pipeline.formats)
    place = f"{pipeline.pointer}/color_attachment_refs"
    beyond("maxColorAttachments", count, place, f"the drawing has {count} attachments")


def _check_extent(draw: Draw, beyond: Beyond) -> None:
    place = f"/commands/{draw.command}/dispatch_fragment"
    width, height = draw.extent
    what = f"the drawing has {width} x {height} texels"
    beyond("maxFramebufferWidth", width, place, what)
    beyond("maxFramebufferHeight", height, place, what)

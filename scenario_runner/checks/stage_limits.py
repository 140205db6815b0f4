"""Inputs, outputs and attachments of a drawing against the limits of a device.

Source: Vulkan specification, "Shader Interfaces", table "Shader Input and Output Locations"; "Limits".
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from scenario_runner.checks.stages import Stage
from scenario_runner.diagnostics import Diagnostic, error

# The limits that count components, of which a location has four, and the one that counts locations.
_VERTEX_OUTPUTS: Final = "maxVertexOutputComponents"
_FRAGMENT_INPUTS: Final = "maxFragmentInputComponents"
_FRAGMENT_OUTPUTS: Final = "maxFragmentOutputAttachments"


def check_stage_limits(
    vertex: Stage, fragment: Stage, attachments: int, limits: Mapping[str, Any], device: str, pointer: str
) -> Iterator[Diagnostic]:
    """What in the drawing at ``pointer`` goes beyond the limits of ``device``; one that is not given binds nobody."""
    for stage, way, variables, name, per_location in (
        (vertex, "outputs", vertex.interface.outputs, _VERTEX_OUTPUTS, 4),
        (fragment, "inputs", fragment.interface.inputs, _FRAGMENT_INPUTS, 4),
        (fragment, "outputs", fragment.interface.outputs, _FRAGMENT_OUTPUTS, 1),
    ):
        limit = limits.get(name)
        locations = max((each.location + each.locations for each in variables), default=0)
        if isinstance(limit, int) and locations * per_location > limit:
            message = f"shader {stage.uid!r} has {way} up to location {locations - 1}; {name} of {device!r} is {limit}"
            yield error("SR-LIMIT-010", stage.pointer, message)
    limit = limits.get("maxColorAttachments")
    if isinstance(limit, int) and attachments > limit:
        message = f"the drawing has {attachments} attachments; maxColorAttachments of {device!r} is {limit}"
        yield error("SR-LIMIT-010", f"{pointer}/color_attachment_refs", message)

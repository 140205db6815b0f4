"""Storage images of another format than the shader declares: the shader runs with the format left open.

HLSL's RWTexture2D<float4> is declared as Rgba32f whatever is bound to it, as no format is written there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.checks.images import declared_otherwise, format_to_declare
from scenario_runner.diagnostics import error, warning
from scenario_runner.plan.model.images import ImagePlan
from scenario_runner.plan.model.records import NeededFeature
from scenario_runner.spirv.unknown_formats import open_formats

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenario_runner.plan.bindings import Report
    from scenario_runner.plan.shaders import LoadedShader
    from scenario_runner.plan.tables import Tables
    from scenario_runner.spirv import DescriptorBinding

_CORE = "VkPhysicalDeviceFeatures"


def fitted_to_images(
    shader: LoadedShader, bindings: Iterable[Any], tables: Tables, pointer: str, problems: Report
) -> LoadedShader:
    """The shader of the command at ``pointer``, with code that may be used with the images that are bound.

    The first command that needs another code is warned about; what a device must have for it goes into ``tables``.
    """
    variables = {(each.set, each.binding): each for each in shader.interface.bindings if _is_storage(each)}
    if not variables:
        return shader
    differing: dict[int, tuple[str, DescriptorBinding, ImagePlan]] = {}
    for index, binding in enumerate(bindings):
        variable = variables.get((binding.set, binding.id))
        image = tables.resources.get(binding.resource_ref)
        if variable is None or not isinstance(image, ImagePlan) or variable.image is None:
            continue
        if declared_otherwise(variable.image, image.format):
            differing[variable.variable] = (f"{pointer}/bindings/{index}", variable, image)
    if not differing:
        return shader
    key = (shader.uid, frozenset(differing))
    if key not in tables.fitted:
        tables.fitted[key] = _fitted(shader, differing, tables, problems)
    return tables.fitted[key]


def _fitted(
    shader: LoadedShader,
    differing: dict[int, tuple[str, DescriptorBinding, ImagePlan]],
    tables: Tables,
    problems: Report,
) -> LoadedShader:
    place, variable, image = next(iter(differing.values()))
    assert variable.image is not None
    name = f" {variable.name!r}" if variable.name else ""
    message = (
        f"storage image{name} at set {variable.set}, binding {variable.binding}, in shader {shader.uid!r} is declared"
        f" as {variable.image.format}; image {image.uid!r} is {image.format.name}"
    )
    opened = open_formats(shader.interface.source, differing)
    if opened is None:
        why = "the shader uses texels in atomic operations, or uses the image in a way that cannot be followed"
        help = "make both formats the same"
        problems.report([error("SR-IMAGE-003", place, f"{message}, and {why}", help)])
        return shader
    more = f" (and {len(differing) - 1} more of the shader's images)" if len(differing) > 1 else ""
    message += f"{more}: the shader runs with the format left open"
    problems.report([warning("SR-IMAGE-004", place, message, format_to_declare(image.format))])
    for used, verb, access in ((opened.reads, "reading", "Read"), (opened.writes, "writing", "Write")):
        if used:
            what = f"{verb} image {image.uid!r}, whose format is not the one that shader {shader.uid!r} declares,"
            tables.features.append(NeededFeature(_CORE, f"shaderStorageImage{access}WithoutFormat", what, place))
    return shader._replace(code=opened.code)


def _is_storage(variable: DescriptorBinding) -> bool:
    return variable.used and variable.kind == "storage_image"

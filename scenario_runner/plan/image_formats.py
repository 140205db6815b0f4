"""Storage images of another format than the shader declares: the module is given the format of the image.

HLSL's RWTexture2D<float4> is declared as Rgba32f whatever is bound to it, as no format is written there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.checks.images import declared_otherwise, name_of_format
from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.plan.model.resources import ImagePlan
from scenario_runner.spirv.image_formats import UNKNOWN, change_formats

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenario_runner.plan.bindings import Report
    from scenario_runner.plan.shaders import LoadedShader
    from scenario_runner.plan.tables import Tables
    from scenario_runner.spirv import DescriptorBinding


def fitted_to_images(
    shader: LoadedShader, bindings: Iterable[Any], tables: Tables, pointer: str, problems: Report
) -> LoadedShader:
    """The shader of the command at ``pointer``, with code that may be used with the images that are bound.

    The first command that needs other code is warned about; what a device must have for it goes into ``tables``.
    """
    variables = {(each.set, each.binding): each for each in shader.interface.bindings if _is_storage(each)}
    if not variables:
        return shader
    bound: dict[int, ImagePlan] = {}
    differing: dict[int, str] = {}
    first: tuple[str, DescriptorBinding] | None = None
    for index, binding in enumerate(bindings):
        variable = variables.get((binding.set, binding.id))
        image = tables.resources.get(binding.resource_ref)
        if variable is None or not isinstance(image, ImagePlan) or variable.image is None:
            continue
        bound[variable.variable] = image
        if declared_otherwise(variable.image, image.format):
            differing[variable.variable] = name_of_format(image.format)
            first = first or (f"{pointer}/bindings/{index}", variable)
    if first is None:
        return shader
    key = (shader.uid, tuple(sorted(differing.items())))
    known = tables.fitted.get(key)
    if known is None:
        changed = change_formats(shader.interface.source, differing)
        fitted = shader if changed is None else shader._replace(code=changed.code)
        unknown = frozenset() if changed is None else changed.unknown
        known = tables.fitted[key] = (fitted, unknown)
        if changed is None or all(uid != shader.uid for uid, _ in list(tables.fitted)[:-1]):
            problems.report([_finding(shader, *first, bound[first[1].variable], possible=changed is not None)])
        if unknown:
            tables.declared[fitted.code] = shader.code
        for capability in () if changed is None else changed.capabilities:
            tables.capabilities.setdefault(capability, shader.uid)
    fitted, unknown = known
    for variable in variables.values():
        if variable.variable in unknown and variable.variable in bound:
            accesses = tables.without_format.setdefault(bound[variable.variable].uid, set())
            if variable.reads:
                accesses.add("read")
            if variable.writes:
                accesses.add("write")
    return fitted


def _finding(
    shader: LoadedShader, place: str, variable: DescriptorBinding, image: ImagePlan, *, possible: bool
) -> Diagnostic:
    assert variable.image is not None
    name = f" {variable.name!r}" if variable.name else ""
    message = (
        f"storage image{name} at set {variable.set}, binding {variable.binding}, in shader {shader.uid!r} is declared"
        f" as {variable.image.format}; image {image.uid!r} is {image.format.name}"
    )
    if not possible:
        why = "the shader uses texels in atomic operations, or uses the image in a way that cannot be followed"
        return error("SR-IMAGE-003", place, f"{message}, and {why}", "use the same format for both")
    known = name_of_format(image.format).lower()
    glsl, runs = f"layout({known})", "with the format of the image"
    if known == UNKNOWN.lower():
        glsl, runs = "no format, and writeonly,", "without a format on devices that can do this, as it is on others"
    help = f'declare {glsl} in GLSL, [[vk::image_format("{known}")]] in HLSL'
    return warning("SR-IMAGE-004", place, f"{message}: the shader runs {runs}", help)


def _is_storage(variable: DescriptorBinding) -> bool:
    return variable.used and variable.kind == "storage_image"

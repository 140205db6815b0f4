"""Images: plans, uses by commands, and shaders declaring storage images with another format.

The planner gives such a shader the image's format. HLSL names no format, so compilers declare Rgba32f for every
RWTexture2D<float4>.
"""

import os
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import chain

from scenario_runner.checks.bindings import declared_otherwise, described, name_of_format
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.errors.diagnostic import Diagnostic, error, warning
from scenario_runner.errors.text import one_line
from scenario_runner.files.codec_table import check_image_format, stored_levels
from scenario_runner.files.input import ArrayLike
from scenario_runner.files.vk_formats import Format, full_mip_count
from scenario_runner.plan.image_records import ImagePlan, ImageUsage, SamplerPlan, TexelAccess, Transfer
from scenario_runner.plan.plan import FramePlan, ResourcePlan
from scenario_runner.plan.records import DescriptorList, ImagePart, NeededFeature, image_parts
from scenario_runner.plan.resources import ResourceContext, ResourceResolver, content_source, known_format
from scenario_runner.plan.shader_modules import LoadedShader
from scenario_runner.plan.sources import GeneratedSource, ImageArraySource, ImageFileSource, content_of
from scenario_runner.scenario import Binding, Image, MarkBoundary, Scenario
from scenario_runner.scenario.inline_contents import Content
from scenario_runner.scenario.scenario import Problems
from scenario_runner.shaders.spirv import DescriptorBinding
from scenario_runner.shaders.spirv.storage_image_formats import UNKNOWN, change_formats


def sampler_of(image: Image, format: Format, pointer: str, problems: Problems) -> SamplerPlan:
    """Return the image's sampler. Settings without effect keep their defaults, so images share samplers.

    A standard border color gets the format's kind: INT_OPAQUE_WHITE and FLOAT_OPAQUE_WHITE both mean white.
    """
    plan = SamplerPlan(image.min_filter, image.mag_filter, image.mip_filter, image.border_address_mode)
    if image.mips == 1:
        plan = plan._replace(mip_filter="NEAREST")  # the only level
    if image.border_address_mode != "CLAMP_BORDER":
        return plan
    kind, _, name = image.border_color.partition("_")
    kind_of_format = "INT" if format.is_integer else "FLOAT"
    if name != "CUSTOM_EXT":
        return plan._replace(border_color=f"{kind_of_format}_{name}")
    if kind != kind_of_format:
        texels = "integers" if kind_of_format == "INT" else "not integers"
        what = f"border color {image.border_color} does not fit image {image.uid!r} of {format.name}"
        help = f"use {kind_of_format}_CUSTOM_EXT"
        problems.error("SR-IMAGE-008", f"{pointer}/border_color", f"{what}, whose texels are {texels}", help)
        return plan
    color = image.custom_border_color or (0, 0, 0, 0)
    values = array("f", color) if kind == "FLOAT" else array("I", (int(value) & 0xFFFF_FFFF for value in color))
    return plan._replace(border_color=image.border_color, custom_color=values.tobytes(), custom_format=format.value)


def image_source(scenario: Scenario, image: Image, format: Format, parts: tuple[ImagePart, ...]) -> GeneratedSource:
    """Return the first level's content for an object in ``src``. Raise ScenarioError."""
    first = parts[0]
    source = content_source(scenario, image, (first.height, first.width, format.numpy_items), format)
    if len(format.aspects) == 1:
        return source
    whole = ImageArraySource(source.kept().pattern, image.uid, format, parts)  # depths, then stencils
    size_bytes = whole.size_bytes
    return source._replace(pattern=content_of(whole), rule=(), size_bytes=size_bytes, content_bytes=size_bytes)


_BORDER_FEATURES = "VkPhysicalDeviceCustomBorderColorFeaturesEXT"
_USAGE_OF_KIND: dict[str, ImageUsage] = {
    "storage_image": "storage",
    "sampled_image": "sampled",
    "combined_image_sampler": "sampled",
}
_WITH_SAMPLER = frozenset({"combined_image_sampler", "sampler"})


class ImageResolver(ResourceResolver):
    """Resolves image resources."""

    def __init__(self, context: ResourceContext) -> None:
        super().__init__(context)
        # a run reads all levels back for these images, even levels without room in the file for dst
        self._shown = set(context.outputs)
        for command in context.scenario.commands:
            if isinstance(command, MarkBoundary):
                self._shown.update(command.resources)

    def resolve(self, resource: Image, pointer: str) -> ImagePlan | None:
        """Return the plan without the image's uses, which the commands decide (`ImageUses`)."""
        problems = self.context.problems
        dims = resource.dims
        if len(dims) != 4 or dims[0] != 1 or dims[3] != 1 or not dims[1] or not dims[2]:
            given = one_line(str(list(dims)), 200)
            message = f"image {resource.uid!r} has dims {given}, expected [1, width, height, 1] of a texel or more"
            problems.error("SR-IMAGE-006", f"{pointer}/dims", message)
            return None
        width, height = dims[1], dims[2]
        format = known_format(resource.format, f"{pointer}/format", problems)
        if format is None:
            return None
        most = full_mip_count(width, height)
        if resource.mips > most:
            message = (
                f"image {resource.uid!r} has {resource.mips} mip levels; {width}x{height} texels have at most {most}"
            )
            problems.error("SR-IMAGE-007", f"{pointer}/mips", message)
            return None
        parts = image_parts(format, width, height, resource.mips)
        levels = resource.mips
        if resource.dst is not None:
            try:
                check_image_format(resource.dst, format)
                if resource.uid not in self._shown:
                    levels = stored_levels(resource.dst, resource.mips)
            except ScenarioRunnerError as error:
                problems.add_error(error, f"{pointer}/dst")
                return None
        source: ImageFileSource | ImageArraySource | GeneratedSource | None = None
        data = self.context.inputs.get(resource.uid, resource.data)
        if data is not None:
            source = ImageArraySource(data, resource.uid, format, parts)
        elif isinstance(resource.src, Content):
            source = image_source(self.context.scenario, resource, format, parts)
        elif resource.src is not None:
            path = os.path.join(self.context.scenario.base_dir, resource.src)
            source = ImageFileSource(path, format, width, height, resource.mips)
        elif format.is_compressed:
            # zeros, because a device cannot clear the image
            source = GeneratedSource("", "", (), parts[-1].end_bytes, 0, b"\0", levels=resource.mips)
        return ImagePlan(
            uid=resource.uid,
            pointer=pointer,
            size_bytes=parts[levels * len(format.aspects) - 1].end_bytes,
            format=format,
            width=width,
            height=height,
            mips=resource.mips,
            parts=parts,
            sampler=sampler_of(resource, format, pointer, problems),
            tiling=resource.tiling,
            source=source,
            source_levels=0 if source is None else source.levels,
        )

    @staticmethod
    def replaced(planned: ImagePlan, scenario: Scenario, data: ArrayLike) -> ImagePlan | None:
        source = ImageArraySource(data, planned.uid, planned.format, planned.parts)
        return planned._replace(source=source) if source.levels == planned.source_levels else None


class ImageUses:
    """Finds how commands use images, and gives shaders their storage image formats.

    ``declared`` maps code without formats to the code as shaders declare their storage images. ``capabilities`` are
    needed by code without formats, each with a shader's uid. ``special_accesses`` has the images with accesses to
    texels needing format support.
    """

    def __init__(self, resources: Mapping[str, ResourcePlan]) -> None:
        self._resources = resources
        # (uid, formats by variable) → the shader, and variables without a format
        self._fitted: dict[tuple[str, tuple[tuple[int, str], ...]], tuple[LoadedShader, frozenset[int]]] = {}
        self.declared: dict[bytes, bytes] = {}
        self.capabilities: dict[str, str] = {}
        self.special_accesses: defaultdict[str, set[TexelAccess]] = defaultdict(set)

    def fit_shader(
        self, shader: LoadedShader, bindings: Iterable[Binding], pointer: str, problems: Problems
    ) -> LoadedShader:
        """Return the shader for the command at ``pointer``; warn of the first command needing other code."""
        variables = {
            (variable.set, variable.binding): variable
            for variable in shader.interface.bindings
            if variable.used and variable.kind == "storage_image"
        }
        bound: list[tuple[str, DescriptorBinding, ImagePlan]] = []
        differing: list[tuple[str, DescriptorBinding, ImagePlan]] = []
        parts = [(index, binding, *part) for index, binding in enumerate(bindings) for part in binding.parts()]
        for index, binding, inside, _, part in parts:
            variable, image = variables.get((binding.set, binding.id)), self._resources.get(part.resource_ref)
            if variable is not None and variable.image is not None and isinstance(image, ImagePlan):
                bound.append((f"{pointer}/bindings/{index}{inside}", variable, image))
                if variable.has_atomic_texels:
                    self.special_accesses[image.uid].add("atomic")
                if declared_otherwise(variable.image, image.format):
                    differing.append(bound[-1])
        if not differing:
            return shader
        formats = {variable.variable: name_of_format(image.format) for _, variable, image in differing}
        for _, variable, image in bound:  # the images of an array may have several formats
            if formats.get(variable.variable, name_of_format(image.format)) != name_of_format(image.format):
                formats[variable.variable] = UNKNOWN
        key = (shader.uid, tuple(sorted(formats.items())))
        if key not in self._fitted:
            changed = change_formats(shader.interface.declarations.index, formats)
            if changed is None or all(uid != shader.uid for uid, _ in self._fitted):
                problems.report([_finding(shader, *differing[0], possible=changed is not None)])
            self._fitted[key] = shader, frozenset()
            if changed is not None:
                self._fitted[key] = shader._replace(code=changed.code), changed.unknown
                if changed.unknown:
                    self.declared[changed.code] = shader.code
                for capability in changed.capabilities:
                    self.capabilities.setdefault(capability, shader.uid)
        fitted, unknown = self._fitted[key]
        for _, variable, image in bound:
            if variable.variable in unknown:
                accesses = self.special_accesses[image.uid]
                if variable.reads:
                    accesses.add("read")
                if variable.writes:
                    accesses.add("write")
        return fitted

    def apply_usage(
        self, descriptor_lists: Iterable[DescriptorList], frames: Collection[FramePlan], problems: Problems
    ) -> tuple[dict[str, ResourcePlan], tuple[NeededFeature, ...]]:
        """Add the uses by all commands to the images. Return the resources, and the device features for these uses."""
        usage: dict[str, set[ImageUsage]] = {
            uid: set(plan.usage) for uid, plan in self._resources.items() if plan.kind == "image"
        }
        filtered: set[str] = set()
        moved: dict[str, set[str]] = {}
        for descriptor in chain.from_iterable(descriptor_list.descriptors for descriptor_list in descriptor_lists):
            if descriptor.kind in _USAGE_OF_KIND:
                usage[descriptor.uid].add(_USAGE_OF_KIND[descriptor.kind])
            if descriptor.kind in _WITH_SAMPLER:
                filtered.add(descriptor.uid)
        for operation in chain.from_iterable(frame.operations for frame in frames):
            for target in operation.targets if operation.kind == "draw" else ():
                usage[target.uid].add("depth_attachment" if target.is_depth else "color_attachment")
            for part in operation.parts if isinstance(operation, Transfer) else ():
                if part.level is not None:
                    usage[part.uid].add("transfer")
            for barrier in operation.barriers if operation.kind == "barrier" else ():
                if barrier.kind == "image":
                    moved.setdefault(barrier.uid, set()).add(barrier.new_layout)
        # images with OPTIMAL tiling place texels equally only with equal uses
        shared: dict[str, set[ImageUsage]] = {}
        for uid, plan in self._resources.items():
            if plan.kind == "image" and plan.aliased and plan.group is not None and plan.tiling == "OPTIMAL":
                shared.setdefault(plan.group, set()).update(usage[uid])
                usage[uid] = shared[plan.group]
        result: dict[str, ResourcePlan] = {}
        features: list[NeededFeature] = []
        for uid, plan in self._resources.items():
            if plan.kind != "image":
                result[uid] = plan
                continue
            uses = set(usage[uid])
            if "tensor_aliasing" in moved.get(uid, ()):
                uses.add("tensor_aliasing")
            sampler = plan.sampler
            if uid in filtered and sampler.is_linear and plan.format.is_integer:
                message = (
                    f"image {uid!r} of {plan.format.name} is sampled with NEAREST: integers cannot be interpolated"
                )
                problems.warn("SR-IMAGE-012", plan.pointer, message)
                sampler = sampler._replace(min_filter="NEAREST", mag_filter="NEAREST", mip_filter="NEAREST")
            if uid in filtered and sampler.custom_color:
                what = f"the custom border color of image {uid!r} (VK_EXT_custom_border_color)"
                place = f"{plan.pointer}/custom_border_color"
                features.append(NeededFeature(_BORDER_FEATURES, "customBorderColors", what, place))
            if "tensor_aliasing" in uses:
                what = f"the layout tensor_aliasing of image {uid!r} (VK_ARM_tensors)"
                features.append(NeededFeature("VkPhysicalDeviceTensorFeaturesARM", "tensors", what, plan.pointer))
            result[uid] = plan._replace(
                usage=frozenset(uses),
                sampler=sampler,
                filters=uid in filtered,
                special_accesses=frozenset(self.special_accesses.get(uid, ())),
                constant=uses == {"sampled"} and uid not in moved and not plan.aliased,
            )
        return result, tuple(features)


def _finding(
    shader: LoadedShader, place: str, variable: DescriptorBinding, image: ImagePlan, *, possible: bool
) -> Diagnostic:
    assert variable.image is not None
    what = f"{described(variable)}, in shader {shader.uid!r} is declared as {variable.image.format}"
    message = f"{what}; image {image.uid!r} is {image.format.name}"
    if not possible:
        why = "the shader uses texels in atomic operations, or uses the image in a way that cannot be followed"
        return error("SR-IMAGE-003", place, f"{message}, and {why}", "use the same format for both")
    known = name_of_format(image.format).lower()
    glsl, runs = f"layout({known})", "with the format of the image"
    if known == UNKNOWN.lower():
        glsl, runs = "no format, and writeonly,", "without a format on devices that can do this, as it is on others"
    help = f'declare {glsl} in GLSL, [[vk::image_format("{known}")]] in HLSL'
    return warning("SR-IMAGE-004", place, f"{message}: the shader runs {runs}", help)

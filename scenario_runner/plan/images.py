"""Images: their extent, format, levels and source; and, once all commands are known, what they are used for."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.formats import format_named, full_mip_count
from scenario_runner.plan.image_sources import ImageArraySource, ImageFileSource, ZeroSource
from scenario_runner.plan.model.images import ImagePlan, ImageUsage, TexelAccess, image_parts
from scenario_runner.plan.model.records import NeededFeature
from scenario_runner.plan.resolvers import PlanContext, ResourceResolver
from scenario_runner.plan.samplers import is_integer, sampler_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from scenario_runner.plan.model.plan import FramePlan, ResourcePlan
    from scenario_runner.plan.model.records import DescriptorList
    from scenario_runner.plan.problems import Problems
    from scenario_runner.scenario import Image, Scenario

_BORDER_FEATURES = "VkPhysicalDeviceCustomBorderColorFeaturesEXT"
_USAGE_OF_KIND: dict[str, ImageUsage] = {
    "storage_image": "storage",
    "sampled_image": "sampled",
    "combined_image_sampler": "sampled",
}
_WITH_SAMPLER = frozenset({"combined_image_sampler", "sampler"})


class Images(ResourceResolver):
    """Resolves image resources."""

    def __init__(self, context: PlanContext) -> None:
        super().__init__(context)
        groups = (getattr(resource, "memory_group", None) for resource in context.scenario.resources)
        self._members = Counter(group.id for group in groups if group is not None)

    def resolve(self, resource: Image, pointer: str) -> ImagePlan | None:
        context, shown = self.context, resource.uid in self.context.shown
        return _resolve_image(
            context.scenario,
            resource,
            pointer,
            context.inputs,
            self._members,
            all_levels=shown,
            problems=context.problems,
        )

    @staticmethod
    def replaced(planned: ImagePlan, scenario: Scenario, data: Any) -> ImagePlan | None:
        source = ImageArraySource(data, planned.uid, planned.format, planned.parts)
        return planned._replace(source=source) if source.levels == planned.source_levels else None


def _resolve_image(
    scenario: Scenario,
    image: Image,
    pointer: str,
    inputs: Mapping[str, Any],
    members: Mapping[str, int],
    *,
    all_levels: bool,
    problems: Problems,
) -> ImagePlan | None:
    """The plan of one image, except for its use; None when something is wrong, which ``problems`` then has.

    ``members`` counts the resources of each memory group. Every level is read back with ``all_levels``, otherwise those
    that the file of ``dst`` holds.
    """
    dims = image.dims
    if len(dims) != 4 or dims[0] != 1 or dims[3] != 1 or not dims[1] or not dims[2]:
        problems.error(
            "SR-IMAGE-006",
            f"{pointer}/dims",
            f"image {image.uid!r} has dims {list(dims)}, expected [1, width, height, 1] with at least one texel",
        )
        return None
    width, height = dims[1], dims[2]
    try:
        format = format_named(image.format)
    except ScenarioRunnerError as error:
        problems.add_error(error, f"{pointer}/format")
        return None
    most = full_mip_count(width, height)
    if image.mips > most:
        problems.error(
            "SR-IMAGE-007",
            f"{pointer}/mips",
            f"image {image.uid!r} has {image.mips} mip levels; {width}x{height} texels have {most} at most",
        )
        return None
    parts = image_parts(format, width, height, image.mips)
    levels = image.mips
    if image.dst is not None:
        from scenario_runner.files.image_file import check_destination, stored_levels

        try:
            check_destination(image.dst, format)
            levels = image.mips if all_levels else stored_levels(image.dst, image.mips)
        except ScenarioRunnerError as error:
            problems.add_error(error, f"{pointer}/dst")
            return None
    source: ImageFileSource | ImageArraySource | ZeroSource | None = None
    data = inputs.get(image.uid, image.data)
    if data is not None:
        source = ImageArraySource(data, image.uid, format, parts)
    elif image.src is not None:
        source = ImageFileSource(os.path.join(scenario.base_dir, image.src), format, parts)
    elif format.is_compressed:
        source = ZeroSource(parts[-1].end_bytes, image.mips)
    group = image.memory_group
    return ImagePlan(
        uid=image.uid,
        pointer=pointer,
        size_bytes=parts[levels * len(format.aspects) - 1].end_bytes,
        format=format,
        width=width,
        height=height,
        mips=image.mips,
        parts=parts,
        sampler=sampler_of(image, format, pointer, problems),
        tiling=image.tiling,
        usage=frozenset({"color_attachment"}) if image.color_attachment else frozenset(),
        group=None if group is None else group.id,
        offset_bytes=0 if group is None else group.offset,
        aliased=group is not None and members[group.id] > 1,
        source=source,
        source_levels=0 if source is None else source.levels,
    )


def with_usage(
    resources: Mapping[str, ResourcePlan],
    descriptor_lists: Iterable[DescriptorList],
    frames: Iterable[FramePlan],
    problems: Problems,
    without_format: Mapping[str, Collection[TexelAccess]],
) -> tuple[dict[str, ResourcePlan], tuple[NeededFeature, ...]]:
    """The resources with what all commands use their images for, and the device features that this takes."""
    usage: dict[str, set[ImageUsage]] = {}
    filtered: set[str] = set()
    for each in descriptor_lists:
        for descriptor in each.descriptors:
            kind = _USAGE_OF_KIND.get(descriptor.kind)
            if kind is not None:
                usage.setdefault(descriptor.uid, set()).add(kind)
            if descriptor.kind in _WITH_SAMPLER:
                filtered.add(descriptor.uid)
    _share_in_groups(resources, usage)
    moved = _moved_by_barriers(frames)
    result: dict[str, ResourcePlan] = {}
    features: list[NeededFeature] = []
    for uid, plan in resources.items():
        if plan.kind != "image":
            result[uid] = plan
            continue
        uses = plan.usage | usage.get(uid, set())
        if "tensor_aliasing" in moved.get(uid, ()):
            uses |= {"tensor_aliasing"}
        sampler = plan.sampler
        if uid in filtered:
            if sampler.is_linear and is_integer(plan.format):
                problems.warn(
                    "SR-IMAGE-012",
                    plan.pointer,
                    f"image {uid!r} of {plan.format.name} is sampled with NEAREST: integers cannot be interpolated",
                )
                sampler = sampler._replace(min_filter="NEAREST", mag_filter="NEAREST", mip_filter="NEAREST")
            if sampler.custom_color:
                what = f"the custom border color of image {uid!r} (VK_EXT_custom_border_color)"
                features.append(
                    NeededFeature(_BORDER_FEATURES, "customBorderColors", what, f"{plan.pointer}/custom_border_color")
                )
        if "tensor_aliasing" in uses:
            what = f"the layout tensor_aliasing of image {uid!r} (VK_ARM_tensors)"
            features.append(NeededFeature("VkPhysicalDeviceTensorFeaturesARM", "tensors", what, plan.pointer))
        result[uid] = plan._replace(
            usage=frozenset(uses),
            sampler=sampler,
            filters=uid in filtered,
            without_format=frozenset(without_format.get(uid, ())),
            constant=uses == {"sampled"} and uid not in moved and not plan.aliased,
        )
    return result, tuple(features)


def _share_in_groups(resources: Mapping[str, ResourcePlan], usage: dict[str, set[ImageUsage]]) -> None:
    """Images with OPTIMAL tiling lie alike in memory only where they are made for the same uses."""
    groups: dict[str, set[ImageUsage]] = {}
    for uid, plan in resources.items():
        if plan.kind == "image" and plan.aliased and plan.group is not None and plan.tiling == "OPTIMAL":
            shared = groups.setdefault(plan.group, set())
            shared |= plan.usage | usage.get(uid, set())
            usage[uid] = shared


def _moved_by_barriers(frames: Iterable[FramePlan]) -> dict[str, set[str]]:
    """The layouts that barriers move images to."""
    moved: dict[str, set[str]] = {}
    for frame in frames:
        for operation in frame.operations:
            if operation.kind == "barrier":
                for barrier in operation.barriers:
                    if barrier.kind == "image":
                        moved.setdefault(barrier.uid, set()).add(barrier.new_layout)
    return moved

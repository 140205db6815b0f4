"""The resources of a scenario and the memory groups that they share, so that every member sees defined content.

Source: Vulkan specification, "Memory Aliasing". Buffers, LINEAR tensors and LINEAR images in the layout general
interpret the bytes alike; the placement of texels in OPTIMAL images is known to the device alone. A tensor of the shape
[H, W, C] or [1, H, W, C], with C the components of a texel, that begins where an image does has the strides of the
image. Any other tensor is packed and is refused on a device that pads the rows of the image
(`vulkan.resources.creation`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.byte_spans import collisions, overlap
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.kinds import RESOURCES, load
from scenario_runner.plan.model.plan import memory_groups, span_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scenario_runner.plan.model.plan import ResourcePlan
    from scenario_runner.plan.model.resources import ImagePlan, TensorPlan
    from scenario_runner.plan.problems import Problems
    from scenario_runner.plan.resolvers import PlanContext, ResourceResolver


def check_offsets(resources: Iterable[ResourcePlan], problems: Problems) -> None:
    """Note offsets that no device allows: bytes of a member would lie across the items that its memory is read in.

    Vulkan leaves the alignment of buffers, images and tensors to the device (VkMemoryRequirements::alignment). It is
    never below the size of an item, nor below the four bytes that vkCmdFillBuffer and 32-bit storage work on.
    """
    for plan in resources:
        if plan.group is None:
            continue
        item_size_bytes = 4
        if plan.format is not None and plan.format.numpy_dtype is not None:
            item_size_bytes = max(4, int(plan.format.numpy_dtype[2:]))
        if plan.offset_bytes % item_size_bytes:
            problems.error(
                "SR-MEMORY-002",
                f"{plan.pointer}/memory_group/offset",
                f"memory group {plan.group!r} places {plan.uid!r} at offset {plan.offset_bytes}, which no device"
                f" allows: expected a multiple of {item_size_bytes}",
                "multiples of 256 suit nearly all devices; each says itself what it needs when a scenario runs",
            )


def check_groups(resources: Mapping[str, ResourcePlan], problems: Problems) -> None:
    """Note what is wrong with the memory groups that have an image."""
    for group, members in memory_groups(resources.values()).items():
        images: list[Any] = [plan for plan in members if plan.kind == "image"]
        if len(members) > 1 and images:
            _check_levels(group, images, problems)
            _check_tiling(group, members, images, problems)
        if len(members) > 1:
            _check_sources(group, members, problems)


def _check_levels(group: str, images: list[ImagePlan], problems: Problems) -> None:
    for image in images:
        if image.mips > 1:
            problems.error(
                "SR-MEMORY-003",
                f"{image.pointer}/mips",
                f"image {image.uid!r} has {image.mips} mip levels and shares the memory of group {group!r}; where its"
                " levels lie is up to the device, so that the other members could not tell what they see",
                "images that share memory have one level",
            )


def _check_tiling(group: str, members: list[ResourcePlan], images: list[ImagePlan], problems: Problems) -> None:
    optimal = [image for image in images if image.tiling == "OPTIMAL"]
    if not optimal:
        return
    alike = all(_layout_key(image) == _layout_key(images[0]) for image in images)
    kinds = {plan.kind for plan in members}
    if alike and kinds == {"image"}:
        return  # identical images see the same texels in the same places, whatever these are
    if kinds == {"image", "tensor"} and len(images) == 1:
        return  # what the tensors see, `tensor_groups` looks at
    problems.error(
        "SR-MEMORY-004",
        f"{optimal[0].pointer}/tiling",
        f"image {optimal[0].uid!r} has OPTIMAL tiling and shares the memory of group {group!r}: only the device knows"
        " where its texels lie, so that the other members could not tell what they see",
        "leave tiling out, or use LINEAR",
    )


def _layout_key(image: ImagePlan) -> tuple[object, ...]:
    return image.format, image.width, image.height, image.tiling, image.offset_bytes


def _check_sources(group: str, members: list[ResourcePlan], problems: Problems) -> None:
    """Two initial contents for the same bytes; files are compared where the scenario is read, this adds arrays."""
    for plan, other in collisions((span_of(plan), plan) for plan in members if plan.source is not None):
        if not _have_one_content(plan, other):
            problems.error(
                "SR-MEMORY-001",
                f"{plan.pointer}/memory_group",
                f"the initial content of {plan.uid!r} overlaps that of {other.uid!r} in the memory group {group!r}",
                "give one of them initial content",
            )


def _have_one_content(one: ResourcePlan, other: ResourcePlan) -> bool:
    """Whether the bytes that both have are the same: one file in one place."""
    path = getattr(one.source, "path", None)
    return path is not None and path == getattr(other.source, "path", None) and one.offset_bytes == other.offset_bytes


def join_groups(resources: dict[str, ResourcePlan], problems: Problems) -> None:
    """Let every tensor know the image whose memory it shares; note what cannot be shared."""
    for group, members in memory_groups(resources.values()).items():
        tensors = [plan for plan in members if plan.kind == "tensor"]
        if len(members) < 2 or not tensors:
            continue
        images: list[Any] = [plan for plan in members if plan.kind == "image"]
        for tensor in tensors:
            shown = next((each for each in images if each.offset_bytes == tensor.offset_bytes), None)
            unlike = next((each for each in images if tensor.linear == (each.tiling == "OPTIMAL")), None)
            if unlike is not None:
                _report_tilings(tensor, unlike, group, problems)
                continue
            if shown is not None and not tensor.linear and len(images) == 1:
                mismatch = _mismatch(tensor, shown)
                if mismatch is None:
                    _join_optimal(tensor, shown, resources)
                else:
                    _report_mismatch(tensor, shown, mismatch, problems)
                continue
            if not tensor.linear:
                problems.error(
                    "SR-MEMORY-004",
                    f"{tensor.pointer}/tiling",
                    f"tensor {tensor.uid!r} has OPTIMAL tiling and shares the memory of group {group!r}: only the"
                    " device knows where its elements lie, so that the other members could not tell what they see",
                    "leave tiling out, or use LINEAR",
                )
                continue
            for image in images:
                if not overlap(span_of(tensor), span_of(image)):
                    continue
                if len(image.format.aspects) > 1:
                    _report_mismatch(
                        tensor, image, "where its depths and its stencils lie is up to the device", problems
                    )
                elif image.offset_bytes == tensor.offset_bytes and _mismatch(tensor, image) is None:
                    resources[tensor.uid] = tensor._replace(image=image.uid)


def _join_optimal(tensor: TensorPlan, image: Any, resources: dict[str, ResourcePlan]) -> None:
    """Both have OPTIMAL tiling: the device makes them for each other. The elements of the tensor are the texels of the
    image, in the same order, so that the initial content of either is given to the image."""
    resources[tensor.uid] = tensor._replace(image=image.uid, source=None, zero_fill=False)
    current: Any = resources[image.uid]
    if tensor.source is not None:
        current = current._replace(source=tensor.source, source_levels=1)
    resources[image.uid] = current._replace(usage=current.usage | {"tensor_aliasing"})


def _report_tilings(tensor: TensorPlan, image: Any, group: str, problems: Problems) -> None:
    of_image = image.tiling or "LINEAR (the default of images that share memory)"
    of_tensor = "LINEAR" if tensor.linear else "OPTIMAL"
    problems.error(
        "SR-MEMORY-009",
        f"{(image if tensor.linear else tensor).pointer}/tiling",
        f"image {image.uid!r} has the tiling {of_image}, and tensor {tensor.uid!r} in the same memory group {group!r}"
        f" has {of_tensor}",
        "give both the same tiling",
    )


def _mismatch(tensor: TensorPlan, image: Any) -> str | None:
    """Why the elements of a tensor are not the components of an image's texels; None where they are."""
    texel = image.format
    shape = tensor.dims
    expected = [image.height, image.width, texel.components]
    if texel.is_packed or texel.is_compressed or len(texel.aspects) > 1:
        return f"its texels of {texel.name} are not made of whole numbers side by side"
    if tensor.format.block_size_bytes * texel.components != texel.block_size_bytes:
        return f"a texel of {texel.name} has {texel.components} components of {texel.channel_bits[0]} bits"
    if len(shape) not in (3, 4) or list(shape[-3:]) != expected or (len(shape) == 4 and shape[0] != 1):
        return f"its shape must be {expected} or {[1, *expected]}: height, width, components of a texel"
    return None


def _report_mismatch(tensor: TensorPlan, image: Any, why: str, problems: Problems) -> None:
    problems.error(
        "SR-MEMORY-006",
        f"{tensor.pointer}/memory_group",
        f"tensor {tensor.uid!r} of the shape {list(tensor.shape)} and {tensor.format.name} cannot show image"
        f" {image.uid!r} of {image.width} x {image.height} texels: {why}",
    )


def resolve_resources(context: PlanContext) -> None:
    """Plan everything that gets memory on the device, and find the sources of raw_data.

    What is wrong goes into the problems of the context.
    """
    scenario, problems, planned = context.scenario, context.problems, context.tables.resources
    resolvers: dict[str, ResourceResolver | None] = {}
    for index, resource in enumerate(scenario.resources):
        if resource.kind not in resolvers:
            name = RESOURCES[resource.kind].resolver
            resolvers[resource.kind] = load(name)(context) if name else None
        resolver = resolvers[resource.kind]
        if resolver is None:
            continue
        pointer = scenario.resource_pointer(index)
        try:
            plan = resolver.resolve(resource, pointer)
        except ScenarioRunnerError as error:
            problems.add_error(error, f"{pointer}/src")
        else:
            if plan is not None:
                planned[resource.uid] = plan
    if any(plan.group is not None for plan in planned.values()):
        check_offsets(planned.values(), problems)
        if any(resource.kind == "image" for resource in scenario.resources):
            check_groups(planned, problems)
        if any(plan.kind == "tensor" for plan in planned.values()):
            join_groups(planned, problems)

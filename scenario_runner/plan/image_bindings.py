"""Images that a dispatch binds: which levels of them a descriptor shows. What must match is in `checks.images`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.plan.model.records import Descriptor, DescriptorKind

if TYPE_CHECKING:
    from scenario_runner.plan.model.resources import ImagePlan
    from scenario_runner.scenario import Binding


def image_descriptor(binding: Binding, kind: DescriptorKind, image: ImagePlan) -> Descriptor:
    """The descriptor for an image: the level that the binding names, or all; a storage image is the first one then."""
    level = binding.lod
    if image.mips == 1 or (level is None and kind == "storage_image"):
        level = 0
    return Descriptor(binding.set, binding.id, kind, image.uid, None if kind == "sampler" else level)

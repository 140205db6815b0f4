"""The file that the content of a resource is written to, piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.files.codec import codec_of

if TYPE_CHECKING:
    from typing import TypeAlias

    from scenario_runner.files.codec import ArrayWriter
    from scenario_runner.files.image_writer import ImageWriter
    from scenario_runner.files.output import CreateOutput
    from scenario_runner.plan.model.plan import ResourcePlan

    Writer: TypeAlias = ArrayWriter | ImageWriter


def create_resource_file(path: str, plan: ResourcePlan, create: CreateOutput) -> Writer:
    """What writes the bytes of a resource to a file of the format that ``path`` names. Raises FileError."""
    if plan.npy is not None:
        return codec_of(path, plan.kind).create_array(path, *plan.npy, create)
    from scenario_runner.files.image_file import create_image

    return create_image(path, plan.format, plan.width, plan.height, plan.plane_sizes_bytes, create=create)

"""How many bytes a resource of a VGF file takes, where its format is one that this program knows."""

from __future__ import annotations

from math import prod

from scenario_runner.errors import UnsupportedError
from scenario_runner.formats import Format, format_of_value
from scenario_runner.vgf.descriptor_type import IMAGE_TYPES
from scenario_runner.vgf.model import ModelResource


def known_format(value: int) -> Format | None:
    """The format with this VkFormat value, or None. The converter writes -1 for a name that it does not know."""
    try:
        return format_of_value(value)
    except UnsupportedError:
        return None


def format_name(value: int) -> str:
    """The name of a VkFormat, or ``VkFormat(number)`` for an unknown one."""
    found = known_format(value)
    return f"VkFormat({value})" if found is None else found.name


def resource_size_bytes(resource: ModelResource) -> int | None:
    """Packed size of a resource; None where a dimension is dynamic, there is no shape, or the format is not known.

    The last dimension of an image counts the components of its texels: shape [H, W, C] or [1, H, W, C].
    """
    texel = known_format(resource.format)
    if texel is None or texel.is_compressed or not resource.shape or min(resource.shape) < 0:
        return None
    count = prod(resource.shape)
    if resource.descriptor_type in IMAGE_TYPES:
        return count // texel.components * texel.block_size_bytes
    return count * texel.block_size_bytes

"""The VkDescriptorTypes that VGF files use, their names, and which kind of resource each stands for."""

from __future__ import annotations

COMBINED_IMAGE_SAMPLER, STORAGE_IMAGE, UNIFORM_BUFFER, STORAGE_BUFFER, TENSOR = 1, 3, 6, 7, 1000460000
IMAGE_TYPES = frozenset({COMBINED_IMAGE_SAMPLER, STORAGE_IMAGE})
BUFFER_TYPES = frozenset({UNIFORM_BUFFER, STORAGE_BUFFER})

_NAMES = {
    COMBINED_IMAGE_SAMPLER: "VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER",
    STORAGE_IMAGE: "VK_DESCRIPTOR_TYPE_STORAGE_IMAGE",
    UNIFORM_BUFFER: "VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER",
    STORAGE_BUFFER: "VK_DESCRIPTOR_TYPE_STORAGE_BUFFER",
    TENSOR: "VK_DESCRIPTOR_TYPE_TENSOR_ARM",
}
_NUMBERS = {name: number for number, name in _NAMES.items()}
DESCRIPTOR_TYPE_NAMES = tuple(sorted(_NUMBERS))


def descriptor_type_named(name: str) -> int | None:
    """The VkDescriptorType with this name, None for one that VGF files do not use."""
    return _NUMBERS.get(name)


def descriptor_type_name(descriptor_type: int | None) -> str | None:
    """The name of a VkDescriptorType, ``VkDescriptorType(number)`` for an unknown one, None for none."""
    if descriptor_type is None:
        return None
    return _NAMES.get(descriptor_type, f"VkDescriptorType({descriptor_type})")

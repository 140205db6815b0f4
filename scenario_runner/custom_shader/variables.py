"""One input or output against the variables that the shader declares at its set and binding."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Final

from scenario_runner.checks.bindings import described
from scenario_runner.checks.resources import Bound, check_image, check_tensor, declared_otherwise
from scenario_runner.custom_shader.operands import element_size_bytes
from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.graphs.model import (
    COMBINED_IMAGE_SAMPLER,
    STORAGE_BUFFER,
    STORAGE_IMAGE,
    TENSOR,
    UNIFORM_BUFFER,
    descriptor_type_name,
)
from scenario_runner.spirv.types import Array, RuntimeArray, Scalar, Vector

if TYPE_CHECKING:
    from scenario_runner.checks.bindings import Slot
    from scenario_runner.custom_shader.attributes import ValueType, View
    from scenario_runner.formats import Format
    from scenario_runner.spirv import Block, DescriptorBinding

TYPE_OF_KIND: Final = {
    "storage_buffer": STORAGE_BUFFER,
    "uniform_buffer": UNIFORM_BUFFER,
    "storage_image": STORAGE_IMAGE,
    "combined_image_sampler": COMBINED_IMAGE_SAMPLER,
    "sampled_image": COMBINED_IMAGE_SAMPLER,
    "sampler": COMBINED_IMAGE_SAMPLER,
    "tensor": TENSOR,
}
"""The descriptor type that attributes have for each kind of variable."""

_NUMBERS: Final = {"sfloat": "float", "sint": "int", "uint": "uint"}


def check_variables(view: View, slot: Slot, type: ValueType | None) -> Iterator[Diagnostic]:
    """What is wrong with ``view``, whose operand or result has the type ``type``, for the variables at its place."""
    wanted = TYPE_OF_KIND.get(slot.kind)
    if wanted is None:
        return  # said where the shader is
    if view.descriptor_type != wanted:
        yield error(
            "SR-CUSTOM-011",
            f"/{view.name}_vkdescriptortype",
            f"{view.name} is {descriptor_type_name(view.descriptor_type)}, but the shader declares"
            f" {described(slot.variable)}",
            f"write {descriptor_type_name(wanted)}",
        )
        return
    for shader, variable in slot.variables:
        yield from _check_variable(view, variable, shader, type)
    yield from _check_access(view, slot)


def _check_variable(
    view: View, variable: DescriptorBinding, shader: str, type: ValueType | None
) -> Iterator[Diagnostic]:
    place = f"/{view.name}_vkformat"
    if variable.tensor is not None:
        shape = None if type is None else type.shape
        dims = (0,) * (variable.tensor.rank or 0) if shape is None else tuple(size or 0 for size in shape)
        bound = Bound(view.name, "tensor", format=view.format, dims=dims)
        yield from check_tensor(variable.tensor, f"{described(variable)} in shader {shader!r}", bound, place)
    elif variable.image is not None:
        yield from check_image(variable, shader, Bound(view.name, "image", format=view.format), place)
        if variable.kind == "storage_image" and declared_otherwise(variable.image, view.format):
            message = f"{view.name} is {view.format.name}, but {described(variable)} is {variable.image.format}"
            yield warning("SR-CUSTOM-012", place, message)
    elif variable.block is not None:
        yield from _check_buffer(view, variable, variable.block, type)


def _check_buffer(
    view: View, variable: DescriptorBinding, block: Block, type: ValueType | None
) -> Iterator[Diagnostic]:
    element = element_of(block)
    if element is not None and not _reads_as(element, view.format):
        message = f"{view.name} is {view.format.name}, but {described(variable)} has elements of {element}"
        yield warning("SR-CUSTOM-012", f"/{view.name}_vkformat", message)
    shape = None if type is None else type.shape
    size = None if type is None else element_size_bytes(type.element)
    if shape is None or size is None or None in shape:
        return
    has = prod(each for each in shape if each is not None) * size
    if block.size_bytes > has:
        message = f"{view.name} has {has} bytes, but {described(variable)} declares {block.size_bytes}"
        yield warning("SR-BIND-005", f"/{view.name}_binding", message)


def element_of(block: Block) -> Scalar | None:
    """The numbers that the only member of a block holds; None for other blocks."""
    if len(block.members) != 1:
        return None
    type = block.members[0].type
    while isinstance(type, Array | RuntimeArray):
        type = type.element
    if isinstance(type, Vector):
        return type.component
    return type if isinstance(type, Scalar) else None


def _reads_as(element: Scalar, format: Format) -> bool:
    """Whether numbers of a format are what a shader calls ``element``. Words of 32 bits may hold anything, since
    smaller types need features of the device."""
    if (element.kind == "uint" and element.width_bits == 32) or format.is_packed or format.is_compressed:
        return True
    kind = _NUMBERS.get(format.numeric)
    return kind is None or (element.kind == kind and element.width_bits == format.channel_bits[0])


def _check_access(view: View, slot: Slot) -> Iterator[Diagnostic]:
    used = [variable for _, variable in slot.variables if variable.used]
    if not used:
        return  # said where the place is
    if view.name.startswith("input"):
        if any(each.writes and each.writable and each.followed for each in used):
            message = f"the shader writes {described(slot.variable)}, which is {view.name}"
            yield warning("SR-CUSTOM-013", f"/{view.name}_binding", message, "operands are for reading only")
    elif all(each.followed and not each.writes for each in used):
        message = f"the shader does not write {described(slot.variable)}, which is {view.name}"
        yield warning("SR-CUSTOM-013", f"/{view.name}_binding", message, "the result would be undefined")

"""Comparison of inputs, outputs and push constants with the shader's declarations and the types of values.

Source: "Vulkan Custom Shader Conversion to VGF"; images hold values of the shape [height, width, components].
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from math import prod
from typing import Final

from scenario_runner.checks.bindings import MOST_BYTES, Slot, check_image, check_tensor, declared_otherwise, described
from scenario_runner.errors.diagnostic import Diagnostic, error, warning
from scenario_runner.errors.text import counted
from scenario_runner.files.vk_formats import Format
from scenario_runner.ml import vgf_model
from scenario_runner.scenario.json_model import shown
from scenario_runner.shaders.spirv import DescriptorBinding, Interface
from scenario_runner.shaders.spirv.types import Array, RuntimeArray, Scalar, Struct, Vector
from scenario_runner.tosa.model import Attributes, PushConstant, Types, ValueType, View

TYPE_OF_KIND: Final = {
    "storage_buffer": vgf_model.STORAGE_BUFFER,
    "uniform_buffer": vgf_model.UNIFORM_BUFFER,
    "storage_image": vgf_model.STORAGE_IMAGE,
    "combined_image_sampler": vgf_model.COMBINED_IMAGE_SAMPLER,
    "sampled_image": vgf_model.COMBINED_IMAGE_SAMPLER,
    "sampler": vgf_model.COMBINED_IMAGE_SAMPLER,
    "tensor": vgf_model.TENSOR,
}
"""The descriptor type in attributes for each kind of variable."""

_NUMBERS: Final = {"sfloat": "float", "sint": "int", "uint": "uint"}


def check_arrays(slots: Iterable[Slot], pointer: str) -> Iterator[Diagnostic]:
    """Refuse arrays of descriptors: an attribute describes one resource for each binding."""
    for slot in slots:
        if slot.descriptor_count != 1:
            message = f"shader {slot.shader!r} uses {described(slot.variable)}, an array of descriptors"
            help = "declare a binding for each resource: a custom operation has one resource for each binding"
            yield error("SR-BIND-007", pointer, message, help)


def check_variables(view: View, slot: Slot, type: ValueType) -> Iterator[Diagnostic]:
    """Compare an operand's or result's view with the variables at the same binding."""
    expected_type = TYPE_OF_KIND.get(slot.kind)
    if expected_type is None:
        return  # `slots_of` reports it
    if view.descriptor_type != expected_type:
        yield error(
            "SR-CUSTOM-011",
            f"/{view.name}_vkdescriptortype",
            f"{view.name} is {vgf_model.descriptor_type_name(view.descriptor_type)}, but the shader declares"
            f" {described(slot.variable)}",
            f"write {vgf_model.descriptor_type_name(expected_type)}",
        )
        return
    for shader, variable in slot.variables:
        yield from _check_variable(view, variable, shader, type)
    yield from _check_access(view, slot)


def _check_variable(view: View, variable: DescriptorBinding, shader: str, type: ValueType) -> Iterator[Diagnostic]:
    place = f"/{view.name}_vkformat"
    if variable.tensor is not None:
        shape = (0,) * (variable.tensor.rank or 0) if type.shape is None else type.shape
        dims = tuple(size or 0 for size in shape)
        what = f"{described(variable)} in shader {shader!r}"
        yield from check_tensor(variable.tensor, what, view.name, dims, view.format, place)
    elif variable.image is not None:
        yield from check_image(variable, shader, view.name, view.format, place)
        if variable.kind == "storage_image" and declared_otherwise(variable.image, view.format):
            message = f"{view.name} is {view.format.name}, but {described(variable)} is {variable.image.format}"
            yield warning("SR-CUSTOM-012", place, message)
    elif variable.has_sampler:
        yield from check_image(variable, shader, view.name, view.format, place)
    elif variable.block is not None:
        yield from _check_buffer(view, variable, variable.block, type)


def _check_buffer(view: View, variable: DescriptorBinding, block: Struct, type: ValueType) -> Iterator[Diagnostic]:
    element = element_of(block)
    if element is not None and not _reads_as(element, view.format):
        message = f"{view.name} is {view.format.name}, but {described(variable)} has elements of {element}"
        yield warning("SR-CUSTOM-012", f"/{view.name}_vkformat", message)
    if type.static_shape is None or type.format is None:
        return
    has = prod(type.static_shape) * type.format.block_size_bytes
    if block.size_bytes > has:
        message = f"{view.name} has {has} bytes, but {described(variable)} declares {block.size_bytes}"
        yield warning("SR-BIND-005", f"/{view.name}_binding", message)


def element_of(block: Struct) -> Scalar | None:
    """Return the type of numbers in a block with a single member; None for other blocks."""
    if len(block.members) != 1:
        return None
    type = block.members[0].type
    while isinstance(type, Array | RuntimeArray):
        type = type.element
    if isinstance(type, Vector):
        return type.component
    return type if isinstance(type, Scalar) else None


def _reads_as(element: Scalar, format: Format) -> bool:
    """Return whether numbers of a format fit the shader's ``element``.

    Words of 32 bits may hold anything, since smaller types need device features.
    """
    if element == Scalar("uint", 32) or format.is_packed or format.is_compressed:
        return True
    kind = _NUMBERS.get(format.numeric)
    return kind is None or (element.kind, element.width_bits) == (kind, format.channel_bits[0])


def _check_access(view: View, slot: Slot) -> Iterator[Diagnostic]:
    used = [variable for _, variable in slot.variables if variable.used]
    if not used:
        return  # `shader_agreement` reports it
    if view.name.startswith("input"):
        if any(variable.writes and variable.writable and variable.followed for variable in used):
            message = f"the shader writes {described(slot.variable)}, which is {view.name}"
            yield warning("SR-CUSTOM-013", f"/{view.name}_binding", message, "a shader must only read operands")
    elif all(variable.followed and not variable.writes for variable in used):
        message = f"the shader does not write {described(slot.variable)}, which is {view.name}"
        yield warning("SR-CUSTOM-013", f"/{view.name}_binding", message, "the result would be undefined")


_PAIR = re.compile(r"\s*([^\s:,][^:,]*?)\s*:\s*([0-9]{1,9})\s*")
_MOST_FINDINGS = 20
_POINTER = "/push_constants"
_HELP = 'write names and sizes in bytes, such as "scale: 4, bias: 4"'


def read_push_constants(text: str) -> tuple[tuple[PushConstant, ...], list[Diagnostic]]:
    """Parse a list of push constants, which follow each other in memory. Return them and the errors."""
    if not text.strip():
        return (), []
    constants: list[PushConstant] = []
    problems: list[Diagnostic] = []
    offset = 0
    for part in text.split(","):
        pair = _PAIR.fullmatch(part)
        if pair is None:
            problems.append(_wrong(f"expected 'name: size', got {shown(part.strip())}"))
            continue
        name, size = pair[1], int(pair[2])
        if size < 1:
            problems.append(_wrong(f"the push constant {shown(name)} has {size} bytes, expected at least 1"))
        constants.append(PushConstant(name, size, offset))
        offset += size
    counts = Counter(constant.name for constant in constants)
    repeated = [shown(name) for name, count in counts.items() if count > 1]
    problems += [_wrong(f"the push constant {name} is listed twice") for name in repeated]
    if offset > MOST_BYTES and not problems:
        problems.append(_wrong(f"the push constants take {offset} bytes; no device has more than {MOST_BYTES}"))
    return tuple(constants), problems


def _wrong(message: str) -> Diagnostic:
    return error("SR-CUSTOM-006", _POINTER, message, _HELP)


def check_push_constants(attributes: Attributes, interface: Interface) -> list[Diagnostic]:
    """Compare the attribute ``push_constants`` with the shader's block."""
    declared = attributes.push_constants
    of_shader = () if interface.push_constants is None else constants_of(interface.push_constants)
    if not of_shader:
        message = f"the shader uses no push constants, but the attributes have {shown(format_push_constants(declared))}"
        return [warning("SR-CUSTOM-017", _POINTER, message)] if declared else []
    help = f'the shader has "push_constants": "{format_push_constants(of_shader)}"'
    if not declared:
        message = f"the shader uses {counted(len(of_shader), 'push constant')}, but the attributes have none"
        return [warning("SR-CUSTOM-017", _POINTER, message, help)]
    problems = []
    if len(declared) != len(of_shader):
        constants = counted(len(declared), "push constant")
        problems.append(f"the attributes have {constants}, the shader has {len(of_shader)}")
    for ours, theirs in zip(declared, of_shader, strict=False):
        constant = f"the push constant {shown(ours.name)}"
        if theirs.name and ours.name != theirs.name:
            problems.append(f"{constant} is called {shown(theirs.name)} in the shader")
        elif ours.size_bytes != theirs.size_bytes:
            problems.append(f"{constant} has {ours.size_bytes} bytes, in the shader {theirs.size_bytes}")
    return [error("SR-CUSTOM-015", _POINTER, message, help) for message in problems[:_MOST_FINDINGS]]


def constants_of(block: Struct) -> tuple[PushConstant, ...]:
    """Return the members of a push constant block in the order of offsets; names may be empty."""
    members = sorted(block.members, key=lambda member: member.offset_bytes or 0)
    return tuple(PushConstant(member.name, member.size_bytes, member.offset_bytes or 0) for member in members)


def with_shader_offsets(attributes: Attributes, interface: Interface | None) -> tuple[tuple[PushConstant, ...], int]:
    """Return the push constants at the shader's offsets, and the size of their range in bytes.

    The shader may leave gaps, since a vec4 begins at a multiple of 16. Without an interface there are no gaps.
    """
    declared = attributes.push_constants
    block = None if interface is None else interface.push_constants
    if block is None:
        return declared, attributes.push_constants_size_bytes
    of_shader = constants_of(block)
    if len(of_shader) == len(declared):
        pairs = zip(declared, of_shader, strict=True)
        declared = tuple(ours._replace(offset_bytes=theirs.offset_bytes) for ours, theirs in pairs)
    return declared, max(-(-block.size_bytes // 4) * 4, attributes.push_constants_size_bytes)


def format_push_constants(constants: Iterable[PushConstant]) -> str:
    """Format push constants as the attribute has them."""
    return ", ".join(f"{constant.name[:100] or 'unnamed'}: {constant.size_bytes}" for constant in constants)


_WHOLE = frozenset({"uint", "sint", "unorm", "snorm", "uscaled", "sscaled", "srgb"})
_UNKNOWN = ValueType(None, "")


def views_and_types(attributes: Attributes, types: Types | None) -> Iterator[tuple[View, ValueType]]:
    """Yield each view with the operand's or result's type. An unknown type has no shape and no format."""
    for views, known in zip((attributes.inputs, attributes.outputs), types or ((), ()), strict=True):
        yield from zip(views, chain(known, repeat(_UNKNOWN)), strict=False)


def check_types(attributes: Attributes, types: Types | None) -> Iterator[Diagnostic]:
    """Find contradictions between attributes and types of values."""
    for view, type in views_and_types(attributes, types):
        if view.is_image:
            yield from _check_image(view, type)
        elif not view.is_buffer and type.format is not None and not _fits(view.format, type.format):
            message = f"{view.name} is {view.format.name}, but the value has elements of {type.element}"
            yield error("SR-CUSTOM-016", f"/{view.name}_vkformat", message)


def _fits(format: Format, expected: Format) -> bool:
    """Return whether elements have the size of ``expected``, and are integers or floats of the same encoding."""
    if format.block_size_bytes != expected.block_size_bytes:
        return False
    is_whole = expected.numeric in ("sint", "uint", "bool") and format.numeric in _WHOLE
    return is_whole or format.numeric == expected.numeric


def _check_image(view: View, type: ValueType) -> Iterator[Diagnostic]:
    shape, format, components = type.shape, view.format, view.format.components
    if shape is None:
        return
    is_image = len(shape) == 3 or (len(shape) == 4 and shape[0] in (1, None))
    if not is_image or shape[-1] not in (components, None):
        sizes = ", ".join("?" if size is None else str(size) for size in shape)
        yield error(
            "SR-CUSTOM-016",
            f"/{view.name}_vkdescriptortype",
            f"{view.name} is an image of {format.name}, but the value has the shape [{sizes}]; expected"
            f" [height, width, {components}] or [1, height, width, {components}]",
        )
    elif type.format is not None and type.format.block_size_bytes * components != format.block_size_bytes:
        yield error(
            "SR-CUSTOM-016",
            f"/{view.name}_vkformat",
            f"{view.name} is an image of {format.name}, which has {format.block_size_bytes} bytes a texel, but"
            f" {components} elements of {type.element} have {type.format.block_size_bytes * components}",
        )

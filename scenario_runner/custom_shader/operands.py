"""The types of operands and results against the views that shaders have of them.

Source: "Vulkan Custom Shader Conversion to VGF"; images hold values of the shape [height, width, components].
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from scenario_runner.diagnostics import Diagnostic, error

if TYPE_CHECKING:
    from scenario_runner.custom_shader.attributes import Attributes, ValueType, View
    from scenario_runner.formats import Format

_INTEGER = re.compile(r"[su]?i(\d+)")
_FLOAT = re.compile(r"f(16|32|64)")
_NUMERIC = {"bf16": "bfloat16", "f8E4M3FN": "float8e4m3", "f8E5M2": "float8e5m2"}
_WHOLE = frozenset({"uint", "sint", "unorm", "snorm", "uscaled", "sscaled", "srgb"})


def views_and_types(
    attributes: Attributes, types: tuple[Sequence[ValueType], Sequence[ValueType]] | None
) -> Iterator[tuple[View, ValueType | None]]:
    """Each view with the type of its operand or result, where that is known."""
    for views, known in zip((attributes.inputs, attributes.outputs), types or ((), ()), strict=True):
        for index, view in enumerate(views):
            yield view, known[index] if index < len(known) else None


def check_types(
    attributes: Attributes, types: tuple[Sequence[ValueType], Sequence[ValueType]] | None
) -> list[Diagnostic]:
    """Values that cannot be what the attributes make of them."""
    found: list[Diagnostic] = []
    for view, type in views_and_types(attributes, types):
        if type is None:
            continue
        size = element_size_bytes(type.element)
        if view.kind == "image":
            found += _check_image(view, type, size)
        elif view.kind == "tensor" and size is not None and not _fits(view.format, type.element, size):
            message = f"{view.name} is {view.format.name}, but the value has elements of {type.element}"
            found.append(error("SR-CUSTOM-016", f"/{view.name}_vkformat", message))
    return found


def element_size_bytes(element: str) -> int | None:
    """Bytes of an element of this type in memory, None for a type that is not known."""
    whole = _INTEGER.fullmatch(element)
    if whole:
        return 1 << max(0, (int(whole[1][:4]) + 7) // 8 - 1).bit_length()
    number = _FLOAT.fullmatch(element)
    if number:
        return int(number[1]) // 8
    return {"bf16": 2}.get(element, 1 if element in _NUMERIC else None)


def _fits(format: Format, element: str, size: int) -> bool:
    if format.block_size_bytes != size:
        return False
    if _INTEGER.fullmatch(element):
        return format.numeric in _WHOLE or (format.numeric == "bool" and element == "i1")
    return format.numeric == _NUMERIC.get(element, "sfloat")


def _check_image(view: View, type: ValueType, size: int | None) -> Iterator[Diagnostic]:
    shape, format = type.shape, view.format
    if shape is None:
        return
    components = format.components
    is_image = len(shape) == 3 or (len(shape) == 4 and shape[0] in (1, None))
    if not is_image or shape[-1] not in (components, None):
        yield error(
            "SR-CUSTOM-016",
            f"/{view.name}_vkdescriptortype",
            f"{view.name} is an image of {format.name}, but the value has the shape {_listed(shape)}; expected"
            f" [height, width, {components}] or [1, height, width, {components}]",
        )
    elif size is not None and size * components != format.block_size_bytes:
        yield error(
            "SR-CUSTOM-016",
            f"/{view.name}_vkformat",
            f"{view.name} is an image of {format.name}, which has {format.block_size_bytes} bytes a texel, but"
            f" {components} elements of {type.element} have {size * components}",
        )


def _listed(shape: Sequence[int | None]) -> str:
    return "[" + ", ".join("?" if size is None else str(size) for size in shape) + "]"

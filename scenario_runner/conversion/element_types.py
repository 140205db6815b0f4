"""The element types of MLIR and the VkFormats in which the converter stores them."""

from __future__ import annotations

from typing import Final

_NAMES: Final = {
    "f32": "R32_SFLOAT",
    "f16": "R16_SFLOAT",
    "bf16": "R16_SFLOAT_FPENCODING_BFLOAT16_ARM",
    "f8E4M3FN": "R8_SFLOAT_FPENCODING_FLOAT8E4M3_ARM",
    "f8E5M2": "R8_SFLOAT_FPENCODING_FLOAT8E5M2_ARM",
    "i1": "R8_BOOL_ARM",
    "i4": "R8_SINT",
    "i8": "R8_SINT",
    "si8": "R8_SINT",
    "ui8": "R8_UINT",
    "i16": "R16_SINT",
    "si16": "R16_SINT",
    "ui16": "R16_UINT",
    "i32": "R32_SINT",
    "si32": "R32_SINT",
    "ui32": "R32_UINT",
    "i48": "R64_SINT",
    # the converter makes them narrower
    "i64": "R32_SINT",
    "f64": "R32_SFLOAT",
}


def format_name_of_element(element: str) -> str | None:
    """The name of the VkFormat of tensors of this element type, None where there is none."""
    name = _NAMES.get(element)
    return f"VK_FORMAT_{name}" if name else None


def format_value_of_element(element: str) -> int:
    """The value of the VkFormat of tensors of this element type, which has one."""
    from scenario_runner.formats import format_named

    return format_named(f"VK_FORMAT_{_NAMES[element]}").value

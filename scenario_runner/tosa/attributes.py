"""Validated attributes of a custom operation."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.files.vk_formats import Format, format_named
from scenario_runner.ml.vgf_model import BUFFER_TYPES, IMAGE_TYPES, Sampler

DOMAIN: Final = "com.arm.VulkanCustomShader"
"""The ``domain_name`` of the custom operations that are shaders."""

Language = Literal["SPIR-V", "GLSL", "HLSL", ""]


class View(NamedTuple):
    """The shader's view of one operand or result.

    ``name`` is the prefix of the view's keys, such as "input_0". ``descriptor_type`` is a VkDescriptorType
    (`ml.vgf_model`). ``logical_type`` is the value of ``_type``, or empty.
    """

    name: str
    format: Format
    descriptor_type: int
    set: int
    binding: int
    sampler: Sampler | None = None
    logical_type: str = ""

    @property
    def is_image(self) -> bool:
        """True for an image."""
        return self.descriptor_type in IMAGE_TYPES

    @property
    def is_buffer(self) -> bool:
        """True for a buffer."""
        return self.descriptor_type in BUFFER_TYPES

    @property
    def kind(self) -> str:
        """The kind of resource: "image", "buffer" or "tensor"."""
        return "image" if self.is_image else "buffer" if self.is_buffer else "tensor"


class PushConstant(NamedTuple):
    """One push constant."""

    name: str
    size_bytes: int
    offset_bytes: int


class Origin(NamedTuple):
    """The source of attributes: the JSON ``text``, a ``path`` for messages, and a ``pointer`` to the attributes."""

    text: str = ""
    path: str = ""
    pointer: str = ""


_FORMATS: Final = {
    **{f"f{bits}": f"R{bits}_SFLOAT" for bits in (16, 32, 64)},
    **{f"{sign}i{bits}": f"R{bits}_SINT" for sign in ("", "s") for bits in (8, 16, 32)},
    **{f"ui{bits}": f"R{bits}_UINT" for bits in (8, 16, 32)},
    "i1": "R8_BOOL_ARM",
    "i4": "R8_SINT",
    "i48": "R64_SINT",
    "i64": "R64_SINT",
    "bf16": "R16_SFLOAT_FPENCODING_BFLOAT16_ARM",
    "f8E4M3FN": "R8_SFLOAT_FPENCODING_FLOAT8E4M3_ARM",
    "f8E5M2": "R8_SFLOAT_FPENCODING_FLOAT8E5M2_ARM",
}


class ValueType(NamedTuple):
    """The type of an operand or result. The shape of an unranked tensor is None, an open dimension is None.

    ``element`` is the element type in MLIR, such as "f32", "i8" or "bf16"; ``text`` is the whole type.
    """

    shape: tuple[int | None, ...] | None
    element: str
    text: str = ""

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The shape; None unless all dimensions are known."""
        known = tuple(size for size in self.shape or () if size is not None)
        return None if self.shape is None or len(known) != len(self.shape) else known

    @property
    def format(self) -> Format | None:
        """The format of tensors with such elements; None if Vulkan has none."""
        name = _FORMATS.get(self.element)
        return format_named(f"VK_FORMAT_{name}") if name else None


Types = tuple[Sequence[ValueType], Sequence[ValueType]]
"""The types of an operation's operands, and the types of its results."""


class Attributes(NamedTuple):
    """The attributes of one custom operation, which is called ``operation``.

    ``code`` is a SPIR-V module as bytes or a source as text. A placeholder has the ``code`` None and an empty
    ``language``. ``inputs`` describe the operands in order, ``outputs`` the results. ``warnings`` are about legal but
    probably unintended keys and values.
    """

    operation: str
    entry_point: str
    workgroup_sizes: tuple[int, int, int]
    language: Language
    code: bytes | str | None
    push_constants: tuple[PushConstant, ...]
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]
    warnings: tuple[Diagnostic, ...] = ()
    origin: Origin = Origin()

    @property
    def module_entry_point(self) -> str:
        """The name of the entry point in the compiled module: always main for GLSL."""
        return "main" if self.language == "GLSL" else self.entry_point

    @property
    def push_constants_size_bytes(self) -> int:
        """The size of the range for all push constants, a multiple of 4; 0 without push constants."""
        return -(-sum(constant.size_bytes for constant in self.push_constants) // 4) * 4

    @property
    def views(self) -> tuple[View, ...]:
        """The inputs, then the outputs."""
        return (*self.inputs, *self.outputs)

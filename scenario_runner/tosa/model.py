"""The records of a TOSA model: attributes of shaders, types, values, operations and functions, with places in the text.

The name of a value is the name in the text with the number of the result: ``%1#0``. Offsets count characters.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.files.vk_formats import Format, format_named
from scenario_runner.ml.vgf_model import BUFFER_TYPES, IMAGE_TYPES, TENSOR, Category, ModelResource, Sampler

DOMAIN: Final = "com.arm.VulkanCustomShader"
"""The ``domain_name`` of the custom operations that are shaders."""

Language = Literal["SPIR-V", "GLSL", "HLSL", ""]


class View(NamedTuple):
    """The shader's view of an operand or result.

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
    """A push constant."""

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
    """The attributes of a custom operation, which is called ``operation``.

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


_NARROWED: Final = {"i64": "i32", "f64": "f32"}  # by the converter


class Value(NamedTuple):
    """A value where an operation defines or uses it."""

    name: str
    type: ValueType

    @property
    def shown_name(self) -> str:
        """The name for messages."""
        return self.name.removesuffix("#0")

    @property
    def converted_format(self) -> Format | None:
        """The format of such tensors in a converted model; None if there is none."""
        return self.type._replace(element=_NARROWED.get(self.type.element, self.type.element)).format

    def row(self, category: Category) -> ModelResource:
        """Make the model resource that the converter writes for the value."""
        shape = tuple(-1 if size is None else size for size in self.type.shape or ())
        format = self.converted_format
        assert format is not None, "conversion has checked the types"
        return ModelResource(category, TENSOR, format.value, shape)


class CustomOperation(NamedTuple):
    """A ``tosa.custom`` operation; ``name`` is the operator_name.

    ``attributes`` is the text of implementation_attrs, ``attributes_span`` the place of this string with the quotes.
    ``span`` is the place of the whole operation with the results. ``line`` counts from 1.
    """

    name: str
    domain: str
    attributes: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    span: tuple[int, int]
    attributes_span: tuple[int, int] = (0, 0)
    line: int = 0

    @property
    def is_shader(self) -> bool:
        """True for a Vulkan shader."""
        return self.domain == DOMAIN

    @property
    def types(self) -> Types:
        """The types of the operands, and of the results."""
        return [value.type for value in self.operands], [value.type for value in self.results]


class Shader(NamedTuple):
    """A shader of a function: the operation, the attributes, and the workgroup count to dispatch."""

    operation: CustomOperation
    attributes: Attributes
    workgroups: tuple[int, int, int]


class Function(NamedTuple):
    """A function, or without a body the declaration of a function.

    ``input_names`` and ``output_names`` come from ``tf.entry_function`` or a FlatBuffer; None without such names.
    ``nested`` are custom operations in regions of other operations. With ``is_only_shaders`` the body holds only
    shaders and a return.
    """

    name: str
    arguments: tuple[Value, ...]
    result_types: tuple[ValueType, ...]
    input_names: tuple[str, ...] | None
    output_names: tuple[str, ...] | None
    operations: tuple[CustomOperation, ...] = ()
    returned: tuple[Value, ...] = ()
    is_only_shaders: bool = False
    nested: tuple[CustomOperation, ...] = ()
    span: tuple[int, int] = (0, 0)
    has_body: bool = True

    @property
    def shaders(self) -> tuple[CustomOperation, ...]:
        """The Vulkan shaders among the custom operations, in the order of the text."""
        return tuple(operation for operation in self.operations if operation.is_shader)


class Model(NamedTuple):
    """A model; messages call it ``path``. ``text`` is MLIR, or None for a FlatBuffer.

    With ``is_users_text`` the file itself is text, so that messages can name lines.
    """

    path: str
    text: str | None
    declarations: tuple[Function, ...]
    is_users_text: bool = True

    @property
    def functions(self) -> list[Function]:
        """The functions with a body."""
        return [function for function in self.declarations if function.has_body]

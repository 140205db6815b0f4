"""A TOSA model reduced to functions, custom operations, values, types and their places in the text.

The name of a value is the name in the text with the number of the result: ``%1#0``. Offsets count characters.
"""

from typing import Final, NamedTuple

from scenario_runner.files.vk_formats import Format
from scenario_runner.ml.vgf_model import TENSOR, Category, ModelResource
from scenario_runner.tosa.attributes import DOMAIN, Attributes, Types, ValueType

_NARROWED: Final = {"i64": "i32", "f64": "f32"}  # by the converter


class Value(NamedTuple):
    """A value at a use or at its definition."""

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
    """One ``tosa.custom``; ``name`` is the operator_name.

    ``attributes`` is the text of implementation_attrs, ``attributes_span`` the place of this string with its quotes.
    ``span`` is the place of the whole operation with its results. ``line`` counts from 1.
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
    """A shader of a function: the operation, its attributes, and the workgroup count of its dispatch."""

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

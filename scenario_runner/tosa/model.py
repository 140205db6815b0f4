"""A TOSA model as far as its custom operations are concerned: functions, values, types and where in the text they are.

A value is named as in the text, with the number of the result: ``%1#0``. Offsets count characters of the model's text.
"""

from typing import Final, NamedTuple

from scenario_runner.files.vk_formats import Format
from scenario_runner.ml.vgf_model import TENSOR, Category, ModelResource
from scenario_runner.tosa.attributes import DOMAIN, Attributes, Types, ValueType

_NARROWED: Final = {"i64": "i32", "f64": "f32"}  # by the converter


class Value(NamedTuple):
    """A value where it is used or made."""

    name: str
    type: ValueType

    @property
    def shown_name(self) -> str:
        """The name in messages."""
        return self.name.removesuffix("#0")

    @property
    def converted_format(self) -> Format | None:
        """The format that the converter gives tensors of its type, None where there is none."""
        return self.type._replace(element=_NARROWED.get(self.type.element, self.type.element)).format

    def row(self, category: Category) -> ModelResource:
        """The row of the value as the converter writes it."""
        shape = tuple(-1 if size is None else size for size in self.type.shape or ())
        format = self.converted_format
        assert format is not None, "that is checked before"
        return ModelResource(category, TENSOR, format.value, shape)


class CustomOperation(NamedTuple):
    """One ``tosa.custom``. ``name`` is its operator_name.

    ``attributes`` is the text of implementation_attrs, and ``attributes_span`` where its string stands in the model's
    text, quotes included. ``span`` is the whole operation, results included; ``line`` counts from 1.
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
        """The types of the operands and of the results."""
        return [value.type for value in self.operands], [value.type for value in self.results]


class Shader(NamedTuple):
    """A shader of the function: the operation, its attributes, and how many workgroups its dispatch has."""

    operation: CustomOperation
    attributes: Attributes
    workgroups: tuple[int, int, int]


class Function(NamedTuple):
    """A function, or the declaration of one where there is no body.

    ``input_names`` and ``output_names`` are those of ``tf.entry_function`` or of a FlatBuffer, None where there are
    none. ``nested`` are custom operations within a region of another operation. ``is_only_shaders`` says that nothing
    but shaders and a return stands in it.
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
        """The custom operations that are Vulkan shaders, in the order of the text."""
        return tuple(operation for operation in self.operations if operation.is_shader)


class Model(NamedTuple):
    """A model. ``path`` is what messages call it; ``text`` is MLIR, None for a FlatBuffer.

    ``is_users_text`` says that the file was text, so that its lines can be named.
    """

    path: str
    text: str | None
    declarations: tuple[Function, ...]
    is_users_text: bool = True

    @property
    def functions(self) -> list[Function]:
        """The functions that have a body."""
        return [function for function in self.declarations if function.has_body]

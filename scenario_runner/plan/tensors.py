"""Planning tensors: format, shape, tiling and initial content, checked against each other and against files."""

from __future__ import annotations

from math import prod
from typing import Any

from scenario_runner.files.input import ArrayLike
from scenario_runner.files.vk_formats import ML_DTYPES, Format
from scenario_runner.plan.graph_records import TensorPlan
from scenario_runner.plan.records import Source
from scenario_runner.plan.resources import ResourceContext, ResourceResolver, known_format, source_of
from scenario_runner.plan.sources import ArraySource, GeneratedSource, NpySource
from scenario_runner.scenario import GraphConstant, Scenario, Tensor
from scenario_runner.scenario.scenario import Problems

# Above any device's limits, yet far below an overflow in 64 bits. A run checks the device's own limits.
_MOST_DIMENSIONS = 64
_MOST_ELEMENTS = 2**48

# Types in NumPy programs' files; the reference runner writes raw bytes, and ml_dtypes saves its own types as V2 and V1.
_ALSO_READ = {
    "bfloat16": ("u2", "V2"),
    "float8e4m3": ("u1", "V1"),
    "float8e5m2": ("u1", "V1", "f1"),
    "bool": ("u1", "i1"),
}
_FORMATS_OF_TENSORS = frozenset(
    ("sint", "uint", "sfloat", "unorm", "snorm", "bool", "bfloat16", "float8e4m3", "float8e5m2")
)


def is_open(resource: Any) -> bool:
    """Return whether a tensor leaves a dimension to a graph or the content; False for other resources."""
    return resource.kind == "tensor" and any(size <= 0 for size in resource.dims)


def tensor_format(name: str, pointer: str, problems: Problems) -> Format | None:
    """Find the format ``name`` for a tensor; return None after noting an error in ``problems``."""
    format = known_format(name, pointer, problems)
    if format is not None and not is_format_of_tensors(format):
        message = f"a tensor cannot have the format {name!r}: its elements are single numbers"
        help = "expected a format with one component, for instance VK_FORMAT_R32_SFLOAT or VK_FORMAT_R8_SINT"
        problems.error("SR-TENSOR-004", pointer, message, help)
        return None
    return format


def is_format_of_tensors(format: Format) -> bool:
    """Return whether a format stands for single numbers, as in tensors."""
    return (
        format.components == 1
        and not (format.is_packed or format.is_compressed)
        and format.numeric in _FORMATS_OF_TENSORS
        and "D" not in format.channels
    )


class TensorResolver(ResourceResolver):
    """Resolves tensor resources."""

    def resolve(self, resource: Tensor, pointer: str) -> TensorPlan | None:
        context, problems, uid = self.context, self.context.problems, resource.uid
        inferred = context.shapes.get(uid)
        format = tensor_format(resource.format, f"{pointer}/format", problems)
        if format is None:
            return None
        known = inferred if is_open(resource) else tuple(resource.dims)
        source = source_of(context.scenario, resource, context.inputs, known, format)
        if (
            source is not None
            and inferred is not None
            and not _holds(tuple(resource.dims), source, uid, pointer, problems)
        ):
            return None
        # planning the graph tells why it gives no shape to a deferred tensor
        shape = None if uid in context.deferred else _shape(resource, pointer, inferred, problems)
        if shape is None:
            return None
        if source is not None and not check_content(source, format, shape, f"tensor {uid!r}", pointer, problems):
            return None
        size_bytes = prod(shape) * format.block_size_bytes
        return TensorPlan(uid, pointer, size_bytes, format, shape, linear=resource.tiling != "OPTIMAL", source=source)

    @staticmethod
    def replaced(planned: TensorPlan, scenario: Scenario, data: ArrayLike) -> TensorPlan | None:
        if any(is_open(resource) for resource in scenario.resources):
            return None  # an open shape follows from the inputs
        source = ArraySource(data, planned.uid)
        fits = check_content(source, planned.format, planned.shape, "", planned.pointer, Problems(scenario))
        return planned._replace(source=source) if fits else None


def _holds(dims: tuple[int, ...], source: Source, uid: str, pointer: str, problems: Problems) -> bool:
    """Return whether content fits an open shape's fixed dimensions; note an error if not."""
    _, shape, place, code, name = _array_of(source, pointer)
    if shape is None or max(dims, default=0) < 1 or agrees(dims, shape):
        return True
    problems.error(code, place, f"tensor {uid!r} has the shape {list(dims)}, but {name} has the shape {list(shape)}")
    return False


def agrees(dims: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether a shape has the dimensions ``dims``; dimensions up to 0 are open."""
    return len(dims) == len(shape) and all(
        declared <= 0 or declared == size for declared, size in zip(dims, shape, strict=True)
    )


def _shape(
    tensor: Tensor, pointer: str, inferred: tuple[int, ...] | None, problems: Problems
) -> tuple[int, ...] | None:
    """Return a tensor's shape, ``inferred`` if it is open; None after noting an error."""
    shape = tensor.dims
    if any(size <= 0 for size in shape):
        if inferred is None:
            report_unknown_shape(tensor, pointer, problems)
            return None
        shape = inferred
    if len(shape) > _MOST_DIMENSIONS or prod(shape) > _MOST_ELEMENTS:
        most = f"{_MOST_DIMENSIONS} dimensions and {_MOST_ELEMENTS} elements"
        message = f"tensor {tensor.uid!r} has the shape {list(shape)}; a tensor has at most {most}"
        problems.error("SR-TENSOR-005", f"{pointer}/dims", message)
        return None
    return tuple(shape)


def report_unknown_shape(tensor: Any, pointer: str, problems: Problems) -> None:
    """Note an error for a tensor with open dimensions that no graph defines."""
    what = f"tensor {tensor.uid!r} has the shape {list(tensor.dims)}"
    message = f"{what}, but no graph of the scenario defines the dimensions of 0 or less"
    help = "give the shape, or bind the tensor to a graph with fixed shapes, or shapes that follow from its inputs"
    problems.error("SR-TENSOR-006", f"{pointer}/dims", message, help)


def values_of_constant(context: ResourceContext, constant: GraphConstant, pointer: str) -> Source | None:
    """Return a graph constant's values; None after noting an error. Raise as `source_of` does."""
    format = tensor_format(constant.format, f"{pointer}/format", context.problems)
    if format is None:
        return None
    shape = tuple(constant.dims)
    source = source_of(context.scenario, constant, {}, shape, format)
    assert source is not None, "the model requires a source of constants"
    what = f"graph constant {constant.uid!r}"
    return source if check_content(source, format, shape, what, pointer, context.problems) else None


def check_content(
    source: Source, format: Format, shape: tuple[int, ...], what: str, pointer: str, problems: Problems
) -> bool:
    """Return whether initial content has the right type and shape; note errors about ``what`` in ``problems``."""
    type, array_shape, place, code, name = _array_of(source, pointer)
    if isinstance(source, ArraySource) and source.type_name.startswith(("bfloat16", "float8_")):
        # ml_dtypes with equal sizes share a descr
        type = type if source.type_name == ML_DTYPES.get(format.numeric) else source.type_name
    expected = (format.numpy_dtype or "").lstrip("<|")
    good = True
    if type is not None and type not in (expected, *_ALSO_READ.get(format.numeric, ())):
        held, needed = f"{name} holds {_readable(type)}", _readable(expected)
        is_integer = format.numeric in ("sint", "uint")
        if is_integer and {expected[:1], type[:1]} == {"i", "u"} and expected[1:] == type[1:]:  # another sign alone
            message = f"{what} has the format {format.name}, but {held}: its bits are taken as they are"
            help = f"convert the data to {needed}, or give the tensor the format of the data"
            problems.warn("SR-TENSOR-007", place, message, help)
        else:
            message = f"{what} has the format {format.name} ({needed}), but {held}"
            problems.error(code, place, message, "convert the data, or give the tensor the format of the data")
            good = False
    if array_shape is not None and array_shape != shape and not (shape in ((), (1,)) and array_shape in ((), (1,))):
        problems.error(code, place, f"{what} has the shape {list(shape)}, but {name} has the shape {list(array_shape)}")
        good = False
    size_bytes = prod(shape) * format.block_size_bytes
    if good and source.size_bytes != size_bytes:
        problems.error(code, place, f"{what} has {size_bytes} bytes, but {name} holds {source.size_bytes}")
        good = False
    return good


def _array_of(source: Source, pointer: str) -> tuple[str | None, tuple[int, ...] | None, str, str, str]:
    """Return the type (``f4``) and shape of initial content, each None if unknown.

    Also return the place, code and name for messages.
    """
    if isinstance(source, NpySource):
        type = f"{source.header.kind}{source.header.item_size_bytes}"
        return type, source.header.shape, f"{pointer}/src", "SR-FILE-002", repr(source.path)
    if isinstance(source, GeneratedSource):
        return source.descr.lstrip("<|"), source.shape, f"{pointer}/src", "SR-DATA-001", "its src"
    assert isinstance(source, ArraySource)
    descr = None if source.descr is None else source.descr.lstrip("<>|=")
    return descr, source.shape, pointer, "SR-USAGE-001", "the array given for it"


_KINDS = {"i": "int{}", "u": "uint{}", "f": "float{}", "c": "complex{}", "V": "raw bytes of {} bits", "b": "bool"}


def _readable(type: str) -> str:
    """Return a type's usual name: float32 for ``f4``."""
    kind, size = type[:1], type[1:]
    return _KINDS[kind].format(int(size) * 8) if kind in _KINDS and size.isdigit() else repr(type)

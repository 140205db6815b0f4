"""Tensors against the tensor variables of shaders and graphs: rank, shape, type of the elements.

Source: SPV_ARM_tensors; VK_ARM_tensors, the formats of VkTensorDescriptionARM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.diagnostics import Diagnostic, error

if TYPE_CHECKING:
    from scenario_runner.checks.bound import Bound
    from scenario_runner.formats import Format
    from scenario_runner.spirv import Scalar, Tensor

_ENCODINGS = {"bfloat16": "bfloat16", "float8e4m3": "float8_e4m3", "float8e5m2": "float8_e5m2"}
_WHOLE = frozenset({"int", "uint", "bool"})


def check_tensor(declared: Tensor, what: str, tensor: Bound, place: str) -> list[Diagnostic]:
    """What is wrong with binding ``tensor`` to ``what`` of the type ``declared``, at ``place``.

    Dimensions of 0 or less are known only when the graph that writes the tensor is, so that they match any.
    """
    found = []
    dims = tuple(tensor.dims) or (1,)  # a scalar is bound as a tensor of rank 1
    if declared.rank is not None and declared.rank != len(dims):
        found.append(
            error(
                "SR-TENSOR-001",
                place,
                f"{what} has the rank {declared.rank}; tensor {tensor.uid!r} has the shape {list(tensor.dims)},"
                f" which is of rank {len(dims)}",
            )
        )
    elif declared.shape is not None and any(
        size > 0 and size != wanted for size, wanted in zip(dims, declared.shape, strict=False)
    ):
        found.append(
            error(
                "SR-TENSOR-003",
                place,
                f"{what} has the shape {list(declared.shape)}; tensor {tensor.uid!r} has {list(tensor.dims)}",
            )
        )
    format = tensor.format
    if format is not None and not holds(format, declared.element):
        found.append(
            error(
                "SR-TENSOR-002",
                place,
                f"{what} has elements of {declared.element}; tensor {tensor.uid!r} is of {format.name}",
                "both must be the same type",
            )
        )
    return found


def holds(format: Format, element: Scalar) -> bool:
    """Whether elements of a tensor format are what a shader calls ``element``.

    The sign of integers is left to the instructions: graphs of TOSA declare all integers without one.
    """
    if format.components != 1:
        return True  # said where the tensor is
    if element.kind == "bool":
        return format.numeric == "bool" or (format.numeric in ("uint", "sint") and format.block_size_bytes == 1)
    if format.block_size_bytes != element.size_bytes:
        return False
    if format.numeric in ("uint", "sint", "unorm", "snorm", "bool"):
        return element.kind in _WHOLE
    if element.kind != "float":
        return False
    return _ENCODINGS.get(format.numeric, "") == element.encoding

"""Tensors that a dispatch binds, against what its shader or graph declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.errors import ScenarioError
from scenario_runner.plan.model import Descriptor

if TYPE_CHECKING:
    from scenario_runner.formats import Format
    from scenario_runner.plan.problems import Problems
    from scenario_runner.plan.shaders import LoadedShader
    from scenario_runner.plan.tensor_plan import TensorPlan
    from scenario_runner.scenario import Binding
    from scenario_runner.spirv import DescriptorBinding, Scalar, Tensor

_ENCODINGS = {"bfloat16": "bfloat16", "float8e4m3": "float8_e4m3", "float8e5m2": "float8_e5m2"}
_KINDS = {"sint": {"int", "uint"}, "snorm": {"int", "uint"}, "uint": {"int", "uint"}, "unorm": {"int", "uint"}}


def tensor_descriptor(
    binding: Binding,
    wanted: DescriptorBinding,
    tensor: TensorPlan,
    shader: LoadedShader,
    place: str,
    problems: Problems,
) -> Descriptor:
    """The descriptor for a tensor; what does not fit is noted."""
    if wanted.tensor is not None:
        mismatch = tensor_mismatch(wanted.tensor, tensor.format, tensor.dims)
        if mismatch:
            name = f" {wanted.name!r}" if wanted.name else ""
            problems.error(
                ScenarioError,
                place,
                f"tensor{name} at set {wanted.set}, binding {wanted.binding}, in shader {shader.uid!r} is declared as"
                f" {wanted.tensor}; tensor {tensor.uid!r} {mismatch}",
            )
    return Descriptor(binding.set, binding.id, "tensor", tensor.uid)


def tensor_mismatch(declared: Tensor, format: Format, dims: tuple[int, ...]) -> str | None:
    """What a tensor has that the declared type has not, as the end of a sentence; None where they agree."""
    if not element_fits(declared.element, format):
        return f"has the format {format.name}"
    if declared.shape is not None and all(size > 0 for size in declared.shape) and declared.shape != dims:
        return f"has the shape {list(dims)}"
    if declared.rank is not None and declared.rank != len(dims):
        return f"has {len(dims)} dimensions (shape {list(dims)})"
    return None


def element_fits(element: Scalar, format: Format) -> bool:
    """Whether a SPIR-V type can stand for the elements of a format.

    SPIR-V has no signs for the integers of graphs, so only the width counts there.
    """
    if format.numeric == "bool":
        return element.kind == "bool" or (element.kind in ("int", "uint") and element.width_bits == 8)
    if element.width_bits != format.block_size_bytes * 8:
        return False
    if format.numeric in _ENCODINGS:
        return element.encoding == _ENCODINGS[format.numeric]
    if format.numeric == "sfloat":
        return element.kind == "float" and not element.encoding
    return element.kind in _KINDS.get(format.numeric, ())

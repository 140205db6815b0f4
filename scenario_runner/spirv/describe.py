"""Description of a module as plain dicts and lists, as ``shader show`` prints it."""

from __future__ import annotations

from typing import Any

from scenario_runner.spirv.interface import DescriptorBinding
from scenario_runner.spirv.module import EntryPoint, GraphEntryPoint, GraphResource, Module
from scenario_runner.spirv.stage_interface import StageVariable
from scenario_runner.spirv.types import Array, Image, Member, RuntimeArray, Struct, Tensor, Type


def describe(module: Module) -> dict[str, Any]:
    """Describe a module in dicts, lists, strings, numbers, Booleans and None.

    Sizes, offsets and strides are in bytes. Raises `SpirvError` where an entry point's interface cannot be read.
    """
    return {
        **_fields(module, "name", "size_bytes"),
        "version": f"{module.version[0]}.{module.version[1]}",
        "capabilities": list(module.capabilities),
        "extensions": list(module.extensions),
        "ext_inst_imports": list(module.ext_inst_imports),
        **_fields(module, "addressing_model", "memory_model"),
        "specialization_constants": [
            {**_fields(constant, "id", "name", "type", "size_bytes"), "default": _finite(constant.default)}
            for constant in module.spec_constants
        ],
        "entry_points": [_entry_point(entry_point) for entry_point in module.entry_points],
        "graph_entry_points": [_graph(graph) for graph in module.graph_entry_points],
        "graph_constants": [{"id": constant.id, **_tensor(constant.tensor)} for constant in module.graph_constants],
    }


def _finite(value: bool | int | float) -> bool | int | float | str:
    """JSON has no infinities and no NaN: those become text."""
    return str(value) if isinstance(value, float) and not abs(value) < float("inf") else value


def _entry_point(entry_point: EntryPoint) -> dict[str, Any]:
    interface = entry_point.interface
    size = interface.local_size()
    stage = entry_point.stage_interface()
    return {
        **_fields(entry_point, "name", "execution_model"),
        "local_size": None if size is None else list(size),
        "workgroup_memory_bytes": interface.workgroup_memory_bytes,
        "push_constants": _block(interface.push_constants),
        "bindings": [_binding(binding) for binding in interface.bindings],
        "inputs": [_stage_variable(variable) for variable in stage.inputs],
        "outputs": [_stage_variable(variable) for variable in stage.outputs],
        "inputs_built_in": list(stage.inputs_built_in),
        "outputs_built_in": list(stage.outputs_built_in),
        "problems": [*interface.problems, *stage.problems],
    }


def _fields(record: object, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _stage_variable(variable: StageVariable) -> dict[str, Any]:
    return {
        **_fields(variable, "name", "location", "locations", "component", "index"),
        "type": str(variable.type),
        "interpolation": [*(["flat"] if variable.flat else []), *variable.interpolation],
    }


def _binding(binding: DescriptorBinding) -> dict[str, Any]:
    described = _fields(
        binding, "set", "binding", "name", "kind", "count", "used", "readable", "writable", "reads", "writes"
    )
    if binding.image is not None:
        described["image"] = _image(binding.image)
    if binding.tensor is not None:
        described["tensor"] = _tensor(binding.tensor)
    if binding.block is not None:
        described["block"] = _block(binding.block)
    if binding.input_attachment_index is not None:
        described["input_attachment_index"] = binding.input_attachment_index
    return described


def _image(image: Image) -> dict[str, Any]:
    return {
        **_fields(image, "dim", "arrayed", "multisampled", "depth"),
        "sampled_type": None if image.sampled_type is None else str(image.sampled_type),
        "format": image.format,
    }


def _tensor(tensor: Tensor) -> dict[str, Any]:
    return {
        "element_type": str(tensor.element),
        "rank": tensor.rank,
        "shape": None if tensor.shape is None else list(tensor.shape),
    }


def _graph(graph: GraphEntryPoint) -> dict[str, Any]:
    return {
        "name": graph.name,
        "inputs": [_graph_resource(resource) for resource in graph.inputs],
        "outputs": [_graph_resource(resource) for resource in graph.outputs],
    }


def _graph_resource(resource: GraphResource) -> dict[str, Any]:
    return {**_fields(resource, "name", "set", "binding"), **_tensor(resource.tensor)}


def _block(block: Struct | None) -> dict[str, Any] | None:
    if block is None:
        return None
    return {
        **_fields(block, "name", "size_bytes", "runtime_stride_bytes"),
        "members": _members(block),
    }


def _members(struct: Struct) -> list[dict[str, Any]]:
    return [_member(member) for member in struct.members]


def _member(member: Member) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": member.name,
        "type": str(member.type),
        "offset": member.offset_bytes,
        "size_bytes": member.size_bytes,
    }
    if member.array_stride_bytes is not None:
        described["array_stride"] = member.array_stride_bytes
    if member.matrix_stride_bytes is not None:
        described["matrix_stride"] = member.matrix_stride_bytes
        described["majorness"] = member.majorness
    innermost: Type = member.type
    while isinstance(innermost, Array | RuntimeArray):
        innermost = innermost.element
    if isinstance(innermost, Struct):
        described["members"] = _members(innermost)
    return described

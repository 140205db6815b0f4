"""Describes a module in plain dicts and lists, as ``shader show`` prints it."""

from collections.abc import Iterable

from scenario_runner.shaders.spirv.interface import DescriptorBinding
from scenario_runner.shaders.spirv.module import EntryPoint, GraphResource, Module
from scenario_runner.shaders.spirv.stage_interface import StageVariable
from scenario_runner.shaders.spirv.types import Image, Member, Struct, Tensor, innermost


def describe(module: Module) -> dict[str, object]:
    """Describe a module in dicts, lists, strings, numbers, Booleans and None.

    Sizes, offsets and strides are in bytes. Raises `SpirvError` if an entry point's interface cannot be read.
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
        "graph_entry_points": [
            {
                "name": graph.name,
                "inputs": _graph_resources(graph.inputs),
                "outputs": _graph_resources(graph.outputs),
            }
            for graph in module.graph_entry_points
        ],
        "graph_constants": [{"id": constant.id, **_tensor(constant.tensor)} for constant in module.graph_constants],
    }


def _finite(value: bool | int | float) -> bool | int | float | str:
    """Return a number, or text for infinities and NaN, which JSON lacks."""
    return str(value) if isinstance(value, float) and not abs(value) < float("inf") else value


def _entry_point(entry_point: EntryPoint) -> dict[str, object]:
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


def _fields(record: object, *names: str) -> dict[str, object]:
    return {name: getattr(record, name) for name in names}


def _stage_variable(variable: StageVariable) -> dict[str, object]:
    return {
        **_fields(variable, "name", "location", "locations", "component", "index"),
        "type": str(variable.type),
        "interpolation": [*(["flat"] if variable.flat else []), *variable.interpolation],
    }


def _known(**parts: object) -> dict[str, object]:
    """Drop the parts that are None."""
    return {name: part for name, part in parts.items() if part is not None}


def _binding(binding: DescriptorBinding) -> dict[str, object]:
    return {
        **_fields(binding, "set", "binding", "name", "kind", "count"),
        **_fields(binding, "used", "readable", "writable", "reads", "writes"),
        **_known(
            image=None if binding.image is None else _image(binding.image),
            tensor=None if binding.tensor is None else _tensor(binding.tensor),
            block=_block(binding.block),
            input_attachment_index=binding.input_attachment_index,
        ),
    }


def _image(image: Image) -> dict[str, object]:
    return {
        **_fields(image, "dim", "arrayed", "multisampled", "depth"),
        "sampled_type": None if image.sampled_type is None else str(image.sampled_type),
        "format": image.format,
    }


def _tensor(tensor: Tensor) -> dict[str, object]:
    shape = None if tensor.shape is None else list(tensor.shape)
    return {"element_type": str(tensor.element), "rank": tensor.rank, "shape": shape}


def _graph_resources(resources: Iterable[GraphResource]) -> list[dict[str, object]]:
    return [{**_fields(resource, "name", "set", "binding"), **_tensor(resource.tensor)} for resource in resources]


def _block(block: Struct | None) -> dict[str, object] | None:
    if block is None:
        return None
    members = [_member(member) for member in block.members]
    return {**_fields(block, "name", "size_bytes", "runtime_stride_bytes"), "members": members}


def _member(member: Member) -> dict[str, object]:
    inner = innermost(member.type)
    return {
        "name": member.name,
        "type": str(member.type),
        "offset": member.offset_bytes,
        "size_bytes": member.size_bytes,
        **_known(
            array_stride=member.array_stride_bytes,
            matrix_stride=member.matrix_stride_bytes,
            members=list(map(_member, inner.members)) if isinstance(inner, Struct) else None,
        ),
        **({} if member.matrix_stride_bytes is None else {"majorness": member.majorness}),
    }

"""A VGF file as JSON-ready data, for ``vgf show --json``."""

from __future__ import annotations

from typing import Any

from scenario_runner.graphs.model import (
    Constant,
    ModelResource,
    Module,
    Port,
    Segment,
    Vgf,
    descriptor_type_name,
    format_name,
    input_ports,
    output_ports,
    resource_size_bytes,
)


def describe(vgf: Vgf) -> dict[str, Any]:
    """All of the file but code and constant data: dicts, lists, texts, numbers and None, ready for ``json.dumps``.

    ``inputs`` and ``outputs`` are the ports of the model; the lists of all other slots say {binding, resource_index}.
    Sampler values are Vulkan's numbers. The places in error messages about a file are JSON pointers into this.
    """
    return {
        "version": ".".join(map(str, vgf.version)),
        "inputs": [_port(vgf, port) for port in input_ports(vgf)],
        "outputs": [_port(vgf, port) for port in output_ports(vgf)],
        "input_names": list(vgf.input_names),
        "output_names": list(vgf.output_names),
        "segments": [_segment(vgf, segment) for segment in vgf.segments],
        "modules": [{"index": i, **_module(module)} for i, module in enumerate(vgf.modules)],
        "resources": [{"index": i, **_resource(resource)} for i, resource in enumerate(vgf.resources)],
        "constants": [{"index": i, **_constant(vgf, constant)} for i, constant in enumerate(vgf.constants)],
    }


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: records are objects, other tuples are arrays."""
    if not isinstance(value, tuple):
        return value
    parts = [_plain(part) for part in value]
    names = getattr(value, "_fields", None)
    return parts if names is None else dict(zip(names, parts, strict=True))


def _port(vgf: Vgf, port: Port) -> dict[str, Any]:
    return {**_plain(port), **_view(vgf.resources[port.resource_index])}


def _view(resource: ModelResource) -> dict[str, Any]:
    descriptor_type = descriptor_type_name(resource.descriptor_type)
    return {"descriptor_type": descriptor_type, "format": format_name(resource.format), "shape": list(resource.shape)}


_LISTS = ("dispatch_shape", "inputs", "outputs", "descriptor_sets", "constants", "push_constant_ranges")


def _segment(vgf: Vgf, segment: Segment) -> dict[str, Any]:
    return {
        "index": segment.index,
        "name": segment.name,
        "type": segment.type,
        "module_index": segment.module_index,
        "module": vgf.modules[segment.module_index].name,
        **{name: _plain(getattr(segment, name)) for name in _LISTS},
    }


def _module(module: Module) -> dict[str, Any]:
    code = module.code.encode() if isinstance(module.code, str) else module.code
    return {
        "name": module.name,
        "type": module.type,
        "entry_point": module.entry_point,
        "language": module.language,
        "code_size_bytes": len(code or b""),
    }


def _resource(resource: ModelResource) -> dict[str, Any]:
    return {
        "category": resource.category,
        **_view(resource),
        "strides": list(resource.strides),
        "size_bytes": resource_size_bytes(resource),
        "alias_group": resource.alias_group,
        "sampler": _plain(resource.sampler),
    }


def _constant(vgf: Vgf, constant: Constant) -> dict[str, Any]:
    resource = vgf.resources[constant.resource_index]
    return {
        "resource_index": constant.resource_index,
        "format": format_name(resource.format),
        "shape": list(resource.shape),
        "sparsity_dimension": constant.sparsity_dimension,
        "size_bytes": constant.size_bytes,
    }

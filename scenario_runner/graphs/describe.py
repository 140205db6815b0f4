"""A VGF file as JSON-ready data, for ``vgf show --json``."""

from typing import Any

from scenario_runner.graphs.model import Constant, ModelResource, Module, Port, Segment, Vgf, descriptor_type_name


def describe(vgf: Vgf) -> dict[str, Any]:
    """All of the file but code and constant data: dicts, lists, texts, numbers and None, ready for ``json.dumps``.

    ``inputs`` and ``outputs`` are the ports of the model; the lists of all other slots say {binding, resource_index}.
    Sampler values are Vulkan's numbers. The places in error messages about a file are JSON pointers into this.
    """
    return {
        "version": ".".join(map(str, vgf.version)),
        "inputs": [_port(vgf, port) for port in vgf.input_ports],
        "outputs": [_port(vgf, port) for port in vgf.output_ports],
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


def _fields(record: Any, *names: str) -> dict[str, Any]:
    return {name: _plain(getattr(record, name)) for name in names}


def _port(vgf: Vgf, port: Port) -> dict[str, Any]:
    return {**_plain(port), **_view(vgf.resources[port.resource_index])}


def _view(resource: ModelResource) -> dict[str, Any]:
    descriptor_type = descriptor_type_name(resource.descriptor_type)
    return {"descriptor_type": descriptor_type, "format": resource.format_name, "shape": list(resource.shape)}


_LISTS = ("dispatch_shape", "inputs", "outputs", "descriptor_sets", "constants", "push_constant_ranges")


def _segment(vgf: Vgf, segment: Segment) -> dict[str, Any]:
    described = _fields(segment, "index", "name", "type", "module_index")
    return {**described, "module": vgf.modules[segment.module_index].name, **_fields(segment, *_LISTS)}


def _module(module: Module) -> dict[str, Any]:
    code = module.code.encode() if isinstance(module.code, str) else module.code
    return {**_fields(module, "name", "type", "entry_point", "language"), "code_size_bytes": len(code or b"")}


def _resource(resource: ModelResource) -> dict[str, Any]:
    described = {"category": resource.category, **_view(resource)}
    return described | _fields(resource, "strides", "size_bytes", "alias_group", "sampler")


def _constant(vgf: Vgf, constant: Constant) -> dict[str, Any]:
    resource = vgf.resources[constant.resource_index]
    return {
        "resource_index": constant.resource_index,
        "format": resource.format_name,
        "shape": list(resource.shape),
        **_fields(constant, "sparsity_dimension", "size_bytes"),
    }

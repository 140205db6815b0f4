"""A scenario that runs a VGF file, for ``vgf scenario FILE``: complete but for the input files and absent shaders."""

from typing import Any

from scenario_runner.formats import ADDRESS_MODE_NAMES, FILTER_NAMES, STANDARD_COLOR_NAMES
from scenario_runner.graphs.model import BUFFER_TYPES, COMBINED_IMAGE_SAMPLER, IMAGE_TYPES, ModelResource, Sampler, Vgf

# As the reference runner calls it; `dispatch_graph` is the older name.
COMMAND = "dispatch_vgf"


class _Uids:
    """Hands out uids that are also safe file names, each once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def make(self, name: str, binding: int | None = None) -> str:
        # A name comes from the file, so it must not lead out of the directory, hide a file or be endless.
        safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name[:80]).lstrip(".-")
        uid = base = safe or "unnamed"
        number = 2 if binding is None else binding
        while uid in self._taken:
            uid = f"{base}_{number}"
            number += 1
        self._taken.add(uid)
        return uid


def scenario_for(vgf: Vgf, vgf_path: str) -> dict[str, Any]:
    """A scenario as JSON-ready data with one ``dispatch_vgf`` of the model at ``vgf_path``.

    Inputs are read from ``NAME.npy`` and outputs written to ``NAME.npy`` (images: ``NAME.dds``). Every module without
    code gets a shader resource and a substitution, every push-constant range of the file a ``raw_data`` to fill.
    Dynamic dimensions stay -1 and a buffer whose size the file does not say gets the size 0: both are left to the
    user.
    """
    uids = _Uids()
    graph: dict[str, Any] = {"uid": uids.make("graph"), "src": vgf_path}
    resources: list[dict[str, Any]] = [{"graph": graph}]
    command: dict[str, Any] = {"graph_ref": graph["uid"], "bindings": []}
    bound: dict[int, dict[str, Any]] = {}

    for direction, ports in (("input", vgf.input_ports), ("output", vgf.output_ports)):
        for port in ports:
            if port.binding in bound:
                # The model returns an input as it is: one resource is both.
                body = bound[port.binding]
                body["shader_access"] = "readwrite"
                body["dst"] = f"{uids.make(port.name or body['uid'] + '_out', port.binding)}.npy"
                continue
            resource = vgf.resources[port.resource_index]
            uid = uids.make(port.name or f"{direction}_{port.binding}", port.binding)
            body, kind = _resource(uid, resource)
            if direction == "input":
                body["shader_access"] = "readonly"
                body["src"] = f"{uid}.npy"
                # A sampled image has an access of its own in the format.
                if resource.descriptor_type == COMBINED_IMAGE_SAMPLER:
                    body["shader_access"] = "image_read"
            else:
                body["shader_access"] = "writeonly"
                body["dst"] = f"{uid}.{'dds' if kind == 'image' else 'npy'}"
            bound[port.binding] = body
            resources.append({kind: body})
            command["bindings"].append({"set": 0, "id": port.binding, "resource_ref": uid})

    substitutions = _add_shaders(vgf, uids, resources)
    if substitutions:
        command["shader_substitutions"] = substitutions
    push_constants = _add_push_constants(vgf, uids, resources)
    if push_constants:
        ranges = [part for segment in vgf.segments for part in segment.push_constant_ranges]
        graph["push_constants_size"] = max(part.offset_bytes + part.size_bytes for part in ranges)
        command["push_constants"] = push_constants
    return {"resources": resources, "commands": [{COMMAND: command}]}


def _resource(uid: str, resource: ModelResource) -> tuple[dict[str, Any], str]:
    """The part of a scenario resource that does not depend on its direction, and its kind."""
    if resource.descriptor_type in BUFFER_TYPES:
        return {"uid": uid, "size": resource.size_bytes or 0}, "buffer"
    body: dict[str, Any] = {"uid": uid, "dims": list(resource.shape), "format": resource.format_name}
    if resource.descriptor_type not in IMAGE_TYPES:
        return body, "tensor"
    height, width = resource.shape[-3:-1] if len(resource.shape) >= 3 else (-1, -1)
    body["dims"] = [1, width, height, 1]
    if resource.sampler is not None:
        body |= _sampler(resource.sampler)
    return body, "image"


def _sampler(sampler: Sampler) -> dict[str, str]:
    fields: dict[str, str | None] = {
        "min_filter": FILTER_NAMES.get(sampler.min_filter),
        "mag_filter": FILTER_NAMES.get(sampler.mag_filter),
        "border_address_mode": ADDRESS_MODE_NAMES.get(sampler.address_mode_u),
        "border_color": STANDARD_COLOR_NAMES.get(sampler.border_color),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _add_shaders(vgf: Vgf, uids: _Uids, resources: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Add a shader for every compute module that a segment runs and that has no code; gives their substitutions."""
    substitutions = []
    for index in dict.fromkeys(segment.module_index for segment in vgf.segments):
        module = vgf.modules[index]
        if module.code is None:
            uid = uids.make(module.name)
            # GLSL always compiles to the entry point main, so another name can only be SPIR-V.
            kind, suffix = ("GLSL", "comp") if module.entry_point == "main" else ("SPIR-V", "spv")
            shader = {"uid": uid, "src": f"{uid}.{suffix}", "type": kind, "entry": module.entry_point}
            resources.append({"shader": shader})
            substitutions.append({"shader_ref": uid, "target": module.name})
    return substitutions


def _add_push_constants(vgf: Vgf, uids: _Uids, resources: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Add the data for every module with push constants; gives their entries in the command."""
    entries = []
    modules = [segment.module_index for segment in vgf.segments if segment.push_constant_ranges]
    for name in dict.fromkeys(vgf.modules[index].name for index in modules):
        uid = uids.make(f"{name}_push_constants")
        resources.append({"raw_data": {"uid": uid, "src": f"{uid}.npy"}})
        entries.append({"push_data_ref": uid, "shader_target": name})
    return entries

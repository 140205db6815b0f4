"""The scenario that runs a VGF file.

`scenario_for` makes the template of ``vgf scenario FILE``: complete but for input files and absent shaders. `BareModel`
fills the template with inputs by name, number or position, for a model that runs without a scenario file.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from scenario_runner.errors import ScenarioRunnerError, UnsupportedError, UsageError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.files.byte_data import ArrayLike
from scenario_runner.files.npy import read_header
from scenario_runner.files.vk_formats import ADDRESS_MODE_NAMES, FILTER_NAMES, STANDARD_COLOR_NAMES
from scenario_runner.ml.vgf_file import read_model
from scenario_runner.ml.vgf_model import (
    BUFFER_TYPES,
    COMBINED_IMAGE_SAMPLER,
    IMAGE_TYPES,
    ModelResource,
    Sampler,
    Vgf,
    find_port,
)
from scenario_runner.scenario import Scenario, from_dict, loads

# As the reference runner calls it; `dispatch_graph` is the older name.
COMMAND = "dispatch_vgf"
Body: TypeAlias = dict[str, Any]
"""A resource, a command or a whole scenario as JSON has it."""
Place: TypeAlias = Callable[[Diagnostic], Diagnostic]
"""Moves a problem of a file that the user gives to the place where the user gives it."""
Kind: TypeAlias = Literal["input", "shader", "raw_data"]
# For files of shaders: the list in the command, the keys of resource and shader in its entries, what to say of one.
_LISTS: Final[dict[Kind, tuple[str, str, str, str]]] = {
    "shader": ("shader_substitutions", "shader_ref", "target", "the model has no code for the shader {!r}"),
    "raw_data": ("push_constants", "push_data_ref", "shader_target", "the shader {!r} takes push constants"),
}
_WRITE_SCENARIO = "write a scenario with 'scenario-runner vgf scenario'"


def scenario_for(vgf: Vgf, vgf_path: str) -> Body:
    """A scenario as JSON-ready data with one ``dispatch_vgf`` of the model at ``vgf_path``.

    Inputs are read from ``NAME.npy`` and outputs written to ``NAME.npy`` (images: ``NAME.dds``). Every module without
    code gets a shader resource and a substitution, every push-constant range of the file a ``raw_data`` to fill.
    Dynamic dimensions stay -1 and a buffer whose size the file does not say gets the size 0: both are left to the
    user.
    """
    uids = _Uids()
    graph: Body = {"uid": uids.make("graph"), "src": vgf_path}
    resources: list[Body] = [{"graph": graph}]
    command: Body = {"graph_ref": graph["uid"], "bindings": []}
    bound: dict[int, Body] = {}

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


def _resource(uid: str, resource: ModelResource) -> tuple[Body, str]:
    """The part of a scenario resource that does not depend on its direction, and its kind."""
    if resource.descriptor_type in BUFFER_TYPES:
        return {"uid": uid, "size": resource.size_bytes or 0}, "buffer"
    body: Body = {"uid": uid, "dims": list(resource.shape), "format": resource.format_name}
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


def _add_shaders(vgf: Vgf, uids: _Uids, resources: list[Body]) -> list[dict[str, str]]:
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


def _add_push_constants(vgf: Vgf, uids: _Uids, resources: list[Body]) -> list[dict[str, str]]:
    """Add the data for every module with push constants; gives their entries in the command."""
    entries = []
    modules = [segment.module_index for segment in vgf.segments if segment.push_constant_ranges]
    for name in dict.fromkeys(vgf.modules[index].name for index in modules):
        uid = uids.make(f"{name}_push_constants")
        resources.append({"raw_data": {"uid": uid, "src": f"{uid}.npy"}})
        entries.append({"push_data_ref": uid, "shader_target": name})
    return entries


class Lack(NamedTuple):
    """A file that a model needs: of an input, or of a shader its source or its push constants ("raw_data")."""

    kind: Kind
    name: str
    uid: str
    message: str


class BareModel:
    """The scenario of a model as data that is still being completed.

    ``bodies`` are the resources of ``described`` by uid, ``command`` its only command, ``missing`` the inputs that have
    no content so far, by binding.
    """

    def __init__(self, path: str) -> None:
        """Raises FileError, and UnsupportedError without the ``ml`` extra."""
        self._vgf = vgf = read_model(path)[0]
        self._path = path
        self.described = scenario_for(vgf, os.path.abspath(path))
        self.bodies: dict[str, Body] = {
            body["uid"]: body for entry in self.described["resources"] for body in entry.values()
        }
        self.command: Body = self.described["commands"][0][COMMAND]
        self._inputs = vgf.input_ports
        self.missing = {port.binding: port for port in self._inputs}
        self._uid_of = {binding["id"]: binding["resource_ref"] for binding in self.command["bindings"]}
        self._constants = {entry["push_data_ref"] for entry in self.command.get("push_constants", ())}
        self._places: dict[str, Place] = {}  # by uids

    def input(self, name: str | int, place: str) -> Body:
        """The resource of the input with this name or binding number, which the caller now gives its content.

        The size of a buffer is 0 where the model does not say it. Raises FileError for a name that the model does not
        have, UsageError for an input that was given before; ``place`` begins its message.
        """
        try:
            port = find_port(self._inputs, name)
        except ScenarioRunnerError as error:
            raise error.at(path=self._path) from None
        if self.missing.pop(port.binding, None) is None:
            raise UsageError(f"{place}: {port.label} is given twice")
        return self.bodies[self._uid_of[port.binding]]

    def give(self, kind: Kind, name: str, file: str, place: Place, option: str) -> None:
        """Let an input or a shader have a file. Errors are those of `input`, for which ``option`` is the place, and
        FileError."""
        body = self.input(name, option) if kind == "input" else self._body_for_shader(kind, name)
        body["src"] = os.path.abspath(file)
        self._places[body["uid"]] = place
        if body.get("size") == 0:  # a buffer of an unknown format, or with a dimension that the model leaves open
            body["size"] = read_header(body["src"]).data_size_bytes

    def _body_for_shader(self, kind: Kind, name: str) -> Body:
        """The resource with a file of a shader, which is added for one that the model does not ask for."""
        list_key, ref_key, target_key, _ = _LISTS[kind]
        entries = self.command.setdefault(list_key, [])
        uid = next((entry[ref_key] for entry in entries if entry[target_key] == name), None)
        if uid is None:
            uid = f"{list_key.replace('_', ' ')} of {name}"
            self.bodies[uid] = {"uid": uid}
            self.described["resources"].append({kind: self.bodies[uid]})
            entries.append({ref_key: uid, target_key: name})
        self.bodies[uid].pop("type", None)  # of a shader: by the file's extension
        return self.bodies[uid]

    def lacks(self) -> list[Lack]:
        """The files that it still needs."""
        lacks = []
        for port in self.missing.values():
            message = f"no file is given for the input {port.label}"
            lacks.append(Lack("input", port.name or str(port.binding), self._uid_of[port.binding], message))
        for kind, (list_key, ref_key, target_key, message) in _LISTS.items():
            for entry in self.command.get(list_key, ()):
                uid, name = entry[ref_key], entry[target_key]
                if uid not in self._places:
                    lacks.append(Lack(kind, name, uid, message.format(name)))
        return lacks

    def check_outputs(self) -> None:
        """Raise UnsupportedError where nothing says how large an output is."""
        for port in self._vgf.output_ports:
            if self.bodies[self._uid_of[port.binding]].get("size") == 0:
                row = self._vgf.resources[port.resource_index]
                output = f"{port.label} is, a buffer of the shape {list(row.shape)} and {row.format_name}"
                message = f"{self._path}: nothing says how large the output {output}"
                raise UnsupportedError(message, help=f"{_WRITE_SCENARIO}, and the size of the buffer in it")

    def by_uid(self, inputs: Mapping[Any, ArrayLike] | tuple[ArrayLike, ...]) -> dict[str, ArrayLike]:
        """Arrays that are given by position, name or binding number, by the uids of their resources.

        The push constants of a shader are the input ``<shader>_push_constants``. Raises FileError and UsageError.
        """
        ports = self._inputs
        if not isinstance(inputs, Mapping):
            if len(inputs) > len(ports):
                there_are = ", ".join(port.label for port in ports) or "none"
                raise UsageError(f"{len(inputs)} inputs are given by position; the model has: {there_are}")
            inputs = {port.binding: data for port, data in zip(ports, inputs, strict=False)}
        self.missing = {port.binding: port for port in ports}
        return {
            name if name in self._constants else self.input(name, "inputs")["uid"]: data
            for name, data in inputs.items()
        }

    def scenario_with(self, inputs: Mapping[str, ArrayLike], *, to_files: bool) -> Scenario:
        """The scenario with arrays for all inputs, by uid. Outputs have a ``dst`` only with ``to_files``.

        Raises UsageError, and UnsupportedError for a model that needs more than inputs.
        """
        for uid, data in inputs.items():
            body = self.bodies[uid]
            body["data"] = data
            del body["src"]
            if body.get("size") == 0:
                del body["size"]  # that of the data
        self.check_outputs()
        missing = [port.name or str(port.binding) for port in self.missing.values()]
        missing += sorted(self._constants - inputs.keys())
        if missing:
            names = ", ".join(map(repr, missing))
            raise UsageError(f"no array is given for the input{'s'[: len(missing) > 1]} {names}")
        substitutions = self.command.get("shader_substitutions")
        if substitutions:
            message = f"{self._path}: the model has no code for the shader {substitutions[0]['target']!r}"
            raise UnsupportedError(message, help=f"{_WRITE_SCENARIO}, and the shader in it")
        if not to_files:
            for body in self.bodies.values():
                body.pop("dst", None)
        return _of_model(from_dict(self.described, self._path))

    def scenario(self) -> Scenario:
        """The scenario as it is now, with files for all inputs."""
        return _of_model(loads(json.dumps(self.described), self._path), self._places)


@dataclass(frozen=True)
class _ModelScenario(Scenario):
    """A scenario that users never see: its problems have the place that they know."""

    places: Mapping[str, Place] = field(default_factory=dict, repr=False, compare=False)

    def placed(self, problem: Diagnostic) -> Diagnostic:
        model = self.path or ""
        pointer, message = problem.pointer or "", problem.message.replace(f"{os.path.abspath(model)}: ", "")
        problem = problem._replace(message=message, path=model, pointer=None)
        match pointer.split("/"):
            case ["", "resources", number, _, "src" | "size", *_] if (
                uid := self.resources[int(number)].uid
            ) in self.places:
                return self.places[uid](problem)
        return problem


def _of_model(scenario: Scenario, places: Mapping[str, Place] | None = None) -> Scenario:
    values = {field.name: getattr(scenario, field.name) for field in fields(Scenario) if field.init}
    return _ModelScenario(**(values | {"warnings": ()}), places=places or {})

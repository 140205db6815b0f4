"""The scenario that runs a VGF file.

`scenario_for` makes the template of ``vgf scenario FILE``, which only lacks input files and missing shaders. For a
model without a scenario file, `BareModel` fills the template with inputs by name, number or position.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from scenario_runner.errors import ScenarioRunnerError, UnsupportedError, UsageError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.files.input import ArrayLike
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
from scenario_runner.scenario.writing import Uids

COMMAND = "dispatch_graph"
Body: TypeAlias = dict[str, Any]
"""A resource, a command or a whole scenario in JSON."""
Place: TypeAlias = Callable[[Diagnostic], Diagnostic]
"""Moves a problem with a user's file to the option that names the file."""
Kind: TypeAlias = Literal["input", "shader", "raw_data"]
# For files of shaders: the list in the command, the keys of resource and shader in an entry, and a message.
_LISTS: Final[dict[Kind, tuple[str, str, str, str]]] = {
    "shader": ("shader_substitutions", "shader_ref", "target", "the model has no code for the shader {!r}"),
    "raw_data": ("push_constants", "push_data_ref", "shader_target", "the shader {!r} takes push constants"),
}
_WRITE_SCENARIO = "write a scenario with 'scenario-runner vgf scenario'"


def scenario_for(vgf: Vgf, vgf_path: str) -> Body:
    """Make a scenario in JSON with a ``dispatch_graph`` of the model at ``vgf_path``.

    It reads inputs from ``NAME.npy`` and writes outputs to ``NAME.npy`` (images: ``NAME.dds``). Every module without
    code gets a shader resource and a substitution, every range of push constants a ``raw_data`` to fill. The user must
    replace dynamic dimensions, which are -1, and unknown sizes of buffers, which are 0.
    """
    uids = Uids()
    graph: Body = {"uid": uids.make("graph"), "src": vgf_path}
    resources: list[Body] = [{"graph": graph}]
    command: Body = {"graph_ref": graph["uid"], "bindings": []}
    bound: dict[int, Body] = {}

    for direction, ports in (("input", vgf.input_ports), ("output", vgf.output_ports)):
        for port in ports:
            if port.binding in bound:
                # The model returns an input unchanged: a single resource is both.
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
                # The format has a special access for sampled images.
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


def _resource(uid: str, resource: ModelResource) -> tuple[Body, str]:
    """Make a resource without the keys that depend on the direction. Return the resource and the kind."""
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


def _add_shaders(vgf: Vgf, uids: Uids, resources: list[Body]) -> list[dict[str, str]]:
    """Add a shader for every used compute module without code. Return the substitutions."""
    substitutions = []
    for index in dict.fromkeys(segment.module_index for segment in vgf.segments):
        module = vgf.modules[index]
        if module.code is None:
            uid = uids.make(module.name)
            # GLSL always compiles to the entry point main; another name needs SPIR-V.
            kind, suffix = ("GLSL", "comp") if module.entry_point == "main" else ("SPIR-V", "spv")
            shader = {"uid": uid, "src": f"{uid}.{suffix}", "type": kind, "entry": module.entry_point}
            resources.append({"shader": shader})
            substitutions.append({"shader_ref": uid, "target": module.name})
    return substitutions


def _add_push_constants(vgf: Vgf, uids: Uids, resources: list[Body]) -> list[dict[str, str]]:
    """Add data for every module with push constants. Return the entries of the command."""
    entries = []
    modules = [segment.module_index for segment in vgf.segments if segment.push_constant_ranges]
    for name in dict.fromkeys(vgf.modules[index].name for index in modules):
        uid = uids.make(f"{name}_push_constants")
        resources.append({"raw_data": {"uid": uid, "src": f"{uid}.npy"}})
        entries.append({"push_data_ref": uid, "shader_target": name})
    return entries


class Lack(NamedTuple):
    """A missing file for an input, for a shader, or for a shader's push constants ("raw_data")."""

    kind: Kind
    name: str
    uid: str
    message: str


class BareModel:
    """The scenario of a model in JSON, which is completed step by step.

    ``bodies`` has the resources of ``described`` by uid; ``command`` is the only command. ``missing`` has the inputs
    without content by binding. ``uid_of`` has the uids of inputs and outputs by binding.
    """

    def __init__(self, path: str) -> None:
        """Raises FileError, and UnsupportedError if the ``ml`` extra is missing."""
        self._vgf = vgf = read_model(path)[0]
        self._path = path
        self.described = scenario_for(vgf, os.path.abspath(path))
        self.bodies: dict[str, Body] = {
            body["uid"]: body for entry in self.described["resources"] for body in entry.values()
        }
        self.command: Body = self.described["commands"][0][COMMAND]
        self._inputs = vgf.input_ports
        self._targets = vgf.targets()
        self.missing = {port.binding: port for port in self._inputs}
        self.uid_of = {binding["id"]: binding["resource_ref"] for binding in self.command["bindings"]}
        self._constants = {entry["push_data_ref"] for entry in self.command.get("push_constants", ())}
        self._places: dict[str, Place] = {}  # by uids

    def input(self, name: str | int, place: str) -> Body:
        """Return the resource of an input by name or binding number, so that the caller can give it content.

        A buffer of unknown size has the size 0. Raises FileError for an unknown name, and UsageError, beginning with
        ``place``, for an input that has content already.
        """
        try:
            port = find_port(self._inputs, name)
        except ScenarioRunnerError as error:
            raise error.at(path=self._path) from None
        if self.missing.pop(port.binding, None) is None:
            raise UsageError(f"{place}: {port.label} is given twice")
        return self.bodies[self.uid_of[port.binding]]

    def give(self, kind: Kind, name: str, file: str, place: Place, option: str) -> None:
        """Give an input or a shader a file. Raises FileError, and the errors of `input` at the place ``option``."""
        if kind == "input":
            bodies = [self.input(name, option)]
        else:  # an operation may have several modules
            bodies = [self._body_for_shader(kind, module) for module in sorted(self._targets.get(name, {name}))]
        for body in bodies:
            body["src"] = os.path.abspath(file)
            self._places[body["uid"]] = place
            if body.get("size") == 0:  # a buffer of unknown format or with a dynamic dimension
                body["size"] = read_header(body["src"]).data_size_bytes

    def _body_for_shader(self, kind: Kind, name: str) -> Body:
        """Find or add the resource for a file of a shader."""
        list_key, ref_key, target_key, _ = _LISTS[kind]
        entries = self.command.setdefault(list_key, [])
        uid = next((entry[ref_key] for entry in entries if entry[target_key] == name), None)
        if uid is None:
            uid = f"{list_key.replace('_', ' ')} of {name}"
            self.bodies[uid] = {"uid": uid}
            self.described["resources"].append({kind: self.bodies[uid]})
            entries.append({ref_key: uid, target_key: name})
        self.bodies[uid].pop("type", None)  # the file extension tells the shader's language
        return self.bodies[uid]

    def lacks(self) -> list[Lack]:
        """List the missing files."""
        lacks = []
        for port in self.missing.values():
            message = f"no file is given for the input {port.label}"
            lacks.append(Lack("input", port.name or str(port.binding), self.uid_of[port.binding], message))
        for kind, (list_key, ref_key, target_key, message) in _LISTS.items():
            for entry in self.command.get(list_key, ()):
                uid, name = entry[ref_key], entry[target_key]
                if uid not in self._places:
                    lacks.append(Lack(kind, name, uid, message.format(name)))
        return lacks

    def check_outputs(self) -> None:
        """Raise UnsupportedError if the size of an output is unknown."""
        for port in self._vgf.output_ports:
            if self.bodies[self.uid_of[port.binding]].get("size") == 0:
                row = self._vgf.resources[port.resource_index]
                buffer = f"it is a buffer of the shape {list(row.shape)} and the format {row.format_name}"
                message = f"{self._path}: the size of the output {port.label} is unknown: {buffer}"
                raise UnsupportedError(message, help=f"{_WRITE_SCENARIO}, and the size of the buffer in it")

    def by_uid(self, inputs: Mapping[Any, ArrayLike] | tuple[ArrayLike, ...]) -> dict[str, ArrayLike]:
        """Return arrays by uid of resource. The caller gives arrays by position, name or binding number.

        The input ``<shader>_push_constants`` has the push constants of a shader. Raises FileError and UsageError.
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
        """Make the scenario with arrays for all inputs, by uid. Outputs have a ``dst`` only with ``to_files``.

        Raises UsageError, and UnsupportedError for a model that also needs shaders.
        """
        for uid, data in inputs.items():
            body = self.bodies[uid]
            body["data"] = data
            del body["src"]
            if body.get("size") == 0:
                del body["size"]  # the data have a size
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
        """Make the scenario with the files given so far."""
        return _of_model(loads(json.dumps(self.described), self._path), self._places)


@dataclass(frozen=True)
class _ModelScenario(Scenario):
    """A scenario that users never see. Problems name the user's options instead of places in the scenario."""

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

"""A VGF model that runs without a scenario file: the scenario of the template, with inputs by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scenario_runner.errors import UnsupportedError, UsageError
from scenario_runner.vgf import find_port, input_ports, output_ports
from scenario_runner.vgf.resource_size import format_name
from scenario_runner.vgf.scenario_template import scenario_for

if TYPE_CHECKING:
    from scenario_runner.scenario import Scenario
    from scenario_runner.vgf import Port, Vgf


class BareModel:
    """The scenario of a model as data that is still being completed.

    ``bodies`` are the resources of ``described`` by uid, ``command`` its only command, ``missing`` the inputs that have
    no content so far, by binding.
    """

    def __init__(self, vgf: Vgf, path: str) -> None:
        self.described = scenario_for(vgf, os.path.abspath(path))
        self.bodies: dict[str, dict[str, Any]] = {
            body["uid"]: body for entry in self.described["resources"] for body in entry.values()
        }
        self.command: dict[str, Any] = self.described["commands"][0]["dispatch_graph"]
        self.missing: dict[int, Port] = {port.binding: port for port in input_ports(vgf)}
        self._uid_of = {binding["id"]: binding["resource_ref"] for binding in self.command["bindings"]}
        self._vgf = vgf
        self._path = path

    def input(self, name: str | int, place: str) -> dict[str, Any]:
        """The resource of the input with this name or binding number, which the caller now gives its content.

        The size of a buffer is 0 where the model does not say it. Raises FileError for a name that the model does not
        have, UsageError for an input that was given before; ``place`` begins its message.
        """
        port = find_port(input_ports(self._vgf), name)
        if self.missing.pop(port.binding, None) is None:
            raise UsageError(f"{place}: {port.label} is given twice")
        return self.bodies[self._uid_of[port.binding]]

    def check_outputs(self) -> None:
        """Raise UnsupportedError where nothing says how large an output is."""
        for port in output_ports(self._vgf):
            if self.bodies[self._uid_of[port.binding]].get("size") == 0:
                row = self._vgf.resources[port.resource_index]
                raise UnsupportedError(
                    f"{self._path}: nothing says how large the output {port.label} is, a buffer of the shape"
                    f" {list(row.shape)} and {format_name(row.format)}",
                    help="write a scenario with 'scenario-runner vgf scenario', and the size of the buffer in it",
                )


def scenario_with(path: str, inputs: Mapping[str, Any], *, to_files: bool) -> Scenario:
    """The scenario that runs the model at ``path`` once, on arrays by the names (or binding numbers) of its inputs.

    The push constants of a shader are the input ``<shader>_push_constants``. Outputs have a ``dst`` only with
    ``to_files``. Raises FileError and UsageError, and UnsupportedError for a model that needs more than inputs.
    """
    from scenario_runner.plan.graphs.model_files import read_model
    from scenario_runner.scenario import from_dict

    model = BareModel(read_model(path).vgf, path)
    constants = {entry["push_data_ref"] for entry in model.command.get("push_constants", ())}
    for name, data in inputs.items():
        body = model.bodies[name] if name in constants else model.input(name, "inputs")
        body["data"] = data
        del body["src"]
        if body.get("size") == 0:
            del body["size"]  # that of the data
    model.check_outputs()
    missing = [port.name or str(port.binding) for port in model.missing.values()]
    missing += sorted(constants - inputs.keys())
    if missing:
        names = ", ".join(map(repr, missing))
        raise UsageError(f"{path}: no array is given for the input{'s'[: len(missing) > 1]} {names}")
    substitutions = model.command.get("shader_substitutions")
    if substitutions:
        raise UnsupportedError(
            f"{path}: the model has no code for the shader {substitutions[0]['target']!r}",
            help="write a scenario with 'scenario-runner vgf scenario', and the shader in it",
        )
    if not to_files:
        for body in model.bodies.values():
            body.pop("dst", None)
    return from_dict(model.described, path)

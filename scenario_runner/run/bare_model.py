"""A model that runs without a scenario file: the scenario of the template, with inputs by name, number or position."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError, UnsupportedError, UsageError
from scenario_runner.graphs.model import find_port
from scenario_runner.graphs.scenario_template import COMMAND, scenario_for
from scenario_runner.plan.graph_models import read_model
from scenario_runner.scenario import Scenario, from_dict, loads

_OPTIONS = {"tensor": "--input", "buffer": "--input", "image": "--input", "raw_data": "--push-constants"}


_WRITE_SCENARIO = "write a scenario with 'scenario-runner vgf scenario'"


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
        self.bodies: dict[str, dict[str, Any]] = {
            body["uid"]: body for entry in self.described["resources"] for body in entry.values()
        }
        self.command: dict[str, Any] = self.described["commands"][0][COMMAND]
        self._inputs = vgf.input_ports
        self.missing = {port.binding: port for port in self._inputs}
        self._uid_of = {binding["id"]: binding["resource_ref"] for binding in self.command["bindings"]}
        self._constants = {entry["push_data_ref"] for entry in self.command.get("push_constants", ())}

    def input(self, name: str | int, place: str) -> dict[str, Any]:
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

    def check_outputs(self) -> None:
        """Raise UnsupportedError where nothing says how large an output is."""
        for port in self._vgf.output_ports:
            if self.bodies[self._uid_of[port.binding]].get("size") == 0:
                row = self._vgf.resources[port.resource_index]
                output = f"{port.label} is, a buffer of the shape {list(row.shape)} and {row.format_name}"
                message = f"{self._path}: nothing says how large the output {output}"
                raise UnsupportedError(message, help=f"{_WRITE_SCENARIO}, and the size of the buffer in it")

    def by_uid(self, inputs: Mapping[Any, Any] | tuple[Any, ...]) -> dict[str, Any]:
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

    def scenario_with(self, inputs: Mapping[str, Any], *, to_files: bool) -> Scenario:
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
        return _of_model(loads(json.dumps(self.described), self._path))


@dataclass(frozen=True)
class _ModelScenario(Scenario):
    """A scenario that users never see: its problems have the place that they know."""

    def placed(self, problem: Diagnostic) -> Diagnostic:
        place = model = self.path or ""
        match (problem.pointer or "").split("/"):
            case ["", "resources", number, _, "src", *_] if self.text is not None:  # from the command line
                resource = self.resources[int(number)]
                option = _OPTIONS.get(resource.kind)
                place = f"{model}: {option} {resource.uid}" if option else model
        message = problem.message.replace(f"{os.path.abspath(model)}: ", "")
        return problem._replace(message=message, path=place, pointer=None)


def _of_model(scenario: Scenario) -> Scenario:
    values = {field.name: getattr(scenario, field.name) for field in fields(Scenario) if field.init}
    return _ModelScenario(**(values | {"warnings": ()}))

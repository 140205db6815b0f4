"""``scenario-runner model.vgf --input name=x.npy --output-dir D``: run a model without writing a scenario."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scenario_runner.cli.arguments import (
    Parser,
    add_compiler_options,
    add_device_options,
    add_logging_option,
    compiler_arguments,
    device_arguments,
)
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError, UsageError
from scenario_runner.visible import one_line

if TYPE_CHECKING:
    from scenario_runner.run.driver_start import InstanceStart
    from scenario_runner.scenario import Scenario
    from scenario_runner.vgf import Vgf


def main(argv: Sequence[str], starting: InstanceStart | None = None) -> int:
    """Returns 0. Raises FileError, UsageError and what a run raises."""
    parser = Parser(
        prog="scenario-runner MODEL.vgf",
        description="Run a VGF model once. Inputs and outputs are given by name or by binding number"
        " (see 'scenario-runner vgf show').",
        epilog="For what only scenarios have (profiles, dumps, captures, caches of pipelines), make one of the model:"
        " scenario-runner vgf scenario MODEL.vgf > FILE.json",
    )
    parser.add_argument("model", metavar="MODEL.vgf", help="the model")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=FILE", help="the file of an input (.npy)")
    parser.add_argument(
        "--output-dir",
        "--output",
        metavar="DIR",
        default=".",
        help="folder for the outputs (default: the current folder)",
    )
    parser.add_argument(
        "--shader", action="append", default=[], metavar="NAME=FILE", help="the shader for a placeholder"
    )
    parser.add_argument(
        "--push-constants", action="append", default=[], metavar="NAME=FILE", help="push constants of a shader (.npy)"
    )
    add_device_options(parser)
    add_compiler_options(parser)
    add_logging_option(parser)
    parser.add_argument("--quiet", action="store_true", help="print no summary line")
    options = parser.parse_args(argv)
    from scenario_runner.cli.messages import set_up_logging
    from scenario_runner.runner import Runner
    from scenario_runner.vgf import read_vgf

    set_up_logging(options.log_level)
    started = time.perf_counter()
    scenario = _scenario(read_vgf(options.model), options)
    with Runner(
        starting=starting,
        **device_arguments(options),
        **compiler_arguments(options),
    ) as runner:
        try:
            plan = runner.run_to_files(scenario, output_dir=options.output_dir)
        except ScenarioRunnerError as error:
            error.problems = tuple(_placed(problem, scenario, options.model) for problem in error.problems)
            raise
        milliseconds = (time.perf_counter() - started) * 1e3
        if not options.quiet:
            names = ", ".join(os.path.basename(output.destination or output.uid) for output in plan.outputs)
            took = f"{milliseconds:.1f} ms on {runner.physical_device.name}"
            print(f"{one_line(options.model)}: ok: {one_line(names)} in {took}")
    return 0


def _scenario(vgf: Vgf, options: Any) -> Any:
    """The scenario of the template with the user's files in it."""
    import json

    from scenario_runner.run.bare_model import BareModel
    from scenario_runner.scenario import loads

    model = BareModel(vgf, options.model)
    described, bodies, command, missing = model.described, model.bodies, model.command, model.missing
    for name, path in _pairs("--input", options.input):
        body = model.input(name, "--input")
        body["src"] = os.path.abspath(path)
        if body.get("size") == 0:  # a buffer of an unknown format, or with a dimension that the model leaves open
            from scenario_runner.files.npy import read_header

            body["size"] = read_header(body["src"]).data_size_bytes
    model.check_outputs()
    if missing:
        raise UsageError(
            f"no file is given for the input {next(iter(missing.values())).label}",
            help=" ".join(f"--input {port.name or port.binding}=FILE.npy" for port in missing.values()),
        )
    by_target = {each["target"]: each["shader_ref"] for each in command.get("shader_substitutions", ())}
    for name, path in _pairs("--shader", options.shader):
        if name not in by_target:
            uid = f"shader of {name}"
            described["resources"].append({"shader": {"uid": uid, "src": os.path.abspath(path)}})
            command.setdefault("shader_substitutions", []).append({"shader_ref": uid, "target": name})
            continue
        body = bodies[by_target.pop(name)]
        body["src"] = os.path.abspath(path)
        body.pop("type", None)  # by the file's extension
    if by_target:
        name = next(iter(by_target))
        raise UsageError(f"the model has no code for the shader {name!r}", help=f"give one: --shader {name}=FILE")
    given = {each["shader_target"]: each["push_data_ref"] for each in command.get("push_constants", ())}
    for name, path in _pairs("--push-constants", options.push_constants):
        if name in given:
            bodies[given.pop(name)]["src"] = os.path.abspath(path)
            continue
        uid = f"push constants of {name}"
        described["resources"].append({"raw_data": {"uid": uid, "src": os.path.abspath(path)}})
        command.setdefault("push_constants", []).append({"push_data_ref": uid, "shader_target": name})
    if given:
        name = next(iter(given))
        raise UsageError(
            f"the shader {name!r} takes push constants", help=f"give them: --push-constants {name}=FILE.npy"
        )
    return loads(json.dumps(described), options.model)


_OPTIONS = {"tensor": "--input", "buffer": "--input", "image": "--input", "raw_data": "--push-constants"}


def _placed(problem: Diagnostic, scenario: Scenario, model: str) -> Diagnostic:
    """A problem at a place that users know: they never see the scenario that the model runs in."""
    if problem.path != scenario.path or problem.pointer is None:
        return problem
    match problem.pointer.split("/"):
        case ["", "resources", number, _, "src", *_]:
            resource = scenario.resources[int(number)]
            option = _OPTIONS.get(resource.kind)
            place = f"{model}: {option} {resource.uid}" if option else model
        case _:
            place = model
    message = problem.message.removeprefix(f"{os.path.abspath(model)}: ")
    return problem._replace(message=message, path=place, line=None, column=None, pointer=None)


def _pairs(option: str, values: Sequence[str]) -> list[tuple[str, str]]:
    pairs = []
    for value in values:
        name, equals, path = value.partition("=")
        if not equals or not name or not path:
            raise UsageError(f"{option} {value!r}: expected NAME=FILE")
        pairs.append((name, path))
    return pairs

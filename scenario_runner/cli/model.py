"""``scenario-runner model.vgf --input name=x.npy --output-dir D``: run a model without writing a scenario."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scenario_runner.cli.arguments import Parser
from scenario_runner.cli.run_options import parse_run
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError, UsageError
from scenario_runner.visible import one_line

if TYPE_CHECKING:
    from scenario_runner.plan.model.plan import Plan
    from scenario_runner.run.driver_start import InstanceStart
    from scenario_runner.scenario import Scenario
    from scenario_runner.vgf import Vgf


def main(argv: Sequence[str], starting: InstanceStart | None = None) -> int:
    """Returns 0, or the exit code of what went wrong. Raises FileError and UsageError."""
    parser = Parser(
        prog="scenario-runner MODEL.vgf",
        description="Run a VGF model once. Inputs and outputs are given by name or by binding number"
        " (see 'scenario-runner vgf show').",
    )
    parser.add_argument("model", metavar="MODEL.vgf", help="the model")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=FILE", help="the file of an input (.npy)")
    parser.add_argument(
        "--output-dir",
        "--output",
        dest="output",
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
    parser.set_defaults(files=[], capture_dir=None)
    options = parse_run(parser, argv)
    if options.files:  # what --capture-frame has taken for its value
        raise UsageError(f"{options.model} and {options.files[0]} are given", help="run them one by one")
    from scenario_runner.cli.messages import set_up_logging
    from scenario_runner.cli.run_files import announce, run_files
    from scenario_runner.cli.run_outputs import RunOutputs
    from scenario_runner.vgf import read_vgf

    set_up_logging(options.log_level)
    model: str = options.model
    scenario = _scenario(read_vgf(model), options)
    streams = {model: scenario}
    outputs = RunOutputs([model], streams, output=options.output, capture_dir=None, folder_each=False)

    def placed(error: ScenarioRunnerError) -> ScenarioRunnerError:
        error.problems = tuple(_placed(problem, scenario, model) for problem in error.problems)
        return error

    def wrote(plan: Plan) -> str:
        return one_line(", ".join(os.path.basename(output.destination or output.uid) for output in plan.outputs))

    announce(options)
    given = [model, *(pair.partition("=")[2] for pair in (*options.input, *options.shader, *options.push_constants))]
    return run_files([model], streams, outputs, options, starting, placed=placed, wrote=wrote, sandbox_files=given)


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

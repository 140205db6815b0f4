"""``scenario-runner model.vgf --input name=x.npy --output-dir D``: run a model without writing a scenario."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from scenario_runner.cli.run_files import announce, run_files
from scenario_runner.cli.run_outputs import RunOutputs
from scenario_runner.errors import UsageError
from scenario_runner.files.npy import read_header
from scenario_runner.run.bare_model import BareModel
from scenario_runner.scenario import Scenario


def run_model(path: str, files: Sequence[str], options: argparse.Namespace) -> int:
    """Run the model, the only one of the files; returns 0, or the exit code of what went wrong.

    Raises FileError and UsageError."""
    if len(files) > 1:
        raise UsageError(f"{files[0]} and {files[1]} are given", help="run models one by one")
    streams = {path: _scenario(path, options)}
    output = "." if options.output is None else options.output
    outputs = RunOutputs([path], streams, output=output, capture_dir=options.capture_dir, folder_each=False)

    announce(options)
    paths = [path, *(pair.partition("=")[2] for pair in (*options.input, *options.shader, *options.push_constants))]
    return run_files([path], streams, outputs, options, is_model=True, sandbox_files=paths)


def _scenario(path: str, options: argparse.Namespace) -> Scenario:
    """The scenario of the template with the user's files in it."""
    model = BareModel(path)
    described, bodies, command, missing = model.described, model.bodies, model.command, model.missing
    for name, file in _pairs("--input", options.input):
        body = model.input(name, "--input")
        body["src"] = os.path.abspath(file)
        if body.get("size") == 0:  # a buffer of an unknown format, or with a dimension that the model leaves open
            body["size"] = read_header(body["src"]).data_size_bytes
    model.check_outputs()
    if missing:
        raise UsageError(
            f"no file is given for the input {next(iter(missing.values())).label}",
            help=" ".join(f"--input {port.name or port.binding}=FILE.npy" for port in missing.values()),
        )
    by_target = {entry["target"]: entry["shader_ref"] for entry in command.get("shader_substitutions", ())}
    for name, file in _pairs("--shader", options.shader):
        if name not in by_target:
            uid = f"shader of {name}"
            described["resources"].append({"shader": {"uid": uid, "src": os.path.abspath(file)}})
            command.setdefault("shader_substitutions", []).append({"shader_ref": uid, "target": name})
            continue
        body = bodies[by_target.pop(name)]
        body["src"] = os.path.abspath(file)
        body.pop("type", None)  # by the file's extension
    if by_target:
        name = next(iter(by_target))
        raise UsageError(f"the model has no code for the shader {name!r}", help=f"give one: --shader {name}=FILE")
    push_data = {entry["shader_target"]: entry["push_data_ref"] for entry in command.get("push_constants", ())}
    for name, file in _pairs("--push-constants", options.push_constants):
        if name in push_data:
            bodies[push_data.pop(name)]["src"] = os.path.abspath(file)
            continue
        uid = f"push constants of {name}"
        described["resources"].append({"raw_data": {"uid": uid, "src": os.path.abspath(file)}})
        command.setdefault("push_constants", []).append({"push_data_ref": uid, "shader_target": name})
    if push_data:
        name = next(iter(push_data))
        raise UsageError(
            f"the shader {name!r} takes push constants", help=f"give them: --push-constants {name}=FILE.npy"
        )
    return model.scenario()


def _pairs(option: str, values: Sequence[str]) -> list[tuple[str, str]]:
    pairs = []
    for value in values:
        name, equals, file = value.partition("=")
        if not equals or not name or not file:
            raise UsageError(f"{option} {value!r}: expected NAME=FILE")
        pairs.append((name, file))
    return pairs

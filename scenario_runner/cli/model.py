"""``scenario-runner model.vgf --input name=x.npy --output-dir D``: run a model without writing a scenario."""

import argparse
import os
from collections.abc import Sequence

from scenario_runner.cli.run_files import RunFile
from scenario_runner.errors import UsageError
from scenario_runner.files.npy import read_header
from scenario_runner.run.bare_model import BareModel


def read_model(paths: Sequence[str], options: argparse.Namespace) -> RunFile:
    """The scenario that runs a model, which is the only file, with the files of the options in it.

    Outputs go to the current folder, unless the options say where. Raises FileError and UsageError.
    """
    if len(paths) > 1:
        raise UsageError(f"{paths[0]} and {paths[1]} are given", help="run models one by one")
    model = BareModel(paths[0])
    for name, file in options.input:
        body = model.input(name, "--input")
        body["src"] = os.path.abspath(file)
        if body.get("size") == 0:  # a buffer of an unknown format, or with a dimension that the model leaves open
            body["size"] = read_header(body["src"]).data_size_bytes
    model.check_outputs()
    missing = list(model.missing.values())
    if missing:
        help = " ".join(f"--input {port.name or port.binding}=FILE.npy" for port in missing)
        raise UsageError(f"no file is given for the input {missing[0].label}", help=help)
    shader = _add_files(model, "--shader", options.shader, "shader", "shader_substitutions", ("shader_ref", "target"))
    if shader is not None:
        raise UsageError(f"the model has no code for the shader {shader!r}", help=f"give one: --shader {shader}=FILE")
    constants = ("push_data_ref", "shader_target")
    shader = _add_files(model, "--push-constants", options.push_constants, "raw_data", "push_constants", constants)
    if shader is not None:
        help = f"give them: --push-constants {shader}=FILE.npy"
        raise UsageError(f"the shader {shader!r} takes push constants", help=help)
    return RunFile(paths[0], model.scenario(), options.output or ".", options.capture_dir)


def _add_files(
    model: BareModel, option: str, pairs: Sequence[tuple[str, str]], kind: str, list_key: str, keys: tuple[str, str]
) -> str | None:
    """Put the files of an option for shaders into the scenario, as resources of this kind.

    ``keys`` are those of the resource and of the shader in the entries of the command's list. Returns the first shader
    that still needs a file.
    """
    ref_key, target_key = keys
    uids = {entry[target_key]: entry[ref_key] for entry in model.command.get(list_key, ())}
    for name, file in pairs:
        if name in uids:
            body = model.bodies[uids.pop(name)]
            body.pop("type", None)  # of a shader: by the file's extension
        else:
            body = {"uid": f"{option[2:].replace('-', ' ')} of {name}"}
            model.described["resources"].append({kind: body})
            model.command.setdefault(list_key, []).append({ref_key: body["uid"], target_key: name})
        body["src"] = os.path.abspath(file)
    return next(iter(uids), None)

"""``scenario-runner model.vgf --input name=x.npy --output-dir D``: run a model without writing a scenario."""

import argparse
from collections.abc import Sequence
from typing import Final

from scenario_runner.cli.run_files import RunFile
from scenario_runner.errors import UsageError
from scenario_runner.ml.model_scenario import BareModel, Kind, Place

_OPTIONS: Final[dict[Kind, str]] = {"input": "--input", "shader": "--shader", "raw_data": "--push-constants"}


def read_model(paths: Sequence[str], options: argparse.Namespace) -> RunFile:
    """The scenario that runs a model, which is the only file, with the files of the options in it.

    Outputs go to the current folder, unless the options say where. Raises FileError and UsageError.
    """
    if len(paths) > 1:
        raise UsageError(f"{paths[0]} and {paths[1]} are given", help="run models one by one")
    path = paths[0]
    model = BareModel(path)
    for kind, option in _OPTIONS.items():
        for name, file in getattr(options, option[2:].replace("-", "_")):
            model.give(kind, name, file, _place(f"{path}: {option} {name}"), option)
    model.check_outputs()
    lacks = model.lacks()
    if lacks:
        kind = lacks[0].kind
        file = "FILE" if kind == "shader" else "FILE.npy"
        help = " ".join(f"{_OPTIONS[kind]} {lack.name}={file}" for lack in lacks if lack.kind == kind)
        raise UsageError(lacks[0].message, help=help)
    return RunFile(path, model.scenario(), options.output or ".", options.capture_dir)


def _place(option: str) -> Place:
    return lambda problem: problem._replace(path=option)

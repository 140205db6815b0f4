"""The scenario of an item: that of its file, or for a model one with the files that stand beside it."""

import os
from collections.abc import Iterator
from functools import partial
from typing import Final

from scenario_runner.diagnostics import Diagnostic, escape
from scenario_runner.errors import ExpectationError, FileError, UsageError
from scenario_runner.files.codec import all_codecs
from scenario_runner.files.source import ParameterizedFile, is_model
from scenario_runner.run.bare_model import BareModel, Kind
from scenario_runner.scenario import Scenario
from scenario_runner.scenario.loader import as_scenario
from scenario_runner.suite.discovery import MODEL_KEYS, inputs_folder, item_at
from scenario_runner.suite.expectations.reading import Expectations, load
from scenario_runner.suite.parameters import scenario_path
from scenario_runner.suite.records import Item

_UNFIT: Final = "SR-EXPECT-013"
_KEYS: Final[dict[Kind, str]] = dict(zip(("input", "shader", "raw_data"), MODEL_KEYS, strict=True))


def scenario_of(item: Item, expectations: Expectations) -> str | ParameterizedFile | Scenario:
    """The path of a scenario, or the scenario that runs a model, with the files that its expectations name and those in
    the folder of its inputs.

    Raises ExpectationError with every problem of these, and for the model FileError and UnsupportedError.
    """
    if not is_model(item.path):
        return scenario_path(item)
    model = BareModel(item.path)
    problems = list(_give_named(model, expectations)) or list(_give_inputs(model, item.path))
    if problems:
        raise ExpectationError(problems)
    model.check_outputs()
    return model.scenario()


def load_model(path: str | os.PathLike[str]) -> Scenario:
    """The scenario that a suite runs for a model. Raises as `reading.load` and `scenario_of` do."""
    item = item_at(os.fspath(path))
    return as_scenario(scenario_of(item, load(item)))


def _give_named(model: BareModel, expectations: Expectations) -> Iterator[Diagnostic]:
    """Give a model the files that expectations name; yields what is wrong with them."""
    for kind, key in _KEYS.items():
        for name, file in getattr(expectations.check, key).items():
            path, pointer = expectations.path_to(file), f"/{key}/{escape(name)}"
            try:
                model.give(kind, name, path, partial(_placed, expectations, pointer), key)
            except (FileError, UsageError) as error:  # no such input, one that is given twice, a file without a header
                yield from (_placed(expectations, pointer, problem, _UNFIT) for problem in error.problems)
            else:
                if not os.path.exists(path):
                    yield expectations.problem("SR-EXPECT-007", pointer, f"{path}: does not exist")


def _placed(expectations: Expectations, pointer: str, problem: Diagnostic, code: str | None = None) -> Diagnostic:
    return expectations.problem(code or problem.code, pointer, problem.message, problem.help)


def _give_inputs(model: BareModel, path: str) -> Iterator[Diagnostic]:
    """Give a model the files in the folder of its inputs that nothing else gives; yields what is missing."""
    folder = inputs_folder(path)
    stem = os.path.splitext(os.path.basename(path))[0]
    for lack in model.lacks():
        files = (os.path.join(folder, lack.uid + codec.extension) for codec in all_codecs() if lack.kind == "input")
        file = next(filter(os.path.exists, files), None)
        if file is not None:
            model.give("input", lack.name, file, lambda problem: problem, "inputs")
            continue
        key = f'in {stem}.check.json: "{_KEYS[lack.kind]}": {{ "{lack.name}": "FILE" }}'
        help = f"write {stem}.inputs/{lack.uid}.npy, or {key}" if lack.kind == "input" else f"write {key}"
        yield Diagnostic(_UNFIT, "error", None, lack.message, help, path=path)

"""The models as people meet them in an editor or a notebook: signatures, docstrings, types."""

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import scenario
from scenario_runner.scenario import Buffer, json_schema
from scenario_runner.scenario.entries import Model

CHECKOUT = Path(__file__).resolve().parents[2]
MODELS = [
    value
    for value in (getattr(scenario, name) for name in scenario.__all__)
    if inspect.isclass(value) and issubclass(value, Model) and value is not Model
]
SIGNATURES = """
import inspect, json
from scenario_runner import scenario
from scenario_runner.scenario.entries import Model
found = {}
for name in scenario.__all__:
    value = getattr(scenario, name)
    if inspect.isclass(value) and issubclass(value, Model) and value is not Model:
        assert not value.__pydantic_complete__, name
        found[name] = str(inspect.signature(value))
print(json.dumps(found))
"""


def test_signatures_before_first_use() -> None:
    """``inspect.signature`` shows the fields of every model before pydantic has built it, and the same afterwards."""
    done = subprocess.run(
        [sys.executable, "-c", SIGNATURES], cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=60
    )
    before = json.loads(done.stdout)
    assert sorted(before) == sorted(model.__name__ for model in MODELS)
    binding = before["Binding"].replace("Optional[int]", "int | None")  # as Python before 3.14 writes it
    assert binding.startswith("(*, set: int, id: int, resource_ref: str, lod: int | None = None, descrip")
    for model in MODELS:
        model.model_rebuild()
        assert str(inspect.signature(model)) == before[model.__name__]
        parameters = inspect.signature(model).parameters
        assert list(parameters) == list(model.model_fields)
        for name, parameter in parameters.items():
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
            assert (parameter.default is inspect.Parameter.empty) == model.model_fields[name].is_required()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_docstrings_name_the_fields(model: type[Model]) -> None:
    """The docstring of a model ends with a line for each field; its JSON Schema has the first part alone."""
    summary, _, fields = (inspect.getdoc(model) or "").partition("\n\nFields:\n")
    assert summary
    lines = [line.strip().partition(": ") for line in fields.splitlines()]
    assert [name for name, _, _ in lines] == list(model.model_fields)
    assert all(text for _, _, text in lines)
    described = json_schema()["$defs"]
    if model.__name__ in described:
        assert described[model.__name__]["description"] == summary


WRONG = """
from pathlib import Path
from scenario_runner import Runner
from scenario_runner.scenario import Binding, Buffer

good = Buffer(uid="a", data=b"1234", shader_access="readonly")
size: int = good.size
Buffer(uid=1, size=4, shader_access="readonly")
Buffer(uid="a", size=4, shader_access="never")
Buffer(uid="a", sise=4, shader_access="readonly")
Binding(set=0, id=0)
Runner(no_such_option=True)
with Runner() as runner:
    reveal_type(runner.run(Path("scenario.json")))
    runner.run(5)
"""
# The lines that are wrong, or ask for a type, and a part of what is said of each.
SAID = {
    "8": '"uid"',
    "9": '"shader_access"',
    "10": '"sise"',
    "11": '"resource_ref"',
    "12": 'Unexpected keyword argument "no_such_option" for "Runner"',
    "14": 'Revealed type is "scenario_runner.run.result.Result"',
    "15": 'Argument 1 to "run" of "Runner" has incompatible type "int"',
}


@pytest.mark.heavy
def test_a_type_checker_sees_the_types(tmp_path: Path) -> None:
    """mypy knows the names and types of the fields, which are required, and the types of `Runner`."""
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", "--hide-error-context"]
    command += ["--ignore-missing-imports", "--follow-imports=silent", f"--cache-dir={tmp_path}", "wrong.py"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={"MYPYPATH": str(CHECKOUT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.stderr == ""
    said = [line.split(":", 2)[1:] for line in done.stdout.splitlines() if " defined in " not in line]
    assert [line for line, _ in said] == list(SAID), done.stdout
    for line, text in said:
        assert SAID[line] in text


@pytest.mark.parametrize(
    "data, size",
    [
        (numpy.zeros((3, 5), "f8"), 120),
        (numpy.zeros((4, 4), "u2")[:, ::2], 16),
        (b"12345", 5),
        (memoryview(numpy.zeros(3, "u4")), 12),
    ],
)
def test_data_gives_the_size_of_a_buffer(data: Any, size: int) -> None:
    """A buffer with data needs no size: it is that of the data."""
    assert Buffer(uid="b", data=data, shader_access="readonly").size == size
    assert Buffer(uid="b", data=data, size=64, shader_access="readonly").size == 64  # the run says that they differ

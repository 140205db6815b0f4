"""The larger models: sound files of real size, whose expected outputs are NumPy's."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scenario_runner.formats import format_of_value
from scenario_runner.graphs import input_ports, output_ports, parse_vgf, read_vgf
from scenario_runner.graphs.scenario_template import scenario_for

MODELS = Path(__file__).parent / "models"
MAKER = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "make_models.py"))


@pytest.mark.parametrize("name", MAKER["MODELS"])
def test_a_model_is_sound_and_its_data_fit_it(name: str) -> None:
    """Ten operators or more, and .npy files of the shape and type of every port."""
    vgf = read_vgf(MODELS / name / "model.vgf")
    operators = re.findall(r"tosa\.(\w+)", (MODELS / name / "model.mlir").read_text())
    assert len([operator for operator in operators if not operator.startswith("const")]) >= 10
    for ports, suffix in ((input_ports(vgf), ".npy"), (output_ports(vgf), ".expected.npy")):
        for port in ports:
            data = np.load(MODELS / name / f"{port.name}{suffix}")
            resource = vgf.resources[port.resource_index]
            assert data.shape == resource.shape
            assert data.dtype == np.dtype(format_of_value(resource.format).numpy_dtype)


@pytest.mark.parametrize("name", MAKER["MODELS"])
def test_expected_outputs_and_sources_are_those_of_the_maker(name: str) -> None:
    """Running the maker again gives the committed text, data and scenario."""
    model: Any = MAKER["MODELS"][name]()
    directory = MODELS / name
    assert (directory / "model.mlir").read_text() == model.text()
    for port, value in model.inputs.items():
        np.testing.assert_array_equal(np.load(directory / f"{port}.npy"), value.data)
    for port, value in model.outputs.items():
        np.testing.assert_allclose(np.load(directory / f"{port}.expected.npy"), value.data, rtol=1e-3, atol=1e-6)
    scenario = scenario_for(read_vgf(directory / "model.vgf"), "model.vgf")
    assert json.loads((directory / "scenario.json").read_text()) == scenario


def test_the_constants_of_a_model_are_the_weights_in_its_source() -> None:
    """Every constant of the file is one of the constants of the text, bit by bit."""
    text = (MODELS / "classifier_fp16" / "model.mlir").read_text()
    written = {bytes.fromhex(blob) for blob in re.findall(r'dense<"0x([0-9A-F]+)">', text)}
    constants = parse_vgf((MODELS / "classifier_fp16" / "model.vgf").read_bytes()).constants
    assert len(constants) >= 5
    assert {bytes(constant.data or b"") for constant in constants} <= written

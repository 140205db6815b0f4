"""The models of scenarios/ml/: the tables of their VGF files fit what tools/make_models.py says."""

from __future__ import annotations

import re
import runpy

import numpy as np
import pytest

from scenario_runner.formats import format_of_value
from scenario_runner.graphs import input_ports, output_ports, parse_vgf, read_vgf
from tests.gpu.ml_scenes import CHECKOUT, MODELS

MAKER = runpy.run_path(str(CHECKOUT / "tools" / "make_models.py"))


@pytest.mark.parametrize("name", MAKER["MODELS"])
def test_ports(name: str) -> None:
    """Inputs and outputs have the names, shapes and types of the model, which has ten operators or more."""
    vgf, model = read_vgf(MODELS / name / "model.vgf"), MAKER["MODELS"][name]()
    operators = re.findall(r"tosa\.(\w+)", model.text())
    assert len([operator for operator in operators if not operator.startswith("const")]) >= 10
    for ports, values in ((input_ports(vgf), model.inputs), (output_ports(vgf), model.outputs)):
        assert {port.name for port in ports} == values.keys()
        for port in ports:
            value, resource = values[port.name], vgf.resources[port.resource_index]
            assert resource.shape == value.data.shape
            assert np.dtype(format_of_value(resource.format).numpy_dtype) == MAKER["DTYPES"][value.kind]


def test_the_constants_of_a_model_are_the_weights_in_its_source() -> None:
    """Every constant of the file is one of the constants of the text, bit by bit."""
    text = MAKER["MODELS"]["classifier_fp16"]().text()
    written = {bytes.fromhex(blob) for blob in re.findall(r'dense<"0x([0-9A-F]+)">', text)}
    constants = parse_vgf((MODELS / "classifier_fp16" / "model.vgf").read_bytes()).constants
    assert len(constants) >= 5
    assert {bytes(constant.data or b"") for constant in constants} <= written

"""Inputs for the codes of the conversion of models: TOSA models that cannot be converted, or not as they are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scenario_runner import ScenarioRunnerError, convert
from scenario_runner.conversion.converter import VARIABLE
from scenario_runner.errors import error_class
from tests.codes.case import Case, Codes, Input
from tests.conversion.models import BRANCH, GRID, TENSOR, add, attributes, custom, function, shader

LONG = {"input_0_vkformat": "VK_FORMAT_R64_SINT", "output_0_vkformat": "VK_FORMAT_R64_SINT"}
SUM = add("%0", "%x", "%x")


def converted(text: str, *options: str) -> Codes:
    """The codes of the findings about a model."""
    raised: ScenarioRunnerError | None = None
    try:
        found = convert(text.encode(), converter_options=options).findings
    except ScenarioRunnerError as error:
        raised, found = error, error.problems
    assert raised is None or isinstance(raised, error_class(found[0].code))
    assert all(each.message and each.path for each in found)
    return {each.code for each in found}


def model(*body: str, returned: str = "%1") -> Input:
    """A model of one argument x with these operations."""
    return lambda case: converted(function(["x"], body, [returned]))


def with_converter(program: str) -> Input:
    """A model that is right, and another program in the place of the converter."""

    def found(case: Case) -> Codes:
        path = Path(case.scene.folder, "converter")
        path.write_text(f"#!{sys.executable}\n{program}\n")
        path.chmod(0o755 if program else 0o644)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(VARIABLE, str(path))
            return converted(function(["x"], [SUM], ["%0"]))

    return found


INPUTS: dict[str, Input] = {
    "SR-CUSTOM-030": lambda case: converted("no model"),
    "SR-CUSTOM-031": with_converter(""),
    "SR-CUSTOM-032": lambda case: converted(function(["x"], [SUM], ["%0"]).replace("f32", "i8")),
    "SR-CUSTOM-033": with_converter("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"),
    "SR-CUSTOM-034": lambda case: converted(
        function(["x"], [shader("%1", ["%x"], [1, 0])], ["%1"]).replace(GRID, "tensor<?x16xf32>")
    ),
    "SR-CUSTOM-035": model(custom("%1", ["%x"], "", domain="com.arm.Other"), SUM, returned="%0"),
    # the converter makes tensors of i64 narrower, which the shader does not know
    "SR-CUSTOM-036": lambda case: converted(
        function(
            ["x"], [custom("%1", ["%x"], attributes([TENSOR], [TENSOR], None, **LONG)), add("%2", "%x", "%1")], ["%2"]
        ).replace("f32", "i64")
    ),
    "SR-CUSTOM-037": lambda case: converted(function(["x"], [SUM], ["%0"]) + function(["x"], [SUM], ["%0"], "other")),
    "SR-CUSTOM-038": model(*BRANCH),
}

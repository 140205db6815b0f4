"""Inputs for the codes of expectations: what a check.json says beside a scenario with a buffer and an image."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.errors import error_class
from scenario_runner.suite.discovery import expectations_file
from scenario_runner.suite.expectations.validation import check
from scenario_runner.suite.records import Item
from scenario_runner.suite.running.worker import Runners
from scenario_runner.suite.tolerance import metrics
from scenario_runner.suite.update import update
from tests.codes.case import Case, Codes, Input


def _codes_of(case: Case, text: str) -> Codes:
    """What is found in expectations before anything runs, each problem with a path, and with a place in a text."""
    case.scene.buffer("x", numpy.zeros(4, numpy.float32))
    keys = {"dims": [1, 4, 4, 1], "format": "VK_FORMAT_R8_UNORM", "shader_access": "readwrite", "dst": "i.png"}
    case.scene.resource("image", uid="i", **keys)
    case.scene.file("check.json", text)
    path = str(case.scene.write())
    problems = check(Item("item", path, expectations_file(path)))
    for problem in problems:
        assert error_class(problem.code).exit_code == 3
        assert Path(problem.path or "").is_relative_to(case.scene.folder)
    return {problem.code for problem in problems}


def _output(uid: str = "x", **keys: Any) -> Input:
    """An expectation of one output, the other one unchecked."""
    outputs = {"x": {"unchecked": True}, "i": {"unchecked": True}, uid: keys}
    return lambda case: _codes_of(case, json.dumps({"outputs": outputs}))


def _without_package(case: Case) -> Codes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "find_spec", lambda name: None)
        return _output("i", values=0, metrics={"flip": {"max": 0.1}})(case)


def _update(**keys: Any) -> Input:
    """An update of an item with two buffers, of zeros and of NaN, and these keys for the latter."""

    def codes(case: Case) -> Codes:
        case.scene.npy("zeros.npy", numpy.zeros(4, numpy.float32))
        case.scene.resource("buffer", uid="zeros", size=16, shader_access="readonly", src="zeros.npy")
        case.scene.buffer("x", numpy.full(4, numpy.nan, numpy.float32), dst="out.npy")
        path = str(case.scene.write())
        check = case.scene.file("check.json", json.dumps({"outputs": {"x": keys}}))
        with closing(Runners({}, 60.0)) as runners:
            return case.raised(lambda: update(Item("item", path, str(check)), runners))

    return codes


INPUTS: dict[str, Input] = {
    "SR-EXPECT-001": lambda case: _codes_of(case, "{"),
    "SR-EXPECT-002": lambda case: _codes_of(case, '{ "repeats": 3 }'),
    "SR-EXPECT-003": _output(values=0, dtype="float32", atol=-1),
    "SR-EXPECT-004": _output("y", unchecked=True),
    "SR-EXPECT-005": lambda case: _codes_of(case, '{ "outputs": { "i": { "unchecked": true } } }'),
    "SR-EXPECT-006": _output(values=0, file="x.npy"),
    "SR-EXPECT-007": _output(file="missing.npy"),
    "SR-EXPECT-008": _output(values=[1, 2], dtype="float32"),
    "SR-EXPECT-009": _output("i", values=0, metrics={"ssim": {"min": 0.9}}),
    "SR-EXPECT-010": _without_package,
    "SR-EXPECT-011": _update(file="zeros.npy"),
    "SR-EXPECT-012": _update(dtype="float32", nan="error"),
}

"""Items with outputs judged by TOSA's rules."""

import json
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scenario_runner.compare import tosa_rules
from scenario_runner.errors import ExpectationError, MetricPackageError
from scenario_runner.suite.hashes import inputs_of, item_hashes
from scenario_runner.suite.outcomes import Item, Outcome
from scenario_runner.suite.update import update
from scenario_runner.suite.worker_task import Runners
from tests.left_out import TOSA_TOOLS, needs
from tests.scenes import Scene

Run = Callable[..., Outcome]
EXPECTED = np.array([[0.1, -2.5, 3.75], [1e4, 7.0, -0.3]])
PAIR = np.array([1.5, -3])


def rule(scene: Scene, expected: Any, mode: str = "EXACT", bounds: Any = None, **keys: Any) -> dict[str, Any]:
    """Expectations of the tensor t, with their files in the folder of expected files."""
    keys = {"mode": mode, "expected": scene.npy("expected/precise.npy", expected), **keys}
    if bounds is not None:
        keys["bounds"] = scene.npy("expected/bounds.npy", bounds)
    return {"t": {"tosa": keys}}


def bits(dtype: Any, raw: str) -> Any:
    """The pair in a type of ml_dtypes, as the bytes that files have."""
    return PAIR.astype(dtype).view(raw)


@needs(TOSA_TOOLS)
@pytest.mark.parametrize(
    "format, content, expected, data_type",
    [
        ("R32_SFLOAT", np.float32(EXPECTED), np.float32(EXPECTED).astype("f8"), None),
        ("R16_SFLOAT", np.float16(EXPECTED[1:]), np.float16(EXPECTED[1:]).astype("f8"), "FP16"),
        ("R16_SFLOAT_FPENCODING_BFLOAT16_ARM", bits(ml_dtypes.bfloat16, "V2"), PAIR, None),
        ("R8_SFLOAT_FPENCODING_FLOAT8E4M3_ARM", bits(ml_dtypes.float8_e4m3fn, "V1"), PAIR, None),
        ("R8_SFLOAT_FPENCODING_FLOAT8E5M2_ARM", bits(ml_dtypes.float8_e5m2, "u1"), PAIR, None),
        ("R8_BOOL_ARM", np.array([True, False]), np.array([True, False]), None),
        ("R8_SINT", np.int8([7, -8]), np.int8([7, -8]), "INT4"),
        ("R8_UINT", np.uint8([7, 200]), np.int8([7, -56]), None),
        ("R64_SINT", np.int64([1 << 46, -1]), np.int64([1 << 46, -1]), None),
    ],
)  # fmt: skip
def test_types(scene: Scene, run: Run, format: str, content: Any, expected: Any, data_type: str | None) -> None:
    """Tensors know TOSA's type but for INT4; one wrong element is a Fail with files about it."""
    scene.tensor("t", content, format=f"VK_FORMAT_{format}")
    keys = {} if data_type is None else {"data_type": data_type}
    assert run(outputs=rule(scene, expected, **keys)).status == "Pass"
    damaged = expected.copy()
    damaged.reshape(-1)[1] = 1
    outcome = run(outputs=rule(scene, damaged, **keys))
    assert outcome.status == "Fail"
    assert (
        f"is wrong by TOSA's mode EXACT, the worst at {'[0, 1]' if expected.ndim == 2 else '[1]'}: " in outcome.reason
    )
    assert set(outcome.outputs[0].files) >= {"expected", "actual", "error"}


@needs(TOSA_TOOLS)
def test_the_worst_element(scene: Scene, run: Run) -> None:
    """With its expected value, its limits, and by how much it is beyond them."""
    scene.tensor("t", np.float32([1, 2, 4]))
    outputs = rule(scene, np.array([1.0, 2.5, 3.0]), "PRECOMPUTED", np.array([0.0, 0.25, 2.0]))
    outcome = run(outputs=outputs)
    assert outcome.reason == (
        "t: 1 of 3 elements (33.3 %) is wrong by TOSA's mode PRECOMPUTED, the worst at [1]: 2.0 (0x40000000), "
        "expected 2.5; allowed: 2.25 to 2.75, exceeded by 0.25"
    )
    (output,) = outcome.outputs
    assert output.worst == (("[1]", "2.5", "2.0 (0x40000000)"),)
    arrays = {what: np.load(scene.folder / "results" / path) for what, path in output.files.items()}
    assert {what: array.tolist() for what, array in arrays.items()} == {
        "expected": [1, 2.5, 3],
        "actual": [1, 2, 4],
        "error": [0, 0.5, 1],
    }


@needs(TOSA_TOOLS)
def test_buffers(scene: Scene, run: Run) -> None:
    """A buffer takes the type of the rule."""
    scene.buffer("t", np.float32([[1, 2], [3, 4]]))
    expected = np.array([[1.0, 2], [3, 4]])
    assert run(outputs=rule(scene, expected, data_type="FP32")).status == "Pass"
    assert "1 of 4 elements" in run(outputs=rule(scene, expected.clip(max=3), data_type="FP32")).reason
    assert run(outputs=rule(scene, expected, data_type="FP16")).status == "Missing"


@needs(TOSA_TOOLS)
def test_conditions(scene: Scene, run: Run) -> None:
    """A rule replaces the tolerances of an output on some devices, and no tolerance joins it."""
    scene.tensor("t", np.float32([1, 2]))
    exact = rule(scene, np.array([1.0, 2]))
    every = {"device": "*", "outputs": exact}
    assert run(outputs={"t": {"values": 1, "atol": 1e-6}}, when=[every]).status == "Pass"
    outcome = run(outputs=exact, when=[{**every, "outputs": {"t": {"atol": 1}}}])
    assert outcome.status == "Missing"
    assert "the mode says which elements are right" in outcome.reason


@needs(TOSA_TOOLS)
def test_an_update(scene: Scene, runners: Runners) -> None:
    """An update keeps right outputs, and never writes values that only the reference model computes."""
    scene.tensor("t", np.float32([1, 2]))
    path = str(scene.write())
    item = Item("i", path, str(scene.file("check.json", json.dumps({"outputs": rule(scene, np.array([1.0, 2]))}))))
    assert update(item, runners) == []
    before = item_hashes(item, "")
    scene.npy("expected/precise.npy", np.array([1.0, 3]))
    assert item_hashes(item, "") != before
    assert str(scene.folder / "expected/precise.npy") in inputs_of(item)
    with pytest.raises(
        ExpectationError, match="an update does not write results of the reference model: 1 of 2"
    ) as caught:
        update(item, runners)
    assert [(each.code, each.pointer) for each in caught.value.problems] == [("SR-EXPECT-012", "/outputs/t/tosa")]
    assert np.load(scene.folder / "expected/precise.npy").tolist() == [1, 3]


def test_a_machine_without_the_package(scene: Scene, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is named before anything runs."""
    scene.tensor("t", np.float32([1, 2]))
    outputs = rule(scene, np.array([1.0, 2]))
    monkeypatch.setattr(tosa_rules, "find_spec", lambda name: None)
    outcome = run(outputs=outputs)
    assert outcome.status == "MissingTool"
    assert "/outputs/t/tosa: needs the package 'tosa-tools', which is not installed" in outcome.reason
    assert outcome.diagnostics[0]["help"] == "pip install tosa-tools"
    tosa_rules._library.cache_clear()
    with pytest.raises(MetricPackageError, match="the package 'tosa-tools' is not installed"):
        tosa_rules.judge(np.float32(1), tosa_rules.TosaRule("EXACT", "FP32", np.array(1.0)))

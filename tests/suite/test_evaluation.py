"""Items that run on the device of this machine, and their outcomes."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scenario_runner.files.elements import ELEMENTS, encoded
from scenario_runner.suite.evaluation import EvaluationOptions, run_item
from scenario_runner.suite.evidence import item_folder
from scenario_runner.suite.outcomes import Item, Outcome
from scenario_runner.suite.worker_task import Runners
from tests.scenes import Scene, glsl
from tests.tables import cases

DOUBLE = glsl("x[gl_GlobalInvocationID.x] *= 2.0;", "layout(set=0,binding=0) buffer X { float x[]; };", local_size=4)
VALUES = np.float32([1, 2, 3, 4])
Run = Callable[..., Outcome]


@pytest.fixture
def doubled(scene: Scene) -> Scene:
    """A scenario that doubles a buffer x."""
    return scene.shader("double", DOUBLE).buffer("x", VALUES).dispatch("double", ["x"])


def expected(**keys: Any) -> dict[str, Any]:
    return {"x": {"values": [2, 4, 6, 8], "dtype": "float32", **keys}}


def test_nothing_is_expected(doubled: Scene, run: Run) -> None:
    """An item without expectations passes where it runs, writes no file, and says that nothing was compared."""
    assert run() == Outcome("Pass", is_uncompared=True)
    assert not (doubled.folder / "x.out.npy").exists()


@pytest.mark.parametrize("keys", [keys for (keys,) in cases(__file__, "cases.txt", "PASSES")])
def test_passes(doubled: Scene, run: Run, keys: str) -> None:
    """Outputs within the allowed errors pass."""
    doubled.npy("mask.npy", np.array([1, 0, 0, 0], bool))
    outcome = run(outputs=expected(**json.loads(keys)))
    assert (outcome.status, outcome.reason) == ("Pass", "")
    assert not (doubled.folder / "results").exists()


@pytest.mark.parametrize("keys, status, message", cases(__file__, "cases.txt", "WRONG"))
def test_wrong_outputs(doubled: Scene, run: Run, keys: str, status: str, message: str) -> None:
    """A wrong output has one sentence, its worst elements and files."""
    outcome = run(outputs=expected(**json.loads(keys)))
    assert (outcome.status, outcome.reason) == (status, f"x: {message}")
    (output,) = outcome.outputs
    assert output.worst
    assert set(output.files) == {"expected", "actual", "error"}
    arrays = {what: np.load(doubled.folder / "results" / path) for what, path in output.files.items()}
    assert arrays["actual"].tolist() == [2, 4, 6, 8]
    assert arrays["actual"].dtype == np.float32
    with np.errstate(invalid="ignore"):
        difference = np.abs(arrays["actual"] - arrays["expected"])
    np.testing.assert_array_equal(arrays["error"], np.where(np.isfinite(difference), difference, np.inf))


def test_folder_of_expected_files(doubled: Scene, run: Run) -> None:
    """Without a file with expectations the folder says all, with the type of its files."""
    doubled.npy("expected/x.npy", VALUES * 2)
    assert run().status == "Pass"
    doubled.npy("expected/x.npy", VALUES * 2 + np.float32([0, 0, 1e-6, 0]))
    assert run().status == "Fail"
    assert run(outputs={"x": {"rtol": 1e-6}}).status == "Pass"


def test_digests(doubled: Scene, run: Run) -> None:
    """One of several accepted results."""
    digest = hashlib.sha256((VALUES * 2).tobytes()).hexdigest()
    assert run(outputs={"x": {"sha256": ["0" * 64, digest]}}).status == "Pass"
    outcome = run(outputs={"x": {"sha256": "0" * 64}})
    assert outcome.reason == f"x: the content has the SHA-256 {digest}, not the expected one"
    assert set(outcome.outputs[0].files) == {"actual"}


@pytest.mark.parametrize(
    "dtype, values", [("float16", [1.5, -2.0]), ("bfloat16", [3.0, 0.5]), ("float8_e4m3", [1, 2, 3, 4])]
)
def test_types_that_buffers_hold(scene: Scene, run: Run, dtype: str, values: list[float]) -> None:
    """The expectation gives the type of a buffer's bytes."""
    scene.buffer("x", np.frombuffer(encoded(values, ELEMENTS[dtype], len(values)), "u1"))
    near = [value * 1.1 for value in values]
    assert run(outputs={"x": {"values": values, "dtype": dtype}}).status == "Pass"
    assert run(outputs={"x": {"values": near, "dtype": dtype, "rtol": 0.2}}).status == "Pass"
    assert run(outputs={"x": {"values": near, "dtype": dtype, "ulp": 0, "atol": 1e-9}}).status == "Fail"


@pytest.mark.parametrize("key", ["atol", "rtol", "ulp", "zero"])
def test_a_tolerance_of_zero_compares_numbers(scene: Scene, run: Run, key: str) -> None:
    """With a tolerance of zero both zeros are equal, and all NaN too. Without a tolerance bits are compared."""
    scene.buffer("x", np.array([0x8000_0000, 0x7FC0_0001, 0x3F80_0000], "<u4"))
    expected = {"values": [0, "nan", 1], "dtype": "float32"}
    assert run(outputs={"x": expected}).status == "Fail"
    assert run(outputs={"x": {**expected, key: 0}}).status == "Pass"
    assert run(outputs={"x": {**expected, "values": [0, "nan", 2], key: 0}}).status == "Fail"


def test_metrics_leave_out_expected_nan(scene: Scene, run: Run) -> None:
    """With "nan": "any" other elements give the error, and a NaN against an expected number is an error."""
    scene.buffer("x", np.float32([1, np.nan, 7, 4]))
    metrics = {"rmse": {"max": 0.6}}
    expected = {"values": [1, "nan", "nan", 5], "dtype": "float32", "metrics": metrics}
    assert run(outputs={"x": expected}).status == "Fail"
    outcome = run(outputs={"x": {**expected, "nan": "any", "metrics": {"rmse": {"max": 1}}}})
    assert (outcome.status, outcome.outputs[0].metrics) == ("Pass", {"rmse": pytest.approx(2**-0.5)})
    assert run(outputs={"x": {**expected, "nan": "any"}}).status == "Fail"
    assert run(outputs={"x": {**expected, "nan": "any", "values": [1, 2, "nan", 4]}}).status == "Fail"


def test_captured_frames(doubled: Scene, run: Run) -> None:
    """Captured frames are compared by the names of their folders, in each iteration."""
    doubled.command("mark_boundary", resources=["x"], frame_id=7).dispatch("double", ["x"])
    for iteration in (0, 1):
        doubled.npy(f"expected/iteration_{iteration}/frame_7/x.npy", VALUES * 2)
    doubled.npy("expected/x.npy", VALUES * 4)
    assert run(repeat=2).status == "Pass"
    doubled.npy("expected/iteration_1/frame_7/x.npy", VALUES)
    doubled.npy("expected/x.npy", VALUES)
    outcome = run(repeat=2)
    assert [output.name for output in outcome.outputs if output.status == "Fail"] == ["iteration_1/frame_7/x", "x"]
    assert outcome.reason.startswith("iteration_1/frame_7/x: 4 of 4 elements")
    assert outcome.reason.endswith("(and 1 more output)")
    assert run(repeat=2, keep_state=True).status == "Fail"


def test_wrong_expectations_end_it_before_it_runs(doubled: Scene, run: Run) -> None:
    """The item is Missing, with all problems."""
    outcome = run(outputs={"y": {}, "x": {"file": "no.npy"}})
    assert (outcome.status, outcome.exit_code) == ("Missing", 3)
    assert [each["code"] for each in outcome.diagnostics] == ["SR-EXPECT-004", "SR-EXPECT-007"]
    assert "/outputs/y: 'y' is not an output of the scenario" in outcome.reason
    assert outcome.reason.endswith("(and 1 more)")
    assert run(output={}).diagnostics[0]["code"] == "SR-EXPECT-002"


def test_a_missing_scenario(tmp_path: Path, runners: Runners) -> None:
    """An item without its file is Missing, with the exit code of a run."""
    outcome = run_item(Item("i", str(tmp_path / "no.json")), runners)
    assert (outcome.status, outcome.exit_code) == ("Missing", 4)


def test_scenarios_that_are_wrong_on_purpose(doubled: Scene, run: Run) -> None:
    """The exit code and all codes of errors must be as expected, exactly."""
    doubled.dispatch("dubble", ["x"])
    assert run(exit_code=3).status == "Pass"
    assert run(codes="SR-REF-001") == run(exit_code=3, codes=["SR-REF-001"])
    assert [each["code"] for each in run(exit_code=3).diagnostics] == ["SR-REF-001"]
    outcome = run(exit_code=4)
    assert outcome.status == "Fail"
    assert outcome.reason.startswith("the run ended with 3, expected 4: ")
    outcome = run(codes=["SR-REF-001", "SR-REF-002"])
    assert outcome.reason.startswith("the run ended with the codes SR-REF-001, expected SR-REF-001, SR-REF-002: ")
    outcome = run(repeat=1)
    assert (outcome.status, outcome.exit_code) == ("Fail", 3)
    assert "dubble" in outcome.reason


def test_an_error_that_does_not_come(doubled: Scene, run: Run) -> None:
    """A successful run fails if an error is expected. A failed write of an output counts as the run's error."""
    assert run(exit_code=3).reason == "the run ended without an error, expected the exit code 3"
    assert run(codes="SR-REF-001").reason == "the run ended without an error, expected SR-REF-001"
    doubled.buffer("y", np.zeros(4, "u1"), dst="x.npy")  # which the scenario reads
    assert run(codes="SR-FILE-003").status == "Pass"


def test_needs(scene: Scene, run: Run, runners: Runners) -> None:
    """A missing feature is NotSupported, and a need without a shader that uses it is a failure."""
    device = runners.runner().physical_device.name
    outcome = run(needs={"extensions": ["VK_KHR_no", "VK_KHR_nothing"]})
    assert outcome.reason == f"{device!r} lacks the extension VK_KHR_no, the extension VK_KHR_nothing"
    outcome = run(needs={"extensions": "VK_KHR_swapchane"})
    assert outcome.reason == f"{device!r} lacks the extension VK_KHR_swapchane (did you mean 'VK_KHR_swapchain'?)"
    assert run(needs={"features": ["robustBufferAccess"]}).status == "Pass"
    outcome = run(needs="Int64")
    assert (outcome.status, outcome.reason) == ("Fail", "'needs' names the capability Int64, which no shader declares")


def test_a_refusal_that_needs_do_not_name(scene: Scene, run: Run, runners: Runners) -> None:
    """A device that lacks something is no failure, but for one where all that is named is there."""
    most = runners.runner().physical_device.limits.maxComputeWorkGroupCount[0]
    scene.shader("double", DOUBLE).buffer("x", VALUES).dispatch("double", ["x"], groups=[most + 1])
    outcome = run()
    assert (outcome.status, outcome.exit_code) == ("NotSupported", 6)
    outcome = run(needs={"features": "robustBufferAccess"})
    assert outcome.status == "Fail"
    assert outcome.reason.startswith("the device meets 'needs', but the run ended with: ")
    assert run(exit_code=6).status == "Pass"


def test_conditions(doubled: Scene, run: Run, runners: Runners) -> None:
    """Other bounds count on a device that matches."""
    type = runners.runner().physical_device.type
    other = "virtual" if type != "virtual" else "cpu"
    near = expected(values=[2.5, 4, 6, 8])
    assert run(outputs=near, when=[{"type": type, "outputs": {"x": {"atol": 1}}}]).status == "Pass"
    assert run(outputs=near, when=[{"type": other, "outputs": {"x": {"atol": 1}}}]).status == "Fail"
    changed = {"atol": 0.25, "allowed_count": 0}
    near["x"]["rtol"] = 1e-3
    outcome = run(outputs=near, when=[{"type": other}, {"type": type, "outputs": {"x": changed}}])
    assert outcome.reason.endswith("; allowed: atol 0.25 (when[1]), rtol 0.001")
    bounds = {"metrics": {"rmse": {"max": 0.1}}}
    outcome = run(outputs=near, when=[{"type": type, "outputs": {"x": bounds}}])
    assert "; rmse is 0.25, expected at most 0.1 (when[0])" in outcome.reason


def test_needs_that_are_a_minimum(scene: Scene, run: Run, runners: Runners) -> None:
    """With ``at_least`` another refusal is NotSupported, and the device is opened with the named features."""
    runner = runners.runner()
    most = runner.physical_device.limits.maxComputeWorkGroupCount[0]
    needs = {"features": "depthClamp", "extensions": "VK_EXT_depth_clip_enable", "at_least": True}
    scene.shader("double", DOUBLE).buffer("x", VALUES).dispatch("double", ["x"])
    assert run(needs=needs).status == "Pass"
    assert runner._objects is not None
    enabled = runner._objects.device.enabled
    assert "depthClamp" in {feature.member for feature in enabled.features}
    assert "VK_EXT_depth_clip_enable" in enabled.extensions
    scene.commands[0]["dispatch_compute"]["rangeND"] = [most + 1]
    assert (run(needs=needs).status, run(needs=needs).exit_code) == ("NotSupported", 6)
    assert run(needs={**needs, "at_least": False}).status == "Fail"
    scene.commands.clear()
    assert run(needs="Shader").status == "Fail"  # no shader declares it
    assert run(needs={"capabilities": "Shader", "at_least": True}).status == "Pass"


def test_expected_failures(doubled: Scene, run: Run, runners: Runners) -> None:
    """A Fail and a Pass know the reason. An error that must come, and an item that cannot run, do not."""
    wrong = run(outputs=expected(values=0), expected_fail="XFAIL: a bug")
    assert (wrong.status, wrong.expected_fail) == ("Fail", "XFAIL: a bug")
    assert wrong.reason.startswith("expected to fail: XFAIL: a bug (x: 4 of 4 elements (100 %) are wrong at [3]: ")
    right = run(outputs=expected(), expected_fail="XFAIL: a bug")
    assert (right.status, right.reason) == ("Pass", "expected to fail: XFAIL: a bug")
    type = runners.runner().physical_device.type
    here = run(outputs=expected(), expected_fail="all", when=[{"type": type, "expected_fail": "this type"}])
    assert here.expected_fail == "this type"
    skipped = run(expected_fail="all", when=[{"type": type, "not_supported": "no such device"}])
    assert (skipped.status, skipped.reason, skipped.expected_fail) == ("NotSupported", "no such device", "")
    doubled.dispatch("dubble", ["x"])
    assert run(expected_fail="all", exit_code=3) == run(exit_code=3)
    assert run(expected_fail="all", exit_code=4).expected_fail == ""
    assert run(expected_fail="all").expected_fail == "all"


def test_a_run_that_does_not_end(scene: Scene, run: Run) -> None:
    """The limit of an item ends the wait for the device; the next item runs on a device that is opened anew."""
    busy = "for (uint i = 0; i < 20000; i++) { x[0] = x[0] * 1.0001 + float(i & 3u); }"
    scene.shader("busy", glsl(busy, "layout(set=0,binding=0) volatile buffer X { float x[]; };"))
    scene.buffer("x", VALUES).dispatch("busy", ["x"], groups=[65535])
    outcome = run(timeout=0.1)
    assert (outcome.status, outcome.exit_code) == ("Timeout", 10)
    assert outcome.reason.endswith(" did not finish within 0.1 s ('timeout' in check.json)")
    outcome = run(timeout=60, when=[{"type": "virtual", "timeout": 50}, {"device": "*", "timeout": 0.1}])
    assert outcome.reason.endswith(" did not finish within 0.1 s ('timeout' in when[1] of check.json)")
    scene.commands.clear()
    assert run(repeat=1).status == "Pass"


def test_robustness_has_a_device_of_its_own(doubled: Scene, run: Run) -> None:
    """The robust device and the default device both stay open from item to item."""
    assert run(robustness=True, outputs=expected()).status == "Pass"
    assert run(outputs=expected()).status == "Pass"


def test_outputs_that_come_in_pieces(scene: Scene, shader_cache: Path) -> None:
    """Through staging memory, a large output is compared as a whole, also between small ones."""
    size = (16 << 20) + 4096
    scene.buffer("a", VALUES).buffer("large", size=size).buffer("b", VALUES)
    keys = {"values": 0, "dtype": "float32"}
    small = {"values": VALUES.tolist(), "dtype": "float32"}
    check = scene.file("check.json", json.dumps({"outputs": {"a": small, "large": keys, "b": small}}))
    runners = Runners({"staging": True}, 60)
    item = Item("i", str(scene.write()), str(check))
    assert [each.status for each in run_item(item, runners).outputs] == ["Pass"] * 3
    check.write_text(json.dumps({"outputs": {"a": small, "large": keys | {"values": 1}, "b": small}}))
    outcome = run_item(item, runners)
    assert outcome.reason.startswith(f"large: {size // 4} of {size // 4} elements (100 %) are wrong at [0]: 0.0 (0x0")
    runners.close()


def test_warnings_are_among_the_diagnostics(doubled: Scene, run: Run) -> None:
    """Warnings are diagnostics, and do not change the status."""
    doubled.resources[1]["buffer"]["format"] = "VK_FORMAT_R32_SFLOAT"
    outcome = run(outputs=expected())
    assert (outcome.status, [each["code"] for each in outcome.diagnostics]) == ("Pass", ["SR-JSON-010"])


def test_results_that_cannot_be_written(doubled: Scene, run: Run) -> None:
    """The verdict stands without the files, and says why there are none."""
    doubled.file("results", "a file in the place of the folder")
    outcome = run(outputs=expected(values=0))
    assert outcome.outputs[0].files == {}
    assert "(files about it could not be written: " in outcome.outputs[0].message


def test_in_a_sandbox(doubled: Scene, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The folder of the results may lie outside; a file that is expected may not."""
    doubled.npy("expected/x.npy", VALUES)
    path, results = str(doubled.write()), tmp_path_factory.mktemp("results")
    runners = Runners({"sandbox": True}, 60)
    outcome = run_item(Item("item", path), runners, EvaluationOptions(str(results)))
    assert (outcome.status, len(outcome.outputs[0].files)) == ("Fail", 3)
    assert (results / "item" / "x.actual.npy").is_file()
    (doubled.folder / "expected/x.npy").unlink()
    doubled.npy("../outside.npy", VALUES)
    check = doubled.file("check.json", json.dumps({"outputs": {"x": {"file": "../outside.npy"}}}))
    outcome = run_item(Item("item", path, str(check)), runners)
    assert (outcome.status, outcome.exit_code) == ("Fail", 14)
    runners.close()


@pytest.mark.parametrize(
    "id, folder",
    [
        ("a/b c/d.json", "a/b c/d.json"),
        ("/abs/x", "abs/x"),
        ("../up", "__~"),
        ("a\x1b[31m/b", "a__31m~"),
        ("", "_"),
        ("x" * 300, "x" * 60 + "~"),
    ],
)
def test_folders_of_items(id: str, folder: str) -> None:
    """No id leads out of the folder of the results."""
    found = item_folder(id)
    assert found.startswith(folder)
    assert not Path(found).is_absolute()
    assert ".." not in Path(found).parts

"""The Python API: Runner and Result."""

import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy
import pytest

import scenario_runner
from scenario_runner import Runner
from scenario_runner.errors import FileError, NoDeviceError, UsageError
from scenario_runner.scenario import (
    Binding,
    Buffer,
    DispatchCompute,
    MarkBoundary,
    RawData,
    Scenario,
    Shader,
    SpecializationConstant,
)
from tests.program import run_python
from tests.scenes import ADD, Scene, assemble, error_of, glsl, kernel

TWO = "layout(binding = 0) buffer A { float a[]; };\nlayout(binding = 1) buffer B { float b[]; };\n"
SCALE = glsl(
    "uint i = gl_WorkGroupID.x; b[i] = a[i] * factor + p.shift;",
    TWO + "layout(constant_id = 0) const float factor = 1.0;\nlayout(push_constant) uniform P { float shift; } p;\n",
)

NO_ARRAY = ", expected a NumPy array, an object with __array__ or __dlpack__ (tensors of PyTorch and JAX), or bytes"


def in_code(x: Any, factor: float, shift: float) -> Scenario:
    """A scenario without any file: y = x * factor + shift."""
    return Scenario(
        resources=[
            Shader(
                uid="scale",
                source=SCALE,
                push_constants_size=4,
                specialization_constants=[SpecializationConstant(id=0, value=factor)],
            ),
            Buffer(uid="x", size=16, shader_access="readonly", data=x),
            Buffer(uid="y", size=16, shader_access="writeonly"),
            RawData(uid="shift", data=numpy.float32(shift)),
        ],
        commands=[
            DispatchCompute(
                shader_ref="scale",
                bindings=[Binding(set=0, id=0, resource_ref="x"), Binding(set=0, id=1, resource_ref="y")],
                rangeND=[4],
                push_data_ref="shift",
            ),
            MarkBoundary(resources=["y"]),
        ],
    )


def test_scenario_built_in_code(runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scenario built from the models runs with arrays as inputs, and leaves no files."""
    monkeypatch.chdir(tmp_path)
    x = numpy.array([1, 2, 3, 4], numpy.float32)
    result = runner.run(in_code(x, 2.5, 0.5))
    assert sorted(result) == ["y"]
    assert (result.array("y", "f4") == x * 2.5 + 0.5).all()
    assert result["y"].dtype == numpy.float32
    assert result["y"].shape == (4,)
    assert result.array("y").shape == (16,)
    assert (result.array("y", "f4", (2, 2)) == (x * 2.5 + 0.5).reshape(2, 2)).all()
    assert (result.frames[0].array("y", "f4") == x * 2.5 + 0.5).all()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "given",
    [
        numpy.array([1, -2, 3.5, 4], "<f4"),
        numpy.array([1, -2, 3.5, 4], ">f4"),
        numpy.asfortranarray(numpy.array([[1, -2], [3.5, 4]], ">f4")),
        numpy.array([1, 0, -2, 0, 3.5, 0, 4, 0], "<f4")[::2],
        bytearray(numpy.array([1, -2, 3.5, 4], "<f4").tobytes()),
        memoryview(numpy.array([1, -2, 3.5, 4], "<f4")),
    ],
)
def test_kinds_of_inputs(runner: Runner, given: Any) -> None:
    """Arrays of any byte order and memory order, and bytes, are inputs; ``inputs`` replace content of the scenario."""
    scenario = in_code(numpy.zeros(4, numpy.float32), 1, 0)
    assert runner.run(scenario, {"x": given}).array("y", "f4").tolist() == [1, -2, 3.5, 4]


@pytest.mark.parametrize(
    "inputs, message",
    [
        ({"z": b""}, "inputs: no resource has the uid 'z'; there are 'scale', 'x', 'y', 'shift'"),
        ({"scale": b""}, "inputs: 'scale' is a shader, which has none"),
        ({"x": numpy.zeros(5, numpy.float32)}, "buffer 'x' has 16 bytes, but the array given for it holds 20"),
        ({"x": [1, 2, 3, 4]}, "input 'x' is a list" + NO_ARRAY),
        ({"x": numpy.array([1, "a", None, 4], object)}, "input 'x' is an array of Python objects, expected numbers"),
    ],
)
def test_inputs_that_do_not_fit(runner: Runner, inputs: dict[str, Any], message: str) -> None:
    """An input of the wrong name, size or kind is a UsageError that says so."""
    assert error_of(UsageError, runner.run, in_code(bytes(16), 1, 0), inputs).problems[0].message == message


def test_outputs_are_chosen(runner: Runner) -> None:
    """``outputs`` names the returned resources, and a name without content is a UsageError."""
    scenario = in_code(numpy.arange(4, dtype=numpy.float32), 1, 1)
    result = runner.run(scenario, outputs=["x"])
    assert sorted(result) == ["x"]
    assert result.array("x", "f4").tolist() == [0, 1, 2, 3]
    for name, reason in (("q", "no resource has the uid 'q'"), ("shift", "'shift' is a raw_data, which has none")):
        with pytest.raises(UsageError, match=f"^outputs: {reason}"):
            runner.run(scenario, outputs=[name])
    with pytest.raises(KeyError, match=r"'y' was not read back"):
        result["y"]


def test_files_are_written_on_request(runner: Runner, scene: Scene, tmp_path: Path) -> None:
    """``dst`` is written beside the scenario, or below output_dir, or not at all."""
    path = scene.buffer("x", numpy.array([1, 2], numpy.uint8)).write()
    runner.run(path, write_files=False)
    assert not (tmp_path / "x.out.npy").exists()
    runner.run(path, output_dir=tmp_path / "elsewhere")
    assert not (tmp_path / "x.out.npy").exists()
    assert numpy.load(tmp_path / "elsewhere" / "x.out.npy").tolist() == [1, 2]
    assert runner.run(path)["x"].tolist() == [1, 2]
    assert scene.output("x").tolist() == [1, 2]


def test_results_outlive_the_runner() -> None:
    """Results are copies: they stay valid, and writable, when the Runner is closed."""
    with Runner() as runner:
        result = runner.run(in_code(numpy.ones(4, numpy.float32), 2, 1))
    array = result.array("y", "f4")
    assert array.tolist() == [3] * 4
    array[0] = 7
    assert result.array("y", "f4").tolist() == [7, 3, 3, 3]


@pytest.mark.parametrize("staging", [False, True])
def test_close_and_go_on(staging: bool) -> None:
    """Closing twice does nothing, nothing stays alive, and a closed Runner opens its device anew."""
    runner = Runner(staging=staging)
    runner.close()
    assert runner.live_objects == {}
    for _ in range(2):
        assert runner.run(in_code(numpy.ones(4, numpy.float32), 2, 1)).array("y", "f4").tolist() == [3] * 4
        assert runner.live_objects["pipeline"] == 1
        assert runner.live_objects["buffer"] == runner.live_objects.get("memory", 0) == 0
        assert runner.live_objects.get("staging buffer", 0) == 1 or not staging
        runner.close()
        runner.close()
        assert not any(runner.live_objects.values())


def test_a_device_is_opened_anew_for_new_needs(scene: Scene, shader_cache: Path) -> None:
    """A scenario that needs features beyond those enabled gets them, and earlier ones still run."""
    doubles = glsl("a[0] = a[0] * 2.0lf;", "layout(binding = 0) buffer A { double a[]; };\n")
    scene.shader("s", doubles).buffer("x", numpy.array([0.1])).dispatch("s", ["x"])
    path = scene.write()
    with Runner() as runner:
        for _ in range(2):
            assert runner.run(in_code(numpy.ones(4, numpy.float32), 2, 1)).array("y", "f4").tolist() == [3] * 4
            assert runner.run(path).array("x", "f8").tolist() == [0.2]
    assert not any(runner.live_objects.values())


def test_nothing_stays_alive_after_a_failure(runner: Runner, scene: Scene) -> None:
    """A run that fails half-way releases all its objects."""
    runner.run(in_code(numpy.ones(4, numpy.float32), 2, 1))
    before = runner.live_objects
    (scene.folder / "folder").mkdir()
    path = scene.buffer("x", size=16).buffer("y", size=16, dst="folder").write()
    for _ in range(3):
        with pytest.raises(FileError, match=r"folder: is a folder, expected the name of a file to write$"):
            runner.run(path)
    assert runner.live_objects == before
    assert list(scene.folder.glob("*.out.npy")) == []


def test_source_that_vanishes_while_running(scene: Scene, shader_cache: Path) -> None:
    """A file that changes between planning and reading is a FileError, and nothing is written or left alive."""
    path = scene.buffer("x", numpy.zeros(4, numpy.uint32)).buffer("y", size=4).write()
    with Runner() as runner:
        plan = runner.plan(path)
        (scene.folder / "x.npy").write_bytes(b"something else")
        source = plan.resources["x"].source
        assert source is not None
        with pytest.raises(FileError):
            source.read_into(memoryview(bytearray(16)))
        with pytest.raises(FileError):
            runner.run(path)
    assert list(scene.folder.glob("*.out.npy")) == []


def test_unknown_device() -> None:
    """A Runner for a device that does not exist raises when it runs, and closes."""
    with Runner(device="no such device") as runner, pytest.raises(NoDeviceError, match="no such device"):
        runner.run(Scenario())


def test_spirv_source_in_code(runner: Runner) -> None:
    """A shader may be SPIR-V bytes; text for SPIR-V is an error of ours."""
    code = assemble(kernel())
    dispatch = DispatchCompute(shader_ref="s", bindings=[], rangeND=[1])
    runner.run(Scenario(resources=[Shader(uid="s", source=code)], commands=[dispatch]))
    for source, kind in (("OpNop", "SPIR-V"), (b"\xff\xfe void main", "GLSL"), ("void \ud800", "GLSL")):
        scenario = Scenario(resources=[Shader(uid="s", source=source, type=kind)], commands=[dispatch])
        with pytest.raises(scenario_runner.ScenarioRunnerError):
            runner.run(scenario)


def test_robustness(shader_cache: Path) -> None:
    """With robust access a shader that writes beyond its buffer changes nothing else."""
    text = glsl("a[gl_WorkGroupID.x * 1000u] = 7u;", "layout(binding = 0) buffer A { uint a[]; };\n")
    x = numpy.zeros(4, numpy.uint32)
    scenario = Scenario(
        resources=[Shader(uid="s", source=text), Buffer(uid="x", size=16, shader_access="readwrite", data=x)],
        commands=[DispatchCompute(shader_ref="s", bindings=[Binding(set=0, id=0, resource_ref="x")], rangeND=[100])],
    )
    with Runner(robustness=True) as runner:
        assert runner.run(scenario).array("x", "u4").tolist() == [7, 0, 0, 0]


def test_public_names() -> None:
    """The package's public names are there; another one is an AttributeError."""
    assert set(scenario_runner.__all__) <= set(dir(scenario_runner))
    for name in scenario_runner.__all__:
        assert getattr(scenario_runner, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'Runer'"):
        scenario_runner.Runer  # noqa: B018


def test_public_names_of_a_runner() -> None:
    """A Runner has only its documented public names."""
    methods = {"close", "plan", "prepare", "release", "run", "run_into", "run_to_files"}
    facts = {"device_name", "frame_captures", "live_objects", "physical_device", "printed", "validation_messages"}
    settings = {"also_enabled", "compiler", "renderdoc", "sandbox", "strict", "timeout_s"}
    assert {name for name in dir(Runner()) if not name.startswith("_")} == methods | facts | settings


def test_results_have_the_type_of_the_shader(scene: Scene) -> None:
    """A buffer has the number type in the shader, and int8 where shaders give several types. `array` gives bytes."""
    both = "layout(binding = 0) buffer F { float f[]; };\nlayout(binding = 0) buffer U { uint u[]; };"
    scene.shader("half", glsl("f[0] = 0.5;", "layout(binding = 0) buffer B { float f[]; };"))
    scene.shader("two", glsl("u[1] = floatBitsToUint(f[0]);", both)).buffer("x", size=8).buffer("y", size=8)
    scene.buffer("odd", size=6).dispatch("half", ["x"], [1]).dispatch("two", ["y"], [1]).dispatch("half", ["odd"], [1])
    with Runner() as runner:
        assert runner.device_name is None
        for result in (runner.run(scene.write()), runner.prepare(scene.write()).run()):
            assert (result["x"].dtype, result["x"].tolist()) == (numpy.float32, [0.5, 0.0])
            assert (result["y"].dtype, result["y"].shape) == (numpy.int8, (8,))
            assert (result["odd"].dtype, result["odd"].shape) == (numpy.int8, (6,))
            assert result.array("x").tobytes() == numpy.float32([0.5, 0]).tobytes()
        assert runner.device_name == runner.physical_device.name


def test_data_in_code_writes_no_file(scene: Scene) -> None:
    """A scenario given in code writes files only with an output folder, or where the call asks for them."""
    scene.shader("add", ADD).buffer("x", size=16, dst="x.npy").dispatch("add", ["x"], [4])
    tree = json.loads(scene.write().read_text())
    tree["resources"][0]["shader"]["src"] = str(scene.folder / "add.comp")
    with Runner() as runner, chdir(scene.folder):
        assert runner.run(tree)["x"].tolist() == [1, 1, 1, 1]
        runner.prepare(tree).run()
        assert not (scene.folder / "x.npy").exists()
        runner.run(tree, output_dir="out")
        assert (scene.folder / "out" / "x.npy").exists()
        runner.run(tree, write_files=True)
        assert (scene.folder / "x.npy").exists()


def test_devices_checks_and_suites(scene: Scene) -> None:
    """The devices, the findings about a file, and the results of a suite come from the top level."""
    (default,) = [device for device in scenario_runner.devices() if device.is_default]
    with Runner() as runner:
        assert (default.index, default.name) == (runner.physical_device.index, runner.physical_device.name)
    scene.shader("add", ADD).buffer("x", size=16).dispatch("add", ["x"], [4])
    path = scene.write()
    assert scenario_runner.validate(path) == (str(path), (), 2, 1, 0)
    scene.file("broken.json", '{"resources": [], "commands": 1}')
    assert [one.code for one in scenario_runner.validate(scene.folder / "broken.json").findings] == ["SR-JSON-005"]
    scene.file("check.json", '{"outputs": {"x": {"values": [1, 1, 1, 2], "dtype": "uint32"}}}')
    suite = scenario_runner.test(str(path), root=str(scene.folder), jobs=1, retries=0)
    assert (suite.passed, suite.exit_code) == (False, 1)
    assert {name: result.verdict for name, result in suite.results.items()} == {"scenario.json": "Fail"}
    assert "suite failed: 1 of 1 item" in suite.output
    with pytest.raises(UsageError, match="unrecognized arguments: --jops"):
        scenario_runner.test(str(path), jops=1)


def test_every_error_names_its_scenario(scene: Scene, fault_layer: dict[str, str]) -> None:
    """An error of the driver, which no place of the file is at fault for, begins with the file, in Python too."""
    path = scene.buffer("x", size=4).write()
    code = """
import sys
from scenario_runner import Runner, ScenarioRunnerError, load
with Runner() as runner:
    for scenario in (sys.argv[1], load(sys.argv[1])):
        for call in (runner.run, runner.run_to_files, lambda one: runner.prepare(one).run()):
            try:
                call(scenario)
            except ScenarioRunnerError as error:
                print(error)
"""
    fault = {**fault_layer, "FAULT_CALL": "vkCreateDevice", "FAULT_AT": "1", "FAULT_RESULT": "-3", "FAULT_STAYS": "1"}
    lines = run_python(code, path, env=fault).splitlines()
    assert len(lines) == 6
    assert all(line.startswith(f"{path}: vkCreateDevice failed with ") for line in lines)

"""The validation layer, and features that a device enables together."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from scenario_runner import Runner, convert
from scenario_runner.errors import FenceTimeoutError, UnsupportedError, ValidationLayerError
from scenario_runner.plan.records import Requirements
from scenario_runner.plan.resolve import resolve
from scenario_runner.scenario.loader import load
from scenario_runner.vulkan._generated.extensions import DEPENDENCIES
from scenario_runner.vulkan._generated.spirv_requirements import CAPABILITIES, EXTENSIONS
from scenario_runner.vulkan.capabilities import Enabled, dependent_extensions, enabled_for
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.instance import Instance, choose
from scenario_runner.vulkan.physical_device import Feature, MatrixSizes, PhysicalDevice, missing_matrices
from scenario_runner.vulkan.pipeline import robustness_behaviours
from tests.left_out import DXC_LIBRARY, VGF_LIBRARY, needs
from tests.ml.make_fixtures import Graph, tensor
from tests.program import Program
from tests.scenes import Scene, assemble, error_of, glsl, kernel

# A hazard is an error to the layer, and the only one that a scenario can bring about, since everything else is refused
# before it reaches Vulkan.
PAIR = "layout(binding = 0) buffer A { uint a[]; };\nlayout(binding = 1) buffer B { uint b[]; };\n"


@pytest.fixture
def hazard(scene: Scene, validation: bool) -> Path:
    """Add two dispatches on one buffer without a barrier between the write and the read."""
    assert validation, "this test needs the package vulkan-validationlayers"
    scene.shader("copy", glsl("b[gl_WorkGroupID.x] = a[gl_WorkGroupID.x];", PAIR))
    scene.buffer("x", np.array([1, 2, 3, 4], np.uint32), dst=None).buffer("y", size=16, dst=None)
    scene.buffer("z", size=16)
    scene.dispatch("copy", ["x", "y"], [4], implicit_barrier=False).dispatch("copy", ["y", "z"], [4])
    return scene.write()


@pytest.fixture
def clean(scene: Scene, hazard: Path) -> Path:
    """The same with the barrier."""
    scene.commands[0]["dispatch_compute"]["implicit_barrier"] = True
    return scene.write("clean.json")


def test_errors_of_the_layer_fail_the_run(scene: Scene, hazard: Path, clean: Path, program: Program) -> None:
    """The message is shown as an error with the command and the resource that caused it, the exit code is 13, nothing
    is written, and other scenarios still run."""
    before = sorted(path.name for path in scene.folder.iterdir())
    done = program("--validation-sync", hazard.name, clean.name, "--output", "out", "--folder-each", exit_code=13)
    assert re.search(r"^error: validation layer: /commands/1: .*'y'.*READ.AFTER.WRITE", done.err, re.MULTILINE)
    place = r"^error: scenario.json:\d+:\d+: /commands/1: the validation layer reported an error: "
    end = r".*(?:prior_usage: |hazard detected.* command\. +\[SR-DEVICE-007\]$)"  # of layers of 2022 and 2025
    assert re.search(place + end, done.err, re.MULTILINE), "the message is whole"
    assert "help: --validation-report" in done.err
    assert [line.partition(": ")[0] for line in done.out.splitlines()] == ["clean.json"]
    assert program("--validation-sync", hazard.name).code == 13
    assert sorted(path.name for path in scene.folder.iterdir()) == sorted([*before, "out"])
    assert [path.name for path in (scene.folder / "out").iterdir()] == ["clean"]


def test_hazards_are_looked_for_on_request(hazard: Path, clean: Path, program: Program) -> None:
    """--validation-sync finds the hazard that --validation does not look for; with --validation-report the messages are
    the same and the run succeeds."""
    assert program("--validation", hazard.name).code == 0
    assert program("--validation-sync", clean.name).code == 0
    done = program("--validation-sync", "--validation-report", hazard.name, exit_code=0)
    assert re.search(r"READ.AFTER.WRITE", done.err)
    assert done.out.startswith("scenario.json: ok: ")


def test_runner_raises_for_every_run(hazard: Path, clean: Path) -> None:
    """In Python each run raises, however often the layer has said so before; a clean run between them succeeds."""
    with Runner(validation=True, sync_validation=True) as runner:
        for _ in range(12):  # the layer repeats a message ten times in the life of an instance
            with pytest.raises(ValidationLayerError, match=r"READ.AFTER.WRITE"):
                runner.run(hazard, write_files=False)
        assert runner.run(clean, write_files=False)["z"].view(np.uint32).tolist() == [1, 2, 3, 4]
    assert not any(runner.live_objects.values())


def test_runner_that_reports_keeps_the_messages(hazard: Path) -> None:
    """With validation="report" the result is returned, and validation_messages holds the messages."""
    with Runner(validation="report", sync_validation=True) as runner:
        runner.run(hazard, write_files=False)
        assert any("READ_AFTER_WRITE" in message for message in runner.validation_messages)


def test_errors_before_a_loss_fail_no_later_run(hazard: Path, clean: Path) -> None:
    """A message of the layer before a timeout is not raised by the next run, which opens the device again."""
    with Runner(validation=True, sync_validation=True, timeout_s=0) as runner:
        with pytest.raises((FenceTimeoutError, ValidationLayerError)):  # the latter where the device was as fast
            runner.run(hazard, write_files=False)
        runner.timeout_s = None
        assert runner.run(clean, write_files=False)["z"].view(np.uint32).tolist() == [1, 2, 3, 4]


@needs(VGF_LIBRARY)
def test_messages_about_the_emulation_layers(tmp_path: Path, validation: bool) -> None:
    """The wrong pipeline layout of the layers' transpose gives no message, since no scenario can mend it."""
    graph = Graph()
    graph.add("transpose", [graph.input((2, 3), "f32")], tensor((3, 2), "f32"), "perms = array<i32: 1, 0>")
    (tmp_path / "model.mlir").write_text(graph.text())
    convert(tmp_path / "model.mlir", tmp_path / "model.vgf")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with Runner(validation=validation, timeout_s=60) as runner:
        assert (runner.run(tmp_path / "model.vgf", x)["r0"] == x.T).all()
        assert runner.validation_messages == []


ROBUSTNESS2 = "VkPhysicalDeviceRobustness2FeaturesKHR"


@pytest.fixture(scope="module")
def instance(validation: bool) -> Iterator[Instance]:
    instance = Instance(validation=validation)
    yield instance
    instance.close()


@pytest.fixture(scope="module")
def physical(instance: Instance) -> PhysicalDevice:
    return choose(instance.physical_devices, None)


def _enabled(physical: PhysicalDevice, **requirements: str) -> Enabled | None:
    """Return the opened features for one capability or extension, or None where the device lacks it."""
    needed = {kind: {name: "a shader"} for kind, name in requirements.items()}
    try:
        return enabled_for(physical, Requirements(**{"capabilities": {}, "spirv_extensions": {}, **needed}))
    except UnsupportedError:
        return None


def test_device_opens_cleanly_for_every_capability_and_extension_of_spirv(
    instance: Instance, physical: PhysicalDevice
) -> None:
    """The validation layer has nothing to say about any combination of features that one declaration leads to."""
    wanted = {f"capability {name}": _enabled(physical, capabilities=name) for name in CAPABILITIES}
    wanted |= {f"extension {name}": _enabled(physical, spirv_extensions=name) for name in EXTENSIONS}
    opened = set()
    for name, enabled in wanted.items():
        if enabled is None or (enabled.features, enabled.extensions) in opened:
            continue
        opened.add((enabled.features, enabled.extensions))
        Device(instance, physical, enabled).close()
        assert instance.validation_messages == [], name
    assert len(opened) > 10


def test_variable_pointers_bring_those_of_storage_buffers(physical: PhysicalDevice) -> None:
    """VUID-VkPhysicalDeviceVariablePointersFeatures-variablePointers-01431."""
    enabled = _enabled(physical, capabilities="VariablePointers")
    assert enabled is not None
    assert {feature.member for feature in enabled.features} == {"variablePointers", "variablePointersStorageBuffer"}


def test_extension_whose_dependency_is_disabled_is_refused(physical: PhysicalDevice) -> None:
    """--disable-extension leaves no device that is opened in a way that Vulkan forbids."""
    has = set(physical.extensions)
    needed, depends = next(  # an extension of this device that depends on one other, which depends on nothing
        (name, alternatives[0][0])
        for name, alternatives in DEPENDENCIES.items()
        if name in has
        and len(alternatives) == len(alternatives[0]) == 1
        and alternatives[0][0] in has - DEPENDENCIES.keys()
    )
    assert dependent_extensions(physical, {needed}, ()) == ({needed, depends}, [])
    _, problems = dependent_extensions(physical, {needed}, {depends})
    assert [str(problem) for problem in problems] == [f"the extension {needed} depends on {depends}, which is disabled"]


def test_reads_beyond_the_end_give_what_the_specification_says(
    validation: bool, shader_cache: Path, checkout: Path
) -> None:
    """Reads beyond buffers and images give 0 or something of the same buffer; with robustness2 exactly 0."""
    scenario = checkout / "scenarios" / "robustness" / "out_of_bounds_reads" / "scenario.json"
    with Runner(validation=validation, robustness=True) as runner:
        result = runner.run(scenario, outputs=["allowed", "zeros"], write_files=False)
        features = runner.physical_device.features
        exact = all(features.find(ROBUSTNESS2, f"robust{what}Access2") is not None for what in ("Buffer", "Image"))
        assert runner.validation_messages == []
    assert result["allowed"].view(np.uint32).tolist() == [7] * 64
    if exact:
        assert not result["zeros"].view(np.uint32).any()


def test_the_device_is_opened_with_all_the_robustness_it_has(physical: PhysicalDevice) -> None:
    """Each of the features is enabled if, and only if, it is asked for and the driver reports it."""
    features = (
        ("VkPhysicalDeviceFeatures", "robustBufferAccess"),
        (ROBUSTNESS2, "robustBufferAccess2"),
        (ROBUSTNESS2, "robustImageAccess2"),
        ("VkPhysicalDeviceImageRobustnessFeatures", "robustImageAccess"),
        ("VkPhysicalDevicePipelineRobustnessFeatures", "pipelineRobustness"),
    )
    reported = {member for structure, member in features if physical.features.find(structure, member) is not None}
    enabled = enabled_for(physical, Requirements({}, {}), robustness=True)
    assert {feature.member for feature in enabled.features} == reported
    assert not enabled_for(physical, Requirements({}, {})).features


def test_pipelines_ask_for_the_strictest_behaviour() -> None:
    """The behaviour of a pipeline follows from the opened features; without the feature there is none."""

    def of(*members: str) -> tuple[int, int] | None:
        return robustness_behaviours([Feature("", member) for member in members])

    assert of("robustBufferAccess", "robustBufferAccess2") is None
    assert of("pipelineRobustness", "robustBufferAccess") == (2, 0)
    assert of("pipelineRobustness", "robustBufferAccess", "robustImageAccess") == (2, 2)
    assert of("pipelineRobustness", "robustBufferAccess2", "robustImageAccess", "robustImageAccess2") == (3, 3)


HLSL = """
cbuffer Uniforms : register(b1) { half added; };
struct Element { half part; float result; };
RWStructuredBuffer<Element> elements : register(u0);
[numthreads(1, 1, 1)] void main() { elements[0].result = (float)elements[0].part + (float)added; }
"""
GLSL = glsl(
    "result = float(part) + float(added);",
    "#extension GL_EXT_shader_explicit_arithmetic_types : require\n#extension GL_EXT_shader_16bit_storage : require\n"
    "#extension GL_EXT_shader_8bit_storage : require\nlayout(binding = 1) uniform Uniforms { half added; };\n"
    "layout(binding = 0, std430) buffer Element { half part; float result; };",
)


@needs(DXC_LIBRARY, "HLSL")
@pytest.mark.parametrize("language, text", [("HLSL", HLSL), ("GLSL", GLSL)])
@pytest.mark.parametrize("type", ["float16_t", "int16_t", "uint16_t"])
def test_small_types_in_uniform_and_storage_buffers(
    runner: Runner, scene: Scene, language: str, text: str, type: str
) -> None:
    """Both features are enabled, although compilers declare one capability for both kinds of buffers."""
    scene.file("s.txt", text.replace("half", type))
    scene.resource("shader", uid="s", src="s.txt", type=language)
    dtype = {"float16_t": np.float16, "int16_t": np.int16, "uint16_t": np.uint16}[type]
    scene.buffer("part", np.frombuffer(np.array([3, 0, 0, 0], dtype).tobytes(), np.uint8), dst="part.out.npy")
    scene.buffer("added", np.frombuffer(np.array([4] + [0] * 7, dtype).tobytes(), np.uint8))
    result = runner.run(scene.dispatch("s", ["part", "added"]).write(), outputs=["part"])["part"]
    assert result.view(np.float32)[1] == 7


MATRICES = Path(__file__).resolve().parents[2] / "scenarios" / "shader_features" / "cooperative_matrix"
HALF = ("float16", "float16", "float32", "float32")


@pytest.mark.parametrize(
    "supported, missing",
    [
        ([MatrixSizes((16, 16, 16), HALF, 3, False)], ""),
        ([MatrixSizes((8, 8, 8), HALF, 3, False, is_flexible=True)], ""),
        ([MatrixSizes((8, 8, 8), HALF, 3, False)], "A of 16 x 16 float16, B of 16 x 16 float16, an accumulator of"),
        ([MatrixSizes((16, 16, 16), HALF, 3, False, invocations=32)], ""),
        ([MatrixSizes((16, 16, 16), HALF, 3, False, invocations=64)], "A of 16 x 16 float16, B of 16 x 16 float16, an"),
        ([MatrixSizes((16, 16, 16), HALF, 2, False)], "A of 16 x 16 float16, B of 16 x 16 float16, an accumulator of"),
        ([MatrixSizes((16, 16, 16), HALF, 3, True)], "a product of 16 x 16 x 16 (float16, float16, float32, float32);"),
        ([MatrixSizes((16, 16, 16), ("float16",) * 4, 3, False)], "an accumulator of 16 x 16 float32, a product of"),
    ],
)
def test_cooperative_matrices_are_compared_with_what_a_device_has(supported: list[MatrixSizes], missing: str) -> None:
    """Sizes, types, scope and saturation are compared, and an error lists the device's own combinations."""
    matrices = resolve(load(MATRICES / "scenario.json")).requirements.matrices
    found = missing_matrices(matrices["cooperative_matrix"], supported)
    assert found.startswith(missing)
    assert bool(found) == bool(missing)
    assert not missing or found.endswith(f"; of M x N x K (A, B, C, result) it supports {supported[0]}")


def test_cooperative_matrices_of_this_device(validation: bool, shader_cache: Path) -> None:
    """A device without flexible sizes refuses missing sizes, and the validation layer accepts the others."""
    with Runner(validation=validation, disabled_extensions="VK_NV_cooperative_matrix2") as runner:
        physical = runner.physical_device
        sizes = [each for each in physical.matrices or () if not each.features]
        if any(each.sizes == (16, 16, 16) and each.components == HALF for each in sizes):
            runner.run(MATRICES / "scenario.json", write_files=False)
            return
        error = error_of(UnsupportedError, runner.run, MATRICES / "scenario.json", write_files=False)
        assert all(str(each) in str(error) for each in sizes)


@pytest.mark.parametrize("minor", [5, 6])
def test_cooperative_matrices_before_spirv_1_6_take_full_subgroups(tmp_path: Path, minor: int) -> None:
    """Pipelines with cooperative matrices before SPIR-V 1.6 ask for full subgroups
    (VUID-RuntimeSpirv-OpTypeCooperativeMatrixKHR-10770)."""
    folder = shutil.copytree(MATRICES, tmp_path / "matrices")
    code = bytearray((folder / "cooperative_matrix.spv").read_bytes())
    code[4:8] = (0, minor, 1, 0)
    (folder / "cooperative_matrix.spv").write_bytes(code)
    plan = resolve(load(folder / "scenario.json"))
    members = {feature.member for feature in plan.requirements.features}
    assert plan.pipelines[0].full_subgroups == ("computeFullSubgroups" in members) == (minor < 6)


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("mode", ["DenormPreserve", "DenormFlushToZero", "RoundingModeRTE", "RoundingModeRTZ"])
def test_float_controls_of_a_width(scene: Scene, physical: PhysicalDevice, mode: str, width: int) -> None:
    """Vulkan has a property for each width, and another width's property is not enough."""
    modes = f"OpExecutionMode %main LocalSize 1 1 1\nOpExecutionMode %main {mode} {width}"
    extension = f'OpCapability {mode}\nOpExtension "SPV_KHR_float_controls"\n{modes}\n'
    scene.module("s", assemble(kernel(f"{extension}main:\n"))).dispatch("s", [])
    requirements = resolve(load(scene.write())).requirements
    member = f"shader{mode}Float{width}"
    assert (member, 1) in {(each.member, each.bits) for each in requirements.features}
    if physical.has_property("VkPhysicalDeviceVulkan12Properties", member, 1):
        enabled_for(physical, requirements)
    else:
        with pytest.raises(UnsupportedError, match=member):
            enabled_for(physical, requirements)

"""Features: those that depend on others are enabled together with them; robustness is what Vulkan says."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from scenario_runner import Runner
from scenario_runner.errors import UnsupportedError
from scenario_runner.plan.records import Requirements
from scenario_runner.vulkan._generated.extensions import DEPENDENCIES
from scenario_runner.vulkan._generated.spirv_requirements import CAPABILITIES, EXTENSIONS
from scenario_runner.vulkan.capabilities import Enabled, dependent_extensions, enabled_for
from scenario_runner.vulkan.device import Device, Instance
from scenario_runner.vulkan.physical_device import Feature, PhysicalDevice, choose
from scenario_runner.vulkan.pipeline import behaviours
from tests.scenes import Scene, glsl

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
    """What a device is opened with for one capability or extension; None where the device lacks it."""
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
    """A pipeline's behaviour follows from what the device was opened with; without the feature there is none."""

    def of(*members: str) -> tuple[int, int] | None:
        return behaviours([Feature("", member) for member in members])

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


@pytest.mark.parametrize("language, text", [("HLSL", HLSL), ("GLSL", GLSL)])
@pytest.mark.parametrize("type", ["float16_t", "int16_t", "uint16_t"])
def test_small_types_in_uniform_and_storage_buffers(
    runner: Runner, scene: Scene, language: str, text: str, type: str
) -> None:
    """Both features are enabled, although compilers declare one capability that stands for both buffers."""
    scene.file("s.txt", text.replace("half", type))
    scene.resource("shader", uid="s", src="s.txt", type=language)
    dtype = {"float16_t": np.float16, "int16_t": np.int16, "uint16_t": np.uint16}[type]
    scene.buffer("part", np.frombuffer(np.array([3, 0, 0, 0], dtype).tobytes(), np.uint8), dst="part.out.npy")
    scene.buffer("added", np.frombuffer(np.array([4] + [0] * 7, dtype).tobytes(), np.uint8))
    result = runner.run(scene.dispatch("s", ["part", "added"]).write(), outputs=["part"])["part"]
    assert result.view(np.float32)[1] == 7

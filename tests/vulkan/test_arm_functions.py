"""The Arm extensions' functions and structures against the ML emulation layers, in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPT = """
from scenario_runner.vulkan.api import loader
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.loader import arm_ffi, type_source
from scenario_runner.vulkan.api.ffi import NULL, ffi
from scenario_runner.vulkan.api.structs import chain, new

def handle(kind, call, *arguments):
    pointer = type_source(kind).new(kind + "*")
    code = call(*arguments, NULL, pointer)
    assert code == 0, (kind, code)
    return pointer[0]

arm = arm_ffi()
instance = handle("VkInstance", loader.load().vkCreateInstance, new(
    "VkInstanceCreateInfo",
    pApplicationInfo=new("VkApplicationInfo", apiVersion=1 << 22 | 3 << 12),
    ppEnabledLayerNames=["VK_LAYER_ML_Graph_Emulation", "VK_LAYER_ML_Tensor_Emulation"],
))
devices = ffi.new("VkPhysicalDevice[1]")
loader.instance_function(instance, "vkEnumeratePhysicalDevices")(instance, ffi.new("uint32_t*", 1), devices)
features, limits = new("VkPhysicalDeviceTensorFeaturesARM"), new("VkPhysicalDeviceTensorPropertiesARM")
loader.instance_function(instance, "vkGetPhysicalDeviceFeatures2")(
    devices[0], chain(new("VkPhysicalDeviceFeatures2"), features))
loader.instance_function(instance, "vkGetPhysicalDeviceProperties2")(
    devices[0], chain(new("VkPhysicalDeviceProperties2"), limits))
print("tensors", features.tensors, "rank", limits.maxTensorDimensionCount, "stages", limits.shaderTensorSupportedStages)

families = loader.instance_function(instance, "vkGetPhysicalDeviceQueueFamilyDataGraphPropertiesARM")
count = ffi.new("uint32_t*")
assert families(devices[0], 0, count, NULL) == 0
graphs = arm.new("VkQueueFamilyDataGraphPropertiesARM[]", count[0])
for graph in graphs:
    graph.sType = new("VkQueueFamilyDataGraphPropertiesARM").sType
assert families(devices[0], 0, count, graphs) == 0
print("TOSA", "TOSA.001000.1" in [ffi.string(graph.operation.name).decode() for graph in graphs])

device = handle("VkDevice", loader.instance_function(instance, "vkCreateDevice"), devices[0], new(
    "VkDeviceCreateInfo",
    pNext=chain(
        new("VkPhysicalDeviceTensorFeaturesARM", tensors=1),
        new("VkPhysicalDeviceDataGraphFeaturesARM", dataGraph=1, dataGraphShaderModule=1),
        new("VkPhysicalDeviceVulkan13Features", synchronization2=1, maintenance4=1),
        new("VkPhysicalDeviceVulkan12Features", bufferDeviceAddress=1),
    ),
    pQueueCreateInfos=[{"queueFamilyIndex": 0, "pQueuePriorities": [1.0]}],
    ppEnabledExtensionNames=["VK_ARM_tensors", "VK_ARM_data_graph"],
))
fn = lambda name: loader.device_function(device, name)
info = new("VkTensorCreateInfoARM", pDescription={
    "tiling": vk.TENSOR_TILING_LINEAR_ARM, "format": 100, "pDimensions": [2, 3, 5], "usage": 0x2E})
tensor = handle("VkTensorARM", fn("vkCreateTensorARM"), device, info)
needs, early = new("VkMemoryRequirements2"), new("VkMemoryRequirements2")
fn("vkGetTensorMemoryRequirementsARM")(device, new("VkTensorMemoryRequirementsInfoARM", tensor=tensor), needs)
question = new("VkDeviceTensorMemoryRequirementsARM", pCreateInfo=info)
fn("vkGetDeviceTensorMemoryRequirementsARM")(device, question, early)
needed = needs.memoryRequirements
print("fits", needed.size >= 2 * 3 * 5 * 4, "early", early.memoryRequirements.size == needed.size)
type_index = (needed.memoryTypeBits & -needed.memoryTypeBits).bit_length() - 1
memory = handle("VkDeviceMemory", fn("vkAllocateMemory"), device, new(
    "VkMemoryAllocateInfo", pNext=new("VkMemoryAllocateFlagsInfo", flags=2),
    allocationSize=needed.size, memoryTypeIndex=type_index))
assert fn("vkBindTensorMemoryARM")(device, 1, new("VkBindTensorMemoryInfoARM", tensor=tensor, memory=memory)) == 0
view = handle("VkTensorViewARM", fn("vkCreateTensorViewARM"), device, new(
    "VkTensorViewCreateInfoARM", tensor=tensor, format=100))
fn("vkDestroyTensorViewARM")(device, view, NULL)
fn("vkDestroyTensorARM")(device, tensor, NULL)
fn("vkFreeMemory")(device, memory, NULL)
fn("vkDestroyDevice")(device, NULL)
loader.instance_function(instance, "vkDestroyInstance")(instance, NULL)
print("done")
"""


@pytest.mark.heavy
def test_tensor_life_cycle_on_the_emulation_layers(tmp_path: Path) -> None:
    """Tensors are created, sized, bound, viewed and destroyed, and queue families list the TOSA operations."""
    found = find_spec("emulation_layer")
    if found is None or found.origin is None:
        pytest.skip("the ML emulation layers are not installed: pip install scenario-runner[ml]")
    deploy = Path(found.origin).parent / "deploy"
    manifests = [path for path in deploy.rglob("*.json") if "spdx" not in path.name]
    assert len(manifests) == 2
    for path in manifests:
        manifest = json.loads(path.read_text("utf-8"))
        manifest["layer"]["library_path"] = str(deploy / "lib" / Path(manifest["layer"]["library_path"]).name)
        (tmp_path / path.name).write_text(json.dumps(manifest), "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "VK_LAYER_PATH": str(tmp_path), "VK_ADD_LAYER_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "tensors 1 rank 6 stages 32",
        "TOSA True",
        "fits True early True",
        "done",
    ]

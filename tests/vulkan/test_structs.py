"""Building structures: types and lengths filled in, memory kept alive, mistakes named."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from scenario_runner.vulkan import ffi, structs
from scenario_runner.vulkan.structs import chain, new


def churn() -> None:
    """Overwrite freed memory, so that a dangling pointer does not read what used to be there."""
    gc.collect()
    for size in range(1, 400):
        ffi.new("char[]", b"\xee" * size)


def test_renamed_structure_is_found_under_both_names() -> None:
    """Structures promoted after the binding package's version are built under the new name and under the package's."""
    for name in ("VkPipelineRobustnessCreateInfo", "VkPipelineRobustnessCreateInfoEXT"):
        assert new(name, storageBuffers=2).sType == 1000068000


def test_lists_set_their_length_and_live_as_long_as_the_structure() -> None:
    """Strings, numbers and nested structures stay readable when nothing else refers to them."""
    info = new(
        "VkInstanceCreateInfo",
        pApplicationInfo=new("VkApplicationInfo", pApplicationName="caf\xe9", apiVersion=7),
        ppEnabledLayerNames=["first", b"second"],
        ppEnabledExtensionNames=[],
    )
    churn()
    assert ffi.string(info.pApplicationInfo.pApplicationName).decode() == "caf\xe9"
    assert (info.pApplicationInfo.sType, info.pApplicationInfo.apiVersion) == (0, 7)
    assert [ffi.string(info.ppEnabledLayerNames[index]) for index in range(info.enabledLayerCount)] == [
        b"first",
        b"second",
    ]
    assert (info.enabledExtensionCount, info.ppEnabledExtensionNames) == (0, ffi.NULL)


def test_lists_take_dicts_and_structures() -> None:
    """Array elements are dicts of members, at any depth, or structures made before."""
    priorities = new("VkDeviceQueueCreateInfo", queueFamilyIndex=1, pQueuePriorities=[0.25])
    info = new(
        "VkDeviceCreateInfo", pQueueCreateInfos=[{"queueFamilyIndex": 3, "pQueuePriorities": [0.5, 1.0]}, priorities]
    )
    del priorities
    churn()
    assert info.queueCreateInfoCount == 2
    first, second = info.pQueueCreateInfos[0:2]
    assert (first.sType, first.queueFamilyIndex, first.queueCount, list(first.pQueuePriorities[0:2])) == (
        2,
        3,
        2,
        [0.5, 1.0],
    )
    assert (second.sType, second.queueFamilyIndex, list(second.pQueuePriorities[0:1])) == (2, 1, [0.25])


def test_structure_inside_another_is_a_dict_or_a_structure() -> None:
    """A member that is itself a structure is filled in place; what it points to is kept alive as well."""
    stage = new("VkPipelineShaderStageCreateInfo", stage=0x20, pName="main")
    info = new("VkComputePipelineCreateInfo", stage=stage, basePipelineIndex=-1)
    del stage
    churn()
    assert (info.stage.sType, info.stage.stage, ffi.string(info.stage.pName)) == (18, 0x20, b"main")
    image = new("VkImageCreateInfo", extent={"width": 4, "height": 3, "depth": 1}, mipLevels=1)
    assert (image.extent.width, image.extent.height, image.extent.depth) == (4, 3, 1)
    named = new("VkComputePipelineCreateInfo", stage={"pName": "entry"})
    churn()
    assert (named.stage.sType, ffi.string(named.stage.pName)) == (18, b"entry")


def test_bytes_are_words_or_memory_as_the_member_says() -> None:
    """Shader code is words that are counted in bytes; memory is used where it lies."""
    code = np.arange(6, dtype=np.uint32)
    module = new("VkShaderModuleCreateInfo", pCode=code.tobytes())
    assert (module.codeSize, list(module.pCode[0:6])) == (24, [0, 1, 2, 3, 4, 5])
    constant = new("VkSpecializationInfo", pMapEntries=[{"constantID": 4, "size": 4}], pData=code)
    assert (constant.mapEntryCount, constant.dataSize) == (1, 24)
    assert int(ffi.cast("uintptr_t", constant.pData)) == code.ctypes.data
    cache = new("VkPipelineCacheCreateInfo", pInitialData=b"")
    assert (cache.initialDataSize, cache.pInitialData) == (0, ffi.NULL)


def test_chain_appends_in_order_and_keeps_alive() -> None:
    """pNext chains grow at their end and live with their head."""
    head = chain(
        new("VkPhysicalDeviceFeatures2", pNext=new("VkPhysicalDeviceVulkan11Features", multiview=1)),
        new("VkPhysicalDeviceVulkan12Features", shaderInt8=1),
        new("VkPhysicalDeviceTensorFeaturesARM", tensors=1),
    )
    chain(head, new("VkPhysicalDeviceVulkan13Features", maintenance4=1))
    churn()
    types = []
    link = ffi.cast("VkBaseOutStructure*", head).pNext
    while link:
        types.append(link.sType)
        last, link = link, link.pNext
    assert types == [49, 51, 1000460009, 53]
    assert ffi.cast("VkPhysicalDeviceVulkan13Features*", last).maintenance4 == 1


def test_memory_is_released_with_the_structure() -> None:
    """Nothing is remembered of a structure that is gone."""
    gc.collect()
    before = len(structs._alive)
    infos = [new("VkApplicationInfo", pApplicationName="x" * 100) for _ in range(50)]
    assert len(structs._alive) == before + 50
    del infos
    gc.collect()
    assert len(structs._alive) == before


@pytest.mark.parametrize("name", ["VkBufferCreateInfo", "PFN_vkCreateBuffer", "PFN_none", "VkDevice", "int", "none"])
def test_types_are_prepared(name: str) -> None:
    """What is no structure, as a worker whose memory is damaged may send, is no error."""
    structs.prepare(name)


def test_mistakes_are_named() -> None:
    """Unknown structures and members, wrong kinds and contradicting lengths say which and what."""
    with pytest.raises(TypeError, match=r"^no Vulkan structure is called 'VkBufferCreateInf'$"):
        new("VkBufferCreateInf")
    with pytest.raises(TypeError, match=r"^no Vulkan structure is called 'VkDevice'$"):
        new("VkDevice")
    with pytest.raises(AttributeError, match=r"^VkMemoryAllocateInfo has no member 'size'; it has sType, pNext, "):
        new("VkMemoryAllocateInfo", size=1)
    with pytest.raises(TypeError, match=r"^VkShaderModuleCreateInfo\.pCode cannot be made from float$"):
        new("VkShaderModuleCreateInfo", pCode=1.5)
    with pytest.raises(ValueError, match=r"^VkTensorDescriptionARM\.pStrides has 1 elements, but dimensionCount is 2$"):
        new("VkTensorDescriptionARM", pDimensions=[1, 2], pStrides=[4])
    with pytest.raises(OverflowError):
        new("VkMemoryAllocateInfo", memoryTypeIndex=-1)

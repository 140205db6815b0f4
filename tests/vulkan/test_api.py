"""Loading the API: types shared with the `vulkan` package, the loader, functions, and features of a real driver."""

from __future__ import annotations

import ctypes.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scenario_runner.errors import UnsupportedError
from scenario_runner.vulkan.api import loader
from scenario_runner.vulkan.api._generated.constants import BUFFER_USAGE_TRANSFER_DST_BIT
from scenario_runner.vulkan.api._generated.features import ALIASES, CORE_FEATURES, FEATURES
from scenario_runner.vulkan.api._generated.structures import SPELLINGS
from scenario_runner.vulkan.api.ffi import NULL, ffi
from scenario_runner.vulkan.api.structs import chain, new

VERSION_1_3 = 1 << 22 | 3 << 12


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.fixture(scope="module")
def instance() -> Iterator[Any]:
    handle = ffi.new("VkInstance*")
    info = new("VkInstanceCreateInfo", pApplicationInfo=new("VkApplicationInfo", apiVersion=VERSION_1_3))
    assert loader.load().vkCreateInstance(info, NULL, handle) == 0
    yield handle[0]
    loader.instance_function(handle[0], "vkDestroyInstance")(handle[0], NULL)


@pytest.fixture(scope="module")
def physical_device(instance: Any) -> Any:
    count, devices = ffi.new("uint32_t*", 1), ffi.new("VkPhysicalDevice[1]")
    assert loader.instance_function(instance, "vkEnumeratePhysicalDevices")(instance, count, devices) >= 0
    return devices[0]


@pytest.fixture(scope="module")
def device(instance: Any, physical_device: Any) -> Iterator[Any]:
    handle = ffi.new("VkDevice*")
    info = new("VkDeviceCreateInfo", pQueueCreateInfos=[{"queueFamilyIndex": 0, "pQueuePriorities": [1.0]}])
    assert loader.instance_function(instance, "vkCreateDevice")(physical_device, info, NULL, handle) == 0
    yield handle[0]
    loader.device_function(handle[0], "vkDestroyDevice")(handle[0], NULL)


def extensions_of(instance: Any, physical_device: Any) -> set[str]:
    enumerate_extensions = loader.instance_function(instance, "vkEnumerateDeviceExtensionProperties")
    count = ffi.new("uint32_t*")
    assert enumerate_extensions(physical_device, NULL, count, NULL) == 0
    found = ffi.new("VkExtensionProperties[]", count[0])
    assert enumerate_extensions(physical_device, NULL, count, found) == 0
    return {ffi.string(each.extensionName).decode() for each in found}


def query(instance: Any, physical_device: Any, name: str) -> dict[str, bool]:
    """The members of a feature structure, read through the table alone."""
    kind, _, _, members = FEATURES[name]
    words = ffi.new("uint32_t[]", 4 + len(members) + 1)
    words[0] = kind
    head = new("VkPhysicalDeviceFeatures2", pNext=ffi.cast("void*", words))
    loader.instance_function(instance, "vkGetPhysicalDeviceFeatures2")(physical_device, head)
    return {member: words[4 + index] == 1 for index, member in enumerate(members)}


def test_package_is_not_run_and_its_types_are_shared_with_a_later_import() -> None:
    """Our import leaves the `vulkan` package's wrappers alone; importing them later gives the same types."""
    done = python(
        "import sys\n"
        "from scenario_runner.vulkan.api import structs\n"
        "from scenario_runner.vulkan.api.loader import ffi\n"
        "print(sorted(name for name in sys.modules if name.startswith('vulkan') or name.endswith('.arm')))\n"
        "info = structs.new('VkInstanceCreateInfo', pApplicationInfo={'apiVersion': 1 << 22})\n"
        "import vulkan\n"
        "print(vulkan.ffi is ffi, vulkan.VkBufferCreateInfo(size=4).size)\n"
        "instance = vulkan.vkCreateInstance(info, None)\n"
        "print(len(vulkan.vkEnumeratePhysicalDevices(instance)) > 0)\n"
        "vulkan.vkDestroyInstance(instance, None)\n"
    )
    assert (done.stderr, done.stdout) == ("", "['vulkan._vulkancache']\nTrue 4\nTrue\n")


def test_types_are_shared_with_an_earlier_import_of_the_package() -> None:
    """When the `vulkan` package is there first, its types are taken."""
    done = python(
        "import vulkan\n"
        "from scenario_runner.vulkan.api.loader import arm_ffi\n"
        "from scenario_runner.vulkan.api.loader import ffi\n"
        "print(vulkan.ffi is ffi, arm_ffi().typeof('VkDevice') is vulkan.ffi.typeof('VkDevice'))\n"
    )
    assert (done.stderr, done.stdout) == ("", "True True\n")


def load_with(path: str) -> str:
    done = python(
        "from scenario_runner.errors import NoDeviceError\n"
        "from scenario_runner.vulkan.api.loader import load\n"
        "try:\n"
        "    print(bool(load().vkGetInstanceProcAddr))\n"
        "except NoDeviceError as error:\n"
        "    print(error, '|', error.problems[0].help)\n",
        SCENARIO_RUNNER_VULKAN_LOADER=path,
    )
    assert done.stderr == ""
    return done.stdout.rstrip("\n")


def test_loader_path_is_taken_from_the_environment(tmp_path: Path) -> None:
    """A loader outside the search path is opened from the path in SCENARIO_RUNNER_VULKAN_LOADER."""
    name = ctypes.util.find_library("vulkan")
    assert name is not None
    assert load_with(name) == "True"


def test_missing_loader_is_named(tmp_path: Path) -> None:
    """A path with no library behind it ends in one sentence and what to do."""
    path = str(tmp_path / "libnone.so")
    assert load_with(path) == (
        f"no Vulkan loader could be opened ({path!r}: cannot open shared object file: No such file or directory)"
        " | SCENARIO_RUNNER_VULKAN_LOADER must be the path of a Vulkan loader library; unset it to search the system"
    )


def test_library_that_is_no_loader_is_refused() -> None:
    """Another library is recognised by the command it lacks."""
    name = ctypes.util.find_library("m")
    assert name is not None
    assert load_with(name).startswith(
        f"no Vulkan loader could be opened ({name!r}: it is not a Vulkan loader (it has no vkGetInstanceProcAddr)) | "
    )


def test_unknown_and_unavailable_commands_are_told_apart(instance: Any, device: Any) -> None:
    """A misspelt command is a LookupError; a known one that the device lacks is unsupported."""
    with pytest.raises(LookupError, match=r"^no C type is called 'PFN_vkCreateBufer'$"):
        loader.device_function(device, "vkCreateBufer")
    with pytest.raises(UnsupportedError, match=r"^the Vulkan device has no command 'vkCreateTensorARM': its extension"):
        loader.device_function(device, "vkCreateTensorARM")
    with pytest.raises(UnsupportedError, match=r"^the Vulkan instance has no command 'vkCreateXcbSurfaceKHR': "):
        loader.instance_function(instance, "vkCreateXcbSurfaceKHR")


def test_buffer_is_filled_and_read_back_through_raw_functions(instance: Any, physical_device: Any, device: Any) -> None:
    """Device functions and built structures run a whole small job on the driver."""
    names = """vkCreateBuffer vkGetBufferMemoryRequirements vkAllocateMemory vkBindBufferMemory vkMapMemory
        vkCreateCommandPool vkAllocateCommandBuffers vkBeginCommandBuffer vkCmdFillBuffer vkEndCommandBuffer
        vkGetDeviceQueue vkQueueSubmit vkQueueWaitIdle vkDestroyCommandPool vkDestroyBuffer vkFreeMemory"""
    vk = {name: loader.device_function(device, name) for name in names.split()}
    buffer, memory, data = ffi.new("VkBuffer*"), ffi.new("VkDeviceMemory*"), ffi.new("void**")
    info = new("VkBufferCreateInfo", size=64, usage=BUFFER_USAGE_TRANSFER_DST_BIT)
    assert vk["vkCreateBuffer"](device, info, NULL, buffer) == 0
    needs = ffi.new("VkMemoryRequirements*")
    vk["vkGetBufferMemoryRequirements"](device, buffer[0], needs)
    properties = ffi.new("VkPhysicalDeviceMemoryProperties*")
    loader.instance_function(instance, "vkGetPhysicalDeviceMemoryProperties")(physical_device, properties)
    coherent = 0x2 | 0x4  # host-visible, host-coherent
    index = next(
        index
        for index in range(properties.memoryTypeCount)
        if needs.memoryTypeBits >> index & 1 and properties.memoryTypes[index].propertyFlags & coherent == coherent
    )
    allocation = new("VkMemoryAllocateInfo", allocationSize=needs.size, memoryTypeIndex=index)
    assert vk["vkAllocateMemory"](device, allocation, NULL, memory) == 0
    assert vk["vkBindBufferMemory"](device, buffer[0], memory[0], 0) == 0
    pool, commands, queue = ffi.new("VkCommandPool*"), ffi.new("VkCommandBuffer[1]"), ffi.new("VkQueue*")
    assert vk["vkCreateCommandPool"](device, new("VkCommandPoolCreateInfo"), NULL, pool) == 0
    request = new("VkCommandBufferAllocateInfo", commandPool=pool[0], commandBufferCount=1)
    assert vk["vkAllocateCommandBuffers"](device, request, commands) == 0
    assert vk["vkBeginCommandBuffer"](commands[0], new("VkCommandBufferBeginInfo")) == 0
    vk["vkCmdFillBuffer"](commands[0], buffer[0], 16, 32, 0xCAFEBABE)
    assert vk["vkEndCommandBuffer"](commands[0]) == 0
    vk["vkGetDeviceQueue"](device, 0, 0, queue)
    assert vk["vkMapMemory"](device, memory[0], 0, 64, 0, data) == 0
    ffi.memmove(data[0], bytes(64), 64)
    assert vk["vkQueueSubmit"](queue[0], 1, new("VkSubmitInfo", pCommandBuffers=commands), NULL) == 0
    assert vk["vkQueueWaitIdle"](queue[0]) == 0
    assert bytes(ffi.buffer(data[0], 64)) == bytes(16) + b"\xbe\xba\xfe\xca" * 8 + bytes(16)
    vk["vkDestroyCommandPool"](device, pool[0], NULL)
    vk["vkDestroyBuffer"](device, buffer[0], NULL)
    vk["vkFreeMemory"](device, memory[0], NULL)


def test_device_function_is_the_drivers_own(device: Any) -> None:
    """Functions of a device bypass the loader's trampoline."""
    own = loader.device_function(device, "vkCmdDispatch")
    assert own != ffi.cast("PFN_vkCmdDispatch", loader.load().vkCmdDispatch)


def test_features_read_through_the_table_equal_the_typed_structures(instance: Any, physical_device: Any) -> None:
    """Every feature structure of this driver reads the same generically and through the package's own type."""
    available = extensions_of(instance, physical_device)
    get_features = loader.instance_function(instance, "vkGetPhysicalDeviceFeatures2")
    compared, true = 0, 0
    for name, (_, version, extensions, members) in FEATURES.items():
        if not (version and version <= VERSION_1_3) and available.isdisjoint(extensions):
            continue
        try:
            ffi.typeof(SPELLINGS.get(name, name))
        except ffi.error:
            continue
        typed = new(name)
        get_features(physical_device, chain(new("VkPhysicalDeviceFeatures2"), typed))
        expected = {member: getattr(typed, member) == 1 for member in members}
        assert query(instance, physical_device, name) == expected, name
        compared += 1
        true += sum(expected.values())
    assert compared > 50
    assert true > 50


def test_features_agree_with_vulkaninfo(instance: Any, physical_device: Any, tmp_path: Path) -> None:
    """The Vulkan tools' own report of this device has the same features."""
    done = subprocess.run(["vulkaninfo", "--json"], cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    (path,) = tmp_path.glob("*.json")
    reported = json.loads(path.read_text("utf-8"))["capabilities"]["device"]["features"]
    core = reported.pop("VkPhysicalDeviceFeatures")
    head = new("VkPhysicalDeviceFeatures2")
    loader.instance_function(instance, "vkGetPhysicalDeviceFeatures2")(physical_device, head)
    assert {member: getattr(head.features, member) == 1 for member in CORE_FEATURES} == core
    assert len(reported) > 40
    for name, members in reported.items():
        assert query(instance, physical_device, ALIASES.get(name, name)) == members, name

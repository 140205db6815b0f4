"""The Vulkan API as loaded: types, functions, features, and errors for results."""

import ctypes.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scenario_runner import errors
from scenario_runner.vulkan import NULL, ffi, vulkan_api
from scenario_runner.vulkan._generated.constants import RESULTS
from scenario_runner.vulkan._generated.features import ALIASES, CORE_FEATURES, FEATURES
from scenario_runner.vulkan.physical_device import PhysicalDevice
from scenario_runner.vulkan.vulkan_api import check, error_class, new, result_name
from tests.scenes import error_of

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
    assert vulkan_api.load().vkCreateInstance(info, NULL, handle) == 0
    yield handle[0]
    vulkan_api.instance_function(handle[0], "vkDestroyInstance")(handle[0], NULL)


@pytest.fixture(scope="module")
def physical_device(instance: Any) -> Any:
    count, devices = ffi.new("uint32_t*", 1), ffi.new("VkPhysicalDevice[1]")
    assert vulkan_api.instance_function(instance, "vkEnumeratePhysicalDevices")(instance, count, devices) >= 0
    return devices[0]


def query(instance: Any, physical_device: Any, name: str) -> dict[str, bool]:
    """The members of a feature structure, read through the table alone."""
    kind, _, _, members = FEATURES[name]
    words = ffi.new("uint32_t[]", 4 + len(members) + 1)
    words[0] = kind
    head = new("VkPhysicalDeviceFeatures2", pNext=ffi.cast("void*", words))
    vulkan_api.instance_function(instance, "vkGetPhysicalDeviceFeatures2")(physical_device, head)
    return {member: words[4 + index] == 1 for index, member in enumerate(members)}


def test_package_is_not_run_and_its_types_are_shared_with_a_later_import() -> None:
    """Our import leaves the `vulkan` package's wrappers alone; importing them later gives the same types."""
    done = python(
        "import sys\n"
        "from scenario_runner.vulkan import vulkan_api\n"
        "from scenario_runner.vulkan import ffi\n"
        "print(sorted(name for name in sys.modules if name.startswith('vulkan') or name.endswith('.arm')))\n"
        "info = vulkan_api.new('VkInstanceCreateInfo', pApplicationInfo={'apiVersion': 1 << 22})\n"
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
        "from scenario_runner.vulkan.vulkan_api import arm_ffi\n"
        "from scenario_runner.vulkan import ffi\n"
        "print(vulkan.ffi is ffi, arm_ffi().typeof('VkDevice') is vulkan.ffi.typeof('VkDevice'))\n"
    )
    assert (done.stderr, done.stdout) == ("", "True True\n")


def load_with(path: str) -> str:
    done = python(
        "from scenario_runner.errors import NoDeviceError\n"
        "from scenario_runner.vulkan.vulkan_api import load\n"
        "try:\n"
        "    print(bool(load().vkGetInstanceProcAddr))\n"
        "except NoDeviceError as error:\n"
        "    print(error, '|', error.problems[0].help)\n",
        SCENARIO_RUNNER_VULKAN_LOADER=path,
    )
    assert done.stderr == ""
    return done.stdout.rstrip("\n")


@pytest.mark.parametrize(
    "library, expected",
    [
        (ctypes.util.find_library("vulkan"), "True"),
        (
            "/none/libnone.so",
            "no Vulkan loader could be opened ({!r}: cannot open shared object file: No such file or directory) |"
            " SCENARIO_RUNNER_VULKAN_LOADER must be the path of a Vulkan loader library; unset it to search the system",
        ),
        (
            ctypes.util.find_library("m"),
            "no Vulkan loader could be opened ({!r}: it is not a Vulkan loader (it has no vkGetInstanceProcAddr)) |"
            " SCENARIO_RUNNER_VULKAN_LOADER must be the path of a Vulkan loader library; unset it to search the system",
        ),
    ],
)
def test_loader_of_the_environment(library: str | None, expected: str) -> None:
    """SCENARIO_RUNNER_VULKAN_LOADER names a loader by its path. Another file is refused with a help."""
    assert library is not None
    assert load_with(library) == expected.format(library)


def test_features_agree_with_vulkaninfo(instance: Any, physical_device: Any, tmp_path: Path) -> None:
    """The Vulkan tools' own report of this device has the same features."""
    done = subprocess.run(["vulkaninfo", "--json"], cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    (path,) = tmp_path.glob("*.json")
    reported = json.loads(path.read_text("utf-8"))["capabilities"]["device"]["features"]
    core = reported.pop("VkPhysicalDeviceFeatures")
    head = new("VkPhysicalDeviceFeatures2")
    vulkan_api.instance_function(instance, "vkGetPhysicalDeviceFeatures2")(physical_device, head)
    assert {member: getattr(head.features, member) == 1 for member in CORE_FEATURES} == core
    assert len(reported) > 40
    for name, members in reported.items():
        assert query(instance, physical_device, ALIASES.get(name, name)) == members, name


GRAPHICS, COMPUTE, TRANSFER = 1, 2, 4


@pytest.mark.parametrize(
    "families, computing, drawing",
    [
        ([(GRAPHICS | COMPUTE | TRANSFER, 1), (COMPUTE, 1)], 0, 0),
        ([(TRANSFER, 1), (COMPUTE, 1), (GRAPHICS | COMPUTE, 1)], 1, 2),
        ([(COMPUTE | TRANSFER, 1), (GRAPHICS, 1)], 0, None),
        ([(GRAPHICS, 1)], None, None),
        ([(0, 1)], None, None),
        ([(GRAPHICS | COMPUTE, 0), (GRAPHICS | COMPUTE, 1)], 1, 1),
    ],
)
def test_the_first_queue_family_that_does_the_work(
    families: list[tuple[int, int]], computing: int | None, drawing: int | None
) -> None:
    """The first that has queues with compute; where something is drawn, the first with graphics as well."""
    nothing: Any = None
    device = PhysicalDevice(nothing, nothing, 0)
    device.queue_families = [(flags, count, 64) for flags, count in families]
    assert device.queue_family() == computing
    assert device.queue_family(graphics=True) == drawing


NEGATIVE = {number: name for number, name in RESULTS.items() if number < 0}

CLASSES = {
    **dict.fromkeys(
        (
            *("OUT_OF_HOST_MEMORY", "OUT_OF_DEVICE_MEMORY", "OUT_OF_POOL_MEMORY", "MEMORY_MAP_FAILED"),
            *("TOO_MANY_OBJECTS", "FRAGMENTED_POOL", "FRAGMENTATION", "COMPRESSION_EXHAUSTED_EXT"),
        ),
        errors.OutOfMemoryError,
    ),
    **dict.fromkeys(
        ("LAYER_NOT_PRESENT", "EXTENSION_NOT_PRESENT", "FEATURE_NOT_PRESENT", "FORMAT_NOT_SUPPORTED"),
        errors.UnsupportedError,
    ),
    "DEVICE_LOST": errors.DeviceLostError,
    "INCOMPATIBLE_DRIVER": errors.NoDeviceError,
    "INVALID_SHADER_NV": errors.ShaderError,
}


@pytest.mark.parametrize("number", NEGATIVE, ids=lambda number: NEGATIVE[number])
def test_every_error(number: int) -> None:
    """A negative VkResult raises its class, with its name, the call and the purpose in the message."""
    name = NEGATIVE[number]
    expected = CLASSES.get(name.removeprefix("VK_ERROR_"), errors.DeviceError)
    assert error_class(number) is expected
    assert result_name(number) == name
    error = error_of(errors.ScenarioRunnerError, check, number, "vkDoSomething", "for a test")
    assert type(error) is expected
    assert str(error) == f"vkDoSomething failed with {name} (for a test)"


def test_unknown_number() -> None:
    """A result that the registry does not know is shown as a number and is a DeviceError."""
    with pytest.raises(errors.DeviceError, match=r"^vkDoSomething failed with VkResult -999999$"):
        check(-999999, "vkDoSomething")

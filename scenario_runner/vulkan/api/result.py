"""VkResult: what a negative one means to the user (Vulkan specification, section "Return Codes")."""

from __future__ import annotations

from scenario_runner import errors
from scenario_runner.vulkan.api._generated import constants as vk

_OUT_OF_MEMORY = frozenset(
    {
        vk.ERROR_OUT_OF_HOST_MEMORY,
        vk.ERROR_OUT_OF_DEVICE_MEMORY,
        vk.ERROR_MEMORY_MAP_FAILED,
        vk.ERROR_TOO_MANY_OBJECTS,
        vk.ERROR_FRAGMENTED_POOL,
        vk.ERROR_OUT_OF_POOL_MEMORY,
        vk.ERROR_FRAGMENTATION,
        vk.ERROR_COMPRESSION_EXHAUSTED_EXT,
    }
)
_UNSUPPORTED = frozenset(
    {
        vk.ERROR_LAYER_NOT_PRESENT,
        vk.ERROR_EXTENSION_NOT_PRESENT,
        vk.ERROR_FEATURE_NOT_PRESENT,
        vk.ERROR_FORMAT_NOT_SUPPORTED,
    }
)


def result_name(result: int) -> str:
    """The registry's name of a VkResult; unknown numbers are shown as they are."""
    from scenario_runner.vulkan.api._generated.results import RESULTS  # which only an error pays

    return str(RESULTS.get(result, f"VkResult {result}"))


def error_class(result: int) -> type[errors.ScenarioRunnerError]:
    """The class of ours that a negative VkResult maps to; what has no class of its own is a `errors.DeviceError`."""
    if result in _OUT_OF_MEMORY:
        return errors.OutOfMemoryError
    if result == vk.ERROR_DEVICE_LOST:
        return errors.DeviceLostError
    if result == vk.ERROR_INCOMPATIBLE_DRIVER:
        return errors.NoDeviceError
    if result in _UNSUPPORTED:
        return errors.UnsupportedError
    if result == vk.ERROR_INVALID_SHADER_NV:
        return errors.ShaderError
    return errors.DeviceError


def check(result: int, call: str, purpose: str = "") -> int:
    """Return a VkResult that is not an error; raise the class it maps to otherwise, naming the call and its purpose."""
    if result < 0:
        what = f" ({purpose})" if purpose else ""
        help = None
        if result == vk.ERROR_DEVICE_LOST:
            help = "a shader that reads or writes out of bounds is the usual cause; the system's log may say more"
        raise error_class(result)(f"{call} failed with {result_name(result)}{what}", help=help)
    return result

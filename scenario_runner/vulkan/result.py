"""VkResult: what a negative one means to the user (Vulkan specification, section "Return Codes")."""

from __future__ import annotations

from scenario_runner import errors

_NAMES = {
    -1: "VK_ERROR_OUT_OF_HOST_MEMORY",
    -2: "VK_ERROR_OUT_OF_DEVICE_MEMORY",
    -3: "VK_ERROR_INITIALIZATION_FAILED",
    -4: "VK_ERROR_DEVICE_LOST",
    -5: "VK_ERROR_MEMORY_MAP_FAILED",
    -6: "VK_ERROR_LAYER_NOT_PRESENT",
    -7: "VK_ERROR_EXTENSION_NOT_PRESENT",
    -8: "VK_ERROR_FEATURE_NOT_PRESENT",
    -9: "VK_ERROR_INCOMPATIBLE_DRIVER",
    -10: "VK_ERROR_TOO_MANY_OBJECTS",
    -11: "VK_ERROR_FORMAT_NOT_SUPPORTED",
    -12: "VK_ERROR_FRAGMENTED_POOL",
    -13: "VK_ERROR_UNKNOWN",
    -1000011001: "VK_ERROR_VALIDATION_FAILED_EXT",
    -1000012000: "VK_ERROR_INVALID_SHADER_NV",
    -1000069000: "VK_ERROR_OUT_OF_POOL_MEMORY",
    -1000072003: "VK_ERROR_INVALID_EXTERNAL_HANDLE",
    -1000161000: "VK_ERROR_FRAGMENTATION",
    -1000174001: "VK_ERROR_NOT_PERMITTED",
    -1000257000: "VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS",
    -1000338000: "VK_ERROR_COMPRESSION_EXHAUSTED_EXT",
}

_OUT_OF_MEMORY = frozenset({-1, -2, -5, -10, -12, -1000069000, -1000161000, -1000338000})
_NO_DEVICE = frozenset({-9})
_UNSUPPORTED = frozenset({-6, -7, -8, -11})
_LOST = frozenset({-4})
_SHADER = frozenset({-1000012000})

SUCCESS = 0
NOT_READY = 1
TIMEOUT = 2
INCOMPLETE = 5


def result_name(result: int) -> str:
    """The name of a negative VkResult; unknown numbers are shown as they are."""
    return _NAMES.get(result, f"VkResult {result}")


def error_class(result: int) -> type[errors.ScenarioRunnerError]:
    """The class of ours that a negative VkResult maps to; what has no class of its own is a `errors.DeviceError`."""
    if result in _OUT_OF_MEMORY:
        return errors.OutOfMemoryError
    if result in _LOST:
        return errors.DeviceLostError
    if result in _NO_DEVICE:
        return errors.NoDeviceError
    if result in _UNSUPPORTED:
        return errors.UnsupportedError
    if result in _SHADER:
        return errors.ShaderError
    return errors.DeviceError


def check(result: int, call: str, purpose: str = "") -> int:
    """Return a VkResult that is no error; raise the class it maps to otherwise, naming the call and its purpose."""
    if result < 0:
        what = f" ({purpose})" if purpose else ""
        help = None
        if result in _LOST:
            help = "a shader that reads or writes out of bounds is the usual cause; the system's log may say more"
        raise error_class(result)(f"{call} failed with {result_name(result)}{what}", help=help)
    return result

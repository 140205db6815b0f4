"""VkResult: what a negative one means to the user (Vulkan specification, section "Return Codes")."""

from __future__ import annotations

from scenario_runner import errors

SUCCESS = 0
NOT_READY = 1
TIMEOUT = 2
INCOMPLETE = 5
DEVICE_LOST = -4

_OUT_OF_MEMORY = frozenset({-1, -2, -5, -10, -12, -1000069000, -1000161000, -1000338000})
_NO_DEVICE = frozenset({-9})
_UNSUPPORTED = frozenset({-6, -7, -8, -11})
_SHADER = frozenset({-1000012000})


def result_name(result: int) -> str:
    """The registry's name of a VkResult; unknown numbers are shown as they are."""
    from scenario_runner.vulkan._generated.constants import RESULTS  # 1.4 ms, which only an error pays

    return str(RESULTS.get(result, f"VkResult {result}"))


def error_class(result: int) -> type[errors.ScenarioRunnerError]:
    """The class of ours that a negative VkResult maps to; what has no class of its own is a `errors.DeviceError`."""
    if result in _OUT_OF_MEMORY:
        return errors.OutOfMemoryError
    if result == DEVICE_LOST:
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
        if result == DEVICE_LOST:
            help = "a shader that reads or writes out of bounds is the usual cause; the system's log may say more"
        raise error_class(result)(f"{call} failed with {result_name(result)}{what}", help=help)
    return result

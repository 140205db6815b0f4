"""VkResult: every negative one of the registry has its name and a class of ours."""

import pytest

from scenario_runner import errors
from scenario_runner.vulkan._generated.results import RESULTS
from scenario_runner.vulkan.vulkan_loader import check, error_class, result_name

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
    with pytest.raises(errors.ScenarioRunnerError) as caught:
        check(number, "vkDoSomething", "for a test")
    assert type(caught.value) is expected
    assert str(caught.value) == f"vkDoSomething failed with {name} (for a test)"


def test_unknown_number() -> None:
    """A result that the registry does not know is shown as a number and is a DeviceError."""
    with pytest.raises(errors.DeviceError, match=r"^vkDoSomething failed with VkResult -999999$"):
        check(-999999, "vkDoSomething")

"""``--disable-extension``: every device extension of Vulkan, and nothing else."""

import pytest

from scenario_runner import Runner
from scenario_runner.errors import UsageError
from scenario_runner.vulkan.physical_device import checked_names
from tests.program import Program
from tests.scenes import Scene


@pytest.mark.parametrize(
    "name, meant",
    [
        ("VK_KHR_maintenence5", "VK_KHR_maintenance5"),
        ("everything", None),
        ("VK_EXT_debug_utils", None),  # of the instance
    ],
)
def test_unknown_extension(program: Program, scene: Scene, name: str, meant: str | None) -> None:
    """A name that is not one of a device extension is a usage error, with what may have been meant."""
    ended = program(scene.write(), "--disable-extension", name)
    assert ended.code == 2
    assert f"error: --disable-extension: {name!r} is not a device extension of Vulkan" in ended.err
    assert meant is None or f"(did you mean '{meant}'?)" in ended.err
    with pytest.raises(UsageError):
        Runner(disabled_extensions=[name])


def test_names_of_extensions() -> None:
    """In the reference runner's spelling, too. VK_KHR_portability_subset must be enabled where a device has it."""
    assert checked_names("VK_ARM_tensors") == {"VK_ARM_tensors"}
    names = ["VK_EXT_frame_boundary", "VK_KHR_maintenance_5"]
    assert checked_names(names) == {"VK_EXT_frame_boundary", "VK_KHR_maintenance5"}
    with pytest.raises(UsageError, match="must be enabled on a device that has it"):
        checked_names(["VK_KHR_portability_subset"])


def test_tensors_that_are_disabled(program: Program, scene: Scene) -> None:
    """A scenario with tensors says which option it cannot run with."""
    scene.resource("tensor", uid="t", dims=[4], format="VK_FORMAT_R32_SFLOAT", shader_access="readwrite")
    ended = program(scene.write(), "--disable-extension", "VK_ARM_tensors")
    assert (ended.code, ended.out) == (6, "")
    assert "help: run without --disable-extension VK_ARM_tensors" in ended.err

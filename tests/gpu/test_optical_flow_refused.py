"""Optical flows that a device does not support: what is missing is named with its place, and the exit code is 6."""

from __future__ import annotations

from typing import Any

import pytest

from scenario_runner import Runner, load
from scenario_runner.errors import UnsupportedError
from scenario_runner.plan.resolve import resolve
from scenario_runner.vulkan.optical_flow import FlowSupport, flow_support, problems_of
from tests.gpu.flow_scenes import COSTS, HEIGHT, VECTORS, WIDTH, add_image, add_pictures, flow, moved, two_pictures
from tests.program import Program
from tests.scenes import Scene

COMMAND = "/commands/0/dispatch_optical_flow"


def refused(runner: Runner, scene: Scene) -> list[tuple[str, str, str]]:
    """(code, pointer, message) of each problem that a run ends with; each has a line and a column."""
    with pytest.raises(UnsupportedError) as caught:
        runner.run(scene.write())
    assert all(each.line and each.column for each in caught.value.problems)
    device = runner.physical_device.name
    return [(each.code, each.pointer or "", each.message.replace(repr(device), "it")) for each in caught.value.problems]


def test_without_the_extension(program: Program, scene: Scene) -> None:
    """A device without the extension is refused with the place and the missing features, and exit code 6."""
    two_pictures(scene)
    ended = program("--ml-emulation", "off", "scenario.json")
    assert ended.code == 6
    for structure, member in (("DataGraph", "dataGraph"), ("DataGraphOpticalFlow", "dataGraphOpticalFlow")):
        missing = f"{COMMAND}: the optical flow needs {member} (VkPhysicalDevice{structure}FeaturesARM), which "
        (line,) = (line for line in ended.err.splitlines() if missing in line)
        assert line.startswith("error: scenario.json:")


def test_too_small(ml: Runner, scene: Scene) -> None:
    """A size that the device does not take is refused with the sizes that it takes."""
    first, second = (picture[:32, :48] for picture in moved((1, 0)))
    for uid, format, content in (("search", "R8_UNORM", first), ("template", "R8_UNORM", second)):
        add_image(scene, uid, f"VK_FORMAT_{format}", content)
    add_image(scene, "vectors", VECTORS, dims=[1, 48, 32, 1])
    message = "the optical flow has 48 x 32 texels; it takes 64 x 64 to 8192 x 8192"
    assert refused(ml, flow(scene, width=48, height=32)) == [("SR-FLOW-007", f"{COMMAND}/width", message)]


def test_formats(ml: Runner, scene: Scene) -> None:
    """Every image whose format the device cannot take is refused, with what it takes."""
    extent = [1, WIDTH, HEIGHT, 1]
    for uid in ("search", "template"):
        add_image(scene, uid, "VK_FORMAT_R16_UNORM", dims=extent)
    for uid in ("vectors", "hints"):
        add_image(scene, uid, "VK_FORMAT_R32G32_SFLOAT", dims=extent)
    add_image(scene, "costs", "VK_FORMAT_R8_UINT", dims=extent)
    found = refused(ml, flow(scene, "hint_motion_vectors", "output_cost"))
    assert [(code, pointer.removeprefix(f"{COMMAND}/bindings/")) for code, pointer, _ in found] == [
        ("SR-FEATURE-003", f"{name}/resource_ref")
        for name in ("search_image", "template_image", "hint_motion_vectors", "output_image", "output_cost")
    ]
    assert found[-1][2] == "the optical flow: image 'costs' of VK_FORMAT_R8_UINT cannot be its cost on it"


@pytest.mark.parametrize(
    "change, places",
    [
        ({}, []),
        ({"grids": 1}, ["grid_size"]),
        ({"hints": False}, ["bindings/hint_motion_vectors/resource_ref"]),
        ({"hint_grids": 1}, ["bindings/hint_motion_vectors/resource_ref"]),
        ({"costs": False}, ["bindings/output_cost/resource_ref"]),
        ({"max_extent": (WIDTH, HEIGHT - 1)}, ["width"]),
    ],
)
def test_what_another_device_may_lack(ml: Runner, scene: Scene, change: dict[str, Any], places: list[str]) -> None:
    """Grid sizes, hints, costs and sizes that a device does not support: what this one reports, with one difference."""
    add_pictures(scene, *moved((1, 0)), grid=4)
    for uid, format in (("hints", VECTORS), ("costs", COSTS)):
        add_image(scene, uid, format, dims=[1, WIDTH // 4, HEIGHT // 4, 1])
    path = flow(scene, "hint_motion_vectors", "output_cost", grid=4).write()
    ml.run(path)  # from then on the device is seen through the layers, where it needs them
    family = ml.physical_device.queue_family()
    assert family is not None
    support = flow_support(ml.physical_device, family)
    assert isinstance(support, FlowSupport)
    (wanted,) = resolve(load(path)).graph_pipelines
    assert wanted.kind == "optical_flow"
    found = list(problems_of(wanted, support._replace(**change), "it"))
    assert [(each.pointer or "").removeprefix(f"{COMMAND}/") for each in found] == places

"""The ML emulation layers: enabled by the program itself, only where they are needed."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import UnsupportedError
from scenario_runner.plan.records import Requirements
from scenario_runner.vulkan.capabilities import enabled_for
from scenario_runner.vulkan.instance import DATA_GRAPH, TENSORS, Instance, needed_layers, open_layered
from scenario_runner.vulkan.layers import GRAPH_LAYER, TENSOR_LAYER
from tests.gpu.ml_scenes import VGF, bindings, emulation_layers, random
from tests.left_out import VGF_LIBRARY, needs
from tests.program import Program
from tests.scenes import Scene, glsl

LAYERS = (GRAPH_LAYER, TENSOR_LAYER)


def sums(scene: Scene) -> Path:
    """A scenario with a graph."""
    scene.tensor("left", random((4, 16))).tensor("right", random((4, 16), seed=2))
    scene.tensor("sum", dims=[4, 16]).tensor("difference", dims=[4, 16])
    scene.resource("graph", uid="graph", src=str(VGF / "ends.vgf"))
    places = bindings(["left", "right", "sum", "difference"])
    return scene.command("dispatch_graph", graph_ref="graph", bindings=places).write()


@needs(VGF_LIBRARY)
@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs the maps of Linux")
def test_a_scenario_without_tensors_loads_no_layer(scene: Scene, shader_cache: Path) -> None:
    """A process that runs a compute scenario does not map the layers; when it runs a graph it does."""
    scene.shader("set", glsl("a[0] = 1;", "layout(set = 0, binding = 0) buffer A { uint a[]; };")).buffer("a", size=4)
    scene.dispatch("set", ["a"])
    code = """
import sys
from scenario_runner import Runner
with Runner() as runner:
    for path in sys.argv[1:]:
        runner.run(path)
        maps = open("/proc/self/maps").read()
        print([name for name in ("libVkLayer_Graph.so", "libVkLayer_Tensor.so") if name in maps])
"""
    command = [sys.executable, "-c", code, str(scene.write("plain.json")), str(sums(Scene(scene.folder)))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines() == ["[]", "['libVkLayer_Graph.so', 'libVkLayer_Tensor.so']"]


@needs(VGF_LIBRARY)
def test_off_says_what_is_missing(scene: Scene, program: Program) -> None:
    """Without the layers, a device without the extensions is refused with a help."""
    ended = program(sums(scene), "--ml-emulation", "off")
    assert ended.code == UnsupportedError.exit_code
    assert "tensor 'left' needs tensors (VkPhysicalDeviceTensorFeaturesARM)" in ended.err
    assert "help: the ML emulation layers bring it to devices with compute shaders: --ml-emulation auto" in ended.err
    assert not list(scene.folder.glob("*.out.npy"))


def enabled_by_environment(scene: Scene) -> dict[str, str]:
    """With the layers in VK_INSTANCE_LAYERS the device looks as if it had the extensions itself."""
    libraries, manifests = emulation_layers(scene)
    return {"VK_INSTANCE_LAYERS": ":".join(LAYERS), "VK_LAYER_PATH": manifests, "LD_LIBRARY_PATH": libraries}


@needs(VGF_LIBRARY)
@pytest.mark.parametrize("mode, environment", [("auto", None), ("on", None), ("auto", enabled_by_environment)])
def test_the_command_line_enables_the_layers(scene: Scene, program: Program, mode: str, environment: Any) -> None:
    """A run from the command line finds and enables the layers by itself, and not twice."""
    ended = program(sums(scene), "--ml-emulation", mode, env=environment(scene) if environment else {})
    assert ended.code == 0, ended.err
    assert (numpy.load(scene.folder / "sum.out.npy") == random((4, 16)) + random((4, 16), seed=2)).all()


def test_what_graph_modules_declare_is_enabled() -> None:
    """Under the layers, which process graphs themselves, a graph's capabilities are enabled where the device has the
    feature, and none is missed where it has not."""
    graph = {"TensorsARM": "model", "CooperativeMatrixKHR": "model", "NoCapability": "model"}
    plain = Instance()
    try:
        layered = open_layered(needed_layers(plain.physical_devices[0], (TENSORS, DATA_GRAPH), "on"), validation=False)
        try:
            needed = Requirements({}, {}, graph_capabilities=graph)
            enabled = enabled_for(layered.physical_devices[0], needed, emulated=True)
            assert "shaderTensorAccess" in {feature.member for feature in enabled.features}
        finally:
            layered.close()
    finally:
        plain.close()


@needs(VGF_LIBRARY)
def test_one_runner_runs_both_kinds(scene: Scene, shader_cache: Path) -> None:
    """A Runner that was opened without the layers gets them when the first graph comes."""
    plain = Scene(scene.folder)
    plain.shader("set", glsl("a[0] = 7;", "layout(set = 0, binding = 0) buffer A { uint a[]; };")).buffer("a", size=4)
    path = plain.dispatch("set", ["a"]).write("plain.json")
    with Runner() as runner:
        assert runner.run(path).array("a", "u4")[0] == 7
        uuid = runner.physical_device.uuid
        result = runner.run(sums(scene))
        assert (result["sum"] == random((4, 16)) + random((4, 16), seed=2)).all()
        assert runner.run(path).array("a", "u4")[0] == 7
        assert runner.physical_device.uuid == uuid
    assert not any(runner.live_objects.values())


@needs(VGF_LIBRARY)
def test_formats_of_tensors_under_the_layers(scene: Scene, ml: Runner) -> None:
    """Once the layers are there, images of formats that VK_ARM_tensors brings are refused as before; a validation layer
    that does not know these formats is not listened to about them."""
    ml.run(sums(Scene(scene.folder)))
    image = Scene(scene.folder / "image")
    keys = {"dims": [1, 4, 4, 1], "format": "VK_FORMAT_R8_BOOL_ARM", "shader_access": "readwrite"}
    image.resource("image", uid="x", **keys)
    with pytest.raises(UnsupportedError, match="VK_FORMAT_R8_BOOL_ARM"):
        ml.run(image.write())

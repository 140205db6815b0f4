"""Scenarios with tensors and graphs, for the tests that run them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy

from scenario_runner.vulkan.layers import GRAPH_LAYER, TENSOR_LAYER, manifest_path, package_folder
from tests.scenes import Scene

CHECKOUT = Path(__file__).resolve().parents[2]
MODELS = CHECKOUT / "scenarios" / "ml"
VGF = CHECKOUT / "tests" / "ml" / "fixtures"
SPIRV = CHECKOUT / "tests" / "shaders" / "spirv" / "fixtures"

HEAD = """#version 460
#extension GL_ARM_tensors : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
"""


def bindings(uids: Mapping[int, str] | Sequence[str]) -> list[dict[str, Any]]:
    """Bindings of set 0: by number, or counted up."""
    numbered = uids if isinstance(uids, Mapping) else dict(enumerate(uids))
    return [{"set": 0, "id": number, "resource_ref": uid} for number, uid in numbered.items()]


def random(shape: Sequence[int], dtype: Any = "f4", seed: int = 1) -> Any:
    """Values between -1 and 1, or any integers of the type."""
    generator = numpy.random.default_rng(seed)
    kind = numpy.dtype(dtype)
    if kind.kind == "f":
        return generator.uniform(-1, 1, shape).astype(kind)
    if kind.kind == "b":
        return generator.integers(0, 2, shape).astype(kind)
    info = numpy.iinfo(kind)
    return generator.integers(info.min, info.max, shape, dtype=kind, endpoint=True)


def mixed_model(scene: Scene) -> Scene:
    """A model of a graph, a shader and a graph: z = (x + y)² + x / 2 + y."""
    scene.tensor("x", random((4, 16))).tensor("y", random((4, 16), seed=2))
    scene.tensor("z", dims=[4, 16])
    scene.resource("graph", uid="graph", src=str(VGF / "mixed.vgf"))
    return scene.command("dispatch_graph", graph_ref="graph", bindings=bindings({0: "x", 1: "y", 4: "z"}))


def three_graphs(scene: Scene) -> Path:
    """Add three graphs; the last two have session memory."""
    for name, x, y in (
        ("dynamic", [3, 16], [3, 16]),
        ("conv", [1, 8, 8, 2], [1, 8, 8, 4]),
        ("any_size", [1, 8, 6, 4], [1, 8, 3, 4]),
    ):
        scene.file(f"{name}.vgf", (VGF / f"{name}.vgf").read_bytes())
        scene.resource("graph", uid=name, src=f"{name}.vgf")
        scene.tensor(f"{name} x", random(x), dst=None).tensor(f"{name} y", dims=y, dst=f"{name}.npy")
        scene.command("dispatch_graph", graph_ref=name, bindings=bindings([f"{name} x", f"{name} y"]))
    return scene.write()


def emulation_layers(scene: Scene) -> tuple[str, str]:
    """LD_LIBRARY_PATH and VK_LAYER_PATH for the emulation layers: the graph layer is found before the tensor layer."""
    folder = package_folder()
    assert folder is not None
    for number, name in enumerate((GRAPH_LAYER, TENSOR_LAYER)):
        scene.file(f"layers/{number}/layer.json", Path(manifest_path(folder, name)).read_bytes())
    return f"{folder}/lib", f"{scene.folder}/layers/0:{scene.folder}/layers/1"

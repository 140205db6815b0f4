"""Where Arm's ML emulation layers for Vulkan are: in the Python package that brings them, or where the loader looks.

Whether they work is tried with `vulkan.ml_emulation`, as a run does it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import NamedTuple

from scenario_runner.doctor.manifests import Manifest, explicit_layers, layer_manifest

PACKAGE = "ai_ml_emulation_layer_for_vulkan"
GRAPH_LAYER = "VK_LAYER_ML_Graph_Emulation"
TENSOR_LAYER = "VK_LAYER_ML_Tensor_Emulation"
LAYERS = (GRAPH_LAYER, TENSOR_LAYER)
_IMPORT_NAME = "emulation_layer"


class EmulationLayers(NamedTuple):
    """Both layers. ``source`` is "package" or where the loader finds them ("system", or a variable's name);
    ``library_folder`` is where their libraries lie, None where the manifests tell."""

    source: str
    graph: Manifest
    tensor: Manifest
    library_folder: str | None


def find_emulation_layers(environ: Mapping[str, str]) -> EmulationLayers | None:
    """The layers that a run would use, the package's first; None when not both are there."""
    for folder in _package_folders():
        manifests = os.path.join(folder, "deploy", "share", "vulkan", "explicit_layer.d")
        graph = layer_manifest(os.path.join(manifests, "VkLayer_Graph.json"))
        tensor = layer_manifest(os.path.join(manifests, "VkLayer_Tensor.json"))
        if graph.problem is None and tensor.problem is None:
            libraries = os.path.join(folder, "deploy", "bin" if sys.platform == "win32" else "lib")
            return EmulationLayers("package", graph, tensor, libraries)
    found = {one.name: one for one in reversed(explicit_layers(environ)) if one.problem is None}
    if all(name in found for name in LAYERS):
        return EmulationLayers(found[GRAPH_LAYER].source, found[GRAPH_LAYER], found[TENSOR_LAYER], None)
    return None


def _package_folders() -> list[str]:
    try:
        spec = find_spec(_IMPORT_NAME)
    except (ImportError, ValueError):
        return []
    return list(spec.submodule_search_locations or ()) if spec is not None else []

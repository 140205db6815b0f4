"""Where Arm's ML emulation layers are: their names, and the Python package that brings them."""

from __future__ import annotations

import os
from importlib.util import find_spec

PACKAGE = "ai_ml_emulation_layer_for_vulkan"
GRAPH_LAYER = "VK_LAYER_ML_Graph_Emulation"
TENSOR_LAYER = "VK_LAYER_ML_Tensor_Emulation"
# The names of their manifests, without the extension.
FILES = {GRAPH_LAYER: "VkLayer_Graph", TENSOR_LAYER: "VkLayer_Tensor"}
_MODULE = "emulation_layer"


def package_folder() -> str | None:
    """The folder of the package that holds both layers; None without the package."""
    try:
        spec = find_spec(_MODULE)
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        deployed = os.path.join(folder, "deploy")
        if all(os.path.isfile(manifest_path(deployed, layer)) for layer in FILES):
            return deployed
    return None


def manifest_path(deployed: str, layer: str) -> str:
    """The manifest of a layer in the package's folder."""
    return os.path.join(deployed, "share", "vulkan", "explicit_layer.d", f"{FILES[layer]}.json")

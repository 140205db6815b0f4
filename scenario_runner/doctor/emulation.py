"""Where Arm's ML emulation layers for Vulkan are: in the Python package that brings them, or where the loader looks.

Whether they work is tried with `vulkan.ml_emulation`, as a run does it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple

from scenario_runner.doctor.manifests import Manifest, explicit_layers, layer_manifest
from scenario_runner.vulkan.devices.layers import GRAPH_LAYER, TENSOR_LAYER, manifest_path, package_folder

LAYERS = (GRAPH_LAYER, TENSOR_LAYER)


class EmulationLayers(NamedTuple):
    """Both layers. ``source`` is "package" or where the loader finds them ("system", or a variable's name);
    ``library_folder`` is where their libraries lie, None where the manifests tell."""

    source: str
    graph: Manifest
    tensor: Manifest
    library_folder: str | None


def find_emulation_layers(environ: Mapping[str, str]) -> EmulationLayers | None:
    """The layers that a run would use, the package's first; None when not both are there."""
    deployed = package_folder()
    if deployed is not None:
        graph, tensor = (layer_manifest(manifest_path(deployed, layer)) for layer in LAYERS)
        if graph.problem is None and tensor.problem is None:
            libraries = os.path.join(deployed, "bin" if sys.platform == "win32" else "lib")
            return EmulationLayers("package", graph, tensor, libraries)
    found = {one.name: one for one in reversed(explicit_layers(environ)) if one.problem is None}
    if all(name in found for name in LAYERS):
        return EmulationLayers(found[GRAPH_LAYER].source, found[GRAPH_LAYER], found[TENSOR_LAYER], None)
    return None

"""The manifests of drivers, layers and Arm's ML emulation layers that the Vulkan loader reads, and their problems.

Search order: "Driver Discovery" and "Layer Discovery" of the loader's documentation (LoaderDriverInterface.md,
LoaderLayerInterface.md) for Linux and macOS.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from scenario_runner.errors.text import Json, json_reason, reason_of
from scenario_runner.files.input import read_file
from scenario_runner.vulkan.layers import GRAPH_LAYER, TENSOR_LAYER, manifest_path, package_folder

# A manifest has a few kilobytes (the validation layer's has 60 KB); a much larger file is none.
_BYTES_MAX = 4 << 20
DRIVER_OVERRIDES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")


class Manifest(NamedTuple):
    """A manifest file; ``problem`` explains why it is unusable.

    ``source`` is the environment variable that names the file, or "system". The loader opens ``library``, an absolute
    path, or a file name that the system's linker searches.
    """

    path: str
    source: str
    name: str | None = None
    api_version: str | None = None
    library: str | None = None
    problem: str | None = None


def drivers(environ: Mapping[str, str]) -> list[Manifest]:
    """List driver manifests in the loader's order."""
    return _manifests(environ, "ICD", "VK_ADD_DRIVER_FILES", DRIVER_OVERRIDES, "icd.d")


def explicit_layers(environ: Mapping[str, str]) -> list[Manifest]:
    """List the manifests of layers that a program can enable, in the loader's order."""
    return _manifests(environ, "layer", "VK_ADD_LAYER_PATH", ("VK_LAYER_PATH",), "explicit_layer.d")


def _manifests(
    environ: Mapping[str, str], kind: str, added: str, overrides: Sequence[str], folder: str
) -> list[Manifest]:
    """List the manifests that the variable ``added`` names, then further manifests.

    The first set variable of ``overrides`` names the further manifests; without it, they lie in the system's folders.
    """
    override = next((name for name in overrides if environ.get(name)), None)
    variables = (added, override) if override else (added,)
    places = [(place, name) for name in variables for place in _listed(environ, name, "")]
    if not override:
        places += [(os.path.join(base, "vulkan", folder), "system") for base in _bases(environ)]
    return [read_manifest(path, source, kind) for path, source in _files(places)]


def _files(places: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield each manifest once, with the source; also yield a missing file that a variable names."""
    seen = set()
    for place, source in places:
        paths = [place]
        if os.path.isdir(place):
            try:
                paths = [os.path.join(place, name) for name in sorted(os.listdir(place)) if name.endswith(".json")]
            except OSError:
                continue
        elif source == "system" and not os.path.lexists(place):
            continue
        for path in paths:
            real = os.path.realpath(path)
            if real not in seen:
                seen.add(real)
                yield path, source


def read_manifest(path: str, source: str, kind: str) -> Manifest:
    """Read the manifest for a driver (the kind "ICD") or a "layer"."""
    manifest = Manifest(path, source)
    try:
        content: Json = json.loads(read_file(path, _BYTES_MAX))
    except FileNotFoundError:
        return manifest._replace(problem="the file does not exist")
    except OSError as error:
        return manifest._replace(problem=f"it cannot be read: {reason_of(error)}")
    except (ValueError, RecursionError) as error:
        return manifest._replace(problem=f"it is not valid JSON: {json_reason(error).lower()}")
    entry = content.get(kind) if isinstance(content, dict) else None
    if kind == "layer" and entry is None and isinstance(content, dict) and isinstance(content.get("layers"), list):
        entry = next(iter(content["layers"]), None)
    if not isinstance(entry, dict):
        return manifest._replace(problem=f"it has no {kind!r} object")
    texts = {key: value for key, value in entry.items() if isinstance(value, str)}
    manifest = manifest._replace(name=texts.get("name"), api_version=texts.get("api_version"))
    library = texts.get("library_path")
    if not library or "\0" in library:
        has_layers = kind == "layer" and "component_layers" in entry
        return manifest._replace(problem=None if has_layers else "it has no library_path")
    problem = None
    bits = texts.get("library_arch")
    if bits in ("32", "64") and bits != ("64" if sys.maxsize > 1 << 32 else "32"):
        problem = f"its library is for {bits}-bit programs"
    if "/" in library:
        library = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(path)), library))
        if not os.path.exists(library):
            problem = f"its library {library!r} does not exist"
    return manifest._replace(library=library, problem=problem)


def _bases(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the folders that may hold ``vulkan/icd.d`` and ``vulkan/explicit_layer.d``."""
    home = environ.get("HOME", "")
    mac = sys.platform == "darwin"
    yield from _listed(environ, "XDG_CONFIG_HOME", f"{home}/.config" if home else "")
    yield from _listed(environ, "XDG_CONFIG_DIRS", "/etc/xdg")
    yield from ("/usr/local/etc", "/etc", *(["/opt/homebrew/etc"] if mac else []))
    yield from _listed(environ, "XDG_DATA_HOME", f"{home}/.local/share" if home else "")
    yield from _listed(environ, "XDG_DATA_DIRS", "/usr/local/share:/usr/share")
    if mac:
        yield from ("/opt/homebrew/share", "/usr/local/share")


def _listed(environ: Mapping[str, str], variable: str, default: str) -> list[str]:
    return [entry for entry in (environ.get(variable) or default).split(os.pathsep) if entry]


LAYERS = (GRAPH_LAYER, TENSOR_LAYER)


class EmulationLayers(NamedTuple):
    """Arm's graph and tensor layers.

    ``source`` is "package", or where the loader finds the layers: "system" or the name of a variable.
    ``library_folder`` holds the package's libraries; None if the manifests name the libraries.
    """

    source: str
    graph: Manifest
    tensor: Manifest
    library_folder: str | None


def find_emulation_layers(environ: Mapping[str, str]) -> EmulationLayers | None:
    """Find the layers that a run would use, first in the package. Return None unless both exist."""
    deployed = package_folder()
    if deployed is not None:
        graph, tensor = (read_manifest(manifest_path(deployed, layer), "package", "layer") for layer in LAYERS)
        if graph.problem is None and tensor.problem is None:
            return EmulationLayers("package", graph, tensor, os.path.join(deployed, "lib"))
    layers = {layer.name: layer for layer in reversed(explicit_layers(environ)) if layer.problem is None}
    if all(name in layers for name in LAYERS):
        return EmulationLayers(layers[GRAPH_LAYER].source, layers[GRAPH_LAYER], layers[TENSOR_LAYER], None)
    return None

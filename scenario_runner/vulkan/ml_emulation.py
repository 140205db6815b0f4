"""Arm's ML emulation layers: VK_ARM_tensors and VK_ARM_data_graph for devices that have compute shaders only.

The layers come with the Python package ``ai_ml_emulation_layer_for_vulkan`` (the ``ml`` extra). Its manifests name the
libraries without a folder, so manifests of our own, with absolute paths, go into the user's cache folder, and the
Vulkan loader is pointed there while an instance is made: environment variables need not be set. Order matters: the
graph layer stands on the tensor layer.
"""

from __future__ import annotations

import os
import sys
import threading
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Literal

from scenario_runner import errors
from scenario_runner.content_cache import default_cache_dir, is_trusted, replace_own
from scenario_runner.temporary import make_folder
from scenario_runner.vulkan import ffi, loader
from scenario_runner.vulkan.device import Checks, Instance
from scenario_runner.vulkan.layers import (
    FILES,
    GRAPH_LAYER,
    PACKAGE,
    TENSOR_LAYER,
    available_layers,
    manifest_path,
    package_folder,
)
from scenario_runner.vulkan.loader import API_1_3
from scenario_runner.vulkan.physical_device import PhysicalDevice
from scenario_runner.vulkan.requirements import reason_against

Mode = Literal["auto", "on", "off"]

TENSORS = "VK_ARM_tensors"
DATA_GRAPH = "VK_ARM_data_graph"

# Older loaders know VK_LAYER_PATH alone, which replaces the standard folders instead of adding to them.
_ADD_LAYER_PATH_SINCE = API_1_3 | 234
_STANDARD_FOLDERS = ("/usr/local/etc", "/usr/local/share", "/etc", "/usr/share")

# Environment variables belong to the whole process.
_environment = threading.Lock()


def wanted_layers(physical: PhysicalDevice, needed: Collection[str], mode: Mode) -> tuple[str, ...]:
    """The layers that ``physical`` needs for the device extensions in ``needed``, in their order; mostly none.

    ``mode`` is ``--ml-emulation``: "auto" takes what the device has itself, "on" prefers the layers, "off" never loads
    them. Layers that the environment enables already make the device look as if it had the extensions itself.
    """
    lacking = {name for name in needed if name not in physical.extensions}
    if mode == "off" or not needed or (mode == "auto" and not lacking):
        return ()
    if TENSORS in physical.extensions:  # layers over a device with tensors: only graphs are to be had
        return () if DATA_GRAPH in physical.extensions else (GRAPH_LAYER,)
    return (GRAPH_LAYER, TENSOR_LAYER)


def reopen(
    instance: Instance, physical: PhysicalDevice, layers: tuple[str, ...], *, validation: Checks
) -> tuple[Instance, PhysicalDevice]:
    """The same device seen through ``layers``; the old instance is closed then.

    Raises UnsupportedError, and leaves the old instance open, when the layers are not installed or cannot run on it.
    """
    reason = reason_against(physical)
    if reason is not None:
        raise errors.UnsupportedError(
            f"{physical.name!r} has no {TENSORS} and {DATA_GRAPH}, and the ML emulation layers cannot run on it:"
            f" {reason}"
        )
    layered = open_layered(layers, validation=validation, labels=instance.labels)
    for device in layered.physical_devices:
        if device.index == physical.index and device.uuid == physical.uuid:
            layered.follow(instance)
            instance.close()
            return layered, device
    layered.close()
    raise errors.UnsupportedError(f"the ML emulation layers do not show the device {physical.name!r}")


def open_layered(layers: tuple[str, ...], *, validation: Checks, labels: bool = False) -> Instance:
    """An instance with the emulation layers. Raises MissingPackageError when they are not installed."""
    folder = _manifest_folder()
    if folder is not None:
        with _layer_path(folder):
            return Instance(layers=layers, validation=validation, labels=labels)
    if not {*layers} <= {name for name, _, _ in available_layers()}:
        raise errors.MissingPackageError(
            "the ML emulation layers, which run tensors and graphs on devices without"
            f" {TENSORS} and {DATA_GRAPH}, are not installed",
            help=f"install them with 'scenario-runner doctor --fix', or: pip install {PACKAGE}",
        )
    return Instance(layers=layers, validation=validation, labels=labels)


def _manifest_folder() -> str | None:
    """A folder with manifests that name the package's libraries by their whole paths; None without the package."""
    deployed = package_folder()
    if deployed is None:
        return None
    stamps = [os.stat(manifest_path(deployed, layer)).st_mtime_ns for layer in FILES]
    name = f"{zlib.crc32(repr((deployed, stamps)).encode()):08x}"
    parent = os.path.join(default_cache_dir(), "ml-emulation")
    folder = os.path.join(parent, name)
    # The loader loads the libraries that these manifests name.
    trusted = all(is_trusted(path) for path in (default_cache_dir(), parent, folder))
    if trusted and all(os.path.isfile(os.path.join(folder, f"{file}.json")) for file in FILES.values()):
        return folder
    texts = {file: _absolute(deployed, layer) for layer, file in FILES.items()}
    try:
        if not trusted:
            raise PermissionError(folder)
        _write(folder, texts)
    except OSError:  # no cache folder, no room in it, or not this user's alone
        folder = make_folder()
        _write(folder, texts)
    return folder


def _absolute(deployed: str, layer: str) -> str:
    """The manifest of a layer with the path of its library made absolute."""
    import json

    with open(manifest_path(deployed, layer), encoding="utf-8") as file:
        manifest = json.load(file)
    library = manifest["layer"]["library_path"]
    if not os.path.isabs(library):
        libraries = os.path.join(deployed, "bin" if sys.platform == "win32" else "lib")
        manifest["layer"]["library_path"] = os.path.join(libraries, os.path.basename(library))
    return json.dumps(manifest, indent=1)


def _write(folder: str, texts: dict[str, str]) -> None:
    """Each file appears complete: another process may be reading it at any time."""
    parent = os.path.dirname(folder)
    for path in (os.path.dirname(parent), parent, folder):
        os.makedirs(path, mode=0o700, exist_ok=True)
    for name, text in texts.items():
        replace_own(os.path.join(folder, f"{name}.json"), text.encode())


@contextmanager
def _layer_path(folder: str) -> Iterator[None]:
    """Let the Vulkan loader search ``folder`` as well, as long as the block runs."""
    loader.load()
    with _environment:
        changed = {}
        if os.environ.get("VK_LAYER_PATH"):
            changed["VK_LAYER_PATH"] = os.pathsep.join((folder, os.environ["VK_LAYER_PATH"]))
        elif _loader_version() >= _ADD_LAYER_PATH_SINCE:
            more = os.environ.get("VK_ADD_LAYER_PATH")
            changed["VK_ADD_LAYER_PATH"] = os.pathsep.join((folder, more)) if more else folder
        else:
            standard = [os.path.join(base, "vulkan", "explicit_layer.d") for base in _STANDARD_FOLDERS]
            changed["VK_LAYER_PATH"] = os.pathsep.join((folder, *standard))
        before = {name: os.environ.get(name) for name in changed}
        os.environ.update(changed)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _loader_version() -> int:
    version = ffi.new("uint32_t*")
    loader.instance_function(ffi.NULL, "vkEnumerateInstanceVersion")(version)
    return int(version[0])

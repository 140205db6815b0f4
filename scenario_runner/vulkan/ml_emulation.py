"""Arm's ML emulation layers: VK_ARM_tensors and VK_ARM_data_graph for devices that have compute shaders only.

The layers come with the Python package ``ai_ml_emulation_layer_for_vulkan`` (the ``ml`` extra). The Vulkan loader is
pointed to its manifests while an instance is made: environment variables need not be set. Manifests for Linux name the
libraries without a folder; the system finds a library by this name while it is loaded, so that they are loaded before.
Order matters: the graph layer stands on the tensor layer.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Literal

from scenario_runner import errors
from scenario_runner.vulkan import ffi, vulkan_loader
from scenario_runner.vulkan.capabilities import reason_against
from scenario_runner.vulkan.device import Checks, Instance
from scenario_runner.vulkan.layers import (
    FILES,
    GRAPH_LAYER,
    PACKAGE,
    TENSOR_LAYER,
    available_layers,
    manifest_path,
    package_folder,
    with_environment,
)
from scenario_runner.vulkan.physical_device import PhysicalDevice
from scenario_runner.vulkan.vulkan_loader import API_1_3

if TYPE_CHECKING:
    from scenario_runner.vulkan.printf import Printer

Mode = Literal["auto", "on", "off"]

TENSORS = "VK_ARM_tensors"
DATA_GRAPH = "VK_ARM_data_graph"

# Older loaders know VK_LAYER_PATH alone, which replaces the standard folders instead of adding to them.
_ADD_LAYER_PATH_SINCE = API_1_3 | 234
_STANDARD_FOLDERS = ("/usr/local/etc", "/usr/local/share", "/etc", "/usr/share")


def needed_layers(physical: PhysicalDevice, needed: Collection[str], mode: Mode) -> tuple[str, ...]:
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
    layered = open_layered(layers, validation=validation, labels=instance.labels, printer=instance.printer)
    for device in layered.physical_devices:
        if device.index == physical.index and device.uuid == physical.uuid:
            layered.follow(instance)
            instance.close()
            return layered, device
    layered.close()
    raise errors.UnsupportedError(f"the ML emulation layers do not show the device {physical.name!r}")


def open_layered(
    layers: tuple[str, ...], *, validation: Checks, labels: bool = False, printer: Printer | None = None
) -> Instance:
    """An instance with the emulation layers. Raises MissingPackageError when they are not installed."""
    deployed = package_folder()
    if deployed is None and not {*layers} <= {name for name, _, _ in available_layers()}:
        raise errors.MissingPackageError(
            "the ML emulation layers, which run tensors and graphs on devices without"
            f" {TENSORS} and {DATA_GRAPH}, are not installed",
            help=f"install them with 'scenario-runner doctor --fix', or: pip install {PACKAGE}",
        )
    with nullcontext() if deployed is None else _search_path(deployed):
        return Instance(layers=layers, validation=validation, labels=labels, printer=printer)


@contextmanager
def _search_path(deployed: str) -> Iterator[None]:
    """Let the Vulkan loader find the layers in the package's folder, as long as the block runs."""
    with ExitStack() as stack:
        for file in FILES.values():
            with suppress(OSError):
                library = ffi.dlopen(os.path.join(deployed, "lib", f"lib{file}.so"))
                stack.callback(ffi.dlclose, library)
        name, others = "VK_ADD_LAYER_PATH", os.environ.get("VK_ADD_LAYER_PATH")
        if os.environ.get("VK_LAYER_PATH") or vulkan_loader.loader_version() < _ADD_LAYER_PATH_SINCE:
            standard = [os.path.join(base, "vulkan", "explicit_layer.d") for base in _STANDARD_FOLDERS]
            name, others = "VK_LAYER_PATH", os.environ.get("VK_LAYER_PATH") or os.pathsep.join(standard)
        folder = os.path.dirname(manifest_path(deployed, GRAPH_LAYER))
        stack.enter_context(with_environment(name, os.pathsep.join(filter(None, (folder, others)))))
        yield

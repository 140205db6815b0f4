"""Layers: those that are installed, what they bring, and those that the environment adds to the instance.

Nothing in Vulkan tells a program that a layer is there: tools that should say so (VK_EXT_tooling_info) mostly do not.
So the variables that the Vulkan loader reads are looked at.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from fnmatch import fnmatchcase

from scenario_runner.vulkan.api import loader
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.result import check
from scenario_runner.vulkan.devices.ml_layers import FILES as ML_LAYERS

RENDERDOC_VARIABLE = "ENABLE_VULKAN_RENDERDOC_CAPTURE"
RENDERDOC_LAYER = "VK_LAYER_RENDERDOC_Capture"
LAYERS_VARIABLE = "VK_INSTANCE_LAYERS"
FRAME_BOUNDARY = "VK_EXT_frame_boundary"


tools: list[str] = []
"""Layers that this program was asked to load, next to the driver: below the ML emulation layers, whose calls they see.

Add one before the first instance is made."""


def requested_layers() -> list[str]:
    """The names of layers, or patterns of names with ``*``, that the environment or a caller asks for; mostly none."""
    environ = os.environ
    names = [name for name in environ.get(LAYERS_VARIABLE, "").split(os.pathsep) if name]
    names += [name for name in environ.get("VK_LOADER_LAYERS_ENABLE", "").split(",") if name]
    if environ.get(RENDERDOC_VARIABLE) == "1":
        names.append(RENDERDOC_LAYER)
    return names + tools


def with_ml_emulation(layers: Collection[str]) -> bool:
    """Whether an ML emulation layer is among the layers of an instance, or of those that the environment adds."""
    asked = [*layers, *requested_layers()]
    return any(fnmatchcase(name, each) for name in ML_LAYERS for each in asked)


def present_layers() -> list[str]:
    """Those of them that are installed, so that the loader loads them. Asks the loader where there are any."""
    wanted = requested_layers()
    if not wanted:
        return []
    return [name for name, _, _ in available_layers() if any(fnmatchcase(name, each) for each in wanted)]


def available_layers() -> list[tuple[str, str, str]]:
    """Name, implementation version and description of each layer that the loader finds."""
    loader.load()
    enumerate_layers = loader.instance_function(ffi.NULL, "vkEnumerateInstanceLayerProperties")
    count = ffi.new("uint32_t*")
    check(enumerate_layers(count, ffi.NULL), "vkEnumerateInstanceLayerProperties")
    layers = ffi.new("VkLayerProperties[]", count[0])
    if count[0]:
        check(enumerate_layers(count, layers), "vkEnumerateInstanceLayerProperties")
    return [
        (
            ffi.string(layer.layerName).decode(),
            str(layer.implementationVersion),
            ffi.string(layer.description).decode(errors="replace"),
        )
        for layer in layers[0 : count[0]]
    ]


def has_instance_extension(name: str, layer: str | None = None) -> bool:
    """Whether ``layer`` brings the extension; without one, whether the loader, a driver or an implicit layer does."""
    enumerate_extensions = loader.instance_function(ffi.NULL, "vkEnumerateInstanceExtensionProperties")
    of = ffi.NULL if layer is None else ffi.new("char[]", layer.encode())
    count = ffi.new("uint32_t*")
    check(enumerate_extensions(of, count, ffi.NULL), "vkEnumerateInstanceExtensionProperties")
    found = ffi.new("VkExtensionProperties[]", count[0])
    check(enumerate_extensions(of, count, found), "vkEnumerateInstanceExtensionProperties")
    return any(ffi.string(each.extensionName) == name.encode() for each in found[0 : count[0]])

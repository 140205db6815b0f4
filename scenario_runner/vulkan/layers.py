"""Vulkan layers: installed layers, the environment's layers, and the ML emulation and validation layers.

Few layers report themselves (VK_EXT_tooling_info). The variables of the Vulkan loader are therefore inspected.
"""

import os
import re
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from importlib.util import find_spec

from scenario_runner.vulkan import Handle, ffi, vulkan_api
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.vulkan_api import enumerated, new

PACKAGE = "ai_ml_emulation_layer_for_vulkan"
GRAPH_LAYER = "VK_LAYER_ML_Graph_Emulation"
TENSOR_LAYER = "VK_LAYER_ML_Tensor_Emulation"
# Names of the layers' manifests, without extension.
FILES = {GRAPH_LAYER: "VkLayer_Graph", TENSOR_LAYER: "VkLayer_Tensor"}
_MODULE = "emulation_layer"


def package_folder() -> str | None:
    """Return the folder of the package that holds both layers; None without the package."""
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
    """Return the path of a layer's manifest in the package's folder."""
    return os.path.join(deployed, "share", "vulkan", "explicit_layer.d", f"{FILES[layer]}.json")


# Environment variables belong to the whole process.
_environment = threading.RLock()


@contextmanager
def with_environment(name: str, value: str) -> Iterator[None]:
    """Set a variable that the loader or a layer reads at the creation of an instance, while the block runs."""
    with _environment:
        before = os.environ.get(name)
        os.environ[name] = value
        try:
            yield
        finally:
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before


RENDERDOC_VARIABLE = "ENABLE_VULKAN_RENDERDOC_CAPTURE"
RENDERDOC_LAYER = "VK_LAYER_RENDERDOC_Capture"
LAYERS_VARIABLE = "VK_INSTANCE_LAYERS"
FRAME_BOUNDARY = "VK_EXT_frame_boundary"


tools: list[str] = []
"""Layers that the program loads next to the driver: below the ML emulation layers, whose calls they see.

Add a layer before the first instance is created."""


def requested_layers() -> list[str]:
    """List the layers, or patterns with ``*``, that the environment or a caller requests; mostly none."""
    environ = os.environ
    names = [name for name in environ.get(LAYERS_VARIABLE, "").split(os.pathsep) if name]
    names += [name for name in environ.get("VK_LOADER_LAYERS_ENABLE", "").split(",") if name]
    if environ.get(RENDERDOC_VARIABLE) == "1":
        names.append(RENDERDOC_LAYER)
    return names + tools


def with_ml_emulation(layers: Collection[str]) -> bool:
    """Return whether an instance's layers, or the environment's, include an ML emulation layer."""
    patterns = [*layers, *requested_layers()]
    return any(fnmatchcase(name, pattern) for name in FILES for pattern in patterns)


def layer_warning() -> str:
    """Return a sentence about unknown names in VK_INSTANCE_LAYERS, which Vulkan's loader ignores; "" without any."""
    named = os.environ.get(LAYERS_VARIABLE)
    return unknown_layers(named, [name for name, _, _ in available_layers()]) if named else ""


def present_layers() -> list[str]:
    """List the requested layers that are installed. The loader is only asked if some are requested."""
    names = requested_layers()
    if not names:
        return []
    return [name for name, _, _ in available_layers() if any(fnmatchcase(name, pattern) for pattern in names)]


def unknown_layers(named: str, available: Collection[str]) -> str:
    """Return a sentence about unknown layer names in a value of VK_INSTANCE_LAYERS; "" if all are known."""
    unknown = [name for name in re.split("[:;]", named) if name and name not in available]
    return f"{LAYERS_VARIABLE} names layers that are not installed: {', '.join(unknown)}" if unknown else ""


def available_layers() -> list[tuple[str, str, str]]:
    """List each layer known to the loader: name, implementation version and description."""
    vulkan_api.load()
    name = "vkEnumerateInstanceLayerProperties"
    layers = enumerated("VkLayerProperties", name, vulkan_api.instance_function(ffi.NULL, name))
    return [
        (text_of(layer.layerName), str(layer.implementationVersion), text_of(layer.description)) for layer in layers
    ]


def has_instance_extension(name: str, layer: str | None = None) -> bool:
    """Return whether ``layer`` brings the extension; without a layer, whether a loader, driver or implicit layer
    does."""
    call = "vkEnumerateInstanceExtensionProperties"
    of = ffi.NULL if layer is None else ffi.new("char[]", layer.encode())
    properties = enumerated("VkExtensionProperties", call, vulkan_api.instance_function(ffi.NULL, call), of)
    return any(ffi.string(extension.extensionName) == name.encode() for extension in properties)


_COMMAND = re.compile(r"command (\d+)\b")


def with_place(data: Handle, subject: str | None) -> tuple[str | None, str]:
    """Return a VkDebugUtilsMessengerCallbackDataEXT's JSON pointer, and the message with the place before it.

    ``subject`` is the object that is being created or recorded. If it is unknown, labels of the command buffer name it.
    """
    names = [text_of(named.pObjectName) for named in data.pObjects[0 : data.objectCount] if named.pObjectName]
    if subject is None:
        for label in data.pCmdBufLabels[0 : data.cmdBufLabelCount]:
            match = _COMMAND.match(text_of(label.pLabelName))
            if match:
                subject = f"/commands/{match[1]}"
    parts = [] if subject is None else [subject]
    parts += [", ".join(map(repr, dict.fromkeys(filter(None, names))))] if any(names) else []
    return subject, ": ".join([*parts, text_of(data.pMessage)])


def text_of(chars: Handle) -> str:
    """Return the text of a layer; empty for NULL."""
    return "" if chars == ffi.NULL else str(ffi.string(chars).decode(errors="replace"))


VALIDATION_LAYER = "VK_LAYER_KHRONOS_validation"

# The ML emulation layers cause these messages in a validation layer below. They query tensors of a format through all
# layers; structure and formats belong to VK_ARM_tensors. A tensor in the memory of an OPTIMAL image is a buffer of size
# 0 to them, which they access by address. Their pipeline layout of TRANSPOSE lacks room for its push constants; those
# of a scenario's shaders are checked before.
OF_ML_LAYERS = re.compile(
    r"vkGetPhysicalDeviceFormatProperties2?\b.*(\(100046000\d\)|requires the extensions VK_ARM_tensors)"
    r"|VUID-VkBufferCreateInfo-size-00912\b|VUID-VkBufferMemoryBarrier2-offset-01187\b"
    r"|^/resources/\d+/graph: .*VUID-VkComputePipelineCreateInfo-layout-00703\b.*Push constant buffer",
    re.DOTALL,
)
# Since 1.4.304, synchronization validation ignores accesses of shaders unless the second setting is on.
_FOR_HAZARDS = ("validate_sync", "syncval_shader_accesses_heuristic")
_LAYER_SETTINGS = "VK_EXT_layer_settings"


def validation_structs(checks: bool, *, hazards: bool, printf: bool) -> list[Handle]:
    """Return structures for VkInstanceCreateInfo that add to the layer's ``checks``, or replace them.

    Older versions know only the first structure.
    """
    features = [vk.VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT] if hazards else []
    features += [vk.VALIDATION_FEATURE_ENABLE_DEBUG_PRINTF_EXT] if printf else []
    disabled = [] if checks else [vk.VALIDATION_FEATURE_DISABLE_ALL_EXT]
    structs = [
        new("VkValidationFeaturesEXT", pEnabledValidationFeatures=features, pDisabledValidationFeatures=disabled)
    ]
    if hazards and has_instance_extension(_LAYER_SETTINGS, VALIDATION_LAYER):
        settings = [
            {
                "pLayerName": VALIDATION_LAYER,
                "pSettingName": name,
                "type": vk.LAYER_SETTING_TYPE_BOOL32_EXT,
                "valueCount": 1,
                "pValues": (1).to_bytes(4, "little"),
            }
            for name in _FOR_HAZARDS
        ]
        structs.append(new("VkLayerSettingsCreateInfoEXT", pSettings=settings))
    return structs

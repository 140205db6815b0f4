"""The child process that asks the loader and the drivers: ``python -m scenario_runner.doctor.probe REQUEST``.

A driver or layer that crashes or hangs takes this process with it. So the process announces each step before it begins
the step, and prints each fact at once as a line of JSON. After a crash, earlier facts are kept and the last step names
the culprit. Layers print to standard output too: here that goes to standard error.

The request is JSON. With the ``detail`` "full" the process sends everything, with "ml" the devices as the ML emulation
layers show them, with "validation" whether the validation layer loads. ``libraries`` are loaded in turn.
"""

import ctypes
import json
import os
import sys
from collections.abc import Callable, Sequence

from scenario_runner.errors import NoDeviceError, ScenarioRunnerError
from scenario_runner.files.vk_formats import all_formats
from scenario_runner.vulkan import Handle, ffi, vulkan_api
from scenario_runner.vulkan._generated.features import CORE_FEATURES, FEATURES
from scenario_runner.vulkan.capabilities import emulation_obstacle
from scenario_runner.vulkan.instance import Instance, choose, open_layered
from scenario_runner.vulkan.layers import GRAPH_LAYER, TENSOR_LAYER, text_of
from scenario_runner.vulkan.measurements import instrumentation_capability, instrumentation_required
from scenario_runner.vulkan.physical_device import CORE, PhysicalDevice
from scenario_runner.vulkan.vulkan_api import (
    API_1_2,
    API_1_3,
    enumerated,
    library_of,
    load,
    loader_version,
    version_text,
)


def main(argv: Sequence[str]) -> None:
    """Answer a request."""
    request = json.loads(argv[1])
    facts = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")  # sends each line before the next step
    os.dup2(2, 1)

    def send(key: str, value: object) -> None:
        facts.write(json.dumps([key, value]) + "\n")

    try:
        _ask(request["detail"], send)
    except ScenarioRunnerError as error:
        send("error", {"message": str(error), "help": error.problems[0].help})
    except Exception as error:  # a driver's odd answer is a finding; the libraries are still tried
        send("error", {"message": f"{type(error).__name__}: {error}", "help": None})
    for path in request["libraries"]:
        send("step", f"opening {path}")
        problem = None
        try:
            ctypes.CDLL(path)
        except OSError as error:
            problem = str(error)
        send("library", {"path": path, "problem": problem})
    send("step", "the end of the process")
    send("done", True)


def _ask(detail: str, send: Callable[[str, object], None]) -> None:
    full = detail == "full"
    send("step", "opening the Vulkan loader")
    library = load()
    if full:
        send("loader", {"path": library_of(library.vkGetInstanceProcAddr)})
        send("step", "vkEnumerateInstanceVersion")
        send("loader_version", version_text(loader_version()))
        send("step", "vkEnumerateInstanceLayerProperties")
        for layer in _layers():
            send("layer", layer)
        send("step", "vkEnumerateInstanceExtensionProperties")
        extensions = _enumerated("Extension", ffi.NULL)
        send("instance_extensions", {text_of(each.extensionName): each.specVersion for each in extensions})
    send("step", "vkCreateInstance")
    if detail == "ml":
        instance = open_layered((GRAPH_LAYER, TENSOR_LAYER), validation=False)
    else:
        instance = Instance(validation=detail == "validation")
    send("instance", True)
    if detail != "validation":
        for device in instance.physical_devices:
            send("step", f"asking device {device.index} for its properties")
            send("device", describe(device) if full else {**identity(device), "ml_facts": ml_facts(device)})
    if full:
        try:
            send("default", choose(instance.physical_devices, None).index)
        except NoDeviceError:
            send("default", None)
    send("step", "vkDestroyInstance")
    instance.close()


def _layers() -> list[dict[str, object]]:
    """Describe every layer that the loader finds. No library is opened."""
    return [
        {
            "name": text_of(layer.layerName),
            "spec_version": version_text(layer.specVersion),
            "implementation_version": layer.implementationVersion,
            "description": text_of(layer.description),
        }
        for layer in _enumerated("Layer")
    ]


def _enumerated(kind: str, *arguments: object) -> Handle:
    """Call vkEnumerateInstance…Properties for layers or extensions."""
    name = f"vkEnumerateInstance{kind}Properties"
    return enumerated(f"Vk{kind}Properties", name, vulkan_api.instance_function(ffi.NULL, name), *arguments)


_ML_EXTENSIONS = ("VK_ARM_tensors", "VK_ARM_data_graph")  # prefixes
# Structures that extend VkPhysicalDeviceProperties2, with the core version or the extension that defines each.
_PROPERTIES = {
    "VkPhysicalDeviceVulkan11Properties": (API_1_2, None),
    "VkPhysicalDeviceVulkan12Properties": (API_1_2, None),
    "VkPhysicalDeviceVulkan13Properties": (API_1_3, None),
    "VkPhysicalDeviceSubgroupSizeControlProperties": (API_1_3, "VK_EXT_subgroup_size_control"),
    "VkPhysicalDeviceShaderIntegerDotProductProperties": (API_1_3, "VK_KHR_shader_integer_dot_product"),
    "VkPhysicalDeviceMaintenance4Properties": (API_1_3, "VK_KHR_maintenance4"),
    "VkPhysicalDeviceRobustness2PropertiesEXT": (0, "VK_EXT_robustness2"),
    "VkPhysicalDeviceCooperativeMatrixPropertiesKHR": (0, "VK_KHR_cooperative_matrix"),
    "VkPhysicalDeviceExternalMemoryHostPropertiesEXT": (0, "VK_EXT_external_memory_host"),
    "VkPhysicalDeviceTensorPropertiesARM": (0, "VK_ARM_tensors"),
    "VkPhysicalDeviceShaderInstrumentationPropertiesARM": (0, "VK_ARM_shader_instrumentation"),
}
# Names of flags by bit.
_QUEUE_FLAGS = {0: "graphics", 1: "compute", 2: "transfer", 3: "sparse_binding", 10: "data_graph"}
_MEMORY = dict(enumerate((
    "device_local", "host_visible", "host_coherent", "host_cached", "lazily_allocated", "protected",
)))  # fmt: skip
_SUBGROUP = dict(enumerate((
    "basic", "vote", "arithmetic", "ballot", "shuffle", "shuffle_relative", "clustered", "quad", "partitioned",
    "rotate", "rotate_clustered",
)))  # fmt: skip


def identity(physical: PhysicalDevice) -> dict[str, object]:
    """Return the keys that identify a device; `describe` begins with the same keys."""
    return {"index": physical.index, "name": physical.name, "type": physical.type, "uuid": physical.uuid}


def describe(physical: PhysicalDevice) -> dict[str, object]:
    """Return all facts about a device, except the ML path."""
    core, vulkan12, memory = physical.properties, physical.vulkan12_properties, physical.memory_types
    local_heaps = {heap for flags, heap in memory if flags & 1}
    conformance = vulkan12.conformanceVersion
    return {
        **identity(physical),
        "api_version": version_text(physical.api_version),
        "vendor_id": core.vendorID,
        "device_id": core.deviceID,
        "driver": {
            "name": text_of(vulkan12.driverName),
            "info": text_of(vulkan12.driverInfo),
            "id": vulkan12.driverID,
            "version": core.driverVersion,
            "uuid": bytes(ffi.buffer(physical.vulkan11_properties.driverUUID)).hex(),
            "conformance": f"{conformance.major}.{conformance.minor}.{conformance.subminor}.{conformance.patch}",
        },
        "unusable_because": physical.unusable_because(),
        "limits": _members(core.limits),
        "properties": _properties(physical),
        "features": features(physical),
        "extensions": dict(sorted(physical.extensions.items())),
        "subgroup_operations": _names(physical.vulkan11_properties.subgroupSupportedOperations, _SUBGROUP),
        "memory": {
            "heaps": [
                {"size_bytes": size, "device_local": heap in local_heaps}
                for heap, size in enumerate(physical.memory_heaps)
            ],
            "types": [{"heap": heap, "flags": _names(flags, _MEMORY)} for flags, heap in memory],
        },
        "queue_families": [
            {"flags": _names(flags, _QUEUE_FLAGS), "count": count, "timestamp_valid_bits": bits}
            for flags, count, bits in physical.queue_families
        ],
        "formats": _formats(physical),
        "cooperative_matrices": physical.matrices and [each._asdict() for each in physical.matrices],
        "shader_instrumentation": _instrumentation(physical),
        "ml_facts": ml_facts(physical),
        "emulation_obstacle": emulation_obstacle(physical),
    }


def ml_facts(physical: PhysicalDevice) -> dict[str, object]:
    """Return the ML extensions of a device, with their features and limits."""
    extensions = {name: revision for name, revision in physical.extensions.items() if name.startswith(_ML_EXTENSIONS)}
    arm = {name: values for name, values in features(physical).items() if name.endswith("ARM")}
    return {
        "extensions": dict(sorted(extensions.items())),
        "features": {name: values for name, values in arm.items() if "Tensor" in name or "DataGraph" in name},
        "properties": {name: value for name, value in _properties(physical).items() if "Tensor" in name},
    }


def features(physical: PhysicalDevice) -> dict[str, dict[str, bool]]:
    """Return every feature structure of a device, member by member."""
    members: dict[str, tuple[str, ...]] = {CORE: CORE_FEATURES}
    for name, (_, version, extensions, names) in sorted(FEATURES.items()):
        by_version = bool(version) and physical.api_version >= version
        if by_version or any(extension in physical.extensions for extension in extensions):
            members[name] = names
    supported = physical.features.supported
    return {name: {member: member in supported(name) for member in names} for name, names in members.items()}


def _instrumentation(physical: PhysicalDevice) -> dict[str, object]:
    """Describe the metrics of ``--shader-instrumentation``, or the reason why a device has none."""
    capability = problem = None
    try:
        instrumentation_required(physical)
        capability = instrumentation_capability(physical)
    except ScenarioRunnerError as error:
        problem = error.problems[0].message
    return {
        "supported": capability is not None,
        "per_basic_block": capability is not None and capability.per_basic_block,
        "metrics": [metric._asdict() for metric in capability.metrics] if capability else [],
        "problem": problem,
    }


def _properties(physical: PhysicalDevice) -> dict[str, dict[str, object]]:
    properties = {}
    for name, (version, extension) in _PROPERTIES.items():
        if (version and physical.api_version >= version) or extension in physical.extensions:
            properties[name] = _members(physical.properties_of(name)[0])
    return properties


def _formats(physical: PhysicalDevice) -> dict[str, dict[str, int]]:
    """Return the VkFormatFeatureFlags of each format that both our files and the device support."""
    formats = {}
    for format in all_formats():
        if format.is_of_tensors:
            continue
        values = physical.format_properties(format.value)
        flags = values.linearTilingFeatures, values.optimalTilingFeatures, values.bufferFeatures
        if any(flags):
            formats[format.name] = dict(zip(("linear", "optimal", "buffer"), flags, strict=True))
    return formats


def _names(flags: int, names: dict[int, str]) -> list[str]:
    return [name for bit, name in names.items() if flags >> bit & 1]


def _members(struct: Handle) -> dict[str, object]:
    """Return the members of a structure by name. A VkBool32 is 0 or 1, since C has no type for it."""
    return {
        name: _value(getattr(struct, name), field.type)
        for name, field in ffi.typeof(struct).fields
        if name not in ("sType", "pNext") and field.type.kind != "pointer"
    }


def _value(value: Handle, type: Handle) -> object:
    """Return a C value for JSON: characters as text, bytes in hexadecimal, other arrays as a list."""
    match type.kind:
        case "array" if type.item.cname == "char":
            return text_of(value)
        case "array" if type.item.cname in ("uint8_t", "unsigned char"):
            return bytes(ffi.buffer(value)).hex()
        case "array":
            return [_value(item, type.item) for item in value]
        case "struct":
            return _members(value)
    return value


if __name__ == "__main__":
    main(sys.argv)

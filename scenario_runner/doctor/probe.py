"""The child process that asks the loader and the drivers: ``python -m scenario_runner.doctor.probe REQUEST``.

Drivers and layers crash and hang; this process may go down with them. So each fact is a line of JSON on standard output
as soon as it is known, and each step is announced before it is taken: what was learned before a crash stays, and the
last step says what crashed. Layers print on standard output too, which therefore goes to standard error here.

The request is JSON: ``detail`` is "full" (everything), "ml" (devices as the ML emulation layers show them) or
"validation" (whether the validation layer loads); ``libraries`` are opened one by one to see whether they load.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from scenario_runner.errors import ScenarioRunnerError


class _Channel:
    """Writes facts; every line is on its way before the next step begins."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def send(self, key: str, value: Any) -> None:
        self._stream.write(json.dumps([key, value]) + "\n")
        self._stream.flush()

    def step(self, what: str) -> None:
        self.send("step", what)


def main(argv: Sequence[str]) -> None:
    """Answer one request."""
    request = json.loads(argv[1])
    channel = _Channel(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    os.dup2(2, 1)
    try:
        _ask(request, channel)
    except ScenarioRunnerError as error:
        channel.send("error", {"message": str(error), "help": error.problems[0].help})
    except Exception as error:  # whatever a driver's odd answers lead to is a finding, and the rest is still asked
        channel.send("error", {"message": f"{type(error).__name__}: {error}", "help": None})
    for path in request.get("libraries", ()):
        channel.step(f"opening {path}")
        channel.send("library", {"path": path, "problem": _open(path)})
    channel.step("the end of the process")
    channel.send("done", True)


def _open(path: str) -> str | None:
    """Why a library cannot be opened, or None."""
    import ctypes

    try:
        ctypes.CDLL(path)
    except OSError as error:
        return str(error)
    return None


def _ask(request: dict[str, Any], channel: _Channel) -> None:
    from scenario_runner.vulkan.api.loader import library_of, load
    from scenario_runner.vulkan.devices.instance import Instance

    full = request["detail"] == "full"
    channel.step("opening the Vulkan loader")
    loader = load()
    if full:
        channel.send("loader", {"path": library_of(loader.vkGetInstanceProcAddr)})
        channel.step("vkEnumerateInstanceVersion")
        channel.send("loader_version", _loader_version())
        channel.step("vkEnumerateInstanceLayerProperties")
        for layer in _layers():
            channel.send("layer", layer)
        channel.step("vkEnumerateInstanceExtensionProperties")
        channel.send("instance_extensions", _instance_extensions())
    channel.step("vkCreateInstance")
    if request["detail"] == "ml":
        from scenario_runner.vulkan.devices.layers import GRAPH_LAYER, TENSOR_LAYER
        from scenario_runner.vulkan.devices.ml_emulation import open_layered

        instance = open_layered((GRAPH_LAYER, TENSOR_LAYER), validation=False)
    else:
        instance = Instance(validation=request["detail"] == "validation")
    channel.send("instance", True)
    if request["detail"] != "validation":
        _devices(instance.physical_devices, full, channel)
    channel.step("vkDestroyInstance")
    instance.close()


def _devices(devices: list[Any], full: bool, channel: _Channel) -> None:
    from scenario_runner.doctor.device import describe, identity, ml_facts
    from scenario_runner.errors import NoDeviceError
    from scenario_runner.vulkan.devices.physical_device import choose

    for device in devices:
        channel.step(f"asking device {device.index} for its properties")
        if full:
            channel.send("device", describe(device))
        else:
            channel.send("device", {**identity(device), "ml_facts": ml_facts(device)})
    if full:
        try:
            channel.send("default", choose(devices, None).index)
        except NoDeviceError:
            channel.send("default", None)


def _loader_version() -> str:
    from scenario_runner.vulkan.api import loader
    from scenario_runner.vulkan.api.ffi import ffi
    from scenario_runner.vulkan.devices.instance import version_text

    version = ffi.new("uint32_t*")
    loader.instance_function(ffi.NULL, "vkEnumerateInstanceVersion")(version)
    return version_text(version[0])


def _layers() -> list[dict[str, Any]]:
    """What the loader says of every layer it finds; their libraries are not opened."""
    from scenario_runner.vulkan.api.ffi import ffi
    from scenario_runner.vulkan.devices.instance import version_text

    return [
        {
            "name": ffi.string(layer.layerName).decode(errors="replace"),
            "spec_version": version_text(layer.specVersion),
            "implementation_version": layer.implementationVersion,
            "description": ffi.string(layer.description).decode(errors="replace"),
        }
        for layer in _enumerated("vkEnumerateInstanceLayerProperties", "VkLayerProperties[]")
    ]


def _instance_extensions() -> dict[str, int]:
    from scenario_runner.vulkan.api.ffi import ffi

    found = _enumerated("vkEnumerateInstanceExtensionProperties", "VkExtensionProperties[]", ffi.NULL)
    return {ffi.string(each.extensionName).decode(errors="replace"): each.specVersion for each in found}


def _enumerated(command: str, kind: str, *before: Any) -> list[Any]:
    from scenario_runner.vulkan.api import loader
    from scenario_runner.vulkan.api.ffi import ffi
    from scenario_runner.vulkan.api.result import check

    function = loader.instance_function(ffi.NULL, command)
    count = ffi.new("uint32_t*")
    check(function(*before, count, ffi.NULL), command)
    items = ffi.new(kind, count[0])
    if count[0]:
        check(function(*before, count, items), command)
    return [items[index] for index in range(count[0])]


if __name__ == "__main__":
    main(sys.argv)

"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from scenario_runner import __version__
from scenario_runner.errors import ScenarioRunnerError


def describe() -> dict[str, str]:
    """Processor, memory, system, driver and versions, as words for people; what cannot be found out is missing."""
    facts = {
        "processor": f"{_processor()}, {os.cpu_count()} logical cores",
        "memory": _memory(),
        "load average": " ".join(f"{value:.2f}" for value in os.getloadavg()),
        "system": f"{platform.system()} {platform.release()}",
        "device": _device(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "scenario-runner": __version__,
    }
    return {name: value for name, value in facts.items() if value}


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemTotal"):
            return f"{int(line.split()[1]) / (1 << 20):.1f} GiB"
    return ""


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def _device() -> str:
    from scenario_runner import Runner

    try:
        with Runner() as runner:
            device = runner.physical_device
            driver = f"{_text(device.vulkan12_properties.driverName)} {_text(device.vulkan12_properties.driverInfo)}"
            api = device.api_version
            return f"{device.name}, {driver}, Vulkan {api >> 22}.{api >> 12 & 0x3FF}.{api & 0xFFF}"
    except ScenarioRunnerError as error:
        return f"none ({error})"


def _text(characters: Any) -> str:
    """A C string in an array of characters."""
    return b"".join(characters).partition(b"\0")[0].decode(errors="replace")

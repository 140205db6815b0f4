"""The machine that the numbers were measured on."""

import os
from pathlib import Path

from scenario_runner.doctor.machine_report import gather
from scenario_runner.errors.version import __version__


def describe() -> dict[str, str]:
    """Describe processor, memory, system, driver and versions."""
    report = gather()
    system, python = report["system"], report["python"]
    device = next((device for device in report["devices"] if device["default"]), None)
    return {
        "processor": f"{_field('/proc/cpuinfo', 'model name') or system['machine']}, {os.cpu_count()} logical cores",
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / (1 << 30):.1f} GiB",
        "load average": " ".join(f"{value:.2f}" for value in os.getloadavg()),
        "system": f"{system['os']} {system['release']}",
        "device": f"{device['name']}, {device['driver']['info']}, Vulkan {device['api_version']}" if device else "none",
        "python": f"{python['implementation']} {python['version']}",
        "scenario-runner": __version__,
    }


def _field(path: str, name: str) -> str:
    """Return the value of the first line with this name; empty without the file."""
    lines = Path(path).read_text().splitlines() if Path(path).exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")

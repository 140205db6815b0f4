"""The compared programs, how a user starts each, and the machine that they run on."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from scenario_runner.doctor.machine_report import gather
from scenario_runner.errors.installation import __version__

CHECKOUT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Program:
    """A program that ``command`` starts. With ``runs_many`` a process takes several scenarios."""

    name: str
    command: tuple[str, ...]
    runs_many: bool

    def arguments(self, scenarios: list[Path], output: Path) -> list[str]:
        """Return the command line that runs ``scenarios`` with relative outputs under ``output``."""
        if self.runs_many:
            return [*self.command, *map(str, scenarios), "--output", str(output)]
        (scenario,) = scenarios
        return [*self.command, "--scenario", str(scenario), "--output", str(output)]


def ours(command: str | None = None) -> Program:
    """Return our program: ``command``, or this checkout's package in this interpreter."""
    return Program("ours", (command,) if command else (sys.executable, "-m", "scenario_runner"), runs_many=True)


def reference(command: str) -> Program:
    """Return the reference runner; ``command`` is the binary, or a script that sets up layers."""
    return Program("reference", (str(Path(command).resolve()),), runs_many=False)


def version(program: Program) -> str:
    """Ask a program for its version."""
    done = subprocess.run(
        [*program.command, "--version"], cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False
    )
    try:
        return str(json.loads(done.stdout)["version"])
    except (ValueError, KeyError, TypeError):
        return done.stdout.strip() or f"unknown (exit code {done.returncode})"


def describe_machine() -> dict[str, str]:
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
    """Return the first value with this name; empty without the file."""
    lines = Path(path).read_text().splitlines() if Path(path).exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")

"""Parts that this machine lacks for ``run`` or ``test`` by doctor's report, and their installation."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from glob import glob
from pathlib import Path
from typing import Any, NamedTuple

from scenario_runner.errors.installation import family_here, has_package_lists, install_here, system_command

from .steps import SetUpError, say, step

# Keys of scenario_runner/errors/system_packages.toml, in words.
WORDS = {
    "loader": "the Vulkan loader (libvulkan.so.1)",
    "driver": "a Vulkan driver (your GPU's, or Mesa's lavapipe)",
    "glslang": "a GLSL compiler (glslang)",
    "glslc": "a GLSL compiler that takes many shaders at a time (Google's glslc)",
    "spirv_tools": "SPIR-V tools (spirv-as, spirv-val)",
    "vulkan_tools": "Vulkan tools (vulkaninfo)",
    "validation": "the Khronos validation layer",
    "c_compiler": "a C compiler and the C library's headers",
}
NEEDED = {
    "run": ("loader", "driver", "glslang"),
    "test": ("loader", "driver", "glslang", "glslc", "spirv_tools", "vulkan_tools", "c_compiler"),
}
# Parts that make a run faster or allow more tests. The set-up goes on without them.
WELCOME = {"run": ("glslc", "spirv_tools"), "test": ("validation",)}


class Lack(NamedTuple):
    """Missing parts, as keys of `WORDS`. ``hint`` is advice about a driver that no package would install."""

    needed: tuple[str, ...]
    welcome: tuple[str, ...]
    hint: str = ""

    @property
    def installable(self) -> tuple[str, ...]:
        """The needed parts that packages can install."""
        return tuple(part for part in self.needed if not (part == "driver" and self.hint))

    def advice(self) -> str:
        """Name the missing parts, and the command that installs all of them on this system."""
        lines = [f"missing: {WORDS[part]}" for part in self.needed]
        if self.hint:
            lines.append(self.hint)
        if self.installable:
            lines += [f"useful: {WORDS[part]}" for part in self.welcome]
            lines.append(f"install: {install_here(*self.installable, *self.welcome)}")
        return "\n".join(lines)


def examine(python: Path) -> dict[str, Any]:
    """Return the `scenario-runner doctor` report from the environment of ``python``."""
    command = [str(python), "-m", "scenario_runner", "doctor", "--json"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise SetUpError(f"looking at this machine failed:\n{done.stderr}") from None
    return report


def find(report: dict[str, Any], level: str) -> dict[str, str | None]:
    """Return each needed or welcome part's path, or None for a missing part."""
    compilers = report["compilers"]["GLSL"]
    layer = report["layers"]["validation"]
    found = {
        "loader": report["loader"]["path"] if report["loader"]["found"] else None,
        "driver": next((driver["path"] for driver in report["drivers"] if not driver["problem"]), None),
        # The tests call glslangValidator by this name; a run takes any compiler.
        "glslang": shutil.which("glslangValidator") if level == "test" else next((c["path"] for c in compilers), None),
        "glslc": next((compiler["path"] for compiler in compilers if compiler["batches"]), None),
        "spirv_tools": shutil.which("spirv-as"),
        "vulkan_tools": shutil.which("vulkaninfo"),
        "validation": "" if layer["found"] else None,
        "c_compiler": c_compiler(),
    }
    return {part: found[part] for part in (*NEEDED[level], *WELCOME[level])}


def c_compiler() -> str | None:
    """Find a C compiler with the C library's headers. Debian's gcc may come without them."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        return None
    done = subprocess.run([compiler, "-E", "-"], input=b"#include <stdio.h>\n", capture_output=True, check=False)
    return compiler if done.returncode == 0 else None


def look(report: dict[str, Any], level: str) -> Lack:
    """List the missing parts. If any driver exists, no other driver is missing."""
    found = find(report, level)
    needed, welcome = (tuple(part for part in parts[level] if found[part] is None) for parts in (NEEDED, WELCOME))
    hint = ""
    if "driver" in needed:
        # a vendor's container may have manifests in folders that the Vulkan loader does not search
        stray = sorted(glob("/usr/local/*/share/vulkan/icd.d/*.json"))
        problem = next((each for each in report["findings"] if each["id"] == "driver-missing"), None)
        if problem and problem["fix"] != install_here("driver"):
            hint = f"{problem['message']}: {problem['fix']}"
        elif stray:
            hint = f"a driver is at {stray[0]}, where the Vulkan loader does not look: set VK_DRIVER_FILES={stray[0]}"
    return Lack(needed, welcome, hint)


def can_install() -> bool:
    """Return whether the set-up may install system packages: as the superuser of Debian or Ubuntu."""
    return os.geteuid() == 0 and family_here() == "debian" and shutil.which("apt-get") is not None


def install(packages: Sequence[str]) -> None:
    """Install Debian packages. Raises `SetUpError` if apt-get fails even with fresh lists."""
    if not packages:
        return None
    command = system_command("debian", packages, superuser=True)

    def apt(title: str, *arguments: str) -> None:
        step(
            title,
            ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300", *arguments],
            folder=Path("/"),
            environ={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            advice=f"run this again when this works: {command}",
        )

    def install_now() -> None:
        apt(f"installing system packages: {' '.join(packages)}", "--no-install-recommends", "install", *packages)

    if has_package_lists("debian"):
        try:
            return install_now()
        except SetUpError:
            pass  # probably the lists name versions that the servers no longer have
    try:
        apt("updating the lists of system packages", "update")
    except SetUpError as error:
        say(str(error))  # the broken source may not matter here
    return install_now()

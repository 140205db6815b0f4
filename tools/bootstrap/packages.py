"""Which of the system's packages give what Vulkan lacks here, and installing them where that is ours to do."""

from __future__ import annotations

from dataclasses import dataclass

from .machine import Machine
from .steps import SetUpError, say, step

INSTALL = {
    "debian": "apt-get install",
    "fedora": "dnf install",
    "arch": "pacman -S",
    "alpine": "apk add",
    "macos": "brew install",
}
PACKAGES = {
    "debian": {
        "loader": "libvulkan1",
        "driver": "mesa-vulkan-drivers",
        "compiler": "glslang-tools",
        "batch": "glslc",
        "spirv": "spirv-tools",
    },
    "fedora": {
        "loader": "vulkan-loader",
        "driver": "mesa-vulkan-drivers",
        "compiler": "glslang",
        "batch": "glslc",
        "spirv": "spirv-tools",
    },
    "arch": {
        "loader": "vulkan-icd-loader",
        "driver": "vulkan-swrast",
        "compiler": "glslang",
        "batch": "shaderc",
        "spirv": "spirv-tools",
        "info": "vulkan-tools",
    },
    "alpine": {
        "loader": "vulkan-loader",
        "driver": "mesa-vulkan-swrast",
        "compiler": "glslang",
        "batch": "shaderc",
        "spirv": "spirv-tools",
    },
    "macos": {
        "loader": "vulkan-loader",
        "driver": "molten-vk",
        "compiler": "glslang",
        "batch": "shaderc",
        "spirv": "spirv-tools",
        "info": "vulkan-tools",
    },
}
WORDS = {
    "loader": "the Vulkan loader (libvulkan.so.1)",
    "driver": "a Vulkan driver (your GPU's, or Mesa's lavapipe)",
    "compiler": "a GLSL compiler (glslang)",
    "batch": "a GLSL compiler that takes many shaders at a time (Google's glslc)",
    "spirv": "SPIR-V tools (spirv-as)",
    "info": "Vulkan tools (vulkaninfo)",
}
NEEDED = {"run": ("loader", "driver", "compiler"), "test": tuple(WORDS)}
# What makes a run faster and is no reason to say that something is missing: installed where that is ours to do.
WELCOME = ("batch",)


@dataclass(frozen=True)
class Lack:
    """Which of the parts in `WORDS` this machine lacks.

    `hint` is set where a driver is no question of packages: one is here, but the Vulkan loader is kept from it.
    """

    parts: tuple[str, ...]
    hint: str = ""

    def installable(self) -> tuple[str, ...]:
        return tuple(part for part in self.parts if not (part == "driver" and self.hint))

    def without(self, part: str) -> Lack:
        return Lack(tuple(each for each in self.parts if each != part), self.hint)


def find(machine: Machine, level: str) -> dict[str, str | None]:
    """Where each part that ``run`` or ``test`` needs or welcomes is, ``None`` where it is missing."""
    found = {
        "loader": machine.loader(),
        "driver": machine.driver(),
        "compiler": machine.program("glslangValidator", "glslang"),
        "batch": machine.program("glslc"),
        "spirv": machine.program("spirv-as"),
        "info": machine.program("vulkaninfo"),
    }
    return {part: None if found[part] is None else str(found[part]) for part in (*NEEDED[level], *WELCOME)}


def look(machine: Machine, level: str) -> Lack:
    """What is missing. A driver that is there is never added to, whosever it is."""
    found = find(machine, level)
    parts = tuple(part for part in NEEDED[level] if found[part] is None)
    hint = ""
    if "driver" in parts:
        override = machine.overrides()
        stray = machine.stray_driver()
        if override:
            hint = f"{override}={machine.environ[override]} names no usable driver manifest: correct or unset it"
        elif stray:
            hint = f"a driver is at {stray}, where the Vulkan loader does not look: set VK_DRIVER_FILES={stray}"
    return Lack(parts, hint)


def advice(machine: Machine, lack: Lack) -> str:
    """Sentences for the user: what is missing, and the exact command for this distribution."""
    lines = [f"missing: {WORDS[part]}" for part in lack.parts]
    if lack.hint:
        lines.append(lack.hint)
    if parts := lack.installable():
        family = machine.distribution()
        if family:
            sudo = "" if machine.is_superuser or family == "macos" else "sudo "
            lines.append("install: " + " ".join([sudo + INSTALL[family], *(PACKAGES[family][part] for part in parts)]))
        else:
            lines.append("install: the packages of your system that hold them")
        if family and "compiler" in parts and "batch" not in parts and machine.program("glslc") is None:
            lines.append(f"many shaders compile sooner with {PACKAGES[family]['batch']} installed as well")
    return "\n".join(lines)


def can_install(machine: Machine) -> bool:
    """Whether adding system packages is ours to do: as the superuser of a Debian or Ubuntu."""
    return machine.is_superuser and machine.distribution() == "debian" and machine.program("apt-get") is not None


def install(machine: Machine, packages: tuple[str, ...]) -> None:
    """Install Debian packages. Raises `SetUpError` when apt-get cannot, with fresh lists too."""
    command = f"apt-get install {' '.join(packages)}"

    def apt(title: str, *arguments: str) -> None:
        step(
            title,
            ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300", *arguments],
            folder=machine.root,
            environ={**machine.environ, "DEBIAN_FRONTEND": "noninteractive"},
            advice=f"run this again when this works: {command}",
        )

    def install_now() -> None:
        apt(f"installing system packages: {' '.join(packages)}", "--no-install-recommends", "install", *packages)

    if any(machine.root.glob("var/lib/apt/lists/*Packages*")):
        try:
            return install_now()
        except SetUpError:
            pass  # the likeliest reason is lists that name versions which the servers no longer have
    try:
        apt("updating the lists of system packages", "update")
    except SetUpError as error:
        say(str(error))  # one broken source of many need not be the one that matters
    return install_now()

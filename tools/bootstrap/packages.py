"""What this machine lacks for ``run`` or ``test``, and installing it where that is ours to do."""

from __future__ import annotations

from dataclasses import dataclass

from scenario_runner.system_packages import has_package_lists, install_command, package_names

from .machine import Machine
from .steps import SetUpError, say, step

# Fields of `scenario_runner.system_packages.Packages`, in words.
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
# What makes a run faster, or more tests possible, and is not a reason to stop.
WELCOME = {"run": ("glslc", "spirv_tools"), "test": ("validation",)}


@dataclass(frozen=True)
class Lack:
    """Which of the parts in `WORDS` this machine lacks: those needed, and those that are merely welcome.

    `hint` is set where a driver is not a question of packages: one is here, but the Vulkan loader is kept from it.
    """

    parts: tuple[str, ...]
    welcome: tuple[str, ...] = ()
    hint: str = ""

    def installable(self) -> tuple[str, ...]:
        """The needed parts that packages would bring."""
        return tuple(part for part in self.parts if not (part == "driver" and self.hint))

    def without_need_of(self, part: str) -> Lack:
        """The same where something else does the work of `part`: it is still welcome."""
        if part not in self.parts:
            return self
        return Lack(tuple(each for each in self.parts if each != part), (part, *self.welcome), self.hint)


def find(machine: Machine, level: str) -> dict[str, str | None]:
    """Where each part that ``run`` or ``test`` needs or welcomes is, ``None`` where it is missing."""
    found = {
        "loader": machine.loader(),
        "driver": machine.driver(),
        # The tests call glslangValidator by this name; a run takes either.
        "glslang": machine.program("glslangValidator", *(["glslang"] if level == "run" else [])),
        "glslc": machine.program("glslc"),
        "spirv_tools": machine.program("spirv-as"),
        "vulkan_tools": machine.program("vulkaninfo"),
        "validation": machine.validation_layer(),
        "c_compiler": machine.c_compiler(),
    }
    return {part: None if found[part] is None else str(found[part]) for part in (*NEEDED[level], *WELCOME[level])}


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
    return Lack(parts, tuple(part for part in WELCOME[level] if found[part] is None), hint)


def advice(machine: Machine, lack: Lack) -> str:
    """Sentences for the user: what is missing, and the exact command that brings all of it on this distribution."""
    lines = [f"missing: {WORDS[part]}" for part in lack.parts]
    if lack.hint:
        lines.append(lack.hint)
    if parts := lack.installable():
        lines += [f"useful: {WORDS[part]}" for part in lack.welcome]
        family = machine.distribution()
        if family is None:
            lines.append("install: the packages of your system that hold them")
        else:
            packages = package_names(family, (*parts, *lack.welcome))
            command = install_command(family, packages, superuser=machine.is_superuser, root=machine.root)
            lines.append(f"install: {command}")
    return "\n".join(lines)


def can_install(machine: Machine) -> bool:
    """Whether adding system packages is ours to do: as the superuser of a Debian or Ubuntu."""
    return machine.is_superuser and machine.distribution() == "debian" and machine.program("apt-get") is not None


def install(machine: Machine, packages: tuple[str, ...]) -> None:
    """Install Debian packages. Raises `SetUpError` when apt-get cannot, with fresh lists too."""
    command = install_command("debian", packages, superuser=True, root=machine.root)

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

    if has_package_lists("debian", machine.root):
        try:
            return install_now()
        except SetUpError:
            pass  # the likeliest reason is lists that name versions which the servers no longer have
    try:
        apt("updating the lists of system packages", "update")
    except SetUpError as error:
        say(str(error))  # one broken source of many need not be the one that matters
    return install_now()

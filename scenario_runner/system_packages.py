"""Which packages of a distribution hold what this program uses, and the command that installs them.

Standard library only: the set-up of a checkout reads this before anything is installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import NamedTuple


class Packages(NamedTuple):
    """The packages that hold each part, separated by spaces. A family cannot leave one out."""

    loader: str
    driver: str
    glslang: str
    glslc: str
    spirv_tools: str
    vulkan_tools: str
    validation: str
    c_compiler: str
    """With the headers of the C library."""


class Family(NamedTuple):
    """A package manager: its commands, where its package lists are, and the names of its packages.

    ``update`` fetches the lists and ``lists`` matches their files; both are ``""`` where ``install`` does that itself.
    """

    install: str
    update: str
    lists: str
    packages: Packages


FAMILIES = {
    "debian": Family(
        install="apt-get install",
        update="apt-get update",
        lists="var/lib/apt/lists/*Packages*",
        packages=Packages(
            loader="libvulkan1",
            driver="mesa-vulkan-drivers",
            glslang="glslang-tools",
            glslc="glslc",
            spirv_tools="spirv-tools",
            vulkan_tools="vulkan-tools",
            validation="vulkan-validationlayers",
            c_compiler="gcc libc6-dev",
        ),
    ),
    "fedora": Family(
        install="dnf install",
        update="",
        lists="",
        packages=Packages(
            loader="vulkan-loader",
            driver="mesa-vulkan-drivers",
            glslang="glslang",
            glslc="glslc",
            spirv_tools="spirv-tools",
            vulkan_tools="vulkan-tools",
            validation="vulkan-validation-layers",
            c_compiler="gcc glibc-devel",
        ),
    ),
    "arch": Family(
        install="pacman -S",
        update="pacman -Sy",
        lists="var/lib/pacman/sync/*.db",
        packages=Packages(
            loader="vulkan-icd-loader",
            driver="vulkan-swrast",
            glslang="glslang",
            glslc="shaderc",
            spirv_tools="spirv-tools",
            vulkan_tools="vulkan-tools",
            validation="vulkan-validation-layers",
            c_compiler="gcc",
        ),
    ),
    "alpine": Family(
        install="apk add",
        update="apk update",
        lists="var/cache/apk/APKINDEX*",
        packages=Packages(
            loader="vulkan-loader",
            driver="mesa-vulkan-swrast",
            glslang="glslang",
            glslc="shaderc",
            spirv_tools="spirv-tools",
            vulkan_tools="vulkan-tools",
            validation="vulkan-validation-layers",
            c_compiler="gcc musl-dev",
        ),
    ),
    "macos": Family(
        install="brew install",
        update="",
        lists="",
        packages=Packages(
            loader="vulkan-loader",
            driver="molten-vk",
            glslang="glslang",
            glslc="shaderc",
            spirv_tools="spirv-tools",
            vulkan_tools="vulkan-tools",
            validation="vulkan-validationlayers",
            c_compiler="gcc",
        ),
    ),
}
_KIN = {"ubuntu": "debian", "rhel": "fedora", "centos": "fedora", "archlinux": "arch"}
# What to do on any other system, instead of package names.
_ELSEWHERE = Packages(
    loader="install the Vulkan loader of your system",
    driver="install the Vulkan driver of your GPU, or Mesa's software driver lavapipe",
    glslang="install glslang",
    glslc="install Google's shaderc, or put its glslc on PATH",
    spirv_tools="install SPIRV-Tools",
    vulkan_tools="install Vulkan-Tools",
    validation="install the Khronos validation layer (part of the Vulkan SDK)",
    c_compiler="install a C compiler and the headers of the C library",
)


def family_here(root: str | os.PathLike[str] = "/", platform: str = sys.platform) -> str | None:
    """The key in `FAMILIES` whose package names apply to the system at ``root``; None for any other system."""
    if platform == "darwin":
        return "macos"
    fields = {}
    for folder in ("etc", "usr/lib"):
        try:
            with open(os.path.join(root, folder, "os-release"), encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        for line in text.splitlines():
            name, _, value = line.partition("=")
            fields[name.strip()] = value.strip().strip("\"'")
        break
    names = [fields.get("ID", ""), *fields.get("ID_LIKE", "").split()]
    found = (_KIN.get(name, name) for name in names)
    return next((name for name in found if name in FAMILIES and name != "macos"), None)


def package_names(family: str, parts: Iterable[str]) -> tuple[str, ...]:
    """The packages that hold these parts, which are fields of `Packages`."""
    packages = FAMILIES[family].packages
    return tuple(name for part in parts for name in getattr(packages, part).split())


def has_package_lists(family: str, root: str | os.PathLike[str] = "/") -> bool:
    """Whether the package manager of the system at ``root`` can install packages without fetching its lists first."""
    from glob import glob

    return not FAMILIES[family].lists or bool(glob(FAMILIES[family].lists, root_dir=root))


def install_command(
    family: str, packages: Iterable[str], *, superuser: bool, root: str | os.PathLike[str] = "/"
) -> str:
    """The shell command that installs ``packages``. It fetches the package lists first where there are none."""
    known = FAMILIES[family]
    sudo = "" if superuser or family == "macos" else "sudo "
    install = f"{sudo}{known.install} {' '.join(packages)}"
    return install if has_package_lists(family, root) else f"{sudo}{known.update} && {install}"


def install_here(*parts: str) -> str:
    """How to install these parts on this machine: a shell command, or words for a system that is not in `FAMILIES`."""
    family = family_here()
    if family is None:
        return "; ".join(getattr(_ELSEWHERE, part) for part in parts)
    superuser = hasattr(os, "geteuid") and os.geteuid() == 0
    return install_command(family, package_names(family, parts), superuser=superuser)

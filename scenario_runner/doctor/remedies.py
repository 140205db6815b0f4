"""The one line that brings what is missing, in the words of this machine's package manager."""

from __future__ import annotations

import os
import sys

_INSTALL = {
    "debian": "apt-get install",
    "fedora": "dnf install",
    "arch": "pacman -S",
    "alpine": "apk add",
    "macos": "brew install",
}
_PACKAGES = {
    "loader": {
        "debian": "libvulkan1",
        "fedora": "vulkan-loader",
        "arch": "vulkan-icd-loader",
        "alpine": "vulkan-loader",
        "macos": "vulkan-loader",
    },
    "driver": {
        "debian": "mesa-vulkan-drivers",
        "fedora": "mesa-vulkan-drivers",
        "arch": "vulkan-swrast",
        "alpine": "mesa-vulkan-swrast",
        "macos": "molten-vk",
    },
    "glslang": {
        "debian": "glslang-tools",
        "fedora": "glslang",
        "arch": "glslang",
        "alpine": "glslang",
        "macos": "glslang",
    },
    "glslc": {
        "debian": "glslc",
        "fedora": "glslc",
        "arch": "shaderc",
        "alpine": "shaderc",
        "macos": "shaderc",
    },
    "spirv": {
        "debian": "spirv-tools",
        "fedora": "spirv-tools",
        "arch": "spirv-tools",
        "alpine": "spirv-tools",
        "macos": "spirv-tools",
    },
    "validation": {
        "debian": "vulkan-validationlayers",
        "fedora": "vulkan-validation-layers",
        "arch": "vulkan-validation-layers",
        "alpine": "vulkan-validation-layers",
        "macos": "vulkan-validationlayers",
    },
}
_ELSEWHERE = {
    "loader": "install the Vulkan loader of your system, or set SCENARIO_RUNNER_VULKAN_LOADER to the path of one",
    "driver": "install the Vulkan driver of your GPU, or Mesa's software driver lavapipe",
    "glslang": "install glslang, or set SCENARIO_RUNNER_GLSLANG to the path of glslangValidator",
    "glslc": "install Google's shaderc, or put its glslc on PATH",
    "spirv": "install SPIRV-Tools, or set SCENARIO_RUNNER_SPIRV_VAL to the path of its spirv-val",
    "validation": "install the Khronos validation layer (part of the Vulkan SDK)",
}


def install(part: str, family: str | None) -> str:
    """How to install "loader", "driver", "glslang", "glslc", "spirv" or "validation" on a system of this family."""
    package = _PACKAGES[part].get(family or "")
    if family is None or package is None:
        return _ELSEWHERE[part]
    sudo = "" if family == "macos" or _is_superuser() else "sudo "
    return f"{sudo}{_INSTALL[family]} {package}"


def pip_install(package: str) -> str:
    """How to install a Python package for this interpreter."""
    return f'"{sys.executable}" -m pip install {package}'


def _is_superuser() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0

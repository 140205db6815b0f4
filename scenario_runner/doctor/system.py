"""The machine around Vulkan: system, Python packages, environment, GPU nodes, cache folder, shader compilers."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from glob import glob

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.errors.installation import family_here, mixed_packages_problem, version_of
from scenario_runner.errors.text import Json
from scenario_runner.files.cache_folder import KINDS, kept_files
from scenario_runner.shaders.compilers.search import OFF, VALIDATOR_VARIABLE, find_compilers, find_validator
from scenario_runner.shaders.compilers.table import GLSLANG_VARIABLE, Compiler
from scenario_runner.shaders.spirv_val import validator_version

PACKAGES = (
    "vulkan", "cffi", "numpy", "pydantic", "imageio", "rich", "ml_dtypes", "ai_ml_sdk_vgf_library",
    "ai_ml_emulation_layer_for_vulkan", "tosa-tools",
)  # fmt: skip
# Prefixes of variables that choose or change loader, drivers and layers. Shorter prefixes would match credentials such
# as NVIDIA_API_KEY, and people publish this report.
_VARIABLES = (
    "DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LP_", "LVP_", "MESA_VK_", "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES", "SCENARIO_RUNNER_", "VK_ADD_", "VK_DRIVER_FILES", "VK_ICD_FILENAMES",
    "VK_IMPLICIT_LAYER_PATH", "VK_INSTANCE_LAYERS", "VK_LAYER_", "VK_LOADER_", "VMEL_", "XDG_CONFIG_DIRS",
    "XDG_DATA_DIRS",
)  # fmt: skip
_GPU_NODES = ("/dev/dri/renderD*", "/dev/nvidiactl*", "/dev/kfd*", "/dev/mali*")


def machine(environ: Mapping[str, str]) -> dict[str, object]:
    """Describe the operating system, the interpreter, packages, and environment variables that matter here."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    paths = [path for pattern in _GPU_NODES for path in sorted(glob(pattern))]
    return {
        "system": {
            "os": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
            "distribution": release.get("PRETTY_NAME"),
            "family": family_here(),
            "gpu_nodes": [{"path": path, "accessible": os.access(path, os.R_OK | os.W_OK)} for path in paths],
        },
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "executable": sys.executable,
        },
        "packages": {name: version_of(name) for name in PACKAGES},
        "mixed_packages": mixed_packages_problem(),
        "environment": {
            name: value for name, value in sorted(environ.items()) if value and name.startswith(_VARIABLES)
        },
    }


def cache(folder: str) -> dict[str, object]:
    """Describe the cache folder: the size, and whether files can be written there."""
    files = [file for kind in KINDS for file in kept_files(folder, kind)]
    problem = _write_problem(folder)
    return {
        "path": folder,
        "exists": os.path.isdir(folder),
        "files": len(files),
        "size_bytes": sum(file.size_bytes for file in files),
        "writable": problem is None,
        "problem": problem,
    }


def _write_problem(folder: str) -> str | None:
    """Explain why a folder is not writable; return None if it is writable. A missing folder is not created."""
    parent = os.path.abspath(folder)
    while not os.path.lexists(parent) and os.path.dirname(parent) != parent:
        parent = os.path.dirname(parent)
    if not os.path.isdir(parent):
        return f"{parent!r} is not a folder"
    return None if os.access(parent, os.W_OK | os.X_OK) else f"{parent!r} cannot be written"


def compilers(named: str | None = None) -> dict[str, Json]:
    """Describe the compilers by language, preferred compilers first.

    ``problems`` explains by language why a compiler that the user named is unusable. ``named`` is that GLSL compiler.
    """
    by_language: dict[str, Json] = {"GLSL": [], "HLSL": []}
    problems: dict[str, Json] = {"GLSL": None, "HLSL": None}
    for language, described in by_language.items():
        try:
            # Without the cache: doctor asks the programs themselves.
            described += map(_describe, find_compilers(named, language=language, use_cache=False))  # type: ignore[arg-type]
        except ScenarioRunnerError as error:
            problems[language] = {"message": str(error), "help": error.problems[0].help}
    named = named or os.environ.get(GLSLANG_VARIABLE) or None
    return {**by_language, "problems": problems, "named": named, "spirv_val": _spirv_val()}


def _spirv_val() -> dict[str, object]:
    """Describe spirv-val: path, version, and the problem with it."""
    try:
        validator = find_validator()
    except ScenarioRunnerError as error:
        return {"path": None, "version": None, "problem": str(error)}
    if validator is None:
        off = os.environ.get(VALIDATOR_VARIABLE) == OFF
        return {"path": None, "version": None, "problem": f"{VALIDATOR_VARIABLE} is {OFF!r}" if off else None}
    return {"path": validator.path, "version": validator_version(validator), "problem": None}


def _describe(compiler: Compiler) -> dict[str, object]:
    return {
        "path": compiler.path,
        "flavour": compiler.flavour,
        "version": compiler.version,
        "languages": list(compiler.languages),
        "tensors": compiler.knows_tensors,
        "renames_entry": compiler.renames_entry,
        "batches": compiler.many_at_once,
    }

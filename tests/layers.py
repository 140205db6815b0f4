"""Real Vulkan layers between the program and the driver, built from C where the tests run."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from scenario_runner.errors.installation import install_here

_FLAGS = ("-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", "-Wno-cast-function-type")


def layer_from(source: Path, extensions: Sequence[str] = ()) -> Any:
    """Return a session fixture: the environment variables with which the loader loads the layer built from
    ``source``. `build_layer` describes the layer, and its C file names the variables that steer it."""

    @pytest.fixture(scope="session")
    def layer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
        return build_layer(source, tmp_path_factory.mktemp(source.stem), extensions)

    return layer


def shared_library(source: Path, folder: Path) -> Path:
    """Compile a C file to a library in ``folder``."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, f"a C compiler builds {source.name}: {install_here('c_compiler')}"
    library = folder / f"lib{source.stem}.so"
    headers = f"-I{Path(__file__).parent}"  # loader_interface.h
    subprocess.run([compiler, *_FLAGS, headers, "-o", str(library), str(source)], check=True)
    return library


def build_layer(source: Path, folder: Path, extensions: Sequence[str] = ()) -> dict[str, str]:
    """Compile ``source`` (``NAME_layer.c``) and write its manifest, both into ``folder``; the layer is called
    VK_LAYER_TEST_NAME and brings these device extensions.

    Returns the environment variables with which the loader loads it.
    """
    library = shared_library(source, folder)
    name = f"VK_LAYER_TEST_{source.stem.removesuffix('_layer')}"
    manifest = {
        "name": name,
        "type": "GLOBAL",
        "library_path": str(library),
        "api_version": "1.3.0",
        "implementation_version": "1",
        "description": "a layer of the tests",
        "device_extensions": [{"name": each, "spec_version": "1", "entrypoints": []} for each in extensions],
    }
    (folder / f"{source.stem}.json").write_text(json.dumps({"file_format_version": "1.2.0", "layer": manifest}))
    # Mesa's own layer would come above this one and hide what happens in the calls that it makes itself.
    return {"VK_ADD_LAYER_PATH": str(folder), "VK_INSTANCE_LAYERS": name, "NODEVICE_SELECT": "1"}

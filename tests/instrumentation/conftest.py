"""The layer that brings VK_ARM_shader_instrumentation to the device at hand, built where the tests run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

LAYER = "VK_LAYER_TEST_instrumentation"


@pytest.fixture(scope="session")
def instrumentation_layer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables with which the loader loads the layer; see the C file for those that steer it."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "a C compiler builds the layer for shader instrumentation (Debian and Ubuntu: apt install gcc)"
    folder = tmp_path_factory.mktemp("instrumentation-layer")
    library = folder / "libinstrumentation_layer.so"
    source = Path(__file__).with_name("instrumentation_layer.c")
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", "-Wno-cast-function-type"]
    subprocess.run([compiler, *flags, "-o", str(library), str(source)], check=True)
    extensions = ("VK_ARM_shader_instrumentation", "VK_KHR_maintenance5")
    manifest = {
        "name": LAYER,
        "type": "GLOBAL",
        "library_path": str(library),
        "api_version": "1.3.0",
        "implementation_version": "1",
        "description": "counts dispatches as shader instrumentation",
        "device_extensions": [{"name": name, "spec_version": "1", "entrypoints": []} for name in extensions],
    }
    (folder / "instrumentation_layer.json").write_text(json.dumps({"file_format_version": "1.2.0", "layer": manifest}))
    return {"VK_ADD_LAYER_PATH": str(folder), "VK_INSTANCE_LAYERS": LAYER, "NODEVICE_SELECT": "1"}

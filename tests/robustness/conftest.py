"""The layer that makes Vulkan calls fail, built where the tests run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

LAYER = "VK_LAYER_TEST_fault"


@pytest.fixture(scope="session")
def fault_layer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables with which the loader loads the layer; see fault_layer.c for those that steer it."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "a C compiler builds the layer that makes Vulkan calls fail (Debian and Ubuntu: apt install gcc)"
    folder = tmp_path_factory.mktemp("fault-layer")
    library = folder / "libfault_layer.so"
    source = Path(__file__).with_name("fault_layer.c")
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", "-Wno-cast-function-type"]
    subprocess.run([compiler, *flags, "-o", str(library), str(source)], check=True)
    manifest = {
        "name": LAYER,
        "type": "GLOBAL",
        "library_path": str(library),
        "api_version": "1.3.0",
        "implementation_version": "1",
        "description": "makes one call fail",
    }
    (folder / "fault_layer.json").write_text(json.dumps({"file_format_version": "1.2.0", "layer": manifest}))
    # Mesa's own layer would come above this one and hide what fails in the calls that it makes itself.
    return {"VK_ADD_LAYER_PATH": str(folder), "VK_INSTANCE_LAYERS": LAYER, "NODEVICE_SELECT": "1"}

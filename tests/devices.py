"""Two devices on a machine that has one: the software driver twice, with vectors of different widths."""

import json
import os
from pathlib import Path

import pytest

from scenario_runner.doctor.manifests import drivers

NARROW, WIDE = "128 bits", "256 bits"
"""Ends of the names of the devices, whose gl_SubgroupSize is 4 and 8."""
_FOLDERS = ("/usr/lib", "/lib", "/usr/local/lib")
_VARIABLE, _SECOND = b"LP_NATIVE_VECTOR_WIDTH\0", b"LP_SECOND_VECTOR_WIDTH\0"


def two_drivers(folder: Path) -> dict[str, str]:
    """Install Mesa's software driver a second time, as a copy that reads its vector width from another variable.

    Returns the environment variables of two devices of one UUID with different names.
    """
    manifest = next((each for each in drivers(os.environ) if "lvp" in each.path and each.library), None)
    assert manifest is not None, "Mesa's software driver gives the second device"
    library = Path(manifest.library or "")
    if not library.is_absolute():  # the system's linker searches for it
        library = next(path for base in _FOLDERS for path in Path(base).rglob(library.name))
    content = library.read_bytes()
    assert content.count(_VARIABLE) == 1, library
    copy = folder / "libvulkan_second.so"
    copy.write_bytes(content.replace(_VARIABLE, _SECOND))
    second = folder / "second.json"
    described = json.loads(Path(manifest.path).read_text())
    described["ICD"]["library_path"] = str(copy)
    second.write_text(json.dumps(described))
    listed = os.pathsep.join((manifest.path, str(second)))
    widths = {"LP_NATIVE_VECTOR_WIDTH": NARROW.split()[0], "LP_SECOND_VECTOR_WIDTH": WIDE.split()[0]}
    return {"VK_DRIVER_FILES": listed, "VK_ICD_FILENAMES": listed, **widths}


@pytest.fixture(scope="session")
def two_devices(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment variables with which there are two devices."""
    return two_drivers(tmp_path_factory.mktemp("drivers"))

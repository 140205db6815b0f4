"""The layer that brings VK_ARM_shader_instrumentation to the device at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.layers import build_layer

EXTENSIONS = ("VK_ARM_shader_instrumentation", "VK_KHR_maintenance5")


@pytest.fixture(scope="session")
def instrumentation_layer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables with which the loader loads the layer; see the C file for those that steer it."""
    source = Path(__file__).with_name("instrumentation_layer.c")
    folder = tmp_path_factory.mktemp("instrumentation-layer")
    return build_layer(source, folder, "counts dispatches as shader instrumentation", EXTENSIONS)
